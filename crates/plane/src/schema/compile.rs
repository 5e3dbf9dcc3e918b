//! Turns `openAPIV3Schema` into a [`Schema`], refusing what is not structural.

use std::collections::BTreeMap;

use serde_json::Value;

use super::admit::{self, RuleContext};
use super::error::SchemaError;
use super::node::{Checks, ListType, Schema, Type};
use super::pattern;

/// Where schemas begin.
const ROOT: &str = "openAPIV3Schema";

impl Schema {
    /// Compiles the schema of one version; the root must be structural.
    pub fn compile(schema: &Value) -> Result<Schema, SchemaError> {
        node(schema, ROOT, true, None)
    }

    /// Compiles the schema of a value inside an object.
    pub(crate) fn part(schema: &Value) -> Result<Schema, SchemaError> {
        node(schema, "openAPIV3Schema.properties[part]", true, None)
    }
}

fn required(field: &str, message: &str) -> SchemaError {
    SchemaError { field: field.to_owned(), message: format!("Required value: {message}"), reason: "FieldValueRequired" }
}

fn invalid(field: &str, message: &str) -> SchemaError {
    SchemaError { field: field.to_owned(), message: message.to_owned(), reason: "FieldValueInvalid" }
}

/// `structural` is false inside allOf, anyOf, oneOf and not, where types may be left out; `uncorrelated` is the surrounding list whose
/// items have no old values.
fn node(schema: &Value, path: &str, structural: bool, uncorrelated: Option<&str>) -> Result<Schema, SchemaError> {
    if !schema.is_object() {
        return Err(invalid(path, "Invalid value: must be a schema object"));
    }
    if schema.get("$ref").is_some() {
        return Err(SchemaError {
            field: format!("{path}.$ref"),
            message: "Forbidden: $ref is not supported".into(),
            reason: "FieldValueForbidden",
        });
    }
    let flag = |key: &str| schema[key] == true;
    let preserve = flag("x-kubernetes-preserve-unknown-fields");
    let kind = kind(schema, path, structural, preserve)?;
    let mut properties = BTreeMap::new();
    for (name, child) in schema["properties"].as_object().into_iter().flatten() {
        properties.insert(name.clone(), node(child, &format!("{path}.properties[{name}]"), structural, uncorrelated)?);
    }
    let additional = match schema.get("additionalProperties") {
        Some(child @ Value::Object(_)) => {
            Some(Box::new(node(child, &format!("{path}.additionalProperties"), structural, uncorrelated)?))
        }
        _ => None,
    };
    let list = list_type(schema);
    let within = uncorrelated.or_else(|| (!matches!(list, ListType::Map(_))).then_some(path));
    let items = match schema.get("items").filter(|child| !child.is_null()) {
        Some(child) => Some(Box::new(node(child, &format!("{path}.items"), structural, within)?)),
        None if kind == Type::Array && structural => {
            return Err(required(&format!("{path}.items"), "must be specified"));
        }
        None => None,
    };
    let rules = if structural {
        admit::rules(schema, &RuleContext { path, root: path == ROOT, uncorrelated })?
    } else {
        admit::none(schema, path)?;
        Vec::new()
    };
    let default = schema.get("default").cloned();
    let children = || properties.values().chain(additional.as_deref()).chain(items.as_deref());
    if let (ListType::Map(keys), Some(items)) = (&list, &items) {
        check_keys(keys, items, path)?;
    }
    let compiled = Schema {
        has_defaults: default.is_some() || children().any(|child| child.has_defaults),
        has_rules: !rules.is_empty() || children().any(|child| child.has_rules),
        kind,
        nullable: flag("nullable"),
        open: flag("additionalProperties"),
        preserve,
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
    };
    if let Some(fault) =
        compiled.default.as_ref().and_then(|default| compiled.validate(default, None).into_iter().next())
    {
        let dot = if fault.field.is_empty() { "" } else { "." };
        return Err(invalid(&format!("{path}.default{dot}{}", fault.field), &fault.message));
    }
    Ok(compiled)
}

/// The key fields of a list must always have a value.
fn check_keys(keys: &[String], items: &Schema, path: &str) -> Result<(), SchemaError> {
    for key in keys {
        let field = format!("{path}.items.properties[{key}].default");
        match items.properties.get(key) {
            None => {
                return Err(invalid(
                    &field,
                    "Invalid value: every key of x-kubernetes-list-map-keys must be a property",
                ));
            }
            Some(child) if child.default.is_none() && !items.required.contains(key) => {
                let why = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
                return Err(required(&field, why));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

fn kind(schema: &Value, path: &str, structural: bool, preserve: bool) -> Result<Type, SchemaError> {
    if schema["x-kubernetes-int-or-string"] == true {
        return Ok(Type::IntOrString);
    }
    match schema["type"].as_str() {
        Some("object") => Ok(Type::Object),
        Some("array") => Ok(Type::Array),
        Some("string") => Ok(Type::String),
        Some("integer") => Ok(Type::Integer),
        Some("number") => Ok(Type::Number),
        Some("boolean") => Ok(Type::Boolean),
        Some("") | None if !structural || (preserve && path.contains('[')) => Ok(Type::Any),
        Some("") | None => {
            let place = match path.rsplit_once('.').map(|(_, last)| last) {
                None => return Err(required(&format!("{path}.type"), "must not be empty at the root")),
                Some("items") => "array items",
                Some("additionalProperties") => "object additionalProperties",
                Some(_) => "object fields",
            };
            Err(required(&format!("{path}.type"), &format!("must not be empty for specified {place}")))
        }
        Some(other) => {
            let known = r#"supported values: "array", "boolean", "integer", "number", "object", "string""#;
            Err(SchemaError {
                field: format!("{path}.type"),
                message: format!("Unsupported value: {other:?}: {known}"),
                reason: "FieldValueNotSupported",
            })
        }
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
                invalid(
                    &field,
                    &format!("Invalid value: {text:?}: must be a valid regular expression, but isn't: {error}"),
                )
            })?;
            Some(regex)
        }
        _ => None,
    };
    let branches = |key: &str| -> Result<Vec<Schema>, SchemaError> {
        let list = schema[key].as_array().into_iter().flatten().enumerate();
        list.map(|(index, child)| node(child, &format!("{path}.{key}[{index}]"), false, None)).collect()
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
            Some(child) => Some(Box::new(node(child, &format!("{path}.not"), false, None)?)),
            None => None,
        },
    })
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}
