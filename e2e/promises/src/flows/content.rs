//! Flows about what objects contain: schemas that say everything, and sizes.

use carrick_e2e_stage::fixtures;
use serde_json::{Value, json};

use super::{beside_names, nothing, source};
use crate::deed::Beside::Order as Consumer;
use crate::deed::Deed::{Cancel, Change, Order, Put, Replace, Report};
use crate::deed::Team::A;
use crate::flow::{Flow, step};

/// How large an order is, and the ConfigMap beside it.
const LARGE: usize = 350 * 1024;

/// Nulls, lists and defaults; and a status of which kcp drops one field and fills in another.
pub fn closed() -> Flow {
    let conditions = |text: &str| json!([{ "type": "Ready", "status": text }, { "type": "Synced", "status": "True" }]);
    Flow {
        crd: |stage| {
            let mut crd = fixtures::closed(&stage.group);
            let spec = &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"];
            spec["nick"] = json!({ "type": "string", "nullable": true });
            spec["tier"] = json!({ "type": "string", "default": "bronze" });
            spec["free"] = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
            spec["hosts"] = json!({ "type": "array", "items": { "type": "string" } });
            crd
        },
        rules: |_| {
            json!({ "naming": beside_names(), "mutation": { "status": [
                { "cel": { "path": "status.extra", "expression": "'in no schema'" } },
                { "delete": { "path": "status.phase" } },
            ]}})
        },
        ..Flow::of_buckets(
            "closed",
            vec![
                step(
                    "an order with nulls",
                    vec![Order(
                        A,
                        "one",
                        json!({ "spec": { "nick": "x", "hosts": ["a", "b"], "free": { "a": 1, "b": { "c": null } } } }),
                    )],
                    |s| {
                        let spec = &s.copy("team-a", "one")["spec"];
                        spec["tier"] == "bronze" && spec["free"] == json!({ "a": 1, "b": { "c": null } })
                    },
                ),
                step(
                    "a status",
                    vec![Report(
                        A,
                        "one",
                        json!({ "url": "here", "phase": "Ready", "conditions": conditions("False") }),
                    )],
                    |s| source(s)["status"]["url"] == "here" && source(s)["status"]["phase"] == "Pending",
                ),
                step(
                    "values that become nulls",
                    vec![
                        Replace(A, "one", json!({ "nick": null, "hosts": ["b"], "free": { "a": null, "b": null } })),
                        Report(A, "one", json!({ "conditions": conditions("True"), "hosts": ["x"], "note": null })),
                    ],
                    |s| {
                        let spec = &s.copy("team-a", "one")["spec"];
                        spec["free"] == json!({ "a": null, "b": null })
                            && spec["nick"].is_null()
                            && spec["hosts"] == json!(["b"])
                            && source(s)["status"]["conditions"][0]["status"] == "True"
                    },
                ),
                step(
                    "and the way back",
                    vec![Replace(A, "one", json!({ "nick": "y", "tier": "gold", "free": { "b": [null, {}] } }))],
                    |s| {
                        s.copy("team-a", "one")["spec"]
                            == json!({ "nick": "y", "tier": "gold", "free": { "b": [null, {}] } })
                    },
                ),
                step("the end", vec![Cancel(A, "one")], nothing),
            ],
        )
    }
}

/// An order and a ConfigMap that are large.
pub fn large() -> Flow {
    Flow {
        crd: |stage| fixtures::roomy(&stage.group),
        rules: |_| {
            json!({ "naming": beside_names(), "related": [{
                "identifier": "settings",
                "origin": "kcp",
                "version": "v1",
                "resource": "configmaps",
                "cleanup": true,
                "object": { "template": { "template": "{{ .Object.metadata.name }}-settings" } },
                "watch": { "bySelector": {} },
            }]})
        },
        related: &["configmaps"],
        heavy: true,
        ..Flow::of_buckets(
            "large",
            vec![
                step(
                    "a large order",
                    vec![
                        Order(A, "one", json!({ "spec": { "size": 1, "blob": noise(1) } })),
                        Put(Consumer(A), "configmaps", "one-settings", settings(1)),
                    ],
                    |s| s.copy("team-a", "one")["spec"]["size"] == 1 && settings_arrived(s, 1),
                ),
                step(
                    "large changes",
                    vec![
                        Change(A, "one", json!({ "spec": { "size": 2, "blob": noise(2) } })),
                        Put(Consumer(A), "configmaps", "one-settings", settings(2)),
                    ],
                    |s| s.copy("team-a", "one")["spec"]["size"] == 2 && settings_arrived(s, 2),
                ),
                step("the end", vec![Cancel(A, "one")], |s| {
                    nothing(s)
                        && s.at("service configmaps team-a/one-settings").is_null()
                        && s.at("team-a configmaps default/one-settings")["metadata"]["finalizers"].is_null()
                }),
            ],
        )
    }
}

fn settings(number: u64) -> Value {
    json!({ "data": { "number": number.to_string(), "text": noise(number + 100) } })
}

fn settings_arrived(state: &crate::state::State, number: u64) -> bool {
    let there = state.at("service configmaps team-a/one-settings")["data"]["number"].as_str();
    // On a busy machine a large object takes longer to be recorded than anybody waits for calm.
    there.is_some_and(|text| text == number.to_string()) && !state.is_announced()
}

/// A long text that cannot be made much shorter.
fn noise(seed: u64) -> String {
    let mut choices = carrick_e2e_stage::seed::Choices::of(seed);
    let bytes: Vec<u8> = (0..LARGE / 4 * 3 / 8).flat_map(|_| choices.below(u64::MAX).to_le_bytes()).collect();
    data_encoding::BASE64.encode(&bytes)
}
