//! Two agents of one name, of which only the one that holds the lease may work.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use crate::agent::{Agent, Setup};
use crate::kinds;
use crate::stage::{Stage, shown};
use crate::world::World;

/// How long a lease lasts that nobody renews, and how often stand-bys look.
const LEASE: Duration = Duration::from_secs(15);
const LOOK: Duration = Duration::from_secs(2);

pub(super) async fn of_two_agents_one_works_and_hands_over_at_once_when_it_stops(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let stage = Stage::set(world).await?;
    let (leader, standby) = leader_and_standby(&stage).await?;
    leader.stop().await?;
    let released = Instant::now();
    takes_over(&stage, &standby, "1").await?;
    // Looking for the lease, not waiting for it to expire.
    ensure!(released.elapsed() < LEASE - LOOK, "taken over only after {:?}", released.elapsed());
    standby.stop().await
}

pub(super) async fn the_lease_of_a_crashed_agent_is_taken_over_when_it_has_expired(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let stage = Stage::set(world).await?;
    let (leader, standby) = leader_and_standby(&stage).await?;
    leader.crash();
    let renewed = lease(&stage).await?["spec"]["renewTime"].clone();
    let crashed = Instant::now();
    // Nobody works as long as the crashed agent might be alive.
    takes_over(&stage, &standby, "1").await?;
    let waited = crashed.elapsed();
    ensure!(waited > LEASE - 2 * LOOK, "taken over after {waited:?} although {renewed} was the last renewal");
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

/// Waits until the stand-by has the lease and carries what was ordered while nobody did.
async fn takes_over(stage: &Stage, standby: &Agent, transitions: &str) -> anyhow::Result<()> {
    let team = &stage.team_a;
    stage.order(team, "third", json!({ "size": 1 })).await?;
    stage.reorder(team, "first", json!({ "size": 2 })).await?;
    // Twice the usual patience of the fastest world covers a lease.
    let deadline = Instant::now() + LEASE + 2 * LOOK;
    while !works(standby) {
        ensure!(Instant::now() < deadline, "the stand-by does not take over: {:#?}", standby.log());
        tokio::time::sleep(stage.world.pace().glance).await;
    }
    stage.copy_is("the new order is placed", team, "third", |_| true).await?;
    stage.copy_is("the change arrives", team, "first", |copy| copy["spec"]["size"] == 2).await?;
    let lease = lease(stage).await?;
    ensure!(lease["spec"]["leaseTransitions"].to_string() == transitions, "{}", shown(&lease));
    stage.ready(standby).await
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
