//! Random contents of objects, mostly good.

use serde_json::{Value, json};

use super::dice::Dice;
use super::kinds::Kind;

/// Labels, annotations and finalizers.
pub fn metadata(dice: &mut Dice) -> Value {
    let mut metadata = json!({});
    if dice.chance(50) {
        metadata["labels"] = dice.some(60, &[("tier", json!(["a", "b", "a"])), ("app", json!(["x", "y", ""]))]);
    }
    if dice.chance(25) {
        metadata["annotations"] = dice.some(70, &[("note", json!(["one", "two"])), ("example.com/x", json!(["{}"]))]);
    }
    if dice.chance(20) {
        metadata["finalizers"] = dice.any(&json!([["example.com/hold"], ["example.com/hold", "example.com/more"], []]));
    }
    if dice.chance(7) {
        metadata["ownerReferences"] = owners(dice);
    }
    if dice.chance(6) {
        let odd = json!([
            { "labels": { "bad key": "x" } },
            { "labels": { "tier": "not valid!" } },
            { "annotations": { "a/b/c": "x" } },
            { "finalizers": ["Bad Name/x"] },
            { "labels": "text" },
            { "labels": { "tier": 1 } },
            { "annotations": { "note": null } },
            { "generation": 7 },
            { "creationTimestamp": "2001-01-01T00:00:00Z" },
            { "creationTimestamp": "yesterday" },
            { "deletionTimestamp": "2001-01-01T00:00:00Z" },
            { "deletionGracePeriodSeconds": 10 },
            { "selfLink": "/a/b" },
            { "uid": "mine" },
            { "unknown": 1 },
            { "managedFields": [{}] },
            { "generateName": "x-" },
            { "finalizers": ["no-slash"] },
            { "finalizers": ["orphan", "foregroundDeletion"] },
            { "managedFields": [{ "manager": "m", "operation": "Bad" }] },
            { "managedFields": [{
                "manager": "m", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1",
                "fieldsV1": { "f:metadata": { "f:labels": { "f:app": {} } } },
            }] },
        ]);
        for (key, value) in dice.any(&odd).as_object().into_iter().flatten() {
            metadata[key] = value.clone();
        }
    }
    metadata
}

/// Owners that exist, and some that are refused.
fn owners(dice: &mut Dice) -> Value {
    let owner = |more: Value| {
        let mut owner =
            json!({ "apiVersion": "v1", "kind": "Namespace", "name": "{ns}", "uid": "$uid:namespaces/{ns}" });
        overlay(&mut owner, &more);
        owner
    };
    let plain = owner(json!({}));
    dice.any(&json!([
        [plain],
        [owner(json!({ "controller": true, "blockOwnerDeletion": true }))],
        [owner(json!({ "controller": false }))],
        [plain, plain],
        [owner(json!({ "controller": true })), owner(json!({ "controller": true, "uid": "other", "name": "other" }))],
        [{ "name": "n", "kind": "K" }],
        [owner(json!({ "name": "" }))],
        [owner(json!({ "kind": "Event" }))],
        [owner(json!({ "apiVersion": "a/b/c" }))],
        [owner(json!({ "odd": 1 }))],
        [],
    ]))
}

/// What an object of a kind holds beside metadata.
pub fn content(dice: &mut Dice, kind: &Kind) -> Value {
    match kind.plural {
        "configmaps" => config_map(dice),
        "secrets" => secret(dice),
        "gadgets" => json!({ "spec": spec(dice) }),
        _ => dice.some(15, &[("spec", json!([{}, { "finalizers": ["kubernetes"] }, { "finalizers": ["bad"] }]))]),
    }
}

fn config_map(dice: &mut Dice) -> Value {
    let data = json!([{ "k": "1" }, { "k": "2", "l": "3" }, { "l": "4" }, {}, { "k": "5", "m": "" }]);
    let mut content = dice.some(70, &[("data", data)]);
    if dice.chance(8) {
        content["binaryData"] = dice.any(&json!([{ "b": "AQID" }, { "k": "AQID" }, { "b": 1 }]));
    }
    if dice.chance(6) {
        content["immutable"] = dice.any(&json!([true, false]));
    }
    if dice.chance(8) {
        let odd = json!([
            { "data": { "k": 1 } }, { "data": { "bad key": "x" } }, { "data": "text" }, { "data": null },
            { "data": { "k": null } }, { "more": 1 }, { "immutable": "yes" }, { "data": [] }, { "Data": { "k": "v" } },
        ]);
        overlay(&mut content, &dice.any(&odd));
    }
    content
}

fn secret(dice: &mut Dice) -> Value {
    let data = json!([{ "k": "MQ==" }, { "k": "Mg==", "l": "Mw==" }, { "l": "" }, {}]);
    let mut content = dice.some(60, &[("data", data)]);
    if dice.chance(20) {
        content["stringData"] = dice.any(&json!([{ "k": "plain" }, { "s": "x" }, { "s": "" }]));
    }
    if dice.chance(15) {
        content["type"] = dice.any(&json!([
            "Opaque",
            "example.com/own",
            "kubernetes.io/tls",
            "kubernetes.io/basic-auth",
            "kubernetes.io/dockerconfigjson",
            "kubernetes.io/ssh-auth",
            "kubernetes.io/service-account-token",
            "",
        ]));
    }
    if dice.chance(5) {
        content["immutable"] = dice.any(&json!([true, false]));
    }
    if dice.chance(6) {
        let odd = json!([
            { "data": { "bad key": "MQ==" } }, { "data": 1 }, { "stringData": { "k": 1 } },
            { "more": {} }, { "data": { "k": null } }, { "type": 3 },
        ]);
        overlay(&mut content, &dice.any(&odd));
    }
    content
}

/// The spec of a gadget.
pub fn spec(dice: &mut Dice) -> Value {
    let good = [
        ("size", json!([3, 4, 5, 50])),
        ("replicas", json!([0, 1, 2])),
        ("low", json!([1, 5])),
        ("high", json!([3, 9])),
        ("color", json!(["red", "green", "blue"])),
        ("ratio", json!([0.5, 1, 2.5, 3.0])),
        ("word", json!(["ab", "word"])),
        ("on", json!([true, false])),
        ("when", json!(["2024-01-02T03:04:05Z", "2024-01-02T03:04:05+01:00"])),
        ("address", json!(["10.0.0.1"])),
        ("blob", json!(["AQID", ""])),
        ("target", json!([80, "http", "80%"])),
        ("extra", json!([{ "known": 1, "more": { "deep": [1, "x"] } }, { "x": null }, {}])),
        ("template", json!([{ "apiVersion": "v1", "kind": "Thing", "metadata": { "name": "t" }, "x": 1 }])),
        ("tags", json!([["a"], ["a", "b"], ["c", "b"], []])),
        (
            "ports",
            json!([
                [{ "port": 80 }], [{ "port": 80, "name": "web" }, { "port": 80, "protocol": "UDP" }],
                [{ "port": 81, "hosts": ["x", "y"] }, { "port": 80, "name": "w" }], [],
            ]),
        ),
        ("steps", json!([[{ "run": "x" }], [{ "run": "x", "times": 2 }, {}], []])),
        ("limits", json!([{ "cpu": 1 }, { "cpu": 2, "memory": 3 }, {}])),
        ("whole", json!([{ "a": "1" }, { "a": "1", "b": "2" }, { "b": "3" }, {}])),
        ("nested", json!([{}, { "mode": "x" }, { "note": null }, { "deep": { "key": "k" } }, { "note": "n" }])),
        ("frozen", json!(["one", "one", "two"])),
        ("either", json!([{ "a": "x" }, { "b": 1 }])),
    ];
    let mut spec = dice.some(22, &good);
    if dice.chance(25) {
        overlay(&mut spec, &dice.line(include_str!("specs.jsonl")));
    }
    spec
}

/// The status of a gadget.
pub fn status(dice: &mut Dice) -> Value {
    dice.some(
        60,
        &[
            ("phase", json!(["Ready", "Waiting", "Ready", "Odd", 1])),
            ("replicas", json!([1, 2, 1, 2, "x", -1])),
            (
                "conditions",
                json!([
                    [{ "type": "A", "status": "True" }],
                    [{ "type": "A", "status": "False", "reason": "R" }, { "type": "B", "status": "True" }],
                    [{ "type": "A" }],
                    [{ "type": "A", "status": "x" }, { "type": "A", "status": "y" }],
                    [],
                ]),
            ),
            ("unknown", json!([1])),
        ],
    )
}

/// Lays the fields of one object over those of another.
pub fn overlay(below: &mut Value, above: &Value) {
    for (key, value) in above.as_object().into_iter().flatten() {
        below[key] = value.clone();
    }
}
