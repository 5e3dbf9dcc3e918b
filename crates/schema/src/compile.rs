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
        node(schema, ROOT, Position::Structure, None)
    }

    /// Compiles the schema of a value inside an object.
    pub fn part(schema: &Value) -> Result<Schema, SchemaError> {
        node(schema, "openAPIV3Schema.properties[part]", Position::Structure, None)
    }
}

/// What a node is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Position {
    /// It says what values look like.
    Structure,
    /// It is a condition inside allOf, anyOf, oneOf or not, which has no rules.
    Condition,
}

/// `uncorrelated` is the surrounding list whose items have no old values.
fn node(schema: &Value, path: &str, position: Position, uncorrelated: Option<&str>) -> Result<Schema, SchemaError> {
    if !schema.is_object() {
        let message = "Invalid value: must be a schema object".to_owned();
        return Err(SchemaError { field: path.to_owned(), message, reason: "FieldValueInvalid" });
    }
    let flag = |key: &str| schema[key] == true;
    let mut properties = BTreeMap::new();
    for (name, child) in schema["properties"].as_object().into_iter().flatten() {
        properties.insert(name.clone(), node(child, &format!("{path}.properties[{name}]"), position, uncorrelated)?);
    }
    let additional = match schema.get("additionalProperties") {
        Some(child @ Value::Object(_)) => {
            Some(Box::new(node(child, &format!("{path}.additionalProperties"), position, uncorrelated)?))
        }
        _ => None,
    };
    let list = list_type(schema);
    let within = uncorrelated.or_else(|| (!matches!(list, ListType::Map(_))).then_some(path));
    let items = match schema.get("items").filter(|child| child.is_object()) {
        Some(child) => Some(Box::new(node(child, &format!("{path}.items"), position, within)?)),
        None => None,
    };
    let rules = match position {
        Position::Structure => admit::rules(schema, &RuleContext { path, root: path == ROOT, uncorrelated })?,
        Position::Condition => Vec::new(),
    };
    let default = schema.get("default").cloned();
    let children = || properties.values().chain(additional.as_deref()).chain(items.as_deref());
    Ok(Schema {
        has_defaults: default.is_some() || children().any(|child| child.has_defaults),
        has_rules: !rules.is_empty() || children().any(|child| child.has_rules),
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
        list.map(|(index, child)| node(child, &format!("{path}.{key}[{index}]"), Position::Condition, None)).collect()
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
            Some(child) => Some(Box::new(node(child, &format!("{path}.not"), Position::Condition, None)?)),
            None => None,
        },
    })
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}
