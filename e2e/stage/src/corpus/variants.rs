//! What orders and statuses of a kind may look like, and how an order may change. Pure; whether a server takes them is for the server to say.

use carrick_schema::evolution::examples;
use serde_json::{Map, Value, json};

use super::files::Text;
use super::kind::CustomKind;

/// How many made-up values are tried.
const MADE: usize = 60;
/// How many ways to change an order are tried.
const CHANGES: usize = 150;
/// What belongs to servers and agents; the rest of an object is the consumer's.
const NOT_CONTENT: [&str; 4] = ["apiVersion", "kind", "metadata", "status"];

/// What a consumer decides in an object.
pub fn content(object: &Value) -> Map<String, Value> {
    let fields = object.as_object().into_iter().flatten().filter(|(key, _)| !NOT_CONTENT.contains(&key.as_str()));
    fields.map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// The operator's own samples as orders, with the files they come from.
pub fn own<'a>(kind: &CustomKind, version: &str, samples: &'a [Text]) -> Vec<(Value, &'a str)> {
    let order = |sample: &'a Text| {
        let mut object = sample.value.clone();
        // What would keep an order from going, and what consumers do not write.
        for key in ["finalizers", "ownerReferences", "uid", "resourceVersion", "creationTimestamp", "namespace"] {
            object["metadata"].as_object_mut().map(|metadata| metadata.remove(key));
        }
        object.as_object_mut().map(|object| object.remove("status"));
        (object, sample.file.as_str())
    };
    samples.iter().filter(|sample| kind.made_as(sample, version)).map(order).collect()
}

/// Orders that the schema allows, for operators without samples.
pub fn made(kind: &CustomKind, version: &str, schema: &Value) -> Vec<Value> {
    let mut schema = schema.clone();
    // Names are not for schemas to make up, and nobody orders a status.
    for field in NOT_CONTENT {
        schema["properties"].as_object_mut().map(|properties| properties.remove(field));
    }
    let order = |mut object: Value| {
        object["apiVersion"] = json!(format!("{}/{version}", kind.group));
        object["kind"] = json!(kind.kind);
        object["metadata"] = json!({ "name": "sample" });
        object
    };
    examples(&schema).into_iter().filter(Value::is_object).take(MADE).map(order).collect()
}

/// What an operator may report: conditions, as most do, or whatever the schema allows.
pub fn statuses(schema: &Value) -> Vec<Value> {
    let status = &schema["properties"]["status"];
    if !status.is_object() {
        return Vec::new();
    }
    let ready = json!({
        "type": "Ready", "status": "True", "reason": "Tested", "message": "it works",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    });
    let conditions = json!({ "conditions": [ready] });
    let usual = status["properties"]["conditions"].is_object().then_some(conditions);
    let filled = |value: &Value| value.as_object().is_some_and(|fields| !fields.is_empty());
    usual.into_iter().chain(examples(status).into_iter().filter(filled).take(MADE)).collect()
}

/// An object with another content: a leaf of it is something else, or a field more is there.
pub fn changes(object: &Value, schema: &Value) -> Vec<Value> {
    let with = |content: Map<String, Value>| {
        let mut changed = object.clone();
        for (key, value) in content {
            changed[key] = value;
        }
        changed
    };
    let before = content(object);
    let mut all: Vec<Value> = altered(&Value::Object(before.clone()))
        .into_iter()
        .filter_map(|content| content.as_object().cloned())
        .take(CHANGES)
        .map(with)
        .collect();
    for example in examples(&schema["properties"]["spec"]).into_iter().take(MADE) {
        let mut spec = before.get("spec").cloned().unwrap_or_else(|| json!({}));
        let (Some(fields), Some(more)) = (spec.as_object_mut(), example.as_object()) else { continue };
        fields.extend(more.clone());
        all.push(with(Map::from_iter([("spec".to_owned(), spec)])));
    }
    all.retain(|changed| content(changed) != before);
    all
}

/// All values that differ from this one in one leaf.
fn altered(value: &Value) -> Vec<Value> {
    match value {
        Value::Null => Vec::new(),
        Value::Bool(yes) => vec![json!(!yes)],
        Value::Number(number) => match number.as_i64() {
            Some(whole) => vec![json!(whole.saturating_add(1)), json!(whole.saturating_sub(1))],
            None => number.as_f64().map(|number| json!(number + 1.0)).into_iter().collect(),
        },
        // Many texts are numbers with a unit or end in one.
        Value::String(text) => vec![json!(format!("{text}a")), json!(format!("1{text}"))],
        Value::Array(items) => {
            let at = |(index, item): (usize, &Value)| -> Vec<Value> {
                let with = |other: Value| {
                    let mut items = items.clone();
                    items[index] = other;
                    Value::Array(items)
                };
                altered(item).into_iter().map(with).collect()
            };
            items.iter().enumerate().flat_map(at).take(CHANGES).collect()
        }
        Value::Object(fields) => {
            let at = |(key, field): (&String, &Value)| -> Vec<Value> {
                let with = |other: Value| {
                    let mut fields = fields.clone();
                    fields.insert(key.clone(), other);
                    Value::Object(fields)
                };
                altered(field).into_iter().map(with).collect()
            };
            fields.iter().flat_map(at).take(CHANGES).collect()
        }
    }
}
