//! The agent is there before what it needs.

use std::sync::Arc;

use serde_json::json;

use crate::agent::{Agent, Setup};
use crate::stage::{Stage, condition};
use crate::world::World;
use crate::{fixtures, kinds};

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
