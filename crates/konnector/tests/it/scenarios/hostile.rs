//! A provider that means harm: another one's objects, and those of the consumer, go on as if it were not there.

use serde_json::{Value, json};

use super::world::{World, has};
use crate::clusters::{Provider, bindings, crd, crd_kind, sheriffs};

fn sheriff(name: &str, intent: &str) -> Value {
    json!({"apiVersion": "wild.io/v1", "kind": "Sheriff", "metadata": {"name": name}, "spec": {"intent": intent}})
}

/// A consumer of an honest provider, who offers sheriffs, and of another one.
async fn world() -> (World, Provider, Provider) {
    let (world, honest, other) = (World::start().await, Provider::start("c-1").await, Provider::start("c-2").await);
    honest.export("sheriffs").await;
    world.store("honest", &honest).await;
    world.bind("sheriffs", "honest").await;
    world.store("other", &other).await;
    world.ready("sheriffs").await;
    (world, honest, other)
}

async fn honest_ones_are_served(world: &World, honest: &Provider, name: &str) {
    world.consumer.apply(&sheriffs(), &sheriff(name, "peace")).await;
    let copy = format!("c-1-{name}");
    honest.cluster.until(&sheriffs(), None, &copy, |copy| copy["spec"]["intent"] == "peace").await;
    world.ready("sheriffs").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schema_that_grows_and_grows_keeps_nobody_else_waiting() {
    let (world, honest, other) = world().await;
    let mut grown = crd("outlaws", "Outlaw");
    other.export_crd("outlaws", &grown).await;
    world.bind("outlaws", "other").await;
    world.ready("outlaws").await;
    for step in 1..=10 {
        let fields = (0..step * 100)
            .map(|at| (format!("field{at}"), json!({"type": "string", "description": "x".repeat(1_000)})));
        let fields: serde_json::Map<String, Value> = fields.collect();
        grown["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"] =
            Value::Object(fields);
        other.write_schema(&grown).await;
        honest_ones_are_served(&world, &honest, &format!("wyatt-{step}")).await;
    }
    let last = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/field999";
    world.consumer.until(&crd_kind(), None, "outlaws.wild.io", |crd| crd.pointer(last).is_some()).await;

    // A schema that this server refuses, although the provider's own one has taken it.
    let mut rules = crd("outlaws", "Outlaw");
    rules["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["x-kubernetes-validations"] =
        json!([{"rule": "self.this is no rule", "message": "no"}]);
    other.write_schema(&rules).await;
    world.binding("outlaws", "SchemaInSync", "False", "CustomResourceDefinitionUpdateFailed").await;
    honest_ones_are_served(&world, &honest, "wyatt-11").await;
    other.write_schema(&crd("outlaws", "Outlaw")).await;
    world.ready("outlaws").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_storm_of_changes_at_one_provider_keeps_nobody_else_waiting_and_ends_in_peace() {
    let (world, honest, other) = world().await;
    other.export_crd("outlaws", &crd("outlaws", "Outlaw")).await;
    world.bind("outlaws", "other").await;
    world.ready("outlaws").await;
    let outlaws = carrick_client::Resource::cluster_wide("wild.io", "v1", "Outlaw", "outlaws");
    let mut outlaw = sheriff("billy", "gold");
    outlaw["kind"] = json!("Outlaw");
    world.consumer.apply(&outlaws, &outlaw).await;
    other.cluster.until(&outlaws, None, "c-2-billy", |_| true).await;
    // Both sides change as fast as they can: the status there, the spec here, and the copy's spec by somebody who has no business there.
    let there = async {
        for count in 0..200 {
            let status = json!({"status": {"result": format!("{count}")}});
            other.cluster.client.merge_patch_status(&outlaws, None, "c-2-billy", &status).await.unwrap();
            let spec = json!({"spec": {"intent": format!("forged {count}")}});
            other.cluster.client.merge_patch(&outlaws, None, "c-2-billy", &spec).await.unwrap();
        }
    };
    let here = async {
        for count in 0..200 {
            let spec = json!({"spec": {"intent": format!("gold {count}")}});
            world.consumer.client.merge_patch(&outlaws, None, "billy", &spec).await.unwrap();
        }
    };
    let meanwhile = async {
        for count in 0..20 {
            honest_ones_are_served(&world, &honest, &format!("wyatt-{count}")).await;
        }
    };
    tokio::join!(there, here, meanwhile);
    other.cluster.until(&outlaws, None, "c-2-billy", |copy| copy["spec"]["intent"] == "gold 199").await;
    world.consumer.until(&outlaws, None, "billy", |it| it["status"]["result"] == "199").await;
    let ready = |binding: &Value| has(binding, "Ready", "True", "");
    world.consumer.until(&bindings(), None, "outlaws", ready).await;
    // And nothing is sent any more.
    let mut calm = false;
    for _ in 0..20 {
        let recordings = world.record(&other);
        if recordings.silence().await.is_empty() {
            calm = true;
            break;
        }
    }
    assert!(calm, "the konnector went on writing");
}
