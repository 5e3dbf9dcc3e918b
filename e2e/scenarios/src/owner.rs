//! What platform owners do on ordinary days while agents run: servers are restored from backups, workspaces move.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context, ensure};
use carrick_client::ListOptions;
use carrick_e2e_stage::agent::{Agent, Setup};
use carrick_e2e_stage::stage::{NAMESPACE, Stage, Workspace, condition, place};
use carrick_e2e_stage::world::{EmbeddedWorld, World};
use carrick_e2e_stage::{fixtures, kinds};
use carrick_kcp::kinds::LOGICAL_CLUSTER;
use carrick_syncagent::api;
use data_encoding::BASE64;
use serde_json::{Value, json};

/// So many writes follow the snapshot, so that versions which watches know are far ahead of the restored server.
const SINCE: usize = 30;
/// How often a workspace moves.
const MOVES: usize = 6;

pub(super) async fn after_kcp_was_restored_a_running_agent_goes_on(world: Arc<dyn World>) -> anyhow::Result<()> {
    let (stage, agent) = furnished(world.clone()).await?;
    // Versions of a real kcp go back only with its etcd, and so under all other scenarios.
    let (kcp, _) = world.planes().context("this needs planes")?;
    let snapshot = kcp.snapshot();
    let team = &stage.team_a;
    for number in 1..=SINCE {
        stage.reorder(team, "noisy", json!({ "size": 100 + number })).await?;
        let patch = json!({ "data": { "word": format!("undone-{number}") } });
        team.client.merge_patch(&kinds::config_maps(), Some(NAMESPACE), "noisy-settings", &patch).await?;
    }
    stage.copy_is("the last edit arrives", team, "noisy", |copy| copy["spec"]["size"] == 100 + SINCE).await?;
    stage.at_rest().await?;
    kcp.restore(&snapshot).await?;
    flows(&stage).await?;
    said(&stage, &agent, "kcp (").await?;
    agent.stop().await
}

pub(super) async fn after_the_service_cluster_was_restored_a_running_agent_goes_on(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let (stage, agent) = furnished(world.clone()).await?;
    let (_, service) = world.planes().context("this needs planes")?;
    let snapshot = service.snapshot();
    let team = &stage.team_a;
    let copy = stage.copy(team, "noisy").await?.context("no copy")?;
    for number in 1..=SINCE {
        stage.operator_reports(&copy, json!({ "phase": format!("undone-{number}") })).await?;
        write_credentials(&stage, &copy, &format!("undone-{number}")).await?;
    }
    let last = format!("undone-{SINCE}");
    stage.source_is("the last status arrives", team, "noisy", |source| source["status"]["phase"] == *last).await?;
    stage.at_rest().await?;
    service.restore(&snapshot).await?;
    flows(&stage).await?;
    // What was undone on the service cluster is told to the consumer too.
    write_credentials(&stage, &copy, "again").await?;
    credentials_are(&stage, team, "noisy", "again").await?;
    said(&stage, &agent, "the service cluster (").await?;
    agent.stop().await
}

/// Sees that it is said which server went back: in the log once, as a metric, and on the PublishedResource.
async fn said(stage: &Stage, agent: &Agent, server: &str) -> anyhow::Result<()> {
    let told = agent.log().iter().filter(|line| line.contains("A server has gone back in time")).count();
    ensure!(told == 1, "said {told} times");
    let metrics = agent.metrics().await?;
    let counted = metrics.lines().filter(|line| line.starts_with("sync_agent_server_rewinds_total{")).count();
    ensure!(counted == 1, "counted for {counted} servers");
    let at = (&stage.service, &kinds::published_resources(), None, &*stage.published_name("Bucket"));
    stage
        .object("the PublishedResource says so", at, |pr| {
            let told = condition(pr, "ServersInTime");
            told["status"] == "False" && told["message"].as_str().is_some_and(|message| message.contains(server))
        })
        .await?;
    Ok(())
}

pub(super) async fn a_workspace_that_moves_to_a_shard_with_lower_versions_and_back_is_served_all_the_time(
    _: Arc<dyn World>,
) -> anyhow::Result<()> {
    // Shards of a real kcp cannot take a workspace back, and are not part of the other worlds.
    let world = Arc::new(EmbeddedWorld::with_shards_apart(&[1_000_000, 0]).await?);
    let (stage, agent) = furnished(world.clone()).await?;
    let team = &stage.team_a;
    for round in 0..MOVES {
        stage.at_rest().await?;
        let before = copies(&stage).await?;
        let (cluster, shard) = home(team).await?;
        ensure!(world.kcp_plane().move_cluster(&cluster, 1 - shard), "{cluster} is not on shard {shard}");
        if round % 2 == 0 {
            // A move alone writes nothing to copies; on the other rounds everything goes on at once.
            stage.at_rest().await?;
            ensure!(copies(&stage).await? == before, "a move wrote: {:?}", copies(&stage).await?);
        }
        served(&stage, round).await.with_context(|| format!("after move {round}, from shard {shard}"))?;
        let after = copies(&stage).await?;
        for (name, (uid, _)) in &before {
            let now = after.get(name).with_context(|| format!("the copy of {name} is gone"))?;
            ensure!(now.0 == *uid, "the copy of {name} was made again");
        }
    }
    agent.stop().await
}

/// Sees that everything of a workspace that has just moved arrives.
async fn served(stage: &Stage, round: usize) -> anyhow::Result<()> {
    let (team, word, size) = (&stage.team_a, format!("round-{round}"), 10 + round);
    write_settings(team, "kept", &word).await?;
    stage.reorder(team, "kept", json!({ "size": size })).await?;
    let copy = stage.copy_is("an edit arrives", team, "kept", |copy| copy["spec"]["size"] == size).await?;
    settings_are(stage, team, "kept", &word).await?;
    write_credentials(stage, &copy, &word).await?;
    credentials_are(stage, team, "kept", &word).await?;
    stage.operator_reports(&copy, json!({ "phase": word })).await?;
    stage.source_is("a status arrives", team, "kept", |source| source["status"]["phase"] == *word).await?;
    furnish(stage, team, &word).await?;
    // What nobody has touched since it moved follows as well.
    write_settings(team, "noisy", &word).await?;
    settings_are(stage, team, "noisy", &word).await
}

/// The logical cluster of a workspace, and its shard.
async fn home(team: &Workspace) -> anyhow::Result<(String, usize)> {
    let cluster = team.client.get(&kinds::kcp(&LOGICAL_CLUSTER), None, "cluster").await?;
    let metadata = &cluster.context("no logical cluster")?["metadata"];
    let name = metadata["annotations"]["kcp.io/cluster"].as_str().context("no name")?.to_owned();
    let shard = metadata["annotations"]["core.kcp.io/shard"].as_str().context("no shard")?;
    Ok((name, shard.strip_prefix("shard-").map_or(Ok(0), str::parse)?))
}

/// UID and generation of all copies, by the name of their order.
async fn copies(stage: &Stage) -> anyhow::Result<BTreeMap<String, (Value, Value)>> {
    let all = stage.service.list(&stage.buckets(), None, &ListOptions::default()).await?;
    let copy = |copy: Value| {
        let metadata = &copy["metadata"];
        let name = metadata["annotations"][api::REMOTE_NAME].as_str().unwrap_or_default().to_owned();
        (name, (metadata["uid"].clone(), metadata["generation"].clone()))
    };
    Ok(all.into_iter().map(copy).collect())
}

/// Two orders, each with a Secret of the service and a ConfigMap of the consumer, and a running agent.
async fn furnished(world: Arc<dyn World>) -> anyhow::Result<(Stage, Agent)> {
    let stage = Stage::bare(world).await?;
    stage.install_crd(&fixtures::crd(&stage.group, "Bucket")).await?;
    stage.create_export().await?;
    stage.publish("Bucket", json!({ "related": [credentials(), settings()] })).await?;
    let agent = Agent::start(&stage, Setup { probes: true, ..Setup::default() })?;
    futures::try_join!(stage.bind(&stage.team_a), stage.bind(&stage.team_b))?;
    for name in ["kept", "noisy"] {
        furnish(&stage, &stage.team_a, name).await?;
    }
    stage.ready(&agent).await?;
    Ok((stage, agent))
}

/// An order with everything that belongs to it.
async fn furnish(stage: &Stage, team: &Workspace, name: &str) -> anyhow::Result<()> {
    write_settings(team, name, "first").await?;
    stage.order(team, name, json!({ "size": 1 })).await?;
    let copy = stage.copy_is("the copy is there", team, name, |_| true).await?;
    write_credentials(stage, &copy, "first").await?;
    credentials_are(stage, team, name, "first").await?;
    settings_are(stage, team, name, "first").await
}

/// Sees that everything flows: new orders, edits, status, and related objects of both sides.
async fn flows(stage: &Stage) -> anyhow::Result<()> {
    let team = &stage.team_a;
    // Connections have just been cut.
    stage
        .eventually("a new order is accepted", async || {
            if stage.source(team, "new").await?.is_none() {
                stage.order(team, "new", json!({ "size": 7 })).await?;
            }
            Ok(())
        })
        .await?;
    stage.copy_is("a new order is placed", team, "new", |copy| copy["spec"]["size"] == 7).await?;
    stage.reorder(team, "kept", json!({ "size": 5 })).await?;
    let copy = stage.copy_is("an edit arrives", team, "kept", |copy| copy["spec"]["size"] == 5).await?;
    stage.operator_reports(&copy, json!({ "phase": "Ready" })).await?;
    stage.source_is("a status arrives", team, "kept", |source| source["status"]["phase"] == "Ready").await?;
    write_credentials(stage, &copy, "second").await?;
    credentials_are(stage, team, "kept", "second").await?;
    write_settings(team, "kept", "second").await?;
    settings_are(stage, team, "kept", "second").await?;
    furnish(stage, team, "newest").await
}

fn credentials() -> Value {
    json!({
        "identifier": "credentials",
        "origin": "service",
        "version": "v1",
        "resource": "secrets",
        "object": { "template": { "template": "{{ .Object.metadata.name }}-credentials" } },
        "watch": { "bySelector": {} },
    })
}

fn settings() -> Value {
    json!({
        "identifier": "settings",
        "origin": "kcp",
        "version": "v1",
        "resource": "configmaps",
        "object": { "template": { "template": "{{ .Object.metadata.name }}-settings" } },
        "watch": { "bySelector": {} },
    })
}

/// Writes the Secret of a copy, as an operator does.
async fn write_credentials(stage: &Stage, copy: &Value, word: &str) -> anyhow::Result<()> {
    let (namespace, name) = place(copy);
    let name = format!("{name}-credentials");
    let secret = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": name },
        "data": { "word": BASE64.encode(word.as_bytes()) } });
    stage
        .eventually("the operator writes its Secret", async || {
            let secrets = kinds::secrets();
            match stage.service.get(&secrets, Some(namespace), &name).await? {
                Some(_) => stage.service.merge_patch(&secrets, Some(namespace), &name, &secret).await?,
                None => stage.service.create(&secrets, Some(namespace), &secret).await?,
            };
            Ok(())
        })
        .await
}

async fn credentials_are(stage: &Stage, team: &Workspace, name: &str, word: &str) -> anyhow::Result<()> {
    let (name, word) = (format!("{name}-credentials"), BASE64.encode(word.as_bytes()));
    let at = (&team.client, &kinds::secrets(), Some(NAMESPACE), name.as_str());
    stage.object("the Secret reaches the consumer", at, |secret| secret["data"]["word"] == *word).await?;
    Ok(())
}

/// Writes the ConfigMap beside an order, as a consumer does.
async fn write_settings(team: &Workspace, name: &str, word: &str) -> anyhow::Result<()> {
    let name = format!("{name}-settings");
    let map =
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name }, "data": { "word": word } });
    let maps = kinds::config_maps();
    match team.client.get(&maps, Some(NAMESPACE), &name).await? {
        Some(_) => team.client.merge_patch(&maps, Some(NAMESPACE), &name, &map).await?,
        None => team.client.create(&maps, Some(NAMESPACE), &map).await?,
    };
    Ok(())
}

async fn settings_are(stage: &Stage, team: &Workspace, name: &str, word: &str) -> anyhow::Result<()> {
    let copy = stage.copy(team, name).await?.context("no copy")?;
    let (namespace, name) = place(&copy);
    let name = format!("{name}-settings");
    let at = (&stage.service, &kinds::config_maps(), Some(namespace), name.as_str());
    stage.object("the ConfigMap reaches the service", at, |map| map["data"]["word"] == *word).await?;
    Ok(())
}
