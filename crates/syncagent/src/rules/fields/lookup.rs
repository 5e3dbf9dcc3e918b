//! Whether an object can have a field, as far as its schema can tell.

use crate::rules::crd::{Schema, SchemaOrBool, SchemaOrMany};

/// Fields of the metadata, whatever the schema says.
const METADATA: [&str; 15] = [
    "name",
    "generateName",
    "namespace",
    "selfLink",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
    "managedFields",
];

/// The side of an object, as far as its fields depend on it.
#[derive(Clone, Copy)]
pub(super) struct FieldScope {
    /// Whether it has a namespace there.
    pub namespaced: bool,
}

impl FieldScope {
    /// On either side, so that nothing can be ruled out.
    pub(super) fn either() -> Self {
        Self { namespaced: true }
    }
}

/// Looks fields up in a schema.
pub(super) struct Lookup<'a> {
    schema: Option<&'a Schema>,
}

/// The segments of a path that consists only of names and positions; `None` for any other path, which may lead anywhere.
pub(super) fn simple(path: &str) -> Option<Vec<&str>> {
    let plain = |c: char| c.is_ascii_alphanumeric() || ['.', '-', '_', '#'].contains(&c);
    let segments: Vec<&str> = path.split('.').collect();
    let fine = path.chars().all(plain) && segments.iter().all(|segment| !segment.is_empty());
    // `#` is every element of a list, or at the end their count.
    fine.then_some(segments).filter(|segments| segments.iter().all(|segment| *segment == "#" || !segment.contains('#')))
}

impl<'a> Lookup<'a> {
    pub(super) fn new(schema: Option<&'a Schema>) -> Self {
        Self { schema }
    }

    /// Why no object can have this field; `None` if some can, or if it is not known.
    pub(super) fn missing(&self, path: &[&str], scope: FieldScope) -> Option<String> {
        match path {
            [] | ["apiVersion" | "kind" | "metadata"] => None,
            ["apiVersion" | "kind", ..] => Some(format!("{} is a string", path[0])),
            ["metadata", "namespace", ..] if !scope.namespaced => {
                Some("objects of this kind have no namespace there".to_owned())
            }
            ["metadata", field, ..] if METADATA.contains(field) => None,
            ["metadata", field, ..] => Some(format!("metadata has no field {field}")),
            _ => missing(self.schema?, path, 0),
        }
    }
}

/// Follows a path, starting with the segment at a position.
fn missing(schema: &Schema, path: &[&str], at: usize) -> Option<String> {
    let segment = path.get(at)?;
    if schema.x_preserve_unknown_fields == Some(true) || schema.x_embedded_resource || schema.x_int_or_string {
        return None;
    }
    let here = || if at == 0 { "an object".to_owned() } else { path[..at].join(".") };
    if let Some(SchemaOrMany::One(items)) = &schema.items {
        let is_position = *segment == "#" || segment.bytes().all(|byte| byte.is_ascii_digit()) || *segment == "-1";
        return if is_position { missing(items, path, at + 1) } else { Some(format!("{} is a list", here())) };
    }
    if let Some(below) = schema.properties.get(*segment) {
        return missing(below, path, at + 1);
    }
    match (&schema.additional_properties, schema.type_.as_str()) {
        (Some(SchemaOrBool::Schema(below)), _) => missing(below, path, at + 1),
        (Some(SchemaOrBool::Bool(true)), _) | (None, "" | "array") => None,
        (_, "object") => Some(format!("{} has no field {segment}", here())),
        (_, other) => Some(format!("{} is a{} {other}", here(), if other == "integer" { "n" } else { "" })),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_closed_schemas_know_what_cannot_be() {
        let schema: Schema = serde_json::from_value(json!({"type": "object", "properties": {
            "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {"a": {"type": "string"}}}},
            "any": {},
            "list": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}}},
            "number": {"type": "integer"},
            "either": {"x-kubernetes-int-or-string": true},
        }}))
        .unwrap();
        let lookup = Lookup::new(Some(&schema));
        for (path, wanted) in [
            ("open.x.y", None),
            ("map.x.a", None),
            ("map.x.b", Some("map.x has no field b")),
            ("any.x", None),
            ("list.#.name", None),
            ("list.0.name", None),
            ("list.#", None),
            ("list.#.nam", Some("list.# has no field nam")),
            ("list.name", Some("list is a list")),
            ("number.x", Some("number is an integer")),
            ("either.x", None),
            ("nothing", Some("an object has no field nothing")),
            ("kind.x", Some("kind is a string")),
            ("metadata.labels.x", None),
        ] {
            let segments = simple(path).unwrap();
            assert_eq!(lookup.missing(&segments, FieldScope::either()).as_deref(), wanted, "{path}");
        }
        assert_eq!(Lookup::new(None).missing(&["spec", "x"], FieldScope::either()), None);
        for path in ["a.*", "a|b", "a.#(b==1)", "a\\.b", "", "a..b", "@this", "{a,b}"] {
            assert!(simple(path).is_none(), "{path}");
        }
    }
}
