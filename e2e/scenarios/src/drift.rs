//! What others change of copies: ignored, reported or set back, as the provider says.

use std::sync::Arc;

use anyhow::{Context, ensure};
use carrick_client::ListOptions;
use carrick_e2e_stage::agent::{Agent, Setup, config};
use carrick_e2e_stage::stage::{NAMESPACE, Stage, changes, condition, place, shown};
use carrick_e2e_stage::world::World;
use carrick_e2e_stage::{fixtures, kinds};
use carrick_syncagent::agent::explain::{Question, explain};
use carrick_syncagent::api::PAUSE;
use carrick_syncagent::decide::{DriftState, ExplainedField};
use serde_json::{Value, json};

use super::related::encoded;

fn probes(apply: bool) -> Setup {
    Setup { probes: true, apply, ..Setup::default() }
}

/// Buckets with a default.
fn with_default(group: &str) -> Value {
    let mut crd = fixtures::crd(group, "Bucket");
    let spec = &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"];
    spec["class"] = json!({ "type": "string", "default": "standard" });
    crd
}

/// A stage whose Buckets are published with this in the spec.
async fn published(world: Arc<dyn World>, spec: Value) -> anyhow::Result<Stage> {
    let stage = Stage::bound(world, with_default).await?;
    stage.publish("Bucket", spec).await?;
    Ok(stage)
}

/// A Bucket that is placed.
async fn placed(stage: &Stage, name: &str) -> anyhow::Result<Value> {
    stage.order(&stage.team_a, name, json!({ "size": 1, "region": "eu" })).await?;
    stage.copy_is("it is placed", &stage.team_a, name, |copy| copy["spec"]["size"] == 1).await
}

/// Somebody else changes a copy.
async fn meddle(stage: &Stage, copy: &Value, spec: Value) -> anyhow::Result<()> {
    let ((namespace, name), client) = (place(copy), stage.service.writing_as("meddler"));
    client.merge_patch(&stage.buckets(), Some(namespace), name, &json!({ "spec": spec })).await?;
    Ok(())
}

/// Waits until an event on the service cluster says so.
async fn reported(stage: &Stage, copy: &Value, (reason, words): (&str, &str)) -> anyhow::Result<()> {
    let (namespace, name) = place(copy);
    stage
        .eventually(&format!("an event {reason} on {name} says {words:?}"), async || {
            let events = stage.service.list(&kinds::events(), Some(namespace), &ListOptions::default()).await?;
            let is_it = |event: &Value| {
                event["reason"] == reason
                    && event["involvedObject"]["name"] == name
                    && event["message"].as_str().is_some_and(|text| text.contains(words))
            };
            ensure!(events.iter().any(is_it), "none of {}", events.iter().map(shown).collect::<Vec<_>>().join("\n"));
            Ok(())
        })
        .await
}

/// Waits until condition `DriftFree` says so.
async fn condition_says(stage: &Stage, status: &str, words: &str) -> anyhow::Result<()> {
    let name = stage.published_name("Bucket");
    let at = (&stage.service, &kinds::published_resources(), None, name.as_str());
    let says = |it: &Value| {
        let free = condition(it, "DriftFree");
        free["status"] == status && free["message"].as_str().is_some_and(|text| text.contains(words))
    };
    stage.object(&format!("DriftFree is {status} and says {words:?}"), at, says).await?;
    Ok(())
}

/// Waits until the metric of drifted objects says so.
async fn metric(stage: &Stage, agent: &Agent, count: usize) -> anyhow::Result<()> {
    let name = stage.published_name("Bucket");
    let wanted = format!("sync_agent_drifted_objects{{publishedresource=\"{name}\"}} {count}");
    stage
        .eventually(&format!("the metric says {count}"), async || {
            let page = agent.metrics().await?;
            ensure!(page.contains(&wanted), "{}", page.lines().filter(|it| it.contains("drifted")).collect::<String>());
            Ok(())
        })
        .await
}

/// What `carrick drift` finds of an order: nothing if nobody looks.
async fn found(stage: &Stage, name: &str) -> anyhow::Result<Option<Vec<ExplainedField>>> {
    let question = Question { object: Some(format!("{NAMESPACE}/{name}")), ..Question::default() };
    let report = explain(config(stage)?, &question).await?;
    let mut all = report.published_resources.iter().flat_map(|published| &published.objects);
    let plan = all.next().and_then(|it| it.plan.as_ref()).with_context(|| format!("no plan: {report}"))?;
    Ok(plan.drift.as_ref().map(|copies| copies.iter().flat_map(|copy| copy.fields.clone()).collect()))
}

/// The size on the copy of a Bucket, now.
async fn size(stage: &Stage, name: &str) -> anyhow::Result<Value> {
    Ok(stage.copy(&stage.team_a, name).await?.context("the copy is gone")?["spec"]["size"].clone())
}

pub(super) async fn a_changed_field_is_reported_with_who_changed_it(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = published(world, json!({ "drift": { "policy": "Report" } })).await?;
    let (team, agent) = (&stage.team_a, Agent::start(&stage, probes(false))?);
    let copy = placed(&stage, "bucket").await?;
    condition_says(&stage, "True", "Nobody else has changed").await?;
    stage.at_rest().await?;
    ensure!(found(&stage, "bucket").await? == Some(Vec::new()), "there is no drift yet");

    meddle(&stage, &copy, json!({ "size": 7 })).await?;
    reported(&stage, &copy, ("Drifted", "spec.size (meddler)")).await?;
    metric(&stage, &agent, 1).await?;
    condition_says(&stage, "False", "1 copy was changed by others").await?;
    condition_says(&stage, "False", "spec.size (meddler)").await?;
    let fields = found(&stage, "bucket").await?.unwrap_or_default();
    let wanted = ExplainedField {
        path: "spec.size".to_owned(),
        manager: Some("meddler".to_owned()),
        state: DriftState::Reported,
        ordered: Some("1".to_owned()),
        found: Some("7".to_owned()),
    };
    ensure!(fields == [wanted], "{fields:?}");

    // A change of another field does not hide it.
    stage.reorder(team, "bucket", json!({ "size": 1, "region": "us" })).await?;
    stage.copy_is("the change arrives", team, "bucket", |copy| copy["spec"]["region"] == "us").await?;
    let before = stage.at_rest().await?;
    ensure!(size(&stage, "bucket").await? == 7, "it was set back although it is only reported");

    // A restart reports the same, and writes nothing.
    agent.stop().await?;
    let agent = Agent::start(&stage, probes(false))?;
    metric(&stage, &agent, 1).await?;
    let changed = changes(&before, &stage.at_rest().await?);
    ensure!(changed.is_empty(), "a restart changed {changed:?}");
    condition_says(&stage, "False", "spec.size (meddler)").await?;

    // The order has the last word.
    stage.reorder(team, "bucket", json!({ "size": 2 })).await?;
    stage.copy_is("the order's size arrives", team, "bucket", |copy| copy["spec"]["size"] == 2).await?;
    metric(&stage, &agent, 0).await?;
    condition_says(&stage, "True", "Nobody else has changed").await?;
    agent.stop().await
}

pub(super) async fn what_a_server_makes_of_values_is_no_drift(world: Arc<dyn World>) -> anyhow::Result<()> {
    // A default of the service cluster, and a field that its schema does not have and drops.
    let mutation = json!({ "spec": [{ "template": { "path": "spec.odd", "template": "dropped" } }] });
    let stage = published(world, json!({ "drift": { "policy": "Revert" }, "mutation": mutation })).await?;
    let (team, agent) = (&stage.team_a, Agent::start(&stage, probes(false))?);
    let copy = placed(&stage, "bucket").await?;
    ensure!(copy["spec"]["class"] == "standard" && copy["spec"].get("odd").is_none(), "{}", shown(&copy));
    for size in 2..4 {
        stage.reorder(team, "bucket", json!({ "size": size })).await?;
        stage.copy_is("the change arrives", team, "bucket", |copy| copy["spec"]["size"] == size).await?;
    }
    condition_says(&stage, "True", "Nobody else has changed").await?;
    // What only the copy has is nobody's drift either.
    meddle(&stage, &copy, json!({ "class": "fast", "owner": "me" })).await?;
    let before = stage.at_rest().await?;
    ensure!(found(&stage, "bucket").await? == Some(Vec::new()), "something has drifted");
    agent.stop().await?;
    let agent = Agent::start(&stage, probes(false))?;
    stage.order(&stage.team_b, "probe", json!({ "size": 1 })).await?;
    stage.copy_is("the agent is at work", &stage.team_b, "probe", |_| true).await?;
    stage.cancel(&stage.team_b, "probe").await?;
    stage.all_gone(&stage.team_b, "probe").await?;
    let is_probe = |line: &String| line.contains("/probe") || line.contains("/ended-orders-");
    let changed = changes(&before, &stage.at_rest().await?);
    let changed: Vec<String> = changed.into_iter().filter(|line| !is_probe(line)).collect();
    ensure!(changed.is_empty(), "a restart changed {changed:?}");
    metric(&stage, &agent, 0).await?;
    agent.stop().await
}

async fn sets_back_and_contests(world: Arc<dyn World>, apply: bool) -> anyhow::Result<()> {
    let drift = json!({ "policy": "Report", "fields": [{ "path": "spec.size", "policy": "Revert" }] });
    let stage = published(world, json!({ "drift": drift })).await?;
    let (team, agent) = (&stage.team_a, Agent::start(&stage, probes(apply))?);
    let copy = placed(&stage, "bucket").await?;
    stage.at_rest().await?;
    for round in 0..3 {
        meddle(&stage, &copy, json!({ "size": 7 + round, "region": "mars" })).await?;
        let back = |copy: &Value| copy["spec"]["size"] == 1;
        let copy = stage.copy_is("the size is set back", team, "bucket", back).await?;
        ensure!(copy["spec"]["region"] == "mars", "what is only reported was set back too: {}", shown(&copy));
        reported(&stage, &copy, ("DriftReverted", "spec.size (meddler)")).await?;
    }
    reported(&stage, &copy, ("Drifted", "spec.region (meddler)")).await?;
    // No fight lasts.
    meddle(&stage, &copy, json!({ "size": 70 })).await?;
    reported(&stage, &copy, ("DriftContested", "spec.size (meddler)")).await?;
    condition_says(&stage, "False", "1 of them contested").await?;
    let before = stage.at_rest().await?;
    ensure!(size(&stage, "bucket").await? == 70, "it was set back a fourth time");
    if !apply {
        let fields = found(&stage, "bucket").await?.unwrap_or_default();
        ensure!(fields.len() == 2 && fields.iter().all(|it| it.state == DriftState::Contested), "{fields:?}");
    }
    // A restart does not begin the count again.
    agent.stop().await?;
    let agent = Agent::start(&stage, probes(apply))?;
    metric(&stage, &agent, 1).await?;
    let changed = changes(&before, &stage.at_rest().await?);
    ensure!(changed.is_empty(), "a restart changed {changed:?}");
    // The order can still change it.
    stage.reorder(team, "bucket", json!({ "size": 2 })).await?;
    stage.copy_is("the order's size arrives", team, "bucket", |copy| copy["spec"]["size"] == 2).await?;
    agent.stop().await
}

pub(super) async fn a_field_is_set_back_three_times_and_then_contested(world: Arc<dyn World>) -> anyhow::Result<()> {
    sets_back_and_contests(world, false).await
}

pub(super) async fn the_same_where_copies_are_applied(world: Arc<dyn World>) -> anyhow::Result<()> {
    sets_back_and_contests(world, true).await
}

pub(super) async fn whoever_ignores_drift_pays_nothing_for_it(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = published(world, json!({})).await?;
    let agent = Agent::start(&stage, probes(false))?;
    let copy = placed(&stage, "bucket").await?;
    let before = stage.at_rest().await?;
    meddle(&stage, &copy, json!({ "size": 7 })).await?;
    let after = stage.at_rest().await?;
    let name = place(&copy).1;
    let changed = changes(&before, &after);
    // How many there are may be reported late.
    let is_meant = |line: &String| line.contains(name) || line.contains(" publishedresources.");
    ensure!(!changed.is_empty() && changed.iter().all(is_meant), "{changed:?}");
    let state = stage.remembered_of(&stage.team_a, "bucket").await?.context("nothing is remembered")?;
    let keys: Vec<&String> = state["data"].as_object().into_iter().flatten().map(|(key, _)| key).collect();
    ensure!(!keys.iter().any(|key| key.contains(".seen")), "{keys:?}");
    let it = stage.service.get(&kinds::published_resources(), None, &stage.published_name("Bucket")).await?;
    ensure!(condition(&it.context("it is gone")?, "DriftFree").is_null(), "nobody asked for it");
    ensure!(size(&stage, "bucket").await? == 7 && found(&stage, "bucket").await?.is_none());
    metric(&stage, &agent, 0).await?;
    agent.stop().await
}

pub(super) async fn a_paused_copy_is_not_set_back(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = published(world, json!({ "drift": { "policy": "Revert" } })).await?;
    let (team, agent) = (&stage.team_a, Agent::start(&stage, probes(false))?);
    let copy = placed(&stage, "bucket").await?;
    stage.at_rest().await?;
    let pause = |value: Option<&str>| json!({ "metadata": { "annotations": { PAUSE: value } } });
    let (namespace, name) = place(&copy);
    stage.service.merge_patch(&stage.buckets(), Some(namespace), name, &pause(Some("Spec"))).await?;
    stage
        .eventually("the pause is noticed", async || {
            ensure!(
                agent
                    .metrics()
                    .await?
                    .lines()
                    .any(|it| it.starts_with("sync_agent_paused_objects") && it.ends_with(" 1"))
            );
            Ok(())
        })
        .await?;
    meddle(&stage, &copy, json!({ "size": 7 })).await?;
    reported(&stage, &copy, ("Drifted", "spec.size (meddler)")).await?;
    stage.at_rest().await?;
    ensure!(size(&stage, "bucket").await? == 7, "it rests");
    stage.service.merge_patch(&stage.buckets(), Some(namespace), name, &pause(None)).await?;
    stage.copy_is("the size is set back", team, "bucket", |copy| copy["spec"]["size"] == 1).await?;
    metric(&stage, &agent, 0).await?;
    agent.stop().await
}

pub(super) async fn copies_of_a_consumers_secrets_are_watched_too(world: Arc<dyn World>) -> anyhow::Result<()> {
    let related = json!([{
        "identifier": "login", "origin": "kcp", "version": "v1", "resource": "secrets",
        "object": { "template": { "template": "{{ .Object.metadata.name }}-login" } },
        "drift": { "policy": "Revert" },
    }]);
    let stage = published(world, json!({ "related": related })).await?;
    let (team, agent) = (&stage.team_a, Agent::start(&stage, probes(false))?);
    stage.order(team, "bucket", json!({ "size": 1 })).await?;
    let copy = stage.copy_is("it is placed", team, "bucket", |_| true).await?;
    let secret = |password: &str| json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "bucket-login" }, "data": { "password": encoded(password) } });
    team.client.create(&kinds::secrets(), Some(NAMESPACE), &secret("hers")).await?;
    let (namespace, name) = place(&copy);
    let (name, secrets) = (format!("{name}-login"), kinds::secrets());
    let at = (&stage.service, &secrets, Some(namespace), name.as_str());
    stage.object("the Secret arrives", at, |it| it["data"]["password"] == encoded("hers")).await?;
    stage.at_rest().await?;
    let patch = json!({ "data": { "password": encoded("meddled") } });
    let meddled = stage.service.writing_as("meddler").merge_patch(&secrets, Some(namespace), &name, &patch).await?;
    stage.object("it is set back", at, |it| it["data"]["password"] == encoded("hers")).await?;
    reported(&stage, &meddled, ("DriftReverted", "data.password")).await?;
    agent.stop().await
}
