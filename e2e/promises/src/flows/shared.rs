//! Flows for disturbances of their own: related objects in both directions, and rules that change.

use serde_json::{Value, json};

use super::{beside_names, encoded, nothing, secret, source};
use crate::deed::Beside::{Copy, Order as Consumer};
use crate::deed::Deed::{Cancel, Change, Order, Put, Raze, Redefine, Republish, Touch};
use crate::deed::Team::A;
use crate::flow::{Flow, step};
use crate::state::State;

/// A Secret of the service that the consumer gets, and one of the consumer that the service gets.
pub fn both_ways() -> Flow {
    Flow {
        rules: |_| json!({ "naming": beside_names(), "related": both() }),
        related: &["secrets"],
        ..Flow::of_buckets(
            "both_ways",
            vec![
                step(
                    "an order with keys",
                    vec![
                        Put(Consumer(A), "secrets", "one-keys", secret("1")),
                        Order(A, "one", json!({ "spec": { "size": 1 } })),
                    ],
                    |s| !s.copy("team-a", "one").is_null() && has_keys(s),
                ),
                step("its credentials", vec![Put(Copy(A), "secrets", "one-credentials", secret("1"))], |s| {
                    s.at("team-a secrets default/one-credentials")["data"]["password"] == encoded("1")
                }),
                step("the end", vec![Cancel(A, "one")], |s| nothing(s) && !has_keys(s)),
            ],
        )
    }
}

/// The namespace of the copy goes, with all that is in it.
pub fn razed() -> Flow {
    Flow {
        rules: |_| json!({ "naming": beside_names(), "related": [related("keys", "kcp")] }),
        related: &["secrets"],
        ..Flow::of_buckets(
            "razed",
            vec![
                step(
                    "an order with keys",
                    vec![
                        Put(Consumer(A), "secrets", "one-keys", secret("1")),
                        Order(A, "one", json!({ "spec": { "size": 1 } })),
                    ],
                    |s| !s.copy("team-a", "one").is_null() && has_keys(s),
                ),
                step("the namespace goes", vec![Raze(A, "one")], |s| !s.copy("team-a", "one").is_null() && has_keys(s)),
                step("a change", vec![Change(A, "one", json!({ "spec": { "size": 2 } }))], |s| {
                    s.copy("team-a", "one")["spec"]["size"] == 2
                }),
                step("the end", vec![Cancel(A, "one")], |s| nothing(s) && !has_keys(s)),
            ],
        )
    }
}

/// The provider changes the rules and the kind again and again while an order lives.
pub fn upheavals() -> Flow {
    Flow {
        rules: |_| json!({ "naming": beside_names(), "related": both() }),
        related: &["secrets"],
        verbatim: false,
        drops_related: true,
        ..Flow::of_buckets(
            "upheavals",
            vec![
                step(
                    "an order with Secrets",
                    vec![
                        Put(Consumer(A), "secrets", "one-keys", secret("1")),
                        Order(A, "one", json!({ "spec": { "size": 1 } })),
                        Touch(A, "one", json!({ "spec": { "owner": "operator" } })),
                        Put(Copy(A), "secrets", "one-credentials", secret("2")),
                    ],
                    |s| {
                        s.copy("team-a", "one")["spec"]["owner"] == "operator"
                            && has_keys(s)
                            && !s.at("team-a secrets default/one-credentials").is_null()
                    },
                ),
                step(
                    "another version is stored",
                    vec![Redefine(second_version), Republish(json!({ "resource": { "versions": ["v1", "v2"] } }))],
                    |s| schemas(s) == 2 && is_exported(s),
                ),
                step("a change", vec![Change(A, "one", json!({ "spec": { "size": 2 } }))], |s| {
                    s.copy("team-a", "one")["spec"] == json!({ "size": 2, "owner": "operator" })
                }),
                step(
                    "a mutation",
                    vec![Republish(json!({ "mutation": { "spec": [
                        { "cel": { "path": "spec.region", "expression": "'ruled'" } },
                    ]}}))],
                    |s| s.copy("team-a", "one")["spec"] == json!({ "size": 2, "owner": "operator", "region": "ruled" }),
                ),
                step("a field more", vec![Redefine(another_field)], |s| schemas(s) == 3 && is_exported(s)),
                step("a tighter schema, which nothing holds back", vec![Redefine(tighter)], |s| {
                    schemas(s) == 4 && is_exported(s)
                }),
                step("no keys any more", vec![Republish(json!({ "related": [credentials()] }))], |s| {
                    !has_keys(s) && s.at("team-a secrets default/one-keys")["metadata"]["finalizers"].is_null()
                }),
                step("switched off", vec![Republish(json!({ "synchronization": { "enabled": false } }))], |s| {
                    source(s)["metadata"]["finalizers"].is_null()
                }),
                step(
                    "switched on, after a change",
                    vec![
                        Change(A, "one", json!({ "spec": { "size": 3 } })),
                        Republish(json!({ "synchronization": { "enabled": true } })),
                    ],
                    |s| s.copy("team-a", "one")["spec"]["size"] == 3 && !source(s)["metadata"]["finalizers"].is_null(),
                ),
                step("the end", vec![Cancel(A, "one")], nothing),
            ],
        )
    }
}

fn tighter(crd: &mut Value) {
    for version in crd["spec"]["versions"].as_array_mut().into_iter().flatten() {
        version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["size"]["maximum"] = json!(5);
    }
}

fn both() -> Value {
    json!([credentials(), related("keys", "kcp")])
}

fn credentials() -> Value {
    related("credentials", "service")
}

fn related(identifier: &str, origin: &str) -> Value {
    json!({
        "identifier": identifier,
        "origin": origin,
        "version": "v1",
        "resource": "secrets",
        "cleanup": true,
        "object": { "template": { "template": format!("{{{{ .Object.metadata.name }}}}-{identifier}") } },
        "watch": { "bySelector": {} },
    })
}

fn has_keys(state: &State) -> bool {
    !state.at("service secrets team-a/one-keys").is_null()
}

fn second_version(crd: &mut Value) {
    let Some(versions) = crd["spec"]["versions"].as_array_mut() else { return };
    // Whoever is not sure that it was done does it again.
    if versions.len() == 1 {
        let mut second = versions[0].clone();
        second["name"] = json!("v2");
        versions[0]["storage"] = json!(false);
        versions.push(second);
    }
}

fn another_field(crd: &mut Value) {
    for version in crd["spec"]["versions"].as_array_mut().into_iter().flatten() {
        version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["color"] = json!({ "type": "string" });
    }
}

fn schemas(state: &State) -> usize {
    state.places().filter(|place| place.contains(" apiresourceschemas ")).count()
}

/// Whether the export lists the schema that the PublishedResource names.
fn is_exported(state: &State) -> bool {
    let named = state.at("service publishedresources /bucket-id")["status"]["resourceSchemaName"].clone();
    let export = state.places().find(|place| place.contains(" apiexports "));
    named.as_str().is_some_and(|name| export.is_some_and(|place| state.at(place).to_string().contains(name)))
}
