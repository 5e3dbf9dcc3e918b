//! The schema of one version, or of all of them: node by node.

use serde_json::Value;

use super::faults::Faults;
use super::fields::{FieldPresence, PROPS};
use super::structural::{below, kind, listed, named};
use super::value::{is_true, text};
use super::{defaults, lists, rules, shown, structural};
use crate::status::Cause;

const ALLOWED: &str = "Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength Pattern MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example XPreserveUnknownFields XValidations";
const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];

/// What is wrong with a schema; `status` says whether there is a status subresource.
pub(super) fn check(validation: Option<&Value>, status: bool, place: &str, faults: &mut Faults) {
    let Some(schema) = validation.and_then(|validation| below(validation, "openAPIV3Schema")) else { return };
    let path = format!("{place}.openAPIV3Schema");
    let before = faults.0.len();
    if status {
        check_root(schema, &path, faults);
    }
    if is_true(&schema["nullable"]) {
        faults.forbidden(&format!("{path}.nullable"), "nullable cannot be true at the root");
    }
    let unsupported = structural::unsupported(schema);
    let mut usable = unsupported.is_none();
    if usable {
        let before = faults.0.len();
        structural::check(schema, &path, faults);
        if faults.0.len() == before {
            defaults::check(schema, &path, faults);
        }
        usable = faults.0.len() == before;
    }
    let found = NodeContext { root: true, usable, ..NodeContext::default() }.node(schema, &path);
    faults.0.extend(found.form);
    faults.0.extend(found.rules);
    if let (Some(why), true) = (unsupported, faults.0.len() == before) {
        faults.invalid(&path, &"".into(), &why);
    }
}

/// Whether there are defaults anywhere in a schema.
pub(super) fn has_defaults(schema: &Value) -> bool {
    schema.get("default").is_some() || children(schema).any(has_defaults)
}

/// All schemas directly below a node, under whichever keyword.
pub(super) fn children(schema: &Value) -> impl Iterator<Item = &Value> {
    let single = ["items", "not", "additionalProperties", "additionalItems"];
    let maps = ["properties", "patternProperties", "definitions", "dependencies"];
    single
        .into_iter()
        .filter_map(|key| below(schema, key))
        .chain(["items", "allOf", "anyOf", "oneOf"].into_iter().flat_map(|key| listed(schema, key)))
        .chain(maps.into_iter().flat_map(|key| named(schema, key)).map(|(_, child)| child))
}

/// With a status subresource, few keywords are allowed at the root, because the status is validated without them.
fn check_root(schema: &Value, path: &str, faults: &mut Faults) {
    for field in PROPS.fields {
        let set = match schema.get(field.key) {
            None => false,
            Some(_) if field.need == FieldPresence::Given => true,
            Some(Value::Bool(flag)) => *flag,
            Some(Value::String(text)) => !text.is_empty(),
            Some(_) => true,
        };
        if !set {
            continue;
        }
        if field.key == "type" {
            if kind(schema) != "object" {
                let why = "only \"object\" is allowed as the type at the root of the schema if the status subresource is enabled";
                return faults.invalid(&format!("{path}.type"), &kind(schema).into(), why);
            }
        } else if !ALLOWED.split(' ').any(|name| name == field.shown) {
            let why = format!(
                "only [{ALLOWED}] fields are allowed at the root of the schema if the status subresource is enabled"
            );
            return faults.shown(path, &shown::record(schema, &PROPS), &why);
        }
    }
}

/// Faults of a node and everything below.
#[derive(Debug, Default)]
struct NodeFaults {
    form: Vec<Cause>,
    rules: Vec<Cause>,
}

impl NodeFaults {
    fn add(&mut self, other: Self) {
        self.form.extend(other.form);
        self.rules.extend(other.rules);
    }
}

/// Where a node is.
#[derive(Debug, Clone, Default)]
struct NodeContext {
    root: bool,
    /// Rules can be checked, because everything around them is valid.
    usable: bool,
    /// Defaults are forbidden, for this reason.
    no_defaults: Option<String>,
    /// Inside the metadata or the type of a resource.
    inside_meta: bool,
    /// The surrounding list or map whose parts have no old values.
    uncorrelated: Option<String>,
}

impl NodeContext {
    fn below(&self) -> Self {
        Self { root: false, ..self.clone() }
    }

    /// Inside a condition (`allOf`, `anyOf`, `oneOf`, `not`).
    fn condition(&self) -> Self {
        Self { usable: false, ..self.below() }
    }

    fn forbidding(mut self, reason: String) -> Self {
        self.no_defaults = Some(reason);
        self
    }

    fn uncorrelated(mut self, path: &str) -> Self {
        self.uncorrelated.get_or_insert_with(|| path.to_owned());
        self
    }

    fn node(&self, schema: &Value, path: &str) -> NodeFaults {
        let mut found = NodeFaults::default();
        let mut own = Faults::default();
        self.keywords(schema, path, &mut own);
        self.descend(schema, path, &mut found);
        if schema["x-kubernetes-preserve-unknown-fields"] == false {
            let place = format!("{path}.x-kubernetes-preserve-unknown-fields");
            own.invalid(&place, &false.into(), "must be true or undefined");
        }
        lists::check(schema, path, &mut own);
        found.form.extend(own.0);
        found.form.extend(rules::texts(schema, path));
        if found.form.is_empty() && self.usable {
            found.rules.extend(rules::compiled(schema, path, self.root, self.uncorrelated.as_deref()));
        }
        found
    }

    fn keywords(&self, schema: &Value, path: &str, faults: &mut Faults) {
        let at = |key: &str| format!("{path}.{key}");
        let kind = kind(schema);
        if !kind.is_empty() && !TYPES.contains(&kind) {
            faults.unsupported(&at("type"), &kind.into(), &TYPES);
        }
        if let (Some(reason), true) = (&self.no_defaults, schema.get("default").is_some()) {
            faults.forbidden(&at("default"), &format!("must not be set {reason}"));
        }
        let filled = |key: &str| named(schema, key).next().is_some();
        for (key, set) in [
            ("id", !text(schema, "id").is_empty()),
            ("additionalItems", schema.get("additionalItems").is_some()),
            ("patternProperties", filled("patternProperties")),
            ("definitions", filled("definitions")),
            ("dependencies", schema.get("dependencies").is_some()),
            ("$ref", schema.get("$ref").is_some()),
        ] {
            if set {
                faults.forbidden(&at(key), &format!("{key} is not supported"));
            }
        }
        if kind == "null" {
            faults.forbidden(&at("type"), "type cannot be set to null, use nullable as an alternative");
        }
        if !listed(schema, "items").is_empty() {
            faults.forbidden(&at("items"), "items must be a schema object and not an array");
        }
        if self.inside_meta && is_true(&schema["x-kubernetes-embedded-resource"]) {
            faults.forbidden(&at("x-kubernetes-embedded-resource"), "must not be used inside of resource meta");
        }
        if is_true(&schema["uniqueItems"]) {
            let why = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
            faults.forbidden(&at("uniqueItems"), why);
        }
        let open = schema.get("additionalProperties").is_some_and(|value| *value != true);
        if open && filled("properties") {
            let why = "additionalProperties and properties are mutual exclusive";
            faults.forbidden(&at("additionalProperties"), why);
        }
    }

    fn descend(&self, schema: &Value, path: &str, found: &mut NodeFaults) {
        if let Some(child) = below(schema, "additionalProperties") {
            let mut place = self.below();
            if self.inside_meta {
                place = place.forbidding("inside additionalProperties applying to object metadata".to_owned());
            }
            found.add(place.node(child, &format!("{path}.additionalProperties")));
        }
        let whole = self.root || is_true(&schema["x-kubernetes-embedded-resource"]);
        let odd = schema.get("x-kubernetes-map-type").is_some_and(|kind| kind != "granular" && kind != "atomic");
        for (name, child) in named(schema, "properties") {
            let mut place = self.below();
            if odd {
                place = place.uncorrelated(path);
            }
            if whole && matches!(name.as_str(), "metadata" | "kind" | "apiVersion") {
                place.inside_meta = true;
                if self.root {
                    place = place.forbidding(format!("in top-level {name}"));
                }
            }
            found.add(place.node(child, &format!("{path}.properties[{name}]")));
        }
        if let Some(child) = below(schema, "not") {
            found.add(self.condition().node(child, &format!("{path}.not")));
        }
        for key in ["allOf", "oneOf", "anyOf"] {
            for (index, child) in listed(schema, key).iter().enumerate() {
                found.add(self.condition().node(child, &format!("{path}.{key}[{index}]")));
            }
        }
        let mut items = self.below();
        if schema["x-kubernetes-list-type"] != "map" {
            items = items.uncorrelated(path);
        }
        if let Some(child) = below(schema, "items") {
            found.add(items.node(child, &format!("{path}.items")));
        }
        for (index, child) in listed(schema, "items").iter().enumerate() {
            found.add(items.node(child, &format!("{path}.items[{index}]")));
        }
        for key in ["definitions", "dependencies"] {
            for (name, child) in named(schema, key).filter(|(_, child)| child.is_object()) {
                found.add(self.condition().node(child, &format!("{path}.{key}[{name}]")));
            }
        }
    }
}
