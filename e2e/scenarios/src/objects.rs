//! One order: placed, changed, reported on, deleted.

use std::sync::Arc;

use anyhow::{Context, ensure};
use carrick_client::ListOptions;
use carrick_e2e_stage::kinds;
use carrick_e2e_stage::stage::{NAMESPACE, Stage, place, shown};
use carrick_e2e_stage::world::World;
use carrick_syncagent::api;
use serde_json::{Value, json};

pub(super) async fn an_order_is_placed_on_the_service_cluster(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = Stage::set(world).await?;
    let agent = stage.start_agent()?;
    let team = &stage.team_a;
    let spec = json!({ "region": "eu", "size": 3 });
    stage.order(team, "my-test-thing", spec.clone()).await?;

    let copy = stage.copy_is("the copy is there", team, "my-test-thing", |_| true).await?;
    ensure!(copy["spec"] == spec, "{}", shown(&copy));
    let expected = json!({
        api::AGENT_NAME: stage.agent_name(),
        api::REMOTE_CLUSTER: team.cluster,
        // SHA-1 of `my-test-thing` and of `default`.
        api::REMOTE_NAME_HASH: "c346c8ceb5d104cc783d09b95e8ea7032c190948",
        api::REMOTE_NAMESPACE_HASH: "7505d64a54e061b7acd54ccd58b49dc43500b635",
    });
    ensure!(copy["metadata"]["labels"] == expected, "{}", shown(&copy));
    let source = stage.source(team, "my-test-thing").await?.context("there is no order")?;
    let mut expected = json!({ api::REMOTE_NAME: "my-test-thing", api::REMOTE_NAMESPACE: NAMESPACE });
    expected[api::REMOTE_RESOURCE] = format!("buckets.{}", stage.group).into();
    expected[api::REMOTE_UID] = source["metadata"]["uid"].clone();
    expected[api::REMOTE_GENERATION] = "1".into();
    expected[api::APPLIED_STATE] = copy["metadata"]["annotations"][api::APPLIED_STATE].clone();
    ensure!(copy["metadata"]["annotations"] == expected, "{}", shown(&copy));
    // By default the namespace is the consumer's cluster; the name is made of SHA-3 hashes of `default` and `my-test-thing`.
    let (namespace, name) = place(&copy);
    ensure!(namespace == team.cluster, "{}", shown(&copy));
    ensure!(name.len() == 41 && name.as_bytes()[20] == b'-', "{}", shown(&copy));

    stage
        .source_is("the order is held", team, "my-test-thing", |source| {
            source["metadata"]["finalizers"] == json!([api::FINALIZER])
        })
        .await?;
    stage
        .eventually("the placement is remembered", async || {
            stage.remembered_of(team, "my-test-thing").await?.context("it is not")
        })
        .await?;
    stage
        .eventually("the consumer is told", async || {
            let events = team.client.list(&kinds::events(), Some(NAMESPACE), &ListOptions::default()).await?;
            let reasons: Vec<&Value> = events
                .iter()
                .filter(|event| event["involvedObject"]["name"] == "my-test-thing")
                .map(|event| &event["reason"])
                .collect();
            ensure!(reasons.contains(&&json!("ObjectPlaced")), "events: {reasons:?}");
            Ok(())
        })
        .await?;
    agent.stop().await
}

pub(super) async fn orders_of_the_same_name_in_two_workspaces_stay_apart(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = Stage::set(world).await?;
    let agent = stage.start_agent()?;
    let (a, b) = (&stage.team_a, &stage.team_b);
    stage.order(a, "same", json!({ "owner": "a", "size": 1 })).await?;
    stage.order(b, "same", json!({ "owner": "b", "size": 1 })).await?;
    let copy_a = stage.copy_is("team-a has its copy", a, "same", |copy| copy["spec"]["owner"] == "a").await?;
    let copy_b = stage.copy_is("team-b has its copy", b, "same", |copy| copy["spec"]["owner"] == "b").await?;
    ensure!(place(&copy_a) != place(&copy_b), "both copies are {:?}", place(&copy_a));

    // A change, a status and a deletion reach the one they are meant for only.
    stage.reorder(a, "same", json!({ "size": 2 })).await?;
    stage.copy_is("team-a's change arrives", a, "same", |copy| copy["spec"]["size"] == 2).await?;
    stage.operator_reports(&copy_b, json!({ "url": "b" })).await?;
    let source_b = stage.source_is("team-b's status returns", b, "same", |s| s["status"]["url"] == "b").await?;
    ensure!(source_b["spec"] == json!({ "owner": "b", "size": 1 }), "{}", shown(&source_b));
    stage.cancel(a, "same").await?;
    stage.all_gone(a, "same").await?;
    let left = stage.copy(b, "same").await?.context("team-b's copy is gone")?;
    ensure!(left["spec"]["size"] == 1 && left["metadata"]["uid"] == copy_b["metadata"]["uid"], "{}", shown(&left));
    agent.stop().await
}

pub(super) async fn a_changed_spec_arrives(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = Stage::set(world).await?;
    let agent = stage.start_agent()?;
    let team = &stage.team_a;
    stage.order(team, "bucket", json!({ "region": "eu", "size": 1 })).await?;
    let first = stage.copy_is("the copy is there", team, "bucket", |_| true).await?;
    // A changed, an added and a removed field.
    stage.reorder(team, "bucket", json!({ "size": 2, "owner": "me", "region": null })).await?;
    let expected = json!({ "size": 2, "owner": "me" });
    let second = stage.copy_is("the change arrives", team, "bucket", |copy| copy["spec"] == expected).await?;
    ensure!(first["metadata"]["uid"] == second["metadata"]["uid"], "the copy was replaced: {}", shown(&second));
    agent.stop().await
}

pub(super) async fn the_status_returns(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = Stage::set(world).await?;
    let agent = stage.start_agent()?;
    let team = &stage.team_a;
    stage.order(team, "bucket", json!({ "size": 1 })).await?;
    let copy = stage.copy_is("the copy is there", team, "bucket", |_| true).await?;
    for status in [json!({ "url": "https://one", "ready": true }), json!({ "url": "https://two", "ready": false })] {
        stage.operator_reports(&copy, status.clone()).await?;
        stage.source_is("the status returns", team, "bucket", |source| source["status"] == status).await?;
    }
    // What a consumer writes there does not reach the service cluster, and is put right.
    let patch = json!({ "status": { "url": "https://forged" } });
    team.client.merge_patch_status(&stage.buckets(), Some(NAMESPACE), "bucket", &patch).await?;
    stage.source_is("the status is put right", team, "bucket", |s| s["status"]["url"] == "https://two").await?;
    let copy = stage.copy(team, "bucket").await?.context("the copy is gone")?;
    ensure!(copy["status"]["url"] == "https://two", "{}", shown(&copy));
    agent.stop().await
}

pub(super) async fn a_change_made_only_on_the_service_cluster_survives(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = Stage::set(world).await?;
    let agent = stage.start_agent()?;
    let team = &stage.team_a;
    stage.order(team, "bucket", json!({ "region": "eu", "size": 1 })).await?;
    let copy = stage.copy_is("the copy is there", team, "bucket", |_| true).await?;
    stage
        .eventually("the placement is remembered", async || {
            stage.remembered_of(team, "bucket").await?.context("it is not")
        })
        .await?;
    stage.operator_edits(&copy, json!({ "region": "moon", "owner": "operator" })).await?;

    stage.reorder(team, "bucket", json!({ "size": 2 })).await?;
    let copy = stage.copy_is("the consumer's change arrives", team, "bucket", |c| c["spec"]["size"] == 2).await?;
    ensure!(copy["spec"] == json!({ "region": "moon", "size": 2, "owner": "operator" }), "{}", shown(&copy));
    let source = stage.source(team, "bucket").await?.context("the source is gone")?;
    ensure!(source["spec"] == json!({ "region": "eu", "size": 2 }), "{}", shown(&source));

    // The consumer has the last word on what the consumer sets.
    stage.reorder(team, "bucket", json!({ "region": "us" })).await?;
    let copy = stage.copy_is("the consumer's region wins", team, "bucket", |c| c["spec"]["region"] == "us").await?;
    ensure!(copy["spec"]["owner"] == "operator", "{}", shown(&copy));
    agent.stop().await
}

pub(super) async fn deleting_an_order_leaves_nothing_behind(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = Stage::set(world).await?;
    let agent = stage.start_agent()?;
    for name in ["one", "two"] {
        stage.order(&stage.team_a, name, json!({ "size": 1 })).await?;
        stage.copy_is("the copy is there", &stage.team_a, name, |_| true).await?;
    }
    let kept = stage.copy(&stage.team_a, "two").await?.context("the second copy is gone")?;
    stage.cancel(&stage.team_a, "one").await?;
    stage.all_gone(&stage.team_a, "one").await?;
    let still = stage.copy(&stage.team_a, "two").await?.context("the second copy is gone")?;
    ensure!(still["metadata"]["uid"] == kept["metadata"]["uid"], "{}", shown(&still));
    agent.stop().await
}

pub(super) async fn a_copy_that_its_operator_holds_holds_the_order(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = Stage::set(world).await?;
    let agent = stage.start_agent()?;
    let team = &stage.team_a;
    stage.order(team, "bucket", json!({ "size": 1 })).await?;
    let copy = stage.copy_is("the copy is there", team, "bucket", |_| true).await?;
    let (namespace, name) = place(&copy);
    let hold = |finalizers: Value| json!({ "metadata": { "finalizers": finalizers } });
    stage.service.merge_patch(&stage.buckets(), Some(namespace), name, &hold(json!(["example.com/operator"]))).await?;

    stage.cancel(team, "bucket").await?;
    stage
        .copy_is("the copy is being deleted", team, "bucket", |c| !c["metadata"]["deletionTimestamp"].is_null())
        .await?;
    let source = stage.source(team, "bucket").await?.context("the order was let go too early")?;
    ensure!(source["metadata"]["finalizers"] == json!([api::FINALIZER]), "{}", shown(&source));
    stage.service.merge_patch(&stage.buckets(), Some(namespace), name, &hold(json!([]))).await?;
    stage.all_gone(team, "bucket").await?;
    agent.stop().await
}

pub(super) async fn a_copy_is_deleted_as_its_owner_wishes(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = Stage::set(world).await?;
    let agent = stage.start_agent()?;
    let (team, config_maps) = (&stage.team_a, kinds::config_maps());
    stage.order(team, "bucket", json!({ "size": 1 })).await?;
    let copy = stage.copy_is("the copy is there", team, "bucket", |_| true).await?;
    let (namespace, name) = place(&copy);

    // The operator has made something for the copy, which does not go at once.
    let owner = json!({
        "apiVersion": copy["apiVersion"], "kind": copy["kind"], "name": name, "uid": copy["metadata"]["uid"],
        "blockOwnerDeletion": true,
    });
    let dependent = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": "dependent", "ownerReferences": [owner], "finalizers": ["example.com/hold"] },
    });
    stage.service.create(&config_maps, Some(namespace), &dependent).await?;

    let wish = json!({ "metadata": { "annotations": { api::DELETION_PROPAGATION: "foreground" } } });
    team.client.merge_patch(&stage.buckets(), Some(NAMESPACE), "bucket", &wish).await?;
    stage.cancel(team, "bucket").await?;
    let copy = stage
        .copy_is("the copy waits for what depends on it", team, "bucket", |copy| {
            copy["metadata"]["finalizers"] == json!(["foregroundDeletion"])
        })
        .await?;
    ensure!(copy["metadata"]["annotations"][api::DELETION_PROPAGATION].is_null(), "{}", shown(&copy));
    ensure!(stage.source(team, "bucket").await?.is_some(), "the order did not wait");

    let free = json!({ "metadata": { "finalizers": null } });
    stage.service.merge_patch(&config_maps, Some(namespace), "dependent", &free).await?;
    // Real service clusters of these tests have nobody who collects garbage.
    match stage.service.merge_patch(&stage.buckets(), Some(namespace), name, &free).await {
        Err(error) if !error.is_not_found() => return Err(error.into()),
        _ => {}
    }
    stage.all_gone(team, "bucket").await?;
    agent.stop().await
}
