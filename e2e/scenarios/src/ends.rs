//! Ends that something is in the way of: orders come to their end all the same, and what is left behind is told.

use std::sync::Arc;

use anyhow::{Context, ensure};
use carrick_client::DeleteOptions;
use carrick_e2e_stage::agent::{Agent, Setup};
use carrick_e2e_stage::kinds;
use carrick_e2e_stage::stage::{NAMESPACE, Stage, condition, place, shown};
use carrick_e2e_stage::world::World;
use carrick_kcp::kinds::API_BINDING_V2;
use serde_json::{Value, json};

use crate::holders::{is_free, let_go, place_order, set};
use crate::ownership::warned;

pub(super) async fn an_order_whose_kind_is_gone_from_the_service_cluster_can_be_deleted(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    for apply in [false, true] {
        let stage = set(Arc::clone(&world)).await?;
        let team = &stage.team_a;
        let agent = Agent::start(&stage, Setup { apply, ..Setup::default() })?;
        let mut copies = Vec::new();
        for (name, secret) in [("running", "a"), ("late", "b")] {
            copies.push(place_order(&stage, name, secret).await?);
        }
        stage.at_rest().await?;
        let (crds, crd) = (kinds::crds(), format!("buckets.{}", stage.group));
        stage.service.delete(&crds, None, &crd, &DeleteOptions::default()).await?;
        stage.gone("the kind is gone", (&stage.service, &crds, None, crd.as_str())).await?;

        stage.cancel(team, "running").await?;
        stage.gone("the order is gone", (&team.client, &stage.buckets(), Some(NAMESPACE), "running")).await?;
        let_go(&stage, &copies[0], "a").await?;
        // The same for an agent that never saw it alive.
        agent.stop().await?;
        stage.cancel(team, "late").await?;
        let agent = Agent::start(&stage, Setup { apply, ..Setup::default() })?;
        stage.gone("the other order is gone", (&team.client, &stage.buckets(), Some(NAMESPACE), "late")).await?;
        let_go(&stage, &copies[1], "b").await?;
        agent.stop().await?;
    }
    Ok(())
}

/// Lets the consumer show the provider nothing but Secrets with a label.
async fn show_only_marked(stage: &Stage) -> anyhow::Result<()> {
    let (team, bindings) = (&stage.team_a, kinds::kcp(&API_BINDING_V2));
    let at = (&team.client, &bindings, None, stage.export_name());
    let binding = stage.object("the binding is there", at, |_| true).await?;
    let mut claims = binding["spec"]["permissionClaims"].clone();
    for claim in claims.as_array_mut().into_iter().flatten().filter(|claim| claim["resource"] == "secrets") {
        claim["selector"] = json!({ "matchLabels": { "shown": "yes" } });
    }
    let patch = json!({ "spec": { "permissionClaims": claims } });
    team.client.merge_patch(&bindings, None, stage.export_name(), &patch).await?;
    Ok(())
}

pub(super) async fn a_secret_that_a_claim_hides_is_told_when_its_order_ends(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    for apply in [false, true] {
        let stage = set(Arc::clone(&world)).await?;
        let (team, secrets) = (&stage.team_a, kinds::secrets());
        let label = |shown: Value| json!({ "metadata": { "labels": { "shown": shown } } });
        let agent = Agent::start(&stage, Setup { apply, ..Setup::default() })?;
        place_order(&stage, "first", "other").await?;
        show_only_marked(&stage).await?;
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "own", "labels": { "shown": "yes" } },
        });
        team.client.create(&secrets, Some(NAMESPACE), &secret).await?;
        let copy = place_order(&stage, "bucket", "own").await?;
        let at = (&team.client, &secrets, Some(NAMESPACE), "own");
        stage.object("the Secret is held", at, |secret| !is_free(secret)).await?;
        stage.at_rest().await?;
        team.client.merge_patch(&secrets, Some(NAMESPACE), "own", &label(Value::Null)).await?;
        stage.cancel(team, "bucket").await?;
        stage.all_gone(team, "bucket").await?;
        stage.gone("the copy goes", (&stage.service, &stage.buckets(), Some(place(&copy).0), "bucket")).await?;
        warned(&stage, team, "bucket", &["Secret default/own", "finalizer"]).await?;
        agent.stop().await?;
    }
    Ok(())
}

pub(super) async fn an_object_with_the_link_of_a_copy_holds_up_nobody(world: Arc<dyn World>) -> anyhow::Result<()> {
    for apply in [false, true] {
        let stage = set(Arc::clone(&world)).await?;
        let (team, buckets) = (&stage.team_a, stage.buckets());
        let agent = Agent::start(&stage, Setup { apply, ..Setup::default() })?;
        let copy = place_order(&stage, "bucket", "own").await?;
        stage.at_rest().await?;
        // As somebody would make it who copies a manifest, or restores a backup into another namespace.
        let metadata = json!({
            "name": "clone", "labels": copy["metadata"]["labels"], "annotations": copy["metadata"]["annotations"],
        });
        let clone = json!({
            "apiVersion": copy["apiVersion"], "kind": copy["kind"], "metadata": metadata, "spec": copy["spec"],
        });
        let namespace = place(&copy).0;
        let clone = stage.service.create(&buckets, Some(namespace), &clone).await?;
        let published = stage.published_name("Bucket");
        let at = (&stage.service, &kinds::published_resources(), None, published.as_str());
        let told =
            |pr: &Value| condition(pr, "ObjectsSynced")["message"].as_str().is_some_and(|it| it.contains("/clone"));
        stage.reorder(team, "bucket", json!({ "size": 2 })).await?;
        let at_copy = (&stage.service, &buckets, Some(namespace), place(&copy).1);
        stage.object("changes arrive", at_copy, |copy| copy["spec"]["size"] == 2).await?;
        stage.object("it is told", at, told).await?;
        stage.cancel(team, "bucket").await?;
        stage.gone("the order is gone", (&team.client, &buckets, Some(NAMESPACE), "bucket")).await?;
        stage.gone("its copy is gone", at_copy).await?;
        stage.at_rest().await?;
        let left = stage.service.get(&buckets, Some(namespace), "clone").await?.context("the clone was deleted")?;
        ensure!(left["metadata"]["resourceVersion"] == clone["metadata"]["resourceVersion"], "{}", shown(&left));
        agent.stop().await?;
    }
    Ok(())
}
