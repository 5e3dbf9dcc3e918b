//! What travels beside an order.

use std::sync::Arc;

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use crate::stage::{NAMESPACE, Stage, place, shown};
use crate::world::World;
use crate::{fixtures, kinds};

pub(super) async fn a_secret_of_the_service_reaches_the_consumer_and_follows_changes(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let stage = Stage::bare(world).await?;
    stage.install_crd(&fixtures::crd(&stage.group, "Bucket")).await?;
    stage.create_export().await?;
    let related = json!([{
        "identifier": "credentials",
        "origin": "service",
        "version": "v1",
        "resource": "secrets",
        "object": { "template": { "template": "{{ .Object.metadata.name }}-credentials" } },
        "watch": { "bySelector": {} },
    }]);
    stage.publish("Bucket", json!({ "related": related })).await?;
    let agent = stage.start_agent()?;
    let claims = json!([
        { "resource": "events", "all": true },
        { "resource": "namespaces", "all": true },
        { "resource": "secrets", "all": true },
    ]);
    stage
        .eventually("the export claims what it needs", async || {
            let export = stage.export().await?;
            ensure!(export["spec"]["permissionClaims"] == claims, "it is {}", shown(&export));
            Ok(())
        })
        .await?;
    futures::try_join!(stage.bind(&stage.team_a), stage.bind(&stage.team_b))?;

    let team = &stage.team_a;
    stage.order(team, "bucket", json!({ "size": 1 })).await?;
    stage.order(&stage.team_b, "bucket", json!({ "size": 1 })).await?;
    let copy = stage.copy_is("the copy is there", team, "bucket", |_| true).await?;
    let (namespace, copy_name) = place(&copy);
    let name = format!("{copy_name}-credentials");
    let secret = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": { "name": name },
        "data": { "password": encoded("first") },
    });
    stage.service.create(&kinds::secrets(), Some(namespace), &secret).await?;

    let at = (&team.client, &kinds::secrets(), Some(NAMESPACE), "bucket-credentials");
    stage
        .object("the Secret reaches the consumer", at, |secret| {
            secret["data"] == json!({ "password": encoded("first") })
        })
        .await?;
    let expected =
        json!({ "namespace": NAMESPACE, "name": "bucket-credentials", "apiVersion": "v1", "kind": "Secret" });
    stage
        .source_is("the order names its Secret", team, "bucket", |source| {
            let text = &source["metadata"]["annotations"]["related-resources.syncagent.kcp.io/credentials.0"];
            let named: Option<Value> = text.as_str().and_then(|text| serde_json::from_str(text).ok());
            named.as_ref() == Some(&expected)
        })
        .await?;

    let patch = json!({ "data": { "password": encoded("second"), "user": encoded("me") } });
    stage.service.merge_patch(&kinds::secrets(), Some(namespace), &name, &patch).await?;
    stage.object("the change follows", at, |secret| secret["data"] == patch["data"]).await?;

    // Nobody else gets it, and the original stays when the order goes.
    let other = stage.team_b.client.get(&kinds::secrets(), Some(NAMESPACE), "bucket-credentials").await?;
    ensure!(other.is_none(), "team-b has it too");
    stage.cancel(team, "bucket").await?;
    stage.all_gone(team, "bucket").await?;
    let original =
        stage.service.get(&kinds::secrets(), Some(namespace), &name).await?.context("the original is gone")?;
    ensure!(original["data"] == patch["data"] && original["metadata"]["finalizers"].is_null(), "the original changed");
    agent.stop().await
}

fn encoded(text: &str) -> String {
    data_encoding::BASE64.encode(text.as_bytes())
}
