//! Kinds of other shapes: cluster-scoped, without a status subresource, in several versions.

use std::sync::Arc;

use anyhow::{Context, ensure};
use carrick_client::{DeleteOptions, Resource};
use carrick_e2e_stage::fixtures;
use carrick_e2e_stage::stage::{NAMESPACE, Stage, Workspace, shown};
use carrick_e2e_stage::world::World;
use carrick_syncagent::api;
use serde_json::{Value, json};

pub(super) async fn cluster_scoped_orders_are_served(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = Stage::bare(world).await?;
    let mut crd = fixtures::crd(&stage.group, "Realm");
    crd["spec"]["scope"] = json!("Cluster");
    stage.install_crd(&crd).await?;
    stage.install_crd(&fixtures::crd(&stage.group, "Bucket")).await?;
    stage.create_export().await?;
    stage.publish("Realm", json!({})).await?;
    // Cluster-scoped in kcp, namespaced on the service cluster; a filter by namespace has nothing to say here.
    let filter = json!({ "namespace": { "matchLabels": { "tier": "gold" } } });
    stage.publish("Bucket", json!({ "projection": { "scope": "Cluster" }, "filter": filter })).await?;
    futures::try_join!(stage.bind(&stage.team_a), stage.bind(&stage.team_b))?;
    let agent = stage.start_agent()?;

    let cluster_wide = |kind: &str, plural: &str| Resource::cluster_wide(&stage.group, "v1", kind, plural);
    for (kind, copies) in [
        (cluster_wide("Realm", "realms"), cluster_wide("Realm", "realms")),
        (cluster_wide("Bucket", "buckets"), stage.buckets()),
    ] {
        let mut places = Vec::new();
        for team in [&stage.team_a, &stage.team_b] {
            order(&stage, team, &kind, "same").await?;
            let what = format!("the {} of {} has its copy", kind.kind, team.path);
            let copy = stage.copy_of_kind_is(&what, (&copies, team, "same"), |c| c["spec"]["size"] == 1).await?;
            let metadata = &copy["metadata"];
            ensure!(metadata["labels"].get(api::REMOTE_NAMESPACE_HASH).is_none(), "{}", shown(&copy));
            places.push((metadata["namespace"].clone(), metadata["name"].clone()));
            let (namespace, name) = (metadata["namespace"].as_str(), metadata["name"].as_str().unwrap_or_default());
            let status = json!({ "status": { "url": team.path } });
            stage.service.merge_patch_status(&copies, namespace, name, &status).await?;
            let at = (&team.client, &kind, None, "same");
            stage.object("its status returns", at, |source| source["status"]["url"] == team.path).await?;
        }
        ensure!(places[0] != places[1], "both copies are {:?}", places[0]);
        let at = (&stage.team_a.client, &kind, None, "same");
        stage.team_a.client.delete(&kind, None, "same", &DeleteOptions::default()).await?;
        stage.gone("the cancelled order is gone", at).await?;
        ensure!(stage.copy_of_kind(&copies, &stage.team_a, "same").await?.is_none(), "its copy was left");
        ensure!(stage.copy_of_kind(&copies, &stage.team_b, "same").await?.is_some(), "the other copy is gone");
    }
    agent.stop().await
}

async fn order(stage: &Stage, team: &Workspace, kind: &Resource, name: &str) -> anyhow::Result<()> {
    let object = json!({
        "apiVersion": kind.api_version(), "kind": &*kind.kind, "metadata": { "name": name }, "spec": { "size": 1 },
    });
    stage
        .eventually(&format!("{} can be created in {}", kind.plural, team.path), async || {
            match team.client.create(kind, None, &object).await {
                Err(error) if !error.is_already_exists() => Err(error.into()),
                _ => Ok(()),
            }
        })
        .await
}

pub(super) async fn a_status_returns_also_where_it_is_no_subresource(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = Stage::bare(world).await?;
    let mut crd = fixtures::crd(&stage.group, "Bucket");
    crd["spec"]["versions"][0]["subresources"] = json!({});
    stage.install_crd(&crd).await?;
    publish(&stage, json!({})).await?;
    let agent = stage.start_agent()?;
    let team = &stage.team_a;
    stage.order(team, "bucket", json!({ "size": 1 })).await?;
    let copy = stage.copy_is("the copy is there", team, "bucket", |_| true).await?;
    for status in [json!({ "url": "one", "ready": true }), json!({ "url": "two" })] {
        let mut report = status.clone();
        if status.get("ready").is_none() {
            report["ready"] = Value::Null;
        }
        let (namespace, name) = carrick_e2e_stage::stage::place(&copy);
        let patch = json!({ "status": report });
        stage.service.merge_patch(&stage.buckets(), Some(namespace), name, &patch).await?;
        stage.source_is("the status returns", team, "bucket", |source| source["status"] == status).await?;
        stage.at_rest().await?;
        let copy = stage.copy(team, "bucket").await?.context("the copy is gone")?;
        ensure!(copy["status"] == status, "{}", shown(&copy));
    }
    stage.reorder(team, "bucket", json!({ "size": 2 })).await?;
    let copy = stage.copy_is("a change arrives", team, "bucket", |copy| copy["spec"]["size"] == 2).await?;
    ensure!(copy["status"]["url"] == "two", "the change took the status along: {}", shown(&copy));
    agent.stop().await
}

pub(super) async fn an_older_version_travels_as_itself(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = Stage::bare(world).await?;
    let mut crd = fixtures::crd(&stage.group, "Bucket");
    // The newer version, which is the stored one, asks for a field that the older one does not know.
    let mut newer = crd["spec"]["versions"][0].clone();
    newer["name"] = json!("v2");
    let spec = &mut newer["schema"]["openAPIV3Schema"]["properties"]["spec"];
    spec["properties"]["zone"] = json!({ "type": "string" });
    spec["required"] = json!(["zone"]);
    crd["spec"]["versions"][0]["storage"] = json!(false);
    if let Some(versions) = crd["spec"]["versions"].as_array_mut() {
        versions.push(newer);
    }
    stage.install_crd(&crd).await?;
    publish(&stage, json!({})).await?;
    let agent = stage.start_agent()?;
    let team = &stage.team_a;
    let spec = json!({ "region": "eu", "size": 1 });
    stage.order(team, "bucket", spec.clone()).await?;
    let copy = stage.copy_is("the copy is accepted", team, "bucket", |copy| copy["spec"] == spec).await?;
    stage.operator_reports(&copy, json!({ "url": "here" })).await?;
    stage.source_is("the status returns", team, "bucket", |source| source["status"]["url"] == "here").await?;
    stage.reorder(team, "bucket", json!({ "region": "us" })).await?;
    stage.copy_is("a change arrives", team, "bucket", |copy| copy["spec"]["region"] == "us").await?;
    stage.cancel(team, "bucket").await?;
    stage.all_gone(team, "bucket").await?;
    agent.stop().await
}

pub(super) async fn labels_of_namespaces_decide_where_orders_are_served(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = Stage::bare(world).await?;
    stage.install_crd(&fixtures::crd(&stage.group, "Bucket")).await?;
    publish(&stage, json!({ "filter": { "namespace": { "matchLabels": { "tier": "gold" } } } })).await?;
    let agent = stage.start_agent()?;
    let team = &stage.team_a;
    let label = async |tier: Value| {
        let patch = json!({ "metadata": { "labels": { "tier": tier } } });
        team.client.merge_patch(&carrick_e2e_stage::kinds::namespaces(), None, NAMESPACE, &patch).await
    };
    let held = |source: &Value| source["metadata"]["finalizers"] == json!([api::FINALIZER]);
    stage.order(team, "bucket", json!({ "size": 1 })).await?;
    stage.at_rest().await?;
    ensure!(stage.copy(team, "bucket").await?.is_none(), "an order in another namespace is served");
    label(json!("gold")).await?;
    stage.copy_is("the namespace matches now", team, "bucket", |_| true).await?;
    stage.source_is("the order is held", team, "bucket", held).await?;
    label(json!("silver")).await?;
    stage.source_is("the order is let go", team, "bucket", |source| !held(source)).await?;
    label(json!("gold")).await?;
    stage.source_is("the order is held again", team, "bucket", held).await?;
    stage.cancel(team, "bucket").await?;
    stage.all_gone(team, "bucket").await?;
    agent.stop().await
}

async fn publish(stage: &Stage, spec: Value) -> anyhow::Result<()> {
    stage.create_export().await?;
    stage.publish("Bucket", spec).await?;
    futures::try_join!(stage.bind(&stage.team_a), stage.bind(&stage.team_b))?;
    Ok(())
}
