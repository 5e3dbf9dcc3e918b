//! An import is killed before and after every single request that could write, and is asked for again.

pub mod policy;

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use carrick_client::ListOptions;
use carrick_e2e_stage::agent::config;
use carrick_e2e_stage::kinds;
use carrick_e2e_stage::stage::{NAMESPACE, Stage, shown};
use carrick_e2e_stage::world::EmbeddedWorld;
use carrick_syncagent::agent::import::{Action, ImportOutcome, Imports, Request, import};
use serde_json::{Value, json};

use super::switch::{Moment, Switch};

/// Namespace of the objects that exist.
const OWN: &str = "own";
/// The objects that exist.
const NAMES: [&str; 2] = ["one", "two"];
/// How long an import waits for the agent, which does not run meanwhile.
const SHORT: Duration = Duration::from_millis(200);
/// How long it waits for an agent that runs.
const LONG: Duration = Duration::from_secs(30);

/// Every request of an import that could write is its last one, in one run each; the agent comes when the import was repeated.
pub async fn killed_at_every_write() -> anyhow::Result<String> {
    let world = Arc::new(EmbeddedWorld::start().await?);
    let switch = Switch::install([world.kcp_plane(), world.service_plane()]);
    let stage = Stage::set(world.clone()).await?;
    let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": OWN } });
    stage.service.create(&kinds::namespaces(), None, &namespace).await?;
    let agent = stage.start_agent()?;
    stage.order(&stage.team_a, "probe", json!({ "size": 1 })).await?;
    stage.copy_is("the probe is placed", &stage.team_a, "probe", |_| true).await?;
    agent.stop().await?;
    for name in NAMES {
        let object = json!({
            "apiVersion": stage.buckets().api_version(), "kind": "Bucket", "metadata": { "name": name },
            "spec": { "size": 1, "region": "eu" },
        });
        stage.service.create(&stage.buckets(), Some(OWN), &object).await?;
    }
    let before = contents(&stage).await?;
    let mut killed = 0;
    for write in 1.. {
        let mut is_over = false;
        for moment in [Moment::Before, Moment::After] {
            is_over = !struck(&world, &stage, &switch, (write, moment), &before)
                .await
                .with_context(|| format!("killed {moment:?} write {write}"))?;
            killed += usize::from(!is_over);
        }
        if is_over {
            break;
        }
    }
    // For each object: the question to kcp, the link and the order.
    ensure!(killed == 2 * 3 * NAMES.len(), "{killed} kills");
    Ok(format!("{killed} kills"))
}

/// One import that dies at a write, its repetition, the agent, and the way back. Says whether it died.
async fn struck(
    world: &EmbeddedWorld,
    stage: &Stage,
    switch: &Switch,
    (write, moment): (u64, Moment),
    before: &[Value],
) -> anyhow::Result<bool> {
    switch.arm(write, moment);
    tokio::select! {
        done = asked(stage, Action::Import, SHORT) => drop(done),
        () = switch.killed() => {}
    }
    world.kcp_plane().faults().idle().await;
    world.service_plane().faults().idle().await;
    let has_died = switch.reset().is_some();
    unchanged(stage, before).await?;
    // Whoever was killed has written nothing that is in the way of the next one.
    let again = asked(stage, Action::Import, SHORT).await?;
    ensure!(again.count(ImportOutcome::Waits) == NAMES.len(), "{again}");
    unchanged(stage, before).await?;

    let agent = stage.start_agent()?;
    let taken = asked(stage, Action::Import, LONG).await?;
    ensure!(taken.count(ImportOutcome::Already) == NAMES.len(), "{taken}");
    unchanged(stage, before).await?;
    let undone = asked(stage, Action::Undo, LONG).await?;
    ensure!(undone.count(ImportOutcome::Undone) == NAMES.len(), "{undone}");
    agent.stop().await?;
    unchanged(stage, before).await?;
    for object in stage.service.list(&stage.buckets(), Some(OWN), &ListOptions::default()).await? {
        ensure!(!object["metadata"].to_string().contains("\"syncagent.kcp.io/"), "{}", shown(&object));
    }
    let orders = stage.team_a.client.list(&stage.buckets(), Some(NAMESPACE), &ListOptions::default()).await?;
    ensure!(orders.len() == 1, "more than the probe is left: {orders:?}");
    Ok(has_died)
}

async fn asked(stage: &Stage, action: Action, patience: Duration) -> anyhow::Result<Imports> {
    let request = Request { wait: patience, ..Request::new(&stage.published_name("Bucket"), &stage.team_a.path) };
    let done = import(config(stage)?, &request, action, &|_| ()).await?;
    ensure!(done.incomplete.is_none(), "{done}");
    Ok(done)
}

/// UID, generation and content of what exists.
async fn contents(stage: &Stage) -> anyhow::Result<Vec<Value>> {
    let objects = stage.service.list(&stage.buckets(), Some(OWN), &ListOptions::default()).await?;
    let of = |it: &Value| json!([it["metadata"]["uid"], it["metadata"]["generation"], it["spec"]]);
    Ok(objects.iter().map(of).collect())
}

async fn unchanged(stage: &Stage, before: &[Value]) -> anyhow::Result<()> {
    let after = contents(stage).await?;
    ensure!(after == before, "{before:?} became {after:?}");
    Ok(())
}
