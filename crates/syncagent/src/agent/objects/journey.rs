//! What is known of objects, for those who want to look: names, times and counts, never content.

use std::collections::BTreeMap;
use std::sync::Arc;

use carrick_client::Object;
use carrick_multicluster::{FleetStore, Key};
use serde::Serialize;
use serde_json::Value;

use super::copies;
use crate::api::{FINALIZER, RELATED_PREFIX};
use crate::rules::metadata::SourceKey;

/// The objects of one PublishedResource.
#[derive(Clone)]
pub(crate) struct Journeys {
    pub(super) sources: FleetStore<Object>,
    pub(super) copies: FleetStore<Object>,
    /// The resource of the sources in kcp.
    pub(super) resource: String,
}

/// How far one object has come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Journey {
    /// Logical cluster of the consumer's workspace.
    pub cluster: String,
    /// Namespace and name in the workspace.
    pub object: String,
    /// The consumer's object.
    pub source: Stop,
    /// Whether the finalizer holds it.
    pub held: bool,
    /// Whether a status has come back.
    pub has_status: bool,
    /// Its copy, if there is one.
    pub copy: Option<Stop>,
    /// Objects that came along from the service.
    pub related: Vec<String>,
}

/// One object on the way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Stop {
    /// Namespace and name.
    pub place: String,
    /// When it was created.
    pub created: String,
    /// Generation of its spec.
    pub generation: i64,
    /// Whether it is being deleted.
    pub deleting: bool,
}

impl Journeys {
    /// How many objects there are in each workspace.
    pub fn workspaces(&self) -> BTreeMap<String, usize> {
        let clusters = self.sources.clusters().into_iter();
        clusters.map(|cluster| (cluster.to_string(), self.sources.list(&cluster).len())).collect()
    }

    /// Objects whose workspace, namespace or name holds a text, `most` of them.
    pub fn find(&self, text: &str, most: usize) -> Vec<(Key, Journey)> {
        let mut found: Vec<_> =
            self.sources.list_all().into_iter().filter(|(key, _)| key.to_string().contains(text)).collect();
        found.sort_by(|(a, _), (b, _)| a.cmp(b));
        found.truncate(most);
        let told = found.into_iter().map(|(key, source)| {
            let journey = self.journey(&key, &source);
            (key, journey)
        });
        told.collect()
    }

    fn journey(&self, key: &Key, source: &Arc<Object>) -> Journey {
        let value = source.value();
        let at = SourceKey {
            cluster: key.cluster.to_string(),
            namespace: key.namespace.to_string(),
            name: key.name.to_string(),
        };
        let metadata = &value["metadata"];
        let annotations = metadata["annotations"].as_object();
        let related = annotations.into_iter().flatten().filter_map(|(name, text)| {
            let identifier = name.strip_prefix(RELATED_PREFIX)?;
            let about: Value = serde_json::from_str(text.as_str()?).ok()?;
            Some(format!("{identifier}: {}", place(about["namespace"].as_str(), about["name"].as_str()?)))
        });
        Journey {
            cluster: at.cluster.clone(),
            object: place(Some(&at.namespace), &at.name),
            source: stop(source, &value),
            held: metadata["finalizers"].as_array().is_some_and(|all| all.iter().any(|one| one == FINALIZER)),
            has_status: value["status"].as_object().is_some_and(|status| !status.is_empty()),
            copy: copies::of(&self.copies, &at, &self.resource).first().map(|copy| stop(copy, &copy.value())),
            related: related.collect(),
        }
    }
}

fn stop(object: &Object, value: &Value) -> Stop {
    Stop {
        place: place(Some(&object.namespace), &object.name),
        created: value["metadata"]["creationTimestamp"].as_str().unwrap_or_default().to_owned(),
        generation: object.generation,
        deleting: object.is_deleting(),
    }
}

fn place(namespace: Option<&str>, name: &str) -> String {
    match namespace {
        None | Some("") => name.to_owned(),
        Some(namespace) => format!("{namespace}/{name}"),
    }
}
