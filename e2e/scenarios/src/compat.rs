//! The conditions of the reference agent's own end-to-end tests.
//!
//! The binary runs with their flags, as a user who has their rights in kcp and all rights on the service cluster. Both teams are bound before
//! anything is published. Objects are sent as typed Go clients send them.

use std::sync::Arc;

use anyhow::{Context, ensure};
use carrick_client::{Client, Resource};
use carrick_e2e_stage::binary::{Binary, Launch, Running};
use carrick_e2e_stage::rights::{grant, kcp_rules};
use carrick_e2e_stage::stage::{NAMESPACE, Stage, Workspace, shown};
use carrick_e2e_stage::world::{User, World};
use carrick_e2e_stage::{fixtures, kinds};
use carrick_kcp::kinds::API_BINDING;
use carrick_syncagent::api;
use serde_json::{Value, json};

/// A stage under these conditions.
pub(super) struct Suite {
    pub(super) stage: Stage,
}

impl Suite {
    /// Everything but the PublishedResources and the agent.
    pub(super) async fn set(world: Arc<dyn World>, crds: &[fn(&str) -> Value]) -> anyhow::Result<Self> {
        let suite = Self { stage: Stage::bare(world).await? };
        let stage = &suite.stage;
        for crd in crds {
            stage.install_crd(&crd(&stage.group)).await?;
        }
        stage.create_export().await?;
        grant(stage, &stage.provider.client, &kcp_rules(stage.export_name())).await?;
        futures::try_join!(stage.bind(&stage.team_a), stage.bind(&stage.team_b))?;
        Ok(suite)
    }

    /// Starts the agent in the workspace of the export.
    pub(super) async fn start(&self) -> anyhow::Result<Running> {
        self.start_at(&self.stage.provider.cluster, self.stage.export_name()).await
    }

    /// Starts the agent in any workspace.
    pub(super) async fn start_at(&self, workspace: &str, slice: &str) -> anyhow::Result<Running> {
        let launch = Launch { user: User::Agent, workspace, slice };
        Binary::as_in_the_reference_tests(&self.stage, &launch).await?.start()
    }

    /// Starts the agent so that it takes objects in the place of copies as they are, as the reference agent always does.
    pub(super) async fn start_linking(&self) -> anyhow::Result<Running> {
        let (workspace, slice) = (self.stage.provider.cluster.as_str(), self.stage.export_name());
        let launch = Launch { user: User::Agent, workspace, slice };
        Binary::as_in_the_reference_tests(&self.stage, &launch).await?.and("--adoption=Link").start()
    }

    /// The API group in kcp.
    pub(super) fn kcp_group(&self) -> String {
        format!("kcp.{}", self.stage.group)
    }

    /// A kind in kcp.
    pub(super) fn remote(&self, kind: &str) -> Resource {
        fixtures::kind(&self.kcp_group(), kind)
    }

    /// A kind on the service cluster.
    pub(super) fn local(&self, kind: &str) -> Resource {
        fixtures::kind(&self.stage.group, kind)
    }

    /// The namespace of copies of what is in [`NAMESPACE`].
    pub(super) fn synced(&self) -> String {
        format!("synced-{}-{NAMESPACE}", self.stage.id)
    }

    /// The group in kcp, and names by which copies are easily found.
    pub(super) fn usual(&self) -> Value {
        let namespace = format!("synced-{}-{{{{ .Object.metadata.namespace }}}}", self.stage.id);
        json!({
            "naming": { "name": "{{ .Object.metadata.name }}", "namespace": namespace },
            "projection": { "group": self.kcp_group(), "shortNames": null, "categories": null },
        })
    }

    /// [`Self::usual`] with one related resource.
    pub(super) fn usual_with(&self, related: &Value) -> Value {
        let mut spec = self.usual();
        spec["related"] = json!([related]);
        spec
    }

    /// Publishes a kind in the version v1, unless the spec says otherwise.
    pub(super) async fn publish(&self, kind: &str, mut spec: Value) -> anyhow::Result<Value> {
        if spec["resource"].is_null() {
            spec["resource"] = json!({ "apiGroup": self.stage.group, "kind": kind, "version": "v1" });
        }
        let object = json!({
            "apiVersion": format!("{}/{}", api::GROUP, api::VERSION),
            "kind": "PublishedResource",
            "metadata": {
                "name": self.stage.published_name(kind), "labels": { "stage": self.stage.id }, "creationTimestamp": null,
            },
            "spec": spec,
            "status": {},
        });
        Ok(self.stage.service.create(&kinds::published_resources(), None, &object).await?)
    }

    /// Changes what is published.
    pub(super) async fn republish(&self, kind: &str, spec: Value) -> anyhow::Result<()> {
        let name = self.stage.published_name(kind);
        let patch = json!({ "spec": spec });
        self.stage.service.merge_patch(&kinds::published_resources(), None, &name, &patch).await?;
        Ok(())
    }

    /// Waits until a kind is bound in a workspace.
    pub(super) async fn bound(&self, team: &Workspace, kind: &Resource) -> anyhow::Result<()> {
        let bindings = kinds::kcp(&API_BINDING);
        let at = (&team.client, &bindings, None, self.stage.export_name());
        let what = format!("{kind} is bound in {}", team.path);
        let listed = |one: &Value| one["group"] == *kind.group && one["resource"] == *kind.plural;
        let good =
            |binding: &Value| binding["status"]["boundResources"].as_array().is_some_and(|all| all.iter().any(listed));
        self.stage.object(&what, at, good).await.map(drop)
    }

    /// Waits until an object exists on the service cluster, in the namespace of copies.
    pub(super) async fn arrives(&self, kind: &Resource, name: &str) -> anyhow::Result<Value> {
        let namespace = self.synced();
        let at = (&self.stage.service, kind, Some(namespace.as_str()), name);
        self.stage.object(&format!("{kind} {name} arrives"), at, |_| true).await
    }
}

/// A CronTab as an order.
pub(super) fn crontab() -> Value {
    json!({ "cronSpec": "* * *", "image": "ubuntu:latest" })
}

/// Creates a namespace unless it is there.
pub(super) async fn ensure_namespace(client: &Client, name: &str) -> anyhow::Result<()> {
    let object = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
    match client.create(&kinds::namespaces(), None, &object).await {
        Err(error) if !error.is_already_exists() => Err(error.into()),
        _ => Ok(()),
    }
}

/// Checks that a copy of a related object has the labels of its original and nothing that tells where it comes from.
pub(super) fn unmarked(copy: &Value, labels: &Value) -> anyhow::Result<()> {
    let rest = |map: &Value, skip: &dyn Fn(&str) -> bool| -> Value {
        let map = map.as_object().into_iter().flatten().filter(|(key, _)| !skip(key));
        map.map(|(key, value)| (key.clone(), value.clone())).collect::<serde_json::Map<_, _>>().into()
    };
    let metadata = &copy["metadata"];
    let found = rest(&metadata["labels"], &|key| key.starts_with("claimed.internal.apis.kcp.io/"));
    ensure!(found == *labels, "the labels are wrong: {}", shown(copy));
    let found = rest(&metadata["annotations"], &|key| key == "kcp.io/cluster");
    ensure!(found == json!({}), "there are annotations: {}", shown(copy));
    Ok(())
}

/// The schemas of the export.
pub(super) async fn schemas(stage: &Stage) -> anyhow::Result<Vec<String>> {
    let export = stage.export().await?;
    let names = export["spec"]["latestResourceSchemas"].as_array().cloned().unwrap_or_default();
    names.iter().map(|name| name.as_str().map(str::to_owned).context("a schema's name is no text")).collect()
}
