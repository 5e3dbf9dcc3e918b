//! What was there before stays as it is, unless its owner gives it away.

use std::sync::Arc;

use anyhow::{Context, ensure};
use carrick_e2e_stage::fixtures::beside_names;
use carrick_e2e_stage::kinds;
use carrick_e2e_stage::stage::{NAMESPACE, Stage, shown};
use carrick_e2e_stage::world::World;
use serde_json::{Value, json};

use super::{ADOPTION, create_namespace, left, publish, put, quick_agent, republish, same, silent, untouched, warned};
use crate::related::encoded;

/// A Secret of the service for every order, which goes with it.
pub(super) fn credentials() -> Value {
    json!({
        "identifier": "credentials", "origin": "service", "kind": "Secret", "cleanup": true,
        "object": { "template": { "template": "{{ .Object.metadata.name }}-credentials" } },
        "watch": { "bySelector": {} },
    })
}

/// A ConfigMap of the consumer for every order.
pub(super) fn settings() -> Value {
    json!({
        "identifier": "settings", "origin": "kcp", "kind": "ConfigMap",
        "object": { "template": { "template": "{{ .Object.metadata.name }}-settings" } },
        "watch": { "bySelector": {} },
    })
}

pub(super) fn password(text: &str) -> Value {
    json!({ "data": { "password": encoded(text) } })
}

pub(super) fn color(text: &str) -> Value {
    json!({ "data": { "color": text } })
}

pub(super) fn give_away() -> Value {
    json!({ "metadata": { "annotations": { ADOPTION: "TakeOver" } } })
}

pub(super) async fn set(world: Arc<dyn World>) -> anyhow::Result<Stage> {
    let related = json!([credentials(), settings()]);
    let stage = publish(world, json!({ "naming": beside_names(""), "related": related })).await?;
    create_namespace(&stage, &stage.team_a.cluster).await?;
    Ok(stage)
}

pub(crate) async fn a_secret_that_the_consumer_had_in_the_place_of_a_related_copy_stays_theirs(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let stage = set(world).await?;
    let (team, secrets) = (&stage.team_a, kinds::secrets());
    let at = (&team.client, &secrets, Some(NAMESPACE), "bucket-credentials");
    let mine = put(&team.client, &secrets, NAMESPACE, "bucket-credentials", &password("mine")).await?;
    put(&stage.service, &secrets, &team.cluster, "bucket-credentials", &password("theirs")).await?;
    let agent = stage.start_agent()?;
    stage.order(team, "bucket", json!({ "size": 1 })).await?;
    stage.copy_is("the copy is there", team, "bucket", |_| true).await?;
    warned(&stage, team, "bucket", &["bucket-credentials", "TakeOver"]).await?;
    stage.at_rest().await?;
    untouched(at, &mine).await?;
    stage.cancel(team, "bucket").await?;
    stage.all_gone(team, "bucket").await?;
    stage.at_rest().await?;
    untouched(at, &mine).await?;

    // Its owner gives it away: from now on it follows the original, and stays when the order goes.
    team.client.merge_patch(&secrets, Some(NAMESPACE), "bucket-credentials", &give_away()).await?;
    stage.order(team, "bucket", json!({ "size": 1 })).await?;
    let taken = stage.object("it is taken over", at, |secret| secret["data"]["password"] == encoded("theirs")).await?;
    same(&taken, &mine)?;
    stage.cancel(team, "bucket").await?;
    stage.all_gone(team, "bucket").await?;
    left(at, &taken).await?;
    agent.stop().await
}

pub(crate) async fn a_config_map_that_the_operator_had_in_the_place_of_a_related_copy_stays_theirs(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let stage = set(world).await?;
    let (team, maps) = (&stage.team_a, kinds::config_maps());
    let at = (&stage.service, &maps, Some(team.cluster.as_str()), "bucket-settings");
    let theirs = put(&stage.service, &maps, &team.cluster, "bucket-settings", &color("theirs")).await?;
    put(&team.client, &maps, NAMESPACE, "bucket-settings", &color("mine")).await?;
    let agent = stage.start_agent()?;
    stage.order(team, "bucket", json!({ "size": 1 })).await?;
    stage.copy_is("the copy is there", team, "bucket", |_| true).await?;
    warned(&stage, team, "bucket", &["bucket-settings", "TakeOver"]).await?;
    stage.at_rest().await?;
    untouched(at, &theirs).await?;
    stage.cancel(team, "bucket").await?;
    stage.all_gone(team, "bucket").await?;
    stage.at_rest().await?;
    untouched(at, &theirs).await?;
    let mine = team.client.get(&maps, Some(NAMESPACE), "bucket-settings").await?.context("it was deleted")?;
    ensure!(super::is_free(&mine), "nobody needs it any more: {}", shown(&mine));

    // The rules give everything away.
    republish(&stage, json!({ "adoption": "TakeOver" })).await?;
    stage.order(team, "bucket", json!({ "size": 1 })).await?;
    let taken = stage.object("it is taken over", at, |map| map["data"]["color"] == "mine").await?;
    same(&taken, &theirs)?;
    let patch = color("other");
    team.client.merge_patch(&maps, Some(NAMESPACE), "bucket-settings", &patch).await?;
    let changed = stage.object("a change follows", at, |map| map["data"]["color"] == "other").await?;
    stage.cancel(team, "bucket").await?;
    stage.all_gone(team, "bucket").await?;
    left(at, &changed).await?;
    agent.stop().await
}

/// A stage with an unowned Bucket in the place of the copy of `bucket`.
pub(super) async fn taken(world: Arc<dyn World>, spec: Value) -> anyhow::Result<(Stage, Value)> {
    let stage = publish(world, json!({ "naming": beside_names("") })).await?;
    create_namespace(&stage, &stage.team_a.cluster).await?;
    let unowned = json!({ "spec": spec });
    let unowned = put(&stage.service, &stage.buckets(), &stage.team_a.cluster, "bucket", &unowned).await?;
    Ok((stage, unowned))
}

pub(crate) async fn an_object_in_the_place_of_a_copy_is_refused_until_its_owner_gives_it_away(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let (stage, unowned) = taken(world, json!({ "region": "eu", "size": 9 })).await?;
    let (team, buckets) = (&stage.team_a, stage.buckets());
    let at = (&stage.service, &buckets, Some(team.cluster.as_str()), "bucket");
    let agent = quick_agent(&stage)?;
    stage.order(team, "bucket", json!({ "region": "us", "size": 1 })).await?;
    warned(&stage, team, "bucket", &["bucket", &team.cluster, "TakeOver"]).await?;
    // Nothing changes, so there is nothing more to tell.
    silent(&stage, &agent).await?;
    untouched(at, &unowned).await?;
    // An order that was refused can go, and leaves the object alone.
    stage.cancel(team, "bucket").await?;
    stage.gone("the order can go", (&team.client, &buckets, Some(NAMESPACE), "bucket")).await?;
    untouched(at, &unowned).await?;

    stage.order(team, "bucket", json!({ "region": "us", "size": 1 })).await?;
    warned(&stage, team, "bucket", &["bucket", &team.cluster, "TakeOver"]).await?;
    stage.service.merge_patch(&buckets, Some(&team.cluster), "bucket", &give_away()).await?;
    let wanted = json!({ "region": "us", "size": 1 });
    let copy = stage.copy_is("it is taken over, with the content", team, "bucket", |c| c["spec"] == wanted).await?;
    same(&copy, &unowned)?;
    stage.operator_reports(&copy, json!({ "url": "here" })).await?;
    stage.source_is("the status returns", team, "bucket", |source| source["status"]["url"] == "here").await?;
    stage.cancel(team, "bucket").await?;
    stage.all_gone(team, "bucket").await?;
    left(at, &copy).await?;
    agent.stop().await
}

pub(crate) async fn rules_may_say_that_all_objects_in_the_place_of_copies_are_taken_over(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let (stage, unowned) = taken(world, json!({ "region": "eu", "size": 9 })).await?;
    let team = &stage.team_a;
    republish(&stage, json!({ "adoption": "TakeOver" })).await?;
    let agent = stage.start_agent()?;
    stage.order(team, "bucket", json!({ "region": "us", "size": 1 })).await?;
    let wanted = json!({ "region": "us", "size": 1 });
    let copy = stage.copy_is("it is taken over, with the content", team, "bucket", |c| c["spec"] == wanted).await?;
    same(&copy, &unowned)?;
    stage.reorder(team, "bucket", json!({ "size": 2 })).await?;
    stage.copy_is("a change arrives", team, "bucket", |copy| copy["spec"]["size"] == 2).await?;

    // Not what belongs to another agent or another source: nobody but they can give that away.
    let hash = carrick_syncagent::rules::metadata::sha1_hex;
    let labels = json!({
        carrick_syncagent::api::AGENT_NAME: "other-agent",
        carrick_syncagent::api::REMOTE_CLUSTER: stage.team_b.cluster,
        carrick_syncagent::api::REMOTE_NAME_HASH: hash("another"),
        carrick_syncagent::api::REMOTE_NAMESPACE_HASH: hash(NAMESPACE),
    });
    let foreign = json!({ "metadata": { "labels": labels }, "spec": { "size": 9 } });
    let foreign = put(&stage.service, &stage.buckets(), &team.cluster, "another", &foreign).await?;
    stage.order(team, "another", json!({ "size": 1 })).await?;
    warned(&stage, team, "another", &["another", "other-agent"]).await?;
    stage.at_rest().await?;
    untouched((&stage.service, &stage.buckets(), Some(team.cluster.as_str()), "another"), &foreign).await?;
    agent.stop().await
}
