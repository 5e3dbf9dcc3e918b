//! What travels beside an order.

use std::sync::Arc;

use anyhow::{Context, ensure};
use carrick_client::DeleteOptions;
use carrick_e2e_stage::stage::{NAMESPACE, Stage, place, shown};
use carrick_e2e_stage::world::World;
use carrick_e2e_stage::{fixtures, kinds};
use carrick_syncagent::api;
use serde_json::{Value, json};

pub(super) async fn a_secret_of_the_service_reaches_the_consumer_and_follows_changes(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let stage = Stage::bare(world).await?;
    stage.install_crd(&fixtures::crd(&stage.group, "Bucket")).await?;
    stage.create_export().await?;
    stage.publish("Bucket", json!({ "related": [credentials()] })).await?;
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
    stage.service.create(&kinds::secrets(), Some(namespace), &secret(copy_name, "first")).await?;

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

pub(super) async fn a_config_map_of_the_consumer_reaches_the_service_and_goes_with_either(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let stage = Stage::bare(world).await?;
    stage.install_crd(&fixtures::crd(&stage.group, "Bucket")).await?;
    stage.create_export().await?;
    stage.bind(&stage.team_a).await?;
    let related = json!({
        "identifier": "settings",
        "origin": "kcp",
        "version": "v1",
        "resource": "configmaps",
        "object": { "template": { "template": "{{ .Object.metadata.name }}-settings" } },
        "watch": { "bySelector": {} },
    });
    stage.publish("Bucket", json!({ "related": [related] })).await?;
    let agent = stage.start_agent()?;

    let (team, config_maps) = (&stage.team_a, kinds::config_maps());
    stage.order(team, "bucket", json!({ "size": 1 })).await?;
    let copy = stage.copy_is("the copy is there", team, "bucket", |_| true).await?;
    let (namespace, copy_name) = place(&copy);
    let copied_name = format!("{copy_name}-settings");
    let settings = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": "bucket-settings" },
        "data": { "color": "blue" },
    });
    let at = (&team.client, &config_maps, Some(NAMESPACE), "bucket-settings");
    let copied_at = (&stage.service, &config_maps, Some(namespace), copied_name.as_str());

    // Deleted by its owner while the order goes on: both ConfigMaps go.
    team.client.create(&config_maps, Some(NAMESPACE), &settings).await?;
    stage.object("the ConfigMap reaches the service", copied_at, |copied| copied["data"] == settings["data"]).await?;
    stage
        .object("the original is held", at, |original| original["metadata"]["finalizers"] == json!([api::FINALIZER]))
        .await?;
    let patch = json!({ "data": { "color": "red", "shape": "round" } });
    team.client.merge_patch(&config_maps, Some(NAMESPACE), "bucket-settings", &patch).await?;
    stage.object("a change follows", copied_at, |copied| copied["data"] == patch["data"]).await?;
    team.client.delete(&config_maps, Some(NAMESPACE), "bucket-settings", &DeleteOptions::default()).await?;
    stage.gone("the original goes", at).await?;
    stage.gone("its copy goes", copied_at).await?;

    // The order goes: so does the copy of the ConfigMap, while the original belongs to the consumer.
    team.client.create(&config_maps, Some(NAMESPACE), &settings).await?;
    stage.object("the next ConfigMap follows", copied_at, |copied| copied["data"] == settings["data"]).await?;
    stage.cancel(team, "bucket").await?;
    stage.all_gone(team, "bucket").await?;
    stage.gone("the copy goes with the order", copied_at).await?;
    stage.object("the original is free", at, |original| original["metadata"]["finalizers"].is_null()).await?;
    agent.stop().await
}

pub(super) async fn a_secret_that_gets_its_label_late_is_found(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = Stage::bare(world).await?;
    stage.install_crd(&fixtures::crd(&stage.group, "Bucket")).await?;
    stage.create_export().await?;
    futures::try_join!(stage.bind(&stage.team_a), stage.bind(&stage.team_b))?;
    let related = json!({
        "identifier": "credentials",
        "origin": "service",
        "version": "v1",
        "resource": "secrets",
        "object": { "selector": {
            "matchLabels": { "for": "{{ .RemoteObject.metadata.name }}" },
            "rewrite": { "template": { "template": "{{ .RemoteObject.metadata.name }}-credentials" } },
        }},
    });
    stage.publish("Bucket", json!({ "related": [related] })).await?;
    let agent = stage.start_agent()?;

    // Two orders share a namespace, so that each one has to find its own.
    let (team, secrets) = (&stage.team_a, kinds::secrets());
    for name in ["first", "second"] {
        stage.order(team, name, json!({ "size": 1 })).await?;
        let copy = stage.copy_is("the copy is there", team, name, |_| true).await?;
        stage.service.create(&secrets, Some(place(&copy).0), &secret(name, name)).await?;
    }
    stage.at_rest().await?;
    for name in ["first", "second"] {
        let copy = stage.copy_is("the copy is there", team, name, |_| true).await?;
        let patch = json!({ "metadata": { "labels": { "for": name } } });
        stage.service.merge_patch(&secrets, Some(place(&copy).0), &format!("{name}-credentials"), &patch).await?;
        let at = (&team.client, &secrets, Some(NAMESPACE), format!("{name}-credentials"));
        stage
            .object("the Secret reaches the consumer", (at.0, at.1, at.2, &at.3), |secret| {
                secret["data"]["password"] == encoded(name)
            })
            .await?;
    }
    agent.stop().await
}

/// A Secret of the service, as a related resource.
pub(super) fn credentials() -> Value {
    json!({
        "identifier": "credentials",
        "origin": "service",
        "version": "v1",
        "resource": "secrets",
        "object": { "template": { "template": "{{ .Object.metadata.name }}-credentials" } },
        "watch": { "bySelector": {} },
    })
}

/// The Secret that belongs to a copy.
pub(super) fn secret(copy_name: &str, password: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": { "name": format!("{copy_name}-credentials") },
        "data": { "password": encoded(password) },
    })
}

/// Text as it is kept in Secrets.
pub(super) fn encoded(text: &str) -> String {
    data_encoding::BASE64.encode(text.as_bytes())
}
