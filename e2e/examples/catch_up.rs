//! How fast an agent catches up with orders that were there before it, and how long a restart on them takes.
//!
//! ```sh
//! CARRICK_SERVERS=$(e2e/servers/build) cargo run --release -p carrick-e2e --example catch_up -- 200
//! ```
//!
//! Without `CARRICK_SERVERS` the embedded plane is measured. Prints seconds and objects per second; asserts nothing.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, ensure};
use carrick_client::ListOptions;
use carrick_e2e::agent::{Agent, Setup};
use carrick_e2e::kinds;
use carrick_e2e::stage::Stage;
use carrick_e2e::world::{EmbeddedWorld, RealWorld, World};
use carrick_syncagent::api;
use futures::{StreamExt, TryStreamExt, stream};
use serde_json::json;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let count: u32 = std::env::args().nth(1).unwrap_or_else(|| "200".into()).parse().context("number of objects")?;
    let world: Arc<dyn World> = match std::env::var_os("CARRICK_SERVERS") {
        Some(binaries) => Arc::new(RealWorld::start(Path::new(&binaries)).await?),
        None => Arc::new(EmbeddedWorld::start().await?),
    };
    let name = world.name();
    let stage = Stage::set(world).await?;
    // The kind is published and in use before, so that only the objects are measured.
    let agent = stage.start_agent()?;
    stage.order(&stage.team_a, "first", json!({ "region": "eu", "size": 1 })).await?;
    stage.copy_is("the first order is placed", &stage.team_a, "first", |_| true).await?;
    agent.stop().await?;

    let started = Instant::now();
    stream::iter(0..count)
        .map(|i| {
            let team = if i % 2 == 0 { &stage.team_a } else { &stage.team_b };
            let (stage, name) = (&stage, format!("order-{i}"));
            async move { stage.order(team, &name, json!({ "region": "eu", "size": i })).await }
        })
        .buffer_unordered(16)
        .try_collect::<Vec<_>>()
        .await?;
    println!("{name}: {count} orders written in {:.1} s", started.elapsed().as_secs_f64());

    let mine = ListOptions::labels(format!("{}={}", api::AGENT_NAME, stage.agent_name()));
    let states = ListOptions::labels(format!("{}=true", api::OBJECT_STATE));
    let placed = async || {
        let copies = stage.world.service().client().list(&stage.buckets(), None, &mine).await?.len();
        let namespace = stage.agent_namespace();
        let states = stage.world.service().client().list(&kinds::secrets(), Some(&namespace), &states).await?.len();
        let wanted = count as usize + 1;
        ensure!(copies == wanted && states == wanted, "{copies} copies and {states} states of {wanted}");
        anyhow::Ok(())
    };
    let started = Instant::now();
    let agent = stage.start_agent()?;
    stage.eventually("all orders are placed", &placed).await?;
    let seconds = started.elapsed().as_secs_f64();
    println!("{name}: {count} placed in {seconds:.1} s, {:.0} per second", f64::from(count) / seconds);

    let before = stage.at_rest().await?;
    agent.stop().await?;
    let started = Instant::now();
    let agent = Agent::start(&stage, Setup { probes: true, ..Setup::default() })?;
    stage.ready(&agent).await?;
    println!("{name}: ready again {:.1} s after a restart", started.elapsed().as_secs_f64());
    let after = stage.at_rest().await?;
    println!("{name}: writes sent by the restart: {}", carrick_e2e::stage::changes(&before, &after).len());
    agent.stop().await
}
