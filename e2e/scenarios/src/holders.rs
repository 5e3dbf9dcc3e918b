//! Names under which orders are held: an agent that is renamed, one that took over for a while, and names that nobody bears any more.

use std::sync::Arc;

use anyhow::{Context, ensure};
use carrick_client::DeleteOptions;
use carrick_e2e_stage::agent::{Agent, Setup};
use carrick_e2e_stage::stage::{NAMESPACE, Stage, Workspace, condition, place, shown};
use carrick_e2e_stage::world::World;
use carrick_e2e_stage::{fixtures, kinds};
use carrick_syncagent::api;
use serde_json::{Value, json};

use crate::gate::carrick;
use crate::related::encoded;

/// A Secret of the consumer that every order names in `owner`.
fn related() -> Value {
    json!([{
        "identifier": "named", "origin": "kcp", "kind": "Secret", "object": { "reference": { "path": "spec.owner" } },
    }])
}

pub(super) async fn set(world: Arc<dyn World>) -> anyhow::Result<Stage> {
    let stage = Stage::bound(world, |group| fixtures::crd(group, "Bucket")).await?;
    stage.publish("Bucket", json!({ "naming": fixtures::beside_names(""), "related": related() })).await?;
    Ok(stage)
}

/// An agent of some name that takes over at once.
fn named(stage: &Stage, name: Option<&'static str>, apply: bool) -> anyhow::Result<Agent> {
    Agent::start(stage, Setup { probes: true, name, apply, take_over: true, ..Setup::default() })
}

/// An order whose Secret has arrived.
pub(super) async fn place_order(stage: &Stage, name: &str, secret: &str) -> anyhow::Result<Value> {
    let (team, secrets) = (&stage.team_a, kinds::secrets());
    if team.client.get(&secrets, Some(NAMESPACE), secret).await?.is_none() {
        let object = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "name": secret }, "data": { "of": encoded("consumer") },
        });
        team.client.create(&secrets, Some(NAMESPACE), &object).await?;
    }
    stage.order(team, name, json!({ "size": 1, "owner": secret })).await?;
    let copy = stage.copy_is("the copy is there", team, name, |_| true).await?;
    let at = (&stage.service, &secrets, Some(place(&copy).0), secret);
    stage.object("the Secret of the consumer arrives", at, |_| true).await?;
    Ok(copy)
}

/// Waits until the Secret of an order is nobody's but the consumer's, and its copy is gone.
pub(super) async fn let_go(stage: &Stage, copy: &Value, secret: &str) -> anyhow::Result<()> {
    let (team, secrets) = (&stage.team_a, kinds::secrets());
    stage.gone("the copy of the Secret goes", (&stage.service, &secrets, Some(place(copy).0), secret)).await?;
    let at = (&team.client, &secrets, Some(NAMESPACE), secret);
    stage.object("the Secret is let go", at, |secret| is_free(secret) && held_by(secret).is_null()).await?;
    Ok(())
}

pub(super) fn is_free(object: &Value) -> bool {
    object["metadata"]["finalizers"].is_null()
}

fn held_by(object: &Value) -> &Value {
    &object["metadata"]["annotations"][api::HELD_BY]
}

async fn changes_arrive(stage: &Stage, team: &Workspace, name: &str, size: i64, agent: &str) -> anyhow::Result<()> {
    stage.reorder(team, name, json!({ "size": size })).await?;
    let copy = stage.copy_is("changes arrive", team, name, |copy| copy["spec"]["size"] == size).await?;
    let label = |copy: &Value| copy["metadata"]["labels"][api::AGENT_NAME] == agent;
    stage.copy_is("it bears the name of who serves it", team, name, label).await?;
    ensure!(place(&copy).1 == name, "there is another copy: {}", shown(&copy));
    Ok(())
}

pub(super) async fn a_renamed_agent_leaves_every_order_changeable_and_deletable(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    for apply in [false, true] {
        let stage = set(Arc::clone(&world)).await?;
        let (team, second) = (&stage.team_a, format!("second-{}", stage.id));
        let agent = named(&stage, None, apply)?;
        let mut copies = Vec::new();
        for (name, secret) in [("changed", "a"), ("unseen", "b"), ("back", "c"), ("shared", "c"), ("late", "d")] {
            copies.push(place_order(&stage, name, secret).await?);
        }
        stage.at_rest().await?;
        agent.stop().await?;
        // One that the agent of the new name never sees alive.
        stage.cancel(team, "unseen").await?;

        let agent = named(&stage, Some("second"), apply)?;
        stage.all_gone(team, "unseen").await?;
        let_go(&stage, &copies[1], "b").await?;
        changes_arrive(&stage, team, "changed", 2, &second).await?;
        stage.cancel(team, "changed").await?;
        stage.all_gone(team, "changed").await?;
        let_go(&stage, &copies[0], "a").await?;
        changes_arrive(&stage, team, "back", 2, &second).await?;
        stage.at_rest().await?;
        agent.stop().await?;
        stage.cancel(team, "late").await?;

        // Back to the old name.
        let agent = named(&stage, None, apply)?;
        stage.all_gone(team, "late").await?;
        let_go(&stage, &copies[4], "d").await?;
        changes_arrive(&stage, team, "back", 3, &stage.agent_name()).await?;
        for name in ["back", "shared"] {
            stage.cancel(team, name).await?;
            stage.all_gone(team, name).await?;
        }
        let_go(&stage, &copies[2], "c").await?;
        agent.stop().await?;
    }
    Ok(())
}

pub(super) async fn an_order_made_from_a_copied_manifest_can_be_deleted(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = set(world).await?;
    let (team, buckets) = (&stage.team_a, stage.buckets());
    let manifest = |name: &str, holders: &str| {
        json!({
            "apiVersion": buckets.api_version(), "kind": "Bucket", "spec": { "size": 1 },
            "metadata": {
                "name": name, "finalizers": [api::FINALIZER], "annotations": { api::HELD_BY: holders },
            },
        })
    };
    let agent = stage.start_agent()?;
    stage.order(team, "plain", json!({ "size": 1 })).await?;
    let own = format!("elsewhere,{}", stage.agent_name());
    for (name, holders) in [("one", "elsewhere"), ("two", own.as_str()), ("three", "")] {
        team.client.create(&buckets, Some(NAMESPACE), &manifest(name, holders)).await?;
        stage.copy_is("the copy is there", team, name, |_| true).await?;
        stage.cancel(team, name).await?;
        stage.all_gone(team, name).await.with_context(|| format!("held by {holders:?}"))?;
    }
    agent.stop().await?;
    // The same for an agent that never saw it alive.
    team.client.create(&buckets, Some(NAMESPACE), &manifest("four", "elsewhere")).await?;
    stage.cancel(team, "four").await?;
    let agent = stage.start_agent()?;
    stage.all_gone(team, "four").await?;
    agent.stop().await
}

pub(super) async fn what_an_agent_that_is_no_more_holds_is_told_and_let_go_by_a_command(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let stage = set(world).await?;
    let (team, secrets, buckets) = (&stage.team_a, kinds::secrets(), stage.buckets());
    let agent = Agent::start(&stage, Setup { probes: true, ..Setup::default() })?;
    let copy = place_order(&stage, "bucket", "own").await?;
    stage.at_rest().await?;
    // As if an agent that nobody knows had needed both of them, too.
    let strange =
        |holder: String| json!({ "metadata": { "annotations": { api::HELD_BY: format!("gone/related,{holder}") } } });
    let own = stage.agent_name();
    team.client.merge_patch(&buckets, Some(NAMESPACE), "bucket", &strange(own.clone())).await?;
    team.client.merge_patch(&secrets, Some(NAMESPACE), "own", &strange(format!("{own}/related"))).await?;
    stage.cancel(team, "bucket").await?;
    stage.gone("the copy goes", (&stage.service, &buckets, Some(place(&copy).0), "bucket")).await?;
    let published = stage.published_name("Bucket");
    let at = (&stage.service, &kinds::published_resources(), None, published.as_str());
    let told = |pr: &Value| {
        let message = condition(pr, "ObjectsSynced")["message"].as_str().unwrap_or_default().to_owned();
        message.contains("gone/related") && message.contains("carrick release")
    };
    stage.object("it is told who holds it", at, told).await?;
    let (code, said) = carrick(&stage, &["release", &own, "--yes"]).await?;
    ensure!(code == Some(1) && said.contains("stop it first"), "an agent at work is not let go: {said}");
    let (code, said) = carrick(&stage, &["release", "gone", "--yes", "--output=json"]).await?;
    ensure!(code == Some(0) && said.contains("\"gone\""), "{said}");
    stage.all_gone(team, "bucket").await?;
    let (code, said) = carrick(&stage, &["release", "gone", "--undo"]).await?;
    ensure!(code == Some(0) && said.contains("no more:     none"), "{said}");
    agent.stop().await
}

/// How orders are made to end, or to be let go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Deleted,
    Filtered,
    Disabled,
    Unpublished,
}

/// Many orders that share a Secret come to their end at once.
async fn all_at_once(world: &Arc<dyn World>, way: Way, apply: bool) -> anyhow::Result<()> {
    const ORDERS: usize = 9;
    let stage = Stage::bound(Arc::clone(world), |group| fixtures::crd(group, "Bucket")).await?;
    let filter = json!({ "resource": { "matchLabels": { "tier": "gold" } } });
    let mut spec = json!({ "naming": fixtures::beside_names(""), "related": related() });
    if way == Way::Filtered {
        spec["filter"] = filter;
    }
    stage.publish("Bucket", spec).await?;
    let agent = Agent::start(&stage, Setup { apply, ..Setup::default() })?;
    let (team, buckets, secrets) = (&stage.team_a, stage.buckets(), kinds::secrets());
    let secret = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "shared" }, "data": { "of": encoded("x") } });
    team.client.create(&secrets, Some(NAMESPACE), &secret).await?;
    let names: Vec<String> = (0..ORDERS).map(|number| format!("bucket-{number}")).collect();
    let label = |tier: Value| json!({ "metadata": { "labels": { "tier": tier } } });
    for name in &names {
        stage.order(team, name, json!({ "size": 1, "owner": "shared" })).await?;
        team.client.merge_patch(&buckets, Some(NAMESPACE), name, &label(json!("gold"))).await?;
    }
    let mut copied = None;
    for name in &names {
        let copy = stage.copy_is("the copy is there", team, name, |_| true).await?;
        copied = Some(place(&copy).0.to_owned());
    }
    let namespace = copied.context("there are no orders")?;
    let at = (&stage.service, &secrets, Some(namespace.as_str()), "shared");
    stage.object("the Secret arrives", at, |_| true).await?;
    stage.at_rest().await?;
    let published = stage.published_name("Bucket");
    let prs = kinds::published_resources();
    match way {
        Way::Deleted => {
            let all = names.iter().map(|name| stage.cancel(team, name));
            futures::future::try_join_all(all).await?;
        }
        Way::Filtered => {
            let unlabel = label(Value::Null);
            let all = names.iter().map(|name| team.client.merge_patch(&buckets, Some(NAMESPACE), name, &unlabel));
            futures::future::try_join_all(all).await?;
        }
        Way::Disabled => {
            let patch = json!({ "spec": { "synchronization": { "enabled": false } } });
            stage.service.merge_patch(&prs, None, &published, &patch).await?;
        }
        Way::Unpublished => stage.service.delete(&prs, None, &published, &DeleteOptions::default()).await.map(drop)?,
    }
    if way == Way::Deleted {
        for name in &names {
            stage.all_gone(team, name).await?;
        }
        stage.gone("the copy of the Secret goes", at).await?;
    }
    let at = (&team.client, &secrets, Some(NAMESPACE), "shared");
    stage.object("the Secret is let go", at, |secret| is_free(secret) && held_by(secret).is_null()).await?;
    agent.stop().await
}

pub(super) async fn a_shared_secret_is_let_go_by_the_last_order_whatever_ends_them(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    for apply in [false, true] {
        for way in [Way::Deleted, Way::Filtered, Way::Disabled, Way::Unpublished] {
            all_at_once(&world, way, apply).await.with_context(|| format!("{way:?}, applied: {apply}"))?;
        }
    }
    Ok(())
}

pub(super) async fn a_kind_that_was_withdrawn_does_not_hold_what_it_shared(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    for apply in [false, true] {
        let stage = Stage::bare(Arc::clone(&world)).await?;
        for kind in ["Bucket", "Queue"] {
            stage.install_crd(&fixtures::crd(&stage.group, kind)).await?;
            let naming = fixtures::beside_names(&format!("{}-", kind.to_lowercase()));
            stage.publish(kind, json!({ "naming": naming, "related": related() })).await?;
        }
        stage.create_export().await?;
        futures::try_join!(stage.bind(&stage.team_a), stage.bind(&stage.team_b))?;
        let agent = Agent::start(&stage, Setup { apply, ..Setup::default() })?;
        let (team, queues) = (&stage.team_a, fixtures::kind(&stage.group, "Queue"));
        let copy = place_order(&stage, "thing", "shared").await?;
        stage.order_kind(&queues, team, "queue", json!({ "size": 1, "owner": "shared" })).await?;
        stage.copy_of_kind_is("the Queue is there", (&queues, team, "queue"), |_| true).await?;
        stage.at_rest().await?;
        let (queue, prs) = (stage.published_name("Queue"), kinds::published_resources());
        let patch = json!({ "metadata": { "annotations": { api::WITHDRAW_AT: "2020-01-01T00:00:00Z" } } });
        stage.service.merge_patch(&prs, None, &queue, &patch).await?;
        stage
            .eventually("the kind leaves the export", async || {
                let export = stage.export().await?;
                ensure!(!export["spec"].to_string().contains("queues"), "{}", shown(&export["spec"]));
                Ok(())
            })
            .await?;
        let secrets = kinds::secrets();
        let at = (&team.client, &secrets, Some(NAMESPACE), "shared");
        stage.object("it is still held for the other order", at, |secret| !is_free(secret)).await?;
        // One that was not there when the kind was let go.
        agent.stop().await?;
        let agent = Agent::start(&stage, Setup { apply, ..Setup::default() })?;
        stage.cancel(team, "thing").await?;
        stage.all_gone(team, "thing").await?;
        stage.object("the Secret is let go", at, |secret| is_free(secret) && held_by(secret).is_null()).await?;
        ensure!(place(&copy).1.ends_with("thing"), "{}", shown(&copy));
        agent.stop().await?;
    }
    Ok(())
}
