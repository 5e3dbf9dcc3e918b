//! Two agents that need the same object.

use std::sync::Arc;

use anyhow::{Context, ensure};
use carrick_client::{DeleteOptions, Resource};
use carrick_kcp::kinds::{API_BINDING_V2, API_EXPORT};
use carrick_syncagent::api;
use serde_json::{Value, json};

use crate::fixtures::{self, beside_names};
use crate::kinds;
use crate::stage::{At, NAMESPACE, Stage, Workspace, shown};
use crate::world::World;

/// Agent A publishes Gadgets, agent B Buckets that bring Gadgets along.
pub struct Two {
    /// Where agent A publishes.
    pub a: Stage,
    /// Where agent B publishes; its first team is the consumer of both.
    pub b: Stage,
    /// The kind that both need.
    pub gadgets: Resource,
}

impl Two {
    /// Publishes and binds; no agent runs yet.
    pub async fn set(world: Arc<dyn World>) -> anyhow::Result<Self> {
        let a = Stage::bare(Arc::clone(&world)).await?;
        a.install_crd(&fixtures::crd(&a.group, "Gadget")).await?;
        a.create_export().await?;
        a.publish("Gadget", json!({ "naming": beside_names("gadgets-") })).await?;
        let b = Stage::bound(world, |group| fixtures::crd(group, "Bucket")).await?;
        a.bind(&b.team_a).await?;
        let exports = kinds::kcp(&API_EXPORT);
        let at = (&a.provider.client, &exports, None, a.export_name());
        let identified = |export: &Value| export["status"]["identityHash"].is_string();
        let export = a.object("the export of A has an identity", at, identified).await?;
        let related = json!({
            "identifier": "gadget", "origin": "kcp", "group": a.group, "version": "v1", "resource": "gadgets",
            "identityHash": export["status"]["identityHash"],
            "object": { "reference": { "path": "spec.owner" } },
            "watch": { "bySelector": {} },
        });
        b.publish("Bucket", json!({ "naming": beside_names(""), "related": [related] })).await?;
        let gadgets = fixtures::kind(&a.group, "Gadget");
        Ok(Self { a, b, gadgets })
    }

    /// The consumer.
    pub fn team(&self) -> &Workspace {
        &self.b.team_a
    }

    /// Accepts what the export of B claims, once it claims Gadgets.
    pub async fn accept(&self) -> anyhow::Result<()> {
        let exports = kinds::kcp(&API_EXPORT);
        let at = (&self.b.provider.client, &exports, None, self.b.export_name());
        let claims = |export: &Value| export["spec"]["permissionClaims"].as_array().cloned().unwrap_or_default();
        let claimed = |export: &Value| claims(export).iter().any(|claim| claim["resource"] == "gadgets");
        let export = self.b.object("Gadgets are claimed", at, claimed).await?;
        let accept = |claim: Value| {
            let mut accepted = json!({ "verbs": ["*"], "selector": { "matchAll": true }, "state": "Accepted" });
            for key in ["group", "resource", "identityHash"] {
                if let Some(value) = claim.get(key) {
                    accepted[key] = value.clone();
                }
            }
            accepted
        };
        let accepted: Vec<Value> = claims(&export).into_iter().map(accept).collect();
        let patch = json!({ "spec": { "permissionClaims": accepted } });
        let bindings = kinds::kcp(&API_BINDING_V2);
        self.team().client.merge_patch(&bindings, None, self.b.export_name(), &patch).await?;
        Ok(())
    }

    /// A Gadget that both agents have copies of, and a Bucket that names it.
    pub async fn order(&self, name: &'static str) -> anyhow::Result<()> {
        let team = self.team();
        self.b.order_kind(&self.gadgets, team, name, json!({ "size": 1 })).await?;
        self.b.order(team, name, json!({ "size": 1, "owner": name })).await?;
        self.b.object("agent A has its copy", self.of_a(name, &self.a_namespace()), |_| true).await?;
        self.b.object("agent B has its copy", self.of_b(name), |_| true).await?;
        self.b.at_rest().await?;
        Ok(())
    }

    /// Where agent A has its copies.
    pub fn a_namespace(&self) -> String {
        format!("gadgets-{}", self.team().cluster)
    }

    /// The copy of agent A, in that namespace.
    pub fn of_a<'a>(&'a self, name: &'a str, namespace: &'a str) -> At<'a> {
        (&self.b.service, &self.gadgets, Some(namespace), name)
    }

    /// The copy of agent B.
    pub fn of_b<'a>(&'a self, name: &'a str) -> At<'a> {
        (&self.b.service, &self.gadgets, Some(self.team().cluster.as_str()), name)
    }

    /// The consumer's Gadget.
    pub fn original<'a>(&'a self, name: &'a str) -> At<'a> {
        (&self.team().client, &self.gadgets, Some(NAMESPACE), name)
    }

    /// The consumer deletes a Gadget.
    pub async fn delete(&self, name: &str) -> anyhow::Result<()> {
        Ok(self.team().client.delete(&self.gadgets, Some(NAMESPACE), name, &DeleteOptions::default()).await?)
    }

    /// Waits until a Gadget is gone, and its copies, and the Bucket that names it.
    pub async fn ended(&self, name: &str) -> anyhow::Result<()> {
        self.b.gone("the Gadget goes", self.original(name)).await?;
        self.b.gone("the copy of A goes", self.of_a(name, &self.a_namespace())).await?;
        self.b.gone("the copy of B goes", self.of_b(name)).await?;
        self.b.all_gone(self.team(), name).await
    }

    /// The Gadget as it is, which must be held.
    pub async fn held(&self, name: &str) -> anyhow::Result<Value> {
        let (client, kind, namespace, name) = self.original(name);
        let gadget = client.get(kind, namespace, name).await?.context("the Gadget is gone")?;
        let finalizers = gadget["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
        ensure!(finalizers.iter().any(|name| name == api::FINALIZER), "nobody holds it: {}", shown(&gadget));
        Ok(gadget)
    }
}

/// The consumer deletes the Gadget, or cancels the order that names it.
pub async fn deed(two: &Two, what: &str) -> anyhow::Result<()> {
    if what == "delete" { two.delete("gadget").await } else { two.b.cancel(two.team(), "gadget").await }
}
