//! Two agents with one lease never write both, not even when the leader is cut off from the lease and does not know it.

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use carrick_plane::faults::{Effect, Match, Rule};
use serde_json::json;

use super::deed::Deed::{Change, Order};
use super::deed::Team;
use super::flows;
use super::lab::Lab;
use super::switch::described;
use crate::agent::{Agent, Setup};
use crate::scenarios::rights::grant;
use crate::world::{ADMIN_AGENT, AGENT, EmbeddedWorld, User};

/// A lease lasts 15 s, and stand-bys look every 2 s.
const PATIENCE: Duration = Duration::from_secs(90);

/// The leader loses the service cluster, and with it the lease, while kcp still takes all it writes.
pub async fn cut_off_from_the_lease() -> anyhow::Result<String> {
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
    let setup = Setup { leader_election: true, ..Setup::default() };
    let first = Agent::start(&lab.stage, setup)?;
    Order(Team::A, "one", json!({ "spec": { "size": 0 } })).act(&lab).await?;
    lab.stage.copy_is("the first agent works", &lab.stage.team_a, "one", |_| true).await?;
    let second = Agent::start(&lab.stage, Setup { user: User::Agent, ..setup })?;

    let service = lab.world.service_plane().faults();
    let of_first = || Match::any().user(ADMIN_AGENT);
    service.add(Rule::new(of_first(), Effect::Cut));
    service.cut_watches(&of_first());
    // Orders keep coming, so that whoever believes to be the leader has something to write.
    let started = Instant::now();
    let mut orders = 0;
    loop {
        orders += 1;
        Change(Team::A, "one", json!({ "spec": { "size": orders } })).act(&lab).await?;
        lab.create_source(&lab.stage.team_b, &format!("order-{orders}"), &json!({ "spec": { "size": 1 } })).await?;
        let copy = lab.stage.copy(&lab.stage.team_a, "one").await?.context("the copy is gone")?;
        if copy["spec"]["size"] == orders {
            break;
        }
        ensure!(started.elapsed() < PATIENCE, "nobody takes over: {:#?}", second.log());
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
    let taken_over = started.elapsed();

    let work = lab.audit.writes();
    let work: Vec<_> =
        work.iter().filter(|write| !["events", "leases"].contains(&write.ask.resource.as_str())).collect();
    let handed_over = work.iter().position(|write| write.ask.user == AGENT).context("the second one wrote nothing")?;
    let late = work[handed_over..].iter().find(|write| write.ask.user == ADMIN_AGENT);
    let late = late.map(|write| described(&write.ask, &format!("{:?}", write.server)));
    ensure!(late.is_none(), "the first agent wrote after the second one had begun: {late:?}");
    lab.stage
        .eventually("the first agent ends without its lease", async || {
            ensure!(!first.is_running(), "it goes on");
            Ok(())
        })
        .await?;
    let (before, after) = (handed_over, work.len() - handed_over);
    second.stop().await?;
    Ok(format!("{before} writes of the first agent, then {after} of the second one, taken over after {taken_over:.1?}"))
}
