//! Orders that rest because somebody said so: nothing is written that the pause forbids, and its end brings the newest state.

use std::sync::Arc;

use anyhow::{Context, ensure};
use carrick_client::{Client, ListOptions};
use carrick_e2e_stage::agent::{Agent, Setup, config};
use carrick_e2e_stage::stage::{NAMESPACE, Stage, condition, place, shown};
use carrick_e2e_stage::world::World;
use carrick_e2e_stage::{fixtures, kinds};
use carrick_syncagent::agent::explain::{Question, explain};
use carrick_syncagent::api::{FINALIZER, PAUSE};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

/// Writes the annotation on a copy, or removes it.
async fn pause_copy(stage: &Stage, copy: &Value, value: Option<&str>) -> anyhow::Result<()> {
    let ((namespace, name), patch) = (place(copy), json!({ "metadata": { "annotations": { PAUSE: value } } }));
    stage.service.merge_patch(&stage.buckets(), Some(namespace), name, &patch).await?;
    Ok(())
}

/// The same on the order of the first team.
async fn pause_order(stage: &Stage, name: &str, value: Option<&str>) -> anyhow::Result<()> {
    let patch = json!({ "metadata": { "annotations": { PAUSE: value } } });
    stage.team_a.client.merge_patch(&stage.buckets(), Some(NAMESPACE), name, &patch).await?;
    Ok(())
}

/// A Bucket that is placed.
async fn placed(stage: &Stage, name: &str) -> anyhow::Result<Value> {
    stage.order(&stage.team_a, name, json!({ "size": 1 })).await?;
    stage.copy_is("it is placed", &stage.team_a, name, |copy| copy["spec"]["size"] == 1).await
}

/// Waits until an event says so.
async fn reported(stage: &Stage, client: &Client, (reason, words): (&str, &str)) -> anyhow::Result<()> {
    stage
        .eventually(&format!("an event {reason} says {words:?}"), async || {
            let events = client.list(&kinds::events(), None, &ListOptions::default()).await?;
            let is_it = |event: &Value| {
                event["reason"] == reason && event["message"].as_str().is_some_and(|text| text.contains(words))
            };
            ensure!(events.iter().any(is_it), "none of {}", events.iter().map(shown).collect::<Vec<_>>().join("\n"));
            Ok(())
        })
        .await
}

/// Waits until the PublishedResource says so of its paused objects.
async fn counted(stage: &Stage, words: &str) -> anyhow::Result<()> {
    let name = stage.published_name("Bucket");
    let at = (&stage.service, &kinds::published_resources(), None, name.as_str());
    let says = |it: &Value| {
        let synced = condition(it, "ObjectsSynced");
        synced["status"] == "True" && synced["message"].as_str().is_some_and(|text| text.contains(words))
    };
    stage.object(&format!("ObjectsSynced says {words:?}"), at, says).await?;
    Ok(())
}

/// What `carrick explain` says of an order.
async fn explained(stage: &Stage, name: &str) -> anyhow::Result<String> {
    let question = Question { object: Some(format!("{NAMESPACE}/{name}")), ..Question::default() };
    let report = explain(config(stage)?, &question).await?;
    let mut all = report.published_resources.iter().flat_map(|published| &published.objects);
    let plan = all.next().and_then(|it| it.plan.as_ref()).with_context(|| format!("no plan: {report}"))?;
    Ok(plan.why.clone())
}

/// What an agent's metric of paused objects says.
async fn metric(stage: &Stage, agent: &Agent, count: usize) -> anyhow::Result<()> {
    let wanted =
        format!("sync_agent_paused_objects{{publishedresource=\"{}\"}} {count}", stage.published_name("Bucket"));
    stage
        .eventually(&format!("the metric says {count}"), async || {
            let page = agent.metrics().await?;
            ensure!(page.contains(&wanted), "{}", page.lines().filter(|it| it.contains("paused")).collect::<String>());
            Ok(())
        })
        .await
}

pub(super) async fn what_a_pause_names_rests_and_its_end_brings_the_newest_state(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let stage = Stage::set(world).await?;
    let (team, agent) = (&stage.team_a, Agent::start(&stage, Setup { probes: true, ..Setup::default() })?);
    // Each of them is changed on both sides while it rests: what arrives of size and state?
    let cases =
        [("spec", "Spec", (1, true)), ("status", "Status", (3, false)), ("all", "All; because=disks move", (1, false))];
    let mut copies = Vec::new();
    for (name, value, _) in cases {
        let copy = placed(&stage, name).await?;
        pause_copy(&stage, &copy, Some(value)).await?;
        copies.push(copy);
    }
    metric(&stage, &agent, 3).await?;
    for ((name, ..), copy) in cases.iter().zip(&copies) {
        stage.reorder(team, name, json!({ "size": 2 })).await?;
        stage.reorder(team, name, json!({ "size": 3 })).await?;
        stage.operator_reports(copy, json!({ "ready": true })).await?;
    }
    stage.copy_is("what is not paused arrives", team, "status", |copy| copy["spec"]["size"] == 3).await?;
    stage.source_is("and so does a status", team, "spec", |it| it["status"]["ready"] == true).await?;
    stage.at_rest().await?;
    for (name, value, (size, ready)) in cases {
        let copy = stage.copy(team, name).await?.context("the copy is gone")?;
        let source = stage.source(team, name).await?.context("the order is gone")?;
        ensure!(copy["spec"]["size"] == size, "{value}: {}", shown(&copy));
        ensure!((source["status"]["ready"] == true) == ready, "{value}: {}", shown(&source));
        ensure!(source["metadata"]["annotations"].get(PAUSE).is_none(), "it has crossed: {}", shown(&source));
    }
    // Everybody can see it, and nothing counts as a failure.
    let why = explained(&stage, "all").await?;
    ensure!(why.starts_with("paused: All by its provider because: disks move; "), "{why}");
    counted(&stage, "No object fails. 3 objects are paused, the first is ").await?;

    // A restart changes nothing about it.
    let before = stage.at_rest().await?;
    agent.stop().await?;
    let agent = Agent::start(&stage, Setup { probes: true, ..Setup::default() })?;
    metric(&stage, &agent, 3).await?;
    let changed = carrick_e2e_stage::stage::changes(&before, &stage.at_rest().await?);
    ensure!(changed.is_empty(), "a restart changed {changed:?}");

    for ((name, ..), copy) in cases.iter().zip(&copies) {
        pause_copy(&stage, copy, None).await?;
        stage.copy_is("the newest content arrives", team, name, |copy| copy["spec"]["size"] == 3).await?;
        stage.source_is("and the newest status", team, name, |it| it["status"]["ready"] == true).await?;
    }
    metric(&stage, &agent, 0).await?;
    stage
        .eventually("nothing is reported as paused", async || {
            let name = stage.published_name("Bucket");
            let it = stage.service.get(&kinds::published_resources(), None, &name).await?.context("it is gone")?;
            ensure!(condition(&it, "ObjectsSynced")["message"] == "No object fails.", "{}", shown(&it));
            Ok(())
        })
        .await?;
    agent.stop().await
}

pub(super) async fn a_pause_ends_when_its_time_has_come(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = Stage::set(world).await?;
    let (team, agent) = (&stage.team_a, Agent::start(&stage, Setup { probes: true, ..Setup::default() })?);
    let copy = placed(&stage, "bucket").await?;
    // Long enough to be seen on a slow machine.
    let until = Timestamp::now() + SignedDuration::from_secs(12);
    pause_copy(&stage, &copy, Some(&format!("All; until={until}"))).await?;
    metric(&stage, &agent, 1).await?;
    stage.reorder(team, "bucket", json!({ "size": 2 })).await?;
    let copy = stage.copy_is("the change arrives", team, "bucket", |copy| copy["spec"]["size"] == 2).await?;
    // Whole seconds count.
    let second = Timestamp::from_second(until.as_second())?;
    ensure!(Timestamp::now() >= second, "it was not paused until {until}: {}", shown(&copy));
    ensure!(
        copy["metadata"]["annotations"].get(PAUSE).is_some(),
        "nobody has touched the annotation: {}",
        shown(&copy)
    );
    agent.stop().await
}

pub(super) async fn a_deletion_waits_for_the_end_of_a_pause_of_everything(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = Stage::set(world).await?;
    let (team, agent) = (&stage.team_a, Agent::start(&stage, Setup { probes: true, ..Setup::default() })?);
    let copy = placed(&stage, "bucket").await?;
    pause_copy(&stage, &copy, Some("All; because=ticket 7")).await?;
    metric(&stage, &agent, 1).await?;
    stage.reorder(team, "bucket", json!({ "size": 2 })).await?;
    stage.cancel(team, "bucket").await?;
    let words = "paused: All by its provider because: ticket 7";
    reported(&stage, &team.client, ("Paused", words)).await?;
    stage.at_rest().await?;
    let source = stage.source(team, "bucket").await?.context("the order is gone")?;
    let copy = stage.copy(team, "bucket").await?.context("the copy is gone")?;
    ensure!(source["metadata"]["finalizers"] == json!([FINALIZER]), "{}", shown(&source));
    ensure!(copy["metadata"].get("deletionTimestamp").is_none() && copy["spec"]["size"] == 1, "{}", shown(&copy));
    // With anything less it is carried out.
    pause_copy(&stage, &copy, Some("Spec")).await?;
    stage.all_gone(team, "bucket").await?;
    agent.stop().await
}

pub(super) async fn consumers_pause_their_orders_where_the_provider_lets_them(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let stage = Stage::bound(world, |group| fixtures::crd(group, "Bucket")).await?;
    stage.publish("Bucket", json!({})).await?;
    let (team, agent) = (&stage.team_a, stage.start_agent()?);
    placed(&stage, "bucket").await?;
    pause_order(&stage, "bucket", Some("Spec")).await?;
    stage.reorder(team, "bucket", json!({ "size": 2 })).await?;
    stage.copy_is("her word does not count", team, "bucket", |copy| copy["spec"]["size"] == 2).await?;

    let (name, patch) = (stage.published_name("Bucket"), json!({ "spec": { "pause": "Both" } }));
    stage.service.merge_patch(&kinds::published_resources(), None, &name, &patch).await?;
    counted(&stage, "1 object is paused").await?;
    stage.reorder(team, "bucket", json!({ "size": 3 })).await?;
    stage.at_rest().await?;
    let copy = stage.copy(team, "bucket").await?.context("the copy is gone")?;
    ensure!(copy["spec"]["size"] == 2 && copy["metadata"]["annotations"].get(PAUSE).is_none(), "{}", shown(&copy));
    // What cannot be read pauses the content too, and says so.
    pause_order(&stage, "bucket", Some("for a while")).await?;
    reported(&stage, &team.client, ("PauseUnreadable", "\"for a while\" is none of Spec, Status and All")).await?;
    stage.at_rest().await?;
    let copy = stage.copy(team, "bucket").await?.context("the copy is gone")?;
    ensure!(copy["spec"]["size"] == 2, "{}", shown(&copy));
    pause_copy(&stage, &copy, Some("until tomorrow")).await?;
    reported(&stage, &stage.service, ("PauseUnreadable", "\"until tomorrow\" is none of")).await?;
    pause_order(&stage, "bucket", None).await?;
    pause_copy(&stage, &copy, None).await?;
    stage.copy_is("it goes on", team, "bucket", |copy| copy["spec"]["size"] == 3).await?;
    agent.stop().await
}
