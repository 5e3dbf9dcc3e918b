//! One object that two agents need: each of them holds it until it is done itself.

use std::sync::Arc;

use anyhow::{Context, ensure};
use carrick_client::{DeleteOptions, Resource};
use carrick_kcp::kinds::{API_BINDING_V2, API_EXPORT};
use carrick_syncagent::api;
use serde_json::{Value, json};

use super::{beside_names, is_free, prepare};
use crate::stage::{NAMESPACE, Stage, Workspace, shown};
use crate::world::World;
use crate::{fixtures, kinds};

/// Agent A publishes Gadgets, agent B Buckets that bring Gadgets along.
pub(crate) struct Two {
    pub(crate) a: Stage,
    pub(crate) b: Stage,
    pub(crate) gadgets: Resource,
}

impl Two {
    pub(crate) async fn set(world: Arc<dyn World>) -> anyhow::Result<Self> {
        let a = Stage::bare(Arc::clone(&world)).await?;
        a.install_crd(&fixtures::crd(&a.group, "Gadget")).await?;
        a.create_export().await?;
        a.publish("Gadget", json!({ "naming": beside_names("gadgets-") })).await?;
        let b = prepare(world, |group| fixtures::crd(group, "Bucket")).await?;
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

    pub(crate) fn team(&self) -> &Workspace {
        &self.b.team_a
    }

    /// Accepts what the export of B claims, once it claims Gadgets.
    pub(crate) async fn accept(&self) -> anyhow::Result<()> {
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
    pub(crate) async fn order(&self, name: &'static str) -> anyhow::Result<()> {
        let team = self.team();
        self.b.order_kind(&self.gadgets, team, name, json!({ "size": 1 })).await?;
        self.b.order(team, name, json!({ "size": 1, "owner": name })).await?;
        self.b.object("agent A has its copy", self.of_a(name, &self.a_namespace()), |_| true).await?;
        self.b.object("agent B has its copy", self.of_b(name), |_| true).await?;
        self.b.at_rest().await?;
        Ok(())
    }

    pub(crate) fn a_namespace(&self) -> String {
        format!("gadgets-{}", self.team().cluster)
    }

    fn of_a<'a>(&'a self, name: &'a str, namespace: &'a str) -> super::At<'a> {
        (&self.b.service, &self.gadgets, Some(namespace), name)
    }

    fn of_b<'a>(&'a self, name: &'a str) -> super::At<'a> {
        (&self.b.service, &self.gadgets, Some(self.team().cluster.as_str()), name)
    }

    fn original<'a>(&'a self, name: &'a str) -> super::At<'a> {
        (&self.team().client, &self.gadgets, Some(NAMESPACE), name)
    }

    async fn delete(&self, name: &str) -> anyhow::Result<()> {
        Ok(self.team().client.delete(&self.gadgets, Some(NAMESPACE), name, &DeleteOptions::default()).await?)
    }

    /// Waits until a Gadget is gone, and its copies, and the Bucket that names it.
    pub(crate) async fn ended(&self, name: &str) -> anyhow::Result<()> {
        self.b.gone("the Gadget goes", self.original(name)).await?;
        self.b.gone("the copy of A goes", self.of_a(name, &self.a_namespace())).await?;
        self.b.gone("the copy of B goes", self.of_b(name)).await?;
        self.b.all_gone(self.team(), name).await
    }

    /// The Gadget as it is, which must be held.
    async fn held(&self, name: &str) -> anyhow::Result<Value> {
        let (client, kind, namespace, name) = self.original(name);
        let gadget = client.get(kind, namespace, name).await?.context("the Gadget is gone")?;
        let finalizers = gadget["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
        ensure!(finalizers.iter().any(|name| name == api::FINALIZER), "nobody holds it: {}", shown(&gadget));
        Ok(gadget)
    }
}

/// The consumer deletes the Gadget, or cancels the order that names it.
pub(crate) async fn deed(two: &Two, what: &str) -> anyhow::Result<()> {
    if what == "delete" { two.delete("gadget").await } else { two.b.cancel(two.team(), "gadget").await }
}

pub(crate) async fn what_is_the_primary_of_one_agent_is_held_for_it_whatever_another_one_does(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let two = Two::set(world).await?;
    let (a, b) = (two.a.start_agent()?, two.b.start_agent()?);
    two.accept().await?;
    two.order("gadget").await?;
    two.order("spare").await?;
    a.stop().await?;

    // Agent B does not need it any more.
    let namespace = two.a_namespace();
    two.b.cancel(two.team(), "spare").await?;
    two.b.all_gone(two.team(), "spare").await?;
    two.b.gone("the copy of B goes", two.of_b("spare")).await?;
    two.held("spare").await.context("after B let it go")?;

    // Its owner does not want it any more.
    two.delete("gadget").await?;
    two.b.gone("the copy of B goes", two.of_b("gadget")).await?;
    two.b.at_rest().await?;
    two.held("gadget").await.context("before A is back")?;
    let copy = two.b.service.get(&two.gadgets, Some(&namespace), "gadget").await?;
    ensure!(copy.is_some(), "somebody else deleted the copy of A");

    let a = two.a.start_agent()?;
    two.b.gone("the copy of A goes", two.of_a("gadget", &namespace)).await?;
    two.b.gone("the Gadget goes", two.original("gadget")).await?;
    two.delete("spare").await?;
    two.b.gone("the other copy of A goes", two.of_a("spare", &namespace)).await?;
    two.b.gone("the other Gadget goes", two.original("spare")).await?;
    a.stop().await?;
    b.stop().await
}

pub(crate) async fn what_one_agent_needs_beside_an_order_is_held_for_it_whatever_its_own_agent_does(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let two = Two::set(world).await?;
    let (a, b) = (two.a.start_agent()?, two.b.start_agent()?);
    two.accept().await?;
    two.order("gadget").await?;
    b.stop().await?;

    let namespace = two.a_namespace();
    two.delete("gadget").await?;
    two.b.gone("the copy of A goes", two.of_a("gadget", &namespace)).await?;
    two.b.at_rest().await?;
    two.held("gadget").await.context("before B is back")?;
    let copy = two.b.service.get(&two.gadgets, Some(&two.team().cluster), "gadget").await?;
    ensure!(copy.is_some(), "somebody else deleted the copy of B");

    let b = two.b.start_agent()?;
    two.b.gone("the copy of B goes", two.of_b("gadget")).await?;
    two.b.gone("the Gadget goes", two.original("gadget")).await?;
    two.b.source_is("the order stays", two.team(), "gadget", |source| !is_free(source)).await?;
    a.stop().await?;
    b.stop().await
}
