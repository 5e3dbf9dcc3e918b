//! What others change of copies, and what rests.

use carrick_e2e_stage::stage::condition;
use carrick_syncagent::api::PAUSE;
use serde_json::json;

use super::{nothing, placed, source};
use crate::deed::Deed::{Cancel, Change, Order, Report, Touch};
use crate::deed::Team::A;
use crate::flow::{Flow, step};
use crate::state::State;

fn order() -> crate::deed::Deed {
    Order(A, "one", json!({ "spec": { "region": "eu", "size": 1 } }))
}

fn is(state: &State, region: &str, size: i64) -> bool {
    state.copy("team-a", "one")["spec"] == json!({ "region": region, "size": size })
}

/// Somebody edits a copy, and that is reported: it stays, until the order changes the same field.
pub fn drift_reported() -> Flow {
    Flow {
        rules: |_| json!({ "drift": { "policy": "Report" } }),
        verbatim: false,
        // An edit counts as stored that the agent has not seen when it writes the copy the next time, or the first time.
        patient: true,
        ..Flow::of_buckets(
            "drift_reported",
            vec![
                step("an order", vec![order()], noted),
                step("an edit of the copy", vec![Touch(A, "one", json!({ "spec": { "size": 7 } }))], |s| {
                    is(s, "eu", 7) && is_reported(s)
                }),
                step("another field", vec![Change(A, "one", json!({ "spec": { "region": "us" } }))], |s| {
                    is(s, "us", 7)
                }),
                step("the same field", vec![Change(A, "one", json!({ "spec": { "size": 3 } }))], |s| is(s, "us", 3)),
                step("the end", vec![Cancel(A, "one")], nothing),
            ],
        )
    }
}

/// Somebody edits a copy, and that is set back.
pub fn drift_reverted() -> Flow {
    Flow {
        rules: |_| json!({ "drift": { "policy": "Revert" } }),
        // What somebody else writes is no spec of the order.
        verbatim: false,
        // An edit counts as stored that comes before the agent has noted what the server stored.
        patient: true,
        ..Flow::of_buckets(
            "drift_reverted",
            vec![
                step("an order", vec![order()], noted),
                step("an edit of the copy", vec![Touch(A, "one", json!({ "spec": { "size": 7 } }))], |s| {
                    is(s, "eu", 1)
                }),
                step("a field goes", vec![Touch(A, "one", json!({ "spec": { "region": null } }))], |s| is(s, "eu", 1)),
                step("the order changes", vec![Change(A, "one", json!({ "spec": { "size": 3 } }))], |s| is(s, "eu", 3)),
                step("the end", vec![Cancel(A, "one")], nothing),
            ],
        )
    }
}

/// Whether the copy is there, and the agent has noted what the server stored of it.
fn noted(state: &State) -> bool {
    let holds_note = |place: &str| {
        let data = state.at(place)["data"].as_object();
        place.contains("/obj-state-") && data.is_some_and(|data| data.keys().any(|key| key.contains(".seen")))
    };
    placed(state) && state.places().any(holds_note)
}

/// Whether the PublishedResource says that a copy has drifted.
fn is_reported(state: &State) -> bool {
    let published = state.places().find(|place| place.starts_with("service publishedresources "));
    published.is_some_and(|place| condition(state.at(place), "DriftFree")["status"] == "False")
}

/// An order rests, whole or in part, and goes on.
pub fn paused() -> Flow {
    let pause = |value: serde_json::Value| Touch(A, "one", json!({ "metadata": { "annotations": { PAUSE: value } } }));
    Flow {
        rules: |_| json!({ "drift": { "policy": "Revert" } }),
        verbatim: false,
        patient: true,
        ..Flow::of_buckets(
            "paused",
            vec![
                step("an order", vec![order()], placed),
                step("its spec rests", vec![pause(json!("Spec; because=ticket 7"))], |s| {
                    rests(s, "Spec; because=ticket 7")
                }),
                // A status is written for the version of the order that the agent has seen. So the change was seen before the edit, which is drift
                // of nothing then: the other way round it would be reported.
                step(
                    "a change and a status",
                    vec![
                        Change(A, "one", json!({ "spec": { "size": 2 } })),
                        Report(A, "one", json!({ "url": "here" })),
                    ],
                    |s| is(s, "eu", 1) && source(s)["status"]["url"] == "here",
                ),
                step("an edit", vec![Touch(A, "one", json!({ "spec": { "region": "us" } }))], |s| is(s, "us", 1)),
                step("its status rests", vec![pause(json!("Status"))], |s| is(s, "eu", 2)),
                step(
                    "another status",
                    vec![
                        Report(A, "one", json!({ "url": "there" })),
                        Change(A, "one", json!({ "spec": { "size": 3 } })),
                    ],
                    |s| is(s, "eu", 3) && source(s)["status"]["url"] == "here",
                ),
                step("all rests", vec![pause(json!("All"))], |s| rests(s, "All")),
                step("the end waits", vec![Cancel(A, "one")], |s| {
                    source(s)["metadata"]["deletionTimestamp"].is_string() && is(s, "eu", 3)
                }),
                step("and comes", vec![pause(serde_json::Value::Null)], nothing),
            ],
        )
    }
}

/// Whether the copy says that it rests.
fn rests(state: &State, value: &str) -> bool {
    state.copy("team-a", "one")["metadata"]["annotations"][PAUSE] == value
}
