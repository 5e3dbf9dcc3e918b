//! A kcp of several shards loses one: the others do not notice, nothing is deleted, and all is well when it is back. Meanwhile there are
//! related objects in both directions, and an order on its way out.

use anyhow::{Context, ensure};
use carrick_e2e_stage::kinds;
use carrick_e2e_stage::stage::Workspace;
use carrick_e2e_stage::world::EmbeddedWorld;
use carrick_kcp::kinds::LOGICAL_CLUSTER;
use serde_json::json;

use super::deed::Deed::Change;
use super::deed::Team;
use super::flows;
use super::lab::Lab;
use super::losses::{finish, furnish, sizes};

/// Enough that every workspace of the lab has one of its own, and kcp's root too.
const SHARDS: usize = 5;

/// Loses the shard of a consumer, then that of the provider, then the first one; each time with an agent that goes on and one that is
/// started meanwhile.
pub async fn lost_and_back() -> anyhow::Result<String> {
    let mut lab = Lab::open_on(EmbeddedWorld::with_shards(SHARDS).await?, flows::both_ways()).await?;
    let before = furnish(&mut lab).await?;
    let mut size = 1;
    let mut lost = Vec::new();
    let home = shard(&lab.stage.team_b).await?;
    for shard in [shard(&lab.stage.team_a).await?, shard(&lab.stage.provider).await?, 0] {
        for restart in [false, true] {
            let told = format!("shard {shard} is lost, team-b's is {home}, restart {restart}");
            lab_loses(&mut lab, shard, restart, &mut size).await.with_context(|| told.clone())?;
            ensure!(lab.eyes.inventory() == before, "{told}: {:?} instead of {before:?}", lab.eyes.inventory());
            lost.push(shard);
        }
    }
    finish(&mut lab).await?;
    lab.close().await?;
    Ok(format!("shards lost: {lost:?}"))
}

async fn lab_loses(lab: &mut Lab, shard: usize, restart: bool, size: &mut i64) -> anyhow::Result<()> {
    let endpoints = lab.world.kcp_plane().endpoints().to_vec();
    let endpoint = endpoints.iter().find(|endpoint| endpoint.shard() == Some(shard)).context("no such shard")?;
    let before = lab.eyes.inventory();
    endpoint.stop().await;
    if restart {
        lab.kill_agent().await?;
        lab.start_agent()?;
    }
    *size += 1;
    // Who is on a lost shard cannot be asked where; the agent needs the provider's workspace, and everybody needs the root.
    let reachable = self::shard(&lab.stage.team_b).await.is_ok() && self::shard(&lab.stage.provider).await.is_ok();
    if reachable && shard != 0 {
        Change(Team::B, "one", json!({ "spec": { "size": *size } })).act(lab).await?;
        let wanted = *size;
        lab.until("a consumer on another shard is served", None, |state| sizes(state)[1] == wanted).await?;
    }
    // By now the agent has seen what it can see, and must not draw wrong conclusions.
    lab.rest().await?;
    ensure!(lab.eyes.inventory() == before, "something was deleted or replaced: {:?}", lab.audit.last(12));

    endpoint.start().await?;
    let wanted = *size;
    for team in Team::BOTH {
        lab.stage
            .eventually("the consumers can be reached again", async || {
                Change(team, "one", json!({ "spec": { "size": wanted } })).act(lab).await
            })
            .await?;
    }
    lab.until("everybody is served again", None, |state| sizes(state) == [wanted, wanted]).await?;
    lab.ready().await
}

/// The number of the shard that a workspace is on.
async fn shard(workspace: &Workspace) -> anyhow::Result<usize> {
    let cluster = workspace.client.get(&kinds::kcp(&LOGICAL_CLUSTER), None, "cluster").await?;
    let cluster = cluster.context("no logical cluster")?;
    let name = cluster["metadata"]["annotations"]["core.kcp.io/shard"].as_str().context("no shard")?;
    Ok(name.strip_prefix("shard-").map_or(Ok(0), str::parse)?)
}
