//! Consumers who do not let the provider see what it would need to see.

use std::sync::Arc;

use anyhow::{Context, ensure};
use carrick_e2e_stage::fixtures::beside_names;
use carrick_e2e_stage::stage::{NAMESPACE, Stage, condition, place, shown};
use carrick_e2e_stage::world::World;
use carrick_e2e_stage::{fixtures, kinds};
use serde_json::{Value, json};

use super::{is_free, named_secret, put, republish, warned};
use crate::related::encoded;

/// What consumers accept at least, so that they hear of anything.
const EVENTS: &[&str] = &["events"];

/// What they accept as a rule.
const EVERYTHING: &[&str] = &["configmaps", "events", "namespaces", "secrets", "logicalclusters"];

/// Secrets of either origin.
fn related() -> Value {
    let up = json!({
        "identifier": "credentials", "origin": "service", "kind": "Secret", "cleanup": true,
        "object": { "template": { "template": "{{ .Object.metadata.name }}-credentials" } },
        "watch": { "bySelector": {} },
    });
    json!([up, named_secret()])
}

/// A stage where Buckets bring Secrets along, and team A accepts nothing but some claims.
async fn set(world: Arc<dyn World>, accepted: &[&str], more: Value) -> anyhow::Result<Stage> {
    let stage = Stage::bound(world, |group| fixtures::crd(group, "Bucket")).await?;
    stage.accept(&stage.team_a, accepted).await?;
    let mut spec = json!({ "naming": beside_names(""), "related": related() });
    for (key, value) in more.as_object().into_iter().flatten() {
        spec[key] = value.clone();
    }
    stage.publish("Bucket", spec).await?;
    Ok(stage)
}

/// An order, its copy, and Secrets of either origin.
async fn order(stage: &Stage, name: &str) -> anyhow::Result<Value> {
    let (team, secrets) = (&stage.team_a, kinds::secrets());
    let own = format!("{name}-own");
    put(&team.client, &secrets, NAMESPACE, &own, &json!({ "data": { "of": encoded("consumer") } })).await?;
    stage.order(team, name, json!({ "size": 1, "owner": own })).await?;
    let copy = stage.copy_is("the copy is there", team, name, |_| true).await?;
    let theirs = format!("{name}-credentials");
    put(&stage.service, &secrets, place(&copy).0, &theirs, &json!({ "data": { "of": encoded("service") } })).await?;
    Ok(copy)
}

/// Waits until an order is gone together with all that the agent can reach.
async fn ended(stage: &Stage, name: &str, copy: &Value) -> anyhow::Result<()> {
    stage.all_gone(&stage.team_a, name).await?;
    let (namespace, secrets) = (place(copy).0, kinds::secrets());
    let own = format!("{name}-own");
    stage.gone("the copy of the Secret is gone", (&stage.service, &secrets, Some(namespace), own.as_str())).await?;
    let theirs = format!("{name}-credentials");
    let kept = stage.service.get(&secrets, Some(namespace), &theirs).await?;
    ensure!(kept.is_some(), "the Secret of the service was deleted");
    Ok(())
}

pub(crate) async fn an_order_whose_claims_were_never_accepted_can_be_deleted(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let stage = set(world, EVENTS, json!({})).await?;
    let agent = stage.start_agent()?;
    let team = &stage.team_a;
    let copy = order(&stage, "bucket").await?;
    warned(&stage, team, "bucket", &["secrets"]).await?;
    stage.reorder(team, "bucket", json!({ "size": 2 })).await?;
    stage.copy_is("changes arrive all the same", team, "bucket", |copy| copy["spec"]["size"] == 2).await?;
    stage.operator_reports(&copy, json!({ "url": "here" })).await?;
    stage.source_is("and so does the status", team, "bucket", |source| source["status"]["url"] == "here").await?;
    stage.cancel(team, "bucket").await?;
    ended(&stage, "bucket", &copy).await?;

    // The same for an agent that never saw it alive.
    let copy = order(&stage, "second").await?;
    agent.stop().await?;
    stage.cancel(team, "second").await?;
    let agent = stage.start_agent()?;
    ended(&stage, "second", &copy).await?;
    agent.stop().await
}

pub(crate) async fn an_order_whose_claims_were_revoked_can_be_deleted(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = set(world, EVERYTHING, json!({})).await?;
    let agent = stage.start_agent()?;
    let (team, secrets) = (&stage.team_a, kinds::secrets());
    let mut copies = Vec::new();
    for name in ["one", "two"] {
        let copy = order(&stage, name).await?;
        let (own, theirs) = (format!("{name}-own"), format!("{name}-credentials"));
        let at = (&stage.service, &secrets, Some(place(&copy).0), own.as_str());
        stage.object("the Secret of the consumer arrives", at, |_| true).await?;
        let at = (&team.client, &secrets, Some(NAMESPACE), theirs.as_str());
        stage.object("the Secret of the service arrives", at, |_| true).await?;
        copies.push(copy);
    }
    stage.at_rest().await?;
    stage.accept(team, EVENTS).await?;
    stage.cancel(team, "one").await?;
    ended(&stage, "one", &copies[0]).await?;
    agent.stop().await?;
    stage.cancel(team, "two").await?;
    let agent = stage.start_agent()?;
    ended(&stage, "two", &copies[1]).await?;
    // What it could not clean up it has told.
    for name in ["one", "two"] {
        warned(&stage, team, name, &["claim", "secrets"]).await?;
    }
    agent.stop().await
}

pub(crate) async fn an_order_that_the_filter_drops_is_let_go_without_any_claim(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    for at_first in [EVENTS, EVERYTHING] {
        let filter = json!({ "filter": { "resource": { "matchLabels": { "tier": "gold" } } } });
        let stage = set(Arc::clone(&world), at_first, filter).await?;
        let agent = stage.start_agent()?;
        let (team, buckets, secrets) = (&stage.team_a, stage.buckets(), kinds::secrets());
        let own = json!({ "data": { "of": encoded("consumer") } });
        put(&team.client, &secrets, NAMESPACE, "bucket-own", &own).await?;
        stage.order(team, "bucket", json!({ "size": 1, "owner": "bucket-own" })).await?;
        let label = |tier: Value| json!({ "metadata": { "labels": { "tier": tier } } });
        team.client.merge_patch(&buckets, Some(NAMESPACE), "bucket", &label(json!("gold"))).await?;
        let copy = stage.copy_is("the copy is there", team, "bucket", |_| true).await?;
        stage.source_is("the order is held", team, "bucket", |source| !is_free(source)).await?;
        if at_first == EVERYTHING {
            let at = (&stage.service, &secrets, Some(place(&copy).0), "bucket-own");
            stage.object("the Secret of the consumer arrives", at, |_| true).await?;
            stage.at_rest().await?;
            stage.accept(team, EVENTS).await?;
        }
        team.client.merge_patch(&buckets, Some(NAMESPACE), "bucket", &label(Value::Null)).await?;
        stage.source_is("the order is let go", team, "bucket", is_free).await?;
        stage.at_rest().await?;
        ensure!(stage.copy(team, "bucket").await?.is_some(), "what is not synchronized any more was deleted");
        agent.stop().await?;
    }
    Ok(())
}

pub(crate) async fn an_order_is_released_without_any_claim(world: Arc<dyn World>) -> anyhow::Result<()> {
    for running in [true, false] {
        let stage = set(Arc::clone(&world), EVERYTHING, json!({})).await?;
        let mut agent = stage.start_agent()?;
        let (team, secrets) = (&stage.team_a, kinds::secrets());
        let copy = order(&stage, "bucket").await?;
        let at = (&stage.service, &secrets, Some(place(&copy).0), "bucket-own");
        stage.object("the Secret of the consumer arrives", at, |_| true).await?;
        stage.accept(team, EVENTS).await?;
        if running {
            republish(&stage, json!({ "synchronization": { "enabled": false } })).await?;
        } else {
            agent.stop().await?;
            republish(&stage, json!({ "synchronization": { "enabled": false } })).await?;
            agent = stage.start_agent()?;
        }
        stage.source_is("the order is let go", team, "bucket", is_free).await?;
        stage.at_rest().await?;
        ensure!(stage.copy(team, "bucket").await?.is_some(), "what is not synchronized any more was deleted");
        agent.stop().await?;
    }
    Ok(())
}

pub(crate) async fn claims_that_are_accepted_later_bring_the_secrets(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = set(world, EVENTS, json!({})).await?;
    let agent = stage.start_agent()?;
    let (team, secrets) = (&stage.team_a, kinds::secrets());
    let copy = order(&stage, "bucket").await?;
    stage.at_rest().await?;
    stage.accept(team, EVERYTHING).await?;
    let at = (&team.client, &secrets, Some(NAMESPACE), "bucket-credentials");
    stage.object("the Secret of the service arrives", at, |_| true).await?;
    let at = (&stage.service, &secrets, Some(place(&copy).0), "bucket-own");
    stage.object("the Secret of the consumer arrives", at, |_| true).await?;
    stage.cancel(team, "bucket").await?;
    ended(&stage, "bucket", &copy).await?;
    let own = team.client.get(&secrets, Some(NAMESPACE), "bucket-own").await?.context("it was deleted")?;
    ensure!(is_free(&own), "it is still held: {}", shown(&own));
    ensure!(own["metadata"]["annotations"]["syncagent.kcp.io/held-by"].is_null(), "it is marked: {}", shown(&own));
    let published = stage.published_name("Bucket");
    let at = (&stage.service, &kinds::published_resources(), None, published.as_str());
    stage.object("all is well again", at, |pr| condition(pr, "ObjectsSynced")["status"] != "False").await?;
    agent.stop().await
}
