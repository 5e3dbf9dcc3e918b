//! What the agent remembers is found again, whatever happens around it.

use std::sync::Arc;

use anyhow::{Context, ensure};
use carrick_client::{DeleteOptions, Resource};
use carrick_e2e_stage::fixtures::beside_names;
use carrick_e2e_stage::kinds;
use carrick_e2e_stage::stage::{NAMESPACE, Stage, place, shown};
use carrick_e2e_stage::world::World;
use serde_json::json;

use super::{is_free, memories, named_secret, publish, put, republish, same};
use crate::related::encoded;

/// The CRD of Buckets gets a second version, which is stored from then on, and both are published.
async fn upgrade(stage: &Stage) -> anyhow::Result<()> {
    let name = format!("buckets.{}", stage.group);
    stage
        .eventually("the CRD has a second version", async || {
            let mut crd = stage.service.get(&kinds::crds(), None, &name).await?.context("there is no CRD")?;
            let mut second = crd["spec"]["versions"][0].clone();
            second["name"] = json!("v2");
            second["storage"] = json!(true);
            crd["spec"]["versions"][0]["storage"] = json!(false);
            crd["spec"]["versions"].as_array_mut().context("there are no versions")?.push(second);
            stage.service.replace(&kinds::crds(), None, &crd).await?;
            Ok(())
        })
        .await?;
    republish(stage, json!({ "resource": { "versions": ["v1", "v2"] } })).await
}

async fn live_through_an_upgrade(world: Arc<dyn World>, running: bool) -> anyhow::Result<()> {
    let stage = publish(world, json!({ "naming": beside_names(""), "related": [named_secret()] })).await?;
    let mut agent = stage.start_agent()?;
    let (team, secrets) = (&stage.team_a, kinds::secrets());
    for name in ["one", "two"] {
        put(&team.client, &secrets, NAMESPACE, name, &json!({ "data": { "name": encoded(name) } })).await?;
    }
    stage.order(team, "bucket", json!({ "size": 1, "owner": "one" })).await?;
    let copy = stage.copy_is("the copy is there", team, "bucket", |_| true).await?;
    let namespace = place(&copy).0;
    let at = |name| (&team.client, &secrets, Some(NAMESPACE), name);
    let copied = |name| (&stage.service, &secrets, Some(namespace), name);
    let first = stage.object("the Secret is copied", copied("one"), |_| true).await?;
    stage.operator_edits(&copy, json!({ "region": "eu" })).await?;
    stage.at_rest().await?;

    if running {
        upgrade(&stage).await?;
    } else {
        agent.stop().await?;
        upgrade(&stage).await?;
        agent = stage.start_agent()?;
    }
    let newer = Resource::namespaced(&stage.group, "v2", "Bucket", "buckets");
    let there = (&team.client, &newer, Some(NAMESPACE), "bucket");
    stage.object("consumers see the second version", there, |_| true).await?;
    stage.at_rest().await?;
    let related = stage.object("the copy of the Secret is there", copied("one"), |_| true).await?;
    same(&related, &first)?;

    stage.reorder(team, "bucket", json!({ "size": 2 })).await?;
    let changed = stage.copy_is("a change arrives", team, "bucket", |copy| copy["spec"]["size"] == 2).await?;
    same(&changed, &copy)?;
    ensure!(changed["spec"]["region"] == "eu", "what only the operator had set is gone: {}", shown(&changed));
    stage.at_rest().await?;
    let remembered = memories(&stage, team, "bucket").await?;
    ensure!(remembered.len() < 2, "there are {} memories of one order", remembered.len());

    stage.reorder(team, "bucket", json!({ "owner": "two" })).await?;
    stage.object("the second Secret is copied", copied("two"), |_| true).await?;
    stage.gone("the copy of the first one goes", copied("one")).await?;
    stage.object("the first one is free", at("one"), is_free).await?;
    stage.cancel(team, "bucket").await?;
    stage.all_gone(team, "bucket").await?;
    stage.gone("the copy of the second one goes", copied("two")).await?;
    stage.object("the second one is free", at("two"), is_free).await?;
    let left = memories(&stage, team, "bucket").await?;
    ensure!(left.is_empty(), "{} memories are left", left.len());
    agent.stop().await
}

pub(crate) async fn a_new_storage_version_loses_nothing(world: Arc<dyn World>) -> anyhow::Result<()> {
    live_through_an_upgrade(world, true).await
}

pub(crate) async fn a_new_storage_version_that_came_while_no_agent_ran_loses_nothing(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    live_through_an_upgrade(world, false).await
}

pub(crate) async fn a_state_secret_deleted_under_a_running_agent_does_no_harm(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let stage = publish(world, json!({ "naming": beside_names(""), "related": [named_secret()] })).await?;
    let agent = stage.start_agent()?;
    let (team, secrets) = (&stage.team_a, kinds::secrets());
    put(&team.client, &secrets, NAMESPACE, "mine", &json!({ "data": { "name": encoded("mine") } })).await?;
    stage.order(team, "bucket", json!({ "size": 1, "owner": "mine" })).await?;
    let copy = stage.copy_is("the copy is there", team, "bucket", |_| true).await?;
    let copied = (&stage.service, &secrets, Some(place(&copy).0), "mine");
    let related = stage.object("the Secret is copied", copied, |_| true).await?;
    stage.operator_edits(&copy, json!({ "region": "eu" })).await?;
    for size in [2, 3] {
        stage.at_rest().await?;
        for memory in memories(&stage, team, "bucket").await? {
            let (namespace, name) = place(&memory);
            stage.service.delete(&secrets, Some(namespace), name, &DeleteOptions::default()).await?;
        }
        // Once at rest in between, and once in the same moment.
        if size == 2 {
            stage.at_rest().await?;
        }
        stage.reorder(team, "bucket", json!({ "size": size })).await?;
        let changed = stage.copy_is("a change arrives", team, "bucket", |copy| copy["spec"]["size"] == size).await?;
        same(&changed, &copy)?;
        ensure!(changed["spec"]["region"] == "eu", "what only the operator had set is gone: {}", shown(&changed));
        same(&stage.object("the copy of the Secret stays", copied, |_| true).await?, &related)?;
    }
    stage.cancel(team, "bucket").await?;
    stage.all_gone(team, "bucket").await?;
    stage.gone("the copy of the Secret goes", copied).await?;
    stage.object("the Secret is free", (&team.client, &secrets, Some(NAMESPACE), "mine"), is_free).await?;
    agent.stop().await
}
