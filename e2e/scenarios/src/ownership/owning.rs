//! Owning is recorded, never inferred: what equals a copy is not one, what was there before stays when its order goes, and what was made goes.

use std::sync::Arc;

use anyhow::{Context, ensure};
use carrick_client::DeleteOptions;
use carrick_e2e_stage::agent::{Agent, Setup};
use carrick_e2e_stage::fixtures::{self, beside_names};
use carrick_e2e_stage::kinds;
use carrick_e2e_stage::stage::{NAMESPACE, Stage, place, shown};
use carrick_e2e_stage::world::World;
use carrick_syncagent::api;
use serde_json::{Value, json};

use super::adoption::{self, color, credentials, give_away, password, settings, taken};
use super::{create_namespace, memories, publish, put, quick_agent, republish, same, silent, untouched, warned};

/// An agent with one of the two memories.
fn agent(stage: &Stage, apply: bool) -> anyhow::Result<Agent> {
    Agent::start(stage, Setup { apply, ..Setup::default() })
}

pub(crate) async fn what_equals_a_related_copy_stays_whose_it_is(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = adoption::set(world).await?;
    let (team, secrets, maps) = (&stage.team_a, kinds::secrets(), kinds::config_maps());
    for (apply, order) in [(false, "first"), (true, "second")] {
        let (secret, map) = (format!("{order}-credentials"), format!("{order}-settings"));
        let consumers = (&team.client, &secrets, Some(NAMESPACE), secret.as_str());
        let operators = (&stage.service, &maps, Some(team.cluster.as_str()), map.as_str());
        let mine = put(&team.client, &secrets, NAMESPACE, &secret, &password("same")).await?;
        put(&stage.service, &secrets, &team.cluster, &secret, &password("same")).await?;
        // Two empty ones are equal, too.
        let theirs = put(&stage.service, &maps, &team.cluster, &map, &json!({})).await?;
        put(&team.client, &maps, NAMESPACE, &map, &json!({})).await?;
        let agent = agent(&stage, apply)?;
        stage.order(team, order, json!({ "size": 1 })).await?;
        stage.copy_is("the copy is there", team, order, |_| true).await?;
        warned(&stage, team, order, &[&secret, &map, "TakeOver"]).await?;
        team.client.merge_patch(&maps, Some(NAMESPACE), &map, &color("guessed")).await?;
        stage.at_rest().await?;
        untouched(consumers, &mine).await?;
        untouched(operators, &theirs).await?;
        stage.cancel(team, order).await?;
        stage.all_gone(team, order).await?;
        stage.at_rest().await?;
        untouched(consumers, &mine).await?;
        untouched(operators, &theirs).await?;
        agent.stop().await?;
    }
    Ok(())
}

pub(crate) async fn an_object_that_equals_the_copy_of_an_order_is_refused_like_any_other(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let (stage, unowned) = taken(world, json!({ "region": "us", "size": 1 })).await?;
    let (team, buckets) = (&stage.team_a, stage.buckets());
    let at = (&stage.service, &buckets, Some(team.cluster.as_str()), "bucket");
    let agent = quick_agent(&stage)?;
    stage.order(team, "bucket", json!({ "region": "us", "size": 1 })).await?;
    warned(&stage, team, "bucket", &["bucket", &team.cluster, "TakeOver"]).await?;
    silent(&stage, &agent).await?;
    untouched(at, &unowned).await?;
    stage.cancel(team, "bucket").await?;
    stage.gone("the order can go", (&team.client, &buckets, Some(NAMESPACE), "bucket")).await?;
    untouched(at, &unowned).await?;
    agent.stop().await
}

pub(crate) async fn a_providers_policy_takes_no_secret_of_a_consumer(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = adoption::set(world).await?;
    republish(&stage, json!({ "adoption": "TakeOver" })).await?;
    let (team, secrets) = (&stage.team_a, kinds::secrets());
    let at = (&team.client, &secrets, Some(NAMESPACE), "bucket-credentials");
    let mine = put(&team.client, &secrets, NAMESPACE, "bucket-credentials", &password("mine")).await?;
    put(&stage.service, &secrets, &team.cluster, "bucket-credentials", &password("theirs")).await?;
    let agent = stage.start_agent()?;
    stage.order(team, "bucket", json!({ "size": 1 })).await?;
    stage.copy_is("the copy is there", team, "bucket", |_| true).await?;
    warned(&stage, team, "bucket", &["bucket-credentials", "on the service cluster only"]).await?;
    stage.at_rest().await?;
    untouched(at, &mine).await?;
    stage.cancel(team, "bucket").await?;
    stage.all_gone(team, "bucket").await?;
    stage.at_rest().await?;
    untouched(at, &mine).await?;
    agent.stop().await
}

/// Two entries for Secrets, one the way back of the other, of which nobody can tell that before they are applied.
fn circle() -> Value {
    let entry = |identifier: &str, origin: &str, name: &str| {
        json!({
            "identifier": identifier, "origin": origin, "kind": "Secret", "cleanup": true,
            "object": { "template": { "template": name } }, "watch": { "bySelector": {} },
        })
    };
    json!([
        entry("there", "kcp", "{{ .Object.metadata.name }}-ring"),
        entry("back", "service", "{{ printf \"%s-ring\" .Object.metadata.name }}"),
    ])
}

pub(crate) async fn entries_that_lead_in_a_circle_end_neither_the_consumers_secret_nor_the_operators(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let spec = json!({ "naming": beside_names(""), "related": circle(), "adoption": "TakeOver" });
    let stage = publish(world, spec).await?;
    create_namespace(&stage, &stage.team_a.cluster).await?;
    let (team, secrets) = (&stage.team_a, kinds::secrets());
    let agent = stage.start_agent()?;
    for (order, is_consumers) in [("consumers", true), ("operators", false)] {
        let name = format!("{order}-ring");
        let there = (&team.client, &secrets, Some(NAMESPACE), name.as_str());
        let here = (&stage.service, &secrets, Some(team.cluster.as_str()), name.as_str());
        let (original, copy) = if is_consumers { (there, here) } else { (here, there) };
        put(original.0, &secrets, original.2.unwrap_or_default(), &name, &password("original")).await?;
        stage.order(team, order, json!({ "size": 1 })).await?;
        stage.object("it is copied", copy, |secret| secret["data"]["password"] == encoded("original")).await?;
        warned(&stage, team, order, &["circle", &name]).await?;
        stage.at_rest().await?;
        stage.cancel(team, order).await?;
        stage.all_gone(team, order).await?;
        stage.gone("what was made goes", copy).await?;
        stage.at_rest().await?;
        let left = original.0.get(&secrets, original.2, &name).await?.context("the original was deleted")?;
        ensure!(left["data"] == password("original")["data"] && super::is_free(&left), "it is {}", shown(&left));
    }
    agent.stop().await
}

pub(crate) async fn entries_that_are_certain_to_lead_in_a_circle_are_refused(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let mut related = circle();
    related[1]["object"] = related[0]["object"].clone();
    let stage = publish(world, json!({ "related": related })).await?;
    let agent = stage.start_agent()?;
    stage
        .eventually("the provider is told", async || {
            let name = stage.published_name("Bucket");
            let published = stage.service.get(&kinds::published_resources(), None, &name).await?.unwrap_or_default();
            let told = published["status"]["conditions"].to_string();
            ensure!(told.contains("copies back what"), "{told}");
            Ok(())
        })
        .await?;
    agent.stop().await
}

pub(crate) async fn an_order_that_another_order_needs_beside_it_keeps_its_copy(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let stage = Stage::bare(world).await?;
    for kind in ["Bucket", "Network"] {
        stage.install_crd(&fixtures::crd(&stage.group, kind)).await?;
    }
    stage.create_export().await?;
    let related = json!([{
        "identifier": "networks", "origin": "kcp", "cleanup": true,
        "group": stage.group, "version": "v1", "resource": "networks",
        "object": { "reference": { "path": "spec.owner" } }, "watch": { "bySelector": {} },
    }]);
    stage.publish("Network", json!({ "naming": beside_names("") })).await?;
    stage.publish("Bucket", json!({ "naming": beside_names(""), "related": related })).await?;
    futures::try_join!(stage.bind(&stage.team_a), stage.bind(&stage.team_b))?;
    let agent = quick_agent(&stage)?;
    let (team, networks) = (&stage.team_a, fixtures::kind(&stage.group, "Network"));
    // Whichever comes first, the Network is one order with one copy.
    for (name, is_first) in [("before", true), ("after", false)] {
        let bucket = format!("bucket-{name}");
        if is_first {
            stage.order_kind(&networks, team, name, json!({ "size": 1 })).await?;
            stage.copy_of_kind_is("the copy of the Network is there", (&networks, team, name), |_| true).await?;
        }
        stage.order(team, &bucket, json!({ "owner": name })).await?;
        stage.copy_is("the copy of the Bucket is there", team, &bucket, |_| true).await?;
        stage.order_kind(&networks, team, name, json!({ "size": 1 })).await?;
        let copy = stage.copy_of_kind_is("the Network has its copy", (&networks, team, name), |_| true).await?;
        stage.at_rest().await?;
        stage.cancel(team, &bucket).await?;
        stage.all_gone(team, &bucket).await?;
        stage.at_rest().await?;
        let after = stage.copy_of_kind_is("the Network keeps its copy", (&networks, team, name), |_| true).await?;
        same(&after, &copy)?;
        silent(&stage, &agent).await?;
    }
    agent.stop().await
}

pub(crate) async fn a_copy_that_was_handed_over_loses_the_labels_of_the_order_before(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let stage = publish(world, json!({ "naming": { "name": "the-one", "namespace": "{{ .ClusterName }}" } })).await?;
    let (team, buckets) = (&stage.team_a, stage.buckets());
    for (apply, first, second) in [(false, "a", "b"), (true, "c", "d")] {
        let agent = agent(&stage, apply)?;
        stage.order(team, first, json!({ "size": 1 })).await?;
        let labels = |value: &str| json!({ "metadata": { "labels": { "team": value, format!("of-{value}"): "yes" } } });
        team.client.merge_patch(&buckets, Some(NAMESPACE), first, &labels(first)).await?;
        let is_labelled = |copy: &Value| copy["metadata"]["labels"]["team"] == first;
        let copy = stage.copy_is("the copy has the labels", team, first, is_labelled).await?;
        let own = json!({ "metadata": { "labels": { "operator": "yes" } } });
        stage.service.merge_patch(&buckets, Some(place(&copy).0), "the-one", &own).await?;
        stage.at_rest().await?;
        agent.stop().await?;
        // Its order is gone by force, and the operator gives it to another one.
        let none = json!({ "metadata": { "finalizers": null } });
        team.client.merge_patch(&buckets, Some(NAMESPACE), first, &none).await?;
        stage.cancel(team, first).await?;
        stage.gone("the order is gone", (&team.client, &buckets, Some(NAMESPACE), first)).await?;
        stage.service.merge_patch(&buckets, Some(place(&copy).0), "the-one", &give_away()).await?;
        let agent = self::agent(&stage, apply)?;
        stage.order(team, second, json!({ "size": 2 })).await?;
        let taken = stage.copy_is("it is handed over", team, second, |copy| copy["spec"]["size"] == 2).await?;
        same(&taken, &copy)?;
        let labels = &taken["metadata"]["labels"];
        ensure!(labels["team"].is_null() && labels[format!("of-{first}")].is_null(), "it has {labels}");
        ensure!(labels["operator"] == "yes", "the operator's own label is gone: {labels}");
        // It was made by the agent, for whomever.
        stage.cancel(team, second).await?;
        stage.all_gone(team, second).await?;
        stage.gone("it goes", (&stage.service, &buckets, Some(place(&copy).0), "the-one")).await?;
        agent.stop().await?;
    }
    Ok(())
}

/// Removes everything from a copy that names its order.
async fn wipe(stage: &Stage, copy: &Value) -> anyhow::Result<()> {
    let (namespace, name) = place(copy);
    let patch = json!({ "metadata": { "labels": null, "annotations": null } });
    stage.service.merge_patch(&stage.buckets(), Some(namespace), name, &patch).await?;
    Ok(())
}

pub(crate) async fn a_copy_that_lost_everything_that_names_its_order_is_known_by_its_uid(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let stage = publish(world, json!({})).await?;
    let (team, buckets) = (&stage.team_a, stage.buckets());
    for (apply, order) in [(false, "first"), (true, "second")] {
        let agent = agent(&stage, apply)?;
        stage.order(team, order, json!({ "size": 1 })).await?;
        let copy = stage.copy_is("the copy is there", team, order, |_| true).await?;
        stage.at_rest().await?;
        wipe(&stage, &copy).await?;
        stage.reorder(team, order, json!({ "size": 2 })).await?;
        let found = stage.copy_is("the change arrives", team, order, |copy| copy["spec"]["size"] == 2).await?;
        same(&found, &copy)?;
        stage.at_rest().await?;
        agent.stop().await?;
        wipe(&stage, &copy).await?;
        stage.cancel(team, order).await?;
        let agent = self::agent(&stage, apply)?;
        stage.all_gone(team, order).await?;
        let (namespace, name) = place(&copy);
        stage.gone("the copy goes with its order", (&stage.service, &buckets, Some(namespace), name)).await?;
        agent.stop().await?;
    }
    Ok(())
}

pub(crate) async fn a_copy_that_was_restored_from_a_backup_is_brought_up_to_date(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let stage = publish(world, json!({})).await?;
    let (team, buckets) = (&stage.team_a, stage.buckets());
    for (apply, order) in [(false, "first"), (true, "second")] {
        let agent = agent(&stage, apply)?;
        stage.order(team, order, json!({ "size": 1 })).await?;
        let copy = stage.copy_is("the copy is there", team, order, |_| true).await?;
        let (namespace, name) = place(&copy);
        stage.reorder(team, order, json!({ "size": 2 })).await?;
        let mut backup = stage.copy_is("a change arrives", team, order, |copy| copy["spec"]["size"] == 2).await?;
        stage.reorder(team, order, json!({ "size": 3 })).await?;
        stage.copy_is("another one arrives", team, order, |copy| copy["spec"]["size"] == 3).await?;
        stage.at_rest().await?;
        for is_made_anew in [false, true] {
            if let Some(metadata) = backup["metadata"].as_object_mut() {
                metadata.retain(|key, _| ["name", "namespace", "labels", "annotations"].contains(&key.as_str()));
            }
            if is_made_anew {
                let options = DeleteOptions::default();
                stage.service.delete(&buckets, Some(namespace), name, &options).await?;
                // Whoever is first: what is there in the end is what the order says.
                let created = stage.service.create(&buckets, Some(namespace), &backup).await;
                ensure!(
                    created.as_ref().map_or_else(carrick_client::Error::is_already_exists, |_| true),
                    "{created:?}"
                );
            } else {
                let live = stage.service.get(&buckets, Some(namespace), name).await?.context("it is gone")?;
                backup["metadata"]["resourceVersion"] = live["metadata"]["resourceVersion"].clone();
                stage.service.replace(&buckets, Some(namespace), &backup).await?;
            }
            stage.copy_is("it is brought up to date", team, order, |copy| copy["spec"]["size"] == 3).await?;
            stage.at_rest().await?;
        }
        stage.cancel(team, order).await?;
        stage.all_gone(team, order).await?;
        agent.stop().await?;
    }
    Ok(())
}

/// As an earlier version of this agent, or the reference agent, left it: nothing says how a copy was acquired.
async fn unrecorded(stage: &Stage, order: &str) -> anyhow::Result<()> {
    let (team, secrets, maps) = (&stage.team_a, kinds::secrets(), kinds::config_maps());
    let bare = json!({ "metadata": { "annotations": { api::ACQUIRED: null } } });
    team.client.merge_patch(&secrets, Some(NAMESPACE), &format!("{order}-credentials"), &bare).await?;
    stage.service.merge_patch(&maps, Some(&team.cluster), &format!("{order}-settings"), &bare).await?;
    for mut memory in memories(stage, team, order).await? {
        let Some(data) = memory["data"].as_object_mut() else { continue };
        // The reference agent has neither: only what was written last.
        data.retain(|key, _| key.rsplit_once('.').is_none_or(|(_, what)| what == "sum"));
        stage.service.replace(&secrets, Some(&stage.agent_namespace()), &memory).await?;
    }
    Ok(())
}

pub(crate) async fn copies_of_a_version_that_recorded_no_ownership_stay_copies(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let related = json!([credentials(), settings()]);
    let stage = publish(world, json!({ "naming": beside_names(""), "related": related })).await?;
    let (team, secrets, maps) = (&stage.team_a, kinds::secrets(), kinds::config_maps());
    create_namespace(&stage, &team.cluster).await?;
    put(&stage.service, &secrets, &team.cluster, "bucket-credentials", &password("first")).await?;
    put(&team.client, &maps, NAMESPACE, "bucket-settings", &color("first")).await?;
    let agent = stage.start_agent()?;
    let up = (&team.client, &secrets, Some(NAMESPACE), "bucket-credentials");
    let down = (&stage.service, &maps, Some(team.cluster.as_str()), "bucket-settings");
    stage.order(team, "bucket", json!({ "size": 1 })).await?;
    stage.object("the Secret travels", up, |_| true).await?;
    stage.object("the ConfigMap travels", down, |_| true).await?;
    stage.at_rest().await?;
    agent.stop().await?;
    unrecorded(&stage, "bucket").await?;
    let agent = stage.start_agent()?;
    stage.service.merge_patch(&secrets, Some(&team.cluster), "bucket-credentials", &password("second")).await?;
    team.client.merge_patch(&maps, Some(NAMESPACE), "bucket-settings", &color("second")).await?;
    stage.object("the Secret follows", up, |secret| secret["data"]["password"] == encoded("second")).await?;
    stage.object("the ConfigMap follows", down, |map| map["data"]["color"] == "second").await?;
    stage.cancel(team, "bucket").await?;
    stage.all_gone(team, "bucket").await?;
    stage.gone("the copy of the Secret goes", up).await?;
    stage.gone("the copy of the ConfigMap goes", down).await?;
    agent.stop().await
}

fn encoded(text: &str) -> String {
    crate::related::encoded(text)
}
