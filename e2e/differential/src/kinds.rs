//! The kinds that sequences are about: three that come with Kubernetes, and one with everything that a schema can say.

use std::sync::LazyLock;

use serde_json::{Value, json};

/// API group of the kind with a schema.
pub const GROUP: &str = "differential.example.com";

/// One kind.
#[derive(Debug)]
#[allow(clippy::struct_field_names, reason = "that is what Kubernetes calls it")]
pub struct Kind {
    /// Plural, which keys begin with.
    pub plural: &'static str,
    /// Kind.
    pub kind: &'static str,
    /// Group and version.
    pub api_version: String,
    /// Path of the collection.
    pub path: String,
    /// Whether a CRD defines it.
    pub custom: bool,
}

impl Kind {
    /// A name of the pool as objects of this kind bear it.
    pub fn named(&self, name: &str) -> String {
        if self.plural == "namespaces" { format!("{{ns}}-{name}") } else { name.to_owned() }
    }

    /// Path of an object.
    pub fn at(&self, name: &str) -> String {
        format!("{}/{}", self.path, self.named(name))
    }

    /// Key of an object.
    pub fn key(&self, name: &str) -> String {
        format!("{}/{}", self.plural, self.named(name))
    }
}

static ALL: LazyLock<Vec<Kind>> = LazyLock::new(|| {
    let core = |plural: &'static str, kind| Kind {
        plural,
        kind,
        api_version: "v1".to_owned(),
        path: if plural == "namespaces" {
            "/api/v1/namespaces".to_owned()
        } else {
            format!("/api/v1/namespaces/{{ns}}/{plural}")
        },
        custom: false,
    };
    let gadget = |version: &str| Kind {
        plural: "gadgets",
        kind: "Gadget",
        api_version: format!("{GROUP}/{version}"),
        path: format!("/apis/{GROUP}/{version}/namespaces/{{ns}}/gadgets"),
        custom: true,
    };
    vec![
        core("configmaps", "ConfigMap"),
        core("secrets", "Secret"),
        gadget("v1"),
        gadget("v1beta1"),
        core("namespaces", "Namespace"),
    ]
});

/// All kinds.
pub fn all() -> &'static [Kind] {
    &ALL
}

/// Those that are watched.
pub fn watched() -> &'static [Kind] {
    &ALL[..3]
}

/// The kind of a path.
pub fn of_path(path: &str) -> Option<&'static Kind> {
    ALL.iter().find(|kind| path == kind.path || path.strip_prefix(&kind.path).is_some_and(|rest| rest.starts_with('/')))
}

/// The CRD of gadgets.
pub fn crd() -> Value {
    let version = |name: &str, storage: bool, schema: Value| {
        json!({
            "name": name, "served": true, "storage": storage, "schema": { "openAPIV3Schema": schema },
            "subresources": {
                "status": {},
                "scale": { "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas" },
            },
            "additionalPrinterColumns": [
                { "name": "Size", "type": "integer", "jsonPath": ".spec.size" },
                { "name": "Phase", "type": "string", "jsonPath": ".status.phase" },
            ],
            "selectableFields": [{ "jsonPath": ".spec.color" }],
        })
    };
    let mut old = version("v1beta1", false, schema());
    old["deprecated"] = true.into();
    // Kubernetes cannot have the same ones beside another schema.
    old["selectableFields"] = json!([{ "jsonPath": ".spec.color" }, { "jsonPath": ".spec.word" }]);
    old["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["onlyOld"] = json!({ "type": "string" });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("gadgets.{GROUP}") },
        "spec": {
            "group": GROUP, "scope": "Namespaced",
            "names": { "plural": "gadgets", "singular": "gadget", "kind": "Gadget", "shortNames": ["gg"] },
            "versions": [version("v1", true, schema()), old],
        },
    })
}

fn schema() -> Value {
    let ports = json!({
        "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port", "protocol"],
        "items": { "type": "object", "required": ["port"], "properties": {
            "port": { "type": "integer", "format": "int32" },
            "protocol": { "type": "string", "default": "TCP" },
            "name": { "type": "string" },
            "hosts": { "type": "array", "x-kubernetes-list-type": "set", "items": { "type": "string" } },
        } },
    });
    let rules = json!([
        { "rule": "!has(self.low) || !has(self.high) || self.low <= self.high", "message": "low must not exceed high" },
        {
            "rule": "!has(self.size) || !has(oldSelf.size) || self.size >= oldSelf.size",
            "messageExpression": "oldSelf.size > 4 ? 'size was large' : 'size may only grow'",
            "fieldPath": ".size", "reason": "FieldValueForbidden",
        },
        { "rule": "!has(self.tags) || self.tags.all(tag, tag != 'forbidden')" },
    ]);
    let spec = json!({
        "type": "object", "x-kubernetes-validations": rules,
        "properties": {
            "size": { "type": "integer", "minimum": 1, "maximum": 100, "default": 3 },
            "replicas": { "type": "integer" },
            "low": { "type": "integer" }, "high": { "type": "integer" },
            "color": { "type": "string", "enum": ["red", "green", "blue"] },
            "ratio": { "type": "number", "multipleOf": 0.5, "exclusiveMinimum": true, "minimum": 0 },
            "word": { "type": "string", "pattern": "^[a-z]+$", "minLength": 2, "maxLength": 6 },
            "on": { "type": "boolean" },
            "when": { "type": "string", "format": "date-time" },
            "address": { "type": "string", "format": "ipv4" },
            "blob": { "type": "string", "format": "byte" },
            "target": { "x-kubernetes-int-or-string": true },
            "extra": { "type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
                "known": { "type": "integer" },
            } },
            "template": {
                "type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true,
            },
            "tags": {
                "type": "array", "maxItems": 4, "x-kubernetes-list-type": "set",
                "items": { "type": "string", "maxLength": 20 },
            },
            "ports": ports,
            "steps": { "type": "array", "items": { "type": "object", "properties": {
                "run": { "type": "string" }, "times": { "type": "integer", "default": 1 },
            } } },
            "limits": { "type": "object", "maxProperties": 3, "additionalProperties": { "type": "integer" } },
            "whole": { "type": "object", "x-kubernetes-map-type": "atomic", "properties": {
                "a": { "type": "string" }, "b": { "type": "string" },
            } },
            "nested": { "type": "object", "default": {}, "properties": {
                "mode": { "type": "string", "default": "auto" },
                "note": { "type": "string", "nullable": true },
                "deep": { "type": "object", "required": ["key"], "properties": {
                    "key": { "type": "string" }, "value": { "type": "string", "default": "none" },
                } },
            } },
            "frozen": { "type": "string", "maxLength": 10, "x-kubernetes-validations": [
                { "rule": "self == oldSelf", "message": "frozen is frozen" },
            ] },
            "either": { "type": "object", "properties": { "a": { "type": "string" }, "b": { "type": "integer" } },
                "oneOf": [{ "required": ["a"] }, { "required": ["b"] }] },
        },
    });
    json!({
        "type": "object", "required": ["spec"],
        "properties": {
            "spec": spec,
            "status": { "type": "object", "properties": {
                "phase": { "type": "string", "enum": ["Ready", "Waiting"] },
                "replicas": { "type": "integer" },
                "conditions": {
                    "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"],
                    "items": { "type": "object", "required": ["type", "status"], "properties": {
                        "type": { "type": "string" }, "status": { "type": "string" }, "reason": { "type": "string" },
                    } },
                },
            } },
        },
    })
}
