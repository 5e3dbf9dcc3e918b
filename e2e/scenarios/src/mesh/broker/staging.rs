//! Staging workspaces: one for each consumer and provider, as long as an order refers to it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use anyhow::Context;
use carrick_client::{Client, DeleteOptions, Server};
use carrick_e2e_stage::kinds;
use carrick_kcp::kinds::{API_BINDING_V2, API_EXPORT_V2, WORKSPACE};
use serde_json::{Value, json};

use super::names::hash;
use super::{Place, Provider, lock};

/// All of them.
pub(crate) struct Staging {
    kcp: Server,
    /// The workspace above them.
    root: String,
    /// Which orders refer to which.
    references: Mutex<BTreeMap<String, BTreeSet<String>>>,
}

impl Staging {
    pub(crate) fn new(kcp: Server, root: String) -> Self {
        Self { kcp, root, references: Mutex::default() }
    }

    /// The name of the one for a consumer at a provider.
    pub(crate) fn name(consumer: &str, provider: &Provider) -> String {
        format!("staging-{}", hash(&[consumer, &provider.cluster, &provider.export]))
    }

    /// As administrator of one.
    pub(crate) fn client(&self, place: &Place) -> Client {
        self.kcp.at_path(&format!("/clusters/{}:{}", self.root, place.staging))
    }

    /// Goes one step on; true once orders can be copied into it. Claims are mirrored once, when the binding is made.
    pub(crate) async fn ensure(&self, place: &Place, provider: &Provider, order: &str) -> anyhow::Result<bool> {
        lock(&self.references).entry(place.staging.clone()).or_default().insert(order.to_owned());
        let (above, workspaces) = (self.kcp.at_path(&format!("/clusters/{}", self.root)), kinds::kcp(&WORKSPACE));
        let Some(workspace) = above.get(&workspaces, None, &place.staging).await? else {
            let object = json!({
                "apiVersion": WORKSPACE.api_version(), "kind": WORKSPACE.kind,
                "metadata": { "name": place.staging }, "spec": {},
            });
            match above.create(&workspaces, None, &object).await {
                Err(error) if !error.is_already_exists() => return Err(error.into()),
                _ => return Ok(false),
            }
        };
        if workspace["status"]["phase"] != "Ready" || workspace["metadata"]["deletionTimestamp"].is_string() {
            return Ok(false);
        }
        let (client, bindings) = (self.client(place), kinds::kcp(&API_BINDING_V2));
        let Some(binding) = client.get(&bindings, None, &provider.export).await? else {
            let export = provider.client.get(&kinds::kcp(&API_EXPORT_V2), None, &provider.export).await?;
            let export = export.context("the provider has no export")?;
            let claims = export["spec"]["permissionClaims"].as_array().cloned().unwrap_or_default();
            let claims: Vec<Value> = claims.into_iter().map(accepted).collect();
            let object = json!({
                "apiVersion": API_BINDING_V2.api_version(), "kind": API_BINDING_V2.kind,
                "metadata": { "name": provider.export },
                "spec": {
                    "reference": { "export": { "path": provider.cluster, "name": provider.export } },
                    "permissionClaims": claims,
                },
            });
            match client.create(&bindings, None, &object).await {
                Err(error) if !error.is_already_exists() => return Err(error.into()),
                _ => return Ok(false),
            }
        };
        Ok(binding["status"]["phase"] == "Bound")
    }

    /// An order refers to it no longer; the last one takes the workspace along.
    pub(crate) async fn release(&self, place: &Place, order: &str) -> anyhow::Result<()> {
        let is_last = {
            let mut all = lock(&self.references);
            let left = all.get_mut(&place.staging).map(|orders| {
                orders.remove(order);
                orders.len()
            });
            if left == Some(0) {
                all.remove(&place.staging);
            }
            left == Some(0)
        };
        if is_last {
            let above = self.kcp.at_path(&format!("/clusters/{}", self.root));
            let deleted = above.delete(&kinds::kcp(&WORKSPACE), None, &place.staging, &DeleteOptions::default()).await;
            match deleted {
                Err(error) if !error.is_not_found() => return Err(error.into()),
                _ => {}
            }
        }
        Ok(())
    }

    /// Those that are left.
    pub(crate) fn left(&self) -> Vec<String> {
        lock(&self.references).keys().cloned().collect()
    }
}

/// A claim of an export, accepted for everything.
fn accepted(mut claim: Value) -> Value {
    claim["selector"] = json!({ "matchAll": true });
    claim["state"] = json!("Accepted");
    claim
}
