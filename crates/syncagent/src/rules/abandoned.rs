//! Kinds that the agent once published and that no valid PublishedResource publishes now.
//!
//! Their schemas stay in the export, so consumers may still have such objects, and the agent's finalizer may still hold them.

use std::collections::{BTreeMap, HashSet};

use carrick_kcp::apis::split_schema_name;
use carrick_kcp::apis::v1alpha2::ApiExport;
use serde::Deserialize;

use super::access::{Budget, Reserved};
use super::admission::Admission;
use super::conversion::{Conversions, Passage};
use super::crd::Names;
use super::drift::DriftRules;
use super::naming::{Naming, NamingError};
use super::pause::PausedBy;
use super::{Adoption, AfterRestore, ApiKind, Duty, Rules};
use crate::api::{self, AGENT_NAME, SOURCE_KIND};

/// The part of an APIResourceSchema that is read: everything but the schemas.
#[derive(Debug, Deserialize)]
pub struct Schema {
    metadata: SchemaMetadata,
    spec: SchemaSpec,
}

#[derive(Debug, Deserialize)]
struct SchemaMetadata {
    name: String,
    labels: Option<BTreeMap<String, String>>,
    annotations: Option<BTreeMap<String, String>>,
}

#[derive(Debug, Deserialize)]
struct SchemaSpec {
    group: String,
    names: Names,
    #[serde(default)]
    scope: String,
    #[serde(default)]
    versions: Vec<SchemaVersion>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct SchemaVersion {
    name: String,
    served: bool,
    storage: bool,
}

/// A kind that is no longer published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Abandoned {
    /// Name of its schema.
    pub schema: String,
    /// The kind in kcp.
    pub remote: ApiKind,
    /// Group of the kind on the service cluster.
    pub local_group: String,
    /// The kind on the service cluster.
    pub local_kind: String,
}

impl Abandoned {
    /// Names of the exported schemas whose resource (`<plural>.<group>`) nobody serves.
    pub fn names<'a>(
        schemas: impl Iterator<Item = &'a str>,
        export: &ApiExport,
        taken: &HashSet<String>,
    ) -> Vec<&'a str> {
        let exported: HashSet<&str> = export.schemas().collect();
        schemas.filter(|schema| exported.contains(schema) && !taken.contains(&resource_of(schema))).collect()
    }

    /// The kind of a schema; `None` if the schema belongs to another agent, or no version is served.
    pub fn of_schema(schema: &Schema, agent_name: &str) -> Option<Self> {
        let Schema { metadata, spec } = schema;
        let mark = |marks: &Option<BTreeMap<String, String>>, key: &str| marks.as_ref()?.get(key).cloned();
        mark(&metadata.labels, AGENT_NAME).filter(|owner| owner == agent_name)?;
        let served = || spec.versions.iter().filter(|version| version.served);
        let version = served().find(|version| version.storage).or(served().next_back())?;
        let remote = ApiKind {
            group: spec.group.clone(),
            version: version.name.clone(),
            kind: spec.names.kind.clone(),
            plural: spec.names.plural.clone(),
            namespaced: spec.scope != "Cluster",
        };
        // Schemas made by the reference agent do not name it; most kinds keep their name.
        let local = mark(&metadata.annotations, SOURCE_KIND);
        let local = local.as_deref().and_then(|kind| kind.split_once('.'));
        let (local_kind, local_group) = local.unwrap_or((&remote.kind, &remote.group));
        let (local_kind, local_group) = (local_kind.to_owned(), local_group.to_owned());
        Some(Self { schema: metadata.name.clone(), remote, local_group, local_kind })
    }

    /// The rules for its objects; without a local kind their copies cannot be reached.
    pub fn rules(&self, duty: Duty, local: Option<ApiKind>, agent_name: &str) -> Result<Rules, NamingError> {
        Ok(Rules {
            duty,
            blind: local.is_none(),
            name: self.schema.clone(),
            agent_name: agent_name.to_owned(),
            local: local.unwrap_or_else(|| self.remote.clone()),
            remote: self.remote.clone(),
            naming: Naming::compile(&api::Naming::default(), true, self.remote.namespaced)?,
            resource_filter: None,
            namespace_filter: None,
            workspace_paths: false,
            mutation: Passage::default(),
            conversions: Conversions::default(),
            subresources: Vec::new(),
            related: Vec::new(),
            reads: Vec::new(),
            report: None,
            adoption: Adoption::default(),
            after_restore: AfterRestore::default(),
            pause: PausedBy::default(),
            drift: DriftRules::default(),
            import: None,
            apply: false,
            schema: String::new(),
            rolled_back: false,
            limit: None,
            admission: Admission::default(),
            feedback: false,
            withdrawal: None,
            reserved: Reserved::default(),
            budget: Budget::default(),
        })
    }
}

/// `<plural>.<group>` of a schema's name; empty if it has none.
pub fn resource_of(schema_name: &str) -> String {
    split_schema_name(schema_name).map(|(_, resource, group)| format!("{resource}.{group}")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use carrick_kcp::apis::v1alpha2::ResourceSchema;

    use super::*;
    use crate::rules::schema;
    use crate::rules::tests::crontab;

    #[test]
    fn only_exported_schemas_of_our_own_that_nobody_publishes_are_abandoned() {
        let schemas = ["v1.kept.example.com", "v1.left.example.com", "v1.unlisted.example.com"];
        let mut export = ApiExport::new("e");
        export.spec.resources = schemas[..2].iter().map(|schema| ResourceSchema::of(schema)).collect();
        let taken = HashSet::from(["kept.example.com".to_owned()]);
        assert_eq!(Abandoned::names(schemas.into_iter(), &export, &taken), [schemas[1]]);

        let schema: Schema = serde_json::from_value(schema::build(&crontab(), "me").unwrap()).unwrap();
        assert_eq!(Abandoned::of_schema(&schema, "me").unwrap().remote.plural, "crontabs");
        assert_eq!(Abandoned::of_schema(&schema, "other"), None);
    }

    #[test]
    fn the_kind_of_the_copies_is_the_one_the_schema_was_made_from() {
        let mut schema = schema::build(&crontab(), "me").unwrap();
        for (source, kind, group) in [
            (None, "CronTab", "example.com"),
            (Some("Job.batch"), "Job", "batch"),
            (Some("ConfigMap."), "ConfigMap", ""),
        ] {
            if let Some(source) = source {
                schema["metadata"]["annotations"][SOURCE_KIND] = source.into();
            }
            let schema: Schema = serde_json::from_value(schema.clone()).unwrap();
            let found = Abandoned::of_schema(&schema, "me").unwrap();
            assert_eq!((found.local_kind.as_str(), found.local_group.as_str()), (kind, group));
            assert!(found.rules(Duty::Release, None, "me").unwrap().blind);
        }
    }
}
