//! Flows: what is published, and what users and operators then do with it, step by step.

use carrick_client::Resource;
use carrick_e2e_stage::fixtures;
use carrick_e2e_stage::stage::Stage;
use serde_json::{Value, json};

use super::deed::Deed;
use super::state::State;

/// A story to be told again and again with different disturbances.
#[derive(Clone)]
#[allow(clippy::struct_excessive_bools)] // each says one thing about the flow
pub struct Flow {
    /// What it is about.
    pub name: &'static str,
    /// The kind that consumers order.
    pub source: fn(&Stage) -> Resource,
    /// The kind on the service cluster.
    pub copy: fn(&Stage) -> Resource,
    /// Its CRD.
    pub crd: fn(&Stage) -> Value,
    /// What the PublishedResource says.
    pub rules: fn(&Stage) -> Value,
    /// Content of an order that is only there to begin with.
    pub first: Value,
    /// What happens. The last step leaves no order behind.
    pub steps: Vec<Step>,
    /// Whether a copy's spec is that of its source.
    pub verbatim: bool,
    /// Plurals of what may travel along.
    pub related: &'static [&'static str],
    /// Whether the next step makes sense only when the last one has led somewhere, even in a storm.
    pub patient: bool,
    /// Whether it costs so much time that one moment of death at each write must do.
    pub heavy: bool,
    /// Whether deeds take related objects away from orders that live.
    pub drops_related: bool,
    /// Whether deeds hand copies from one source to another.
    pub passes_on: bool,
    /// Whether Gadgets, a second kind, are published as a schema only.
    pub has_gadgets: bool,
    /// Whether the agent writes copies by server-side apply.
    pub apply: bool,
}

/// Some deeds, and what they lead to.
#[derive(Clone)]
pub struct Step {
    /// What happens.
    pub name: &'static str,
    /// What is done, one after the other and without waiting.
    pub deeds: Vec<Deed>,
    /// Whether it has led where it should, apart from details that are compared between runs.
    pub done: fn(&State) -> bool,
}

impl Flow {
    /// A flow of Buckets, published as they are.
    pub fn of_buckets(name: &'static str, steps: Vec<Step>) -> Self {
        Self {
            name,
            source: Stage::buckets,
            copy: Stage::buckets,
            crd: |stage| fixtures::crd(&stage.group, "Bucket"),
            rules: |_| json!({}),
            first: json!({ "spec": { "size": 0 } }),
            steps,
            verbatim: true,
            related: &[],
            patient: false,
            heavy: false,
            drops_related: false,
            passes_on: false,
            has_gadgets: false,
            apply: false,
        }
    }

    /// The same by server-side apply.
    pub fn applied(self, name: &'static str) -> Self {
        Self { name, apply: true, ..self }
    }

    /// Publishes it, to both teams.
    pub async fn publish(&self, stage: &Stage) -> anyhow::Result<()> {
        stage.install_crd(&(self.crd)(stage)).await?;
        if self.has_gadgets {
            stage.install_crd(&fixtures::crd(&stage.group, "Gadget")).await?;
            stage.publish("Gadget", json!({ "synchronization": { "enabled": false } })).await?;
        }
        stage.create_export().await?;
        futures::try_join!(stage.bind(&stage.team_a), stage.bind(&stage.team_b))?;
        stage.publish("Bucket", (self.rules)(stage)).await?;
        Ok(())
    }
}

/// A step.
pub fn step(name: &'static str, deeds: Vec<Deed>, done: fn(&State) -> bool) -> Step {
    Step { name, deeds, done }
}
