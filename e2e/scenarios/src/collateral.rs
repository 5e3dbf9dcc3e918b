//! What the agent must keep its hands off.

use std::sync::Arc;

use anyhow::{Context, ensure};
use carrick_client::Resource;
use carrick_e2e_stage::stage::{NAMESPACE, Stage, Workspace, place, shown};
use carrick_e2e_stage::world::World;
use carrick_e2e_stage::{fixtures, kinds};
use carrick_syncagent::api;
use carrick_syncagent::rules::metadata::sha1_hex;
use serde_json::{Value, json};

pub(super) async fn what_others_have_on_the_service_cluster_stays_untouched(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let stage = Stage::set(world).await?;
    let team = &stage.team_a;
    let namespace = create_namespace(&stage, "strangers").await?;
    let buckets = stage.buckets();
    let secret = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "private" } });
    let strangers = [
        create(&stage, &buckets, &namespace, &bucket(&buckets, "nobodys", &json!({}))).await?,
        // Another agent's copy of an order of the same consumer.
        create(&stage, &buckets, &namespace, &linked(&buckets, "another-agents", team, "elsewhere", "other-agent"))
            .await?,
        // A copy whose consumer is unknown here, such as one whose workspace is out of reach.
        create(&stage, &buckets, &namespace, &linked(&buckets, "orphan", &nobody(team), "lost", &stage.agent_name()))
            .await?,
        create(&stage, &kinds::secrets(), &stage.agent_namespace(), &secret).await?,
    ];

    let agent = stage.start_agent()?;
    stage.order(team, "bucket", json!({ "size": 1 })).await?;
    stage.order(team, "elsewhere", json!({ "size": 1 })).await?;
    stage.copy_is("the copy is there", team, "bucket", |_| true).await?;
    stage.reorder(team, "bucket", json!({ "size": 2 })).await?;
    stage.copy_is("the change arrives", team, "bucket", |copy| copy["spec"]["size"] == 2).await?;
    for name in ["bucket", "elsewhere"] {
        stage.cancel(team, name).await?;
    }
    stage.all_gone(team, "bucket").await?;
    stage
        .eventually("the second order is released", async || {
            let source = stage.source(team, "elsewhere").await?;
            ensure!(source.is_none(), "it is {}", shown(&source.unwrap_or_default()));
            Ok(())
        })
        .await?;
    stage.at_rest().await?;
    for stranger in &strangers {
        untouched(&stage, stranger).await?;
    }
    agent.stop().await
}

pub(super) async fn a_place_taken_by_someone_else_is_left_to_them(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = Stage::bare(world).await?;
    stage.install_crd(&fixtures::crd(&stage.group, "Bucket")).await?;
    stage.create_export().await?;
    let namespace = create_namespace(&stage, "place").await?;
    let naming = json!({ "name": "{{ .Object.metadata.name }}", "namespace": namespace });
    stage.publish("Bucket", json!({ "naming": naming })).await?;
    futures::try_join!(stage.bind(&stage.team_a), stage.bind(&stage.team_b))?;
    let buckets = stage.buckets();
    let taken = linked(&buckets, "taken", &stage.team_b, "taken", "other-agent");
    let taken = create(&stage, &buckets, &namespace, &taken).await?;

    let agent = stage.start_agent()?;
    // Where another agent has its copy, ours does not go.
    let (a, b) = (&stage.team_a, &stage.team_b);
    stage.order(a, "taken", json!({ "size": 1 })).await?;
    told_of_failure(&stage, a, "taken").await?;
    untouched(&stage, &taken).await?;
    stage.cancel(a, "taken").await?;
    released(&stage, a, "taken").await?;
    untouched(&stage, &taken).await?;

    // Two consumers whose orders the naming rule sends to the same place: the first one keeps it.
    stage.order(a, "same", json!({ "owner": "a" })).await?;
    stage.copy_is("the first one has its copy", a, "same", |copy| copy["spec"]["owner"] == "a").await?;
    let copy = stage.service.get(&buckets, Some(&namespace), "same").await?.context("there is no copy")?;
    stage.order(b, "same", json!({ "owner": "b" })).await?;
    told_of_failure(&stage, b, "same").await?;
    untouched(&stage, &copy).await?;
    stage.cancel(b, "same").await?;
    released(&stage, b, "same").await?;
    untouched(&stage, &copy).await?;
    agent.stop().await
}

pub(super) async fn a_copy_that_lost_its_label_is_found_and_labelled_again(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let stage = Stage::set(world).await?;
    let agent = stage.start_agent()?;
    let team = &stage.team_a;
    stage.order(team, "bucket", json!({ "size": 1 })).await?;
    let copy = stage.copy_is("the copy is there", team, "bucket", |_| true).await?;
    stage.at_rest().await?;
    // New orders would be named by other rules, so the place of the copy does not lead to it.
    let naming = json!({ "spec": { "naming": { "name": "other-{{ .Object.metadata.name }}" } } });
    let published = stage.published_name("Bucket");
    stage.service.merge_patch(&kinds::published_resources(), None, &published, &naming).await?;
    let unlabel = async || {
        let (namespace, name) = place(&copy);
        let patch = json!({ "metadata": { "labels": { api::AGENT_NAME: null } } });
        stage.service.merge_patch(&stage.buckets(), Some(namespace), name, &patch).await
    };
    unlabel().await?;
    let labelled = |copy: &Value| copy["metadata"]["labels"][api::AGENT_NAME] == stage.agent_name();
    stage.copy_is("it is labelled again", team, "bucket", labelled).await?;

    // The same, while the order changes and no agent looks.
    agent.stop().await?;
    unlabel().await?;
    stage.reorder(team, "bucket", json!({ "size": 2 })).await?;
    let agent = stage.start_agent()?;
    let changed =
        stage.copy_is("the change arrives", team, "bucket", |c| c["spec"]["size"] == 2 && labelled(c)).await?;
    ensure!(changed["metadata"]["uid"] == copy["metadata"]["uid"], "there is a second copy: {}", shown(&changed));

    // The same, while the order is cancelled.
    agent.stop().await?;
    unlabel().await?;
    stage.cancel(team, "bucket").await?;
    let agent = stage.start_agent()?;
    stage.all_gone(team, "bucket").await?;
    agent.stop().await
}

/// Waits until the consumer has got a warning about an order.
pub(super) async fn told_of_failure(stage: &Stage, team: &Workspace, name: &str) -> anyhow::Result<()> {
    stage
        .eventually(&format!("{} is warned about {name}", team.path), async || {
            let options = carrick_client::ListOptions::default();
            let events = team.client.list(&kinds::events(), Some(NAMESPACE), &options).await?;
            let warned = |event: &Value| event["involvedObject"]["name"] == name && event["type"] == "Warning";
            ensure!(events.iter().any(warned), "there are {} events, none of them that one", events.len());
            Ok(())
        })
        .await
}

/// Waits until an order is gone.
async fn released(stage: &Stage, team: &Workspace, name: &str) -> anyhow::Result<()> {
    stage
        .eventually(&format!("{name} of {} is released", team.path), async || {
            let source = stage.source(team, name).await?;
            ensure!(source.is_none(), "it is {}", shown(&source.unwrap_or_default()));
            Ok(())
        })
        .await
}

/// Fails unless an object is exactly as it was.
async fn untouched(stage: &Stage, before: &Value) -> anyhow::Result<()> {
    let (namespace, name) = place(before);
    let kind = if before["kind"] == "Secret" { kinds::secrets() } else { stage.buckets() };
    let now = stage.service.get(&kind, Some(namespace), name).await?;
    let now = now.with_context(|| format!("{name} was deleted"))?;
    ensure!(
        now["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"],
        "{name} was {} and is {}",
        shown(before),
        shown(&now)
    );
    Ok(())
}

async fn create_namespace(stage: &Stage, prefix: &str) -> anyhow::Result<String> {
    let name = format!("{prefix}-{}", stage.id);
    let object = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
    stage.service.create(&kinds::namespaces(), None, &object).await?;
    Ok(name)
}

async fn create(stage: &Stage, kind: &Resource, namespace: &str, object: &Value) -> anyhow::Result<Value> {
    let mut created = stage.service.create(kind, Some(namespace), object).await?;
    created["kind"] = json!(&*kind.kind);
    Ok(created)
}

fn bucket(kind: &Resource, name: &str, spec: &Value) -> Value {
    json!({ "apiVersion": kind.api_version(), "kind": &*kind.kind, "metadata": { "name": name }, "spec": spec })
}

/// A Bucket that is some agent's copy of an order.
fn linked(kind: &Resource, name: &str, team: &Workspace, order: &str, agent: &str) -> Value {
    let mut object = bucket(kind, name, &json!({ "owner": "stranger" }));
    object["metadata"]["labels"] = json!({
        api::AGENT_NAME: agent,
        api::REMOTE_CLUSTER: team.cluster,
        api::REMOTE_NAME_HASH: sha1_hex(order),
        api::REMOTE_NAMESPACE_HASH: sha1_hex(NAMESPACE),
    });
    object["metadata"]["annotations"] = json!({ api::REMOTE_NAME: order, api::REMOTE_NAMESPACE: NAMESPACE });
    object
}

/// A consumer that does not exist.
fn nobody(team: &Workspace) -> Workspace {
    Workspace { cluster: "0000000000000000".to_owned(), ..team.clone() }
}
