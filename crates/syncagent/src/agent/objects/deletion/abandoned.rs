//! Finding kinds that nobody publishes any more: a PublishedResource was deleted or is no longer valid, maybe while no agent ran.

use std::collections::HashSet;
use std::sync::Arc;

use carrick_client::discovery::find_kind;
use carrick_client::{Client, Error, ListOptions};
use carrick_kcp::apis::v1alpha2::ApiExport;
use carrick_kcp::kinds::API_RESOURCE_SCHEMA;
use serde_json::Value;
use thiserror::Error;

use crate::agent::catalog::{Catalog, published_resources};
use crate::agent::connect;
use crate::agent::objects::context::Context;
use crate::api::AGENT_NAME;
use crate::rules::abandoned::{Abandoned, Schema, resource_of};
use crate::rules::metadata::is_deleting;
use crate::rules::naming::NamingError;
use crate::rules::{ApiKind, Duty, Rules};

/// Why it is not known which kinds are abandoned.
#[derive(Debug, Error)]
pub(in crate::agent::objects) enum SearchError {
    /// A server refused or did not answer.
    #[error("cannot read {what}: {source}")]
    Read {
        /// What was to be read.
        what: String,
        /// What the server said.
        source: Error,
    },
    /// The built-in naming rules are broken: a defect.
    #[error(transparent)]
    Naming(#[from] NamingError),
}

/// Rules for all abandoned kinds.
pub(in crate::agent::objects) async fn find(
    context: &Context,
    catalog: &Catalog,
) -> Result<Vec<Arc<Rules>>, SearchError> {
    let failed = |what: &str| {
        let what = what.to_owned();
        |source| SearchError::Read { what, source }
    };
    let ours = ListOptions::labels(format!("{AGENT_NAME}={}", context.agent_name));
    let schemas = connect::resource(&API_RESOURCE_SCHEMA);
    let (kcp, every) = (&context.export_workspace, ListOptions::default());
    // Schemas take megabytes: all are listed by their names, and only those that nobody publishes are read.
    let listed = kcp.metadata_only().list_compact(&schemas, None, &ours).await;
    let listed = listed.map_err(failed("APIResourceSchemas"))?;
    let export: Option<ApiExport> = kcp.get_newest(&context.export).await.map_err(failed("the APIExport"))?;
    let all = context.local.list(&published_resources(), None, &every).await.map_err(failed("PublishedResources"))?;
    let broken = catalog.broken();
    let (lost, kept): (Vec<&Value>, Vec<&Value>) = all.iter().partition(|pr| broken.contains(name_of(pr)));
    let taken: HashSet<String> = kept.into_iter().filter_map(|pr| resource_taken_care_of(pr, catalog)).collect();
    let waiting: HashSet<String> = lost.into_iter().filter(|pr| is_at_work(pr)).map(schema_resource).collect();
    let (export, names) = (export.unwrap_or_default(), listed.iter().map(|schema| &*schema.name));
    let mut rules = Vec::new();
    for name in Abandoned::names(names, &export, &taken) {
        let schema = kcp.get_compact(&schemas, None, name).await.map_err(failed("an APIResourceSchema"))?;
        let schema = schema.and_then(|schema| schema.decode::<Schema>().ok());
        let Some(kind) = schema.and_then(|schema| Abandoned::of_schema(&schema, &context.agent_name)) else { continue };
        let local = local_kind(&context.local, &kind).await.map_err(failed(&kind.local_kind))?;
        let duty = if waiting.contains(&kind.remote.resource()) { Duty::End } else { Duty::Release };
        rules.push(Arc::new(kind.rules(duty, local, &context.agent_name)?));
    }
    Ok(rules)
}

/// The resource in kcp that needs no help, because this PublishedResource publishes it, for our agent or for another one. Ours may have
/// published another one before.
fn resource_taken_care_of(pr: &Value, catalog: &Catalog) -> Option<String> {
    let name = name_of(pr);
    if let Some(entry) = catalog.entries.get(name) {
        return Some(resource_of(&entry.schema_name));
    }
    let lost = catalog.resources.get(name).is_some_and(|ours| !ours.is_at_work());
    (!lost).then(|| schema_resource(pr))
}

fn name_of(pr: &Value) -> &str {
    pr["metadata"]["name"].as_str().unwrap_or_default()
}

/// The resource in kcp that a PublishedResource publishes, as its status says.
fn schema_resource(pr: &Value) -> String {
    resource_of(pr["status"]["resourceSchemaName"].as_str().unwrap_or_default())
}

/// Whether its objects would be synchronized if it were valid. It may not even be readable.
fn is_at_work(pr: &Value) -> bool {
    !is_deleting(pr) && pr["spec"]["synchronization"]["enabled"] != false
}

async fn local_kind(local: &Client, kind: &Abandoned) -> Result<Option<ApiKind>, Error> {
    let found = find_kind(local, &kind.local_group, &kind.local_kind).await?;
    Ok(found.map(|found| ApiKind {
        group: found.group,
        version: found.preferred,
        kind: found.kind,
        plural: found.plural,
        namespaced: found.namespaced,
    }))
}
