//! Two agents of one name, of which only the one that holds the lease may work.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use carrick_e2e_stage::agent::{Agent, Setup};
use carrick_e2e_stage::kinds;
use carrick_e2e_stage::stage::{Stage, shown};
use carrick_e2e_stage::world::World;
use serde_json::{Value, json};

/// A leader that could not renew its lease for so long stops working; only after that may others start.
const RENEW_DEADLINE: Duration = Duration::from_secs(10);
/// A lease lasts 15 s, and stand-bys look every 2 s. The rest is for slow machines.
const PATIENCE: Duration = Duration::from_mins(1);

pub(super) async fn of_two_agents_one_works_and_hands_over_at_once_when_it_stops(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let stage = Stage::set(world).await?;
    let (leader, standby) = leader_and_standby(&stage).await?;
    leader.stop().await?;
    let released = Instant::now();
    let waited = takes_over(&stage, &standby).await? - released;
    ensure!(waited < RENEW_DEADLINE, "taken over only after {waited:?}, as if the lease had to expire");
    standby.stop().await
}

pub(super) async fn the_lease_of_a_crashed_agent_is_taken_over_when_it_has_expired(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let stage = Stage::set(world).await?;
    let (leader, standby) = leader_and_standby(&stage).await?;
    leader.crash();
    let crashed = Instant::now();
    let waited = takes_over(&stage, &standby).await? - crashed;
    ensure!(waited > RENEW_DEADLINE, "taken over after {waited:?} already, when the leader might have been alive");
    standby.stop().await
}

/// Two agents with one lease. The first one works on an order; the second one is ready and does nothing.
async fn leader_and_standby(stage: &Stage) -> anyhow::Result<(Agent, Agent)> {
    let setup = Setup { leader_election: true, probes: true, ..Setup::default() };
    let leader = Agent::start(stage, setup)?;
    stage.order(&stage.team_a, "first", json!({ "size": 1 })).await?;
    stage.copy_is("the leader works", &stage.team_a, "first", |_| true).await?;
    let holder = lease(stage).await?["spec"]["holderIdentity"].clone();

    let standby = Agent::start(stage, setup)?;
    said(stage, &standby, "Waiting for the lease.").await?;
    stage.ready(&standby).await?;
    stage.order(&stage.team_a, "second", json!({ "size": 1 })).await?;
    stage.copy_is("the leader goes on", &stage.team_a, "second", |_| true).await?;
    let lease = lease(stage).await?;
    ensure!(lease["spec"]["holderIdentity"] == holder, "the lease has changed hands: {}", shown(&lease));
    ensure!(!works(&standby), "both agents work: {:#?}", standby.log());
    Ok((leader, standby))
}

/// Waits until the stand-by has the lease and carries what was ordered while nobody did. Returns when it was seen to have the lease.
async fn takes_over(stage: &Stage, standby: &Agent) -> anyhow::Result<Instant> {
    let team = &stage.team_a;
    stage.order(team, "third", json!({ "size": 1 })).await?;
    stage.reorder(team, "first", json!({ "size": 2 })).await?;
    let deadline = Instant::now() + PATIENCE;
    while !works(standby) {
        ensure!(Instant::now() < deadline, "the stand-by does not take over: {:#?}", standby.log());
        tokio::time::sleep(stage.world.pace().glance).await;
    }
    let taken_over = Instant::now();
    stage.copy_is("the new order is placed", team, "third", |_| true).await?;
    stage.copy_is("the change arrives", team, "first", |copy| copy["spec"]["size"] == 2).await?;
    let lease = lease(stage).await?;
    ensure!(lease["spec"]["leaseTransitions"] == 1, "{}", shown(&lease));
    stage.ready(standby).await?;
    Ok(taken_over)
}

fn works(agent: &Agent) -> bool {
    agent.log().iter().any(|line| line.contains("Starting kcp Sync Agent…"))
}

async fn said(stage: &Stage, agent: &Agent, words: &str) -> anyhow::Result<()> {
    stage
        .eventually(&format!("the agent says {words:?}"), async || {
            let log = agent.log();
            ensure!(log.iter().any(|line| line.contains(words)), "it has said {log:#?}");
            Ok(())
        })
        .await
}

async fn lease(stage: &Stage) -> anyhow::Result<Value> {
    let name = format!("syncagent.{}", stage.agent_name());
    let lease = stage.service.get(&kinds::leases(), Some(&stage.agent_namespace()), &name).await?;
    lease.context("there is no lease")
}
