//! The released binary, as a process.

use std::sync::Arc;

use serde_json::json;

use crate::binary::Binary;
use crate::stage::Stage;
use crate::world::World;

pub(super) async fn the_released_binary_carries_an_order_through_kill_and_sigterm(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let stage = Stage::set(world).await?;
    let team = &stage.team_a;
    let binary = Binary::build(&stage).await?;

    let agent = binary.start()?;
    stage.order(team, "bucket", json!({ "size": 1 })).await?;
    stage.copy_is("the copy is there", team, "bucket", |_| true).await?;

    // Killed while it works on two orders.
    stage.order(team, "second", json!({ "size": 1 })).await?;
    stage.reorder(team, "bucket", json!({ "size": 2 })).await?;
    agent.kill().await?;
    stage.reorder(team, "bucket", json!({ "size": 3 })).await?;

    let agent = binary.start()?;
    let copy = stage.copy_is("the last change arrives", team, "bucket", |copy| copy["spec"]["size"] == 3).await?;
    stage.copy_is("the second order is placed", team, "second", |_| true).await?;
    stage.operator_reports(&copy, json!({ "url": "here" })).await?;
    stage.source_is("the status returns", team, "bucket", |s| s["status"]["url"] == "here").await?;
    agent.terminate().await?;

    stage.cancel(team, "bucket").await?;
    let agent = binary.start()?;
    stage.all_gone(team, "bucket").await?;
    agent.terminate().await
}
