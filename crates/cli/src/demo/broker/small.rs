//! A small broker: what Platform Mesh's resource-broker does, as far as one order needs it. It polls.
//!
//! ```text
//!  team-a: Certificate ──▶ AcceptAPIs of the providers ──▶ staging workspace: Certificate ──▶ the provider's agent
//!     status, Secret   ◀──────────────────────────────────  status.status, status.relatedResources, Secret
//! ```
//!
//! When the provider does not take the order any more, it is copied to the other one, and moves once it is available there.

use std::time::Duration;

use anyhow::Context;
use carrick_client::{Client, DeleteOptions, Server};
use carrick_kcp::kinds::WORKSPACE;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::manifests::{ACCEPT, EXPORT, ORDER, STAGING_PATH, accept_apis, binding, bindings, certificates, exports};
use crate::demo::manifests::secrets;
use crate::workspaces;

const INTERVAL: Duration = Duration::from_millis(50);
const FINALIZER: &str = "broker.platform-mesh.io/staging-copy";

/// A provider, as the broker knows it.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// Its name.
    pub name: &'static str,
    /// Path of its workspace.
    pub path: &'static str,
}

/// Who serves the order, by number of the provider.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Assignment {
    /// Who serves it.
    pub serving: Option<usize>,
    /// To whom it is being moved.
    pub moving: Option<usize>,
    /// Who has still to let it go.
    pub leaving: Option<usize>,
}

/// The broker.
pub struct Broker {
    /// kcp; brokers are administrators there.
    pub kcp: Server,
    /// The consumer's workspace. The real one sees consumers through the platform's export.
    pub team: Client,
    /// All providers.
    pub providers: [Candidate; 2],
}

impl Broker {
    /// Looks after the order until dropped.
    pub async fn run(self, progress: watch::Sender<Assignment>) {
        let mut now = Assignment::default();
        loop {
            if let Err(error) = self.turn(&mut now).await {
                tracing::debug!(%error, "the broker tries again");
            }
            progress.send_replace(now.clone());
            tokio::time::sleep(INTERVAL).await;
        }
    }

    async fn turn(&self, now: &mut Assignment) -> anyhow::Result<()> {
        let (namespace, name) = ORDER;
        let Some(order) = self.team.get(&certificates(), Some(namespace), name).await? else { return Ok(()) };
        if order["metadata"]["deletionTimestamp"].is_string() {
            return self.end(now).await;
        }
        if order["metadata"]["finalizers"] != json!([FINALIZER]) {
            return self.hold(&json!([FINALIZER])).await;
        }
        let Some(serving) = now.serving else {
            now.serving = self.choose(&order).await?;
            return Ok(());
        };
        let settled = now.moving.is_none() && now.leaving.is_none();
        if settled && !self.takes(serving, &order).await? {
            now.moving = self.choose(&order).await?;
        }
        let Some(copy) = self.copy_down(now.moving.unwrap_or(serving), &order).await? else { return Ok(()) };
        if now.moving.is_some() {
            // Until then the consumer keeps what she has.
            if copy["status"]["status"] == "Available" {
                *now = Assignment { serving: now.moving, moving: None, leaving: Some(serving) };
            }
            return Ok(());
        }
        self.bring_back(serving, &copy, order).await?;
        if let Some(old) = now.leaving
            && self.remove(old).await?
        {
            now.leaving = None;
        }
        Ok(())
    }

    async fn choose(&self, order: &Value) -> anyhow::Result<Option<usize>> {
        for provider in 0..self.providers.len() {
            if self.takes(provider, order).await? {
                return Ok(Some(provider));
            }
        }
        Ok(None)
    }

    /// Whether the AcceptAPI of a provider takes the order. Its agent keeps that.
    async fn takes(&self, provider: usize, order: &Value) -> anyhow::Result<bool> {
        let workspace = self.kcp.at_path(&format!("/clusters/{}", self.providers[provider].path));
        let Some(accept) = workspace.get(&accept_apis(), None, ACCEPT).await? else { return Ok(false) };
        let mut filters = accept["spec"]["filters"].as_array().into_iter().flatten();
        Ok(filters.all(|filter| {
            let value = order["spec"][filter["key"].as_str().unwrap_or_default()].as_str();
            value.is_none_or(|value| value.ends_with(filter["suffix"].as_str().unwrap_or_default()))
        }))
    }

    fn staging_name(&self, provider: usize) -> String {
        format!("staging-{}", self.providers[provider].name)
    }

    fn staging(&self, provider: usize) -> Client {
        self.kcp.at_path(&format!("/clusters/{STAGING_PATH}:{}", self.staging_name(provider)))
    }

    /// The copy in the staging workspace, as the order wants it; none while that is not bound to the provider's export.
    async fn copy_down(&self, provider: usize, order: &Value) -> anyhow::Result<Option<Value>> {
        let (namespace, name) = ORDER;
        let (staging, of) = (self.staging(provider), &self.providers[provider]);
        workspaces::ensure(&self.kcp, &format!("{STAGING_PATH}:{}", self.staging_name(provider))).await?;
        let Some(bound) = staging.get(&bindings(), None, EXPORT).await? else {
            let exporting = self.kcp.at_path(&format!("/clusters/{}", of.path));
            let export = exporting.get(&exports(), None, EXPORT).await?.context("the provider has no export")?;
            let claims = export["spec"]["permissionClaims"].as_array().cloned().unwrap_or_default();
            staging.create(&bindings(), None, &binding(of.path, EXPORT, &claims)).await?;
            return Ok(None);
        };
        if bound["status"]["phase"] != "Bound" {
            return Ok(None);
        }
        let Some(copy) = staging.get(&certificates(), Some(namespace), name).await? else {
            let cluster = order["metadata"]["annotations"]["kcp.io/cluster"].as_str().unwrap_or_default();
            let annotations = json!({ "broker.platform-mesh.io/consumer-cluster": format!("{EXPORT}#{cluster}") });
            let copy = json!({
                "apiVersion": order["apiVersion"], "kind": order["kind"], "spec": order["spec"],
                "metadata": { "namespace": namespace, "name": name, "annotations": annotations },
            });
            return Ok(Some(staging.create(&certificates(), Some(namespace), &copy).await?));
        };
        if copy["spec"] == order["spec"] {
            return Ok(Some(copy));
        }
        let patch = json!({ "spec": order["spec"] });
        Ok(Some(staging.merge_patch(&certificates(), Some(namespace), name, &patch).await?))
    }

    /// The status of the copy becomes that of the order, and what it names is copied to the consumer.
    async fn bring_back(&self, provider: usize, copy: &Value, mut order: Value) -> anyhow::Result<()> {
        let (namespace, _) = ORDER;
        let Some(status) = copy.get("status") else { return Ok(()) };
        for name in related(copy) {
            let found = self.staging(provider).get(&secrets(), Some(namespace), &name).await?;
            let found = found.with_context(|| format!("Secret {name} was named and is not there"))?;
            match self.team.get(&secrets(), Some(namespace), &name).await? {
                None => {
                    let secret = json!({
                        "apiVersion": "v1", "kind": "Secret", "data": found["data"], "type": found["type"],
                        "metadata": { "namespace": namespace, "name": name },
                    });
                    self.team.create(&secrets(), Some(namespace), &secret).await?;
                }
                Some(known) if known["data"] != found["data"] => {
                    let patch = json!({ "data": found["data"] });
                    self.team.merge_patch(&secrets(), Some(namespace), &name, &patch).await?;
                }
                Some(_) => {}
            }
        }
        if order.get("status") != Some(status) {
            order["status"] = status.clone();
            self.team.replace_status(&certificates(), Some(namespace), &order).await?;
        }
        Ok(())
    }

    /// Deletes the copy at a provider, and its staging workspace once the agent has let the copy go; true when both are on their way.
    async fn remove(&self, provider: usize) -> anyhow::Result<bool> {
        let (namespace, name) = ORDER;
        let staging = self.staging(provider);
        if let Some(copy) = staging.get(&certificates(), Some(namespace), name).await? {
            if copy["metadata"]["deletionTimestamp"].is_null() {
                staging.delete(&certificates(), Some(namespace), name, &DeleteOptions::default()).await?;
            }
            return Ok(false);
        }
        let above = self.kcp.at_path(&format!("/clusters/{STAGING_PATH}"));
        above.delete(&WORKSPACE.into(), None, &self.staging_name(provider), &DeleteOptions::default()).await?;
        Ok(true)
    }

    /// The consumer's related objects go, then the copies, then the order.
    async fn end(&self, now: &mut Assignment) -> anyhow::Result<()> {
        let (namespace, name) = ORDER;
        if let Some(order) = self.team.get(&certificates(), Some(namespace), name).await? {
            for secret in related(&order) {
                match self.team.delete(&secrets(), Some(namespace), &secret, &DeleteOptions::default()).await {
                    Err(error) if !error.is_not_found() => return Err(error.into()),
                    _ => {}
                }
            }
        }
        for place in [&mut now.serving, &mut now.moving, &mut now.leaving] {
            if let Some(provider) = *place {
                if !self.remove(provider).await? {
                    return Ok(());
                }
                *place = None;
            }
        }
        self.hold(&json!([])).await
    }

    async fn hold(&self, finalizers: &Value) -> anyhow::Result<()> {
        let (namespace, name) = ORDER;
        let patch = json!({ "metadata": { "finalizers": finalizers } });
        self.team.merge_patch(&certificates(), Some(namespace), name, &patch).await?;
        Ok(())
    }
}

/// Names of the Secrets that a status lists.
fn related(object: &Value) -> Vec<String> {
    let entries = object["status"]["relatedResources"].as_object().into_iter().flatten();
    entries.filter_map(|(_, entry)| Some(entry["name"].as_str()?.to_owned())).collect()
}
