//! A first order: small, easy to read, and checked with the validation of API servers. Pure.

use serde_json::{Map, Value, json};

/// An order, and what is wrong with it.
#[derive(Debug, Clone, PartialEq)]
pub struct Order {
    /// The object.
    pub object: Value,
    /// Why the schema refuses it, if none was found that it allows.
    pub problem: Option<String>,
}

impl Order {
    /// The order itself if the schema allows it, or the nearest one that it allows.
    pub fn checked(schema: &Value, order: Value) -> Self {
        match carrick_schema::evolution::example(schema, order) {
            Ok(object) => Self { object, problem: None },
            Err(error) => Self { problem: Some(error.to_string()), object: error.nearest },
        }
    }
}

/// A sample deeper than this is of no use to a reader.
const DEPTH: usize = 8;

/// A value that the schema allows: defaults and the first of several choices where there are any, required fields only.
pub fn sample(schema: &Value) -> Value {
    value(schema, DEPTH)
}

fn value(schema: &Value, depth: usize) -> Value {
    for key in ["default", "example"] {
        if let Some(given) = schema.get(key) {
            return given.clone();
        }
    }
    if let Some(first) = schema["enum"].as_array().and_then(|choices| choices.first()) {
        return first.clone();
    }
    if schema["x-kubernetes-int-or-string"] == true {
        return json!(1);
    }
    match schema["type"].as_str().unwrap_or_default() {
        "string" => json!(string(schema)),
        "integer" => json!(integer(schema)),
        "number" => json!(number(schema)),
        "boolean" => json!(false),
        "array" if schema["minItems"].as_u64().unwrap_or(0) > 0 && depth > 0 => {
            json!([value(&schema["items"], depth - 1)])
        }
        "array" => json!([]),
        _ if depth > 0 => Value::Object(required(schema, depth)),
        _ => json!({}),
    }
}

/// The required fields of an object.
fn required(schema: &Value, depth: usize) -> Map<String, Value> {
    let names = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    names.map(|name| (name.to_owned(), value(&schema["properties"][name], depth - 1))).collect()
}

fn string(schema: &Value) -> String {
    let text = match schema["format"].as_str().unwrap_or_default() {
        "date-time" => "2030-01-01T00:00:00Z",
        "date" => "2030-01-01",
        "uri" | "url" => "https://example.com",
        "email" => "someone@example.com",
        "ipv4" => "192.0.2.1",
        "ipv6" => "2001:db8::1",
        "cidr" => "192.0.2.0/24",
        "hostname" => "host.example.com",
        "duration" => "1h",
        "uuid" => "00000000-0000-4000-8000-000000000000",
        _ => "changeme",
    };
    let least = usize::try_from(schema["minLength"].as_u64().unwrap_or(0)).unwrap_or(0);
    let most = usize::try_from(schema["maxLength"].as_u64().unwrap_or(u64::MAX)).unwrap_or(usize::MAX);
    let filled = format!("{text}{}", "x".repeat(least.saturating_sub(text.len())));
    filled.chars().take(most).collect()
}

/// The integer nearest to 1 that is allowed.
fn integer(schema: &Value) -> i64 {
    // API servers may write 3.0 for 3.
    let bound = |key: &str| schema[key].as_i64().or_else(|| format!("{:.0}", schema[key].as_f64()?).parse().ok());
    let step = |exclusive: &str| i64::from(schema[exclusive] == true);
    let least = bound("minimum").map_or(i64::MIN, |least| least + step("exclusiveMinimum"));
    let most = bound("maximum").map_or(i64::MAX, |most| most - step("exclusiveMaximum"));
    1.max(least).min(most.max(least))
}

/// The number nearest to 1 that is allowed.
fn number(schema: &Value) -> f64 {
    let bound = |key: &str| schema[key].as_f64();
    let step = |exclusive: &str| if schema[exclusive] == true { 1.0 } else { 0.0 };
    let least = bound("minimum").map_or(f64::MIN, |least| least + step("exclusiveMinimum"));
    let most = bound("maximum").map_or(f64::MAX, |most| most - step("exclusiveMaximum"));
    1_f64.max(least).min(most.max(least))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_small_and_allowed() {
        let cases = [
            (json!({ "type": "string" }), json!("changeme")),
            (json!({ "type": "string", "minLength": 10 }), json!("changemexx")),
            (json!({ "type": "string", "maxLength": 3 }), json!("cha")),
            (json!({ "type": "string", "enum": ["a", "b"] }), json!("a")),
            (json!({ "type": "string", "default": "d", "enum": ["a", "d"] }), json!("d")),
            (json!({ "type": "string", "format": "ipv4" }), json!("192.0.2.1")),
            (json!({ "type": "integer" }), json!(1)),
            (json!({ "type": "integer", "minimum": 3 }), json!(3)),
            (json!({ "type": "integer", "minimum": 3.0 }), json!(3)),
            (json!({ "type": "integer", "minimum": 3, "exclusiveMinimum": true }), json!(4)),
            (json!({ "type": "integer", "maximum": -2 }), json!(-2)),
            (json!({ "type": "array", "items": { "type": "string" } }), json!([])),
            (json!({ "type": "array", "minItems": 1, "items": { "type": "boolean" } }), json!([false])),
            (json!({ "x-kubernetes-int-or-string": true }), json!(1)),
            (
                json!({ "type": "object", "required": ["a"], "properties": { "a": { "type": "object" }, "b": {} } }),
                json!({ "a": {} }),
            ),
            (json!({}), json!({})),
        ];
        for (schema, wanted) in cases {
            assert_eq!(sample(&schema), wanted, "{schema}");
        }
    }
}
