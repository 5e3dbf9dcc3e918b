//! Conversions between the versions of a kind, tried on objects that its schemas allow: there and back again.

use std::fmt;

use crate::Schema;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::evolution::definition::Definition;
use crate::evolution::sample::samples;

/// How many objects are tried for one pair of versions.
const TRIES: usize = 240;
/// How many losses are reported for one pair of versions.
const MOST: usize = 6;

/// Something that a conversion does not keep.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Loss {
    /// The version that objects start from, and come back to.
    pub from: String,
    /// The version they are converted to.
    pub to: String,
    /// The field, without a version; empty for the whole object.
    pub path: String,
    /// What happens to it.
    pub reason: String,
    /// An object to which it happens.
    pub example: Value,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = if self.path.is_empty() { String::new() } else { format!("{}: ", self.path) };
        write!(f, "{} → {}: {place}{}", self.from, self.to, self.reason)
    }
}

/// Converts objects of every version that is served or stored to every other one and back, and reports what does not come back as it was.
///
/// Objects are those that the schema of their version allows, as they are stored. Empty objects count as absent: many conversions cannot keep
/// them, and few APIs tell them apart.
pub fn round_trips(definition: &Definition, convert: &dyn Fn(&Value, &str) -> Result<Value, String>) -> Vec<Loss> {
    let versions = definition.versions.iter().filter(|version| version.served || version.storage);
    let versions: Vec<(&str, &Value, Schema)> = versions
        // Rules that cannot be compiled are refused by the API server.
        .filter_map(|version| Some((version.name.as_str(), &version.schema, Schema::compile(&version.schema).ok()?)))
        .collect();
    let mut losses = Vec::new();
    for (from, schema, compiled) in &versions {
        let examples = examples(definition, from, schema, compiled);
        for (to, _, there) in versions.iter().filter(|(to, _, _)| to != from) {
            let mut pair: Vec<Loss> = Vec::new();
            for example in &examples {
                let trip = Trip { from, to, before: compiled, there, convert };
                for (path, reason) in trip.take(example) {
                    if pair.len() < MOST && !pair.iter().any(|known| known.path == path) {
                        let (from, to) = ((*from).to_owned(), (*to).to_owned());
                        pair.push(Loss { from, to, path, reason, example: example.clone() });
                    }
                }
            }
            losses.extend(pair);
        }
    }
    losses
}

/// Objects that a version allows, as they are stored.
fn examples(definition: &Definition, version: &str, schema: &Value, compiled: &Schema) -> Vec<Value> {
    let group = &definition.group;
    let api_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    stored(&api_version, &definition.kind, schema, compiled)
}

/// Objects of a kind that the schema of one of its versions allows, as they are stored. None if the schema is not one that API servers take.
pub fn stored_examples(api_version: &str, kind: &str, schema: &Value) -> Vec<Value> {
    Schema::compile(schema).map(|compiled| stored(api_version, kind, schema, &compiled)).unwrap_or_default()
}

fn stored(api_version: &str, kind: &str, schema: &Value, compiled: &Schema) -> Vec<Value> {
    let mut all: Vec<Value> = Vec::new();
    for mut object in samples(schema).into_iter().filter(Value::is_object) {
        object["apiVersion"] = api_version.into();
        object["kind"] = kind.into();
        object["metadata"] = json!({ "name": "example" });
        let object = compiled.stored(object);
        if all.len() < TRIES && compiled.validate(&object, None).is_empty() && !all.contains(&object) {
            all.push(object);
        }
    }
    all
}

struct Trip<'a> {
    from: &'a str,
    to: &'a str,
    before: &'a Schema,
    there: &'a Schema,
    convert: &'a dyn Fn(&Value, &str) -> Result<Value, String>,
}

impl Trip<'_> {
    /// What happens to an object on the way there and back: paths and reasons.
    fn take(&self, object: &Value) -> Vec<(String, String)> {
        let (from, to) = (self.from, self.to);
        let mut there = match (self.convert)(object, to) {
            Ok(converted) => converted,
            Err(problem) => return vec![(String::new(), format!("it cannot be converted: {problem}"))],
        };
        self.there.drop_nulls(&mut there);
        let mut unknown = Vec::new();
        self.there.prune(&mut without_empty(&there), &mut unknown);
        if !unknown.is_empty() {
            let reported = |path: String| (path, format!("{to} has no such field, and what is left there is dropped"));
            return unknown.into_iter().map(reported).collect();
        }
        let there = self.there.stored(there);
        if let Some(cause) = self.there.validate(&there, None).first() {
            return vec![(cause.field.clone(), format!("{to} refuses what comes out: {}", cause.text()))];
        }
        let back = match (self.convert)(&there, from) {
            Ok(back) => self.before.stored(back),
            Err(problem) => return vec![(String::new(), format!("it cannot be converted back: {problem}"))],
        };
        let mut differences = Vec::new();
        compare(&without_empty(object), &without_empty(&back), String::new(), &mut differences);
        differences
    }
}

fn compare(before: &Value, after: &Value, path: String, differences: &mut Vec<(String, String)>) {
    if before == after {
        return;
    }
    // What is absent has no fields, so that the fields are reported and not what is around them.
    let none = Map::new();
    let fields = match (before, after) {
        (Value::Object(old), Value::Object(new)) => Some((old, new)),
        (Value::Object(old), Value::Null) => Some((old, &none)),
        (Value::Null, Value::Object(new)) => Some((&none, new)),
        _ => None,
    };
    if let Some((old, new)) = fields {
        for key in old.keys().chain(new.keys().filter(|key| !old.contains_key(*key))) {
            let below = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            let value = |map: &Map<String, Value>| map.get(key).cloned().unwrap_or_default();
            compare(&value(old), &value(new), below, differences);
        }
        return;
    }
    let reason = match (before, after) {
        (before, Value::Null) => format!("{before} is gone after the way back"),
        (Value::Null, after) => format!("it is {after} after the way back, and was not there before"),
        (before, after) => format!("{before} is {after} after the way back"),
    };
    differences.push((path, reason));
}

/// The same without empty objects, wherever they are in other objects.
fn without_empty(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let kept = map.iter().map(|(key, value)| (key.clone(), without_empty(value)));
            kept.filter(|(_, value)| value.as_object().is_none_or(|map| !map.is_empty())).collect()
        }
        Value::Array(list) => list.iter().map(without_empty).collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// v1 has `size`, v2 has `capacity` and `color`.
    fn definition() -> Definition {
        let version = |name: &str, properties: Value| {
            let spec = json!({"type": "object", "properties": properties});
            json!({
                "name": name, "served": true, "storage": name == "v1",
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
            })
        };
        let size = json!({"type": "integer", "minimum": 1});
        let document = json!({
            "kind": "CustomResourceDefinition", "metadata": {"name": "gears.example.com"},
            "spec": {
                "group": "example.com", "scope": "Namespaced", "names": {"plural": "gears", "kind": "Gear"},
                "versions": [
                    version("v1", json!({"size": size})),
                    version("v2", json!({"capacity": size, "color": {"type": "string"}})),
                ],
            },
        });
        Definition::read(&document).unwrap()
    }

    fn renamed(object: &Value, to: &str) -> Value {
        let mut object = object.clone();
        object["apiVersion"] = format!("example.com/{to}").into();
        let (old, new) = if to == "v2" { ("size", "capacity") } else { ("capacity", "size") };
        if let Some(spec) = object["spec"].as_object_mut()
            && let Some(value) = spec.remove(old)
        {
            spec.insert(new.to_owned(), value);
        }
        object
    }

    fn reported(convert: &dyn Fn(&Value, &str) -> Result<Value, String>) -> Vec<String> {
        round_trips(&definition(), convert).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_field_without_a_place_is_named() {
        let lost = reported(&|object, to| Ok(renamed(object, to)));
        assert_eq!(lost, ["v2 → v1: spec.color: v1 has no such field, and what is left there is dropped"]);
        let lost = reported(&|object, to| {
            let mut object = renamed(object, to);
            object["spec"].as_object_mut().map(|spec| if to == "v1" { spec.remove("color") } else { None });
            Ok(object)
        });
        assert!(
            lost.len() == 1
                && lost[0].starts_with("v2 → v1: spec.color: ")
                && lost[0].ends_with("is gone after the way back"),
            "{lost:?}"
        );
    }

    #[test]
    fn nothing_is_told_of_conversions_that_keep_everything() {
        let kept = reported(&|object, to| {
            let mut object = renamed(object, to);
            let spec = object["spec"].as_object_mut();
            if to == "v1"
                && let Some(color) = spec.and_then(|spec| spec.remove("color"))
            {
                object["metadata"]["annotations"] = json!({"color": color});
            } else if let Some(color) = object["metadata"].as_object_mut().and_then(|map| map.remove("annotations")) {
                object["spec"]["color"] = color["color"].clone();
            }
            Ok(object)
        });
        assert_eq!(kept, Vec::<String>::new());
    }

    #[test]
    fn failures_and_refusals_are_told() {
        let lost = reported(&|_, _| Err("no".to_owned()));
        assert_eq!(lost, ["v1 → v2: it cannot be converted: no", "v2 → v1: it cannot be converted: no"]);
        let lost = reported(&|object, to| {
            let mut object = renamed(object, to);
            object["spec"] = if to == "v2" { json!({"capacity": 0}) } else { json!({}) };
            Ok(object)
        });
        assert!(lost[0].starts_with("v1 → v2: spec.capacity: v2 refuses what comes out: "), "{lost:?}");
    }
}
