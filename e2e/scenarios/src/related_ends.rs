//! How what travels beside an order comes to its end.

use std::sync::Arc;

use anyhow::{Context, ensure};
use carrick_client::DeleteOptions;
use carrick_e2e_stage::stage::{NAMESPACE, Stage, place};
use carrick_e2e_stage::world::World;
use carrick_e2e_stage::{fixtures, kinds};
use carrick_syncagent::api;
use serde_json::{Value, json};

use super::related::{credentials, encoded, secret};

/// A Secret of the consumer that the order names.
fn named() -> Value {
    json!({
        "identifier": "named",
        "origin": "kcp",
        "kind": "Secret",
        "object": { "reference": { "path": "spec.owner" } },
    })
}

async fn set(world: Arc<dyn World>, related: Value) -> anyhow::Result<Stage> {
    let stage = Stage::bare(world).await?;
    stage.install_crd(&fixtures::crd(&stage.group, "Bucket")).await?;
    stage.create_export().await?;
    futures::try_join!(stage.bind(&stage.team_a), stage.bind(&stage.team_b))?;
    stage.publish("Bucket", json!({ "related": related })).await?;
    Ok(stage)
}

async fn consumers_secret(stage: &Stage, name: &str) -> anyhow::Result<()> {
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": name }, "data": { "name": encoded(name) },
    });
    stage.team_a.client.create(&kinds::secrets(), Some(NAMESPACE), &secret).await?;
    Ok(())
}

fn is_held(object: &Value) -> bool {
    object["metadata"]["finalizers"] == json!([api::FINALIZER])
}

fn is_free(object: &Value) -> bool {
    object["metadata"]["finalizers"].is_null()
}

pub(super) async fn a_secret_that_two_orders_share_goes_with_the_last_of_them(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let mut related = named();
    related["cleanupPolicy"] = json!("MatchOrigin");
    let stage = set(world, json!([related])).await?;
    let agent = stage.start_agent()?;
    let team = &stage.team_a;
    consumers_secret(&stage, "shared").await?;
    for name in ["first", "second"] {
        stage.order(team, name, json!({ "owner": "shared" })).await?;
    }
    let copy = stage.copy_is("the copy is there", team, "first", |_| true).await?;
    stage.copy_is("the other copy is there", team, "second", |_| true).await?;
    let at = (&team.client, &kinds::secrets(), Some(NAMESPACE), "shared");
    let copied = (&stage.service, &kinds::secrets(), Some(place(&copy).0), "shared");
    let before = stage.object("the Secret is copied", copied, |_| true).await?;
    stage.object("the Secret is held", at, is_held).await?;
    stage.at_rest().await?;
    agent.stop().await?;

    // Who shares it is known from the first moment of a new agent on.
    stage.cancel(team, "first").await?;
    let agent = stage.start_agent()?;
    stage.gone("the first order is gone", (&team.client, &stage.buckets(), Some(NAMESPACE), "first")).await?;
    stage.at_rest().await?;
    stage.object("the Secret is still held", at, is_held).await?;
    let after = stage.object("its copy is still there", copied, |_| true).await?;
    ensure!(after["metadata"]["uid"] == before["metadata"]["uid"], "the copy was made anew");

    stage.cancel(team, "second").await?;
    stage.gone("the second order is gone", (&team.client, &stage.buckets(), Some(NAMESPACE), "second")).await?;
    stage.gone("the copy goes with it", copied).await?;
    stage.object("the Secret is free", at, is_free).await?;
    agent.stop().await
}

pub(super) async fn what_an_order_does_not_name_any_more_is_let_go(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = set(world, json!([named()])).await?;
    let agent = stage.start_agent()?;
    let team = &stage.team_a;
    for name in ["one", "two"] {
        consumers_secret(&stage, name).await?;
    }
    stage.order(team, "bucket", json!({ "owner": "one" })).await?;
    let copy = stage.copy_is("the copy is there", team, "bucket", |_| true).await?;
    let (secrets, namespace) = (kinds::secrets(), place(&copy).0);
    let at = |name| (&team.client, &secrets, Some(NAMESPACE), name);
    let copied = |name| (&stage.service, &secrets, Some(namespace), name);
    stage.object("the first is copied", copied("one"), |_| true).await?;
    stage.reorder(team, "bucket", json!({ "owner": "two" })).await?;
    stage.object("the second is copied", copied("two"), |_| true).await?;
    stage.object("the second is held", at("two"), is_held).await?;
    stage.gone("the copy of the first goes", copied("one")).await?;
    stage.object("the first is free", at("one"), is_free).await?;

    // The PublishedResource does not want it any more.
    let published = stage.published_name("Bucket");
    let patch = json!({ "spec": { "related": null } });
    stage.service.merge_patch(&kinds::published_resources(), None, &published, &patch).await?;
    stage.gone("the copy of the second goes", copied("two")).await?;
    stage.object("the second is free", at("two"), is_free).await?;
    agent.stop().await
}

pub(super) async fn an_entry_that_cannot_be_read_keeps_its_copies(world: Arc<dyn World>) -> anyhow::Result<()> {
    let template = r#"{{ if eq .Object.spec.region "nowhere" }}{{ fail "no such region" }}{{ end }}fragile"#;
    let mut fragile = named();
    fragile["identifier"] = json!("fragile");
    fragile["object"] = json!({ "template": { "template": template } });
    let stage = set(world, json!([named(), fragile])).await?;
    let agent = stage.start_agent()?;
    let team = &stage.team_a;
    for name in ["one", "fragile"] {
        consumers_secret(&stage, name).await?;
    }
    stage.order(team, "bucket", json!({ "owner": "one", "region": "here" })).await?;
    let copy = stage.copy_is("the copy is there", team, "bucket", |_| true).await?;
    let (secrets, namespace) = (kinds::secrets(), place(&copy).0);
    let copied = |name| (&stage.service, &secrets, Some(namespace), name);
    let before = stage.object("both are copied", copied("fragile"), |_| true).await?;
    stage.object("both are copied", copied("one"), |_| true).await?;

    // What the other entry does not name any more goes, after the grace that would also be that of this one.
    stage.reorder(team, "bucket", json!({ "owner": "", "region": "nowhere" })).await?;
    stage.gone("what is not named any more is taken back", copied("one")).await?;
    stage.reorder(team, "bucket", json!({ "owner": "one", "region": "here" })).await?;
    stage.object("it comes back", copied("one"), |_| true).await?;
    let after = stage.object("the other one was there all the time", copied("fragile"), |_| true).await?;
    ensure!(after["metadata"]["uid"] == before["metadata"]["uid"], "a copy of an entry that failed was deleted");
    agent.stop().await
}

pub(super) async fn a_secret_that_the_service_deletes_goes_from_the_consumer_too(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let mut without_watch = credentials();
    without_watch.as_object_mut().context("no object")?.remove("watch");
    let stage = set(world, json!([without_watch])).await?;
    let agent = stage.start_agent()?;
    let team = &stage.team_a;
    stage.order(team, "bucket", json!({ "size": 1 })).await?;
    let copy = stage.copy_is("the copy is there", team, "bucket", |_| true).await?;
    let (namespace, copy_name) = place(&copy);
    let secrets = kinds::secrets();
    stage.service.create(&secrets, Some(namespace), &secret(copy_name, "first")).await?;
    let at = (&team.client, &secrets, Some(NAMESPACE), "bucket-credentials");
    let first = stage.object("the Secret reaches the consumer", at, |_| true).await?;

    // What the consumer deletes comes back, and what can never change is made anew.
    team.client.delete(&secrets, Some(NAMESPACE), "bucket-credentials", &DeleteOptions::default()).await?;
    let again =
        stage.object("it comes back", at, |secret| secret["metadata"]["uid"] != first["metadata"]["uid"]).await?;
    let name = format!("{copy_name}-credentials");
    stage.service.delete(&secrets, Some(namespace), &name, &DeleteOptions::default()).await?;
    stage.gone("it goes with its original", at).await?;
    stage
        .source_is("the order does not name it any more", team, "bucket", |source| {
            source["metadata"]["annotations"]["related-resources.syncagent.kcp.io/credentials.0"].is_null()
        })
        .await?;
    let mut typed = secret(copy_name, "second");
    typed["type"] = "example.com/other".into();
    stage.service.create(&secrets, Some(namespace), &typed).await?;
    stage
        .object("another one takes its place", at, |secret| {
            secret["type"] == "example.com/other" && secret["metadata"]["uid"] != again["metadata"]["uid"]
        })
        .await?;
    agent.stop().await
}

pub(super) async fn secrets_that_come_to_match_a_selector_travel_at_once(world: Arc<dyn World>) -> anyhow::Result<()> {
    let selected = json!({
        "identifier": "selected",
        "origin": "service",
        "kind": "Secret",
        "object": { "selector": {
            "matchLabels": { "for": "{{ .RemoteObject.metadata.name }}" },
            "rewrite": { "template": { "template": "{{ .Value }}-copy" } },
        } },
    });
    let broken = json!({
        "identifier": "broken",
        "origin": "service",
        "group": "nowhere.example.com",
        "version": "v1",
        "resource": "nothings",
        "projection": { "group": "", "resource": "configmaps" },
        "object": { "template": { "template": "x" } },
    });
    let stage = set(world, json!([broken, selected])).await?;
    let agent = stage.start_agent()?;
    let team = &stage.team_a;
    stage.order(team, "bucket", json!({ "size": 1 })).await?;
    let copy = stage.copy_is("the copy is there", team, "bucket", |_| true).await?;
    let (secrets, namespace) = (kinds::secrets(), place(&copy).0);
    let object = |name: &str, label: &str| {
        json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "name": name, "labels": { "for": label } },
            "data": { "name": encoded(name) },
        })
    };
    let at = |name| (&team.client, &secrets, Some(NAMESPACE), name);
    stage.service.create(&secrets, Some(namespace), &object("a", "bucket")).await?;
    stage.service.create(&secrets, Some(namespace), &object("b", "nobody")).await?;
    stage.object("one that matches travels, although another entry is broken", at("a-copy"), |_| true).await?;
    ensure!(team.client.get(&secrets, Some(NAMESPACE), "b-copy").await?.is_none(), "one that does not match travels");
    let label = |label: &str| json!({ "metadata": { "labels": { "for": label } } });
    stage.service.merge_patch(&secrets, Some(namespace), "b", &label("bucket")).await?;
    stage.object("one that comes to match travels", at("b-copy"), |_| true).await?;
    stage.service.merge_patch(&secrets, Some(namespace), "a", &label("nobody")).await?;
    stage.gone("one that does not match any more goes", at("a-copy")).await?;
    stage
        .source_is("the order names what is left", team, "bucket", |source| {
            let annotations = &source["metadata"]["annotations"];
            let named = |index| annotations[format!("related-resources.syncagent.kcp.io/selected.{index}")].clone();
            named(0).as_str().is_some_and(|text| text.contains("b-copy")) && named(1).is_null()
        })
        .await?;
    agent.stop().await
}

pub(super) async fn an_order_whose_copy_is_gone_still_lets_its_secret_go(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = set(world, json!([named()])).await?;
    let agent = stage.start_agent()?;
    let team = &stage.team_a;
    consumers_secret(&stage, "mine").await?;
    stage.order(team, "bucket", json!({ "owner": "mine" })).await?;
    let copy = stage.copy_is("the copy is there", team, "bucket", |_| true).await?;
    let (namespace, name) = place(&copy);
    let at = (&team.client, &kinds::secrets(), Some(NAMESPACE), "mine");
    let copied = (&stage.service, &kinds::secrets(), Some(namespace), "mine");
    stage.object("the Secret is copied", copied, |_| true).await?;
    stage.object("the Secret is held", at, is_held).await?;
    agent.stop().await?;
    stage.service.delete(&stage.buckets(), Some(namespace), name, &DeleteOptions::default()).await?;
    stage.cancel(team, "bucket").await?;
    let agent = stage.start_agent()?;
    stage.gone("the order is gone", (&team.client, &stage.buckets(), Some(NAMESPACE), "bucket")).await?;
    stage.gone("the copy of the Secret is gone", copied).await?;
    stage.object("the Secret is free", at, is_free).await?;
    agent.stop().await
}
