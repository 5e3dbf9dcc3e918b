//! An API that a platform has defined, published for a kind of the provider.

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, ensure};
use carrick_client::{DeleteOptions, Resource};
use carrick_e2e_stage::stage::{NAMESPACE, Stage, condition, place, shown};
use carrick_e2e_stage::world::World;
use carrick_e2e_stage::{fixtures, kinds};
use carrick_kcp::kinds::API_RESOURCE_SCHEMA;
use serde_json::{Value, json};

use super::{READY, word};
use crate::related::secret;

/// The platform's kind, which the service cluster does not have.
fn storages(stage: &Stage) -> Resource {
    Resource::namespaced(&group(stage), "v1alpha1", "Storage", "storages")
}

fn group(stage: &Stage) -> String {
    format!("platform.{}", stage.group)
}

/// The platform's schema, as strict as those of real platforms.
fn schema() -> Value {
    let text = json!({ "type": "string" });
    let condition = json!({ "type": "object", "required": ["type", "status", "reason", "message", "lastTransitionTime"], "properties": {
        "type": text, "status": text, "reason": text, "message": text, "lastTransitionTime": { "type": "string", "format": "date-time" } } });
    let kind = json!({ "type": "object", "required": ["group", "version", "kind"],
        "properties": { "group": text, "version": text, "kind": text } });
    let entry = json!({ "type": "object", "required": ["name", "gvk"],
        "properties": { "name": text, "namespace": text, "gvk": kind } });
    let status = json!({ "type": "object", "properties": {
        "status": text, "url": text,
        "conditions": { "type": "array", "items": condition },
        "relatedResources": { "type": "object", "additionalProperties": entry },
    } });
    let spec = json!({ "type": "object", "required": ["gigabytes"], "properties": {
        "gigabytes": { "type": "integer", "minimum": 1 }, "place": text, "tier": text } });
    json!({ "type": "object", "properties": { "spec": spec, "status": status } })
}

fn implementing(stage: &Stage) -> Value {
    json!({
        "resource": format!("storages.{}", group(stage)), "kind": "Storage",
        "versions": [{ "name": "v1alpha1", "schema": { "openAPIV3Schema": schema() } }],
        "spec": [
            { "move": { "from": "spec.place", "to": "spec.region" } },
            { "cel": { "path": "spec.size", "expression": "other.spec.gigabytes * 1024" } },
            { "template": { "path": "spec.owner", "template": "{{ .Copy.name }}" } },
        ],
        "status": [{ "when": "has(other.status.url)", "move": { "from": "status.url", "to": "status.url" } }],
    })
}

fn offer(stage: &Stage) -> Value {
    json!({
        "implements": implementing(stage),
        "related": [{
            "identifier": "credentials", "required": true, "origin": "service", "version": "v1", "resource": "secrets",
            "cleanupPolicy": "OnPrimaryDeletion", "access": "Owned", "watch": { "bySelector": {} },
            "object": { "template": { "template": "{{ .Object.metadata.name }}-credentials" } },
        }],
        "report": { "status": READY },
    })
}

async fn set(world: Arc<dyn World>, change: impl FnOnce(&mut Value)) -> anyhow::Result<Stage> {
    let stage = Stage::bare(world).await?;
    let mut spec = offer(&stage);
    change(&mut spec);
    super::publish(&stage, &fixtures::crd(&stage.group, "Bucket"), spec).await?;
    Ok(stage)
}

/// The PublishedResource once it is so.
async fn published(stage: &Stage, what: &str, is_so: impl Fn(&Value) -> bool) -> anyhow::Result<Value> {
    let name = stage.published_name("Bucket");
    stage.object(what, (&stage.service, &kinds::published_resources(), None, &name), is_so).await
}

/// The copy of an order of the platform's kind.
async fn copy(stage: &Stage, name: &str, is_so: impl Fn(&Value) -> bool) -> anyhow::Result<Value> {
    let what = format!("the copy of {name} is so");
    stage.copy_is(&what, &stage.team_a, name, is_so).await
}

async fn order(stage: &Stage, name: &str, is_so: impl Fn(&Value) -> bool) -> anyhow::Result<Value> {
    let kind = storages(stage);
    stage.object(&format!("order {name} is so"), (&stage.team_a.client, &kind, Some(NAMESPACE), name), is_so).await
}

/// Order `disk`, its copy and what is remembered of them, once none of them changes any more.
async fn at_rest(stage: &Stage) -> anyhow::Result<[Option<Value>; 3]> {
    let (team, kind) = (&stage.team_a, storages(stage));
    let (mut last, mut since) = ([None, None, None], Instant::now());
    stage
        .eventually("nothing changes any more", async || {
            let ordered = team.client.get(&kind, Some(NAMESPACE), "disk").await?;
            let now = [ordered, stage.copy(team, "disk").await?, stage.remembered_of(team, "disk").await?];
            if now != last {
                (last, since) = (now.clone(), Instant::now());
            }
            ensure!(since.elapsed() >= stage.world.pace().rest, "it has changed not long ago");
            Ok(now)
        })
        .await
}

pub(crate) async fn a_platforms_api_is_served_by_a_kind_of_the_provider(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = set(world, |_| {}).await?;
    let agent = stage.start_agent()?;
    stage.bind(&stage.team_a).await?;
    let (team, kind) = (&stage.team_a, storages(&stage));

    // kcp gets what the platform has written, and nothing of the provider's kind.
    let pr = published(&stage, "it is published", |pr| condition(pr, "RulesPlausible")["status"] == "True").await?;
    let told = condition(&pr, "RulesPlausible")["message"].as_str().unwrap_or_default().to_owned();
    ensure!(told.matches("no step reads spec.tier").count() == 1, "{told}");
    let name = pr["status"]["resourceSchemaName"].as_str().context("no schema")?.to_owned();
    let found =
        stage.provider.client.get(&kinds::kcp(&API_RESOURCE_SCHEMA), None, &name).await?.context("no schema")?;
    let versions = found["spec"]["versions"].as_array().context("no versions")?;
    ensure!(versions.len() == 1 && versions[0]["schema"] == schema(), "{}", shown(&found));
    ensure!(
        found["spec"]["names"]["plural"] == "storages" && found["spec"]["group"] == group(&stage),
        "{}",
        shown(&found)
    );

    stage.order_kind(&kind, team, "disk", json!({ "gigabytes": 2, "place": "eu", "tier": "gold" })).await?;
    let made = copy(&stage, "disk", |copy| copy["spec"]["size"] == 2048).await?;
    let (namespace, name) = place(&made);
    ensure!(made["spec"] == json!({ "size": 2048, "region": "eu", "owner": name }), "{}", shown(&made));

    // The status is that of the steps and of the report, not the operator's.
    let ready = json!([{ "type": "Ready", "status": "True" }]);
    stage.operator_reports(&made, json!({ "url": "https://a", "secretly": 1, "conditions": ready })).await?;
    order(&stage, "disk", |order| order["status"]["url"] == "https://a" && word(order) == "Provisioning").await?;
    stage.service.create(&kinds::secrets(), Some(namespace), &secret(name, "first")).await?;
    let available = order(&stage, "disk", |order| word(order) == "Available").await?;
    ensure!(condition(&available, "Ready")["reason"] == "Unknown", "{}", shown(&available));
    ensure!(
        available["status"]["relatedResources"]["credentials"]["name"] == "disk-credentials",
        "{}",
        shown(&available)
    );
    ensure!(available["status"].get("secretly").is_none(), "{}", shown(&available));

    // Changes follow, and a restart writes nothing.
    team.client
        .merge_patch(&kind, Some(NAMESPACE), "disk", &json!({ "spec": { "gigabytes": 3, "place": null } }))
        .await?;
    copy(&stage, "disk", |copy| copy["spec"] == json!({ "size": 3072, "owner": name })).await?;
    let before = at_rest(&stage).await?;
    agent.stop().await?;
    let agent = stage.start_agent()?;
    stage.order_kind(&kind, team, "probe", json!({ "gigabytes": 1 })).await?;
    order(&stage, "probe", |order| word(order) == "Provisioning").await?;
    let after = at_rest(&stage).await?;
    ensure!(before == after, "a restart changed {before:?} into {after:?}");

    team.client.delete(&kind, Some(NAMESPACE), "disk", &DeleteOptions::default()).await?;
    stage.gone("the order goes", (&team.client, &kind, Some(NAMESPACE), "disk")).await?;
    stage.gone("its copy goes", (&stage.service, &stage.buckets(), Some(namespace), name)).await?;
    agent.stop().await
}

pub(crate) async fn a_mapping_that_does_not_work_harms_nobody_else(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = set(world, |_| {}).await?;
    let bad = |steps: Value| {
        let mut implements = implementing(&stage);
        implements["resource"] = format!("others.{}", group(&stage)).into();
        implements["kind"] = "Other".into();
        implements["spec"] = steps;
        json!({ "implements": implements })
    };
    stage.install_crd(&fixtures::crd(&stage.group, "Crate")).await?;
    let broken = json!([{ "cel": { "path": "spec.size", "expression": "other.(" } }]);
    stage.publish("Crate", bad(broken)).await?;
    let agent = stage.start_agent()?;
    let name = stage.published_name("Crate");
    let at = (&stage.service, &kinds::published_resources(), None, name.as_str());
    stage
        .object("the broken one is told where it is broken", at, |pr| {
            let valid = condition(pr, "RulesValid");
            valid["status"] == "False"
                && valid["message"].as_str().is_some_and(|told| told.contains("spec.implements.spec[0]"))
        })
        .await?;
    stage.bind(&stage.team_a).await?;
    stage.order_kind(&storages(&stage), &stage.team_a, "disk", json!({ "gigabytes": 1 })).await?;
    copy(&stage, "disk", |copy| copy["spec"]["size"] == 1024).await?;

    // One that fails for some orders is published, and doubted before anybody orders.
    let partial = json!([{ "cel": { "path": "spec.region", "expression": "other.spec.place" } }]);
    stage.service.merge_patch(&kinds::published_resources(), None, &name, &json!({ "spec": bad(partial) })).await?;
    stage
        .object("the doubtful one is told for which order", at, |pr| {
            let plausible = condition(pr, "RulesPlausible");
            let told = plausible["message"].as_str().unwrap_or_default();
            plausible["status"] == "False" && told.contains("an order cannot be placed: spec.implements.spec[0]")
        })
        .await?;
    agent.stop().await
}

pub(crate) async fn a_changed_mapping_waits_for_an_approval(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = set(world, |spec| spec["schemaUpdates"] = "Compatible".into()).await?;
    let agent = stage.start_agent()?;
    stage.bind(&stage.team_a).await?;
    let (team, kind) = (&stage.team_a, storages(&stage));
    stage.order_kind(&kind, team, "disk", json!({ "gigabytes": 2 })).await?;
    copy(&stage, "disk", |copy| copy["spec"]["size"] == 2048).await?;
    let first = published(&stage, "the steps are noted", |pr| pr["status"]["mapping"]["digest"].is_string()).await?;

    let name = stage.published_name("Bucket");
    let change = async |at: usize, step: Value| {
        let mut implements = implementing(&stage);
        implements["spec"][at] = step;
        let patch = json!({ "spec": { "implements": implements } });
        stage.service.merge_patch(&kinds::published_resources(), None, &name, &patch).await
    };
    // What changes no copy is at work at once.
    let same = json!({ "cel": { "path": "spec.size", "expression": "1024 * other.spec.gigabytes" } });
    change(1, same).await?;
    let second = published(&stage, "the same in other words is at work", |pr| {
        let digest = &pr["status"]["mapping"]["digest"];
        digest.is_string() && *digest != first["status"]["mapping"]["digest"]
    })
    .await?;

    let other = json!({ "cel": { "path": "spec.size", "expression": "other.spec.gigabytes * 1000" } });
    change(1, other).await?;
    let held =
        published(&stage, "what changes copies is held back", |pr| condition(pr, "MappingHeld")["status"] == "True")
            .await?;
    let told = condition(&held, "MappingHeld")["message"].as_str().unwrap_or_default().to_owned();
    ensure!(told.contains("it changes 1 of 1 orders; ") && told.contains("default/disk: spec.size"), "{told}");
    ensure!(held["status"]["mapping"] == second["status"]["mapping"], "{}", shown(&held));

    // Also after a restart, for old orders and new ones.
    agent.stop().await?;
    let agent = stage.start_agent()?;
    stage.order_kind(&kind, team, "next", json!({ "gigabytes": 1 })).await?;
    copy(&stage, "next", |copy| copy["spec"]["size"] == 1024).await?;
    copy(&stage, "disk", |copy| copy["spec"]["size"] == 2048).await?;

    let digest = told.rsplit_once('=').map(|(_, digest)| digest.trim_end_matches('.')).unwrap_or_default();
    let approval = json!({ "metadata": { "annotations": { carrick_syncagent::api::APPROVED_MAPPING: digest } } });
    stage.service.merge_patch(&kinds::published_resources(), None, &name, &approval).await?;
    copy(&stage, "disk", |copy| copy["spec"]["size"] == 2000).await?;
    copy(&stage, "next", |copy| copy["spec"]["size"] == 1000).await?;
    published(&stage, "nothing is held back", |pr| {
        condition(pr, "MappingHeld")["status"] == "False" && pr["status"]["mapping"]["digest"] == digest
    })
    .await?;
    agent.stop().await
}
