//! Whether a schema is structural: every value has one type, and conditions add nothing to that.

use carrick_go::regex::Pattern;
use serde_json::{Map, Value};

use super::faults::Faults;
use super::value::{is_true, text};

/// The position of a node in a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

/// The type of a node.
pub(super) fn kind(schema: &Value) -> &str {
    text(schema, "type")
}

/// A schema below another one, if it is one.
pub(super) fn below<'a>(schema: &'a Value, key: &str) -> Option<&'a Value> {
    schema.get(key).filter(|child| child.is_object())
}

/// Named schemas below a node.
pub(super) fn named<'a>(schema: &'a Value, key: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
    schema[key].as_object().into_iter().flatten()
}

/// Listed schemas below a node.
pub(super) fn listed<'a>(schema: &'a Value, key: &str) -> &'a [Value] {
    schema[key].as_array().map_or(&[], Vec::as_slice)
}

fn flag(schema: &Value, key: &str) -> bool {
    is_true(&schema[key])
}

fn has_text(schema: &Value, key: &str) -> bool {
    !text(schema, key).is_empty()
}

fn has_entries(schema: &Value, key: &str) -> bool {
    match &schema[key] {
        Value::Array(list) => !list.is_empty(),
        Value::Object(map) => !map.is_empty(),
        _ => false,
    }
}

/// Why a schema cannot be structural at all, if so.
pub(super) fn unsupported(schema: &Value) -> Option<String> {
    let not = |key: &str| Some(format!("OpenAPIV3Schema '{key}' is not supported"));
    let own = match schema {
        schema if has_text(schema, "id") => not("id"),
        schema if has_text(schema, "$schema") => not("schema"),
        schema if has_text(schema, "$ref") => not("$ref"),
        schema if has_entries(schema, "patternProperties") => not("patternProperties"),
        schema if has_entries(schema, "dependencies") => not("dependencies"),
        schema if schema.get("additionalItems").is_some() => not("additionalItems"),
        schema if has_entries(schema, "definitions") => not("definitions"),
        _ => None,
    };
    let preserve = || {
        (schema["x-kubernetes-preserve-unknown-fields"] == false)
            .then(|| "internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined".to_owned())
    };
    let many = || {
        (!listed(schema, "items").is_empty())
            .then(|| "OpenAPIV3Schema 'items' must be a schema, but is an array".to_owned())
    };
    let conditions =
        || ["allOf", "anyOf", "oneOf"].into_iter().flat_map(|key| listed(schema, key)).find_map(unsupported);
    let field = || named(schema, "properties").find_map(|(_, child)| unsupported(child));
    own.or_else(|| below(schema, "not").and_then(unsupported))
        .or_else(conditions)
        .or_else(preserve)
        .or_else(many)
        .or_else(|| below(schema, "items").and_then(unsupported))
        .or_else(field)
        .or_else(|| below(schema, "additionalProperties").and_then(unsupported))
}

/// Everything that keeps a schema from being structural.
pub(super) fn check(schema: &Value, path: &str, faults: &mut Faults) {
    let mut found = Faults::default();
    node(schema, Level::Root, path, &mut found);
    complete(schema, Some(schema), path, path, &mut found);
    found.0.sort_by_key(|cause| format!("{}: {}", cause.field, cause.message));
    faults.0.extend(found.0);
}

fn node(schema: &Value, level: Level, path: &str, faults: &mut Faults) {
    let at = |key: &str| format!("{path}.{key}");
    let kind = kind(schema);
    let items = below(schema, "items");
    if kind == "array" && items.is_none() {
        faults.required(&at("items"), "must be specified");
    }
    if let Some(items) = items {
        node(items, Level::Item, &at("items"), faults);
    }
    for (name, child) in named(schema, "properties") {
        node(child, Level::Field, &format!("{path}.properties[{name}]"), faults);
    }
    let embedded = flag(schema, "x-kubernetes-embedded-resource");
    if schema.get("additionalProperties").is_some() {
        if level == Level::Root {
            faults.forbidden(&at("additionalProperties"), "must not be used at the root");
        }
        if let Some(child) = below(schema, "additionalProperties") {
            node(child, Level::Field, &at("additionalProperties"), faults);
        }
        if embedded {
            faults.forbidden(&at("additionalProperties"), "must not be used if x-kubernetes-embedded-resource is set");
        }
    }
    let (preserve, either) =
        (flag(schema, "x-kubernetes-preserve-unknown-fields"), flag(schema, "x-kubernetes-int-or-string"));
    for (key, set) in [("x-kubernetes-preserve-unknown-fields", preserve), ("x-kubernetes-embedded-resource", embedded)]
    {
        if either && set {
            faults.invalid(&at(key), &true.into(), "must be false if x-kubernetes-int-or-string is true");
        }
    }
    conditions(schema, Exempt::of(schema), path, faults);
    if embedded && kind != "object" {
        let why = "must be object if x-kubernetes-embedded-resource is true";
        if kind.is_empty() {
            faults.required(&at("type"), why);
        } else {
            faults.invalid(&at("type"), &kind.into(), why);
        }
    } else if kind.is_empty() && !either && !preserve {
        let place = match level {
            Level::Root => "at the root",
            Level::Item => "for specified array items",
            Level::Field => "for specified object fields",
        };
        faults.required(&at("type"), &format!("must not be empty {place}"));
    }
    if level == Level::Root && !kind.is_empty() && kind != "object" {
        faults.invalid(&at("type"), &kind.into(), "must be object at the root");
    }
    resource(schema, level, path, faults);
    if embedded && !preserve && !has_entries(schema, "properties") {
        let why =
            "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields";
        faults.required(&at("properties"), why);
    }
}

/// The fields that every resource has.
fn resource(schema: &Value, level: Level, path: &str, faults: &mut Faults) {
    let whole = level == Level::Root || flag(schema, "x-kubernetes-embedded-resource");
    let place = |name: &str| format!("{path}.properties[{name}]");
    for name in ["kind", "apiVersion"] {
        if let Some(field) = schema["properties"].get(name)
            && whole
            && kind(field) != "string"
        {
            faults.invalid(&format!("{}.type", place(name)), &kind(field).into(), "must be string");
        }
    }
    let Some(metadata) = schema["properties"].get("metadata") else { return };
    if whole && kind(metadata) != "object" {
        faults.invalid(&format!("{}.type", place("metadata")), &kind(metadata).into(), "must be object");
    }
    if level == Level::Root && says_more(metadata) {
        let why = "must not specify anything other than name and generateName, but metadata is implicitly specified";
        faults.forbidden(&place("metadata"), why);
    }
}

/// Whether a schema of metadata has more than it may.
fn says_more(metadata: &Value) -> bool {
    metadata.as_object().into_iter().flatten().any(|(key, value)| match (key.as_str(), value) {
        ("type" | "default" | "example" | "externalDocs" | "id" | "$schema" | "$ref", _) | (_, Value::Null) => false,
        ("properties", fields) => {
            let names: Vec<&String> = fields.as_object().into_iter().flat_map(Map::keys).collect();
            names.iter().any(|name| !matches!(name.as_str(), "name" | "generateName"))
        }
        ("enum" | "allOf" | "anyOf" | "oneOf", list) => list.as_array().is_some_and(|list| !list.is_empty()),
        ("items", list) => list.is_object(),
        (_, Value::Bool(flag)) => *flag || key == "additionalProperties",
        (_, Value::String(text)) => !text.is_empty() || key.starts_with("x-"),
        _ => true,
    })
}

/// Exceptions for the conditions of int-or-string, which may have types.
#[derive(Debug, Clone, Copy, Default)]
struct Exempt {
    any_of: bool,
    first_all_of: bool,
}

impl Exempt {
    fn of(schema: &Value) -> Self {
        let first = listed(schema, "allOf").first();
        Self { any_of: either(schema), first_all_of: first.is_some_and(either) }
    }
}

fn either(schema: &Value) -> bool {
    let only = |child: &Value, kind: &str| {
        let set = child.as_object().into_iter().flatten().filter(|(_, value)| **value != false && **value != "");
        set.count() == 1 && text(child, "type") == kind
    };
    matches!(listed(schema, "anyOf"), [first, second] if only(first, "integer") && only(second, "string"))
}

fn conditions(schema: &Value, exempt: Exempt, path: &str, faults: &mut Faults) {
    for key in ["anyOf", "allOf", "oneOf"] {
        if key == "anyOf" && exempt.any_of {
            continue;
        }
        for (index, child) in listed(schema, key).iter().enumerate() {
            let exempt = Exempt { any_of: key == "allOf" && index == 0 && exempt.first_all_of, first_all_of: false };
            nested(child, exempt, &format!("{path}.{key}[{index}]"), faults);
        }
    }
    if let Some(child) = below(schema, "not") {
        nested(child, Exempt::default(), &format!("{path}.not"), faults);
    }
    let source = text(schema, "pattern");
    if let Err(why) = Pattern::parse(source) {
        let why = format!("must be a valid regular expression, but isn't: {why}");
        faults.invalid(&format!("{path}.pattern"), &source.into(), &why);
    }
}

/// A schema inside of a condition.
fn nested(schema: &Value, exempt: Exempt, path: &str, faults: &mut Faults) {
    conditions(schema, exempt, path, faults);
    if let Some(items) = below(schema, "items") {
        nested(items, Exempt::default(), &format!("{path}.items"), faults);
    }
    for (name, child) in named(schema, "properties") {
        nested(child, Exempt::default(), &format!("{path}.properties[{name}]"), faults);
    }
    let open = schema.get("additionalProperties").is_some_and(|value| *value != false);
    let given = |key: &str| schema.get(key).is_some();
    for (key, set, state) in [
        ("type", has_text(schema, "type"), "empty"),
        ("additionalProperties", open, "undefined"),
        ("default", given("default"), "undefined"),
        ("title", has_text(schema, "title"), "empty"),
        ("description", has_text(schema, "description"), "empty"),
        ("nullable", flag(schema, "nullable"), "false"),
        ("x-kubernetes-preserve-unknown-fields", flag(schema, "x-kubernetes-preserve-unknown-fields"), "false"),
        ("x-kubernetes-embedded-resource", flag(schema, "x-kubernetes-embedded-resource"), "false"),
        ("x-kubernetes-int-or-string", flag(schema, "x-kubernetes-int-or-string"), "false"),
        ("x-kubernetes-list-map-keys", has_entries(schema, "x-kubernetes-list-map-keys"), "empty"),
        ("x-kubernetes-list-type", given("x-kubernetes-list-type"), "undefined"),
        ("x-kubernetes-map-type", given("x-kubernetes-map-type"), "undefined"),
        ("x-kubernetes-validations", has_entries(schema, "x-kubernetes-validations"), "empty"),
    ] {
        if set {
            faults.forbidden(&format!("{path}.{key}"), &format!("must be {state} to be structural"));
        }
    }
    if schema["properties"].get("metadata").is_some() {
        faults.forbidden(&format!("{path}.properties[metadata]"), "must not be specified in a nested context");
    }
}

/// Fields in conditions must also be declared outside of them.
fn complete(schema: &Value, plain: Option<&Value>, path: &str, spot: &str, faults: &mut Faults) {
    let Some(plain) = plain else {
        return faults.required(path, &format!("because it is defined in {spot}"));
    };
    if let Some(child) = below(schema, "not") {
        mentioned(child, plain, path, &format!("{spot}.not"), faults);
    }
    for key in ["allOf", "anyOf", "oneOf"] {
        for (index, child) in listed(schema, key).iter().enumerate() {
            mentioned(child, plain, path, &format!("{spot}.{key}[{index}]"), faults);
        }
    }
}

fn mentioned(schema: &Value, plain: &Value, path: &str, spot: &str, faults: &mut Faults) {
    complete(schema, Some(plain), path, spot, faults);
    if let Some(items) = below(schema, "items") {
        let (path, spot) = (format!("{path}.items"), format!("{spot}.items"));
        match below(plain, "items") {
            Some(plain) => mentioned(items, plain, &path, &spot, faults),
            None => complete(items, None, &path, &spot, faults),
        }
    }
    for (name, child) in named(schema, "properties") {
        let (path, spot) = (format!("{path}.properties[{name}]"), format!("{spot}.properties[{name}]"));
        match below(&plain["properties"], name) {
            Some(plain) => mentioned(child, plain, &path, &spot, faults),
            None => complete(child, None, &path, &spot, faults),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::config::Mode;
    use crate::resource::builtin::builtins;
    use crate::schema::Schema;

    fn faults(schema: &Value) -> Vec<String> {
        let mut faults = Faults::default();
        check(schema, "openAPIV3Schema", &mut faults);
        faults.0.into_iter().map(|cause| cause.message).collect()
    }

    #[test]
    fn the_schemas_of_built_in_kinds_are_structural() {
        for resource in builtins(Mode::Kube) {
            for text in resource.versions.iter().filter_map(|version| version.openapi.get()) {
                assert_eq!(faults(&serde_json::from_str(text).unwrap()), [""; 0], "{resource:?}");
            }
        }
    }

    #[test]
    fn patterns_mean_the_same_to_those_who_check_and_to_those_who_compile() {
        let schema =
            |pattern: &str| json!({"type": "object", "properties": {"a": {"type": "string", "pattern": pattern}}});
        for (pattern, fits, fails) in [
            (r"^\d+$", "12", "\u{663}"),
            (r"^\w$", "a", "\u{e4}"),
            (r"^\s$", " ", "\u{a0}"),
            (r"^\Qa.b\E$", "a.b", "axb"),
            (r"^\Q[\E+$", "[[", "]"),
            (r"^[^[]+$", "a", "["),
            (r"^\pL$", "\u{e4}", "1"),
        ] {
            let schema = schema(pattern);
            assert_eq!(faults(&schema), [""; 0], "{pattern}");
            let compiled = Schema::compile(&schema).unwrap();
            let holds = |text: &str| compiled.validate(&json!({"a": text}), None).is_empty();
            assert!(holds(fits) && !holds(fails), "{pattern}");
        }
        for pattern in ["(", "a**", r"\8", r"(?=a)", r"[[:foo:]]"] {
            let schema = schema(pattern);
            let compiled = Schema::compile(&schema).unwrap_err();
            assert_eq!(faults(&schema), [compiled.message], "{pattern}");
        }
    }
}
