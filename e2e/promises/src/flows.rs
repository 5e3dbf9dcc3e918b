//! The flows: every kind of rule that a PublishedResource can have is in one of them.

mod content;
mod rest;
mod shared;

use carrick_client::Resource;
use carrick_e2e_stage::fixtures;
use serde_json::{Value, json};

use super::deed::Beside::{Copy, Order as Consumer};
use super::deed::Deed::{Cancel, Change, Order, Put, PutStatus, Remove, Report, Touch};
use super::deed::Team::{A, B};
use super::flow::{Flow, Step, step};
use super::state::State;

pub use content::{closed, large};
pub use rest::{drift_reported, drift_reverted, paused};
pub use shared::{both_ways, razed, upheavals};

/// What is planted in Secrets, and must never be seen elsewhere.
pub const PLANTED: &str = "plAnted-hunter2-5eCret";

/// All flows.
pub fn all() -> Vec<Flow> {
    vec![
        plain(),
        projected(),
        mutated(),
        converted(),
        secret_up(),
        map_down(),
        selected_up(),
        status_down(),
        filtered(),
        cluster_wide(),
        held(),
        closed(),
        razed(),
        drift_reported(),
        drift_reverted(),
        paused(),
        drift_reverted().applied("drift_reverted_applied"),
        plain().applied("plain_applied"),
        secret_up().applied("secret_up_applied"),
        map_down().applied("map_down_applied"),
        closed().applied("closed_applied"),
    ]
}

/// Two consumers, default names.
pub fn plain() -> Flow {
    let order = |size: i64| json!({ "spec": { "region": "eu", "size": size } });
    Flow::of_buckets(
        "plain",
        vec![
            step("two orders", vec![Order(A, "one", order(1)), Order(B, "one", order(7))], |s| {
                s.copy("team-a", "one")["spec"]["size"] == 1 && s.copy("team-b", "one")["spec"]["size"] == 7
            }),
            step("a status", vec![Report(A, "one", json!({ "url": "here", "count": 3 }))], |s| {
                source(s)["status"] == json!({ "url": "here", "count": 3 })
            }),
            step(
                "a change",
                vec![Change(
                    A,
                    "one",
                    json!({ "spec": { "region": null, "size": 2 }, "metadata": { "labels": { "tier": "gold" } } }),
                )],
                |s| {
                    let copy = s.copy("team-a", "one");
                    copy["spec"] == json!({ "size": 2 }) && copy["metadata"]["labels"]["tier"] == "gold"
                },
            ),
            step("the way back", vec![Change(A, "one", json!({ "spec": { "region": "eu", "size": 1 } }))], |s| {
                s.copy("team-a", "one")["spec"] == json!({ "region": "eu", "size": 1 })
            }),
            step("one end", vec![Cancel(A, "one")], |s| {
                source(s).is_null() && s.copy("team-a", "one").is_null() && !s.copy("team-b", "one").is_null()
            }),
            step("the other end", vec![Cancel(B, "one")], nothing),
        ],
    )
}

/// The shortest flow that has everything.
pub fn short() -> Flow {
    Flow::of_buckets("short", simple_steps())
}

/// An order that returns to exactly what it was before: then content alone no longer tells an early write from a late one.
pub fn there_and_back() -> Flow {
    let order = |size: i64| json!({ "spec": { "region": "eu", "size": size } });
    let is = |size: i64| json!({ "spec": { "size": size } });
    Flow::of_buckets(
        "there_and_back",
        vec![
            step("an order", vec![Order(A, "one", order(1))], placed),
            step("there", vec![Change(A, "one", is(2))], |s| s.copy("team-a", "one")["spec"]["size"] == 2),
            step("and back", vec![Change(A, "one", is(1))], |s| s.copy("team-a", "one")["spec"]["size"] == 1),
            step("the end", vec![Cancel(A, "one")], nothing),
        ],
    )
}

/// Other names for kind, copies and namespaces, and workspace paths.
fn projected() -> Flow {
    Flow {
        source: |stage| Resource::namespaced(&format!("shop.{}", stage.group), "v1beta1", "Volume", "volumes"),
        rules: |stage| {
            json!({
                "projection": { "group": format!("shop.{}", stage.group), "kind": "Volume", "versions": { "v1": "v1beta1" } },
                "enableWorkspacePaths": true,
                "naming": {
                    "name": "{{ .ClusterPath | replace \":\" \"-\" }}-{{ .Object.metadata.name }}",
                    "namespace": "for-{{ .ClusterName }}",
                },
            })
        },
        ..Flow::of_buckets("projected", simple_steps())
    }
}

/// Mutations of every sort, in both directions.
fn mutated() -> Flow {
    Flow {
        rules: |_| {
            json!({ "mutation": {
                "spec": [
                    { "regex": { "path": "spec.region", "pattern": "^", "replacement": "zone-" } },
                    { "cel": { "path": "spec.size", "expression": "self.spec.size * 10" } },
                ],
                "status": [{ "template": { "path": "status.url", "template": "https://{{ .Value }}" } }],
            }})
        },
        verbatim: false,
        first: json!({ "spec": { "region": "x", "size": 0 } }),
        ..Flow::of_buckets(
            "mutated",
            vec![
                step("an order", vec![Order(A, "one", json!({ "spec": { "region": "eu", "size": 1 } }))], |s| {
                    s.copy("team-a", "one")["spec"] == json!({ "region": "zone-eu", "size": 10 })
                }),
                step("a status", vec![Report(A, "one", json!({ "url": "here" }))], |s| {
                    source(s)["status"]["url"] == "https://here"
                }),
                step("a change", vec![Change(A, "one", json!({ "spec": { "region": "us", "size": 2 } }))], |s| {
                    s.copy("team-a", "one")["spec"] == json!({ "region": "zone-us", "size": 20 })
                }),
                step("the end", vec![Cancel(A, "one")], nothing),
            ],
        )
    }
}

/// Consumers use a version that the service cluster does not have.
fn converted() -> Flow {
    Flow {
        source: |stage| Resource::namespaced(&stage.group, "v2", "Bucket", "buckets"),
        rules: |_| json!({ "conversion": conversion() }),
        verbatim: false,
        first: json!({ "spec": { "capacity": { "size": 0 } } }),
        ..Flow::of_buckets(
            "converted",
            vec![
                step(
                    "two orders",
                    vec![
                        Order(
                            A,
                            "one",
                            json!({ "spec": { "capacity": { "size": 1 }, "region": "eu", "color": "blue" } }),
                        ),
                        Order(B, "one", json!({ "spec": { "capacity": { "size": 7 } } })),
                    ],
                    |s| {
                        s.copy("team-a", "one")["spec"] == json!({ "size": 1, "region": "EU" })
                            && s.copy("team-b", "one")["spec"] == json!({ "size": 7 })
                    },
                ),
                step("a status", vec![Report(A, "one", json!({ "phase": "here" }))], |s| {
                    source(s)["status"] == json!({ "state": "here" })
                }),
                step(
                    "a change",
                    vec![Change(A, "one", json!({ "spec": { "capacity": null, "region": "us" } }))],
                    |s| s.copy("team-a", "one")["spec"] == json!({ "region": "US" }),
                ),
                step("the end", vec![Cancel(A, "one"), Cancel(B, "one")], nothing),
            ],
        )
    }
}

/// v2 has `capacity.size` for `size`, regions in small letters, a color, and a `state` for the `phase`.
fn conversion() -> Value {
    let spec = json!({
        "capacity": { "type": "object", "properties": { "size": { "type": "integer" } } },
        "region": { "type": "string" },
        "color": { "type": "string" },
    });
    let status = json!({ "type": "object", "properties": { "state": { "type": "string" } } });
    let properties = json!({ "spec": { "type": "object", "properties": spec }, "status": status });
    let schema = json!({ "openAPIV3Schema": { "type": "object", "properties": properties } });
    let moved = |from: &str, to: &str| json!({ "move": { "from": from, "to": to } });
    let letters = |function: &str| {
        let expression = format!("self.spec.region.{function}()");
        json!({ "when": "has(self.spec) && has(self.spec.region)", "cel": { "path": "spec.region", "expression": expression } })
    };
    json!({
        "versions": [
            { "name": "v2", "storage": true, "subresources": { "status": {} }, "schema": schema },
            { "name": "v1", "served": false },
        ],
        "rules": [
            { "from": "v2", "to": "v1", "preserve": ["spec.color"], "steps": [
                moved("spec.capacity.size", "spec.size"), letters("upperAscii"), moved("status.state", "status.phase"),
            ] },
            { "from": "v1", "to": "v2", "steps": [
                moved("spec.size", "spec.capacity.size"), letters("lowerAscii"), moved("status.phase", "status.state"),
            ] },
        ],
    })
}

/// A Secret of the service that the consumer gets, and that goes with the order.
pub fn secret_up() -> Flow {
    Flow {
        rules: |_| {
            json!({ "naming": beside_names(), "related": [{
                "identifier": "credentials",
                "origin": "service",
                "version": "v1",
                "resource": "secrets",
                "cleanup": true,
                "object": { "template": { "template": "{{ .Object.metadata.name }}-credentials" } },
                "watch": { "bySelector": {} },
            }]})
        },
        related: &["secrets"],
        ..Flow::of_buckets(
            "secret_up",
            vec![
                step("an order", vec![Order(A, "one", json!({ "spec": { "size": 1 } }))], placed),
                step("its Secret", vec![Put(Copy(A), "secrets", "one-credentials", secret("1"))], |s| {
                    s.at("team-a secrets default/one-credentials")["data"]["password"] == encoded("1")
                }),
                step(
                    "another password",
                    vec![
                        Put(Copy(A), "secrets", "one-credentials", secret("2")),
                        Change(A, "one", json!({ "spec": { "size": 2 } })),
                    ],
                    |s| s.at("team-a secrets default/one-credentials")["data"]["password"] == encoded("2"),
                ),
                step("the end", vec![Cancel(A, "one")], |s| {
                    nothing(s)
                        && s.at("team-a secrets default/one-credentials").is_null()
                        && !s.at("service secrets team-a/one-credentials").is_null()
                }),
            ],
        )
    }
}

/// A ConfigMap and a Secret of the consumer that the service gets.
pub fn map_down() -> Flow {
    Flow {
        rules: |_| {
            let from_kcp = |identifier: &str, resource: &str| {
                json!({
                    "identifier": identifier,
                    "origin": "kcp",
                    "version": "v1",
                    "resource": resource,
                    "cleanup": true,
                    "object": { "template": { "template": format!("{{{{ .Object.metadata.name }}}}-{identifier}") } },
                    "watch": { "bySelector": {} },
                })
            };
            let related = [from_kcp("settings", "configmaps"), from_kcp("keys", "secrets")];
            json!({ "naming": beside_names(), "related": related })
        },
        related: &["configmaps", "secrets"],
        ..Flow::of_buckets(
            "map_down",
            vec![
                step(
                    "an order with settings",
                    vec![
                        Put(Consumer(A), "configmaps", "one-settings", json!({ "data": { "color": "blue" } })),
                        Order(A, "one", json!({ "spec": { "size": 1 } })),
                    ],
                    |s| s.at("service configmaps team-a/one-settings")["data"]["color"] == "blue",
                ),
                step(
                    "other settings, and keys",
                    vec![
                        Put(Consumer(A), "configmaps", "one-settings", json!({ "data": { "color": "red" } })),
                        Put(Consumer(A), "secrets", "one-keys", secret("1")),
                    ],
                    |s| {
                        s.at("service configmaps team-a/one-settings")["data"]["color"] == "red"
                            && s.at("service secrets team-a/one-keys")["data"]["password"] == encoded("1")
                    },
                ),
                step("no settings", vec![Remove(Consumer(A), "configmaps", "one-settings")], |s| {
                    !s.has("configmaps default/one-settings") && !s.has("configmaps team-a/one-settings")
                }),
                step("the end", vec![Cancel(A, "one")], |s| {
                    nothing(s)
                        && s.at("service secrets team-a/one-keys").is_null()
                        && s.at("team-a secrets default/one-keys")["metadata"]["finalizers"].is_null()
                }),
            ],
        )
    }
}

/// Secrets of the service that are found by labels, get other names, and lose their copies with their labels.
fn selected_up() -> Flow {
    Flow {
        rules: |_| {
            json!({ "naming": beside_names(), "related": [{
                "identifier": "certificates",
                "origin": "service",
                "version": "v1",
                "resource": "secrets",
                "cleanupPolicy": "MatchOrigin",
                "object": { "selector": {
                    "matchLabels": { "for": "{{ .LocalObject.metadata.name }}" },
                    "rewrite": { "template": { "template": "my-{{ .Value }}" } },
                }},
                "watch": { "bySelector": {} },
            }]})
        },
        related: &["secrets"],
        ..Flow::of_buckets("selected_up", {
            let of = |text: &str, order: &str| {
                let mut secret = secret(text);
                secret["metadata"] = json!({ "labels": { "for": order } });
                secret
            };
            let (labelled, other) = (|text| of(text, "one"), |text| of(text, "nobody"));
            vec![
                step(
                    "orders and certificates",
                    vec![
                        Order(A, "one", json!({ "spec": { "size": 1 } })),
                        Put(Copy(A), "secrets", "first-cert", labelled("1")),
                        Put(Copy(A), "secrets", "second-cert", labelled("2")),
                        Put(Copy(A), "secrets", "other-cert", secret("3")),
                    ],
                    |s| {
                        s.at("team-a secrets default/my-first-cert")["data"]["password"] == encoded("1")
                            && s.at("team-a secrets default/my-second-cert")["data"]["password"] == encoded("2")
                    },
                ),
                step("a change", vec![Put(Copy(A), "secrets", "first-cert", labelled("4"))], |s| {
                    s.at("team-a secrets default/my-first-cert")["data"]["password"] == encoded("4")
                }),
                step(
                    "one of them is not meant any more",
                    vec![Put(Copy(A), "secrets", "first-cert", other("4"))],
                    |s| !s.has("default/my-first-cert") && s.has("default/my-second-cert"),
                ),
                step("the end", vec![Cancel(A, "one")], |s| nothing(s) && !s.has("default/my-second-cert")),
            ]
        })
    }
}

/// Objects of a kind of the same export that travel down with their status.
fn status_down() -> Flow {
    Flow {
        rules: |stage| {
            json!({ "naming": beside_names(), "related": [{
                "identifier": "gadget",
                "origin": "kcp",
                "group": stage.group,
                "version": "v1",
                "resource": "gadgets",
                "cleanup": true,
                "syncStatus": true,
                "object": { "template": { "template": "{{ .Object.metadata.name }}-gadget" } },
                "watch": { "bySelector": {} },
            }]})
        },
        related: &["gadgets"],
        has_gadgets: true,
        ..Flow::of_buckets(
            "status_down",
            vec![
                step(
                    "an order with a gadget",
                    vec![
                        Order(A, "one", json!({ "spec": { "size": 1 } })),
                        Put(Consumer(A), "gadgets", "one-gadget", json!({ "spec": { "size": 3 } })),
                    ],
                    |s| s.at("service gadgets team-a/one-gadget")["spec"]["size"] == 3,
                ),
                step(
                    "its status",
                    vec![PutStatus(Consumer(A), "gadgets", "one-gadget", json!({ "mood": "fine" }))],
                    |s| s.at("service gadgets team-a/one-gadget")["status"]["mood"] == "fine",
                ),
                step("the end", vec![Cancel(A, "one")], |s| {
                    nothing(s)
                        && s.at("service gadgets team-a/one-gadget").is_null()
                        && s.at("team-a gadgets default/one-gadget")["metadata"]["finalizers"].is_null()
                }),
            ],
        )
    }
}

/// Orders that are served only while they carry a label.
fn filtered() -> Flow {
    let label = |tier: Value| json!({ "metadata": { "labels": { "tier": tier } } });
    Flow {
        rules: |_| json!({ "filter": { "resource": { "matchLabels": { "tier": "gold" } } } }),
        first: json!({ "metadata": { "labels": { "tier": "gold" } }, "spec": { "size": 0 } }),
        // An order that is let go and then deleted before it is held again leaves its copy behind.
        patient: true,
        ..Flow::of_buckets(
            "filtered",
            vec![
                step(
                    "an order that matches and one that does not",
                    vec![
                        Order(B, "one", json!({ "spec": { "size": 7 } })),
                        Order(A, "one", json!({ "metadata": { "labels": { "tier": "gold" } }, "spec": { "size": 1 } })),
                    ],
                    // An order that is let go before it is remembered stays without a memory.
                    |s| {
                        s.has("obj-state-team-a")
                            && !s.copy("team-a", "one").is_null()
                            && s.copy("team-b", "one").is_null()
                    },
                ),
                step("the other one matches too", vec![Change(B, "one", label(json!("gold")))], |s| {
                    s.copy("team-b", "one")["spec"]["size"] == 7
                }),
                step("one does not match any more", vec![Change(A, "one", label(Value::Null))], |s| {
                    source(s)["metadata"]["finalizers"].is_null() && placed(s)
                }),
                step("it matches again", vec![Change(A, "one", label(json!("gold")))], |s| {
                    !source(s)["metadata"]["finalizers"].is_null() && placed(s)
                }),
                step("both end", vec![Cancel(A, "one"), Cancel(B, "one")], nothing),
            ],
        )
    }
}

/// A kind without namespaces.
fn cluster_wide() -> Flow {
    Flow {
        source: |stage| Resource::cluster_wide(&stage.group, "v1", "Bucket", "buckets"),
        copy: |stage| Resource::cluster_wide(&stage.group, "v1", "Bucket", "buckets"),
        crd: |stage| {
            let mut crd = fixtures::crd(&stage.group, "Bucket");
            crd["spec"]["scope"] = json!("Cluster");
            crd
        },
        rules: |_| json!({ "naming": { "name": "{{ .ClusterName }}-{{ .Object.metadata.name }}" } }),
        ..Flow::of_buckets("cluster_wide", simple_steps())
    }
}

/// A copy whose end the operator delays.
fn held() -> Flow {
    let hold = json!({ "metadata": { "finalizers": ["example.com/backup"] } });
    let free = json!({ "metadata": { "finalizers": null } });
    Flow::of_buckets(
        "held",
        vec![
            step("an order", vec![Order(A, "one", json!({ "spec": { "size": 1 } }))], placed),
            step("the operator holds the copy", vec![Touch(A, "one", hold)], |s| {
                !s.copy("team-a", "one")["metadata"]["finalizers"].is_null()
            }),
            step("it is cancelled", vec![Cancel(A, "one")], |s| {
                !source(s).is_null() && !s.copy("team-a", "one")["metadata"]["deletionTimestamp"].is_null()
            }),
            step("the operator lets it go", vec![Touch(A, "one", free)], nothing),
        ],
    )
}

/// What most orders go through.
fn simple_steps() -> Vec<Step> {
    vec![
        step("an order", vec![Order(A, "one", json!({ "spec": { "region": "eu", "size": 1 } }))], placed),
        step("a status", vec![Report(A, "one", json!({ "url": "here" }))], |s| source(s)["status"]["url"] == "here"),
        step("a change", vec![Change(A, "one", json!({ "spec": { "region": null, "size": 2 } }))], |s| {
            s.copy("team-a", "one")["spec"] == json!({ "size": 2 })
        }),
        step("the end", vec![Cancel(A, "one")], nothing),
    ]
}

/// Readable names for copies, in namespaces called after the consumers' clusters.
fn beside_names() -> Value {
    json!({ "name": "{{ .Object.metadata.name }}", "namespace": "{{ .ClusterName }}" })
}

/// The order of team A.
fn source(state: &State) -> &Value {
    let places = ["buckets default/one", "volumes default/one", "buckets /one"];
    let found = places.iter().map(|place| state.at(&format!("team-a {place}")));
    found.into_iter().find(|object| !object.is_null()).unwrap_or(&Value::Null)
}

fn placed(state: &State) -> bool {
    !state.copy("team-a", "one").is_null()
}

fn nothing(state: &State) -> bool {
    let gone = |team: &str| {
        state.copy(team, "one").is_null()
            && !["buckets default/one", "volumes default/one", "buckets /one"]
                .iter()
                .any(|place| state.has(&format!("{team} {place}")))
    };
    gone("team-a") && gone("team-b")
}

fn secret(number: &str) -> Value {
    json!({ "data": { "password": encoded(number) } })
}

/// A planted password as it is kept in Secrets.
fn encoded(number: &str) -> String {
    data_encoding::BASE64.encode(format!("{PLANTED}-{number}").as_bytes())
}
