//! Random CRDs, good and bad. Among other requests they are sent as dry runs: kcp and Kubernetes take seconds to make room for a new kind.

use serde_json::{Value, json};

use super::dice::Dice;
use super::request::{Body, Request};

const PATH: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Creates a CRD with up to three faults.
pub fn request(dice: &mut Dice) -> Request {
    let mut crd = good(dice, if Dice::is_wide() { 2 } else { 1 });
    for _ in 0..if Dice::is_wide() { dice.below(4) } else { 0 } {
        fault(dice, &mut crd);
    }
    Request::new("POST", PATH, Body::Json(crd)).with("dryRun", "All")
}

/// The same CRD with up to four faults.
pub fn broken(dice: &mut Dice, good: &Value) -> Value {
    let mut crd = good.clone();
    for _ in 0..=dice.below(4) {
        let before = crd.clone();
        fault(dice, &mut crd);
        // Kubernetes does not survive paths into a schema that it cannot read, so that nothing may go with them.
        if crd.to_string().contains("selectableFields") {
            return if before == *good { crd } else { before };
        }
    }
    crd
}

/// A CRD without faults, with fields so many levels deep.
pub fn good(dice: &mut Dice, depth: usize) -> Value {
    let spec = json!({ "type": "object", "properties": fields(dice, depth) });
    let schema = json!({ "type": "object", "properties": { "spec": spec, "status": { "type": "object" } } });
    let mut versions =
        vec![json!({ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": schema } })];
    if dice.chance(30) {
        let mut other = versions[0].clone();
        other["name"] = "v1beta1".into();
        other["storage"] = false.into();
        if dice.chance(50) {
            other["schema"]["openAPIV3Schema"]["properties"]["more"] = json!({ "type": "string" });
        }
        versions.push(other);
    }
    if dice.chance(40) {
        versions[0]["subresources"] = json!({ "status": {} });
    }
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "things.{ns}.example.com" },
        "spec": {
            "group": "{ns}.example.com", "scope": dice.word(&["Namespaced", "Cluster"]),
            "names": { "plural": "things", "kind": "Thing" }, "versions": versions,
        },
    })
}

/// Fields of an object, by the names `a`, `b` and so on.
fn fields(dice: &mut Dice, depth: usize) -> Value {
    let mut fields = json!({});
    for name in ["a", "b", "c"] {
        if dice.chance(75) {
            fields[name] = field(dice, depth);
        }
    }
    fields
}

fn field(dice: &mut Dice, depth: usize) -> Value {
    let deep = depth > 0;
    match dice.below(if deep { 16 } else { 8 }) {
        0 => json!({ "type": "string", "maxLength": 9, "default": "x" }),
        1 => json!({ "type": "string", "enum": ["x", "y"] }),
        2 => json!({ "type": "integer", "minimum": 1, "default": 2 }),
        3 => json!({ "type": "boolean" }),
        4 => json!({ "type": "number", "format": "double" }),
        5 => json!({ "x-kubernetes-int-or-string": true }),
        6 => json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true }),
        7 => json!({ "type": "string", "pattern": "^[a-z]+$", "nullable": true }),
        8 => json!({ "type": "string", "maxLength": 5, "x-kubernetes-validations": [
            { "rule": "self == oldSelf", "message": "fixed" }, { "rule": "self.startsWith('x') || size(self) > 1" },
        ] }),
        9 => json!({ "type": "object", "properties": fields(dice, depth - 1) }),
        10 => json!({ "type": "array", "maxItems": 4, "items": field(dice, depth - 1) }),
        11 => json!({ "type": "object", "maxProperties": 4, "additionalProperties": field(dice, depth - 1) }),
        12 => {
            json!({ "type": "array", "maxItems": 5, "x-kubernetes-list-type": "set", "items": { "type": "string", "maxLength": 5 } })
        }
        13 => json!({
            "type": "array", "maxItems": 5, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
            "items": { "type": "object", "required": ["k"], "properties": { "k": { "type": "string", "maxLength": 5 } } },
        }),
        14 => json!({ "type": "object", "default": {}, "properties": { "d": { "type": "string", "default": "x" } } }),
        _ => json!({
            "type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true,
        }),
    }
}

/// Does something wrong, or at least unusual, to a CRD.
fn fault(dice: &mut Dice, crd: &mut Value) {
    let versions = crd["spec"]["versions"].as_array().map_or(0, Vec::len);
    if versions == 0 || dice.chance(25) {
        return definition(dice, crd);
    }
    let place = format!("/spec/versions/{}/schema/openAPIV3Schema", dice.below(versions));
    let Some(schema) = crd.pointer_mut(&place).filter(|schema| schema["properties"].is_object()) else { return };
    if dice.chance(10) {
        let odd = json!([
            ["properties", "metadata", { "type": "object", "properties": { "labels": { "type": "object" } } }],
            ["properties", "metadata", { "type": "object", "properties": { "name": { "type": "string", "maxLength": 3 } } }],
            ["properties", "metadata", { "type": "object", "default": {} }],
            ["properties", "metadata", { "type": "string" }],
            ["properties", "apiVersion", { "type": "integer" }],
            ["properties", "kind", { "type": "string", "default": "x" }],
            ["properties", "status", { "type": "string" }],
        ]);
        let odd = dice.any(&odd);
        schema[odd[0].as_str().unwrap_or_default()][odd[1].as_str().unwrap_or_default()] = odd[2].clone();
        return;
    }
    let place = if dice.chance(8) { Some(schema) } else { below(dice, schema) };
    let Some(place) = place else { return };
    let odd = dice.line(include_str!("schemas.jsonl"));
    for (key, value) in odd.as_object().into_iter().flatten() {
        match (value, place.as_object_mut()) {
            (Value::Null, Some(map)) if key == "type" => drop(map.remove(key)),
            (value, Some(map)) => drop(map.insert(key.clone(), value.clone())),
            _ => {}
        }
    }
}

/// A place some way down a schema.
fn below<'a>(dice: &mut Dice, schema: &'a mut Value) -> Option<&'a mut Value> {
    let mut path = vec!["properties".to_owned(), "spec".to_owned()];
    let mut at = &schema["properties"]["spec"];
    for _ in 0..3 {
        let mut ways: Vec<Vec<String>> = Vec::new();
        for key in at["properties"].as_object().into_iter().flatten().map(|(key, _)| key) {
            ways.push(vec!["properties".to_owned(), key.clone()]);
        }
        for key in ["items", "additionalProperties"] {
            if at[key].is_object() {
                ways.push(vec![key.to_owned()]);
            }
        }
        if ways.is_empty() || dice.chance(25) {
            break;
        }
        for key in dice.pick(&ways) {
            at = &at[key];
            path.push(key.clone());
        }
    }
    path.iter().try_fold(schema, |at, key| at.get_mut(key))
}

/// Something about the definition around the schema.
fn definition(dice: &mut Dice, crd: &mut Value) {
    let odd = dice.line(include_str!("definitions.jsonl"));
    let path = odd[0].as_str().unwrap_or_default();
    let (parent, key) = path.rsplit_once('/').unwrap_or(("", path));
    if let Some(map) = crd.pointer_mut(parent).and_then(Value::as_object_mut) {
        map.insert(key.to_owned(), odd[1].clone());
    }
}
