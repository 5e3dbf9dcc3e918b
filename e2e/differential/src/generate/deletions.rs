//! Deletions: of one object, of many, of owners and of namespaces.

use serde_json::{Value, json};

use super::{APPLY, MERGE};
use crate::dice::Dice;
use crate::kinds::{self, Kind};
use crate::request::{Body, Request, When};
use crate::values::overlay;

pub(super) fn delete(dice: &mut Dice, kind: &Kind, name: &str, index: usize) -> Request {
    let key = kind.key(name);
    let options = match dice.below(10) {
        0 => json!({ "preconditions": { "uid": format!("$uid:{key}") } }),
        1 => json!({ "preconditions": { "uid": "other" } }),
        2 => json!({ "preconditions": { "resourceVersion": format!("$rv:{key}") } }),
        3 => json!({ "preconditions": { "resourceVersion": format!("$first:{key}") } }),
        4 => dice.any(&json!([
            { "dryRun": ["All"] }, { "propagationPolicy": "Odd" }, { "orphanDependents": true, "propagationPolicy": "Orphan" },
            { "gracePeriodSeconds": 5 }, { "kind": "Other", "apiVersion": "v1" }, { "gracePeriodSeconds": -1 }, { "odd": 1 },
            { "kind": "DeleteOptions", "apiVersion": "v1" }, { "dryRun": ["Odd"] }, { "propagationPolicy": "Background" },
        ])),
        _ => Value::Null,
    };
    let body = if options.is_null() { Body::None } else { Body::Json(options) };
    // What waits for a collector may go at any moment where there is one: nothing else is done with those.
    if kind.plural == "namespaces" || dice.chance(4) {
        let name = format!("none-{index}");
        return Request::new("DELETE", kind.at(&name), body);
    }
    let mut request = Request::new("DELETE", kind.at(name), body);
    if dice.chance(5) {
        request = request.with("dryRun", "All");
    }
    if dice.chance(5) {
        request = request.with("gracePeriodSeconds", dice.word(&["0", "7", "x"]));
    }
    if dice.chance(3) {
        request = request.with("propagationPolicy", dice.word(&["Background", "Odd"]));
    }
    request
}

/// A policy of deletion, in the body or in the query.
fn policy(dice: &mut Dice, path: String) -> Request {
    if dice.chance(60) {
        let options = dice.any(&json!([
            { "propagationPolicy": "Foreground" }, { "propagationPolicy": "Orphan" }, { "propagationPolicy": "Background" },
            { "orphanDependents": true }, { "orphanDependents": false }, {}, { "gracePeriodSeconds": 0 },
        ]));
        return Request::new("DELETE", path, Body::Json(options));
    }
    let request = Request::new("DELETE", path, Body::None);
    match dice.word(&["Foreground", "Orphan", "Background", ""]) {
        "" => request,
        policy => request.with("propagationPolicy", policy),
    }
}

/// Deletes an object of its own, which a collector may then end at any moment: only what deletion answers is compared.
pub(super) fn left(dice: &mut Dice, kind: &Kind, index: usize) -> Vec<Request> {
    let kind = if kind.plural == "namespaces" { &kinds::all()[0] } else { kind };
    let path = kind.path.replace("{ns}", "{ns}-left");
    let name = format!("left-{index}");
    let mut object = json!({ "apiVersion": kind.api_version, "kind": kind.kind, "metadata": { "name": name } });
    if kind.custom {
        object["spec"] = json!({});
    }
    let finalizers = json!([
        null,
        ["example.com/hold"],
        ["orphan"],
        ["foregroundDeletion"],
        ["foregroundDeletion", "example.com/hold"],
        ["orphan", "example.com/hold"],
    ]);
    object["metadata"]["finalizers"] = dice.any(&finalizers);
    let mut delete = policy(dice, format!("{path}/{name}"));
    if dice.chance(20) {
        delete = delete.with("dryRun", "All");
    }
    vec![Request::new("POST", path, Body::Json(object)), delete]
}

/// Deletes a namespace that something keeps from ending, and asks for more in it.
pub(super) fn namespace_end(dice: &mut Dice, index: usize) -> Vec<Request> {
    let name = format!("{{ns}}-end-{index}");
    let path = format!("/api/v1/namespaces/{name}");
    let inside = |name: &str, finalizers: Value| json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name, "finalizers": finalizers } });
    let post = |path: &str, object: Value| Request::new("POST", path, Body::Json(object));
    let maps = format!("{path}/configmaps");
    let gadgets = format!("/apis/{}/v1/namespaces/{name}/gadgets", kinds::GROUP);
    let mut requests = vec![
        post("/api/v1/namespaces", json!({ "metadata": { "name": name } })),
        post(&maps, inside("held", json!(["example.com/hold"]))),
        post(&maps, inside("free", json!(null))),
    ];
    let delete = match dice.below(3) {
        0 => Request::new("DELETE", &path, Body::None),
        1 => Request::new("DELETE", &path, Body::Json(json!({ "propagationPolicy": "Background" }))),
        _ => Request::new(
            "DELETE",
            &path,
            Body::Json(json!({ "preconditions": { "uid": format!("$uid:namespaces/{name}") } })),
        ),
    };
    requests.push(delete);
    requests.push(post(&maps, inside("probe", json!(null))).with("dryRun", "All").when(When::Refused));
    let gadget = json!({
        "apiVersion": format!("{}/v1", kinds::GROUP), "kind": "Gadget", "metadata": { "name": "late" }, "spec": {},
    });
    requests.push(match dice.below(4) {
        0 => post(&maps, inside("late", json!(null))),
        1 => post(&maps, inside("late", json!(null))).with("dryRun", "All"),
        2 => post(&gadgets, gadget),
        _ => Request::new("PATCH", format!("{maps}/late"), Body::Json(inside("late", json!([]))))
            .media(APPLY)
            .with("fieldManager", "m"),
    });
    let release =
        Request::new("PATCH", format!("{maps}/held"), Body::Json(json!({ "metadata": { "finalizers": null } })));
    requests.push(release.media(MERGE).when(When::Never));
    requests.push(Request::new("GET", path, Body::None).when(When::Gone));
    requests
}

/// Owners and what depends on them, and what is left when an owner is deleted.
pub(super) fn family(dice: &mut Dice, index: usize) -> Vec<Request> {
    let maps = "/api/v1/namespaces/{ns}-left/configmaps";
    let (first, second) = (format!("owner-{index}"), format!("other-{index}"));
    let object = |name: &str, more: Value| {
        let mut object = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name, "labels": { "family": format!("f{index}") } },
        });
        overlay(&mut object["metadata"], &more);
        Request::new("POST", maps, Body::Json(object))
    };
    let mut requests = vec![object(&first, json!({})), object(&second, json!({}))];
    for child in 0..3 {
        let owner = |dice: &mut Dice, name: &str| {
            let mut owner = json!({
                "apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": format!("$uid:configmaps/{name}"),
            });
            if dice.chance(50) {
                owner["blockOwnerDeletion"] = true.into();
            }
            owner
        };
        let mut owners = vec![owner(dice, &first)];
        if dice.chance(35) {
            owners.push(owner(dice, &second));
        }
        let mut more = json!({ "ownerReferences": owners });
        if dice.chance(25) {
            more["finalizers"] = json!(["example.com/hold"]);
        }
        requests.push(object(&format!("child-{index}-{child}"), more));
    }
    requests.push(policy(dice, format!("{maps}/{first}")));
    let all = Request::new("GET", maps, Body::None).with("labelSelector", format!("family=f{index}"));
    requests.push(all.when(When::Settled));
    requests
}

pub(super) fn delete_collection(dice: &mut Dice, kind: &Kind) -> Request {
    // All namespaces are too many.
    let kind = if kind.plural == "namespaces" { &kinds::all()[0] } else { kind };
    let mut request = Request::new("DELETE", &kind.path, Body::None);
    if dice.chance(60) {
        request = request.with("labelSelector", dice.word(&["tier=a", "tier", "app notin (x)", "odd in ("]));
    }
    if dice.chance(20) {
        request = request.with("fieldSelector", dice.word(&["metadata.name=a", "metadata.name!=a"]));
    }
    if dice.chance(20) {
        request = request.with("dryRun", "All");
    }
    request
}
