//! A stage: one scenario's own workspaces, API group and names in a world.
//!
//! ```text
//!  kcp   root:org-<id>:provider   APIExport + slice, the agent's workspace
//!        root:org-<id>:team-a     consumers, bound to the export, all its claims accepted
//!        root:org-<id>:team-b
//!  service cluster                CRDs of group <id>.example.com, PublishedResources labelled stage=<id>,
//!                                 namespace agent-<id> for the agent
//! ```

mod set;
mod wait;

use std::sync::Arc;

use carrick_client::{Client, ListOptions, Resource};
use carrick_syncagent::api;
use serde_json::{Value, json};

use crate::agent::{Agent, Setup};
use crate::world::World;
use crate::{fixtures, kinds};

pub use set::condition;
pub use wait::{At, Snapshot, changes, eventually, shown};

/// Namespace of consumers' objects.
pub const NAMESPACE: &str = "default";

/// One scenario's own part of a world.
pub struct Stage {
    /// The world it is in.
    pub world: Arc<dyn World>,
    /// What tells it apart from other stages.
    pub id: String,
    /// API group of its kinds.
    pub group: String,
    /// Workspace of the APIExport.
    pub provider: Workspace,
    /// A consumer.
    pub team_a: Workspace,
    /// Another consumer.
    pub team_b: Workspace,
    /// The service cluster.
    pub service: Client,
}

/// A workspace of kcp.
#[derive(Debug, Clone)]
pub struct Workspace {
    /// Path, such as `root:a:b`.
    pub path: String,
    /// Name of its logical cluster.
    pub cluster: String,
    /// A client of its administrator.
    pub client: Client,
}

impl Stage {
    /// The kind most scenarios use.
    pub fn buckets(&self) -> Resource {
        fixtures::kind(&self.group, "Bucket")
    }

    /// Name of the APIExport and its slice.
    pub fn export_name(&self) -> &str {
        &self.group
    }

    /// Name of the agent.
    pub fn agent_name(&self) -> String {
        format!("agent-{}", self.id)
    }

    /// Namespace of the agent on the service cluster.
    pub fn agent_namespace(&self) -> String {
        format!("agent-{}", self.id)
    }

    /// Label selector for the PublishedResources of this stage.
    pub fn selector(&self) -> String {
        format!("stage={}", self.id)
    }

    /// Starts an agent for this stage.
    pub fn start_agent(&self) -> anyhow::Result<Agent> {
        Agent::start(self, Setup::default())
    }

    /// Publishes a kind. `spec` is that of the PublishedResource without `resource`.
    pub async fn publish(&self, kind: &str, spec: Value) -> anyhow::Result<Value> {
        let mut object = json!({
            "apiVersion": format!("{}/{}", api::GROUP, api::VERSION),
            "kind": "PublishedResource",
            "metadata": { "name": self.published_name(kind), "labels": { "stage": self.id } },
            "spec": spec,
        });
        object["spec"]["resource"] = json!({ "apiGroup": self.group, "kind": kind, "versions": ["v1"] });
        Ok(self.service.create(&kinds::published_resources(), None, &object).await?)
    }

    /// Name of the PublishedResource of a kind.
    pub fn published_name(&self, kind: &str) -> String {
        format!("{}-{}", kind.to_lowercase(), self.id)
    }

    /// Creates a Bucket in a consumer's workspace.
    pub async fn order(&self, team: &Workspace, name: &str, spec: Value) -> anyhow::Result<Value> {
        self.order_kind(&self.buckets(), team, name, spec).await
    }

    /// Creates an object of any of the stage's kinds in a consumer's workspace.
    pub async fn order_kind(
        &self,
        kind: &Resource,
        team: &Workspace,
        name: &str,
        spec: Value,
    ) -> anyhow::Result<Value> {
        let object = json!({
            "apiVersion": kind.api_version(),
            "kind": &*kind.kind,
            "metadata": { "name": name, "namespace": NAMESPACE },
            "spec": spec,
        });
        // The API of a binding appears a moment after the binding says so.
        self.eventually(&format!("{}/{name} can be created in {}", kind.plural, team.path), async || {
            match team.client.create(kind, Some(NAMESPACE), &object).await {
                Err(error) if error.is_already_exists() => {
                    Ok(team.client.get(kind, Some(NAMESPACE), name).await?.unwrap_or_default())
                }
                answer => Ok(answer?),
            }
        })
        .await
    }

    /// Changes the spec of a Bucket in a consumer's workspace.
    pub async fn reorder(&self, team: &Workspace, name: &str, spec: Value) -> anyhow::Result<Value> {
        Ok(team.client.merge_patch(&self.buckets(), Some(NAMESPACE), name, &json!({ "spec": spec })).await?)
    }

    /// Asks for the end of a Bucket in a consumer's workspace.
    pub async fn cancel(&self, team: &Workspace, name: &str) -> anyhow::Result<()> {
        Ok(team
            .client
            .delete(&self.buckets(), Some(NAMESPACE), name, &carrick_client::DeleteOptions::default())
            .await?)
    }

    /// A Bucket in a consumer's workspace.
    pub async fn source(&self, team: &Workspace, name: &str) -> anyhow::Result<Option<Value>> {
        Ok(team.client.get(&self.buckets(), Some(NAMESPACE), name).await?)
    }

    /// The copy of a Bucket on the service cluster; an error if there are several.
    pub async fn copy(&self, team: &Workspace, name: &str) -> anyhow::Result<Option<Value>> {
        self.copy_of_kind(&self.buckets(), team, name).await
    }

    /// The copy of an object of any of the stage's kinds.
    pub async fn copy_of_kind(&self, kind: &Resource, team: &Workspace, name: &str) -> anyhow::Result<Option<Value>> {
        let labels = ListOptions::labels(format!("{}={}", api::REMOTE_CLUSTER, team.cluster));
        let mut copies = self.service.list(kind, None, &labels).await?;
        copies.retain(|copy| copy["metadata"]["annotations"][api::REMOTE_NAME] == name);
        anyhow::ensure!(copies.len() < 2, "{} copies of {name} of {}: {copies:?}", copies.len(), team.path);
        Ok(copies.pop())
    }

    /// What the operator does: changes the spec of a copy on the service cluster.
    pub async fn operator_edits(&self, copy: &Value, spec: Value) -> anyhow::Result<Value> {
        let (namespace, name) = place(copy);
        Ok(self.service.merge_patch(&self.buckets(), Some(namespace), name, &json!({ "spec": spec })).await?)
    }

    /// What the operator does: writes the status of a copy on the service cluster.
    pub async fn operator_reports(&self, copy: &Value, status: Value) -> anyhow::Result<Value> {
        let (namespace, name) = place(copy);
        let patch = json!({ "status": status });
        Ok(self.service.merge_patch_status(&self.buckets(), Some(namespace), name, &patch).await?)
    }
}

/// Namespace and name of an object.
pub fn place(object: &Value) -> (&str, &str) {
    let text = |key: &str| object["metadata"][key].as_str().unwrap_or_default();
    (text("namespace"), text("name"))
}
