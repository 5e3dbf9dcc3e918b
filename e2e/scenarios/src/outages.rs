//! Servers that cannot be reached for a while: before the agent starts, and while it works.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use carrick_client::DeleteOptions;
use carrick_e2e_stage::agent::{Agent, Setup};
use carrick_e2e_stage::stage::{NAMESPACE, Stage, shown};
use carrick_e2e_stage::world::World;
use carrick_e2e_stage::{fixtures, kinds};
use carrick_syncagent::agent::platform_mesh::consumer::StagingRoot;
use serde_json::{Value, json};

/// How long a broker waits in vain.
const RELEASE: Duration = Duration::from_millis(300);

pub(super) async fn an_agent_that_starts_without_its_service_cluster_waits_for_it(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let stage = Stage::set(world).await?;
    let cable = stage.world.service_cable();
    cable.cut().await?;
    let agent = start(&stage)?;
    stage.not_ready(&agent, "is the service cluster running").await?;
    cable.mend().await?;
    serves(&stage, &agent).await?;
    said_once(&agent)?;
    agent.stop().await
}

pub(super) async fn an_agent_that_starts_without_kcp_waits_for_it(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = Stage::set(world).await?;
    let cable = stage.world.kcp_cable();
    cable.cut().await?;
    let agent = start(&stage)?;
    stage.not_ready(&agent, "is kcp running").await?;
    cable.mend().await?;
    serves(&stage, &agent).await?;
    said_once(&agent)?;
    agent.stop().await
}

pub(super) async fn what_happens_while_the_service_cluster_is_lost_is_caught_up_with(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    lost_and_back(world, |world| world.service_cable(), "copies of PublishedResource").await
}

pub(super) async fn what_happens_while_kcp_is_lost_is_caught_up_with(world: Arc<dyn World>) -> anyhow::Result<()> {
    lost_and_back(world, |world| world.kcp_cable(), "objects of PublishedResource").await
}

pub(super) async fn a_broker_waits_no_longer_for_a_lost_service_cluster_than_the_provider_has_said(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let stage = Stage::set(world).await?;
    let (team, staging) = (&stage.team_a, stage.team("staging").await?);
    let staged = stage.below(&staging, "staging-1").await?;
    stage.bind(&staged).await?;
    let root = StagingRoot::at(&staging.path).map_err(anyhow::Error::msg)?.releasing_after(RELEASE);
    let agent = Agent::start_behind(&stage, Setup { probes: true, ..Setup::default() }, root)?;
    for workspace in [team, &staged] {
        stage.order(workspace, "bucket", json!({ "size": 1 })).await?;
        stage.copy_is("the copy is there", workspace, "bucket", |_| true).await?;
    }
    stage.at_rest().await?;
    let cable = stage.world.service_cable();
    cable.cut().await?;
    stage.cancel(team, "bucket").await?;
    stage.cancel(&staged, "bucket").await?;
    let at = (&staged.client, &stage.buckets(), Some(NAMESPACE), "bucket");
    stage.gone("the order behind the broker is let go", at).await?;
    let kept = stage.source(team, "bucket").await?.context("an order without a broker was let go")?;
    ensure!(kept["metadata"]["deletionTimestamp"].is_string(), "{}", shown(&kept));
    cable.mend().await?;
    stage.all_gone(team, "bucket").await?;
    // What is left is reported, and not deleted.
    let wanted = format!("sync_agent_orphaned_copies{{publishedresource=\"{}\"}} 1", stage.published_name("Bucket"));
    stage
        .eventually("its copy is reported", async || {
            ensure!(agent.metrics().await?.contains(&wanted), "{wanted}");
            Ok(())
        })
        .await?;
    ensure!(stage.copy(&staged, "bucket").await?.is_some(), "its copy is gone");
    agent.stop().await
}

pub(super) async fn what_is_not_published_any_more_keeps_no_agent_from_being_ready(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let stage = Stage::bare(world).await?;
    let kinds_of_stage = ["Bucket", "Queue", "Topic"];
    for kind in kinds_of_stage {
        stage.install_crd(&fixtures::crd(&stage.group, kind)).await?;
        stage.publish(kind, json!({})).await?;
    }
    stage.create_export().await?;
    futures::try_join!(stage.bind(&stage.team_a), stage.bind(&stage.team_b))?;
    let agent = start(&stage)?;
    let team = &stage.team_a;
    for kind in kinds_of_stage {
        let kind = fixtures::kind(&stage.group, kind);
        stage.order_kind(&kind, team, "thing", json!({ "size": 1 })).await?;
        stage.copy_of_kind_is("the copy is there", (&kind, team, "thing"), |_| true).await?;
    }
    stage.ready(&agent).await?;

    // One kind goes before what published it, the other one afterwards; their orders are still there.
    let remove = async |kind: &str, of_crd: bool| {
        let published = (kinds::published_resources(), stage.published_name(kind));
        let crd = (kinds::crds(), format!("{}s.{}", kind.to_lowercase(), stage.group));
        let (resource, name) = if of_crd { crd } else { published };
        stage.service.delete(&resource, None, &name, &DeleteOptions::default()).await?;
        stage.gone(&format!("{name} is gone"), (&stage.service, &resource, None, &name)).await
    };
    // Watches that begin anew find that nothing is served there any more.
    let anew = async || {
        stage.world.service_cable().cut().await?;
        stage.not_ready(&agent, "copies of PublishedResource").await?;
        stage.world.service_cable().mend().await
    };
    remove("Queue", true).await?;
    anew().await?;
    stage.not_ready(&agent, &format!("copies of PublishedResource {}", stage.published_name("Queue"))).await?;
    remove("Queue", false).await?;
    stage.ready(&agent).await?;
    remove("Topic", false).await?;
    let at = (&team.client, &fixtures::kind(&stage.group, "Topic"), Some(NAMESPACE), "thing");
    stage.object("the order is let go", at, |order| order["metadata"]["finalizers"][0].is_null()).await?;
    remove("Topic", true).await?;
    anew().await?;
    serves(&stage, &agent).await?;
    agent.stop().await
}

pub(super) async fn work_goes_on_soon_after_a_long_outage_of_the_service_cluster(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    back_soon(world, |world| world.service_cable()).await
}

pub(super) async fn work_goes_on_soon_after_a_long_outage_of_kcp(world: Arc<dyn World>) -> anyhow::Result<()> {
    back_soon(world, |world| world.kcp_cable()).await
}

pub(super) async fn work_begins_soon_after_kcp_comes(world: Arc<dyn World>) -> anyhow::Result<()> {
    comes_late(world, |world| world.kcp_cable()).await
}

pub(super) async fn work_begins_soon_after_the_service_cluster_comes(world: Arc<dyn World>) -> anyhow::Result<()> {
    comes_late(world, |world| world.service_cable()).await
}

pub(super) async fn the_first_change_after_a_restart_of_kcp_arrives_soon(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = Stage::set(world).await?;
    let team = &stage.team_a;
    let agent = start(&stage)?;
    stage.order(team, "bucket", json!({ "size": 1 })).await?;
    stage.copy_is("the copy is there", team, "bucket", |_| true).await?;
    stage.ready(&agent).await?;
    stage.world.restart_kcp().await?;
    let begun = Instant::now();
    loop {
        match stage.reorder(team, "bucket", json!({ "size": 2 })).await {
            Ok(_) => break,
            Err(error) if begun.elapsed() > RESTART => return Err(error.context("kcp does not come back")),
            Err(_) => tokio::time::sleep(stage.world.pace().glance).await,
        }
    }
    println!("{}: kcp answered after {:.2} s", stage.id, begun.elapsed().as_secs_f64());
    let back = Instant::now();
    stage.copy_is("the change arrives", team, "bucket", |copy| copy["spec"]["size"] == 2).await?;
    soon(&stage, "the change arrived", back)?;
    stage.ready(&agent).await?;
    agent.stop().await
}

/// How long kcp may take to start on a machine that is busy.
const RESTART: Duration = Duration::from_mins(4);
/// How long an outage lasts after which an agent must still be quick: longer than pauses that grow take to become long.
const OUTAGE: Duration = Duration::from_secs(30);
/// How soon work must go on. It takes far less; this is for machines that are busy.
pub(super) const SOON: Duration = Duration::from_secs(15);
/// How often an agent may knock at the door of a server that is away.
const KNOCKS_PER_SECOND: usize = 4;

/// Takes a server away for long while there is work for it.
async fn back_soon(
    world: Arc<dyn World>,
    cable: impl Fn(&dyn World) -> &carrick_e2e_stage::cable::Cable,
) -> anyhow::Result<()> {
    let stage = Stage::set(world).await?;
    let (team, cable) = (&stage.team_a, cable(&*stage.world));
    let agent = start(&stage)?;
    let mut copies = Vec::new();
    for number in 0..10 {
        let name = format!("bucket-{number}");
        stage.order(team, &name, json!({ "size": 1 })).await?;
        copies.push((name.clone(), stage.copy_is("the copy is there", team, &name, |_| true).await?));
    }
    stage.ready(&agent).await?;
    stage.at_rest().await?;

    cable.hang_up().await?;
    for (name, copy) in &copies {
        stage.reorder(team, name, json!({ "size": 2 })).await?;
        stage.operator_reports(copy, json!({ "url": "here" })).await?;
    }
    endure(&stage, cable).await?;

    cable.mend().await?;
    let back = Instant::now();
    for (name, _) in &copies {
        stage.copy_is("the change arrives", team, name, |copy| copy["spec"]["size"] == 2).await?;
        stage.source_is("the status returns", team, name, |s| s["status"]["url"] == "here").await?;
    }
    soon(&stage, "everything was caught up with", back)?;
    stage.ready(&agent).await?;
    agent.stop().await
}

/// Starts an agent long before one of its servers.
async fn comes_late(
    world: Arc<dyn World>,
    cable: impl Fn(&dyn World) -> &carrick_e2e_stage::cable::Cable,
) -> anyhow::Result<()> {
    let stage = Stage::set(world).await?;
    let (team, cable) = (&stage.team_a, cable(&*stage.world));
    // Another agent publishes the API before: how long kcp takes to serve it is not the question.
    let first = stage.start_agent()?;
    stage.order(team, "bucket", json!({ "size": 1 })).await?;
    stage.copy_is("the copy is there", team, "bucket", |_| true).await?;
    first.stop().await?;

    cable.hang_up().await?;
    let agent = start(&stage)?;
    stage.reorder(team, "bucket", json!({ "size": 2 })).await?;
    endure(&stage, cable).await?;
    cable.mend().await?;
    let back = Instant::now();
    stage.copy_is("the change arrives", team, "bucket", |copy| copy["spec"]["size"] == 2).await?;
    soon(&stage, "the change arrived", back)?;
    agent.stop().await
}

/// Lets an outage last, and sees that the server that is away is not knocked at too often.
async fn endure(stage: &Stage, cable: &carrick_e2e_stage::cable::Cable) -> anyhow::Result<()> {
    let (begun, before) = (Instant::now(), cable.hung_up_on());
    // Time is what an outage is made of: there is nothing else to wait for.
    tokio::time::sleep(OUTAGE).await;
    let (knocks, seconds) = (cable.hung_up_on() - before, begun.elapsed().as_secs_f64());
    println!("{}: {knocks} attempts to connect in an outage of {seconds:.1} s", stage.id);
    let most = OUTAGE.as_secs().try_into().unwrap_or(usize::MAX).saturating_mul(KNOCKS_PER_SECOND);
    ensure!(knocks > 0, "the agent does not look whether the server is back");
    ensure!(knocks <= most, "{knocks} attempts to connect in {seconds:.1} s");
    Ok(())
}

/// Tells how long something took, which must not be long.
pub(super) fn soon(stage: &Stage, what: &str, since: Instant) -> anyhow::Result<()> {
    let took = since.elapsed();
    println!("{}: {what} after {:.2} s", stage.id, took.as_secs_f64());
    ensure!(took < SOON, "{what} only after {took:?}");
    Ok(())
}

/// Cuts a cable under a working agent, changes things on both sides, and mends it.
async fn lost_and_back(
    world: Arc<dyn World>,
    cable: impl Fn(&dyn World) -> &carrick_e2e_stage::cable::Cable,
    cause: &str,
) -> anyhow::Result<()> {
    let stage = Stage::set(world).await?;
    let (team, cable) = (&stage.team_a, cable(&*stage.world));
    // One agent publishes the API, which makes it open its watches anew; the next one finds everything in place.
    let first = stage.start_agent()?;
    stage.order(team, "untouched", json!({ "size": 1 })).await?;
    first.stop().await?;
    let agent = start(&stage)?;
    let mut before = Vec::new();
    for name in ["untouched", "changed", "reported"] {
        stage.order(team, name, json!({ "size": 1 })).await?;
        before.push((name, stage.copy_is("the copy is there", team, name, |_| true).await?));
    }
    stage.order(team, "cancelled", json!({ "size": 1 })).await?;
    stage.copy_is("the copy is there", team, "cancelled", |_| true).await?;
    stage.ready(&agent).await?;
    stage.at_rest().await?;

    cable.cut().await?;
    stage.not_ready(&agent, cause).await?;
    stage.reorder(team, "changed", json!({ "size": 2 })).await?;
    stage.operator_reports(&before[2].1, json!({ "url": "here" })).await?;
    stage.cancel(team, "cancelled").await?;
    stage.order(team, "new", json!({ "size": 5 })).await?;
    // By now the agent has seen what it can see, and must not draw wrong conclusions.
    stage.at_rest().await?;
    ensure!(agent.is_running(), "the agent has given up");
    same_copies(&stage, &before).await.context("while the server is lost")?;
    stage.copy(team, "cancelled").await?.context("the cancelled order's copy is gone too early")?;

    cable.mend().await?;
    stage.copy_is("the change arrives", team, "changed", |copy| copy["spec"]["size"] == 2).await?;
    stage.source_is("the status returns", team, "reported", |s| s["status"]["url"] == "here").await?;
    stage.all_gone(team, "cancelled").await?;
    stage.copy_is("the new order is placed", team, "new", |copy| copy["spec"]["size"] == 5).await?;
    same_copies(&stage, &before).await.context("after the server is back")?;
    serves(&stage, &agent).await?;
    said_once(&agent)?;
    agent.stop().await
}

fn start(stage: &Stage) -> anyhow::Result<Agent> {
    Agent::start(stage, Setup { probes: true, ..Setup::default() })
}

/// The agent carries an order there and back, and says that it is ready.
async fn serves(stage: &Stage, agent: &Agent) -> anyhow::Result<()> {
    let team = &stage.team_b;
    stage.order(team, "probe", json!({ "size": 1 })).await?;
    let copy = stage.copy_is("the copy is there", team, "probe", |_| true).await?;
    stage.operator_reports(&copy, json!({ "url": "here" })).await?;
    stage.source_is("the status returns", team, "probe", |s| s["status"]["url"] == "here").await?;
    stage.ready(agent).await
}

/// Every copy is still the same object.
async fn same_copies(stage: &Stage, before: &[(&str, Value)]) -> anyhow::Result<()> {
    for (name, copy) in before {
        let now = stage.copy(&stage.team_a, name).await?.with_context(|| format!("the copy of {name} is gone"))?;
        ensure!(now["metadata"]["uid"] == copy["metadata"]["uid"], "{name} is another copy: {}", shown(&now));
        ensure!(now["metadata"]["deletionTimestamp"].is_null(), "the copy of {name} goes: {}", shown(&now));
    }
    Ok(())
}

/// The agent tells that it cannot connect, and nothing about that twice.
fn said_once(agent: &Agent) -> anyhow::Result<()> {
    let log = agent.log();
    let troubles = log.iter().filter(|line| line.contains("client error (Connect)"));
    // The pause until the next attempt tells attempts apart, not troubles.
    let mut troubles: Vec<&str> = troubles.map(|line| line.split(" retry=").next().unwrap_or(line)).collect();
    ensure!(!troubles.is_empty(), "the agent has said nothing: {log:#?}");
    troubles.sort_unstable();
    let twice = troubles.windows(2).find(|pair| pair[0] == pair[1]);
    ensure!(twice.is_none(), "said more than once: {twice:?} in {log:#?}");
    Ok(())
}
