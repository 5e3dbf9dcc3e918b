//! Random sequences of requests.

mod deletions;

use serde_json::{Value, json};

use super::crds;
use super::dice::Dice;
use super::kinds::{self, Kind};
use super::request::{Body, Request};
use super::values::{content, metadata, overlay, spec, status};
use deletions::{delete, delete_collection, family, left, namespace_end};

/// How many requests a sequence has.
const LENGTH: usize = 30;

/// Few names, so that requests meet.
const NAMES: [&str; 3] = ["a", "b", "c"];

const MERGE: &str = "application/merge-patch+json";
const JSON_PATCH: &str = "application/json-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
const PARTIAL: &str = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";

/// The sequence of a seed.
pub fn sequence(seed: u64) -> Vec<Request> {
    let mut dice = Dice::new(seed);
    // A sequence is mostly about one or two kinds, so that its requests have to do with each other.
    let usual: Vec<&Kind> = (0..2).map(|_| dice.pick(kinds::all())).collect();
    let mut requests = Vec::new();
    for index in 0..LENGTH {
        let kind = if dice.chance(85) { *dice.pick(&usual) } else { dice.pick(kinds::all()) };
        requests.extend(match dice.below(100) {
            0..3 => left(&mut dice, kind, index),
            3..5 => namespace_end(&mut dice, index),
            5..7 => family(&mut dice, index),
            _ => vec![request(&mut dice, kind, index)],
        });
    }
    requests
}

fn request(dice: &mut Dice, kind: &Kind, index: usize) -> Request {
    let name = dice.word(&NAMES);
    match dice.below(100) {
        0..18 => create(dice, kind, name, index),
        18..23 => get(dice, kind, name),
        23..35 => put(dice, kind, name),
        35..46 => merge_patch(dice, kind, name),
        46..53 => json_patch(dice, kind, name),
        53..58 => strategic_patch(dice, kind, name),
        58..74 => apply(dice, kind, name),
        74..82 => delete(dice, kind, name, index),
        82..84 => delete_collection(dice, kind),
        84..91 => list(dice, kind),
        91..94 => odd(dice, kind, name),
        94..97 => scale(dice, name),
        _ => crds::request(dice),
    }
}

/// The parameters that every write takes.
fn options(dice: &mut Dice, mut request: Request) -> Request {
    if dice.chance(30) {
        request = request.with("fieldManager", dice.word(&["alice", "bob"]));
    }
    if dice.chance(12) {
        request = request.with("dryRun", if dice.chance(92) { "All" } else { "Some" });
    }
    if dice.chance(25) {
        request = request.with("fieldValidation", dice.word(&["Strict", "Strict", "Warn", "Ignore", "Odd"]));
    }
    request
}

fn object(dice: &mut Dice, kind: &Kind, name: &str) -> Value {
    let mut object = json!({ "apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata(dice) });
    object["metadata"]["name"] = kind.named(name).into();
    overlay(&mut object, &content(dice, kind));
    if kind.plural == "gadgets" && dice.chance(10) {
        object["status"] = status(dice);
    }
    if dice.chance(3) {
        overlay(&mut object, &dice.any(&json!([
            { "kind": "Other" }, { "kind": "" }, { "apiVersion": "v9" }, { "apiVersion": "" },
            { "spec": null }, { "spec": "text" }, { "spec": [] }, { "odd": 1 }, { "metadata": null }, { "metadata": "text" },
        ])));
    }
    object
}

fn create(dice: &mut Dice, kind: &Kind, name: &str, index: usize) -> Request {
    let mut object = object(dice, kind, name);
    if dice.chance(8) && object["metadata"].is_object() {
        object["metadata"]["generateName"] = format!("{}-", kind.named(&format!("gen{index}"))).into();
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.remove("name");
        }
    }
    if dice.chance(5) && object["metadata"].is_object() {
        let odd = json!([
            { "name": "Bad_Name" }, { "name": "" }, { "name": "a/b" }, { "name": "-x" }, { "name": "x.y" },
            { "name": "x".repeat(254) }, { "name": "x".repeat(64) }, { "namespace": "elsewhere" }, { "namespace": "{ns}" },
            { "resourceVersion": "5" }, { "name": 1 }, { "generateName": "Bad_" },
        ]);
        overlay(&mut object["metadata"], &dice.any(&odd));
    }
    options(dice, Request::new("POST", &kind.path, Body::Json(object)))
}

fn get(dice: &mut Dice, kind: &Kind, name: &str) -> Request {
    let mut request = Request::new("GET", kind.at(name), Body::None);
    if kind.custom && dice.chance(20) {
        request.path += dice.word(&["/status", "/scale", "/odd"]);
    }
    request.accept(dice.word(&["application/json", "application/json", TABLE, PARTIAL, "*/*"]))
}

fn put(dice: &mut Dice, kind: &Kind, name: &str) -> Request {
    let mut changes = json!({ "metadata": metadata(dice) });
    overlay(&mut changes, &content(dice, kind));
    if kind.custom && dice.chance(40) {
        changes["status"] = status(dice);
    }
    match dice.below(12) {
        0 => changes["metadata"]["resourceVersion"] = Value::Null,
        1 => changes["metadata"]["resourceVersion"] = format!("$first:{}", kind.key(name)).into(),
        2 => changes["metadata"]["managedFields"] = dice.any(&json!([[], [{}], null])),
        3 => overlay(&mut changes["metadata"], &dice.any(&json!([
            { "uid": "other" }, { "name": "other" }, { "name": null }, { "namespace": "other" }, { "resourceVersion": "x" },
            { "uid": null }, { "resourceVersion": "99999999" }, { "creationTimestamp": null }, { "generation": 99 },
        ]))),
        _ => {}
    }
    let body = if dice.chance(15) { Body::Json(object(dice, kind, name)) } else { Body::Last(kind.key(name), changes) };
    let mut request = Request::new("PUT", kind.at(name), body);
    if kind.plural == "gadgets" && dice.chance(30) {
        request.path += "/status";
    }
    options(dice, request)
}

/// Part of an object, some of it to be removed.
fn part(dice: &mut Dice, kind: &Kind) -> Value {
    let mut part = content(dice, kind);
    if dice.chance(50) {
        part["metadata"] = metadata(dice);
    }
    if dice.chance(25) {
        let removed = match kind.plural {
            "gadgets" => {
                let field = dice.word(&["size", "tags", "ports", "nested", "whole", "limits", "frozen", "extra"]);
                json!({ "spec": { field: null } })
            }
            _ => json!({ "data": dice.any(&json!([{ "k": null }, null])) }),
        };
        overlay(&mut part, &removed);
    }
    if dice.chance(10) {
        part["metadata"] = dice.any(&json!([
            { "finalizers": null }, { "labels": null }, { "labels": { "tier": null } }, { "name": "other" },
            { "resourceVersion": "1" }, { "managedFields": null }, { "managedFields": [{}] }, { "finalizers": [] },
            { "deletionTimestamp": null }, { "generation": 42 }, { "creationTimestamp": null }, null,
        ]));
    }
    part
}

fn merge_patch(dice: &mut Dice, kind: &Kind, name: &str) -> Request {
    let mut patch = part(dice, kind);
    let mut place = kind.at(name);
    if kind.custom && dice.chance(30) {
        patch["status"] = status(dice);
        place += "/status";
    }
    if dice.chance(4) {
        patch = dice.any(&json!([[], "text", 1, null, { "kind": "Other" }, { "apiVersion": "v9" }, {}]));
    }
    if kind.custom && dice.chance(6) {
        place = format!("{}/scale", kind.at(name));
        patch = dice.any(&json!([{ "spec": { "replicas": 5 } }, { "spec": { "replicas": "x" } }, { "spec": {} }]));
    }
    options(dice, Request::new("PATCH", place, Body::Json(patch)).media(MERGE))
}

fn json_patch(dice: &mut Dice, kind: &Kind, name: &str) -> Request {
    let own = match kind.plural {
        "gadgets" => json!([
            { "op": "replace", "path": "/spec/size", "value": 7 },
            { "op": "add", "path": "/spec/tags/-", "value": "new" },
            { "op": "remove", "path": "/spec/tags/0" },
            { "op": "add", "path": "/spec/ports", "value": [{ "port": 1 }] },
            { "op": "copy", "from": "/spec/size", "path": "/spec/low" },
            { "op": "move", "from": "/spec/low", "path": "/spec/high" },
            { "op": "test", "path": "/spec/size", "value": 3 },
            { "op": "remove", "path": "/spec/nested" },
        ]),
        _ => json!([
            { "op": "add", "path": "/data", "value": { "k": "MQ==" } },
            { "op": "replace", "path": "/data/k", "value": "Mg==" },
            { "op": "remove", "path": "/data/k" },
            { "op": "test", "path": "/data/k", "value": "1" },
            { "op": "move", "from": "/data/k", "path": "/data/z" },
        ]),
    };
    let common = json!([
        { "op": "add", "path": "/metadata/labels", "value": { "tier": "a" } },
        { "op": "add", "path": "/metadata/labels/tier", "value": "b" },
        { "op": "remove", "path": "/metadata/labels/tier" },
        { "op": "remove", "path": "/metadata/finalizers" },
        { "op": "remove", "path": "/metadata/finalizers/0" },
        { "op": "replace", "path": "/metadata/managedFields", "value": [{}] },
        { "op": "test", "path": "/metadata/resourceVersion", "value": format!("$rv:{}", kind.key(name)) },
        { "op": "replace", "path": "/metadata/name", "value": "z" },
        { "op": "odd", "path": "/metadata" },
        { "op": "add", "path": "metadata" },
        { "op": "remove", "path": "/nothing/here" },
        { "path": "/metadata" },
        { "op": "replace", "path": "/kind", "value": "Other" },
        { "op": "add", "path": "/metadata/annotations/example.com~1y", "value": "v" },
    ]);
    let mut patch: Vec<Value> = Vec::new();
    for _ in 0..=dice.below(3) {
        let operation = if dice.chance(60) { dice.any(&own) } else { dice.any(&common) };
        patch.push(operation);
    }
    let patch = if dice.chance(4) { dice.any(&json!([{}, [], "x", null, [1]])) } else { patch.into() };
    options(dice, Request::new("PATCH", kind.at(name), Body::Json(patch)).media(JSON_PATCH))
}

fn strategic_patch(dice: &mut Dice, kind: &Kind, name: &str) -> Request {
    let mut patch = part(dice, kind);
    if dice.chance(35) {
        patch = dice.any(&json!([
            { "data": { "$patch": "replace", "z": "MQ==" } },
            { "data": { "$patch": "delete" } },
            { "metadata": { "$deleteFromPrimitiveList/finalizers": ["example.com/hold"] } },
            { "metadata": { "finalizers": ["example.com/added"], "$setElementOrder/finalizers": ["example.com/added", "example.com/hold"] } },
            { "metadata": { "finalizers": ["example.com/added"] } },
            { "$patch": "replace", "metadata": { "labels": { "tier": "b" } } },
        ]));
    }
    options(dice, Request::new("PATCH", kind.at(name), Body::Json(patch)).media(STRATEGIC))
}

fn apply(dice: &mut Dice, kind: &Kind, name: &str) -> Request {
    let mut object = json!({
        "apiVersion": kind.api_version, "kind": kind.kind, "metadata": { "name": kind.named(name) },
    });
    if dice.chance(35) {
        overlay(&mut object["metadata"], &metadata(dice));
    }
    let mut path = kind.at(name);
    if kind.custom && dice.chance(20) {
        object["status"] = status(dice);
        path += "/status";
    } else {
        overlay(&mut object, &content(dice, kind));
    }
    if !kind.custom && !Dice::is_wide() {
        // What Kubernetes' own types make of null is stored in two ways.
        drop_nulls(&mut object);
    }
    if dice.chance(5) {
        overlay(
            &mut object,
            &dice.any(&json!([
                { "kind": "Other" }, { "apiVersion": "v9" }, { "metadata": { "name": "other" } }, { "metadata": {} },
                { "metadata": { "name": kind.named(name), "managedFields": [] } }, { "kind": null }, { "odd": 1 },
                { "metadata": { "name": kind.named(name), "uid": "x" } },
                { "metadata": { "name": kind.named(name), "resourceVersion": "1" } },
                { "metadata": { "name": kind.named(name), "resourceVersion": format!("$rv:{}", kind.key(name)) } },
            ])),
        );
    }
    let mut request = Request::new("PATCH", path, Body::Json(object)).media(APPLY);
    if dice.chance(97) {
        request = request.with("fieldManager", dice.word(&["alice", "bob", "carol"]));
    }
    if dice.chance(40) {
        request = request.with("force", dice.word(&["true", "true", "true", "false", "odd"]));
    }
    if dice.chance(10) {
        request = request.with("dryRun", "All");
    }
    if dice.chance(15) {
        request = request.with("fieldValidation", dice.word(&["Strict", "Warn", "Ignore"]));
    }
    request
}

/// The scale of a gadget.
fn scale(dice: &mut Dice, name: &str) -> Request {
    let kind = &kinds::all()[2 + dice.below(2)];
    let path = format!("{}/scale", kind.at(name));
    match dice.below(4) {
        0 => Request::new("GET", path, Body::None),
        1 => {
            let replicas = dice.any(&json!([0, 1, 3, -1]));
            let operations = json!([{ "op": "add", "path": "/spec/replicas", "value": replicas }]);
            options(dice, Request::new("PATCH", path, Body::Json(operations)).media(JSON_PATCH))
        }
        2 => {
            let replicas = dice.any(&json!([0, 1, 3, -1, null]));
            options(
                dice,
                Request::new("PATCH", path, Body::Json(json!({ "spec": { "replicas": replicas } }))).media(MERGE),
            )
        }
        _ => {
            let mut object = json!({
                "apiVersion": "autoscaling/v1", "kind": "Scale",
                "metadata": { "name": name }, "spec": { "replicas": dice.any(&json!([0, 1, 4, -1])) },
            });
            if dice.chance(30) {
                object["metadata"]["resourceVersion"] =
                    format!("{}{}", dice.word(&["$rv:", "$first:"]), kind.key(name)).into();
            }
            options(dice, Request::new("PUT", path, Body::Json(object)))
        }
    }
}

fn drop_nulls(value: &mut Value) {
    if let Value::Object(map) = value {
        map.retain(|_, value| !value.is_null());
        map.values_mut().for_each(drop_nulls);
    }
}

fn list(dice: &mut Dice, kind: &Kind) -> Request {
    let mut request = Request::new("GET", &kind.path, Body::None);
    if kind.plural == "namespaces" {
        request = request.with("fieldSelector", format!("metadata.name={}", kind.named(dice.word(&NAMES))));
    } else {
        if dice.chance(50) {
            request = request.with(
                "labelSelector",
                dice.word(&[
                    "tier=a",
                    "tier!=a",
                    "tier in (a,b)",
                    "tier notin (a)",
                    "!tier",
                    "tier",
                    "tier=a,app=x",
                    "app in (x",
                    "tier==a",
                    "tier>1",
                    "a b",
                    "app=",
                    "=a",
                    "tier in ()",
                    "tier=not valid",
                ]),
            );
        }
        if dice.chance(30) {
            request = request.with(
                "fieldSelector",
                dice.word(&[
                    "metadata.name=a",
                    "metadata.name!=a",
                    "metadata.namespace={ns}",
                    "spec.color=red",
                    "type=Opaque",
                    "odd=1",
                    "metadata.name=a,metadata.name=b",
                    "metadata.name",
                    "metadata.name==b",
                    "spec.color!=red",
                    "immutable=true",
                ]),
            );
        }
        if dice.chance(40) && kind.plural != "configmaps" {
            request = request.with("limit", dice.word(&["1", "2", "x", "-1", "0"]));
            request.pages = true;
            if dice.chance(40) {
                let name = dice.word(&NAMES);
                let between = if dice.chance(50) {
                    Request::new("DELETE", kind.at(name), Body::None)
                } else {
                    create(dice, kind, name, 77)
                };
                request.between = Some(Box::new(between));
            }
        }
    }
    if dice.chance(12) {
        let revision = ["0", "x", "-1", "$rv:configmaps/a", "$rv:secrets/a", "$rv:gadgets/a"];
        request = request.with("resourceVersion", dice.word(&revision));
        if dice.chance(60) {
            request = request.with("resourceVersionMatch", dice.word(&["Exact", "NotOlderThan", "Odd"]));
        }
    }
    request.accept(dice.word(&["application/json", "application/json", "application/json", TABLE, PARTIAL]))
}

/// What no client means to send.
fn odd(dice: &mut Dice, kind: &Kind, name: &str) -> Request {
    let text = |text: &str| Body::Text(text.to_owned());
    let whole = object(dice, kind, name);
    let at = kind.at(name);
    match if Dice::is_wide() { dice.below(24) } else { 10 + dice.below(14) } {
        0 => Request::new("POST", &kind.path, text("")),
        1 => Request::new("POST", &kind.path, text("{")),
        2 => Request::new("POST", &kind.path, text("[]")),
        3 => Request::new("POST", &kind.path, text("null")),
        4 => Request::new("POST", &kind.path, text("no json at all")),
        5 => Request::new("POST", &kind.path, text("{}")),
        6 => Request::new("POST", &kind.path, Body::Json(whole)).media("text/plain"),
        7 => Request::new("POST", &kind.path, Body::Json(whole)).media("application/xml"),
        8 => Request::new("POST", &kind.path, Body::Json(whole)).accept("text/html"),
        9 => Request::new("GET", at, Body::None).accept("application/xml"),
        10 => Request::new("POST", at, Body::Json(whole)),
        11 => Request::new("PUT", &kind.path, Body::Json(whole)),
        12 => Request::new("PATCH", at, text("{")).media(MERGE),
        13 => Request::new("PATCH", at, text("{")).media(JSON_PATCH),
        14 => Request::new("PATCH", at, text("a: [")).media(APPLY).with("fieldManager", "m"),
        15 => Request::new("PATCH", at, Body::Json(whole)).media("application/json"),
        16 => Request::new("DELETE", kind.at("none"), text("{")),
        17 => Request::new("POST", &kind.path, Body::Long(3_500_000)),
        18 => {
            let kind_line = format!(
                "apiVersion: {}\nkind: {}\nmetadata:\n  name: {}\n",
                kind.api_version,
                kind.kind,
                kind.named("yaml")
            );
            Request::new("POST", &kind.path, text(&kind_line)).media("application/yaml")
        }
        19 => {
            let twice = format!(
                r#"{{"apiVersion":"{}","kind":"{}","metadata":{{"name":"{name}","name":"{name}"}},"data":{{"a":"MQ==","a":"MQ=="}},"spec":{{"size":3,"size":4}}}}"#,
                kind.api_version,
                kind.kind,
                name = kind.named("twice")
            );
            options(dice, Request::new("POST", &kind.path, text(&twice)))
        }
        20 => Request::new("GET", format!("{}s", kind.path), Body::None),
        21 => Request::new("PUT", format!("{at}/odd"), Body::Json(whole)),
        22 => Request::new("PATCH", at, Body::Json(json!({ "spec": spec(dice) })))
            .media(MERGE)
            .with("fieldManager", "x".repeat(129)),
        _ => Request::new("POST", &kind.path, Body::Json(whole)).with("fieldManager", "bad\nname"),
    }
}
