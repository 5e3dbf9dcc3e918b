//! The schemas of custom kinds as OpenAPI has them: what the schema language leaves implicit is written out.

use serde_json::{Map, Value, json};

use super::meta;
use crate::resource::Version;

/// The schema of a custom kind, from the one in its CRD.
pub(super) fn schema(version: &Version, mut schema: Value) -> Value {
    unfold(&mut schema);
    if !version.selectable.is_empty() {
        let path = |path: &String| json!({"fieldPath": path.strip_prefix('.').unwrap_or(path)});
        schema["x-kubernetes-selectable-fields"] = version.selectable.iter().map(path).collect();
    }
    schema
}

/// Writes out what a node and everything below it imply.
fn unfold(node: &mut Value) {
    let Value::Object(map) = node else { return };
    for (key, value) in &mut *map {
        match (key.as_str(), value) {
            ("properties", Value::Object(fields)) => fields.values_mut().for_each(unfold),
            ("items" | "additionalProperties", below) => unfold(below),
            _ => {}
        }
    }
    if map.get("x-kubernetes-int-or-string").is_some_and(|flag| *flag == true) {
        either(map);
    }
    if map.get("x-kubernetes-embedded-resource").is_some_and(|flag| *flag == true) {
        embedded(map);
    }
}

/// A number or a text: what the two allow is spelled out, unless the author did that.
fn either(map: &mut Map<String, Value>) {
    let both = json!([{"type": "integer"}, {"type": "string"}]);
    let first = map.get("allOf").and_then(|all| all.get(0)).and_then(|first| first.get("anyOf"));
    if map.get("anyOf") == Some(&both) || first == Some(&both) {
        return;
    }
    if !map.contains_key("anyOf") {
        map.insert("anyOf".into(), both);
        return;
    }
    let mut all = vec![json!({"anyOf": both})];
    if let Some(Value::Array(others)) = map.remove("allOf") {
        all.extend(others);
    }
    map.insert("allOf".into(), all.into());
}

/// A whole object has a type and metadata.
fn embedded(map: &mut Map<String, Value>) {
    let properties = map.entry("properties").or_insert_with(|| json!({}));
    properties["apiVersion"] = json!({"type": "string", "description": meta::EMBEDDED_API_VERSION});
    properties["kind"] = json!({"type": "string", "description": meta::EMBEDDED_KIND});
    properties["metadata"] = metadata();
    let required = map.entry("required").or_insert_with(|| json!([]));
    if let Value::Array(names) = required {
        for name in ["kind", "apiVersion"] {
            if !names.iter().any(|known| known == name) {
                names.push(name.into());
            }
        }
    }
}

/// A reference to the schema of metadata.
pub(super) fn metadata() -> Value {
    json!({"description": "Standard object's metadata.", "allOf": [{"$ref": meta::OBJECT_META}]})
}

/// A schema that is about to lose what version 2 cannot express: kubectl misreads nodes that are open, or may be null, if they have a type
/// or fields.
pub(super) fn loosen(map: &mut Map<String, Value>) {
    let set = |map: &Map<String, Value>, key: &str| map.get(key).is_some_and(|flag| *flag == true);
    let (nullable, open) = (set(map, "nullable"), set(map, "x-kubernetes-preserve-unknown-fields"));
    if nullable || open {
        map.remove("items");
        map.remove("properties");
    }
    let untyped = nullable
        || map
            .get("type")
            .is_some_and(|kind| kind == "object" && open || kind == "array" && !map.contains_key("items"));
    if untyped {
        map.remove("type");
    }
    let may_be_null = |name: &Value| {
        let field = name.as_str().and_then(|name| map.get("properties")?.get(name));
        field.is_some_and(|field| field["nullable"] == true)
    };
    let kept: Option<Vec<Value>> = map
        .get("required")
        .and_then(Value::as_array)
        .map(|names| names.iter().filter(|name| !may_be_null(name)).cloned().collect());
    match kept {
        Some(names) if names.is_empty() => {
            map.remove("required");
        }
        Some(names) => {
            map.insert("required".into(), names.into());
        }
        None => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_implied_is_written_out() {
        let mut schema = json!({"type": "object", "properties": {
            "port": {"x-kubernetes-int-or-string": true},
            "said": {"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]},
            "narrow": {"x-kubernetes-int-or-string": true, "anyOf": [{"minimum": 1}], "allOf": [{"maximum": 9}]},
            "list": {"type": "array", "items": {"x-kubernetes-int-or-string": true}},
            "inner": {"type": "object", "x-kubernetes-embedded-resource": true, "required": ["kind"],
                "properties": {"spec": {"type": "object", "additionalProperties": {"x-kubernetes-int-or-string": true}}}},
        }});
        unfold(&mut schema);
        let both = json!([{"type": "integer"}, {"type": "string"}]);
        let properties = &schema["properties"];
        assert_eq!(properties["port"]["anyOf"], both);
        assert_eq!(properties["said"], json!({"x-kubernetes-int-or-string": true, "anyOf": both}));
        assert_eq!(properties["narrow"]["anyOf"], json!([{"minimum": 1}]));
        assert_eq!(properties["narrow"]["allOf"], json!([{"anyOf": both}, {"maximum": 9}]));
        assert_eq!(properties["list"]["items"]["anyOf"], both);
        assert_eq!(properties["inner"]["required"], json!(["kind", "apiVersion"]));
        assert_eq!(properties["inner"]["properties"]["kind"]["type"], "string");
        assert_eq!(properties["inner"]["properties"]["metadata"]["allOf"][0]["$ref"], meta::OBJECT_META);
        assert_eq!(properties["inner"]["properties"]["spec"]["additionalProperties"]["anyOf"], both);
    }

    #[test]
    fn version_two_leaves_open_and_nullable_nodes_untyped() {
        for (given, wanted) in [
            (json!({"type": "object", "nullable": true, "properties": {}}), json!({"nullable": true})),
            (json!({"type": "array", "items": {}, "nullable": true}), json!({"nullable": true})),
            (
                json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {}}),
                json!({"x-kubernetes-preserve-unknown-fields": true}),
            ),
            (
                json!({"type": "object", "required": ["a", "b"], "properties": {"a": {"nullable": true}, "b": {}}}),
                json!({"type": "object", "required": ["b"], "properties": {"a": {"nullable": true}, "b": {}}}),
            ),
        ] {
            let Value::Object(mut map) = given else { continue };
            loosen(&mut map);
            assert_eq!(Value::Object(map), wanted);
        }
    }
}
