//! PublishedResources that are switched off, deleted or handed over while consumers have orders.

use std::sync::Arc;

use anyhow::{Context, ensure};
use carrick_client::{DeleteOptions, Resource};
use carrick_e2e_stage::stage::{NAMESPACE, Stage, Workspace, condition, shown};
use carrick_e2e_stage::world::World;
use carrick_e2e_stage::{fixtures, kinds};
use carrick_syncagent::api;
use serde_json::{Value, json};

pub(super) async fn switched_off_it_lets_orders_go_and_switched_on_it_takes_them_up_again(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let stage = Stage::set(world).await?;
    let team = &stage.team_a;
    let agent = stage.start_agent()?;
    for name in ["kept", "dropped"] {
        stage.order(team, name, json!({ "size": 1 })).await?;
        stage.copy_is("the copy is there", team, name, |_| true).await?;
    }
    let kept = stage.copy(team, "kept").await?.context("the copy is gone")?;
    switch(&stage, false).await?;
    for name in ["kept", "dropped"] {
        stage.source_is(&format!("{name} is let go"), team, name, is_free).await?;
    }
    stage.reorder(team, "kept", json!({ "size": 2 })).await?;
    stage.cancel(team, "dropped").await?;
    ensure!(stage.source(team, "dropped").await?.is_none(), "the order cannot be cancelled");
    stage.at_rest().await?;
    let copy = stage.copy(team, "kept").await?.context("the copy is gone")?;
    ensure!(copy["metadata"]["resourceVersion"] == kept["metadata"]["resourceVersion"], "{}", shown(&copy));
    ensure!(stage.copy(team, "dropped").await?.is_some(), "what is not synchronized any more was deleted");

    switch(&stage, true).await?;
    let copy = stage.copy_is("the change arrives", team, "kept", |copy| copy["spec"]["size"] == 2).await?;
    ensure!(copy["metadata"]["uid"] == kept["metadata"]["uid"], "the copy was replaced: {}", shown(&copy));
    stage.source_is("the order is held again", team, "kept", |source| !is_free(source)).await?;
    let said = |line: &String| line.contains("has no source") && line.contains("dropped");
    stage
        .eventually("the agent tells of the copy without an order", async || {
            ensure!(agent.log().iter().any(said), "it did not say so");
            Ok(())
        })
        .await?;
    ensure!(stage.copy(team, "dropped").await?.is_some(), "a copy was deleted because its order is out of sight");
    stage.cancel(team, "kept").await?;
    stage.all_gone(team, "kept").await?;
    agent.stop().await
}

pub(super) async fn deleted_it_lets_orders_go_together_with_what_they_hold(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let stage = Stage::bare(world).await?;
    let related = json!([{
        "identifier": "settings", "origin": "kcp", "kind": "ConfigMap",
        "object": { "template": { "template": "{{ .Object.metadata.name }}-settings" } },
    }]);
    publish(&stage, json!({ "related": related })).await?;
    let team = &stage.team_a;
    let agent = stage.start_agent()?;
    stage.order(team, "bucket", json!({ "size": 1 })).await?;
    stage.copy_is("the copy is there", team, "bucket", |_| true).await?;
    let settings = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "bucket-settings" }, "data": { "a": "1" },
    });
    let config_maps = kinds::config_maps();
    team.client.create(&config_maps, Some(NAMESPACE), &settings).await?;
    let at = (&team.client, &config_maps, Some(NAMESPACE), "bucket-settings");
    stage.object("the settings are held", at, |settings| !is_free(settings)).await?;
    remembers(&stage, team, "bucket", 2).await?;

    delete_published(&stage).await?;
    stage.source_is("the order is let go", team, "bucket", is_free).await?;
    stage.object("the settings are let go", at, is_free).await?;
    stage.cancel(team, "bucket").await?;
    ensure!(stage.source(team, "bucket").await?.is_none(), "the order cannot be cancelled");
    stage.at_rest().await?;
    ensure!(stage.copy(team, "bucket").await?.is_some(), "what is not synchronized any more was deleted");
    agent.stop().await
}

pub(super) async fn deleted_while_no_agent_ran_it_lets_orders_go_all_the_same(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let stage = Stage::bare(world).await?;
    let group = format!("shop.{}", stage.group);
    publish(&stage, json!({ "projection": { "group": group, "kind": "Volume" } })).await?;
    let volumes = Resource::namespaced(&group, "v1", "Volume", "volumes");
    let (team, buckets) = (&stage.team_a, stage.buckets());
    let agent = stage.start_agent()?;
    for name in ["kept", "dropped"] {
        stage.order_kind(&volumes, team, name, json!({ "size": 1 })).await?;
        stage.copy_of_kind_is("the copy is there", (&buckets, team, name), |_| true).await?;
        remembers(&stage, team, name, 1).await?;
    }
    agent.stop().await?;
    delete_published(&stage).await?;
    team.client.delete(&volumes, Some(NAMESPACE), "dropped", &DeleteOptions::default()).await?;

    let agent = stage.start_agent()?;
    let at = |name| (&team.client, &volumes, Some(NAMESPACE), name);
    stage.object("the order is let go", at("kept"), is_free).await?;
    stage.gone("the cancelled order is gone", at("dropped")).await?;
    ensure!(stage.copy(team, "dropped").await?.is_none(), "its copy was left");
    ensure!(stage.remembered_of(team, "dropped").await?.is_none(), "it is still remembered");
    ensure!(stage.copy(team, "kept").await?.is_some(), "what is not synchronized any more was deleted");

    // Published again, everything is as before.
    stage.publish("Bucket", json!({ "projection": { "group": group, "kind": "Volume" } })).await?;
    stage.object("the order is held again", at("kept"), |source| !is_free(source)).await?;
    let patch = json!({ "spec": { "size": 2 } });
    team.client.merge_patch(&volumes, Some(NAMESPACE), "kept", &patch).await?;
    stage.copy_is("the change arrives", team, "kept", |copy| copy["spec"]["size"] == 2).await?;
    agent.stop().await
}

pub(super) async fn not_valid_when_the_agent_starts_it_holds_nobody_who_wants_to_go(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let stage = Stage::bare(world).await?;
    let related = json!([{
        "identifier": "settings", "origin": "kcp", "kind": "ConfigMap",
        "object": { "template": { "template": "{{ .Object.metadata.name }}-settings" } },
    }]);
    publish(&stage, json!({ "related": related })).await?;
    let (team, config_maps) = (&stage.team_a, kinds::config_maps());
    let name = stage.published_name("Bucket");
    let published = (&stage.service, &kinds::published_resources(), None, name.as_str());
    let mut agent = stage.start_agent()?;
    for (mistake, repair) in [
        (json!({ "mutation": { "spec": [{}] } }), json!({ "mutation": null })),
        (json!({ "resource": { "versions": ["v9"] } }), json!({ "resource": { "versions": ["v1"] } })),
    ] {
        for order in ["going", "staying"] {
            let name = format!("{order}-settings");
            let settings =
                json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name }, "data": { "a": "1" } });
            team.client.create(&config_maps, Some(NAMESPACE), &settings).await?;
            stage.order(team, order, json!({ "size": 1 })).await?;
            stage.copy_is("the copy is there", team, order, |_| true).await?;
            remembers(&stage, team, order, 2).await?;
        }
        agent.stop().await?;
        patch_published(&stage, json!({ "spec": mistake })).await?;
        agent = stage.start_agent()?;
        stage.object("the mistake is told", published, |pr| condition(pr, "RulesValid")["status"] == "False").await?;
        stage.cancel(team, "going").await?;
        stage.all_gone(team, "going").await?;
        let at = |name| (&team.client, &config_maps, Some(NAMESPACE), name);
        stage.object("the settings are let go", at("going-settings"), is_free).await?;
        stage.reorder(team, "staying", json!({ "size": 2 })).await?;
        stage.at_rest().await?;
        let copy = stage.copy(team, "staying").await?.context("the copy is gone")?;
        ensure!(copy["spec"]["size"] == 1, "nobody knows the rules: {}", shown(&copy));
        let source = stage.source(team, "staying").await?.context("the order is gone")?;
        ensure!(!is_free(&source), "a mistake let an order go: {}", shown(&source));

        patch_published(&stage, json!({ "spec": repair })).await?;
        stage.copy_is("the change arrives", team, "staying", |copy| copy["spec"]["size"] == 2).await?;
        stage.cancel(team, "staying").await?;
        stage.all_gone(team, "staying").await?;
        for name in ["going-settings", "staying-settings"] {
            team.client.delete(&config_maps, Some(NAMESPACE), name, &DeleteOptions::default()).await?;
        }
    }
    agent.stop().await
}

pub(super) async fn handed_to_another_agent_it_leaves_orders_to_that_one(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = Stage::set(world).await?;
    let team = &stage.team_a;
    let agent = stage.start_agent()?;
    stage.order(team, "bucket", json!({ "size": 1 })).await?;
    stage.copy_is("the copy is there", team, "bucket", |_| true).await?;
    remembers(&stage, team, "bucket", 1).await?;
    stage.at_rest().await?;
    let before = stage.copy(team, "bucket").await?.context("the copy is gone")?;

    // The selector of this agent does not match any more.
    let relabel = json!({ "metadata": { "labels": { "stage": "elsewhere" } } });
    patch_published(&stage, relabel).await?;
    stage
        .eventually("the agent stops", async || {
            ensure!(agent.log().iter().any(|line| line.contains("Stopped synchronizing")), "it goes on");
            Ok(())
        })
        .await?;
    stage.reorder(team, "bucket", json!({ "size": 2 })).await?;
    stage.at_rest().await?;
    let copy = stage.copy(team, "bucket").await?.context("the copy is gone")?;
    ensure!(copy["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"], "{}", shown(&copy));
    let source = stage.source(team, "bucket").await?.context("the order is gone")?;
    ensure!(!is_free(&source), "an order of another agent was let go: {}", shown(&source));
    agent.stop().await
}

pub(super) async fn published_under_another_name_it_lets_go_of_the_old_one(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let stage = Stage::set(world).await?;
    let team = &stage.team_a;
    let agent = stage.start_agent()?;
    stage.order(team, "bucket", json!({ "size": 1 })).await?;
    let copy = stage.copy_is("the copy is there", team, "bucket", |_| true).await?;
    remembers(&stage, team, "bucket", 1).await?;

    let group = format!("shop.{}", stage.group);
    patch_published(&stage, json!({ "spec": { "projection": { "group": group } } })).await?;
    stage.source_is("the old order is let go", team, "bucket", is_free).await?;
    let buckets = Resource::namespaced(&group, "v1", "Bucket", "buckets");
    stage.order_kind(&buckets, team, "bucket", json!({ "size": 2 })).await?;
    // The copy is that of the old order, until its owner gives it away.
    let (namespace, name) = (copy["metadata"]["namespace"].as_str(), copy["metadata"]["name"].as_str());
    let published = stage.published_name("Bucket");
    let at = (&stage.service, &kinds::published_resources(), None, published.as_str());
    stage
        .object("the provider is told whose copy is in the way", at, |published| {
            let conditions = published["status"]["conditions"].as_array().cloned().unwrap_or_default();
            let told =
                |condition: &Value| condition["message"].as_str().is_some_and(|text| text.contains("whose copy it is"));
            conditions.iter().any(told)
        })
        .await?;
    let gift = json!({ "metadata": { "annotations": { "syncagent.kcp.io/adoption": "TakeOver" } } });
    stage.service.merge_patch(&stage.buckets(), namespace, name.unwrap_or_default(), &gift).await?;
    let taken = stage.copy_is("the new order takes the copy up", team, "bucket", |c| c["spec"]["size"] == 2).await?;
    ensure!(taken["metadata"]["uid"] == copy["metadata"]["uid"], "the copy was replaced: {}", shown(&taken));
    agent.stop().await
}

async fn publish(stage: &Stage, spec: Value) -> anyhow::Result<()> {
    stage.install_crd(&fixtures::crd(&stage.group, "Bucket")).await?;
    stage.create_export().await?;
    stage.publish("Bucket", spec).await?;
    futures::try_join!(stage.bind(&stage.team_a), stage.bind(&stage.team_b))?;
    Ok(())
}

async fn patch_published(stage: &Stage, patch: Value) -> anyhow::Result<Value> {
    let name = stage.published_name("Bucket");
    Ok(stage.service.merge_patch(&kinds::published_resources(), None, &name, &patch).await?)
}

/// Switches synchronisation off or on, and waits until the agent says so.
async fn switch(stage: &Stage, on: bool) -> anyhow::Result<()> {
    patch_published(stage, json!({ "spec": { "synchronization": { "enabled": on } } })).await?;
    let name = stage.published_name("Bucket");
    let at = (&stage.service, &kinds::published_resources(), None, name.as_str());
    let status = if on { "True" } else { "False" };
    stage
        .object(&format!("{name} says that Syncing is {status}"), at, |published| {
            condition(published, "Syncing")["status"] == status
        })
        .await?;
    Ok(())
}

async fn delete_published(stage: &Stage) -> anyhow::Result<()> {
    let name = stage.published_name("Bucket");
    Ok(stage.service.delete(&kinds::published_resources(), None, &name, &DeleteOptions::default()).await?)
}

/// Whether an object does not carry the agent's finalizer.
fn is_free(object: &Value) -> bool {
    let finalizers = object["metadata"]["finalizers"].as_array();
    !finalizers.is_some_and(|all| all.iter().any(|finalizer| finalizer == api::FINALIZER))
}

/// Waits until the agent remembers a number of objects for an order.
async fn remembers(stage: &Stage, team: &Workspace, name: &str, count: usize) -> anyhow::Result<()> {
    stage
        .eventually(&format!("{count} objects are remembered for {name}"), async || {
            let secret = stage.remembered_of(team, name).await?.context("there is no Secret")?;
            // Keys with a dot are notes beside an object's own entry.
            let entries =
                secret["data"].as_object().into_iter().flatten().filter(|(key, _)| !key.contains('.')).count();
            ensure!(entries == count, "{entries} are");
            Ok(())
        })
        .await
}
