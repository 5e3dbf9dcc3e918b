//! What platform owners do on ordinary days while agents run: servers are restored from backups.

use std::sync::Arc;

use anyhow::{Context, ensure};
use carrick_e2e_stage::agent::{Agent, Setup};
use carrick_e2e_stage::stage::{NAMESPACE, Stage, Workspace, condition, place};
use carrick_e2e_stage::world::{RealWorld, Side, World};
use carrick_e2e_stage::{fixtures, kinds};
use data_encoding::BASE64;
use serde_json::{Value, json};

/// So many writes follow the snapshot, so that versions which watches know are far ahead of the restored server.
const SINCE: usize = 30;

pub(super) async fn after_kcp_was_restored_a_running_agent_goes_on(world: Arc<dyn World>) -> anyhow::Result<()> {
    let (stage, agent) = furnished(world.clone()).await?;
    let snapshot = world.snapshot(Side::Kcp)?;
    let team = &stage.team_a;
    for number in 1..=SINCE {
        stage.reorder(team, "noisy", json!({ "size": 100 + number })).await?;
        let patch = json!({ "data": { "word": format!("undone-{number}") } });
        team.client.merge_patch(&kinds::config_maps(), Some(NAMESPACE), "noisy-settings", &patch).await?;
    }
    stage.copy_is("the last edit arrives", team, "noisy", |copy| copy["spec"]["size"] == 100 + SINCE).await?;
    stage.at_rest().await?;
    world.restore(Side::Kcp, &snapshot).await?;
    flows(&stage).await?;
    // A real kcp writes so much when it starts that its versions may have passed those that were known: then nothing shows that time went
    // back, and what was listed again is as good.
    if world.name() != RealWorld::NAME {
        said(&stage, &agent, "kcp (").await?;
    }
    agent.stop().await
}

pub(super) async fn after_the_service_cluster_was_restored_a_running_agent_goes_on(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let (stage, agent) = furnished(world.clone()).await?;
    let snapshot = world.snapshot(Side::Service)?;
    let team = &stage.team_a;
    let copy = stage.copy(team, "noisy").await?.context("no copy")?;
    for number in 1..=SINCE {
        stage.operator_reports(&copy, json!({ "phase": format!("undone-{number}") })).await?;
        write_credentials(&stage, &copy, &format!("undone-{number}")).await?;
    }
    let last = format!("undone-{SINCE}");
    stage.source_is("the last status arrives", team, "noisy", |source| source["status"]["phase"] == *last).await?;
    stage.at_rest().await?;
    world.restore(Side::Service, &snapshot).await?;
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

/// Two orders, each with a Secret of the service and a ConfigMap of the consumer, and a running agent.
pub(super) async fn furnished(world: Arc<dyn World>) -> anyhow::Result<(Stage, Agent)> {
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
pub(super) async fn furnish(stage: &Stage, team: &Workspace, name: &str) -> anyhow::Result<()> {
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
pub(super) async fn write_credentials(stage: &Stage, copy: &Value, word: &str) -> anyhow::Result<()> {
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

pub(super) async fn credentials_are(stage: &Stage, team: &Workspace, name: &str, word: &str) -> anyhow::Result<()> {
    let (name, word) = (format!("{name}-credentials"), BASE64.encode(word.as_bytes()));
    let at = (&team.client, &kinds::secrets(), Some(NAMESPACE), name.as_str());
    stage.object("the Secret reaches the consumer", at, |secret| secret["data"]["word"] == *word).await?;
    Ok(())
}

/// Writes the ConfigMap beside an order, as a consumer does.
pub(super) async fn write_settings(team: &Workspace, name: &str, word: &str) -> anyhow::Result<()> {
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

pub(super) async fn settings_are(stage: &Stage, team: &Workspace, name: &str, word: &str) -> anyhow::Result<()> {
    let copy = stage.copy(team, name).await?.context("no copy")?;
    let (namespace, name) = place(&copy);
    let name = format!("{name}-settings");
    let at = (&stage.service, &kinds::config_maps(), Some(namespace), name.as_str());
    stage.object("the ConfigMap reaches the service", at, |map| map["data"]["word"] == *word).await?;
    Ok(())
}
