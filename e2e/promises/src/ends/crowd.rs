//! Many workspaces whose orders all end at once, among many more that go on.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::ensure;
use carrick_client::{DeleteOptions, ListOptions};
use carrick_e2e_stage::agent::{Agent, Setup};
use carrick_e2e_stage::fixtures;
use carrick_e2e_stage::stage::{NAMESPACE, Stage, Workspace, place};
use carrick_e2e_stage::world::EmbeddedWorld;
use carrick_syncagent::api;
use futures::{StreamExt, TryStreamExt};
use serde_json::{Value, json};

use super::Asked;
use crate::lab::PATIENCE;

/// Orders of each workspace.
const ORDERS: usize = 3;
/// So much is done at one time.
const AT_ONCE: usize = 32;

/// All orders of some workspaces are deleted, among others that stay; nobody is held once the copies are gone, and each deletion asks for its own copy.
pub async fn many_workspaces() -> anyhow::Result<String> {
    let (workspaces, ending) = if is_full() { (1000, 200) } else { (60, 40) };
    let world = Arc::new(EmbeddedWorld::start().await?);
    let stage = Stage::bound(world.clone(), |group| fixtures::crd(group, "Bucket")).await?;
    stage.publish("Bucket", json!({})).await?;
    let agent = Agent::start(&stage, Setup { probes: true, ..Setup::default() })?;
    stage.ready(&agent).await?;
    let begun = Instant::now();
    let teams = many(workspaces, async |number| {
        let team = stage.team(&format!("crowd-{number}")).await?;
        stage.bind(&team).await?;
        Ok(team)
    })
    .await?;
    let (of, name) = (|number: usize| &teams[number / ORDERS], |number: usize| format!("order-{}", number % ORDERS));
    many(workspaces * ORDERS, async |number| stage.order(of(number), &name(number), json!({ "size": 1 })).await)
        .await?;
    let before = copies_when(&stage, "all orders are placed", |copies| copies.len() == workspaces * ORDERS).await?;
    let placed = begun.elapsed();

    let asked = Asked::counted(&world);
    let (deleted, doomed) = (Instant::now(), &teams[..ending]);
    many(ending * ORDERS, async |number| {
        let options = DeleteOptions::default();
        Ok(of(number).client.delete(&stage.buckets(), Some(NAMESPACE), &name(number), &options).await?)
    })
    .await?;
    let is_doomed =
        |copy: &Value| doomed.iter().any(|team| copy["metadata"]["labels"][api::REMOTE_CLUSTER] == *team.cluster);
    let after = copies_when(&stage, "their copies are gone", |copies| !copies.values().any(is_doomed)).await?;
    let gone = deleted.elapsed();
    many(ending, async |number| released(&stage, &doomed[number]).await).await?;
    let held = deleted.elapsed();
    let (one, all) = asked.take();
    let deletions = ending * ORDERS;
    ensure!(all == 0, "{all} lists for {deletions} orders whose copies the agent deleted itself");
    ensure!(one <= 3 * deletions, "{one} gets for {deletions} deletions");
    let uid = |copy: &Value| copy["metadata"]["uid"].clone();
    for (at, copy) in before.iter().filter(|(_, copy)| !is_doomed(copy)) {
        ensure!(after.get(at).map(uid) == Some(uid(copy)), "the copy {at} of an order that stays is not what it was");
    }
    ensure!(after.len() == (workspaces - ending) * ORDERS, "there are {} copies", after.len());
    agent.stop().await?;
    Ok(format!(
        "{workspaces} workspaces × {ORDERS} orders placed in {placed:.1?}; {deletions} deleted at once: copies gone after {gone:.1?}, nothing held after {held:.1?}; {one} gets"
    ))
}

/// Whether it is played in full, which takes many minutes.
fn is_full() -> bool {
    std::env::var_os("CARRICK_CROWD").is_some()
}

/// Does something many times, some of it at once.
async fn many<T>(count: usize, each: impl AsyncFn(usize) -> anyhow::Result<T>) -> anyhow::Result<Vec<T>> {
    futures::stream::iter(0..count).map(|number| each(number)).buffered(AT_ONCE).try_collect().await
}

/// All copies, once they are as they should be: for very many that takes longer than patience with a few.
async fn copies_when(
    stage: &Stage,
    what: &str,
    good: impl Fn(&BTreeMap<String, Value>) -> bool,
) -> anyhow::Result<BTreeMap<String, Value>> {
    let (patience, glance) = if is_full() { (10 * PATIENCE, 1000) } else { (PATIENCE, 100) };
    let started = Instant::now();
    loop {
        let all = stage.service.list(&stage.buckets(), None, &ListOptions::default()).await?;
        let copies: BTreeMap<String, Value> = all
            .into_iter()
            .map(|copy| {
                let (namespace, name) = place(&copy);
                (format!("{namespace}/{name}"), copy)
            })
            .collect();
        if good(&copies) {
            return Ok(copies);
        }
        ensure!(started.elapsed() < patience, "waited {patience:?} in vain until {what}: {} copies", copies.len());
        tokio::time::sleep(Duration::from_millis(glance)).await;
    }
}

/// Waits until no order of a workspace is left.
async fn released(stage: &Stage, team: &Workspace) -> anyhow::Result<()> {
    let look = async || {
        let left = team.client.list(&stage.buckets(), None, &ListOptions::default()).await?;
        ensure!(left.is_empty(), "{} orders of {} are held", left.len(), team.path);
        Ok(())
    };
    stage.eventually("nothing is held", look).await
}
