//! Two agents with one lease never write both, not even when the leader is cut off from the lease and does not know it.

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use carrick_e2e_stage::agent::{Agent, Setup};
use carrick_e2e_stage::kinds;
use carrick_e2e_stage::rights::grant;
use carrick_e2e_stage::world::{ADMIN_AGENT, AGENT, EmbeddedWorld, User};
use carrick_kcp::kinds::API_EXPORT;
use carrick_plane::Mode;
use carrick_plane::faults::{Effect, Match, Rule};
use carrick_syncagent::api;
use serde_json::json;

use super::audit::Write;
use super::deed::Deed::{Change, Order};
use super::deed::Team;
use super::flows;
use super::lab::Lab;
use super::switch::described;

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
        if lab.audit.writes().iter().any(|write| is_work(write) && write.ask.user == AGENT) {
            break;
        }
        ensure!(started.elapsed() < PATIENCE, "nobody takes over: {:#?}", second.log());
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
    let taken_over = started.elapsed();
    lab.stage
        .copy_is("the second agent works", &lab.stage.team_a, "one", |copy| copy["spec"]["size"] == orders)
        .await?;

    let work: Vec<Write> = lab.audit.writes().into_iter().filter(is_work).collect();
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

/// Whether it is what only a leader may write.
fn is_work(write: &Write) -> bool {
    !["events", "leases"].contains(&write.ask.resource.as_str())
}

/// An agent that is told to stop while a server takes its time with a write. If the answer comes in time, the lease is released after it;
/// otherwise it is left to expire, so that whatever arrives late arrives before anybody else may write.
pub async fn stopped_in_the_middle_of_a_write() -> anyhow::Result<String> {
    let soon = stopped_during(Duration::from_secs(3)).await.context("a write that is answered in time")?;
    ensure!(soon.copy, "the lease was released before the write was done");
    ensure!(soon.holder.is_empty(), "the lease is still held by {:?} although all was done", soon.holder);
    let late = stopped_during(Duration::from_secs(40)).await.context("a write that is not answered in time")?;
    ensure!(!late.copy, "the write was done already");
    ensure!(!late.holder.is_empty(), "the lease was released while a write was under way");
    Ok("released after the answer, and kept without one".to_owned())
}

/// An agent that is stopped while it writes the status of a PublishedResource, or the APIExport: the write is waited for as well, and the lease is released.
pub async fn stopped_in_the_middle_of_a_report() -> anyhow::Result<String> {
    let published = ("a PublishedResource", Mode::Kube, api::GROUP, "publishedresources");
    let export = ("the APIExport", Mode::Kcp, "apis.kcp.io", "apiexports");
    for (what, server, group, plural) in [published, export] {
        let lab = Lab::bare(EmbeddedWorld::start().await?, flows::plain(), None).await?;
        lab.flow.publish(&lab.stage).await?;
        let agent = Agent::start(&lab.stage, Setup { leader_election: true, ..Setup::default() })?;
        Order(Team::A, "first", json!({ "spec": { "size": 1 } })).act(&lab).await?;
        lab.stage.copy_is("the agent works", &lab.stage.team_a, "first", |_| true).await?;
        let plane = if server == Mode::Kcp { lab.world.kcp_plane() } else { lab.world.service_plane() };
        let slow = plane.faults().add(Rule::new(
            Match::writes().user(ADMIN_AGENT).resource(group, plural),
            Effect::delay(Duration::from_millis(700)),
        ));
        // The status of a PublishedResource names the generation that it is about, and the export is mended.
        let name = lab.stage.published_name("Bucket");
        let (change, nothing) =
            (json!({ "spec": { "feedback": "Annotations" } }), json!({ "spec": { "latestResourceSchemas": [] } }));
        let (exports, provider) = (kinds::kcp(&API_EXPORT), &lab.stage.provider.client);
        lab.stage.service.merge_patch(&kinds::published_resources(), None, &name, &change).await?;
        provider.merge_patch(&exports, None, lab.stage.export_name(), &nothing).await?;
        lab.stage
            .eventually("the write is under way", async || {
                ensure!(plane.faults().hits(slow) > 0, "it is not");
                Ok(())
            })
            .await?;
        agent.stop().await?;
        let holder = holder(&lab).await?;
        ensure!(holder.is_empty(), "{holder:?} was stopped while it wrote {what}, and still holds the lease");
    }
    Ok("released after the answer".to_owned())
}

/// What is there after an agent has ended.
struct Left {
    /// Whether the write was done.
    copy: bool,
    /// Who holds the lease.
    holder: String,
}

async fn stopped_during(delay: Duration) -> anyhow::Result<Left> {
    let lab = Lab::bare(EmbeddedWorld::start().await?, flows::plain(), None).await?;
    lab.flow.publish(&lab.stage).await?;
    let agent = Agent::start(&lab.stage, Setup { leader_election: true, ..Setup::default() })?;
    Order(Team::A, "first", json!({ "spec": { "size": 1 } })).act(&lab).await?;
    lab.stage.copy_is("the agent works", &lab.stage.team_a, "first", |_| true).await?;
    let service = lab.world.service_plane().faults();
    let create = Match::any().user(ADMIN_AGENT).verbs(&["create"]).resource(&lab.stage.group, "buckets");
    let slow = service.add(Rule::new(create, Effect::delay(delay)));
    Order(Team::A, "one", json!({ "spec": { "size": 1 } })).act(&lab).await?;
    lab.stage
        .eventually("the write is under way", async || {
            ensure!(service.hits(slow) > 0, "it is not");
            Ok(())
        })
        .await?;
    agent.stop().await?;
    let copy = lab.stage.copy(&lab.stage.team_a, "one").await?.is_some();
    Ok(Left { copy, holder: holder(&lab).await? })
}

/// Who holds the lease; empty if nobody does.
async fn holder(lab: &Lab) -> anyhow::Result<String> {
    let name = format!("syncagent.{}", lab.stage.agent_name());
    let lease = lab.stage.service.get(&kinds::leases(), Some(&lab.stage.agent_namespace()), &name).await?;
    let lease = lease.context("there is no lease")?;
    Ok(lease["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned())
}
