//! A status that kcp does not take as it is does not come again and again, and holds up nothing else.

use std::sync::Arc;

use anyhow::{Context, ensure};
use carrick_e2e_stage::fixtures::beside_names;
use carrick_e2e_stage::stage::{NAMESPACE, Stage, place};
use carrick_e2e_stage::world::World;
use carrick_e2e_stage::{fixtures, kinds};
use serde_json::{Value, json};

use super::{put, quick_agent, silent, warned};
use crate::related::encoded;

/// Publishes Buckets whose status is changed on its way so that kcp makes something else of it, and sees that all else goes on.
async fn live_with(
    world: Arc<dyn World>,
    mutation: Value,
    reported: Value,
    arrives: impl Fn(&Value) -> bool,
    told: Option<&str>,
) -> anyhow::Result<()> {
    let stage = Stage::bound(world, fixtures::closed).await?;
    let credentials = json!({
        "identifier": "credentials", "origin": "service", "kind": "Secret",
        "object": { "template": { "template": "{{ .Object.metadata.name }}-credentials" } },
        "watch": { "bySelector": {} },
    });
    let settings = json!({
        "identifier": "settings", "origin": "kcp", "kind": "ConfigMap",
        "object": { "template": { "template": "{{ .Object.metadata.name }}-settings" } },
        "watch": { "bySelector": {} },
    });
    let rules = json!({
        "naming": beside_names(""), "mutation": { "status": mutation }, "related": [credentials, settings],
    });
    stage.publish("Bucket", rules).await?;
    let agent = quick_agent(&stage)?;
    let (team, secrets, maps) = (&stage.team_a, kinds::secrets(), kinds::config_maps());
    stage.order(team, "bucket", json!({ "size": 1 })).await?;
    let copy = stage.copy_is("the copy is there", team, "bucket", |_| true).await?;
    stage.operator_reports(&copy, reported.clone()).await?;
    stage.source_is("what kcp takes of the status arrives", team, "bucket", |s| arrives(&s["status"])).await?;
    if let Some(words) = told {
        warned(&stage, team, "bucket", &[words]).await?;
    }
    silent(&stage, &agent).await?;

    // Related objects come meanwhile, in both directions.
    let (namespace, content) = (place(&copy).0, json!({ "data": { "password": encoded("x") } }));
    put(&stage.service, &secrets, namespace, "bucket-credentials", &content).await?;
    let at = (&team.client, &secrets, Some(NAMESPACE), "bucket-credentials");
    stage.object("the Secret of the service arrives", at, |_| true).await?;
    put(&team.client, &maps, NAMESPACE, "bucket-settings", &json!({ "data": { "color": "red" } })).await?;
    let at = (&stage.service, &maps, Some(namespace), "bucket-settings");
    stage.object("the ConfigMap of the consumer arrives", at, |_| true).await?;
    stage.reorder(team, "bucket", json!({ "size": 2 })).await?;
    stage.copy_is("and so do changes", team, "bucket", |copy| copy["spec"]["size"] == 2).await?;
    silent(&stage, &agent).await?;

    // Neither does a restart write it again.
    agent.stop().await?;
    let agent = quick_agent(&stage)?;
    stage.ready(&agent).await?;
    silent(&stage, &agent).await?;
    let before = stage.source(team, "bucket").await?.context("the order is gone")?;

    // When something changes it is tried again.
    let mut other = reported;
    other["url"] = json!("elsewhere");
    other["mode"] = json!("fine");
    stage.operator_reports(&copy, other).await?;
    let after = stage.source_is("the next one arrives", team, "bucket", |s| s["status"]["url"] == "elsewhere").await?;
    ensure!(before["metadata"]["uid"] == after["metadata"]["uid"], "the order was made anew");
    silent(&stage, &agent).await?;
    stage.cancel(team, "bucket").await?;
    stage.all_gone(team, "bucket").await?;
    agent.stop().await
}

pub(crate) async fn a_status_of_which_kcp_drops_a_field_is_written_once(world: Arc<dyn World>) -> anyhow::Result<()> {
    let extra = json!([{ "cel": { "path": "status.extra", "expression": "'nobody knows this field'" } }]);
    live_with(world, extra, json!({ "url": "here" }), |status| status["url"] == "here", None).await
}

pub(crate) async fn a_status_of_which_kcp_fills_in_a_field_is_written_once(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let without =
        json!([{ "delete": { "path": "status.phase" } }, { "delete": { "path": "status.conditions.0.status" } }]);
    let reported = json!({
        "url": "here", "phase": "Ready", "conditions": [{ "type": "Ready", "status": "True" }], "hosts": ["a", "b"],
    });
    let arrives = |status: &Value| status["url"] == "here" && status["phase"] == "Pending";
    live_with(world, without, reported, arrives, None).await
}

pub(crate) async fn a_status_that_kcp_refuses_is_told_and_not_repeated(world: Arc<dyn World>) -> anyhow::Result<()> {
    let broken = json!([{ "regex": { "path": "status.mode", "pattern": "^bad$", "replacement": "broken" } }]);
    live_with(world, broken, json!({ "url": "here", "mode": "bad" }), Value::is_null, Some("status")).await
}

pub(crate) async fn a_status_with_nulls_and_lists_returns_as_it_is(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = Stage::bound(world, fixtures::closed).await?;
    stage.publish("Bucket", json!({ "naming": beside_names("") })).await?;
    let agent = quick_agent(&stage)?;
    let team = &stage.team_a;
    stage.order(team, "bucket", json!({ "size": 1 })).await?;
    let copy = stage.copy_is("the copy is there", team, "bucket", |_| true).await?;
    let (namespace, name) = place(&copy);
    let ready = |text: &str| json!([{ "type": "Ready", "status": text }, { "type": "Synced" }]);
    for status in [
        json!({ "url": "a", "note": "x", "conditions": ready("False"), "hosts": ["a", "b"] }),
        json!({ "url": "b", "note": null, "conditions": ready("True"), "hosts": ["b"] }),
        json!({ "note": null, "conditions": [], "hosts": [] }),
        json!({ "url": "c" }),
    ] {
        stage
            .eventually("the operator writes the whole status", async || {
                let mut copy = stage.copy(team, "bucket").await?.context("the copy is gone")?;
                copy["status"] = status.clone();
                stage.service.replace_status(&stage.buckets(), Some(namespace), &copy).await?;
                Ok(())
            })
            .await?;
        let stored = stage.service.get(&stage.buckets(), Some(namespace), name).await?.context("the copy is gone")?;
        let wanted = stored["status"].clone();
        stage.source_is("the status is equal", team, "bucket", |source| source["status"] == wanted).await?;
        silent(&stage, &agent).await?;
    }
    agent.stop().await
}
