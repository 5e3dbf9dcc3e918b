//! Copies written by server-side apply.

use std::sync::Arc;

use anyhow::{Context, ensure};
use carrick_client::{Client, ListOptions};
use carrick_e2e_stage::agent::{Agent, Setup};
use carrick_e2e_stage::stage::{NAMESPACE, Stage, place, shown};
use carrick_e2e_stage::world::World;
use carrick_e2e_stage::{fixtures, kinds};
use serde_json::{Value, json};

fn agent(stage: &Stage, apply: bool) -> anyhow::Result<Agent> {
    Agent::start(stage, Setup { probes: true, apply, ..Setup::default() })
}

pub(super) async fn a_change_arrives_and_the_server_remembers_it(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = Stage::set(world).await?;
    let (team, agent) = (&stage.team_a, agent(&stage, true)?);
    stage.order(team, "bucket", json!({ "region": "a-region-of-its-own", "size": 1 })).await?;
    let copy = stage.copy_is("the copy is there", team, "bucket", |_| true).await?;
    stage.operator_edits(&copy, json!({ "owner": "operator" })).await?;
    stage.reorder(team, "bucket", json!({ "region": null, "size": 2 })).await?;
    let wanted = json!({ "size": 2, "owner": "operator" });
    stage.copy_is("what was ours goes, what is the operator's stays", team, "bucket", |c| c["spec"] == wanted).await?;
    // Once more, now that the fields are owned by an apply.
    stage.reorder(team, "bucket", json!({ "region": "a-region-of-its-own", "size": 3 })).await?;
    stage.copy_is("a field comes", team, "bucket", |c| c["spec"]["size"] == 3).await?;
    stage.reorder(team, "bucket", json!({ "region": null })).await?;
    let wanted = json!({ "size": 3, "owner": "operator" });
    let copy = stage.copy_is("and goes", team, "bucket", |copy| copy["spec"] == wanted).await?;
    let manager = format!("api-syncagent/{}", stage.agent_name());
    let (namespace, name) = place(&copy);
    let live = stage.service.get(&stage.buckets(), Some(namespace), name).await?.unwrap_or_default();
    ensure!(managers(&live).contains(&(manager, "Apply".to_owned())), "{}", live["metadata"]["managedFields"]);
    stage.operator_reports(&copy, json!({ "url": "here" })).await?;
    stage.source_is("the status returns", team, "bucket", |source| source["status"]["url"] == "here").await?;
    stage.at_rest().await?;
    let memory = stage.remembered_of(team, "bucket").await?.unwrap_or_default();
    ensure!(!memory["data"].as_object().is_none_or(serde_json::Map::is_empty), "ends must be known");
    let region = data_encoding::BASE64.encode(b"a-region-of-its-own");
    ensure!(memory["data"].to_string().len() < 400 && !memory.to_string().contains(&region), "{}", shown(&memory));

    // What operators change stays until something else is wanted.
    stage.operator_edits(&copy, json!({ "size": 9 })).await?;
    stage.at_rest().await?;
    stage.copy_is("it stays", team, "bucket", |copy| copy["spec"]["size"] == 9).await?;
    stage.cancel(team, "bucket").await?;
    stage.all_gone(team, "bucket").await?;
    agent.stop().await
}

pub(super) async fn it_can_be_switched_on_and_off_without_a_change_of_copies(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let stage = Stage::set(world).await?;
    let team = &stage.team_a;
    let first = agent(&stage, false)?;
    stage.order(team, "bucket", json!({ "region": "eu", "size": 1 })).await?;
    let copy = stage.copy_is("the copy is there", team, "bucket", |_| true).await?;
    stage.operator_edits(&copy, json!({ "owner": "operator" })).await?;
    let mut at_rest = version(&stage).await?;
    first.stop().await?;
    for (apply, spec, wanted) in [
        (true, json!({ "region": null }), json!({ "size": 1, "owner": "operator" })),
        (false, json!({ "region": "us", "size": 2 }), json!({ "region": "us", "size": 2, "owner": "operator" })),
        (true, json!({ "size": null }), json!({ "region": "us", "owner": "operator" })),
        (false, json!({ "region": null, "size": 1 }), json!({ "size": 1, "owner": "operator" })),
    ] {
        let agent = agent(&stage, apply)?;
        stage.ready(&agent).await?;
        let now = version(&stage).await?;
        ensure!(now == at_rest, "the copy was written when apply became {apply}: {at_rest} is {now}");
        stage.reorder(team, "bucket", spec).await?;
        let what = format!("a change arrives with apply {apply}");
        stage.copy_is(&what, team, "bucket", |copy| copy["spec"] == wanted).await?;
        at_rest = version(&stage).await?;
        agent.stop().await?;
    }
    Ok(())
}

/// What a server refuses for its content is the consumer's business, whichever way copies are written.
pub(super) async fn a_change_that_is_refused_is_explained_as_without_it(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = Stage::bound(world, fixtures::rigid).await?;
    // The region of a copy follows the size, so that kcp accepts what the service cluster refuses.
    let region = json!({ "path": "spec.region", "template": "r{{ .LocalObject.spec.size }}" });
    stage.publish("Bucket", json!({ "mutation": { "spec": [{ "template": region }] } })).await?;
    let team = &stage.team_a;
    for apply in [false, true] {
        let (agent, name) = (agent(&stage, apply)?, format!("bucket-{apply}"));
        stage.order(team, &name, json!({ "size": 1 })).await?;
        stage.copy_is("the copy is there", team, &name, |copy| copy["spec"]["region"] == "r1").await?;
        stage.reorder(team, &name, json!({ "size": 2 })).await?;
        stage
            .eventually(&format!("the consumer learns the reason with apply {apply}"), async || {
                let events = team.client.list(&kinds::events(), Some(NAMESPACE), &ListOptions::default()).await?;
                let about =
                    |event: &&Value| event["involvedObject"]["name"] == *name && event["reason"] == "ReconcilingError";
                let event = events.iter().find(about).context("there is no event")?;
                let message = event["message"].as_str().unwrap_or_default();
                ensure!(message.contains("a region is for ever"), "{}", shown(event));
                Ok(())
            })
            .await?;
        agent.stop().await?;
    }
    Ok(())
}

pub(super) async fn related_objects_are_applied_too(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = Stage::bare(world).await?;
    stage.install_crd(&fixtures::crd(&stage.group, "Bucket")).await?;
    let related = |identifier: &str, origin: &str| {
        json!({ "identifier": identifier, "origin": origin, "kind": "Secret", "cleanupPolicy": "OnPrimaryDeletion",
            "object": { "template": { "template": identifier } } })
    };
    stage.publish("Bucket", json!({ "related": [related("theirs", "kcp"), related("ours", "service")] })).await?;
    stage.create_export().await?;
    futures::try_join!(stage.bind(&stage.team_a), stage.bind(&stage.team_b))?;
    let (team, agent, secrets) = (&stage.team_a, agent(&stage, true)?, kinds::secrets());
    stage.order(team, "bucket", json!({ "size": 1 })).await?;
    let copy = stage.copy_is("the copy is there", team, "bucket", |_| true).await?;
    let namespace = copy["metadata"]["namespace"].as_str().unwrap_or_default();
    for (name, (from, there), (to, here)) in [
        ("theirs", (&team.client, NAMESPACE), (&stage.service, namespace)),
        ("ours", (&stage.service, namespace), (&team.client, NAMESPACE)),
    ] {
        let secret = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": name },
            "data": { "a": "YQ==", "b": "Yg==" } });
        from.create(&secrets, Some(there), &secret).await?;
        let at = (to, &secrets, Some(here), name);
        stage.object(&format!("{name} is copied"), at, |copy| copy["data"] == secret["data"]).await?;
        add_key(to, here, name).await?;
        let patch = json!({ "data": { "a": "Yw==", "b": null } });
        from.merge_patch(&secrets, Some(there), name, &patch).await?;
        let wanted = json!({ "a": "Yw==", "added": "eA==" });
        let copy = stage.object(&format!("{name} changes"), at, |copy| copy["data"] == wanted).await?;
        let manager = ("api-syncagent".to_owned(), "Apply".to_owned());
        ensure!(managers(&copy).contains(&manager), "{}", copy["metadata"]["managedFields"]);
    }
    stage.at_rest().await?;
    stage.cancel(team, "bucket").await?;
    stage.all_gone(team, "bucket").await?;
    stage.gone("its copy goes", (&stage.service, &secrets, Some(namespace), "theirs")).await?;
    stage.gone("and so does this one", (&team.client, &secrets, Some(NAMESPACE), "ours")).await?;
    agent.stop().await
}

/// Who owns fields of an object, and in which way.
fn managers(object: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let entries = object["metadata"]["managedFields"].as_array().into_iter().flatten();
    entries.map(|entry| (text(&entry["manager"]), text(&entry["operation"]))).collect()
}

/// Somebody else adds a key to a copy.
async fn add_key(client: &Client, namespace: &str, name: &str) -> anyhow::Result<()> {
    let patch = json!({ "data": { "added": "eA==" } });
    client.merge_patch(&kinds::secrets(), Some(namespace), name, &patch).await?;
    Ok(())
}

/// The version of the copy, once nothing is written any more.
async fn version(stage: &Stage) -> anyhow::Result<String> {
    stage.at_rest().await?;
    let copy = stage.copy(&stage.team_a, "bucket").await?.unwrap_or_default();
    Ok(copy["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned())
}
