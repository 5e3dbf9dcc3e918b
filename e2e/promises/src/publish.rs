//! The schema half: what is published comes out the same, whenever the agent is killed.

use anyhow::{Context, ensure};
use carrick_client::ListOptions;
use carrick_e2e_stage::stage::condition;
use carrick_e2e_stage::world::EmbeddedWorld;
use carrick_e2e_stage::{fixtures, kinds};
use carrick_kcp::kinds::API_RESOURCE_SCHEMA;
use carrick_syncagent::api::{APPROVED_SCHEMA, REJECTED_SCHEMA};
use futures::FutureExt;
use futures::future::LocalBoxFuture;
use serde_json::{Value, json};

use super::flow::Flow;
use super::flows;
use super::kills::{sample, strikes};
use super::lab::{LONG_CALM, Lab};
use super::state::State;

/// The same in all worlds, because names of schemas depend on it.
pub(super) const GROUP: &str = "publish.example.com";

/// Changes that are made one after the other.
#[derive(Clone, Copy)]
pub(super) struct Changes {
    /// How many there are.
    pub(super) count: usize,
    /// Makes one.
    pub(super) make: for<'a> fn(&'a Lab, usize) -> LocalBoxFuture<'a, anyhow::Result<()>>,
    /// Whether the agent has done what follows from it.
    pub(super) is_done: fn(&State, usize) -> bool,
    /// Kinds that must come out the same, besides those of the schema half.
    pub(super) kinds: &'static [&'static str],
}

/// In each world one agent is killed during each change of what is published.
pub async fn killed_at_every_write() -> anyhow::Result<String> {
    each_write(Changes {
        count: 3,
        make: |lab, number| change(lab, number).boxed_local(),
        is_done: is_published,
        kinds: &[],
    })
    .await
}

/// The same behind a gate: a schema is exported, the next one held back, approved and taken back.
pub async fn gate_killed_at_every_write() -> anyhow::Result<String> {
    each_write(Changes {
        count: 4,
        make: |lab, number| decide(lab, number).boxed_local(),
        is_done: is_decided,
        kinds: &[],
    })
    .await
}

/// Makes all changes once undisturbed, and then again and again with an agent that is killed at each of its writes.
pub(super) async fn each_write(Changes { count, make, is_done, kinds }: Changes) -> anyhow::Result<String> {
    let published = |state: &State| published(state, kinds);
    let mut undisturbed = Vec::new();
    let mut lab = open(flows::plain()).await?;
    for number in 0..count {
        lab.switch.reset();
        make(&lab, number).await?;
        if number == 0 {
            lab.start_agent()?;
        }
        lab.until(&format!("change {number} is published"), None, |state| is_done(state, number)).await?;
        let state = lab.rest_for(LONG_CALM).await?;
        undisturbed.push((published(&state), lab.switch.writes()));
    }
    lab.close().await?;

    let mut kills = 0;
    for (write, moment) in strikes(undisturbed.iter().map(|(_, writes)| *writes).max().unwrap_or_default()) {
        let mut lab = open(flows::plain()).await?;
        for (number, (expected, writes)) in undisturbed.iter().enumerate() {
            if write <= *writes {
                lab.switch.arm(write, moment);
            }
            make(&lab, number).await?;
            if number == 0 {
                lab.start_agent()?;
            }
            let at = format!("change {number}, killed {moment:?} write {write}");
            let reached = lab.until("the same is published", None, |state| published(state) == *expected).await;
            let late = lab.attend(None).await?;
            let death = reached.with_context(|| {
                let difference = published(&lab.eyes.look()).difference(expected);
                format!("{at}; difference: {difference}\nlast writes {:#?}", lab.audit.last(10))
            })?;
            kills += u64::from(death.is_some() || late.is_some());
            lab.switch.reset();
        }
        let state = lab.rest_for(LONG_CALM).await?;
        let last = &undisturbed[count - 1].0;
        ensure!(published(&state) == *last, "it did not stay so: {}", published(&state).difference(last));
        lab.close().await?;
    }
    let writes: Vec<u64> = undisturbed.iter().map(|(_, writes)| *writes).collect();
    Ok(format!("{kills} kills, writes per change {writes:?}; {}", sample()))
}

async fn open(flow: Flow) -> anyhow::Result<Lab> {
    let lab = Lab::bare(EmbeddedWorld::start().await?, flow, Some(GROUP)).await?;
    lab.stage.install_crd(&fixtures::crd(GROUP, "Bucket")).await?;
    lab.stage.install_crd(&fixtures::crd(GROUP, "Gadget")).await?;
    lab.stage.create_export().await?;
    Ok(lab)
}

/// Publishes a kind, then changes it, then publishes another one.
async fn change(lab: &Lab, number: usize) -> anyhow::Result<()> {
    let stage = &lab.stage;
    match number {
        0 => drop(stage.publish("Bucket", json!({})).await?),
        1 => {
            let mut crd = fixtures::crd(GROUP, "Bucket");
            crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["color"] =
                json!({ "type": "string" });
            let patch = json!({ "spec": { "versions": crd["spec"]["versions"] } });
            stage.service.merge_patch(&kinds::crds(), None, &format!("buckets.{GROUP}"), &patch).await?;
        }
        _ => drop(stage.publish("Gadget", json!({ "enableWorkspacePaths": true })).await?),
    }
    Ok(())
}

/// Publishes a kind behind a gate, changes its CRD for the worse, approves that, and goes back.
async fn decide(lab: &Lab, number: usize) -> anyhow::Result<()> {
    let stage = &lab.stage;
    let name = stage.published_name("Bucket");
    let annotations = match number {
        0 => {
            stage.publish("Bucket", json!({ "schemaUpdates": "Compatible" })).await?;
            return Ok(());
        }
        1 => {
            let mut crd = fixtures::crd(GROUP, "Bucket");
            let spec = &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
            spec["properties"]["size"]["maximum"] = json!(5);
            let patch = json!({ "spec": { "versions": crd["spec"]["versions"] } });
            stage.service.merge_patch(&kinds::crds(), None, &format!("buckets.{GROUP}"), &patch).await?;
            return Ok(());
        }
        2 => json!({ APPROVED_SCHEMA: other_schema(lab, &name).await? }),
        _ => {
            let published = stage.service.get(&kinds::published_resources(), None, &name).await?;
            let now = published.context("it is gone")?["status"]["resourceSchemaName"].clone();
            json!({ APPROVED_SCHEMA: other_schema(lab, &name).await?, REJECTED_SCHEMA: now })
        }
    };
    let patch = json!({ "metadata": { "annotations": annotations } });
    stage.service.merge_patch(&kinds::published_resources(), None, &name, &patch).await?;
    Ok(())
}

/// Of the two schemas, the one that is not exported.
async fn other_schema(lab: &Lab, name: &str) -> anyhow::Result<Value> {
    let published = lab.stage.service.get(&kinds::published_resources(), None, name).await?.context("it is gone")?;
    let all = lab.stage.provider.client.list(&kinds::kcp(&API_RESOURCE_SCHEMA), None, &ListOptions::default()).await?;
    let mut names = all.iter().map(|schema| schema["metadata"]["name"].clone());
    names.find(|schema| *schema != published["status"]["resourceSchemaName"]).context("there is no other schema")
}

fn is_decided(state: &State, number: usize) -> bool {
    let Some(place) = state.places().find(|place| place.contains(" publishedresources ")) else { return false };
    let published = state.at(place);
    let named = &published["status"]["resourceSchemaName"];
    let export = state.at(&format!("provider apiexports /{GROUP}"));
    let schemas = state.places().filter(|place| place.contains(" apiresourceschemas ")).count();
    let held = condition(published, "SchemaHeld")["status"] == "True";
    condition(published, "ExportUpdated")["status"] == "True"
        && (export["spec"]["latestResourceSchemas"] == json!([named])
            || export["spec"]["resources"][0]["schema"] == *named && export["spec"]["resources"][1].is_null())
        && schemas == 1 + usize::from(number > 0)
        && held == (number % 2 == 1)
}

fn is_published(state: &State, number: usize) -> bool {
    let mut resources = state.places().filter(|place| place.contains(" publishedresources "));
    if !resources.all(|place| condition(state.at(place), "ExportUpdated")["status"] == "True") {
        return false;
    }
    let schemas = state.places().filter(|place| place.contains(" apiresourceschemas ")).count();
    let export = state.at(&format!("provider apiexports /{GROUP}"));
    let listed = export["spec"]["latestResourceSchemas"].as_array().or(export["spec"]["resources"].as_array());
    schemas == number + 1 && listed.map_or(0, Vec::len) == 1 + number / 2
}

/// What the schema half is responsible for, and some more kinds.
fn published(state: &State, more: &[&str]) -> State {
    let kinds = [" apiexports ", " apiresourceschemas ", " publishedresources "];
    state.only(|place| kinds.iter().chain(more).any(|kind| place.contains(kind)))
}
