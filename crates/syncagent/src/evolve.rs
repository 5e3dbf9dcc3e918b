//! What consumers would get if the schemas of today were exported, without an agent: for `carrick diff`, `approve` and `rollback`.

use std::sync::Arc;

use carrick_client::{Client, Error, ListOptions, Resource, Server};
use carrick_kcp::apis::v1alpha1::{ApiExportEndpointSlice, ApiResourceSchema};
use carrick_kcp::apis::v1alpha2::ApiExport;
use carrick_kcp::kinds::API_RESOURCE_SCHEMA;
use carrick_schema::evolution::{Definition, DefinitionError, Report, Trial, diff};
use serde_json::{Value, json};
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use crate::agent::catalog::published_resources;
use crate::agent::config::AgentConfig;
use crate::agent::connect::{self, ConnectError, KcpLocations};
use crate::agent::health::Health;
use crate::api::{APPROVED_MAPPING, APPROVED_SCHEMA, PublishedResource, REJECTED_SCHEMA, ROLLED_BACK};
use crate::rules::gate::same_resource;
use crate::rules::implements::force::Steps;
use crate::toolkit::{self, ToolkitError};

/// Why schemas cannot be compared or chosen.
#[derive(Debug, Error)]
pub enum EvolveError {
    /// The slice or the export cannot be found.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// A server does not answer, or refuses.
    #[error("cannot {action}: {source}")]
    Request {
        /// What was tried.
        action: String,
        /// What the server said.
        source: Box<Error>,
    },
    /// There is no such PublishedResource.
    #[error("there is no PublishedResource {0:?}; see what there is with `kubectl get publishedresources`")]
    Unknown(String),
    /// The PublishedResource cannot be read.
    #[error("PublishedResource {name}: {problem}")]
    Unreadable {
        /// Its name.
        name: String,
        /// What is wrong.
        problem: String,
    },
    /// What would be published cannot be computed.
    #[error(transparent)]
    Toolkit(#[from] ToolkitError),
    /// A schema in kcp is not one.
    #[error(transparent)]
    Definition(#[from] DefinitionError),
    /// The export does not list the kind.
    #[error("PublishedResource {0} is not exported yet; there is nothing to compare with")]
    NotExported(String),
    /// There is no schema to go back to.
    #[error("there is no schema of {resource} that is older than {exported}; name one with --to")]
    NoEarlier {
        /// The resource in kcp.
        resource: String,
        /// The schema that is exported now.
        exported: String,
    },
    /// The schema to go back to does not exist, or is one of another kind.
    #[error("APIResourceSchema {0} does not exist in the workspace of the APIExport, or is one of another kind")]
    NoSchema(String),
}

fn failed(action: impl Into<String>) -> impl FnOnce(Error) -> EvolveError {
    let action = action.into();
    |source| EvolveError::Request { action, source: Box::new(source) }
}

/// Both servers, and where the export is.
pub struct Evolution {
    local: Client,
    kcp: Server,
    places: KcpLocations,
    selector: String,
}

/// One PublishedResource: what is exported, and what follows from its CRD of today.
#[derive(Debug)]
pub struct Evolved {
    /// Name of the PublishedResource.
    pub name: String,
    /// Name of the schema that the export lists.
    pub exported: String,
    /// Name of the schema that follows from the CRD.
    pub computed: String,
    old: Value,
    new: Value,
    pr: PublishedResource,
}

impl Evolved {
    /// What changes.
    pub fn report(&self) -> Result<Report, EvolveError> {
        Ok(diff(&Definition::read(&self.old)?, &Definition::read(&self.new)?))
    }

    /// Whether changed schemas may be held back.
    pub fn is_gated(&self) -> bool {
        self.pr.is_gated()
    }
}

impl Evolution {
    /// Connects as an agent with this configuration would.
    pub async fn connect(config: &AgentConfig) -> Result<Self, EvolveError> {
        let part = Arc::new(Health::default()).part("connection to kcp");
        let places = connect::connect(&config.kcp, &config.slice, true, &part, &CancellationToken::new()).await?;
        // Nobody tells it to stop, so there is an answer.
        let places = places.ok_or_else(|| EvolveError::NoSchema(config.slice.to_string()))?;
        let (local, kcp, selector) = (config.local.client(), config.kcp.clone(), config.selector.clone());
        Ok(Self { local, kcp, places, selector })
    }

    /// Names of all PublishedResources that an agent would see.
    pub async fn names(&self) -> Result<Vec<String>, EvolveError> {
        let label_selector = (!self.selector.is_empty()).then(|| self.selector.clone());
        let options = ListOptions { label_selector, field_selector: None };
        let all = self.local.list(&published_resources(), None, &options).await;
        let all = all.map_err(failed("list PublishedResources"))?;
        Ok(all.iter().filter_map(|pr| pr["metadata"]["name"].as_str()).map(str::to_owned).collect())
    }

    /// What is exported of a PublishedResource, and what follows from its CRD.
    pub async fn of(&self, name: &str) -> Result<Evolved, EvolveError> {
        let found = self.local.get(&published_resources(), None, name).await;
        let found = found.map_err(failed(format!("read PublishedResource {name}")))?;
        let found = found.ok_or_else(|| EvolveError::Unknown(name.to_owned()))?;
        let pr: PublishedResource = serde_json::from_value(found)
            .map_err(|error| EvolveError::Unreadable { name: name.to_owned(), problem: error.to_string() })?;
        let new = toolkit::resource_schema(&self.local, &pr, true).await?;
        let computed = new["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let export: Option<ApiExport> = self
            .places
            .export
            .client
            .get_newest(&self.places.export_name)
            .await
            .map_err(failed(format!("read APIExport {}", self.places.export_name)))?;
        let export = export.unwrap_or_default();
        let exported = export.schemas().find(|listed| same_resource(listed, &computed)).map(str::to_owned);
        let exported = exported.ok_or_else(|| EvolveError::NotExported(name.to_owned()))?;
        let old = self.schema(&exported).await?.ok_or_else(|| EvolveError::NoSchema(exported.clone()))?;
        Ok(Evolved { name: name.to_owned(), exported, computed, old, new, pr })
    }

    async fn schema(&self, name: &str) -> Result<Option<Value>, EvolveError> {
        let found = self.places.export.client.get(&API_RESOURCE_SCHEMA.into(), None, name).await;
        found.map_err(failed(format!("read APIResourceSchema {name}")))
    }

    /// Tries the new schema on the objects of all consumers.
    pub async fn trial(&self, evolved: &Evolved) -> Result<Trial, EvolveError> {
        let (old, new) = (Definition::read(&evolved.old)?, Definition::read(&evolved.new)?);
        let slice: Option<ApiExportEndpointSlice> = self
            .places
            .slice
            .client
            .get_kcp(&self.places.slice_name)
            .await
            .map_err(failed(format!("read APIExportEndpointSlice {}", self.places.slice_name)))?;
        let versions = evolved.old["spec"]["versions"].as_array().into_iter().flatten();
        let version =
            versions.filter(|version| version["served"] == true).max_by_key(|version| version["storage"] == true);
        let version = version.and_then(|version| version["name"].as_str()).unwrap_or_default();
        let make = if old.scope == "Namespaced" { Resource::namespaced } else { Resource::cluster_wide };
        let resource = make(&old.group, version, &old.kind, &old.plural);
        let mut objects = Vec::new();
        for endpoint in slice.unwrap_or_default().status.endpoints {
            let url = carrick_kcp::url::in_endpoint(&endpoint.url, "*");
            let client = self.kcp.at_published_url(&url).map_err(|error| EvolveError::Unreadable {
                name: evolved.name.clone(),
                problem: format!("its consumers cannot be reached at {url}: {error}"),
            })?;
            let found = client.list(&resource, None, &ListOptions::default()).await;
            objects.extend(found.map_err(failed(format!("list {} of all consumers", old.resource())))?);
        }
        let placed = objects.into_iter().map(|object| {
            let place = object["metadata"]["annotations"]["kcp.io/cluster"].as_str().unwrap_or_default().to_owned();
            (place, object)
        });
        Ok(Trial::of(&old, &new, placed))
    }

    /// Approves the schema that follows from the CRD of today, and no later one.
    pub async fn approve(&self, evolved: &Evolved) -> Result<(), EvolveError> {
        let mut annotations = json!({ APPROVED_SCHEMA: evolved.computed, REJECTED_SCHEMA: null });
        if let Some(implements) = &evolved.pr.spec.implements {
            annotations[APPROVED_MAPPING] = Steps::of(implements).noted(&implements.resource).digest.into();
        }
        self.annotate(&evolved.name, &json!({ "metadata": { "annotations": annotations } })).await
    }

    /// The schema to go back to: the one that was made before the exported one, or the one that is named.
    pub async fn earlier(&self, evolved: &Evolved, to: Option<&str>) -> Result<Evolved, EvolveError> {
        let client = &self.places.export.client;
        let target = if let Some(name) = to {
            name.to_owned()
        } else {
            let all = client.metadata_only().list_kcp::<ApiResourceSchema>(&ListOptions::default()).await;
            let all = all.map_err(failed("list APIResourceSchemas"))?;
            let made = |schema: &ApiResourceSchema| schema.metadata.creation_timestamp.clone();
            let now = all.iter().find(|schema| schema.metadata.name == evolved.exported).map(made).unwrap_or_default();
            let same = all.iter().filter(|schema| same_resource(&schema.metadata.name, &evolved.exported));
            // Of two that were made in the same second, any other one will do.
            let older = same.filter(|schema| schema.metadata.name != evolved.exported && made(schema) <= now);
            let last = older.max_by_key(|schema| made(schema));
            last.map(|schema| schema.metadata.name.clone()).ok_or_else(|| EvolveError::NoEarlier {
                resource: Definition::read(&evolved.old).map(|old| old.resource()).unwrap_or_default(),
                exported: evolved.exported.clone(),
            })?
        };
        let new = self.schema(&target).await?.filter(|_| same_resource(&target, &evolved.exported));
        let new = new.ok_or_else(|| EvolveError::NoSchema(target.clone()))?;
        let (old, pr) = (evolved.old.clone(), evolved.pr.clone());
        Ok(Evolved { name: evolved.name.clone(), exported: evolved.exported.clone(), computed: target, old, new, pr })
    }

    /// Goes back to a schema, and rejects the one that follows from the CRD of today. Without a gate, the PublishedResource gets one.
    pub async fn roll_back(&self, evolved: &Evolved, target: &str) -> Result<(), EvolveError> {
        let rejected = if evolved.computed == target { Value::Null } else { json!(evolved.computed) };
        let annotations = json!({ APPROVED_SCHEMA: target, REJECTED_SCHEMA: rejected, ROLLED_BACK: evolved.exported });
        let mut patch = json!({ "metadata": { "annotations": annotations } });
        if !evolved.is_gated() {
            patch["spec"] = json!({ "schemaUpdates": "Manual" });
        }
        self.annotate(&evolved.name, &patch).await
    }

    async fn annotate(&self, name: &str, patch: &Value) -> Result<(), EvolveError> {
        let patched = self.local.merge_patch(&published_resources(), None, name, patch).await;
        patched.map(drop).map_err(failed(format!("annotate PublishedResource {name}")))
    }
}
