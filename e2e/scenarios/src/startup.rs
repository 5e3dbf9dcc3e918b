//! The agent is there before what it needs.

use std::sync::Arc;

use anyhow::ensure;
use carrick_client::{DeleteOptions, ListOptions};
use carrick_e2e_stage::agent::{Agent, Setup};
use carrick_e2e_stage::stage::{Stage, condition, shown};
use carrick_e2e_stage::world::World;
use carrick_e2e_stage::{fixtures, kinds};
use carrick_kcp::kinds::{API_EXPORT, API_EXPORT_ENDPOINT_SLICE, API_RESOURCE_SCHEMA};
use carrick_syncagent::api;
use serde_json::json;

pub(super) async fn an_agent_that_starts_before_its_slice_recovers_by_itself(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let stage = Stage::bare(world).await?;
    stage.install_crd(&fixtures::crd(&stage.group, "Bucket")).await?;
    stage.publish("Bucket", json!({})).await?;
    let agent = Agent::start(&stage, Setup { probes: true, ..Setup::default() })?;
    stage.not_ready(&agent, &format!("APIExportEndpointSlice {:?}", stage.export_name())).await?;

    stage.create_export().await?;
    stage.bind(&stage.team_a).await?;
    stage.order(&stage.team_a, "bucket", json!({ "size": 1 })).await?;
    stage.copy_is("the copy is there", &stage.team_a, "bucket", |_| true).await?;
    stage.ready(&agent).await?;
    agent.stop().await
}

pub(super) async fn an_agent_that_starts_before_its_crd_recovers_by_itself(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let stage = Stage::bare(world).await?;
    stage.create_export().await?;
    stage.bind(&stage.team_a).await?;
    stage.publish("Bucket", json!({})).await?;
    let agent = stage.start_agent()?;
    let name = stage.published_name("Bucket");
    let at = (&stage.service, &kinds::published_resources(), None, name.as_str());
    stage
        .object("the PublishedResource says what is missing", at, |published| {
            condition(published, "SchemaPublished")["reason"] == "KindNotFound"
        })
        .await?;

    stage.install_crd(&fixtures::crd(&stage.group, "Bucket")).await?;
    stage.order(&stage.team_a, "bucket", json!({ "size": 1 })).await?;
    stage.copy_is("the copy is there", &stage.team_a, "bucket", |_| true).await?;
    agent.stop().await
}

pub(super) async fn an_agent_that_is_told_only_its_export_finds_the_slice(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = Stage::set(world).await?;
    let agent = Agent::start(&stage, Setup { by_export: true, ..Setup::default() })?;
    stage.order(&stage.team_a, "bucket", json!({ "size": 1 })).await?;
    stage.copy_is("the copy is there", &stage.team_a, "bucket", |_| true).await?;
    agent.stop().await
}

pub(super) async fn an_agent_follows_its_slice_to_another_export(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = Stage::set(world).await?;
    let provider = &stage.provider.client;
    let slices = kinds::kcp(&API_EXPORT_ENDPOINT_SLICE);
    let slice = |export: &str| {
        json!({
            "apiVersion": API_EXPORT_ENDPOINT_SLICE.api_version(),
            "kind": API_EXPORT_ENDPOINT_SLICE.kind,
            "metadata": { "name": "moving" },
            "spec": { "export": { "path": stage.provider.path, "name": export } },
        })
    };
    provider.create(&slices, None, &slice(stage.export_name())).await?;
    let agent = Agent::start(&stage, Setup { slice: Some("moving"), ..Setup::default() })?;
    stage.order(&stage.team_a, "bucket", json!({ "size": 1 })).await?;
    stage.copy_is("the copy is there", &stage.team_a, "bucket", |_| true).await?;

    let second = format!("second-{}", stage.export_name());
    let export = json!({
        "apiVersion": API_EXPORT.api_version(),
        "kind": API_EXPORT.kind,
        "metadata": { "name": second },
        "spec": {},
    });
    provider.create(&kinds::kcp(&API_EXPORT), None, &export).await?;
    provider.delete(&slices, None, "moving", &DeleteOptions::default()).await?;
    stage
        .eventually("the slice can be created anew", async || {
            Ok(provider.create(&slices, None, &slice(&second)).await?)
        })
        .await?;
    let at = (provider, &kinds::kcp(&API_EXPORT), None, second.as_str());
    let served = stage
        .object("the agent works for the second export", at, |export| {
            export["spec"]["latestResourceSchemas"][0].is_string()
        })
        .await?;
    ensure!(served["metadata"]["annotations"][api::AGENT_NAME] == stage.agent_name(), "{}", shown(&served));
    agent.stop().await
}

pub(super) async fn an_export_made_anew_gets_everything_again(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = Stage::bare(world).await?;
    stage.install_crd(&fixtures::crd(&stage.group, "Bucket")).await?;
    stage.create_export().await?;
    stage.publish("Bucket", json!({})).await?;
    let agent = Agent::start(&stage, Setup { probes: true, ..Setup::default() })?;
    let is_listed = async || {
        let export = stage.export().await?;
        ensure!(export["spec"]["latestResourceSchemas"][0].is_string(), "it is {}", shown(&export));
        Ok(export)
    };
    stage.eventually("the export lists the kind", is_listed).await?;

    // As when the whole workspace is made anew: the schemas are gone as well.
    let provider = &stage.provider.client;
    let (exports, schemas) = (kinds::kcp(&API_EXPORT), kinds::kcp(&API_RESOURCE_SCHEMA));
    provider.delete(&exports, None, stage.export_name(), &DeleteOptions::default()).await?;
    stage.not_ready(&agent, "the APIExport is gone").await?;
    for schema in provider.list(&schemas, None, &ListOptions::default()).await? {
        let name = schema["metadata"]["name"].as_str().unwrap_or_default();
        provider.delete(&schemas, None, name, &DeleteOptions::default()).await?;
    }
    let slices = kinds::kcp(&API_EXPORT_ENDPOINT_SLICE);
    provider
        .delete(&slices, None, stage.export_name(), &DeleteOptions::default())
        .await
        .or_else(|error| if error.is_not_found() { Ok(()) } else { Err(error) })?;
    stage.create_export().await?;
    let export = stage.eventually("the new export lists the kind", is_listed).await?;
    let name = export["spec"]["latestResourceSchemas"][0].as_str().unwrap_or_default();
    stage.object("the schema is there again", (provider, &schemas, None, name), |_| true).await?;
    stage.bind(&stage.team_a).await?;
    stage.order(&stage.team_a, "bucket", json!({ "size": 1 })).await?;
    stage.copy_is("the copy is there", &stage.team_a, "bucket", |_| true).await?;
    stage.ready(&agent).await?;
    agent.stop().await
}
