//! A copy belongs to exactly one source.

use std::sync::Arc;

use anyhow::{Context, ensure};
use carrick_client::{DeleteOptions, Resource};
use carrick_e2e_stage::fixtures::beside_names;
use carrick_e2e_stage::kinds;
use carrick_e2e_stage::stage::{NAMESPACE, Stage, Workspace, changes, place};
use carrick_e2e_stage::world::World;
use carrick_syncagent::api;
use serde_json::{Value, json};

use super::{REMOTE_RESOURCE, REMOTE_UID, ended, memories, publish, publish_again, same, untouched, warned, warned_of};

/// Buckets as `Volume` of another group, beside the Buckets themselves.
async fn set(world: Arc<dyn World>, scope: &str, prefix: &str) -> anyhow::Result<(Stage, Resource)> {
    let stage = publish(world, json!({ "naming": beside_names("") })).await?;
    let group = format!("shop.{}", stage.group);
    let projection = json!({ "group": group, "kind": "Volume", "scope": scope });
    publish_again(&stage, "volumes", json!({ "projection": projection, "naming": beside_names(prefix) })).await?;
    let volumes = match scope {
        "Cluster" => Resource::cluster_wide(&group, "v1", "Volume", "volumes"),
        _ => Resource::namespaced(&group, "v1", "Volume", "volumes"),
    };
    Ok((stage, volumes))
}

/// Orders a Volume, as soon as there are any.
async fn order(stage: &Stage, volumes: &Resource, team: &Workspace, name: &str, size: i64) -> anyhow::Result<()> {
    let object = json!({
        "apiVersion": volumes.api_version(), "kind": "Volume", "metadata": { "name": name }, "spec": { "size": size },
    });
    let namespace = volumes.namespaced.then_some(NAMESPACE);
    stage
        .eventually("a Volume can be created", async || {
            team.client.create(volumes, namespace, &object).await?;
            Ok(())
        })
        .await
}

/// Everything that travels does, for both, and either goes without the other.
async fn live_side_by_side(stage: &Stage, volumes: &Resource, prefix: &str, first_end: usize) -> anyhow::Result<()> {
    let agent = stage.start_agent()?;
    let (team, buckets) = (&stage.team_a, stage.buckets());
    stage.order(team, "same", json!({ "size": 1 })).await?;
    order(stage, volumes, team, "same", 2).await?;
    let namespaces = [team.cluster.clone(), format!("{prefix}{}", team.cluster)];
    let copies = namespaces.each_ref().map(|namespace| (&stage.service, &buckets, Some(namespace.as_str()), "same"));
    let namespace = volumes.namespaced.then_some(NAMESPACE);
    let sources = [(&team.client, &buckets, Some(NAMESPACE), "same"), (&team.client, volumes, namespace, "same")];
    let mut made = Vec::new();
    for (at, size) in copies.iter().zip(1..) {
        made.push(stage.object("each order has its own copy", *at, |copy| copy["spec"]["size"] == size).await?);
    }
    stage.at_rest().await?;

    // The operator of both writes what only it writes.
    for (index, (client, kind, namespace, name)) in copies.into_iter().enumerate() {
        let patch = json!({ "spec": { "region": format!("region-{index}") } });
        client.merge_patch(kind, namespace, name, &patch).await?;
        let patch = json!({ "status": { "number": index } });
        client.merge_patch_status(kind, namespace, name, &patch).await?;
    }
    for (index, at) in sources.iter().enumerate() {
        stage.object("each order gets its own status", *at, |source| source["status"]["number"] == index).await?;
    }
    for (index, (client, kind, namespace, name)) in sources.into_iter().enumerate() {
        let patch = json!({ "spec": { "size": 10 + index } });
        client.merge_patch(kind, namespace, name, &patch).await?;
    }
    for (index, at) in copies.iter().enumerate() {
        let wanted = json!({ "size": 10 + index, "region": format!("region-{index}") });
        let copy = stage.object("each change arrives at its own copy", *at, |copy| copy["spec"] == wanted).await?;
        same(&copy, &made[index])?;
    }
    stage.at_rest().await?;

    let second_end = 1 - first_end;
    let (client, kind, namespace, name) = copies[second_end];
    let before = client.get(kind, namespace, name).await?.context("the copy is gone")?;
    let (client, kind, namespace, name) = sources[first_end];
    client.delete(kind, namespace, name, &DeleteOptions::default()).await?;
    ended(stage, kind, team, name).await?;
    stage.gone("its copy goes with it", copies[first_end]).await?;
    stage.at_rest().await?;
    untouched(copies[second_end], &before).await?;

    let (client, kind, namespace, name) = sources[second_end];
    client.merge_patch(kind, namespace, name, &json!({ "spec": { "size": 20 } })).await?;
    stage.object("the other one goes on", copies[second_end], |copy| copy["spec"]["size"] == 20).await?;
    client.delete(kind, namespace, name, &DeleteOptions::default()).await?;
    ended(stage, kind, team, name).await?;
    stage.gone("its copy goes too", copies[second_end]).await?;
    let left = memories(stage, team, "same").await?;
    ensure!(left.is_empty(), "something is still remembered: {left:?}");
    agent.stop().await
}

pub(crate) async fn two_published_resources_of_one_kind_keep_to_their_own_copies(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    for first_end in [0, 1] {
        let (stage, volumes) = set(Arc::clone(&world), "Namespaced", "shop-").await?;
        live_side_by_side(&stage, &volumes, "shop-", first_end).await?;
    }
    Ok(())
}

pub(crate) async fn a_cluster_scoped_kind_and_a_namespaced_one_keep_to_their_own_copies(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    for first_end in [0, 1] {
        let (stage, volumes) = set(Arc::clone(&world), "Cluster", "shop-").await?;
        live_side_by_side(&stage, &volumes, "shop-", first_end).await?;
    }
    Ok(())
}

pub(crate) async fn of_two_kinds_that_name_copies_alike_the_first_keeps_its_copy(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let (stage, volumes) = set(world, "Namespaced", "").await?;
    let agent = stage.start_agent()?;
    let team = &stage.team_a;
    stage.order(team, "same", json!({ "size": 1 })).await?;
    stage.copy_is("the first order has its copy", team, "same", |copy| copy["spec"]["size"] == 1).await?;
    stage.at_rest().await?;
    let buckets = stage.buckets();
    let at = (&stage.service, &buckets, Some(team.cluster.as_str()), "same");
    let copy = stage.service.get(at.1, at.2, at.3).await?.context("there is no copy")?;
    order(&stage, &volumes, team, "same", 2).await?;
    warned_of(&stage, team, ("Volume", "same"), &["same", &team.cluster]).await?;
    untouched(at, &copy).await?;

    // Whoever is refused can go, and nobody else goes with them.
    team.client.delete(&volumes, Some(NAMESPACE), "same", &DeleteOptions::default()).await?;
    ended(&stage, &volumes, team, "same").await?;
    untouched(at, &copy).await?;
    stage.reorder(team, "same", json!({ "size": 3 })).await?;
    stage.copy_is("the first order goes on", team, "same", |copy| copy["spec"]["size"] == 3).await?;
    stage.cancel(team, "same").await?;
    stage.all_gone(team, "same").await?;
    agent.stop().await
}

pub(crate) async fn copies_without_the_newer_marks_are_taken_up_without_a_write(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let stage = publish(world, json!({ "naming": beside_names("") })).await?;
    let agent = stage.start_agent()?;
    let team = &stage.team_a;
    let names = ["one", "two", "three"];
    for name in names {
        stage.order(team, name, json!({ "size": 1 })).await?;
        stage.copy_is("the copy is there", team, name, |_| true).await?;
    }
    stage.at_rest().await?;
    agent.stop().await?;

    // As the reference agent, or an older one of ours, would have left them.
    let marks = json!({ "metadata": { "annotations": { REMOTE_RESOURCE: null, REMOTE_UID: null } } });
    let mut copies = Vec::new();
    for name in names {
        let copy = stage.copy(team, name).await?.context("the copy is gone")?;
        let (namespace, copy_name) = place(&copy);
        copies.push(stage.service.merge_patch(&stage.buckets(), Some(namespace), copy_name, &marks).await?);
        for memory in memories(&stage, team, name).await? {
            let (namespace, memory_name) = place(&memory);
            let annotations = memory["metadata"]["annotations"].as_object().into_iter().flatten();
            let plain: Value = annotations.map(|(key, _)| (key.clone(), Value::Null)).collect();
            let kept = memory["data"].as_object().into_iter().flatten();
            let plain_data: Value =
                kept.filter(|(key, _)| key.contains('.')).map(|(key, _)| (key.clone(), Value::Null)).collect();
            let patch = json!({ "metadata": { "annotations": plain }, "data": plain_data });
            stage.service.merge_patch(&kinds::secrets(), Some(namespace), memory_name, &patch).await?;
        }
    }
    let before = stage.at_rest().await?;
    let agent = super::quick_agent(&stage)?;
    stage.ready(&agent).await?;
    let after = stage.at_rest().await?;
    let written: Vec<String> =
        changes(&before, &after).into_iter().filter(|change| !change.contains("publishedresources")).collect();
    ensure!(written.is_empty(), "taking over wrote {written:#?}");

    // They are its own all the same.
    stage.reorder(team, "one", json!({ "size": 2 })).await?;
    let copy = stage.copy_is("a change arrives", team, "one", |copy| copy["spec"]["size"] == 2).await?;
    same(&copy, &copies[0])?;
    stage.operator_reports(&copies[1], json!({ "url": "here" })).await?;
    stage.source_is("a status returns", team, "two", |source| source["status"]["url"] == "here").await?;
    for name in names {
        stage.cancel(team, name).await?;
        stage.all_gone(team, name).await?;
    }
    agent.stop().await
}

pub(crate) async fn a_copy_without_marks_that_two_sources_could_claim_is_left_to_neither_by_a_guess(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let (stage, volumes) = set(world, "Namespaced", "").await?;
    let team = &stage.team_a;
    // A copy of an older agent: it tells workspace, namespace and name, and both orders have these.
    let hash = carrick_syncagent::rules::metadata::sha1_hex;
    let copy = json!({
        "metadata": {
            "labels": {
                api::AGENT_NAME: stage.agent_name(),
                api::REMOTE_CLUSTER: team.cluster,
                api::REMOTE_NAME_HASH: hash("same"),
                api::REMOTE_NAMESPACE_HASH: hash(NAMESPACE),
            },
            "annotations": { api::REMOTE_NAME: "same", api::REMOTE_NAMESPACE: NAMESPACE },
        },
        "spec": { "size": 7, "owner": "somebody" },
    });
    super::create_namespace(&stage, &team.cluster).await?;
    let buckets = stage.buckets();
    let at = (&stage.service, &buckets, Some(team.cluster.as_str()), "same");
    let copy = super::put(&stage.service, &buckets, &team.cluster, "same", &copy).await?;
    // Both orders are there before an agent looks at either of them.
    let agent = stage.start_agent()?;
    stage.order(team, "other", json!({ "size": 1 })).await?;
    order(&stage, &volumes, team, "another", 1).await?;
    agent.stop().await?;
    stage.order(team, "same", json!({ "size": 1 })).await?;
    order(&stage, &volumes, team, "same", 2).await?;
    let agent = stage.start_agent()?;
    for kind in ["Bucket", "Volume"] {
        warned_of(&stage, team, (kind, "same"), &["same", &team.cluster]).await?;
    }
    stage.at_rest().await?;
    untouched(at, &copy).await?;
    agent.stop().await
}

pub(crate) async fn a_source_made_anew_does_not_inherit_the_copy_of_the_old_one(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let stage = publish(world, json!({ "naming": beside_names("") })).await?;
    let agent = stage.start_agent()?;
    let (team, buckets) = (&stage.team_a, stage.buckets());
    stage.order(team, "bucket", json!({ "size": 1 })).await?;
    let copy = stage.copy_is("the copy is there", team, "bucket", |_| true).await?;
    stage.operator_reports(&copy, json!({ "url": "old" })).await?;
    stage.source_is("the status returns", team, "bucket", |source| source["status"]["url"] == "old").await?;
    stage.at_rest().await?;
    agent.stop().await?;
    let old = stage.source(team, "bucket").await?.context("the order is gone")?;
    stage.cancel(team, "bucket").await?;
    let free = json!({ "metadata": { "finalizers": null } });
    team.client.merge_patch(&buckets, Some(NAMESPACE), "bucket", &free).await?;
    stage.gone("the order is gone", (&team.client, &buckets, Some(NAMESPACE), "bucket")).await?;
    let new = stage.order(team, "bucket", json!({ "size": 5 })).await?;
    ensure!(new["metadata"]["uid"] != old["metadata"]["uid"], "it is the same order");
    let copy = stage.copy(team, "bucket").await?.context("the copy is gone")?;

    let agent = stage.start_agent()?;
    let (namespace, name) = place(&copy);
    warned(&stage, team, "bucket", &[namespace, name, "delete"]).await?;
    stage.at_rest().await?;
    let at = (&stage.service, &buckets, Some(namespace), name);
    untouched(at, &copy).await?;
    let source = stage.source(team, "bucket").await?.context("the order is gone")?;
    ensure!(source["status"]["url"].is_null(), "the new order got the status of the old one");

    // The way out that the warning names.
    stage.service.delete(&buckets, Some(namespace), name, &DeleteOptions::default()).await?;
    let made = stage.copy_is("another copy is made", team, "bucket", |copy| copy["spec"]["size"] == 5).await?;
    ensure!(made["metadata"]["uid"] != copy["metadata"]["uid"], "it is the old copy");
    stage.operator_reports(&made, json!({ "url": "new" })).await?;
    stage.source_is("the status returns", team, "bucket", |source| source["status"]["url"] == "new").await?;
    stage.cancel(team, "bucket").await?;
    stage.all_gone(team, "bucket").await?;
    agent.stop().await
}

pub(crate) async fn a_source_made_anew_that_goes_leaves_the_copy_of_the_old_one(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let stage = publish(world, json!({ "naming": beside_names("") })).await?;
    let agent = stage.start_agent()?;
    let (team, buckets) = (&stage.team_a, stage.buckets());
    stage.order(team, "bucket", json!({ "size": 1 })).await?;
    let copy = stage.copy_is("the copy is there", team, "bucket", |_| true).await?;
    let (namespace, name) = place(&copy);
    // The operator holds the copy, so that the order waits, and somebody loses patience while the agent looks.
    let hold = json!({ "metadata": { "finalizers": ["example.com/backup"] } });
    stage.service.merge_patch(&buckets, Some(namespace), name, &hold).await?;
    stage.cancel(team, "bucket").await?;
    stage.copy_is("the copy waits", team, "bucket", |copy| copy["metadata"]["deletionTimestamp"].is_string()).await?;
    let free = json!({ "metadata": { "finalizers": null } });
    team.client.merge_patch(&buckets, Some(NAMESPACE), "bucket", &free).await?;
    stage.gone("the order is gone", (&team.client, &buckets, Some(NAMESPACE), "bucket")).await?;
    stage.order(team, "bucket", json!({ "size": 2 })).await?;
    warned(&stage, team, "bucket", &[namespace, name]).await?;
    stage.cancel(team, "bucket").await?;
    stage.gone("the new order can go", (&team.client, &buckets, Some(NAMESPACE), "bucket")).await?;
    let left = stage.service.get(&buckets, Some(namespace), name).await?.context("the copy is gone")?;
    same(&left, &copy)?;

    // When the old copy has gone in its own time, the next order has a place.
    stage.order(team, "bucket", json!({ "size": 3 })).await?;
    stage.service.merge_patch(&buckets, Some(namespace), name, &free).await?;
    stage.copy_is("the next order is placed", team, "bucket", |copy| copy["spec"]["size"] == 3).await?;
    agent.stop().await
}
