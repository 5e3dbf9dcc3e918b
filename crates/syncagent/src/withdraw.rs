//! Withdrawing a kind, without an agent: who still uses it, and the annotations that make agents do it. For `carrick withdraw`.

use std::collections::BTreeMap;
use std::sync::Arc;

use carrick_client::{Client, Error, ListOptions, Resource, Server};
use carrick_kcp::PATH_ANNOTATION;
use carrick_kcp::apis::split_schema_name;
use carrick_kcp::apis::v1alpha1::ApiExportEndpointSlice;
use carrick_kcp::apis::v1alpha2::ApiBinding;
use carrick_kcp::kinds::API_RESOURCE_SCHEMA;
use carrick_sync::executor::refusal::is_unserved;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use crate::agent::catalog::published_resources;
use crate::agent::config::AgentConfig;
use crate::agent::connect::{self, ConnectError, KcpLocations};
use crate::agent::health::Health;
use crate::api::{PublishedResource, WITHDRAW_AT, WITHDRAW_MESSAGE};

/// Why a kind cannot be withdrawn, or its users cannot be found.
#[derive(Debug, Error)]
pub enum WithdrawError {
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
    /// An endpoint of the export has no valid address.
    #[error("the consumers cannot be reached at {url}: {problem}")]
    Endpoint {
        /// Its address.
        url: String,
        /// What is wrong with it.
        problem: String,
    },
    /// Nobody publishes such a kind.
    #[error(
        "no PublishedResource has the name or the kind {0:?}; see what there is with `kubectl get publishedresources`"
    )]
    Unknown(String),
    /// Several PublishedResources publish such a kind.
    #[error("several PublishedResources publish {kind}: {}; name one of them", .names.join(", "))]
    Several {
        /// The kind.
        kind: String,
        /// Their names.
        names: Vec<String>,
    },
    /// The PublishedResource cannot be read.
    #[error("PublishedResource {name} cannot be read: {problem}")]
    Unreadable {
        /// Its name.
        name: String,
        /// What is wrong.
        problem: String,
    },
    /// The kind is not published yet.
    #[error("PublishedResource {0} is not published, so there is nothing to withdraw; delete it instead")]
    NotPublished(String),
    /// It is too late to take it back.
    #[error(
        "PublishedResource {0} is withdrawn already; to offer the kind again, remove its annotation {WITHDRAW_AT}: \
         kubectl annotate publishedresource {0} {WITHDRAW_AT}-"
    )]
    TooLate(String),
}

fn failed(action: impl Into<String>) -> impl FnOnce(Error) -> WithdrawError {
    let action = action.into();
    |source| WithdrawError::Request { action, source: Box::new(source) }
}

/// A kind that is offered, and who uses it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Offer {
    /// Name of the PublishedResource.
    pub published_resource: String,
    /// The kind in kcp, as `<plural>.<group>`.
    pub resource: String,
    /// When it is withdrawn, if somebody said so.
    pub withdraw_at: Option<String>,
    /// What consumers are told about that.
    pub message: Option<String>,
    /// Whether that time has come.
    pub withdrawn: bool,
    /// The workspaces that use it.
    pub workspaces: Vec<Usage>,
}

/// How one workspace uses a kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// Its logical cluster.
    pub cluster: String,
    /// Its path, if that is known.
    pub workspace: Option<String>,
    /// Names of the APIBindings that bind the kind.
    pub bindings: Vec<String>,
    /// Its objects, as `namespace/name`.
    pub objects: Vec<String>,
}

impl Offer {
    /// The same, with what a PublishedResource says about its withdrawal.
    #[must_use]
    pub fn as_of(self, pr: &PublishedResource) -> Self {
        let said = |annotation: &str| pr.metadata.annotations.get(annotation).cloned();
        Self {
            published_resource: pr.metadata.name.clone(),
            withdraw_at: said(WITHDRAW_AT),
            message: said(WITHDRAW_MESSAGE),
            withdrawn: pr.is_withdrawn(),
            ..self
        }
    }

    /// How many objects there are in all workspaces.
    pub fn objects(&self) -> usize {
        self.workspaces.iter().map(|usage| usage.objects.len()).sum()
    }
}

/// Both servers, and where the export is.
pub struct Withdrawer {
    local: Client,
    kcp: Server,
    places: KcpLocations,
    selector: String,
}

impl Withdrawer {
    /// Connects as an agent with this configuration would.
    pub async fn connect(config: &AgentConfig) -> Result<Self, WithdrawError> {
        let part = Arc::new(Health::default()).part("connection to kcp");
        let places = connect::connect(&config.kcp, &config.slice, true, &part, &CancellationToken::new()).await?;
        // Nobody tells it to stop, so there is an answer.
        let places = places.ok_or_else(|| WithdrawError::Unknown(config.slice.to_string()))?;
        let (local, kcp, selector) = (config.local.client(), config.kcp.clone(), config.selector.clone());
        Ok(Self { local, kcp, places, selector })
    }

    /// The PublishedResource of this name, or the one that publishes this kind.
    pub async fn find(&self, name: &str) -> Result<PublishedResource, WithdrawError> {
        let label_selector = (!self.selector.is_empty()).then(|| self.selector.clone());
        let options = ListOptions { label_selector, field_selector: None };
        let all = self.local.list(&published_resources(), None, &options).await;
        let all = all.map_err(failed("list PublishedResources"))?;
        let mut named: Vec<Value> = all.iter().filter(|pr| pr["metadata"]["name"] == name).cloned().collect();
        if named.is_empty() {
            named = all.into_iter().filter(|pr| is_of_kind(pr, name)).collect();
        }
        let shown = |pr: &Value| pr["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        match <[Value; 1]>::try_from(named) {
            Ok([one]) => {
                let name = shown(&one);
                serde_json::from_value(one)
                    .map_err(|error| WithdrawError::Unreadable { name, problem: error.to_string() })
            }
            Err(none) if none.is_empty() => Err(WithdrawError::Unknown(name.to_owned())),
            Err(several) => {
                Err(WithdrawError::Several { kind: name.to_owned(), names: several.iter().map(shown).collect() })
            }
        }
    }

    /// Who uses the kind of a PublishedResource.
    pub async fn offer(&self, pr: &PublishedResource) -> Result<Offer, WithdrawError> {
        let schema_name = &pr.status.resource_schema_name;
        let unpublished = || WithdrawError::NotPublished(pr.metadata.name.clone());
        let (_, plural, group) = split_schema_name(schema_name).ok_or_else(unpublished)?;
        let schema = self.places.export.client.get(&API_RESOURCE_SCHEMA.into(), None, schema_name).await;
        let schema = schema.map_err(failed(format!("read APIResourceSchema {schema_name}")))?;
        let resource = resource(&schema.ok_or_else(unpublished)?["spec"]);
        let mut users: BTreeMap<String, Usage> = BTreeMap::new();
        for client in self.endpoints().await? {
            let bindings = client.list_newest::<ApiBinding>(&ListOptions::default()).await;
            for binding in bindings.map_err(failed("list the APIBindings of all consumers"))? {
                let bound = &binding.status.bound_resources;
                if bound.iter().any(|bound| bound.group == group && bound.resource == plural) {
                    let usage = usage(&mut users, binding.metadata.annotation(carrick_kcp::CLUSTER_ANNOTATION));
                    usage.workspace = binding.metadata.annotation(PATH_ANNOTATION).map(str::to_owned);
                    usage.bindings.push(binding.metadata.name.clone());
                }
            }
            let objects = match client.list(&resource, None, &ListOptions::default()).await {
                // The export does not list it any more.
                Err(error) if is_unserved(&error) => Vec::new(),
                objects => objects.map_err(failed(format!("list {plural}.{group} of all consumers")))?,
            };
            for object in objects {
                let text = |key: &str| object["metadata"][key].as_str();
                let name = text("name").unwrap_or_default();
                let name = text("namespace").map_or_else(|| name.to_owned(), |namespace| format!("{namespace}/{name}"));
                let cluster = object["metadata"]["annotations"][carrick_kcp::CLUSTER_ANNOTATION].as_str();
                usage(&mut users, cluster).objects.push(name);
            }
        }
        let resource = format!("{plural}.{group}");
        Ok(Offer { resource, workspaces: users.into_values().collect(), ..Offer::default() }.as_of(pr))
    }

    /// Sets the date. Agents tell consumers, and withdraw the kind when it comes.
    pub async fn announce(
        &self,
        pr: &PublishedResource,
        at: Timestamp,
        message: Option<&str>,
    ) -> Result<PublishedResource, WithdrawError> {
        let at = at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        self.annotate(pr, &json!({ WITHDRAW_AT: at, WITHDRAW_MESSAGE: message })).await
    }

    /// Takes the date back.
    pub async fn undo(&self, pr: &PublishedResource) -> Result<PublishedResource, WithdrawError> {
        if pr.is_withdrawn() {
            return Err(WithdrawError::TooLate(pr.metadata.name.clone()));
        }
        self.annotate(pr, &json!({ WITHDRAW_AT: null, WITHDRAW_MESSAGE: null })).await
    }

    /// Annotates the PublishedResource as it was seen: if its date has come or changed meanwhile, that is for the caller to know. What agents note in
    /// its status is of no interest.
    async fn annotate(&self, pr: &PublishedResource, annotations: &Value) -> Result<PublishedResource, WithdrawError> {
        let name = &pr.metadata.name;
        let unreadable = |problem: String| WithdrawError::Unreadable { name: name.clone(), problem };
        let read = |value: Value| serde_json::from_value(value).map_err(|error| unreadable(error.to_string()));
        let date = |pr: &PublishedResource| (pr.is_withdrawn(), pr.metadata.annotations.get(WITHDRAW_AT).cloned());
        let mut version = pr.metadata.resource_version.clone();
        loop {
            let patch = json!({ "metadata": { "resourceVersion": version, "annotations": annotations } });
            let refused = match self.local.merge_patch(&published_resources(), None, name, &patch).await {
                Ok(patched) => return read(patched),
                Err(error) => error,
            };
            let mut now: Option<PublishedResource> = None;
            if refused.is_conflict() {
                let found = self.local.get(&published_resources(), None, name).await;
                let found = found.map_err(failed(format!("get PublishedResource {name}")))?;
                now = found.map(read).transpose()?;
            }
            match now.filter(|now| date(now) == date(pr) && now.metadata.resource_version != version) {
                Some(now) => version = now.metadata.resource_version,
                None => return Err(failed(format!("annotate PublishedResource {name}"))(refused)),
            }
        }
    }

    /// Clients for all consumers of each endpoint.
    async fn endpoints(&self) -> Result<Vec<Client>, WithdrawError> {
        let slice = self.places.slice.client.get_kcp::<ApiExportEndpointSlice>(&self.places.slice_name).await;
        let slice = slice.map_err(failed(format!("read APIExportEndpointSlice {}", self.places.slice_name)))?;
        let endpoints = slice.unwrap_or_default().status.endpoints.into_iter();
        endpoints
            .map(|endpoint| {
                let url = carrick_kcp::url::in_endpoint(&endpoint.url, "*");
                let client = self.kcp.at_published_url(&url);
                client.map_err(|error| WithdrawError::Endpoint { url, problem: error.to_string() })
            })
            .collect()
    }
}

fn usage<'a>(users: &'a mut BTreeMap<String, Usage>, cluster: Option<&str>) -> &'a mut Usage {
    let cluster = cluster.unwrap_or_default().to_owned();
    users.entry(cluster.clone()).or_insert_with(|| Usage { cluster, ..Usage::default() })
}

/// Whether a PublishedResource publishes a kind, by its name on either side.
fn is_of_kind(pr: &Value, kind: &str) -> bool {
    let spec = &pr["spec"];
    let kinds = [&spec["resource"]["kind"], &spec["projection"]["kind"]];
    kinds.iter().filter_map(|found| found.as_str()).any(|found| found.eq_ignore_ascii_case(kind))
}

/// The kind that a schema defines, in the version that kcp stores.
fn resource(spec: &Value) -> Resource {
    let versions = spec["versions"].as_array().into_iter().flatten();
    let version = versions.filter(|version| version["served"] == true).max_by_key(|version| version["storage"] == true);
    let text = |value: &'_ Value| value.as_str().unwrap_or_default().to_owned();
    let version = version.map(|version| text(&version["name"])).unwrap_or_default();
    let make = if spec["scope"] == "Namespaced" { Resource::namespaced } else { Resource::cluster_wide };
    make(&text(&spec["group"]), &version, &text(&spec["names"]["kind"]), &text(&spec["names"]["plural"]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_found_by_their_name_on_either_side() {
        let pr = json!({"spec": {"resource": {"kind": "Bucket"}, "projection": {"kind": "Store"}}});
        assert!(is_of_kind(&pr, "bucket") && is_of_kind(&pr, "Store") && !is_of_kind(&pr, "Buckets"));
        assert!(!is_of_kind(&json!({"spec": {}}), ""));
    }

    #[test]
    fn objects_are_listed_in_the_version_that_is_stored() {
        let versions = json!([{"name": "v1", "served": true}, {"name": "v2", "served": true, "storage": true},
            {"name": "v3", "served": false}]);
        let spec =
            json!({"group": "a.io", "scope": "Cluster", "names": {"kind": "B", "plural": "bs"}, "versions": versions});
        assert_eq!(resource(&spec), Resource::cluster_wide("a.io", "v2", "B", "bs"));
    }
}
