//! A withdrawal comes out the same, whenever the agent is killed.

use anyhow::{Context, ensure};
use carrick_e2e_stage::kinds;
use carrick_e2e_stage::stage::condition;
use carrick_e2e_stage::world::ADMIN_AGENT;
use carrick_plane::faults::{Effect, Match, Rule};
use carrick_syncagent::api::{FINALIZER, WITHDRAW_AT, WITHDRAW_MESSAGE, WITHDRAWAL};
use futures::FutureExt;
use serde_json::{Value, json};

use super::deed::Deed::Order;
use super::deed::Team;
use super::flows;
use super::lab::Lab;
use super::publish::{Changes, GROUP, each_write};
use super::state::State;

/// A kind is published and ordered, its withdrawal is announced, taken back, and then carried out. One agent is killed during each change.
pub async fn killed_at_every_write() -> anyhow::Result<String> {
    let kinds = &[" buckets "];
    each_write(Changes { count: 5, make: |lab, number| change(lab, number).boxed_local(), is_done, kinds }).await
}

/// The date has come, and the agent that starts cannot see yet where its consumers are: it must not take that for having none.
pub async fn while_consumers_are_out_of_sight() -> anyhow::Result<String> {
    let mut lab = Lab::open(flows::short()).await?;
    Order(Team::A, "one", json!({ "spec": { "size": 1 } })).act(&lab).await?;
    lab.until("the order is placed", None, |state| !state.copy("team-a", "one").is_null()).await?;
    lab.kill_agent().await?;
    let faults = lab.world.kcp_plane().faults().clone();
    let slices =
        |verbs: &[&str]| Match::any().user(ADMIN_AGENT).verbs(verbs).resource("apis.kcp.io", "apiexportendpointslices");
    let rule = faults.add(Rule::new(slices(&["list", "watch"]), Effect::refuse(503)));
    // Counts without doing anything.
    let reads = faults.add(Rule::new(slices(&["get"]), Effect::Delay(0)));
    change(&lab, 4).await?;
    lab.start_agent()?;
    // One or two reads belong to its start; the others are a pause apart.
    lab.stage
        .eventually("the agent has looked at the slice again and again", async || {
            let count = faults.hits(reads);
            ensure!(count >= 4, "{count} times");
            Ok(())
        })
        .await?;
    let source = lab.stage.source(&lab.stage.team_a, "one").await?.context("the order is gone")?;
    ensure!(source["metadata"]["finalizers"] == json!([FINALIZER]), "{source}");
    let export = lab.stage.export().await?;
    ensure!(export["spec"]["latestResourceSchemas"].as_array().is_some_and(|all| all.len() == 1), "{export}");
    faults.remove(rule);
    lab.until("the kind is withdrawn when they are in sight", None, |state| {
        let Some(place) = state.places().find(|place| place.contains(" publishedresources ")) else { return false };
        let source = state.at("team-a buckets default/one");
        let held = source["metadata"]["finalizers"].as_array().is_some_and(|all| !all.is_empty());
        condition(state.at(place), "Withdrawn")["reason"] == "Withdrawn" && !held
    })
    .await?;
    lab.close().await?;
    Ok("nothing was given up".to_owned())
}

async fn change(lab: &Lab, number: usize) -> anyhow::Result<()> {
    let stage = &lab.stage;
    let annotations = match number {
        0 => {
            stage.publish("Bucket", json!({ "enableWorkspacePaths": true })).await?;
            stage.bind(&stage.team_a).await?;
            return Ok(());
        }
        1 => {
            stage.order(&stage.team_a, "one", json!({ "size": 1 })).await?;
            return Ok(());
        }
        2 => json!({ WITHDRAW_AT: "2099-01-01T00:00:00Z", WITHDRAW_MESSAGE: "use Vaults" }),
        3 => json!({ WITHDRAW_AT: null, WITHDRAW_MESSAGE: null }),
        _ => json!({ WITHDRAW_AT: "2020-01-01T00:00:00Z" }),
    };
    let patch = json!({ "metadata": { "annotations": annotations } });
    let name = stage.published_name("Bucket");
    stage.service.merge_patch(&kinds::published_resources(), None, &name, &patch).await?;
    Ok(())
}

fn is_done(state: &State, number: usize) -> bool {
    let Some(place) = state.places().find(|place| place.contains(" publishedresources ")) else { return false };
    let (published, source) = (state.at(place), state.at("team-a buckets default/one"));
    let export = state.at(&format!("provider apiexports /{GROUP}"));
    let count = |list: &Value| list.as_array().map_or(0, Vec::len);
    let listed = count(&export["spec"]["latestResourceSchemas"]).max(count(&export["spec"]["resources"]));
    let held = source["metadata"]["finalizers"].as_array().is_some_and(|all| all.contains(&json!(FINALIZER)));
    let notice = source["metadata"]["annotations"][WITHDRAWAL].as_str();
    let reason = condition(published, "Withdrawn")["reason"].as_str();
    let offered = condition(published, "ExportUpdated")["status"] == "True" && listed == 1;
    let placed = state.copy("team-a", "one")["spec"]["size"] == 1;
    match number {
        0 => offered,
        1 => offered && held && placed,
        2 => offered && held && reason == Some("Announced") && notice == Some("2099-01-01T00:00:00Z: use Vaults"),
        3 => offered && held && reason == Some("Offered") && notice.is_none(),
        _ => {
            reason == Some("Withdrawn")
                && !held
                && listed == 0
                && placed
                && count(&export["spec"]["permissionClaims"]) == 1
        }
    }
}
