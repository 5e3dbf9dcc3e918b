//! Schemas, exports, claims, bindings and endpoint slices: created, changed, misused and ended.

use serde_json::{Value, json};

use super::things::{CLAIMABLE, GROUP, OTHER_GROUP, Thing};
use super::{EXPORT, OTHER, Step, Until, Who, delete, get, inside, merge, post, view};
use crate::dice::Dice;
use crate::play::merge as overlay;
use crate::request::{Body, Request};

const V1: &str = "/apis/apis.kcp.io/v1alpha1";
const V2: &str = "/apis/apis.kcp.io/v1alpha2";

fn provider(rest: &str) -> String {
    inside("{P}", rest)
}

fn any_version(dice: &mut Dice) -> (&'static str, bool) {
    if dice.chance(60) { (V1, true) } else { (V2, false) }
}

/// The schema of widgets, in one of several editions.
pub(super) fn widgets(edition: &str) -> Value {
    let version = |name: &str, storage: bool| {
        let mut properties = json!({
            "size": { "type": "integer", "minimum": 1, "default": 3 },
            "color": { "type": "string", "enum": ["red", "blue"] },
            "tags": { "type": "array", "items": { "type": "string" }, "x-kubernetes-list-type": "set" },
        });
        if edition == "v2" {
            properties["note"] = json!({ "type": "string", "default": "new" });
        }
        json!({
            "name": name, "served": true, "storage": storage, "subresources": { "status": {} },
            "schema": { "type": "object", "properties": {
                "spec": { "type": "object", "properties": properties },
                "status": { "type": "object", "properties": { "phase": { "type": "string", "enum": ["Ready", "Waiting"] } } },
            } },
            "additionalPrinterColumns": [{ "name": "Size", "type": "integer", "jsonPath": ".spec.size" }],
        })
    };
    let mut schema = schema(edition, GROUP, "widget", "Widget", true);
    schema["spec"]["versions"] = json!([version("v1", true)]);
    if edition == "v3" {
        schema["spec"]["versions"] = json!([version("v1", true), version("v1beta1", false)]);
        schema["spec"]["conversion"] = json!({ "strategy": "None" });
    }
    schema
}

/// The schema of a simple kind.
pub(super) fn simple(group: &str, singular: &str, kind: &str, namespaced: bool) -> Value {
    schema("v1", group, singular, kind, namespaced)
}

fn schema(edition: &str, group: &str, singular: &str, kind: &str, namespaced: bool) -> Value {
    json!({
        "apiVersion": "apis.kcp.io/v1alpha1", "kind": "APIResourceSchema",
        "metadata": { "name": format!("{edition}.{singular}s.{group}") },
        "spec": {
            "group": group, "scope": if namespaced { "Namespaced" } else { "Cluster" },
            "names": { "plural": format!("{singular}s"), "singular": singular, "kind": kind, "listKind": format!("{kind}List") },
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {},
                "schema": { "type": "object", "properties": {
                    "spec": { "type": "object", "properties": { "text": { "type": "string" } } },
                } },
            }],
        },
    })
}

pub(super) fn create_schema(schema: Value) -> Step {
    Step::admin(post(provider(&format!("{V1}/apiresourceschemas")), schema))
}

/// Something about a schema: most of it is refused.
pub(super) fn schemas(dice: &mut Dice) -> Vec<Step> {
    let who = if dice.chance(60) { Who::Admin } else { Who::Agent };
    let all = provider(&format!("{V1}/apiresourceschemas"));
    let one = format!("{all}/v1.widgets.{GROUP}");
    let request = match dice.below(10) {
        0..3 => {
            let mut bad = widgets("v4");
            let changes = dice.any(&json!([
                { "metadata": { "name": "widgets" } },
                { "metadata": { "name": format!("v4.gadgets.{GROUP}") } },
                { "metadata": { "name": format!("4v.widgets.{GROUP}") } },
                { "spec": { "group": "flow.k8s.io" }, "metadata": { "name": "v4.widgets.flow.k8s.io" } },
                { "spec": { "names": { "listKind": null } } },
                { "spec": { "names": { "kind": "widget" } } },
                { "spec": { "names": { "singular": "Widget" } } },
                { "spec": { "scope": "Odd" } },
                { "spec": { "scope": null } },
                { "spec": { "versions": [] } },
                { "spec": { "group": "core" }, "metadata": { "name": "v4.widgets.core" } },
                { "spec": { "conversion": { "strategy": "Webhook" } } },
                { "spec": { "nameValidation": "PathSegmentName" } },
                {},
            ]));
            overlay(&mut bad, &changes);
            post(all, bad)
        }
        3 | 4 => {
            let mut bad = widgets("v4");
            let version = &mut bad["spec"]["versions"][0];
            let changes = dice.any(&json!([
                { "storage": false },
                { "served": false },
                { "name": "Bad" },
                { "schema": { "type": "string" } },
                { "schema": { "properties": { "spec": { "properties": { "size": { "type": "odd" } } } } } },
                { "schema": { "properties": { "spec": { "properties": { "size": { "default": "text" } } } } } },
                { "schema": { "properties": { "spec": { "properties": { "size": { "type": null } } } } } },
                { "schema": { "x-kubernetes-validations": [{ "rule": "self.nothing" }] } },
                { "schema": { "x-kubernetes-validations": [{ "rule": "has(self.spec)", "message": "needs a spec" }] } },
                { "additionalPrinterColumns": [{ "name": "Odd", "type": "odd", "jsonPath": ".spec.x" }] },
                { "additionalPrinterColumns": [{ "name": "Odd", "type": "string", "jsonPath": "spec.x" }] },
                { "subresources": { "scale": { "specReplicasPath": ".spec.size" } } },
                { "schema": null },
            ]));
            overlay(version, &changes);
            post(all, bad)
        }
        5 => merge(
            one,
            dice.any(&json!([
                { "spec": { "scope": "Cluster" } }, { "spec": { "names": { "shortNames": ["w"] } } },
                { "spec": { "versions": [] } }, { "spec": { "group": "other" } },
            ])),
        ),
        6 => merge(one, json!({ "metadata": { "labels": { "syncagent.kcp.io/agent-name": "agent" } } })),
        7 => Request::new(
            "PUT",
            one.clone(),
            Body::Last(
                one,
                dice.any(&json!([
                    { "metadata": { "annotations": { "syncagent.kcp.io/source-generation": "2" } } },
                    { "spec": { "scope": "Cluster" } },
                ])),
            ),
        ),
        8 => post(all, widgets(dice.word(&["v1", "v2", "v3"]))),
        _ => get(one),
    };
    vec![Step::new(who, request)]
}

fn strip_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, value| !value.is_null());
            map.values_mut().for_each(strip_nulls);
        }
        Value::Array(list) => list.iter_mut().for_each(strip_nulls),
        _ => {}
    }
}

/// A set of claims, in the words of v1alpha2.
pub(super) struct Claims(pub(super) Vec<(Thing, Vec<&'static str>)>, pub(super) bool);

impl Claims {
    pub(super) fn roll(dice: &mut Dice, other: bool) -> Self {
        let mut claims: Vec<(Thing, Vec<&'static str>)> = Vec::new();
        for thing in CLAIMABLE {
            if dice.chance(if thing.plural == "apibindings" { 12 } else { 40 }) {
                claims.push((thing, verbs(dice)));
            }
        }
        Self(claims, other && dice.chance(70))
    }

    pub(super) fn things(&self) -> Vec<Thing> {
        self.0.iter().map(|(thing, _)| *thing).collect()
    }

    /// As an export asks for them.
    fn asked(&self, old: bool) -> Value {
        self.each(|claim, verbs| if old { claim["all"] = true.into() } else { claim["verbs"] = verbs })
    }

    /// As a binding decides about them.
    fn decided(&self, dice: &mut Dice, old: bool) -> Value {
        let mut decided = self.each(|claim, verbs| {
            claim["state"] = dice.word(&["Accepted", "Accepted", "Accepted", "Accepted", "Rejected"]).into();
            if old {
                claim["all"] = true.into();
                return;
            }
            claim["verbs"] =
                if dice.chance(75) { verbs } else { dice.any(&json!([["get"], ["get", "list", "watch"], ["*"]])) };
            claim["selector"] = dice.any(&json!([
                { "matchAll": true }, { "matchAll": true }, { "matchAll": true }, { "matchLabels": { "tier": "a" } },
                { "matchExpressions": [{ "key": "tier", "operator": "In", "values": ["a", "b"] }] },
            ]));
        });
        if let Some(list) = decided.as_array_mut() {
            if dice.chance(25) && !list.is_empty() {
                list.remove(dice.below(list.len()));
            }
            if dice.chance(15) && !list.iter().any(|claim| claim["resource"] == "pods") {
                let mut claim = json!({ "group": "", "resource": "pods", "state": "Accepted" });
                if old {
                    claim["all"] = true.into();
                } else {
                    overlay(&mut claim, &json!({ "verbs": ["get"], "selector": { "matchAll": true } }));
                }
                list.push(claim);
            }
        }
        decided
    }

    fn each(&self, mut more: impl FnMut(&mut Value, Value)) -> Value {
        let mut all = Vec::new();
        for (thing, verbs) in &self.0 {
            let mut claim = json!({ "group": thing.group, "resource": thing.plural });
            more(&mut claim, json!(verbs));
            all.push(claim);
        }
        if self.1 {
            let mut claim = json!({ "group": OTHER_GROUP, "resource": "parts", "identityHash": "{other-id}" });
            more(&mut claim, json!(["*"]));
            all.push(claim);
        }
        all.into()
    }
}

fn verbs(dice: &mut Dice) -> Vec<&'static str> {
    match dice.below(8) {
        0 => vec!["get"],
        1 => vec!["get", "list", "watch"],
        2 => vec!["get", "list", "create", "update"],
        _ => vec!["*"],
    }
}

/// Creates an export and waits for its identity.
pub(super) fn export(dice: &mut Dice, name: &str, schemas: &[String], claims: &Claims) -> Vec<Step> {
    let (api, old) = any_version(dice);
    let mut spec = json!({ "permissionClaims": claims.asked(old) });
    if old {
        spec["latestResourceSchemas"] = json!(schemas);
    } else {
        let resources: Vec<Value> = schemas
            .iter()
            .map(|schema| {
                let mut parts = schema.splitn(3, '.').skip(1);
                let (name, group) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
                json!({ "name": name, "group": group, "schema": schema, "storage": { "crd": {} } })
            })
            .collect();
        spec["resources"] = json!(resources);
    }
    if dice.chance(15) {
        spec["maximalPermissionPolicy"] = json!({ "local": {} });
    }
    let object = json!({
        "apiVersion": api.trim_start_matches("/apis/"), "kind": "APIExport", "metadata": { "name": name }, "spec": spec,
    });
    let (seen, _) = any_version(dice);
    vec![
        Step::admin(post(provider(&format!("{api}/apiexports")), object)),
        Step::admin(get(provider(&format!("{seen}/apiexports/{name}")))).until(Until::Identity),
    ]
}

/// Binds a consumer to an export.
pub(super) fn bind(dice: &mut Dice, consumer: &str, export: &str, claims: &Claims) -> Vec<Step> {
    let (api, old) = any_version(dice);
    let object = json!({
        "apiVersion": api.trim_start_matches("/apis/"), "kind": "APIBinding", "metadata": { "name": export },
        "spec": {
            "reference": { "export": { "path": dice.word(&["{P}", "{P-path}"]), "name": export } },
            "permissionClaims": claims.decided(dice, old),
        },
    });
    let (seen, _) = any_version(dice);
    vec![
        Step::admin(post(inside(consumer, &format!("{api}/apibindings")), object)),
        Step::admin(get(inside(consumer, &format!("{seen}/apibindings/{export}")))).until(Until::Bound),
    ]
}

/// What follows from a change of the export.
fn outcome(dice: &mut Dice) -> Vec<Step> {
    let (api, _) = any_version(dice);
    vec![
        Step::admin(get(inside("{A}", &format!("{api}/apibindings/{EXPORT}")))).until(Until::Still),
        Step::admin(get(provider(&format!("{api}/apiexports/{EXPORT}")))),
        Step::admin(get(view("*", dice.word(&["/apis", "/apis/{ns}.example.com/v1", "/api/v1"])))),
    ]
}

/// Changes the export.
pub(super) fn exports(dice: &mut Dice, claims: &Claims) -> Vec<Step> {
    let who = if dice.chance(55) { Who::Admin } else { Who::Agent };
    let (api, old) = any_version(dice);
    let one = provider(&format!("{api}/apiexports/{EXPORT}"));
    let widgets = format!("v1.widgets.{GROUP}");
    let change = match dice.below(12) {
        0..3 => {
            let more = Claims::roll(dice, claims.1);
            json!({ "spec": { "permissionClaims": more.asked(old) } })
        }
        3 => json!({ "spec": { "permissionClaims": [
            { "group": "unknown.example.com", "resource": "things", "all": true, "verbs": ["*"] },
        ] } }),
        4 => json!({ "spec": { "permissionClaims": [
            { "group": "unknown.example.com", "resource": "things", "all": true, "verbs": ["*"], "identityHash": "bad" },
        ] } }),
        5 => json!({ "spec": { "permissionClaims": [
            { "group": "", "resource": "secrets", "all": true, "verbs": ["*"] },
            { "group": "", "resource": "secrets", "all": true, "verbs": ["get"] },
        ] } }),
        6 => json!({ "spec": { "permissionClaims": dice.any(&json!([
            [{ "group": "", "resource": "", "all": true, "verbs": ["*"] }],
            [{ "group": "", "resource": "secrets", "verbs": [] }],
            [{ "group": "", "resource": "secrets" }],
            [{ "group": "", "resource": "secrets", "all": true, "resourceSelector": [{ "name": "a", "namespace": "default" }], "verbs": ["*"] }],
            [{ "group": "", "resource": "secrets", "resourceSelector": [{ "name": "a", "namespace": "default" }], "verbs": ["get"],
               "defaultSelector": { "matchLabels": { "tier": "a" } } }],
            [{ "group": "apps", "resource": "deployments", "all": true, "verbs": ["*"] }],
            [{ "group": GROUP, "resource": "widgets", "all": true, "verbs": ["*"], "identityHash": "{own-id}" }],
        ])) } }),
        7 | 8 => {
            let names = dice.any(&json!([
                [format!("v2.widgets.{GROUP}")],
                [widgets, format!("v1.plans.{GROUP}")],
                [],
                [format!("v9.widgets.{GROUP}")],
                ["odd"],
                [widgets, format!("v2.widgets.{GROUP}")],
                [format!("v3.widgets.{GROUP}")],
            ]));
            if old {
                json!({ "spec": { "latestResourceSchemas": names } })
            } else {
                let resources: Vec<Value> = names
                    .as_array()
                    .into_iter()
                    .flatten()
                    .map(|schema| json!({ "name": "widgets", "group": GROUP, "schema": schema, "storage": { "crd": {} } }))
                    .collect();
                json!({ "spec": { "resources": resources } })
            }
        }
        9 => json!({ "metadata": { "annotations": {
            "extra.apis.kcp.io/note": "x", "syncagent.kcp.io/agent-name": "agent", "kcp.io/path": "forged",
        } } }),
        10 => {
            let status = json!({ "status": { "identityHash": "forged" } });
            return vec![Step::new(who, merge(format!("{one}/status"), status))];
        }
        _ => dice.any(&json!([
            { "spec": { "identity": { "secretRef": { "namespace": "kcp-system", "name": "absent" } } } },
            { "spec": { "maximalPermissionPolicy": { "local": {} } } },
            { "spec": { "maximalPermissionPolicy": {} } },
            { "metadata": { "labels": { "tier": "a" } } },
        ])),
    };
    let request = if dice.chance(50) {
        Request::new("PUT", one.clone(), Body::Last(one.clone(), change))
    } else {
        merge(&one, change)
    };
    // The agent reads an export before it writes it.
    let mut steps = vec![Step::admin(get(&one)), Step::new(who, request)];
    steps.extend(outcome(dice));
    steps
}

/// Changes a binding, or makes another one.
pub(super) fn bindings(dice: &mut Dice, claims: &Claims) -> Vec<Step> {
    let (api, old) = any_version(dice);
    let all = inside("{A}", &format!("{api}/apibindings"));
    let one = format!("{all}/{EXPORT}");
    let still = |path: &str| Step::admin(get(path)).until(Until::Still);
    let another = |name: &str, path: &str, export: &str| {
        json!({
            "apiVersion": api.trim_start_matches("/apis/"), "kind": "APIBinding", "metadata": { "name": name },
            "spec": { "reference": { "export": { "path": path, "name": export } } },
        })
    };
    match dice.below(12) {
        0..5 => {
            let decided = json!({ "spec": { "permissionClaims": claims.decided(dice, old) } });
            let request = if dice.chance(50) {
                merge(&one, decided)
            } else {
                Request::new("PUT", one.clone(), Body::Last(one.clone(), decided))
            };
            vec![Step::admin(get(&one)), Step::admin(request), still(&one)]
        }
        5 => {
            let change = dice.any(&json!([
                { "spec": { "reference": { "export": { "name": "{ns}-other" } } } },
                { "spec": { "reference": null } },
                { "spec": { "permissionClaims": [{ "group": "", "resource": "secrets", "state": "Odd", "all": true }] } },
                { "spec": { "permissionClaims": [{ "group": "", "resource": "secrets", "all": true, "verbs": ["*"] }] } },
                { "metadata": { "labels": { "internal.apis.kcp.io/export": "forged" } } },
                { "metadata": { "finalizers": null } },
                { "metadata": { "annotations": { "kcp.io/path": "forged" } } },
            ]));
            vec![Step::admin(merge(&one, change)), still(&one)]
        }
        6 => {
            let twin = format!("{all}/{{ns}}-twin");
            vec![
                Step::admin(post(&all, another("{ns}-twin", "{P}", EXPORT))),
                still(&twin),
                Step::admin(delete(&twin)),
                Step::admin(get(&twin)).until(Until::Gone),
            ]
        }
        7 => vec![Step::admin(post(
            &all,
            another("{ns}-lost", dice.word(&["{P}", "root:nowhere", "nowhere"]), "{ns}-absent"),
        ))],
        8 => {
            let lost = format!("{all}/{{ns}}-lost");
            vec![
                Step::admin(post(&all, another("{ns}-lost", "", "{ns}-absent"))),
                still(&lost),
                Step::admin(delete(lost)),
            ]
        }
        9 => vec![Step::new(Who::Agent, post(&all, another("{ns}-agents", "{P}", EXPORT)))],
        10 => vec![Step::admin(merge(format!("{one}/status"), json!({ "status": { "phase": "Binding" } })))],
        _ => vec![Step::admin(get(one)), Step::admin(get(format!("{all}?labelSelector=odd")))],
    }
}

/// Something about endpoint slices.
pub(super) fn slices(dice: &mut Dice) -> Vec<Step> {
    let who = if dice.chance(60) { Who::Admin } else { Who::Agent };
    let place = dice.word(&["{P}", "{A}"]);
    let all = inside(place, &format!("{V1}/apiexportendpointslices"));
    let own = provider(&format!("{V1}/apiexportendpointslices/{EXPORT}"));
    let slice = |name: &str, path: Value, export: &str| {
        let mut slice = json!({
            "apiVersion": "apis.kcp.io/v1alpha1", "kind": "APIExportEndpointSlice", "metadata": { "name": name },
            "spec": { "export": { "name": export, "path": path } },
        });
        strip_nulls(&mut slice);
        slice
    };
    match dice.below(9) {
        0..3 => {
            let export = dice.word(&[EXPORT, EXPORT, OTHER, "{ns}-absent"]);
            let path = dice.any(&json!(["{P}", "{P-path}", null]));
            let name = dice.word(&["{ns}-extra", "{ns}-more"]);
            vec![
                Step::new(who, post(&all, slice(name, path, export))),
                Step::admin(get(format!("{all}/{name}"))).until(Until::Still),
            ]
        }
        3 => vec![Step::new(who, merge(own, json!({ "spec": { "export": { "name": "{ns}-other" } } })))],
        4 => vec![Step::new(who, merge(own, json!({ "metadata": { "labels": { "tier": "a" } } })))],
        5 => vec![Step::new(who, merge(format!("{own}/status"), json!({ "status": { "endpoints": [] } })))],
        6 => {
            let gone = Step::admin(get(&own)).until(Until::Still);
            vec![Step::new(who, delete(own)), gone]
        }
        7 => vec![Step::new(who, post(all, slice("{ns}-odd", "Not A Path".into(), EXPORT)))],
        _ => vec![Step::new(who, get(own).accept("application/json;as=Table;v=v1;g=meta.k8s.io"))],
    }
}

/// How it ends: in some order, and what is left.
pub(super) fn ends(dice: &mut Dice) -> Vec<Step> {
    let mut steps = Vec::new();
    let binding = inside("{A}", &format!("{V1}/apibindings/{EXPORT}"));
    let widgets = view("*", &format!("/apis/{GROUP}/v1/widgets"));
    let slice = provider(&format!("{V1}/apiexportendpointslices/{EXPORT}"));
    let inside_a = inside("{A}", &format!("/apis/{GROUP}/v1/widgets"));
    let unbind = [
        Step::admin(delete(&binding)),
        Step::admin(get(&binding)).until(Until::Still),
        Step::admin(get(&widgets)),
        Step::admin(get(&inside_a)),
        Step::admin(get(view("{A}", &format!("/apis/{GROUP}/v1/widgets")))),
        Step::admin(get(&slice)).until(Until::Still),
    ];
    let withdraw = [
        Step::admin(delete(provider(&format!("{V1}/apiexports/{EXPORT}")))),
        Step::admin(get(&binding)).until(Until::Withdrawn),
        Step::admin(get(&slice)).until(Until::Gone),
        Step::admin(get(&widgets)).until(Until::Failed),
        Step::admin(get(&inside_a)),
    ];
    let forget = [
        Step::admin(delete(provider(&format!("{V1}/apiresourceschemas/v1.widgets.{GROUP}")))),
        Step::admin(get(&binding)).until(Until::Still),
        Step::admin(get(&inside_a)),
        Step::admin(get(&widgets)),
    ];
    match dice.below(5) {
        0 => steps.extend(unbind),
        1 => steps.extend(withdraw),
        2 => {
            steps.extend(withdraw);
            steps.extend(unbind);
        }
        3 => {
            steps.extend(forget);
            steps.extend(unbind);
        }
        _ => {}
    }
    steps
}
