//! Kinds that the agent once published and that no valid PublishedResource publishes any more.
//!
//! Their schemas stay in the export, so consumers may still have objects of them, and those may still be held by the agent's finalizer.

use std::collections::HashSet;

use carrick_kcp::apis::split_schema_name;
use serde_json::Value;

use super::metadata::{annotation, label};
use super::mutation::Mutation;
use super::naming::{Naming, NamingError};
use super::{Adoption, ApiKind, Duty, Rules};
use crate::api::{self, AGENT_NAME, SOURCE_KIND};

/// A kind that is not published any more.
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
    /// Those of the exported schemas that belong to the agent and whose resource (`<plural>.<group>`) nobody takes care of.
    pub fn find(schemas: &[Value], export: &Value, taken: &HashSet<String>, agent_name: &str) -> Vec<Self> {
        let exported = export["spec"]["latestResourceSchemas"].as_array();
        let exported: HashSet<&str> = exported.into_iter().flatten().filter_map(Value::as_str).collect();
        let ours = schemas.iter().filter(|schema| label(schema, AGENT_NAME) == Some(agent_name));
        let abandoned = ours.filter_map(Self::of_schema);
        abandoned.filter(|kind| exported.contains(&*kind.schema) && !taken.contains(&kind.remote.resource())).collect()
    }

    fn of_schema(schema: &Value) -> Option<Self> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let spec = &schema["spec"];
        let served: Vec<&Value> = spec["versions"].as_array()?.iter().filter(|v| v["served"] == true).collect();
        let version = served.iter().find(|version| version["storage"] == true).or(served.last())?;
        let remote = ApiKind {
            group: text(&spec["group"])?,
            version: text(&version["name"])?,
            kind: text(&spec["names"]["kind"])?,
            plural: text(&spec["names"]["plural"])?,
            namespaced: spec["scope"] != "Cluster",
        };
        // Schemas of other agents do not tell; most kinds keep their names.
        let local = annotation(schema, SOURCE_KIND).and_then(|kind| kind.split_once('.'));
        let (local_kind, local_group) = local.unwrap_or((&remote.kind, &remote.group));
        let (local_kind, local_group) = (local_kind.to_owned(), local_group.to_owned());
        Some(Self { schema: text(&schema["metadata"]["name"])?, remote, local_group, local_kind })
    }

    /// The rules for its objects; without a local kind their copies are out of reach.
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
            mutation: Mutation::default(),
            subresources: Vec::new(),
            related: Vec::new(),
            adoption: Adoption::default(),
            schema: String::new(),
        })
    }
}

/// `<plural>.<group>` of a schema's name; empty if it has none.
pub fn resource_of(schema_name: &str) -> String {
    split_schema_name(schema_name).map(|(_, resource, group)| format!("{resource}.{group}")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::rules::schema;
    use crate::rules::tests::crontab;

    #[test]
    fn only_exported_schemas_of_our_own_that_nobody_publishes_are_abandoned() {
        let schema = |plural: &str, agent: &str| {
            let mut crd = crontab();
            crd.spec.names.plural = plural.to_owned();
            schema::build(&crd, agent).unwrap()
        };
        let schemas = [schema("kept", "me"), schema("left", "me"), schema("theirs", "other"), schema("unlisted", "me")];
        let names: Vec<&Value> = schemas[..3].iter().map(|schema| &schema["metadata"]["name"]).collect();
        let export = json!({"spec": {"latestResourceSchemas": names}});
        let taken = HashSet::from([resource_of(names[0].as_str().unwrap())]);
        let found = Abandoned::find(&schemas, &export, &taken, "me");
        assert_eq!(found.iter().map(|kind| kind.remote.plural.as_str()).collect::<Vec<_>>(), ["left"]);
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
            let found = Abandoned::of_schema(&schema).unwrap();
            assert_eq!((found.local_kind.as_str(), found.local_group.as_str()), (kind, group));
            assert!(found.rules(Duty::LetGo, None, "me").unwrap().blind);
        }
    }
}
