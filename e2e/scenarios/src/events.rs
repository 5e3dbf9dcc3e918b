//! What consumers and providers are told by events.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::ensure;
use carrick_client::{Client, ListOptions};
use carrick_e2e_stage::kinds;
use carrick_e2e_stage::stage::{NAMESPACE, Stage};
use carrick_e2e_stage::world::World;
use serde_json::{Value, json};

/// Type, message and source of an event.
type Told = (String, String, String);

pub(super) async fn events_are_worded_as_those_of_the_reference_agent(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = Stage::set(world).await?;
    stage.publish("Nowhere", json!({})).await?;
    let agent = stage.start_agent()?;
    let team = &stage.team_a;
    stage.order(team, "bucket", json!({ "size": 1 })).await?;
    let copy = stage.copy_is("the copy is there", team, "bucket", |_| true).await?;
    stage.reorder(team, "bucket", json!({ "size": 2 })).await?;
    stage.copy_is("the change arrives", team, "bucket", |copy| copy["spec"]["size"] == 2).await?;
    stage.operator_reports(&copy, json!({ "url": "here" })).await?;
    stage.source_is("the status returns", team, "bucket", |source| source["status"]["url"] == "here").await?;
    stage.cancel(team, "bucket").await?;
    stage.all_gone(team, "bucket").await?;
    let normal = |reason: &'static str, message: &str| (reason, told("Normal", message, "syncagent-sync"));
    let expected = [
        normal("ObjectAccepted", "Object has been seen by the service provider."),
        normal("ObjectPlaced", "Object has been placed."),
        normal("ObjectSynced", "The current desired state of the object has been synchronized."),
        normal("ObjectStatusSynced", "The current object status has been updated."),
        normal("ObjectCleanup", "Object deletion has been started."),
        normal("ObjectDeleted", "Object deletion has been completed, finalizer has been removed."),
    ];
    is_told(&stage, &team.client, "bucket", &expected).await?;

    let schemas = |export: &Value| export["spec"]["latestResourceSchemas"][0].as_str().unwrap_or_default().to_owned();
    let first = schemas(&stage.export().await?);
    let (provider, export) = (&stage.provider.client, stage.export_name());
    let about = |kind: &str, message: String| told(kind, &message, "syncagent-apiexport");
    let expected = [
        ("AddingResourceSchemas", about("Normal", format!("Added new resource schema(s) {first}."))),
        ("AddingPermissionClaims", about("Normal", "Added new permission claim(s) for all events.".to_owned())),
    ];
    is_told(&stage, provider, export, &expected).await?;
    let other = json!({ "spec": { "projection": { "categories": ["all"] } } });
    let published = kinds::published_resources();
    stage.service.merge_patch(&published, None, &stage.published_name("Bucket"), &other).await?;
    let removed = about("Warning", format!("Removed resource schema(s) {first}."));
    is_told(&stage, provider, export, &[("RemovingResourceSchemas", removed)]).await?;

    let name = stage.published_name("Nowhere");
    stage
        .eventually("the provider gets an event about what is missing", async || {
            let events = events(&stage.service, &name).await?;
            let problem = events.get("ReconcilingError").cloned().unwrap_or_default();
            ensure!(problem.0 == "Warning" && problem.2 == "syncagent-apiresourceschema", "{events:?}");
            ensure!(problem.1.contains("could not find Nowhere"), "{problem:?}");
            Ok(())
        })
        .await?;
    agent.stop().await
}

fn told(kind: &str, message: &str, source: &str) -> Told {
    (kind.to_owned(), message.to_owned(), source.to_owned())
}

/// Waits until there are these events about an object.
async fn is_told(stage: &Stage, client: &Client, name: &str, expected: &[(&str, Told)]) -> anyhow::Result<()> {
    stage
        .eventually(&format!("all is told about {name}"), async || {
            let events = events(client, name).await?;
            for (reason, told) in expected {
                ensure!(events.get(*reason) == Some(told), "{reason} is not among {events:?}");
            }
            Ok(())
        })
        .await
}

/// The core events about an object, by reason.
async fn events(client: &Client, name: &str) -> anyhow::Result<BTreeMap<String, Told>> {
    let events = client.list(&kinds::events(), Some(NAMESPACE), &ListOptions::default()).await?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let about = events.iter().filter(|event| event["involvedObject"]["name"] == name);
    Ok(about
        .map(|event| {
            let told = (text(&event["type"]), text(&event["message"]), text(&event["source"]["component"]));
            (text(&event["reason"]), told)
        })
        .collect())
}
