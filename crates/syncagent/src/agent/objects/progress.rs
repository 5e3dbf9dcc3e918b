//! How far each order has come, for the dashboard: names, times and counts, never content.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use carrick_client::Object;
use carrick_multicluster::{Fleet, FleetStore, Key};
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::Value;

use super::copies;
use super::source::source_key;
use crate::api::{FINALIZER, RELATED_PREFIX};
use crate::rules::metadata::SourceKey;

/// The orders of all PublishedResources, by name of the PublishedResource.
#[derive(Default)]
pub(crate) struct AllOrders(Mutex<BTreeMap<String, Orders>>);

impl AllOrders {
    /// Adds the orders of a PublishedResource, in place of those that were added before.
    pub fn add(&self, name: &str, orders: Orders) {
        self.0.lock().insert(name.to_owned(), orders);
    }

    /// Removes them.
    pub fn remove(&self, name: &str) {
        self.0.lock().remove(name);
    }

    /// All of them, as they are now.
    pub fn all(&self) -> BTreeMap<String, Orders> {
        self.0.lock().clone()
    }
}

/// The orders of one PublishedResource.
#[derive(Clone)]
pub(crate) struct Orders {
    pub(super) sources: FleetStore<Object>,
    pub(super) copies: FleetStore<Object>,
    /// The resource of the sources in kcp.
    pub(super) resource: String,
    /// The consumers' workspaces.
    pub(super) consumers: Fleet,
}

impl Orders {
    /// The consumers' objects, each with its logical cluster, once all endpoints were listed or the time is up.
    pub async fn listed(&self, patience: Duration) -> Vec<(String, Arc<Object>)> {
        // Without an answer, what is known has to do.
        let _ = tokio::time::timeout(patience, self.sources.wait_until(FleetStore::is_listed)).await;
        self.sources.list_all().into_iter().map(|(key, object)| (key.cluster.to_string(), object)).collect()
    }
}

/// How far one order has come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OrderProgress {
    /// Logical cluster of the consumer's workspace.
    pub cluster: String,
    /// Path of that workspace, if it is known.
    pub workspace: Option<String>,
    /// Namespace and name in the workspace.
    pub object: String,
    /// The consumer's object.
    pub source: ObjectSummary,
    /// Whether the finalizer holds it.
    pub held: bool,
    /// Whether a status has come back.
    pub has_status: bool,
    /// Its copy, if there is one.
    pub copy: Option<ObjectSummary>,
    /// Objects that came along from the service.
    pub related: Vec<String>,
}

/// What is shown of one object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ObjectSummary {
    /// Namespace and name.
    pub place: String,
    /// When it was created.
    pub created: String,
    /// Generation of its spec.
    pub generation: i64,
    /// Whether it is being deleted.
    pub deleting: bool,
}

impl Orders {
    /// How many objects there are in each workspace.
    pub fn workspaces(&self) -> BTreeMap<String, usize> {
        let clusters = self.sources.clusters().into_iter();
        clusters.map(|cluster| (cluster.to_string(), self.sources.list(&cluster).len())).collect()
    }

    /// Path of a workspace, if it is known.
    pub fn path(&self, cluster: &str) -> Option<String> {
        self.consumers.cluster(cluster).ok()?.path().map(|path| path.to_string())
    }

    /// Objects whose workspace, namespace or name contains a text, at most `most` of them.
    pub fn find(&self, text: &str, most: usize) -> Vec<(SourceKey, OrderProgress)> {
        let mut found: Vec<_> =
            self.sources.list_all().into_iter().filter(|(key, _)| self.is_about(key, text)).collect();
        found.sort_by(|(a, _), (b, _)| a.cmp(b));
        found.truncate(most);
        let each = found.iter().map(|(key, source)| {
            let key = source_key(key);
            let progress = self.progress(&key, source);
            (key, progress)
        });
        each.collect()
    }

    fn is_about(&self, key: &Key, text: &str) -> bool {
        key.to_string().contains(text) || self.path(&key.cluster).is_some_and(|path| path.contains(text))
    }

    fn progress(&self, key: &SourceKey, source: &Arc<Object>) -> OrderProgress {
        let value = source.value();
        let metadata = &value["metadata"];
        let annotations = metadata["annotations"].as_object();
        let related = annotations.into_iter().flatten().filter_map(|(name, text)| {
            let identifier = name.strip_prefix(RELATED_PREFIX)?;
            let about: Value = serde_json::from_str(text.as_str()?).ok()?;
            Some(format!("{identifier}: {}", full_name(about["namespace"].as_str(), about["name"].as_str()?)))
        });
        OrderProgress {
            cluster: key.cluster.to_string(),
            workspace: self.path(&key.cluster),
            object: full_name(Some(&key.namespace), &key.name),
            source: summary(source, &value),
            held: metadata["finalizers"].as_array().is_some_and(|all| all.iter().any(|one| one == FINALIZER)),
            has_status: value["status"].as_object().is_some_and(|status| !status.is_empty()),
            copy: copies::of(&self.copies, key, &self.resource).first().map(|copy| summary(copy, &copy.value())),
            related: related.collect(),
        }
    }
}

fn summary(object: &Object, value: &Value) -> ObjectSummary {
    ObjectSummary {
        place: full_name(Some(&object.namespace), &object.name),
        created: value["metadata"]["creationTimestamp"].as_str().unwrap_or_default().to_owned(),
        generation: object.generation,
        deleting: object.is_deleting(),
    }
}

fn full_name(namespace: Option<&str>, name: &str) -> String {
    match namespace {
        None | Some("") => name.to_owned(),
        Some(namespace) => format!("{namespace}/{name}"),
    }
}
