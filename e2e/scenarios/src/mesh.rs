//! What brokers and portals ask of an order's status, and what rules look at for it.

mod accepting;
mod behind;
mod broker;
mod brokered;
mod commands;
mod examples;
mod generic;
mod implementing;
mod platform;

use std::sync::Arc;

use anyhow::{Context, ensure};
use carrick_client::{DeleteOptions, Resource};
use carrick_e2e_stage::stage::{NAMESPACE, Snapshot, Stage, changes, condition, place, shown};
use carrick_e2e_stage::world::World;
use carrick_e2e_stage::{fixtures, kinds};
use serde_json::{Value, json};

use super::related::{encoded, secret};

pub(super) use accepting::{an_agent_keeps_what_says_which_orders_come, what_others_accept_is_left_alone};
pub(super) use behind::consumers_behind_a_broker_count_as_themselves;
pub(super) use brokered::{
    a_certificate_moves_from_one_issuer_to_another_and_is_never_without, a_database_moves_after_its_content_was_copied,
    all_orders_of_a_provider_move_although_agents_are_killed_again_and_again,
};
pub(super) use commands::{
    a_first_draft_is_written_from_the_live_export,
    a_provider_writes_steps_and_the_doctor_says_when_the_platforms_api_has_changed,
};
pub(super) use generic::generic_apis_map_onto_kinds_of_operators_as_in_the_corpus;
pub(super) use implementing::{
    a_changed_mapping_waits_for_an_approval, a_mapping_that_does_not_work_harms_nobody_else,
    a_platforms_api_is_served_by_a_kind_of_the_provider,
};

const READY: &str = "has(self.status) && has(self.status.conditions) && \
    self.status.conditions.exists(c, c.type == 'Ready' && c.status == 'True') ? 'Available' : 'Provisioning'";

fn services() -> Resource {
    Resource::namespaced("", "v1", "Service", "services")
}

/// The Service beside a copy.
fn service(name: &str, port: u32) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": { "name": name },
        "spec": { "ports": [{ "port": port, "protocol": "TCP", "targetPort": port }], "selector": { "app": name } },
    })
}

/// A database as providers publish it: credentials, with the port of a Service in them.
fn database() -> Value {
    json!({
        "naming": { "name": "db-{{ .Object.metadata.namespace | sha3short }}-{{ .Object.metadata.name | sha3short }}" },
        "reads": [{
            "identifier": "door", "version": "v1", "resource": "services",
            "object": { "template": { "template": "{{ .Object.metadata.name }}-rw" } },
        }],
        "related": [{
            "identifier": "credentials", "required": true, "origin": "service", "version": "v1", "resource": "secrets",
            "cleanupPolicy": "MatchOrigin", "access": "Owned",
            "watch": { "bySelector": {} },
            "object": { "template": { "template": "{{ .Object.metadata.name }}-credentials" } },
            "mutation": { "spec": [{ "template": {
                "path": "data.port", "template": "{{ (index .Objects.door.spec.ports 0).port | toString | b64enc }}",
            } }] },
        }],
        "report": { "status": READY },
    })
}

async fn publish(stage: &Stage, crd: &Value, spec: Value) -> anyhow::Result<()> {
    stage.install_crd(crd).await?;
    stage.create_export().await?;
    stage.publish("Bucket", spec).await?;
    Ok(())
}

fn word(source: &Value) -> &Value {
    &source["status"]["status"]
}

/// The status and the reason of condition Placed.
fn placed(source: &Value) -> (&str, &str) {
    let placed = condition(source, "Placed");
    (placed["status"].as_str().unwrap_or_default(), placed["reason"].as_str().unwrap_or_default())
}

/// An order of somebody else that comes and goes: an agent that has served it is at work.
async fn probe(stage: &Stage) -> anyhow::Result<()> {
    let team = &stage.team_b;
    stage.order(team, "probe", json!({ "size": 1 })).await?;
    stage.source_is("the probe is placed", team, "probe", |it| placed(it) == ("True", "Placed")).await?;
    stage.cancel(team, "probe").await?;
    stage.all_gone(team, "probe").await
}

/// What differs, but for what is left of the probe: its events, and the note that it has ended.
fn changed_but_probe(before: &Snapshot, after: &Snapshot) -> Vec<String> {
    let is_probe = |line: &String| line.contains("/probe") || line.contains("/ended-orders-");
    changes(before, after).into_iter().filter(|line| !is_probe(line)).collect()
}

pub(super) async fn an_order_is_available_once_its_secret_has_arrived_with_the_port_of_a_service(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let stage = Stage::bare(world).await?;
    publish(&stage, &fixtures::crd(&stage.group, "Bucket"), database()).await?;
    let agent = stage.start_agent()?;
    futures::try_join!(stage.bind(&stage.team_a), stage.bind(&stage.team_b))?;
    let (team, secrets) = (&stage.team_a, kinds::secrets());

    stage.order(team, "db", json!({ "size": 1 })).await?;
    stage
        .source_is("it is placed and not ready", team, "db", |source| {
            word(source) == "Provisioning" && placed(source) == ("True", "Placed")
        })
        .await?;
    let copy = stage.copy_is("the copy is there", team, "db", |_| true).await?;
    let (namespace, name) = place(&copy);
    stage.operator_reports(&copy, json!({ "conditions": [{ "type": "Ready", "status": "True" }] })).await?;
    stage
        .source_is("the operator's condition arrives, complete", team, "db", |source| {
            let ready = condition(source, "Ready");
            ready["status"] == "True" && ready["reason"] == "Unknown" && ready["lastTransitionTime"].is_string()
        })
        .await?;

    // The Secret waits for the Service whose port goes into it, and the order for the Secret.
    stage.service.create(&secrets, Some(namespace), &secret(name, "first")).await?;
    stage.at_rest().await?;
    ensure!(team.client.get(&secrets, Some(NAMESPACE), "db-credentials").await?.is_none(), "it has no port yet");
    let source = stage.source(team, "db").await?.context("the order is gone")?;
    ensure!(word(&source) == "Provisioning", "{}", shown(&source));
    ensure!(source["status"].get("relatedResources").is_none(), "{}", shown(&source));

    let door = format!("{name}-rw");
    stage.service.create(&services(), Some(namespace), &service(&door, 5432)).await?;
    let listed = json!({ "credentials": {
        "name": "db-credentials", "namespace": NAMESPACE, "gvk": { "group": "core", "version": "v1", "kind": "Secret" },
    } });
    let source = stage
        .source_is("it is available and lists its Secret", team, "db", |source| {
            word(source) == "Available" && source["status"]["relatedResources"] == listed
        })
        .await?;
    ensure!(placed(&source) == ("True", "Placed"), "{}", shown(&source));
    let at = (&team.client, &secrets, Some(NAMESPACE), "db-credentials");
    let data = |port: &str| json!({ "password": encoded("first"), "port": encoded(port) });
    stage.object("the Secret is there with the port", at, |secret| secret["data"] == data("5432")).await?;

    // What is looked at is watched.
    let patch = json!({ "spec": { "ports": [{ "port": 6432, "protocol": "TCP", "targetPort": 6432 }] } });
    stage.service.merge_patch(&services(), Some(namespace), &door, &patch).await?;
    stage.object("another port follows", at, |secret| secret["data"] == data("6432")).await?;

    // A restart writes nothing.
    let (kind, published) = (kinds::published_resources(), stage.published_name("Bucket"));
    let none_fails = |pr: &Value| condition(pr, "ObjectsSynced")["reason"] == "NoneFails";
    stage.object("no object fails any more", (&stage.service, &kind, None, &published), none_fails).await?;
    let before = stage.at_rest().await?;
    agent.stop().await?;
    let agent = stage.start_agent()?;
    probe(&stage).await?;
    let changed = changed_but_probe(&before, &stage.at_rest().await?);
    ensure!(changed.is_empty(), "a restart changed {changed:?}");

    // The original goes, then the entry, then the copy.
    let original = format!("{name}-credentials");
    stage.service.delete(&secrets, Some(namespace), &original, &DeleteOptions::default()).await?;
    stage
        .source_is("it is no longer listed", team, "db", |source| {
            word(source) == "Provisioning" && source["status"].get("relatedResources").is_none()
        })
        .await?;
    stage.gone("the Secret goes with its original", at).await?;

    stage.cancel(team, "db").await?;
    stage.all_gone(team, "db").await?;
    let kept = stage.service.get(&services(), Some(namespace), &door).await?.context("the Service is gone")?;
    ensure!(kept["spec"]["ports"][0]["port"] == 6432, "{}", shown(&kept));
    agent.stop().await
}

pub(super) async fn an_order_that_goes_says_so_and_lists_nothing_any_more(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = Stage::bare(world).await?;
    let mut spec = database();
    spec["related"][0]["mutation"] = json!({});
    spec["reads"] = json!([]);
    publish(&stage, &fixtures::crd(&stage.group, "Bucket"), spec).await?;
    let agent = stage.start_agent()?;
    futures::try_join!(stage.bind(&stage.team_a), stage.bind(&stage.team_b))?;
    let team = &stage.team_a;
    stage.order(team, "db", json!({ "size": 1 })).await?;
    let copy = stage.copy_is("the copy is there", team, "db", |_| true).await?;
    let (namespace, name) = place(&copy);
    stage.service.create(&kinds::secrets(), Some(namespace), &secret(name, "first")).await?;
    stage
        .source_is("the Secret is listed", team, "db", |it| it["status"]["relatedResources"]["credentials"].is_object())
        .await?;
    // The operator takes its time.
    let hold = |finalizers: Value| json!({ "metadata": { "finalizers": finalizers } });
    let (buckets, held) = (stage.buckets(), hold(json!(["example.com/slow"])));
    stage.service.merge_patch(&buckets, Some(namespace), name, &held).await?;
    stage.cancel(team, "db").await?;
    stage
        .source_is("it says that it goes", team, "db", |it| {
            word(it) == "Deleting" && it["status"].get("relatedResources").is_none()
        })
        .await?;
    stage.service.merge_patch(&buckets, Some(namespace), name, &hold(Value::Null)).await?;
    stage.all_gone(team, "db").await?;
    agent.stop().await
}

pub(super) async fn what_a_consumer_names_is_looked_at_only_if_it_belongs_to_her_copy(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let stage = Stage::bare(world).await?;
    let spec = json!({
        "reads": [{
            "identifier": "door", "version": "v1", "resource": "services", "object": { "reference": { "path": "spec.owner" } },
        }],
        "report": { "status": "objects.door == null ? 'Unknown' : 'Available'" },
    });
    publish(&stage, &fixtures::crd(&stage.group, "Bucket"), spec).await?;
    let agent = stage.start_agent()?;
    futures::try_join!(stage.bind(&stage.team_a), stage.bind(&stage.team_b))?;
    let team = &stage.team_a;
    stage.order(team, "curious", json!({ "owner": "internal" })).await?;
    let copy = stage.copy_is("the copy is there", team, "curious", |_| true).await?;
    let namespace = place(&copy).0;
    stage.service.create(&services(), Some(namespace), &service("internal", 80)).await?;
    stage.source_is("she learns nothing of it", team, "curious", |it| word(it) == "Unknown").await?;
    stage.at_rest().await?;
    let source = stage.source(team, "curious").await?.context("the order is gone")?;
    ensure!(word(&source) == "Unknown", "{}", shown(&source));

    let owner = json!({ "apiVersion": copy["apiVersion"], "kind": copy["kind"], "name": copy["metadata"]["name"], "uid": copy["metadata"]["uid"] });
    let owned = json!({ "metadata": { "ownerReferences": [owner] } });
    stage.service.merge_patch(&services(), Some(namespace), "internal", &owned).await?;
    stage.source_is("what belongs to her copy is hers", team, "curious", |it| word(it) == "Available").await?;
    agent.stop().await
}

pub(super) async fn what_a_schema_has_no_room_for_is_told_and_not_written(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = Stage::bare(world).await?;
    publish(&stage, &fixtures::closed(&stage.group), json!({ "report": { "status": READY, "related": true } })).await?;
    let agent = stage.start_agent()?;
    futures::try_join!(stage.bind(&stage.team_a), stage.bind(&stage.team_b))?;
    let team = &stage.team_a;
    let at = (&stage.service, &kinds::published_resources(), None, &*stage.published_name("Bucket"));
    stage
        .object("it is told", at, |published| {
            let told = condition(published, "RulesPlausible");
            let message = told["message"].as_str().unwrap_or_default();
            let fields = ["spec.report.statusPath", "spec.report.related", "spec.report.conditions"];
            told["status"] == "False" && fields.iter().all(|field| message.contains(field))
        })
        .await?;
    stage.order(team, "db", json!({ "size": 1 })).await?;
    let copy = stage.copy_is("the copy is there", team, "db", |_| true).await?;
    stage.operator_reports(&copy, json!({ "url": "here" })).await?;
    let source = stage.source_is("the rest returns", team, "db", |it| it["status"]["url"] == "here").await?;
    ensure!(
        source["status"].get("status").is_none() && source["status"].get("conditions").is_none(),
        "{}",
        shown(&source)
    );
    agent.stop().await
}
