//! Building blocks of CRDs.

use serde_json::{Map, Value, json};

use crate::kinds::{Kind, is_namespaced};

/// Short names, categories and columns of a kind.
pub(crate) struct Presentation {
    pub(crate) short_names: &'static [&'static str],
    pub(crate) categories: &'static [&'static str],
    pub(crate) columns: Vec<Value>,
    pub(crate) v1alpha1: OldVersion,
}

/// How `v1alpha1` is still served.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum OldVersion {
    /// Not at all: the kind is newer.
    Never,
    /// With the same fields, so that nobody gets round the rules of the new version.
    Alike,
    /// With other fields, which are kept and not looked at.
    Different,
}

/// A CRD whose objects have this `spec` and `status`. A `spec` without a required field may be left out.
pub(crate) fn crd(kind: Kind, about: &str, look: &Presentation, spec: Value, status: Value) -> Value {
    let needs_spec = spec["required"].is_array();
    let mut schema = object(
        about,
        [
            ("apiVersion", json!({"type": "string"})),
            ("kind", json!({"type": "string"})),
            ("metadata", json!({"type": "object"})),
            ("spec", spec),
            ("status", status),
        ],
    );
    if needs_spec {
        schema["required"] = json!(["spec"]);
    }
    let version = |name: &str, schema: &Value| {
        json!({"name": name, "served": true, "storage": name == kind.version, "schema": {"openAPIV3Schema": schema},
            "subresources": {"status": {}}, "additionalPrinterColumns": look.columns})
    };
    let old = match look.v1alpha1 {
        OldVersion::Never => None,
        OldVersion::Alike => Some(version("v1alpha1", &schema)),
        OldVersion::Different => Some(version("v1alpha1", &anything("What older versions of kube-bind have written."))),
    };
    let versions: Vec<Value> = old.into_iter().chain([version(kind.version, &schema)]).collect();
    let mut names = json!({
        "kind": kind.kind, "listKind": format!("{}List", kind.kind), "plural": kind.plural,
        "singular": kind.kind.to_lowercase(), "categories": look.categories,
    });
    if !look.short_names.is_empty() {
        names["shortNames"] = json!(look.short_names);
    }
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{}.{}", kind.plural, kind.group)},
        "spec": {
            "group": kind.group, "names": names, "scope": if is_namespaced(kind) { "Namespaced" } else { "Cluster" },
            "versions": versions,
        },
    })
}

/// An object with these fields.
pub(crate) fn object<const N: usize>(about: &str, fields: [(&str, Value); N]) -> Value {
    let fields: Map<String, Value> = fields.into_iter().map(|(key, schema)| (key.to_owned(), schema)).collect();
    json!({"type": "object", "description": about, "properties": fields})
}

/// A list of such.
pub(crate) fn list(about: &str, items: Value) -> Value {
    let mut schema = json!({"type": "array", "description": about});
    schema["items"] = items;
    schema
}

/// A text.
pub(crate) fn text(about: &str) -> Value {
    json!({"type": "string", "description": about})
}

/// A text that is not empty.
pub(crate) fn some_text(about: &str) -> Value {
    json!({"type": "string", "description": about, "minLength": 1})
}

/// One of these words.
pub(crate) fn word(about: &str, words: &[&str]) -> Value {
    json!({"type": "string", "description": about, "enum": words})
}

/// A time.
pub(crate) fn time(about: &str) -> Value {
    json!({"type": "string", "format": "date-time", "description": about})
}

/// An object with whatever fields.
pub(crate) fn anything(about: &str) -> Value {
    json!({"type": "object", "description": about, "x-kubernetes-preserve-unknown-fields": true})
}

/// The same schema with one more keyword.
pub(crate) fn with(mut schema: Value, keyword: &str, value: Value) -> Value {
    schema[keyword] = value;
    schema
}

/// The same schema with these fields required.
pub(crate) fn required(schema: Value, fields: &[&str]) -> Value {
    with(schema, "required", json!(fields))
}

/// The same schema of a value that stays as it is once it is there.
pub(crate) fn immutable(schema: Value, name: &str) -> Value {
    let verb = if name.ends_with('s') { "are" } else { "is" };
    with(
        schema,
        "x-kubernetes-validations",
        json!([{"rule": "self == oldSelf", "message": format!("{name} {verb} immutable")}]),
    )
}

/// A column that shows a field.
pub(crate) fn column(name: &str, path: &str) -> Value {
    json!({"name": name, "type": "string", "jsonPath": path})
}

/// The column Ready.
pub(crate) fn ready_column() -> Value {
    column("Ready", ".status.conditions[?(@.type==\"Ready\")].status")
}

/// The column Age.
pub(crate) fn age_column() -> Value {
    json!({"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"})
}
