//! What a PublishedResource may ask for beyond plain publishing.

use std::sync::Arc;

use anyhow::ensure;
use carrick_client::Resource;
use carrick_e2e_stage::fixtures;
use carrick_e2e_stage::stage::{NAMESPACE, Stage, shown};
use carrick_e2e_stage::world::World;
use carrick_syncagent::api;
use serde_json::{Value, json};

pub(super) async fn a_projected_kind_is_ordered_under_its_new_names(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = Stage::bare(world).await?;
    let group = format!("shop.{}", stage.group);
    let projection = json!({ "group": group, "kind": "Volume", "versions": { "v1": "v1beta1" } });
    publish(&stage, json!({ "projection": projection })).await?;
    let agent = stage.start_agent()?;

    let team = &stage.team_a;
    let volumes = Resource::namespaced(&group, "v1beta1", "Volume", "volumes");
    stage.order_kind(&volumes, team, "volume", json!({ "size": 1 })).await?;
    let copy = stage.copy_is("the copy is there", team, "volume", |copy| copy["spec"] == json!({ "size": 1 })).await?;
    ensure!(copy["kind"] == "Bucket" && copy["apiVersion"] == format!("{}/v1", stage.group), "{}", shown(&copy));
    stage.operator_reports(&copy, json!({ "url": "here" })).await?;
    let at = (&team.client, &volumes, Some(NAMESPACE), "volume");
    stage.object("the status returns", at, |source| source["status"]["url"] == "here").await?;
    let original = team.client.get(&stage.buckets(), Some(NAMESPACE), "volume").await?;
    ensure!(original.is_none(), "the kind is published under its own name too");

    team.client.delete(&volumes, Some(NAMESPACE), "volume", &carrick_client::DeleteOptions::default()).await?;
    stage.gone("the order is gone", at).await?;
    ensure!(stage.copy(team, "volume").await?.is_none(), "the copy is left");
    agent.stop().await
}

pub(super) async fn only_orders_that_match_the_filter_are_served(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = Stage::bare(world).await?;
    publish(&stage, json!({ "filter": { "resource": { "matchLabels": { "tier": "gold" } } } })).await?;
    let agent = stage.start_agent()?;

    let team = &stage.team_a;
    let label = async |name: &str, tier: Value| {
        let patch = json!({ "metadata": { "labels": { "tier": tier } } });
        team.client.merge_patch(&stage.buckets(), Some(NAMESPACE), name, &patch).await
    };
    for name in ["plain", "silver", "gold"] {
        stage.order(team, name, json!({ "size": 1 })).await?;
    }
    label("silver", json!("silver")).await?;
    label("gold", json!("gold")).await?;
    stage.copy_is("the one that matches is placed", team, "gold", |_| true).await?;
    stage.at_rest().await?;
    for name in ["plain", "silver"] {
        ensure!(stage.copy(team, name).await?.is_none(), "{name} is placed");
        let source = stage.source(team, name).await?.unwrap_or_default();
        ensure!(source["metadata"]["finalizers"].is_null(), "{name} is held: {}", shown(&source));
    }

    label("silver", json!("gold")).await?;
    stage.copy_is("one that matches now is placed", team, "silver", |_| true).await?;
    // An order that matches no longer is let go, and its copy stays until it matches again.
    let placed = stage.copy(team, "gold").await?.unwrap_or_default();
    label("gold", Value::Null).await?;
    let finalizers = |source: &Value| source["metadata"]["finalizers"].as_array().map_or(0, Vec::len);
    stage.source_is("the order is let go", team, "gold", |source| finalizers(source) == 0).await?;
    stage.reorder(team, "gold", json!({ "size": 2 })).await?;
    stage.at_rest().await?;
    let copy = stage.copy(team, "gold").await?.unwrap_or_default();
    ensure!(copy["metadata"]["resourceVersion"] == placed["metadata"]["resourceVersion"], "{}", shown(&copy));
    label("gold", json!("gold")).await?;
    stage.copy_is("the change arrives", team, "gold", |copy| copy["spec"]["size"] == 2).await?;
    stage.source_is("the order is held again", team, "gold", |source| finalizers(source) == 1).await?;
    stage.cancel(team, "gold").await?;
    stage.all_gone(team, "gold").await?;
    agent.stop().await
}

pub(super) async fn a_copy_names_the_workspace_of_its_order_if_asked_to(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = Stage::bare(world).await?;
    let naming = json!({ "name": "{{ .ClusterPath | replace \":\" \"-\" }}-{{ .Object.metadata.name }}" });
    publish(&stage, json!({ "enableWorkspacePaths": true, "naming": naming })).await?;
    let agent = stage.start_agent()?;
    for team in [&stage.team_a, &stage.team_b] {
        stage.order(team, "bucket", json!({ "size": 1 })).await?;
        let copy = stage.copy_is("the copy is there", team, "bucket", |_| true).await?;
        let metadata = &copy["metadata"];
        ensure!(metadata["annotations"][api::REMOTE_WORKSPACE_PATH] == team.path, "{}", shown(&copy));
        ensure!(metadata["name"] == format!("{}-bucket", team.path.replace(':', "-")), "{}", shown(&copy));
    }
    agent.stop().await
}

/// Publishes Buckets with a spec, to both teams.
async fn publish(stage: &Stage, spec: Value) -> anyhow::Result<()> {
    stage.install_crd(&fixtures::crd(&stage.group, "Bucket")).await?;
    stage.create_export().await?;
    futures::try_join!(stage.bind(&stage.team_a), stage.bind(&stage.team_b))?;
    stage.publish("Bucket", spec).await?;
    Ok(())
}
