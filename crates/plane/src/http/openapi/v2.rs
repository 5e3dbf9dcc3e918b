//! OpenAPI v2: the version 3 documents merged into one, for old clients; in JSON, or in the protobuf form that Go clients ask for.

use serde_json::{Map, Value, json};

use super::custom;

/// What Go clients ask for.
pub(super) const MEDIA: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
/// The same in a response, where an at sign is not allowed.
pub(super) const ANSWER_MEDIA: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
/// What old clients ask for; the response is the same.
pub(super) const OLD_MEDIA: &str = "application/com.github.googleapis.gnostic.OpenAPIv2+protobuf";

/// One document of several of version 3.
pub(super) fn merge(documents: impl Iterator<Item = Value>) -> Value {
    let (mut paths, mut definitions) = (Map::new(), Map::new());
    for mut document in documents {
        if let Some(Value::Object(found)) = document.pointer_mut("/components/schemas").map(Value::take) {
            definitions.extend(found.into_iter().map(|(name, schema)| (name, older_kind(schema))));
        }
        if let Value::Object(found) = document["paths"].take() {
            paths.extend(found.into_iter().map(|(path, item)| (path, path_item(&item))));
        }
    }
    json!({
        "swagger": "2.0", "info": {"title": "carrick-plane", "version": "v1"}, "paths": paths,
        "definitions": definitions,
    })
}

/// The schema of a kind, which always is an object.
fn older_kind(schema: Value) -> Value {
    let mut schema = older(schema);
    if schema["x-kubernetes-group-version-kind"].is_array() {
        schema["type"] = "object".into();
    }
    schema
}

/// A schema without the keywords that version 2 lacks.
fn older(schema: Value) -> Value {
    let Value::Object(mut map) = schema else { return schema };
    custom::loosen(&mut map);
    for key in ["oneOf", "anyOf", "not", "nullable"] {
        let alternatives = map.remove(key);
        if key == "oneOf" && alternatives.is_some() && !map.contains_key("type") {
            map.insert("type".into(), "string".into());
        }
    }
    if let Some(Value::Array(all)) = map.get("allOf")
        && let [single] = all.as_slice()
        && let Some(target) = single.get("$ref").cloned()
    {
        map.remove("allOf");
        map.remove("default");
        map.insert("$ref".into(), target);
    } else if map.get("allOf").and_then(Value::as_array).is_some_and(|all| all.iter().all(|one| one["$ref"].is_null()))
    {
        map.remove("allOf");
    }
    for (key, value) in &mut map {
        *value = match (key.as_str(), value.take()) {
            ("$ref", Value::String(text)) => text.replace("#/components/schemas/", "#/definitions/").into(),
            ("properties", Value::Object(inner)) => {
                inner.into_iter().map(|(name, schema)| (name, older(schema))).collect()
            }
            ("items" | "additionalProperties", inner) => older(inner),
            ("allOf", Value::Array(all)) => all.into_iter().map(older).collect(),
            (_, other) => other,
        };
    }
    Value::Object(map)
}

fn path_item(item: &Value) -> Value {
    let mut shown = Map::new();
    for (method, operation) in item.as_object().into_iter().flatten().filter(|(key, _)| *key != "parameters") {
        let parameters = operation["parameters"].as_array().into_iter().flatten();
        let parameters: Vec<Value> = parameters
            .map(|one| json!({"name": one["name"], "in": one["in"], "type": "string", "uniqueItems": true}))
            .collect();
        let schema = &operation["responses"]["200"]["content"]["application/json"]["schema"];
        let mut older_form = json!({
            "produces": ["application/json", "application/yaml"], "parameters": parameters,
            "responses": {"200": {"description": "OK", "schema": older(schema.clone())}},
        });
        for key in ["x-kubernetes-action", "x-kubernetes-group-version-kind"] {
            older_form[key] = operation[key].clone();
        }
        shown.insert(method.clone(), older_form);
    }
    Value::Object(shown)
}

/// The document in protobuf: message numbers as gnostic publishes them.
pub(super) fn encode(document: &Value) -> Vec<u8> {
    let mut info = Vec::new();
    text(&mut info, 1, &document["info"]["title"]);
    text(&mut info, 2, &document["info"]["version"]);
    let mut all = Vec::new();
    text(&mut all, 1, &document["swagger"]);
    bytes(&mut all, 2, &info);
    bytes(&mut all, 8, &named(&document["paths"], 2, encode_path));
    bytes(&mut all, 9, &named(&document["definitions"], 1, encode_schema));
    all
}

/// A list of names with values, in a message with that list in one field.
fn named(map: &Value, number: u64, encode: fn(&Value) -> Vec<u8>) -> Vec<u8> {
    let mut all = Vec::new();
    for (name, value) in map.as_object().into_iter().flatten() {
        let mut entry = Vec::new();
        bytes(&mut entry, 1, name.as_bytes());
        bytes(&mut entry, 2, &encode(value));
        bytes(&mut all, number, &entry);
    }
    all
}

fn encode_path(item: &Value) -> Vec<u8> {
    let mut all = Vec::new();
    for (number, method) in [(2, "get"), (3, "put"), (4, "post"), (5, "delete"), (8, "patch")] {
        if item[method].is_object() {
            bytes(&mut all, number, &encode_operation(&item[method]));
        }
    }
    all
}

fn encode_operation(operation: &Value) -> Vec<u8> {
    let mut all = Vec::new();
    for media in operation["produces"].as_array().into_iter().flatten() {
        text(&mut all, 6, media);
    }
    for parameter in operation["parameters"].as_array().into_iter().flatten() {
        // A query parameter inside "not in the body" inside "parameter" inside an item of the list.
        let mut query = Vec::new();
        text(&mut query, 2, &parameter["in"]);
        text(&mut query, 4, &parameter["name"]);
        text(&mut query, 6, &parameter["type"]);
        bytes(&mut all, 8, &wrapped(1, &wrapped(2, &wrapped(3, &query))));
    }
    let mut response = Vec::new();
    let found = &operation["responses"]["200"];
    text(&mut response, 1, &found["description"]);
    if found["schema"].is_object() {
        bytes(&mut response, 2, &wrapped(1, &encode_schema(&found["schema"])));
    }
    let mut entry = Vec::new();
    bytes(&mut entry, 1, b"200");
    bytes(&mut entry, 2, &wrapped(1, &response));
    bytes(&mut all, 9, &wrapped(1, &entry));
    extensions(&mut all, 13, operation);
    all
}

fn encode_schema(schema: &Value) -> Vec<u8> {
    let mut all = Vec::new();
    for (number, key) in [(1, "$ref"), (2, "format"), (3, "title"), (4, "description"), (13, "pattern")] {
        text(&mut all, number, &schema[key]);
    }
    for (number, key) in [(7, "maximum"), (9, "minimum")] {
        if let Some(limit) = schema[key].as_f64() {
            varint(&mut all, number << 3 | 1);
            all.extend(limit.to_le_bytes());
        }
    }
    for (number, key) in [
        (11, "maxLength"),
        (12, "minLength"),
        (14, "maxItems"),
        (15, "minItems"),
        (17, "maxProperties"),
        (18, "minProperties"),
    ] {
        if let Some(limit) = schema[key].as_u64() {
            varint(&mut all, number << 3);
            varint(&mut all, limit);
        }
    }
    if !schema["default"].is_null() {
        bytes(&mut all, 5, &any(&schema["default"]));
    }
    for field in schema["required"].as_array().into_iter().flatten() {
        text(&mut all, 19, field);
    }
    for value in schema["enum"].as_array().into_iter().flatten() {
        bytes(&mut all, 20, &any(value));
    }
    match &schema["additionalProperties"] {
        Value::Object(_) => bytes(&mut all, 21, &wrapped(1, &encode_schema(&schema["additionalProperties"]))),
        Value::Bool(flag) => bytes(&mut all, 21, &[2 << 3, u8::from(*flag)]),
        _ => {}
    }
    if let Value::String(kind) = &schema["type"] {
        bytes(&mut all, 22, &wrapped(1, kind.as_bytes()));
    }
    if schema["items"].is_object() {
        bytes(&mut all, 23, &wrapped(1, &encode_schema(&schema["items"])));
    }
    for part in schema["allOf"].as_array().into_iter().flatten() {
        bytes(&mut all, 24, &encode_schema(part));
    }
    if schema["properties"].is_object() {
        bytes(&mut all, 25, &named(&schema["properties"], 1, encode_schema));
    }
    extensions(&mut all, 31, schema);
    all
}

/// Everything that begins with `x-`, as YAML, of which JSON is a part.
fn extensions(all: &mut Vec<u8>, number: u64, value: &Value) {
    for (name, value) in value.as_object().into_iter().flatten().filter(|(name, _)| name.starts_with("x-")) {
        let mut entry = Vec::new();
        bytes(&mut entry, 1, name.as_bytes());
        bytes(&mut entry, 2, &any(value));
        bytes(all, number, &entry);
    }
}

fn any(value: &Value) -> Vec<u8> {
    wrapped(2, format!("{value}\n").as_bytes())
}

fn wrapped(number: u64, content: &[u8]) -> Vec<u8> {
    let mut all = Vec::new();
    bytes(&mut all, number, content);
    all
}

fn text(all: &mut Vec<u8>, number: u64, value: &Value) {
    if let Some(text) = value.as_str().filter(|text| !text.is_empty()) {
        bytes(all, number, text.as_bytes());
    }
}

fn bytes(all: &mut Vec<u8>, number: u64, content: &[u8]) {
    varint(all, number << 3 | 2);
    varint(all, content.len() as u64);
    all.extend_from_slice(content);
}

fn varint(all: &mut Vec<u8>, mut value: u64) {
    loop {
        let low = (value & 0x7f) as u8;
        value >>= 7;
        if value == 0 {
            all.push(low);
            return;
        }
        all.push(low | 0x80);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_lose_what_version_two_does_not_know() {
        let newer = json!({
            "type": "object", "anyOf": [{"required": ["a"]}],
            "properties": {
                "may_be_null": {"type": "object", "nullable": true, "properties": {"a": {"type": "string"}}},
                "meta": {"description": "d", "default": {}, "allOf": [{"$ref": "#/components/schemas/x.Meta"}]},
                "port": {"oneOf": [{"type": "integer"}, {"type": "string"}], "format": "int-or-string"},
                "list": {"type": "array", "items": {"$ref": "#/components/schemas/x.Item"}},
            },
        });
        assert_eq!(
            older(newer),
            json!({
                "type": "object",
                "properties": {
                    "may_be_null": {},
                    "meta": {"description": "d", "$ref": "#/definitions/x.Meta"},
                    "port": {"type": "string", "format": "int-or-string"},
                    "list": {"type": "array", "items": {"$ref": "#/definitions/x.Item"}},
                },
            })
        );
    }

    #[test]
    fn long_texts_have_long_lengths() {
        let encoded = encode_schema(&json!({"description": "x".repeat(300)}));
        assert_eq!(&encoded[..3], [4 << 3 | 2, 0xac, 0x02]);
        assert_eq!(encoded.len(), 303);
    }
}
