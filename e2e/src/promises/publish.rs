//! The schema half: what is published comes out the same, whenever the agent is killed.

use anyhow::{Context, ensure};
use serde_json::json;

use super::flow::Flow;
use super::flows;
use super::lab::{LONG_CALM, Lab};
use super::state::State;
use super::switch::Moment;
use crate::stage::condition;
use crate::world::EmbeddedWorld;
use crate::{fixtures, kinds};

/// The same in all worlds, because names of schemas depend on it.
const GROUP: &str = "publish.example.com";
/// So many changes to what is published are made one after the other.
const CHANGES: usize = 3;

/// In each world one agent is killed during each change of what is published.
pub async fn killed_at_every_write() -> anyhow::Result<String> {
    let mut undisturbed = Vec::new();
    let mut lab = open(flows::plain()).await?;
    for number in 0..CHANGES {
        lab.switch.reset();
        change(&lab, number).await?;
        if number == 0 {
            lab.start_agent()?;
        }
        lab.until(&format!("change {number} is published"), None, |state| is_published(state, number)).await?;
        let state = lab.rest_for(LONG_CALM).await?;
        undisturbed.push((published(&state), lab.switch.writes()));
    }
    lab.close().await?;

    let mut kills = 0;
    for write in 1..=undisturbed.iter().map(|(_, writes)| *writes).max().unwrap_or_default() {
        for moment in [Moment::Before, Moment::After] {
            let mut lab = open(flows::plain()).await?;
            for (number, (expected, writes)) in undisturbed.iter().enumerate() {
                if write <= *writes {
                    lab.switch.arm(write, moment);
                }
                change(&lab, number).await?;
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
            let last = &undisturbed[CHANGES - 1].0;
            ensure!(published(&state) == *last, "it did not stay so: {}", published(&state).difference(last));
            lab.close().await?;
        }
    }
    let writes: Vec<u64> = undisturbed.iter().map(|(_, writes)| *writes).collect();
    Ok(format!("{kills} kills, writes per change {writes:?}"))
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

/// What the schema half is responsible for.
fn published(state: &State) -> State {
    let kinds = [" apiexports ", " apiresourceschemas ", " publishedresources "];
    state.only(|place| kinds.iter().any(|kind| place.contains(kind)))
}
