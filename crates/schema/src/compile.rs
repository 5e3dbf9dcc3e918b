//! Turns `openAPIV3Schema` into a [`Schema`]. Whether it is structural is checked by whoever takes in definitions; what is not is read as
//! well as can be. Only patterns and rules that cannot be compiled are refused here.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::admit::{self, RuleContext};
use crate::error::SchemaError;
use crate::node::{Checks, ListType, Schema, Type};
use crate::pattern;

/// Where schemas begin.
const ROOT: &str = "openAPIV3Schema";

impl Schema {
    /// Compiles the schema of one version.
    pub fn compile(schema: &Value) -> Result<Schema, SchemaError> {
        node(schema, &Place { path: ROOT, position: Position::Structure, uncorrelated: None }, None)
    }

    /// The same for a schema that differs little from one that is compiled: only nodes that differ, and those around them, are compiled again.
    pub(crate) fn compile_like(schema: &Value, known: (&Value, &Schema)) -> Result<Schema, SchemaError> {
        let place = Place { path: ROOT, position: Position::Structure, uncorrelated: None };
        node(schema, &place, Some(Known { schema: known.0, compiled: known.1, is_uncorrelated: false }))
    }

    /// Compiles the schema of a value inside an object.
    pub fn part(schema: &Value) -> Result<Schema, SchemaError> {
        let path = "openAPIV3Schema.properties[part]";
        node(schema, &Place { path, position: Position::Structure, uncorrelated: None }, None)
    }
}

#[cfg(test)]
thread_local! {
    /// How many nodes were compiled: large kinds have thousands, and must not be compiled again for every change.
    pub(crate) static COMPILED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// What a node is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Position {
    /// It says what values look like.
    Structure,
    /// It is a condition inside allOf, anyOf, oneOf or not, which has no rules.
    Condition,
}

/// Where a node is.
#[derive(Debug, Clone, Copy)]
struct Place<'a> {
    path: &'a str,
    position: Position,
    /// The surrounding list whose items have no old values.
    uncorrelated: Option<&'a str>,
}

/// A node of another schema at the same place, and what was made of it.
#[derive(Debug, Clone, Copy)]
struct Known<'a> {
    schema: &'a Value,
    compiled: &'a Schema,
    is_uncorrelated: bool,
}

impl<'a> Known<'a> {
    /// The node below that a value of the schema leads to, if both have it.
    fn below(self, schema: Option<&'a Value>, compiled: Option<&'a Schema>) -> Option<Self> {
        Some(Self { schema: schema?, compiled: compiled?, ..self })
    }

    /// What may be said about old values depends on the lists around a node.
    fn is_at(&self, place: &Place<'_>) -> bool {
        self.is_uncorrelated == place.uncorrelated.is_some()
    }

    /// Whether the rules of a node are the same and see the same types.
    fn has_same_rules(&self, schema: &Value, place: &Place<'_>) -> bool {
        let rules = "x-kubernetes-validations";
        self.is_at(place) && self.schema[rules] == schema[rules] && has_same_types(self.schema, schema)
    }
}

fn node(schema: &Value, place: &Place<'_>, known: Option<Known<'_>>) -> Result<Schema, SchemaError> {
    let Place { path, position, uncorrelated } = *place;
    if let Some(known) = known.filter(|known| known.is_at(place) && known.schema == schema) {
        return Ok(known.compiled.clone());
    }
    #[cfg(test)]
    COMPILED.set(COMPILED.get() + 1);
    if !schema.is_object() {
        let message = "Invalid value: must be a schema object".to_owned();
        return Err(SchemaError { field: path.to_owned(), message, reason: "FieldValueInvalid" });
    }
    let flag = |key: &str| schema[key] == true;
    let mut properties = BTreeMap::new();
    for (name, child) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}.properties[{name}]");
        let known = known.and_then(|it| it.below(it.schema["properties"].get(name), it.compiled.properties.get(name)));
        properties.insert(name.clone(), node(child, &Place { path: &path, ..*place }, known)?);
    }
    let additional = match schema.get("additionalProperties") {
        Some(child @ Value::Object(_)) => {
            let path = format!("{path}.additionalProperties");
            let known =
                known.and_then(|it| it.below(it.schema.get("additionalProperties"), it.compiled.additional.as_deref()));
            Some(Box::new(node(child, &Place { path: &path, ..*place }, known)?))
        }
        _ => None,
    };
    let list = list_type(schema);
    let within = uncorrelated.or_else(|| (!matches!(list, ListType::Map(_))).then_some(path));
    let items = match schema.get("items").filter(|child| child.is_object()) {
        Some(child) => {
            let path = format!("{path}.items");
            let known = known.and_then(|it| {
                let is_uncorrelated = it.is_uncorrelated || !matches!(it.compiled.list, ListType::Map(_));
                Known { is_uncorrelated, ..it }.below(it.schema.get("items"), it.compiled.items.as_deref())
            });
            Some(Box::new(node(child, &Place { path: &path, uncorrelated: within, ..*place }, known)?))
        }
        None => None,
    };
    let rules = if position == Position::Condition {
        None
    } else if let Some(known) = known.filter(|known| known.has_same_rules(schema, place)) {
        known.compiled.rules.clone()
    } else {
        let rules = admit::rules(schema, &RuleContext { path, root: path == ROOT, uncorrelated })?;
        (!rules.is_empty()).then(|| rules.into())
    };
    let default = schema.get("default").cloned();
    let children = || properties.values().chain(additional.as_deref()).chain(items.as_deref());
    Ok(Schema {
        has_defaults: default.is_some() || children().any(|child| child.has_defaults),
        has_rules: rules.is_some() || children().any(|child| child.has_rules),
        kind: kind(schema),
        nullable: flag("nullable"),
        open: flag("additionalProperties"),
        preserve: flag("x-kubernetes-preserve-unknown-fields"),
        embedded: flag("x-kubernetes-embedded-resource"),
        default,
        required: texts(&schema["required"]),
        list,
        atomic: schema["x-kubernetes-map-type"] == "atomic",
        checks: checks(schema, path)?.into(),
        rules,
        properties: properties.into(),
        additional,
        items,
    })
}

/// Everything, apart from what is below, that makes the type of a value in rules.
const TYPES: [&str; 7] = [
    "type",
    "format",
    "x-kubernetes-int-or-string",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
];

/// Whether rules see the same types below two nodes.
fn has_same_types(old: &Value, new: &Value) -> bool {
    let below = |key: &str| match (&old[key], &new[key]) {
        (old @ Value::Object(_), new @ Value::Object(_)) => has_same_types(old, new),
        (old, new) => old == new,
    };
    let fields = match (old["properties"].as_object(), new["properties"].as_object()) {
        (Some(old), Some(new)) => {
            old.len() == new.len()
                && old.iter().all(|(name, old)| new.get(name).is_some_and(|new| has_same_types(old, new)))
        }
        (old, new) => old.is_none() && new.is_none(),
    };
    TYPES.iter().all(|key| old[key] == new[key]) && fields && below("items") && below("additionalProperties")
}

fn kind(schema: &Value) -> Type {
    if schema["x-kubernetes-int-or-string"] == true {
        return Type::IntOrString;
    }
    match schema["type"].as_str() {
        Some("object") => Type::Object,
        Some("array") => Type::Array,
        Some("string") => Type::String,
        Some("integer") => Type::Integer,
        Some("number") => Type::Number,
        Some("boolean") => Type::Boolean,
        _ => Type::Any,
    }
}

fn list_type(schema: &Value) -> ListType {
    match schema["x-kubernetes-list-type"].as_str() {
        Some("set") => ListType::Set,
        Some("map") => ListType::Map(texts(&schema["x-kubernetes-list-map-keys"])),
        _ => ListType::Atomic,
    }
}

fn checks(schema: &Value, path: &str) -> Result<Checks, SchemaError> {
    let pattern = match schema["pattern"].as_str() {
        Some(text) if !text.is_empty() => {
            let regex = pattern::compiled(text).map_err(|error| {
                let field = format!("{path}.pattern");
                let message =
                    format!("Invalid value: {text:?}: must be a valid regular expression, but isn't: {error}");
                SchemaError { field, message, reason: "FieldValueInvalid" }
            })?;
            Some(regex)
        }
        _ => None,
    };
    let branches = |key: &str| -> Result<Vec<Schema>, SchemaError> {
        let list = schema[key].as_array().into_iter().flatten().enumerate();
        list.map(|(index, child)| condition(child, &format!("{path}.{key}[{index}]"))).collect()
    };
    Ok(Checks {
        values: schema["enum"].as_array().filter(|values| !values.is_empty()).cloned(),
        minimum: schema["minimum"].as_f64(),
        maximum: schema["maximum"].as_f64(),
        exclusive_minimum: schema["exclusiveMinimum"] == true,
        exclusive_maximum: schema["exclusiveMaximum"] == true,
        multiple_of: schema["multipleOf"].as_f64(),
        min_length: schema["minLength"].as_u64(),
        max_length: schema["maxLength"].as_u64(),
        pattern,
        min_items: schema["minItems"].as_u64(),
        max_items: schema["maxItems"].as_u64(),
        unique: schema["uniqueItems"] == true,
        min_properties: schema["minProperties"].as_u64(),
        max_properties: schema["maxProperties"].as_u64(),
        format: schema["format"].as_str().map(str::to_owned),
        all_of: branches("allOf")?,
        any_of: branches("anyOf")?,
        one_of: branches("oneOf")?,
        not: match schema.get("not") {
            Some(child) => Some(Box::new(condition(child, &format!("{path}.not"))?)),
            None => None,
        },
    })
}

fn condition(schema: &Value, path: &str) -> Result<Schema, SchemaError> {
    node(schema, &Place { path, position: Position::Condition, uncorrelated: None }, None)
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;

    #[test]
    fn a_schema_that_differs_little_is_compiled_little_and_is_the_same() {
        let rule = |text: &str| json!([{ "rule": text }]);
        let part = |text: &str| json!({ "type": "string", "x-kubernetes-validations": rule(text) });
        let list = |kind: &str| {
            let item = json!({ "type": "object", "required": ["k"], "properties": { "k": { "type": "string" } }, "x-kubernetes-validations": rule("self.k == oldSelf.k") });
            json!({ "type": "array", "x-kubernetes-list-type": kind, "x-kubernetes-list-map-keys": ["k"], "items": item })
        };
        let whole = |changed: &str, kind: &str| {
            let maps = json!({ "type": "object", "additionalProperties": part("size(self) < 9") });
            json!({ "type": "object", "properties": { "a": part("size(self) < 5"), "b": part(changed), "l": list(kind), "m": maps } })
        };
        let old = whole("size(self) < 3", "map");
        let known = Schema::compile(&old).unwrap();
        let new = whole("size(self) < 2", "map");
        let made = Schema::compile_like(&new, (&old, &known)).unwrap();
        // Rules around it see another type only where there is one.
        let around = |kind: &str, least: u64| {
            let field = json!({ "type": kind, "minLength": least });
            let below = json!({ "type": "object", "properties": { "n": field }, "x-kubernetes-validations": rule("has(self.n) || true") });
            json!({ "type": "object", "properties": { "o": below } })
        };
        let first = around("string", 0);
        let seen = Schema::compile(&first).unwrap();
        let rules = |schema: &Schema, name: &str| schema.properties.get(name).unwrap().rules.clone().unwrap();
        assert!(Arc::ptr_eq(&rules(&known, "a"), &rules(&made, "a")));
        assert!(!Arc::ptr_eq(&rules(&known, "b"), &rules(&made, "b")));
        let shares = |schema: Value| {
            let made = Schema::compile_like(&schema, (&first, &seen)).unwrap();
            Arc::ptr_eq(&rules(&seen, "o"), &rules(&made, "o"))
        };
        assert!(shares(around("string", 1)) && !shares(around("integer", 0)));
        let plain = Schema::compile(&new).unwrap();
        for object in [json!({ "a": "12345" }), json!({ "b": "12" }), json!({ "b": "1", "m": { "x": "123456789" } })] {
            assert_eq!(made.validate(&object, None), plain.validate(&object, None), "{object}");
        }
        assert_eq!(made.validate(&json!({ "b": "12" }), None).len(), 1);
        // Items without an identity have no old values, though they say the same as before.
        let error = |schema: &Value| Schema::compile_like(schema, (&old, &known)).unwrap_err().to_string();
        assert!(error(&whole("size(self) < 3", "atomic")).contains("oldSelf cannot be used"));
    }
}
