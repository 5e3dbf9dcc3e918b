//! Links: a copy that somebody takes a label from is still the copy of its order.

use std::sync::Arc;

use anyhow::ensure;
use carrick_e2e_stage::agent::{Agent, Setup};
use carrick_e2e_stage::stage::{At, place};
use carrick_e2e_stage::world::World;
use carrick_syncagent::api;
use serde_json::{Value, json};

use super::{publish, silent, writes};

/// All labels by which copies are found.
const LABELS: [(&str, &str); 4] = [
    ("cluster", api::REMOTE_CLUSTER),
    ("name", api::REMOTE_NAME_HASH),
    ("namespace", api::REMOTE_NAMESPACE_HASH),
    ("agent", api::AGENT_NAME),
];

pub(crate) async fn a_copy_that_loses_a_label_of_its_link_gets_it_back_and_changes_arrive(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let stage = publish(world, json!({})).await?;
    let agent = Agent::start(&stage, Setup { probes: true, ..Setup::default() })?;
    let (team, buckets) = (&stage.team_a, stage.buckets());
    for (order, label) in LABELS {
        stage.order(team, order, json!({ "size": 1 })).await?;
        let copy = stage.copy_is("the copy is there", team, order, |_| true).await?;
        stage.at_rest().await?;
        let (namespace, name) = place(&copy);
        let at: At<'_> = (&stage.service, &buckets, Some(namespace), name);
        let patch = json!({ "metadata": { "labels": { label: null } } });
        stage.service.merge_patch(&buckets, Some(namespace), name, &patch).await?;
        stage.reorder(team, order, json!({ "size": 2 })).await?;
        let good = |now: &Value| {
            now["metadata"]["uid"] == copy["metadata"]["uid"]
                && now["metadata"]["labels"] == copy["metadata"]["labels"]
                && now["spec"]["size"] == 2
        };
        stage.object(&format!("the change arrives without {label}, which is back"), at, good).await?;
    }
    silent(&stage, &agent).await?;
    ensure!(!writes(&agent).await?.is_empty(), "its writes are counted");
    agent.stop().await
}

pub(crate) async fn an_order_whose_copy_lost_a_label_of_its_link_still_ends_with_its_copy(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let stage = publish(world, json!({})).await?;
    let mut agent = stage.start_agent()?;
    let (team, buckets) = (&stage.team_a, stage.buckets());
    for (order, label) in LABELS {
        stage.order(team, order, json!({ "size": 1 })).await?;
        let copy = stage.copy_is("the copy is there", team, order, |_| true).await?;
        stage.at_rest().await?;
        // An agent that has never seen the copy finds it, too.
        agent.stop().await?;
        let (namespace, name) = place(&copy);
        let patch = json!({ "metadata": { "labels": { label: null } } });
        stage.service.merge_patch(&buckets, Some(namespace), name, &patch).await?;
        agent = stage.start_agent()?;
        stage.cancel(team, order).await?;
        let at: At<'_> = (&stage.service, &buckets, Some(namespace), name);
        stage.gone(&format!("the copy without {label} is gone"), at).await?;
        stage.all_gone(team, order).await?;
    }
    agent.stop().await
}
