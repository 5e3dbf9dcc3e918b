//! The released binary, as a process.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use carrick_e2e_stage::binary::Binary;
use carrick_e2e_stage::ports;
use carrick_e2e_stage::stage::Stage;
use carrick_e2e_stage::world::World;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

pub(super) async fn the_released_binary_carries_an_order_through_kill_and_sigterm(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let stage = Stage::set(world).await?;
    let team = &stage.team_a;
    let binary = Binary::build(&stage).await?;

    let agent = binary.start()?;
    stage.order(team, "bucket", json!({ "size": 1 })).await?;
    stage.copy_is("the copy is there", team, "bucket", |_| true).await?;

    // Killed while it works on two orders.
    stage.order(team, "second", json!({ "size": 1 })).await?;
    stage.reorder(team, "bucket", json!({ "size": 2 })).await?;
    agent.kill().await?;
    stage.reorder(team, "bucket", json!({ "size": 3 })).await?;

    let agent = binary.start()?;
    let copy = stage.copy_is("the last change arrives", team, "bucket", |copy| copy["spec"]["size"] == 3).await?;
    stage.copy_is("the second order is placed", team, "second", |_| true).await?;
    stage.operator_reports(&copy, json!({ "url": "here" })).await?;
    stage.source_is("the status returns", team, "bucket", |s| s["status"]["url"] == "here").await?;
    agent.terminate().await?;

    stage.cancel(team, "bucket").await?;
    let agent = binary.start()?;
    stage.all_gone(team, "bucket").await?;
    agent.terminate().await
}

pub(super) async fn metrics_tell_the_way_of_an_order_but_nothing_of_its_content(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    const CONTENT: &str = "nobody-shall-read-this";
    let stage = Stage::set(world).await?;
    let team = &stage.team_a;
    let binary = Binary::build(&stage).await?;
    let [port] = ports::free()?;
    let metrics = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let agent = binary.start_with_metrics(&metrics.to_string())?;
    stage.order(team, "bucket", json!({ "owner": CONTENT })).await?;
    let copy = stage.copy_is("the copy is there", team, "bucket", |_| true).await?;
    stage.operator_reports(&copy, json!({ "url": CONTENT })).await?;
    stage.source_is("the status returns", team, "bucket", |s| s["status"]["url"] == CONTENT).await?;

    let published = stage.published_name("Bucket");
    let wanted = [
        "sync_agent_published_resource 1".to_owned(),
        format!("sync_agent_synced_objects{{publishedresource=\"{published}\"}} 1"),
        format!("sync_agent_source_objects{{publishedresource=\"{published}\"}} 1"),
        "sync_agent_hop_seconds_count{hop=\"copy_to_status\"} 1".to_owned(),
        "sync_agent_hop_seconds_count{hop=\"status_to_source\"} 1".to_owned(),
        "sync_agent_steps_total{step=\"create\"} 1".to_owned(),
        "workqueue_depth{name=\"syncagent-sync\",controller=\"syncagent-sync\"} 0".to_owned(),
        "carrick_fleet_clusters 2".to_owned(),
    ];
    let text = stage
        .eventually("the metrics tell of the order", async || {
            let text = scrape(metrics).await?;
            let missing: Vec<_> = wanted.iter().filter(|line| !text.lines().any(|got| got == line.as_str())).collect();
            anyhow::ensure!(missing.is_empty(), "{missing:?} are missing in {text}");
            Ok(text)
        })
        .await?;
    anyhow::ensure!(text.contains("rest_client_requests_total{code=\"201\",method=\"POST\""), "no requests in {text}");
    anyhow::ensure!(!text.contains(CONTENT), "content in {text}");

    agent.terminate().await
}

async fn scrape(address: SocketAddr) -> anyhow::Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nhost: agent\r\nconnection: close\r\n\r\n").await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}
