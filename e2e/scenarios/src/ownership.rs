//! Whose object it is: copies belong to one source, what others have stays theirs, and whatever was begun comes to an end.

mod adoption;
mod agents;
mod claims;
mod content;
mod ends;
mod identity;
mod links;
mod memory;
mod owning;
mod statuses;

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use carrick_client::{Client, ListOptions, Resource};
use carrick_e2e_stage::agent::{Agent, Setup};
use carrick_e2e_stage::stage::{At, NAMESPACE, Stage, Workspace, place, shown};
use carrick_e2e_stage::world::World;
use carrick_e2e_stage::{fixtures, kinds};
use carrick_syncagent::agent::Timing;
use carrick_syncagent::api;
use serde_json::{Value, json};

pub(super) use adoption::*;
pub(super) use agents::*;
pub(super) use claims::*;
pub(super) use content::*;
pub(super) use ends::*;
pub(super) use identity::*;
pub(super) use links::*;
pub(super) use memory::*;
pub(super) use owning::*;
pub(super) use statuses::*;

/// The annotation by which the owner of one object gives it to the agent.
const ADOPTION: &str = api::ADOPTION;
/// The annotation on a copy that names the kind of its source.
const REMOTE_RESOURCE: &str = api::REMOTE_RESOURCE;
/// The annotation on a copy that names the very object it was made of.
const REMOTE_UID: &str = api::REMOTE_UID;

/// A stage where Buckets are published by some rules.
async fn publish(world: Arc<dyn World>, spec: Value) -> anyhow::Result<Stage> {
    let stage = Stage::bound(world, |group| fixtures::crd(group, "Bucket")).await?;
    stage.publish("Bucket", spec).await?;
    Ok(stage)
}

/// Publishes Buckets once more, under another name.
async fn publish_again(stage: &Stage, name: &str, mut spec: Value) -> anyhow::Result<()> {
    spec["resource"] = json!({ "apiGroup": stage.group, "kind": "Bucket", "versions": ["v1"] });
    let object = json!({
        "apiVersion": format!("{}/{}", api::GROUP, api::VERSION),
        "kind": "PublishedResource",
        "metadata": { "name": format!("{name}-{}", stage.id), "labels": { "stage": stage.id } },
        "spec": spec,
    });
    stage.service.create(&kinds::published_resources(), None, &object).await?;
    Ok(())
}

/// Changes the PublishedResource of Buckets.
async fn republish(stage: &Stage, spec: Value) -> anyhow::Result<()> {
    let patch = json!({ "spec": spec });
    let name = stage.published_name("Bucket");
    stage.service.merge_patch(&kinds::published_resources(), None, &name, &patch).await?;
    Ok(())
}

/// An agent that looks again soon where it has to, and tells in numbers what it does.
fn quick_agent(stage: &Stage) -> anyhow::Result<Agent> {
    let period = Duration::from_millis(100);
    let timing = Timing {
        requeue: period,
        grace: period,
        resync: period,
        absent_kind: period,
        known_kind: period,
        ..Timing::default()
    };
    Agent::start(stage, Setup { probes: true, timing, ..Setup::default() })
}

/// Waits until the consumer has got a warning about a Bucket, and all these words were told, to the consumer or to the provider.
pub(super) async fn warned(stage: &Stage, team: &Workspace, name: &str, words: &[&str]) -> anyhow::Result<()> {
    warned_of(stage, team, ("Bucket", name), words).await
}

/// The same about an order of any kind.
async fn warned_of(stage: &Stage, team: &Workspace, (kind, name): (&str, &str), words: &[&str]) -> anyhow::Result<()> {
    stage
        .eventually(&format!("{} is warned about {kind} {name} with {words:?}", team.path), async || {
            let events = team.client.list(&kinds::events(), Some(NAMESPACE), &ListOptions::default()).await?;
            let of_order = |event: &&Value| {
                let about = &event["involvedObject"];
                about["name"] == name && about["kind"] == kind && event["type"] == "Warning"
            };
            let warnings: Vec<&str> = events.iter().filter(of_order).filter_map(|e| e["message"].as_str()).collect();
            ensure!(!warnings.is_empty(), "the consumer is not warned");
            // What only the provider may know is told there.
            let own = ListOptions::labels(stage.selector());
            let published = stage.service.list(&kinds::published_resources(), None, &own).await?;
            let conditions = published.iter().filter_map(|pr| pr["status"]["conditions"].as_array()).flatten();
            let told = warnings.into_iter().chain(conditions.filter_map(|condition| condition["message"].as_str()));
            let told: Vec<&str> = told.collect();
            let named = |message: &&str| words.iter().all(|word| message.contains(word));
            ensure!(told.iter().any(named), "what is told is {told:#?}");
            Ok(())
        })
        .await
}

/// Fails unless an object is there exactly as it was.
async fn untouched((client, kind, namespace, name): At<'_>, before: &Value) -> anyhow::Result<()> {
    let now = client.get(kind, namespace, name).await?.with_context(|| format!("{kind} {name} was deleted"))?;
    ensure!(essence(&now) == essence(before), "{kind} {name} was {} and is {}", shown(before), shown(&now));
    Ok(())
}

/// Fails unless an object was let go: it is there with its content, and nothing of the agent is on it.
async fn left((client, kind, namespace, name): At<'_>, before: &Value) -> anyhow::Result<()> {
    let now = client.get(kind, namespace, name).await?.with_context(|| format!("{kind} {name} was deleted"))?;
    same(&now, before)?;
    ensure!(now["data"] == before["data"] && now["spec"] == before["spec"], "its content is {}", shown(&now));
    for field in ["labels", "annotations"] {
        let there = now["metadata"][field].as_object().into_iter().flatten();
        let ours: Vec<&String> =
            there.map(|(key, _)| key).filter(|key| key.contains("syncagent.kcp.io") && *key != ADOPTION).collect();
        ensure!(ours.is_empty(), "{kind} {name} was let go with {ours:?}");
    }
    ensure!(is_free(&now), "{kind} {name} is held: {}", shown(&now));
    Ok(())
}

/// An object without what kcp itself adds to it when a claim is accepted.
fn essence(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("resourceVersion");
        metadata.remove("managedFields");
        if let Some(labels) = metadata.get_mut("labels").and_then(Value::as_object_mut) {
            labels.retain(|key, _| !key.starts_with(carrick_kcp::CLAIM_LABEL_PREFIX));
        }
        metadata.retain(|_, value| value.as_object().is_none_or(|map| !map.is_empty()));
    }
    object
}

/// Waits for rest, and fails if the agent goes on writing then, even what changes nothing. Events come a moment after what they tell of.
async fn silent(stage: &Stage, agent: &Agent) -> anyhow::Result<()> {
    const LOOKS: usize = 10;
    let mut before = writes(agent).await?;
    let mut all = Vec::new();
    for _ in 0..LOOKS {
        stage.at_rest().await?;
        let after = writes(agent).await?;
        if before == after {
            return Ok(());
        }
        all.push(std::mem::replace(&mut before, after));
    }
    anyhow::bail!("it goes on writing at rest: {all:#?}, then {before:#?}")
}

/// How many writes an agent has sent, by its own count.
async fn writes(agent: &Agent) -> anyhow::Result<Vec<String>> {
    let page = agent.metrics().await?;
    let is_write = |line: &&str| {
        line.starts_with("rest_client_requests_total{")
            && ["POST", "PUT", "PATCH", "DELETE"].iter().any(|method| line.contains(&format!("method=\"{method}\"")))
    };
    Ok(page.lines().filter(is_write).map(ToOwned::to_owned).collect())
}

/// Creates an object of a kind without a status.
async fn put(client: &Client, kind: &Resource, namespace: &str, name: &str, content: &Value) -> anyhow::Result<Value> {
    let mut object = content.clone();
    object["apiVersion"] = json!(kind.api_version());
    object["kind"] = json!(&*kind.kind);
    object["metadata"]["name"] = json!(name);
    Ok(client.create(kind, Some(namespace), &object).await?)
}

/// Creates a namespace on the service cluster, unless it is there.
async fn create_namespace(stage: &Stage, name: &str) -> anyhow::Result<()> {
    super::compat::ensure_namespace(&stage.service, name).await
}

/// All Secrets in which the agent remembers something about an order.
async fn memories(stage: &Stage, team: &Workspace, name: &str) -> anyhow::Result<Vec<Value>> {
    let hash = carrick_syncagent::rules::metadata::sha1_hex(name);
    let (state, cluster, order) = (api::OBJECT_STATE, api::REMOTE_CLUSTER, api::REMOTE_NAME_HASH);
    let labels = ListOptions::labels(format!("{state}=true,{cluster}={},{order}={hash}", team.cluster));
    Ok(stage.service.list(&kinds::secrets(), Some(&stage.agent_namespace()), &labels).await?)
}

/// Waits until an order is gone, and everything that was made for it.
async fn ended(stage: &Stage, kind: &Resource, team: &Workspace, name: &str) -> anyhow::Result<()> {
    let namespace = kind.namespaced.then_some(NAMESPACE);
    stage.gone(&format!("{kind} {name} is gone"), (&team.client, kind, namespace, name)).await
}

/// A Secret of the consumer that every order names in `owner`.
fn named_secret() -> Value {
    json!({
        "identifier": "named", "origin": "kcp", "kind": "Secret", "object": { "reference": { "path": "spec.owner" } },
    })
}

/// Whether nobody holds an object.
fn is_free(object: &Value) -> bool {
    object["metadata"]["finalizers"].is_null()
}

/// The same object again, not another one of the same name.
fn same(now: &Value, before: &Value) -> anyhow::Result<()> {
    let uid = |object: &Value| object["metadata"]["uid"].clone();
    ensure!(uid(now) == uid(before), "{:?} was made anew", place(now));
    Ok(())
}
