//! Agents of different names on one export: each resource is served by one of them.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use carrick_e2e_stage::agent::{Agent, Setup};
use carrick_e2e_stage::stage::{Stage, condition, shown};
use carrick_e2e_stage::world::{User, World};
use carrick_e2e_stage::{fixtures, kinds};
use carrick_kcp::kinds::{API_EXPORT, API_EXPORT_ENDPOINT_SLICE};
use carrick_syncagent::agent::Timing;
use carrick_syncagent::api;
use carrick_syncagent::rules::keeper::{self, Keeper};
use serde_json::{Value, json};

use super::doctor::{Flags, ask};

/// Short enough to wait for, long enough for a slow machine.
const TIMING: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(12));

fn setup(name: Option<&'static str>) -> Setup {
    let timing = Timing { heartbeat: TIMING.0, heartbeat_old: TIMING.1, ..Timing::default() };
    Setup { probes: true, timing, name, ..Setup::default() }
}

pub(super) async fn an_agent_of_another_name_stays_out_and_takes_over_when_the_first_is_gone(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let stage = Stage::set(world).await?;
    let first = Agent::start(&stage, setup(None))?;
    let team = &stage.team_a;
    stage.order(team, "first", json!({ "size": 1 })).await?;
    stage.copy_is("the first agent works", team, "first", |_| true).await?;
    stage.ready(&first).await?;
    let seen = async || {
        anyhow::Ok(stage.export().await?["metadata"]["annotations"][api::LAST_SEEN].as_str().map(str::to_owned))
    };
    let before = seen().await?;
    ensure!(before.is_some(), "nobody was seen");
    stage
        .eventually("when the agent was last seen is renewed", async || {
            let now = seen().await?;
            ensure!(now > before, "{now:?}");
            Ok(())
        })
        .await?;

    let second = Agent::start(&stage, setup(Some("second")))?;
    let why = format!("agent {} keeps buckets.{}", stage.agent_name(), stage.group);
    let told = stage.not_ready(&second, &why).await?;
    ensure!(told.contains("--take-over"), "{told}");
    served_by_one(&stage, "False").await?;
    // It does nothing but say that it is there.
    stage.order(team, "second", json!({ "size": 1 })).await?;
    let copy = stage.copy_is("the first agent goes on", team, "second", |_| true).await?;
    ensure!(copy["metadata"]["labels"][api::AGENT_NAME] == stage.agent_name(), "{}", shown(&copy));
    ensure!(
        stage.export().await?["metadata"]["annotations"][api::AGENT_NAME] == stage.agent_name(),
        "the export has changed hands"
    );
    let did: Vec<String> = second.log().into_iter().filter(|line| line.contains("Starting to synchronize")).collect();
    ensure!(did.is_empty(), "{did:#?}");
    stage.ready(&first).await?;
    second.stop().await?;
    served_by_one(&stage, "True").await?;

    // One that comes again finds the first one dead, and waits until that is certain.
    first.crash();
    let second = Agent::start(&stage, setup(Some("second")))?;
    stage.not_ready(&second, &why).await?;
    stage.ready(&second).await?;
    stage.order(team, "third", json!({ "size": 1 })).await?;
    let copy = stage.copy_is("the second agent works", team, "third", |_| true).await?;
    ensure!(copy["metadata"]["labels"][api::AGENT_NAME] == format!("second-{}", stage.id), "{}", shown(&copy));
    second.stop().await
}

pub(super) async fn an_agent_that_is_told_to_takes_over_at_once(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = Stage::set(world).await?;
    let slow = |name| Setup { timing: Timing::default(), ..setup(name) };
    let first = Agent::start(&stage, slow(None))?;
    stage.ready(&first).await?;
    let second = Agent::start(&stage, Setup { take_over: true, ..slow(Some("second")) })?;
    stage.ready(&second).await?;
    let name = format!("second-{}", stage.id);
    stage.not_ready(&first, &format!("agent {name} keeps buckets.{}", stage.group)).await?;
    let team = &stage.team_a;
    stage.order(team, "bucket", json!({ "size": 1 })).await?;
    let copy = stage.copy_is("the second agent works", team, "bucket", |_| true).await?;
    ensure!(copy["metadata"]["labels"][api::AGENT_NAME] == name, "{}", shown(&copy));
    // It was told so once: when the first one is told the same, the second one stays out.
    first.stop().await?;
    let first = Agent::start(&stage, Setup { take_over: true, ..slow(None) })?;
    stage.not_ready(&second, &format!("agent {} keeps buckets.{}", stage.agent_name(), stage.group)).await?;
    stage.ready(&first).await?;
    second.stop().await?;
    first.stop().await
}

pub(super) async fn agents_that_share_an_export_serve_their_own_kinds(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = Stage::bare(world).await?;
    for kind in ["Bucket", "Queue"] {
        stage.install_crd(&fixtures::crd(&stage.group, kind)).await?;
        stage.publish(kind, json!({})).await?;
    }
    let queue = stage.published_name("Queue");
    let label = json!({ "metadata": { "labels": { "stage": format!("{}-queues", stage.id) } } });
    stage.service.merge_patch(&kinds::published_resources(), None, &queue, &label).await?;
    stage.create_export().await?;
    futures::try_join!(stage.bind(&stage.team_a), stage.bind(&stage.team_b))?;
    let still = Timing::default();
    let first = Agent::start(&stage, Setup { timing: still, ..setup(None) })?;
    stage.ready(&first).await?;
    let second = Agent::start(&stage, Setup { timing: still, share: Some("-queues"), ..setup(Some("second")) })?;
    stage.ready(&second).await?;
    let team = &stage.team_a;
    for (kind, agent) in [("Bucket", stage.agent_name()), ("Queue", format!("second-{}", stage.id))] {
        let resource = fixtures::kind(&stage.group, kind);
        stage.order_kind(&resource, team, "thing", json!({ "size": 1 })).await?;
        let copy = stage.copy_of_kind_is("the copy is there", (&resource, team, "thing"), |_| true).await?;
        ensure!(copy["metadata"]["labels"][api::AGENT_NAME] == agent, "{}", shown(&copy));
    }
    // Nobody fights over the export: it bears the name of the first one, and rests.
    stage.at_rest().await?;
    let export = stage.export().await?;
    ensure!(export["metadata"]["annotations"][api::AGENT_NAME] == stage.agent_name(), "{}", shown(&export));
    ensure!(keepers(&export).iter().all(|it| it.keeps.len() == 1 && it.waits.is_empty()), "{}", shown(&export));
    stage.at_rest().await?;
    let after = stage.export().await?;
    ensure!(after["metadata"]["resourceVersion"] == export["metadata"]["resourceVersion"], "{}", shown(&after));

    // A kind that changes hands is served by the other one.
    let handed = json!({ "metadata": { "labels": { "stage": stage.id } } });
    stage.service.merge_patch(&kinds::published_resources(), None, &queue, &handed).await?;
    stage
        .eventually("the first agent keeps both", async || {
            let export = stage.export().await?;
            let keepers = keepers(&export);
            let own = keepers.iter().find(|it| it.agent == stage.agent_name()).context("it has no entry")?;
            ensure!(own.keeps.len() == 2 && keepers.len() == 1, "{}", shown(&export));
            Ok(())
        })
        .await?;
    stage.ready(&first).await?;
    second.stop().await?;
    first.stop().await
}

pub(super) async fn agents_of_two_exports_that_serve_one_published_resource_are_named(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let stage = Stage::set(world).await?;
    let (other, client) = ("other-export", &stage.provider.client);
    let export = json!({ "apiVersion": kinds::kcp(&API_EXPORT).api_version(), "kind": "APIExport", "metadata": { "name": other }, "spec": {} });
    client.create(&kinds::kcp(&API_EXPORT), None, &export).await?;
    let slices = kinds::kcp(&API_EXPORT_ENDPOINT_SLICE);
    stage.object("the other slice exists", (client, &slices, None, other), |_| true).await?;
    let first = Agent::start(&stage, setup(None))?;
    stage.ready(&first).await?;
    let second = Agent::start(&stage, Setup { slice: Some(other), ..setup(Some("second")) })?;

    let name = stage.published_name("Bucket");
    let at = (&stage.service, &kinds::published_resources(), None, name.as_str());
    let told =
        stage.object("both are named", at, |it| condition(it, "ServedByOne")["reason"] == "SeveralExports").await?;
    let message = condition(&told, "ServedByOne")["message"].as_str().unwrap_or_default().to_owned();
    for wanted in [
        format!("{}|{other} by agent second-{}", stage.provider.path, stage.id),
        format!("{}|{} by agent {}", stage.provider.path, stage.export_name(), stage.agent_name()),
        format!("kubectl label publishedresource {name} syncagent.kcp.io/export="),
    ] {
        ensure!(message.contains(&wanted), "{wanted} is not in {message}");
    }
    let report = ask(&stage, &Flags::of(&stage, User::Admin)).await?;
    let (found, fixes) = (report.of("amber"), report.fixes("amber"));
    let who = format!("Agents: agent second-{} serves what this agent serves for another APIExport", stage.id);
    ensure!(found.iter().any(|line| line.starts_with(&who)), "{found:#?}");
    ensure!(fixes.iter().any(|line| line.contains(&format!("label publishedresource {name} "))), "{fixes:#?}");

    // Once the other one does not serve it any more, that is taken back, and there is rest.
    second.stop().await?;
    served_by_one(&stage, "True").await?;
    stage
        .object("the other entry is removed", at, |it| {
            it["status"]["servedFor"].as_array().is_some_and(|all| all.len() == 1)
        })
        .await?;
    first.stop().await
}

fn keepers(export: &Value) -> Vec<Keeper> {
    keeper::read(export["metadata"]["annotations"][api::KEEPER].as_str())
}

/// Waits until the PublishedResource says whether one agent serves it.
async fn served_by_one(stage: &Stage, status: &str) -> anyhow::Result<()> {
    let name = stage.published_name("Bucket");
    let at = (&stage.service, &kinds::published_resources(), None, name.as_str());
    let told = stage
        .object(&format!("ServedByOne is {status}"), at, |it| condition(it, "ServedByOne")["status"] == status)
        .await?;
    // Whatever happens, all the rest is told by the one that works.
    ensure!(condition(&told, "Syncing")["status"] == "True", "{}", shown(&told));
    Ok(())
}
