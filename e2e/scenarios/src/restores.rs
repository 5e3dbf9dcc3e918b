//! Servers that were restored from a backup: what was done since is neither undone nor done again without a word.

use std::sync::{Arc, LazyLock};

use anyhow::{Context, ensure};
use carrick_client::ListOptions;
use carrick_e2e_stage::agent::{Agent, Setup, config};
use carrick_e2e_stage::kinds;
use carrick_e2e_stage::stage::{NAMESPACE, Stage, condition, shown};
use carrick_e2e_stage::world::{Side, World};
use carrick_syncagent::agent::restore::{Chosen, Finding, Look, Restored, accept, status};
use carrick_syncagent::api::{self, AFTER_RESTORE};
use carrick_syncagent::rules::AfterRestore;
use serde_json::{Value, json};

/// How many orders are created, changed and deleted after the snapshot: more with `CARRICK_WIDE=1`.
static EACH: LazyLock<usize> = LazyLock::new(|| if std::env::var_os("CARRICK_WIDE").is_some() { 50 } else { 10 });

fn name(what: &str, number: usize) -> String {
    format!("{what}-{number}")
}

/// All orders of one sort.
fn names(what: &'static str) -> impl Iterator<Item = String> {
    (0..*EACH).map(move |number| name(what, number))
}

/// Places orders of all sorts, so that a snapshot can be made.
async fn before(stage: &Stage) -> anyhow::Result<()> {
    for name in names("changed").chain(names("deleted")).chain(names("kept")) {
        stage.order(&stage.team_a, &name, json!({ "size": 1 })).await?;
    }
    for name in names("changed").chain(names("deleted")).chain(names("kept")) {
        stage.copy_is("it is placed", &stage.team_a, &name, |copy| copy["spec"]["size"] == 1).await?;
    }
    Ok(())
}

/// What happens after the snapshot.
async fn since(stage: &Stage) -> anyhow::Result<()> {
    let team = &stage.team_a;
    for name in names("changed") {
        stage.reorder(team, &name, json!({ "size": 2 })).await?;
    }
    for name in names("deleted") {
        stage.cancel(team, &name).await?;
    }
    for name in names("created") {
        stage.order(team, &name, json!({ "size": 3 })).await?;
    }
    for name in names("changed") {
        stage.copy_is("the change arrives", team, &name, |copy| copy["spec"]["size"] == 2).await?;
    }
    for name in names("deleted") {
        stage.all_gone(team, &name).await?;
    }
    for name in names("created") {
        stage.copy_is("it is placed", team, &name, |copy| copy["spec"]["size"] == 3).await?;
    }
    stage.at_rest().await?;
    Ok(())
}

/// What is on the service cluster: the size on each copy, and its UID.
async fn copies(stage: &Stage) -> anyhow::Result<Vec<(String, Value, Value)>> {
    let mut copies: Vec<(String, Value, Value)> = Vec::new();
    for copy in stage.service.list(&stage.buckets(), None, &ListOptions::default()).await? {
        let name = copy["metadata"]["annotations"][api::REMOTE_NAME].as_str().unwrap_or_default().to_owned();
        copies.push((name, copy["spec"]["size"].clone(), copy["metadata"]["uid"].clone()));
    }
    copies.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(copies)
}

/// Waits until all that went back says so.
async fn all_held(stage: &Stage) -> anyhow::Result<()> {
    for name in names("changed").chain(names("deleted")) {
        stage
            .source_is("it says that it is held", &stage.team_a, &name, |source| {
                source["metadata"]["annotations"][AFTER_RESTORE] == AfterRestore::HOLD
            })
            .await?;
    }
    Ok(())
}

/// Waits until an event tells the consumer.
async fn told(stage: &Stage, name: &str, words: &str) -> anyhow::Result<()> {
    stage
        .eventually(&format!("an event says why {name} is held"), async || {
            let events = stage.team_a.client.list(&kinds::events(), Some(NAMESPACE), &ListOptions::default()).await?;
            let about =
                |event: &&Value| event["involvedObject"]["name"] == name && event["reason"] == "HeldAfterRestore";
            let event = events.iter().find(about).context("there is no event")?;
            ensure!(event["message"].as_str().is_some_and(|text| text.contains(words)), "{}", shown(event));
            Ok(())
        })
        .await
}

/// What `carrick restore status` finds.
async fn found(stage: &Stage) -> anyhow::Result<Restored> {
    let found = status(config(stage)?, &Look::default()).await?;
    ensure!(found.incomplete.is_none(), "{found}");
    Ok(found)
}

fn of(found: &Restored, finding: Finding) -> Vec<&str> {
    let mut all: Vec<&str> =
        found.orders.iter().filter(|order| order.finding == finding).map(|order| order.object.as_str()).collect();
    all.sort_unstable();
    all
}

fn wanted(what: &'static str) -> Vec<String> {
    let mut all: Vec<String> = names(what).map(|name| format!("{NAMESPACE}/{name}")).collect();
    all.sort_unstable();
    all
}

pub(super) async fn after_kcp_went_back_nothing_is_undone_and_everything_is_named(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let stage = Stage::set(world.clone()).await?;
    let team = &stage.team_a;
    let agent = stage.start_agent()?;
    before(&stage).await?;
    stage.at_rest().await?;
    let snapshot = world.snapshot(Side::Kcp)?;
    since(&stage).await?;
    agent.stop().await?;
    let until_then = copies(&stage).await?;
    world.restore(Side::Kcp, &snapshot).await?;

    // Whoever looks before an agent runs sees what would be held, and writes nothing.
    // A real kcp that has just started does not know all its workspaces yet.
    let early = stage.eventually("the restored server has everything", async || found(&stage).await).await?;
    for (finding, what) in
        [(Finding::Older, "changed"), (Finding::Returned, "deleted"), (Finding::CopyWithoutOrder, "created")]
    {
        ensure!(of(&early, finding) == wanted(what), "{what}: {early}");
    }
    ensure!(early.orders.len() == 3 * *EACH, "{early}");
    let text = early.to_string();
    for needed in ["spec.size: 1 in kcp, 2 on the service cluster", "carrick restore accept", "kubectl delete"] {
        ensure!(text.contains(needed), "it does not say {needed}: {text}");
    }

    let agent = stage.start_agent()?;
    all_held(&stage).await?;
    for number in 0..*EACH {
        told(&stage, &name("changed", number), "keeps running as it was ordered last").await?;
        told(&stage, &name("deleted", number), "had been deleted").await?;
    }
    stage
        .object(
            "the PublishedResource names the number and the command",
            (&stage.service, &kinds::published_resources(), None, &stage.published_name("Bucket")),
            |pr| {
                let told = condition(pr, "ObjectsSynced");
                let message = told["message"].as_str().unwrap_or_default();
                told["status"] == "False"
                    && message.contains(&format!("{} orders are held", 2 * *EACH))
                    && message.contains("carrick restore status")
            },
        )
        .await?;
    stage.at_rest().await?;
    ensure!(copies(&stage).await? == until_then, "something was undone or made again: {:?}", copies(&stage).await?);
    let held = found(&stage).await?;
    ensure!(held.orders.len() == 3 * *EACH, "{held}");

    // Another restart lets nothing slip through, and writes nothing.
    agent.stop().await?;
    let agent = stage.start_agent()?;
    stage.order(team, "new", json!({ "size": 9 })).await?;
    stage.copy_is("work goes on for others", team, "new", |copy| copy["spec"]["size"] == 9).await?;
    stage.at_rest().await?;
    let now: Vec<_> = copies(&stage).await?.into_iter().filter(|(name, ..)| name != "new").collect();
    ensure!(now == until_then, "something was undone or made again after a restart: {now:?}");

    // One is let go on.
    let one = Chosen::Order { workspace: team.path.clone(), object: format!("{NAMESPACE}/changed-0") };
    let accepted = accept(config(&stage)?, &Look::default(), &one).await?;
    ensure!(accepted.let_go == 1, "{accepted:?}");
    stage.copy_is("what was accepted is carried out", team, "changed-0", |copy| copy["spec"]["size"] == 1).await?;
    // One is deleted again, and one is ordered as it was.
    stage.cancel(team, "deleted-0").await?;
    stage.all_gone(team, "deleted-0").await?;
    stage.reorder(team, "changed-1", json!({ "size": 2 })).await?;
    stage
        .source_is("what is as it was needs nobody", team, "changed-1", |source| {
            source["metadata"]["annotations"][AFTER_RESTORE].is_null()
        })
        .await?;
    stage.reorder(team, "changed-1", json!({ "size": 5 })).await?;
    stage.copy_is("and it goes on", team, "changed-1", |copy| copy["spec"]["size"] == 5).await?;
    let left = found(&stage).await?;
    ensure!(left.orders.len() == 3 * *EACH - 3, "{left}");

    // The rest of the workspace.
    let all = Chosen::Workspace(team.path.clone());
    let accepted = accept(config(&stage)?, &Look::default(), &all).await?;
    ensure!(accepted.let_go == 2 * *EACH - 3, "{accepted:?}");
    for number in 2..*EACH {
        let name = name("changed", number);
        stage.copy_is("it is carried out", team, &name, |copy| copy["spec"]["size"] == 1).await?;
    }
    for number in 1..*EACH {
        let name = name("deleted", number);
        stage.copy_is("it is made again", team, &name, |copy| copy["spec"]["size"] == 1).await?;
    }
    for name in names("created") {
        ensure!(stage.copy(team, &name).await?.is_some(), "the copy of {name} is gone");
    }
    stage
        .eventually("only copies without orders are left to decide", async || {
            let left = found(&stage).await?;
            ensure!(left.orders.iter().all(|order| order.finding == Finding::CopyWithoutOrder), "{left}");
            Ok(())
        })
        .await?;
    agent.stop().await
}

pub(super) async fn whoever_follows_carries_out_what_kcp_has(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = Stage::set(world.clone()).await?;
    let team = &stage.team_a;
    let follow = || Setup { after_restore: AfterRestore::Follow, ..Setup::default() };
    let agent = Agent::start(&stage, follow())?;
    before(&stage).await?;
    stage.at_rest().await?;
    let snapshot = world.snapshot(Side::Kcp)?;
    since(&stage).await?;
    agent.stop().await?;
    world.restore(Side::Kcp, &snapshot).await?;
    let agent = Agent::start(&stage, follow())?;
    for name in names("changed").chain(names("deleted")).chain(names("kept")) {
        stage.copy_is("it is what kcp has", team, &name, |copy| copy["spec"]["size"] == 1).await?;
    }
    for name in names("created") {
        ensure!(stage.copy(team, &name).await?.is_some(), "the copy of {name} is gone");
    }
    stage.reorder(team, "changed-0", json!({ "size": 7 })).await?;
    stage.copy_is("changes arrive", team, "changed-0", |copy| copy["spec"]["size"] == 7).await?;
    agent.stop().await
}

pub(super) async fn an_agent_that_runs_meanwhile_holds_what_went_back(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = Stage::set(world.clone()).await?;
    let team = &stage.team_a;
    let agent = stage.start_agent()?;
    before(&stage).await?;
    stage.at_rest().await?;
    let snapshot = world.snapshot(Side::Kcp)?;
    since(&stage).await?;
    let until_then = copies(&stage).await?;
    world.restore(Side::Kcp, &snapshot).await?;
    all_held(&stage).await?;
    stage.order(team, "new", json!({ "size": 9 })).await?;
    stage.copy_is("work goes on for others", team, "new", |copy| copy["spec"]["size"] == 9).await?;
    stage.at_rest().await?;
    let now: Vec<_> = copies(&stage).await?.into_iter().filter(|(name, ..)| name != "new").collect();
    ensure!(now == until_then, "something was undone or made again: {now:?}");
    let held = found(&stage).await?;
    ensure!(held.orders.len() == 3 * *EACH, "{held}");
    let accepted = accept(config(&stage)?, &Look::default(), &Chosen::All).await?;
    ensure!(accepted.let_go == 2 * *EACH, "{accepted:?}");
    for name in names("changed").chain(names("deleted")) {
        stage.copy_is("it is carried out", team, &name, |copy| copy["spec"]["size"] == 1).await?;
    }
    agent.stop().await
}

pub(super) async fn after_the_service_cluster_went_back_orders_are_carried_out_again(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let stage = Stage::set(world.clone()).await?;
    let agent = stage.start_agent()?;
    before(&stage).await?;
    stage.at_rest().await?;
    let snapshot = world.snapshot(Side::Service)?;
    since(&stage).await?;
    agent.stop().await?;
    world.restore(Side::Service, &snapshot).await?;
    // A real kcp that has just started does not know all its workspaces yet.
    let early = stage.eventually("the restored server has everything", async || found(&stage).await).await?;
    ensure!(of(&early, Finding::CopyWithoutOrder) == wanted("deleted"), "{early}");
    ensure!(early.orders.len() == *EACH, "{early}");
    let agent = stage.start_agent()?;
    carried_out_again(&stage).await?;
    agent.stop().await
}

pub(super) async fn an_agent_that_runs_meanwhile_carries_out_orders_again(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = Stage::set(world.clone()).await?;
    let agent = stage.start_agent()?;
    before(&stage).await?;
    stage.at_rest().await?;
    let snapshot = world.snapshot(Side::Service)?;
    since(&stage).await?;
    world.restore(Side::Service, &snapshot).await?;
    carried_out_again(&stage).await?;
    stage.reorder(&stage.team_a, "changed-0", json!({ "size": 8 })).await?;
    stage.copy_is("changes arrive", &stage.team_a, "changed-0", |copy| copy["spec"]["size"] == 8).await?;
    agent.stop().await
}

/// Waits until the service cluster has what was ordered; what came back without an order stays.
async fn carried_out_again(stage: &Stage) -> anyhow::Result<()> {
    let team = &stage.team_a;
    for name in names("changed") {
        stage.copy_is("the newer order is carried out again", team, &name, |copy| copy["spec"]["size"] == 2).await?;
    }
    for name in names("created") {
        stage.copy_is("its copy is made again", team, &name, |copy| copy["spec"]["size"] == 3).await?;
    }
    stage.at_rest().await?;
    for name in names("deleted") {
        let copy = stage.copy(team, &name).await?;
        ensure!(copy.is_some(), "the copy of {name}, which came back, was deleted");
    }
    for name in names("changed").chain(names("created")) {
        let source = stage.source(team, &name).await?.context("the order is gone")?;
        ensure!(source["metadata"]["annotations"][AFTER_RESTORE].is_null(), "it is held: {}", shown(&source));
    }
    let left = found(stage).await?;
    ensure!(of(&left, Finding::CopyWithoutOrder) == wanted("deleted") && left.orders.len() == *EACH, "{left}");
    Ok(())
}
