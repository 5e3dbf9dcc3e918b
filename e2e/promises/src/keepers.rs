//! Two agents of different names on one export: however long the one that keeps it cannot note that it is alive, never do both write.

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use carrick_e2e_stage::agent::{Agent, Setup};
use carrick_e2e_stage::rights::grant;
use carrick_e2e_stage::world::{ADMIN_AGENT, AGENT, EmbeddedWorld, User};
use carrick_plane::faults::{Effect, Match, Rule};
use carrick_syncagent::agent::Timing;
use serde_json::json;

use super::audit::Write;
use super::deed::Deed::{Change, Order};
use super::deed::Team;
use super::flows;
use super::lab::Lab;
use super::switch::described;

/// How often an entry is renewed, and when it has expired. A keeper stops one renewal before that, at its next attempt, which comes after four seconds at the
/// latest: two more are left for a slow machine.
const BEAT: (Duration, Duration) = (Duration::from_secs(6), Duration::from_secs(20));
const PATIENCE: Duration = Duration::from_secs(90);

/// The keeper's writes of the APIExport fail, while it reaches all that it works on. It stops working on its own, before the other one, who waits for
/// its entry to expire, begins; and it stays out of it when it can write the export again.
pub async fn cannot_be_written() -> anyhow::Result<String> {
    let lab = Lab::bare(EmbeddedWorld::start().await?, flows::plain(), None).await?;
    lab.flow.publish(&lab.stage).await?;
    // The second agent is another user, so that the faults hit the first one only.
    let everything = json!([
        { "apiGroups": ["*"], "resources": ["*"], "verbs": ["*"] },
        { "nonResourceURLs": ["*"], "verbs": ["*"] },
        { "nonResourceURLs": ["/"], "verbs": ["access"] },
    ]);
    for client in [&lab.stage.service, &lab.stage.provider.client] {
        grant(&lab.stage, client, &everything).await?;
    }
    let timing = Timing { heartbeat: BEAT.0, heartbeat_old: BEAT.1, ..Timing::default() };
    let setup = Setup { probes: true, timing, ..Setup::default() };
    let first = Agent::start(&lab.stage, setup)?;
    Order(Team::A, "one", json!({ "spec": { "size": 0 } })).act(&lab).await?;
    lab.stage.copy_is("the first agent works", &lab.stage.team_a, "one", |_| true).await?;
    lab.stage.ready(&first).await?;
    let second = Agent::start(&lab.stage, Setup { name: Some("second"), user: User::Agent, ..setup })?;
    let keeps = |agent: &str| format!("agent {agent} keeps buckets.{}", lab.stage.group);
    lab.stage.not_ready(&second, &keeps(&lab.stage.agent_name())).await?;

    let faults = lab.world.kcp_plane().faults();
    let of_export = Match::writes().user(ADMIN_AGENT).resource("apis.kcp.io", "apiexports");
    let rule = faults.add(Rule::new(of_export, Effect::refuse(503)));
    // Orders keep coming, so that whoever believes to keep the export has something to write.
    let started = Instant::now();
    let mut orders = 0;
    loop {
        orders += 1;
        Change(Team::A, "one", json!({ "spec": { "size": orders } })).act(&lab).await?;
        lab.create_source(&lab.stage.team_b, &format!("order-{orders}"), &json!({ "spec": { "size": 1 } })).await?;
        if lab.audit.writes().iter().any(|write| is_work(write) && write.ask.user == AGENT) {
            break;
        }
        ensure!(started.elapsed() < PATIENCE, "nobody takes over: {:#?}", second.log());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let (taken_over, refused) = (started.elapsed(), faults.hits(rule));
    ensure!(refused > 0, "the first agent could write the export");
    lab.stage
        .copy_is("the second agent works", &lab.stage.team_a, "one", |copy| copy["spec"]["size"] == orders)
        .await?;

    faults.remove(rule);
    lab.stage.not_ready(&first, &keeps(&format!("second-{}", lab.stage.id))).await?;
    lab.stage.ready(&second).await?;
    Change(Team::A, "one", json!({ "spec": { "size": 1000 } })).act(&lab).await?;
    lab.stage.copy_is("it goes on", &lab.stage.team_a, "one", |copy| copy["spec"]["size"] == 1000).await?;

    let work: Vec<Write> = lab.audit.writes().into_iter().filter(is_work).collect();
    let handed_over = work.iter().position(|write| write.ask.user == AGENT).context("the second one wrote nothing")?;
    let late = work[handed_over..].iter().find(|write| write.ask.user == ADMIN_AGENT);
    let late = late.map(|write| described(&write.ask, &format!("{:?}", write.server)));
    ensure!(late.is_none(), "the first agent wrote after the second one had begun: {late:?}");
    second.stop().await?;
    first.stop().await?;
    Ok(format!("taken over after {taken_over:.1?}, {refused} writes of the export were refused"))
}

/// Whether it changes orders, copies or what is remembered.
fn is_work(write: &Write) -> bool {
    ["buckets", "secrets", "namespaces"].contains(&write.ask.resource.as_str())
}
