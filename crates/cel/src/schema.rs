//! The part of a CRD's schema that rules depend on: which types values have, and how JSON becomes values of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use carrick_go::duration;
use serde_json::Value;

use crate::convert::{Integers, entries, to_cel};
use crate::error::EvalError;
use crate::escape::escape;
use crate::types::{Fields, Type};
use crate::value::time::{self, Time};
use crate::value::{List, ListKind, Value as Cel};

/// The key of a schema of our own that says how the type of its objects is called in messages.
pub(crate) const TYPE_NAME: &str = "x-carrick-type-name";

/// A node of a structural schema, prepared for the rules at this node. Copying it is cheap.
///
/// ```
/// use carrick_cel::{Rule, Schema};
/// use serde_json::json;
///
/// let schema = Schema::node(&json!({"type": "string", "format": "date-time"}));
/// assert!(Rule::compile_typed(&json!({"rule": "self.getFullYear() > 2000"}), &schema).is_ok());
/// assert!(Rule::compile_typed(&json!({"rule": "self.startsWith('2')"}), &schema).is_err());
/// ```
#[derive(Debug, Clone)]
pub struct Schema {
    /// None when values of this node cannot be used in rules.
    kind: Option<Type>,
    shape: Arc<JsonShape>,
}

/// How JSON is read.
#[derive(Debug)]
enum JsonShape {
    /// Whatever it is: no schema, or one that says nothing rules can use.
    Plain,
    Double,
    Bytes,
    Duration,
    Date,
    DateTime,
    List(Box<JsonShape>, ListKind),
    Map(Box<JsonShape>),
    Object(BTreeMap<String, JsonShape>),
}

impl Schema {
    /// The schema at the root of a custom resource, where `apiVersion`, `kind`, `metadata.name` and
    /// `metadata.generateName` can always be used.
    pub fn root(schema: &Value) -> Self {
        Self::build(schema, true)
    }

    /// The schema of a node below the root.
    pub fn node(schema: &Value) -> Self {
        Self::build(schema, is_set(schema, "x-kubernetes-embedded-resource"))
    }

    fn build(schema: &Value, resource: bool) -> Self {
        let (kind, shape) = read(schema, resource, "object");
        Self { kind, shape: Arc::new(shape) }
    }

    /// Whether a path such as `.spec.size` or `.labels['a']` leads to a field of the schema.
    pub fn has_field(&self, path: &str) -> bool {
        let mut here: &JsonShape = &self.shape;
        let mut rest = path;
        while !rest.is_empty() {
            let (name, after) = if let Some(after) = rest.strip_prefix("['") {
                let Some((name, after)) = after.split_once("']") else { return false };
                (name, after)
            } else if let Some(after) = rest.strip_prefix('.') {
                after.split_at(after.find(['.', '[']).unwrap_or(after.len()))
            } else {
                return false;
            };
            here = match here {
                JsonShape::Map(values) => values,
                JsonShape::Object(fields) if fields.contains_key(name) => &fields[name],
                _ => return false,
            };
            rest = after;
        }
        !path.is_empty()
    }

    /// The type of values; none when rules cannot be written for them.
    pub(crate) fn kind(&self) -> Option<&Type> {
        self.kind.as_ref()
    }

    /// The value of this schema that JSON stands for.
    pub(crate) fn value(&self, json: &Value) -> Result<Cel, EvalError> {
        self.shape.value(json)
    }
}

fn is_set(schema: &Value, name: &str) -> bool {
    schema.get(name).and_then(Value::as_bool).unwrap_or_default()
}

/// The type and shape of a schema; `path` names objects in messages.
fn read(schema: &Value, resource: bool, path: &str) -> (Option<Type>, JsonShape) {
    if is_set(schema, "x-kubernetes-int-or-string") {
        return (Some(Type::Dyn), JsonShape::Plain);
    }
    let below = |schema: &Value, name: &str| {
        read(schema, is_set(schema, "x-kubernetes-embedded-resource"), &format!("{path}.{name}"))
    };
    match schema.get("type").and_then(Value::as_str) {
        Some("boolean") => (Some(Type::Bool), JsonShape::Plain),
        Some("integer") => (Some(Type::Int), JsonShape::Plain),
        Some("number") => (Some(Type::Double), JsonShape::Double),
        Some("string") => match schema.get("format").and_then(Value::as_str) {
            Some("byte") => (Some(Type::Bytes), JsonShape::Bytes),
            Some("duration") => (Some(Type::Duration), JsonShape::Duration),
            Some("date") => (Some(Type::Timestamp), JsonShape::Date),
            Some("date-time") => (Some(Type::Timestamp), JsonShape::DateTime),
            _ => (Some(Type::String), JsonShape::Plain),
        },
        Some("array") => match schema.get("items").filter(|items| items.is_object()) {
            Some(items) => {
                let (item, shape) = below(items, "@idx");
                (item.map(Type::list), JsonShape::List(Box::new(shape), list_kind(schema)))
            }
            None => (None, JsonShape::Plain),
        },
        Some("object") => match schema.get("additionalProperties").filter(|values| values.is_object()) {
            Some(values) if !resource => {
                let (value, shape) = below(values, "@elem");
                (value.map(|value| Type::map(Type::String, value)), JsonShape::Map(Box::new(shape)))
            }
            _ => object(schema, resource, path, below),
        },
        _ => (None, JsonShape::Plain),
    }
}

fn object(
    schema: &Value,
    resource: bool,
    path: &str,
    below: impl Fn(&Value, &str) -> (Option<Type>, JsonShape),
) -> (Option<Type>, JsonShape) {
    let mut properties: BTreeMap<String, Value> = BTreeMap::new();
    if let Some(found) = schema.get("properties").and_then(Value::as_object) {
        properties.extend(found.iter().map(|(name, property)| (name.clone(), property.clone())));
    }
    if resource {
        let text = serde_json::json!({"type": "string"});
        let metadata = serde_json::json!({"type": "object", "properties": {"name": text, "generateName": text}});
        properties.insert("apiVersion".to_owned(), text.clone());
        properties.insert("kind".to_owned(), text);
        properties.insert("metadata".to_owned(), metadata);
    }
    let (mut fields, mut shapes) = (BTreeMap::new(), BTreeMap::new());
    for (name, property) in properties {
        let (kind, shape) = below(&property, &name);
        if let (Some(kind), Some(escaped)) = (kind, escape(&name)) {
            fields.insert(escaped, kind);
        }
        shapes.insert(name, shape);
    }
    let path = schema.get(TYPE_NAME).and_then(Value::as_str).unwrap_or(path).to_owned();
    (Some(Type::Object(Arc::new(Fields { path, fields }))), JsonShape::Object(shapes))
}

fn list_kind(schema: &Value) -> ListKind {
    match schema.get("x-kubernetes-list-type").and_then(Value::as_str) {
        Some("set") => ListKind::Set,
        Some("map") => {
            let keys = schema.get("x-kubernetes-list-map-keys").and_then(Value::as_array);
            let keys = keys.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned);
            ListKind::Map(keys.collect())
        }
        _ => ListKind::Atomic,
    }
}

impl JsonShape {
    fn value(&self, json: &Value) -> Result<Cel, EvalError> {
        Ok(match (self, json) {
            (_, Value::Null) => Cel::Null,
            (Self::Double, Value::Number(number)) => Cel::Double(number.as_f64().unwrap_or_default()),
            (Self::Bytes, Value::String(text)) => {
                let bytes = data_encoding::BASE64.decode(text.as_bytes());
                Cel::Bytes(bytes.map_err(|_| EvalError::Schema("no base64 text"))?.into())
            }
            (Self::Duration, Value::String(text)) => {
                Cel::Duration(duration::parse_format(text).ok_or(EvalError::Schema("no duration"))?)
            }
            (Self::Date, Value::String(text)) => {
                let found = time::parse_timestamp(&format!("{text}T00:00:00Z"));
                Cel::Timestamp(found.ok_or(EvalError::Schema("no date"))?)
            }
            (Self::DateTime, Value::String(text)) => {
                Cel::Timestamp(date_time(text).ok_or(EvalError::Schema("no date and time"))?)
            }
            (Self::List(item, kind), Value::Array(items)) => {
                let items = items.iter().map(|found| item.value(found)).collect::<Result<_, _>>()?;
                Cel::List(Arc::new(List { items, kind: kind.clone() }))
            }
            (Self::Map(shape), Value::Object(map)) => {
                let pairs = present(map).map(|(key, found)| Ok((key, shape.value(found)?)));
                Cel::map(entries(pairs.collect::<Result<Vec<_>, EvalError>>()?.into_iter()))
            }
            (Self::Object(shapes), Value::Object(map)) => {
                let value = |key: &String, found: &Value| match shapes.get(key) {
                    Some(shape) => shape.value(found),
                    None => Ok(to_cel(found, Integers::Kept)),
                };
                let pairs = present(map).map(|(key, found)| Ok((key, value(key, found)?)));
                Cel::map(entries(pairs.collect::<Result<Vec<_>, EvalError>>()?.into_iter()))
            }
            _ => to_cel(json, Integers::Kept),
        })
    }
}

/// The fields that have a value; null counts as absent.
fn present(map: &serde_json::Map<String, Value>) -> impl Iterator<Item = (&String, &Value)> {
    map.iter().filter(|(_, value)| !value.is_null())
}

/// RFC 3339, also with a space or in lower case; the zone may be missing its colon.
fn date_time(text: &str) -> Option<Time> {
    if text.is_empty() {
        return Time::utc(0);
    }
    time::parse_timestamp(text).or_else(|| time::parse_timestamp(&text.to_ascii_uppercase()))
}
