//! Objects that are unusual, but that servers take: they are carried as they are, or refused with a reason.

use std::sync::Arc;

use anyhow::ensure;
use carrick_client::ListOptions;
use carrick_e2e_stage::agent::{Agent, Setup};
use carrick_e2e_stage::stage::{NAMESPACE, Stage, condition, place};
use carrick_e2e_stage::world::World;
use carrick_e2e_stage::{fixtures, kinds};
use carrick_json::DEEPEST;
use serde_json::{Map, Value, json};

pub(super) async fn an_order_that_nests_deep_is_placed_and_follows_changes(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let (stage, agent) = set(world).await?;
    let team = &stage.team_a;
    // Metadata of its fields, which servers keep, nests a little deeper than the object itself.
    let spec = nested(DEEPEST - 50, json!("first"));
    stage.order(team, "deep", spec.clone()).await?;
    let copy = stage.copy_is("the copy is there", team, "deep", |copy| copy["spec"] == spec).await?;
    let (_, name) = place(&copy);
    ensure!(name == "copy-of-deep", "its name is {name}");

    let spec = nested(DEEPEST - 50, json!("second"));
    stage.reorder(team, "deep", spec.clone()).await?;
    stage.copy_is("a change at the bottom arrives", team, "deep", |copy| copy["spec"] == spec).await?;
    let status = nested(DEEPEST - 50, json!([1, 2, 3]));
    stage.operator_reports(&copy, status.clone()).await?;
    stage.source_is("the status returns", team, "deep", |source| source["status"] == status).await?;
    stage.cancel(team, "deep").await?;
    stage.all_gone(team, "deep").await?;
    agent.stop().await
}

pub(super) async fn an_order_that_nests_too_deep_is_told_by_name_and_harms_nobody(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let (stage, agent) = set(world).await?;
    let team = &stage.team_a;
    stage.order(team, "grows", json!({ "size": 1 })).await?;
    let before = stage.copy_is("the copy is there", team, "grows", |_| true).await?;
    let too_deep = nested(DEEPEST + 200, json!(1));
    stage.order(team, "deep", too_deep.clone()).await?;
    stage.reorder(team, "grows", too_deep).await?;

    let name = stage.published_name("Bucket");
    let at = (&stage.service, &kinds::published_resources(), None, name.as_str());
    stage
        .object("the PublishedResource names the orders and the reason", at, |published| {
            let told = condition(published, "ObjectsSynced").to_string();
            ["levels deep", "/deep (", "/grows ("].iter().all(|words| told.contains(words))
        })
        .await?;
    stage
        .eventually("the consumer is told", async || {
            let events = team.client.list(&kinds::events(), Some(NAMESPACE), &ListOptions::default()).await?;
            let about = |event: &&Value| event["involvedObject"]["name"] == "deep";
            let told = |event: &Value| event["message"].as_str().is_some_and(|text| text.contains("levels deep"));
            ensure!(events.iter().filter(about).any(told), "the events are {events:?}");
            Ok(())
        })
        .await?;
    ensure!(stage.copy(team, "deep").await?.is_none(), "something was placed for it");
    let copy = stage.copy(team, "grows").await?.unwrap_or_default();
    ensure!(copy["spec"] == before["spec"] && copy["metadata"]["uid"] == before["metadata"]["uid"], "it is {copy}");
    stage.order(team, "other", json!({ "size": 1 })).await?;
    stage.copy_is("another order is placed", team, "other", |_| true).await?;

    // Whoever wants to go may go.
    for name in ["deep", "grows"] {
        stage.cancel(team, name).await?;
        stage.all_gone(team, name).await?;
    }
    agent.stop().await
}

pub(super) async fn numbers_are_carried_to_the_last_digit(world: Arc<dyn World>) -> anyhow::Result<()> {
    let (stage, agent) = set(world).await?;
    let team = &stage.team_a;
    let numbers = json!({
        "tenth": 0.1, "third": 1.0 / 3.0, "whole": 1.0, "thousand": 1e3, "huge": 1e21, "tiny": 1e-7, "largest": f64::MAX,
        "smallest": f64::from_bits(1), "negative": -0.5, "beyond floats": 9_007_199_254_740_993_i64, "most": i64::MAX,
        "least": i64::MIN, "list": [1, 1.5, [0.1, 0.2, 0.3]],
    });
    stage.order(team, "numbers", numbers).await?;
    let source = stage.source_is("the order is there", team, "numbers", |_| true).await?;
    let copy = stage.copy_is("the copy is there", team, "numbers", |copy| copy["spec"] == source["spec"]).await?;
    let numbers = source["spec"].clone();
    stage.operator_reports(&copy, numbers.clone()).await?;
    let source = stage.source_is("the status returns", team, "numbers", |source| source["status"].is_object()).await?;
    ensure!(source["status"] == numbers, "{} is not {numbers}", source["status"]);
    let rest = stage.at_rest().await?;
    stage.order(team, "another", json!({ "size": 1 })).await?;
    stage.copy_is("the agent has looked at all", team, "another", |_| true).await?;
    let after = stage.at_rest().await?;
    let written: Vec<_> =
        rest.iter().filter(|(at, version)| after.get(*at).is_some_and(|now| now != *version)).collect();
    ensure!(!written.iter().any(|(at, _)| at.contains("numbers")), "something is written again: {written:?}");
    agent.stop().await
}

pub(super) async fn a_change_of_more_fields_than_a_patch_may_have_arrives_and_so_do_later_ones(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let (stage, agent) = set(world).await?;
    let team = &stage.team_a;
    let fields = |value: u64| Value::Object((0..10_500).map(|at| (format!("k{at}"), json!(value))).collect());
    stage.order(team, "wide", fields(1)).await?;
    let copy = stage.copy_is("the copy is there", team, "wide", |copy| copy["spec"] == fields(1)).await?;
    stage.operator_edits(&copy, json!({ "owner": "operator" })).await?;
    for value in [2, 3] {
        stage.reorder(team, "wide", fields(value)).await?;
        let mut wanted = fields(value);
        wanted["owner"] = json!("operator");
        stage.copy_is("all fields change, and others stay", team, "wide", |copy| copy["spec"] == wanted).await?;
    }
    stage.at_rest().await?;
    agent.stop().await
}

pub(super) async fn texts_that_yaml_does_not_take_arrive_with_either_memory(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let (stage, first) = set(world).await?;
    let team = &stage.team_a;
    let texts = |size: u64| {
        let long = "k".repeat(1100);
        json!({ "del": "a\u{7f}b", "c1": "\u{80}\u{9f}", "break": "a \u{85} b \u{2028} c", "no": "\u{fffe}\u{ffff}\u{feff}",
            "a\u{7f}key": size, long: { "more": size }, "list": [{ "e\u{301}\u{1f600}": "\"\\\n\u{1}" }], "size": size })
    };
    stage.order(team, "texts", texts(1)).await?;
    stage.copy_is("the copy is there", team, "texts", |copy| copy["spec"] == texts(1)).await?;
    first.stop().await?;
    for apply in [true, false] {
        let agent = Agent::start(&stage, Setup { probes: true, apply, ..Setup::default() })?;
        for size in [2, 3] {
            let size = size + u64::from(apply) * 2;
            stage.reorder(team, "texts", texts(size)).await?;
            let what = format!("a change arrives with apply {apply}");
            stage.copy_is(&what, team, "texts", |copy| copy["spec"] == texts(size)).await?;
        }
        stage.at_rest().await?;
        agent.stop().await?;
    }
    Ok(())
}

/// A kind whose objects may hold anything, published with names that are made by a template.
async fn set(world: Arc<dyn World>) -> anyhow::Result<(Stage, Agent)> {
    let stage = Stage::bare(world).await?;
    let mut crd = fixtures::crd(&stage.group, "Bucket");
    let anything = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] = anything;
    stage.install_crd(&crd).await?;
    stage.create_export().await?;
    stage.publish("Bucket", json!({ "naming": { "name": "copy-of-{{ .Object.metadata.name }}" } })).await?;
    let agent = Agent::start(&stage, Setup { probes: true, ..Setup::default() })?;
    futures::try_join!(stage.bind(&stage.team_a), stage.bind(&stage.team_b))?;
    Ok((stage, agent))
}

/// Objects inside of each other, and something at the bottom.
fn nested(levels: usize, bottom: Value) -> Value {
    (0..levels).fold(bottom, |inside, _| Value::Object(Map::from_iter([("a".to_owned(), inside)])))
}
