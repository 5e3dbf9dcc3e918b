//! Structural schemas: compiled once, then used to prune, default and validate objects.

mod admit;
mod alternatives;
mod compact;
mod compile;
mod defaults;
mod format;
#[cfg(test)]
mod go;
mod prune;
mod rules;
mod validate;

use std::sync::Arc;

use carrick_go::regex::GoRegex;
use serde_json::Value;

pub(crate) use admit::{RuleContext, entry_faults, rule_faults};
use compact::FewChecks;
pub use compact::Properties;
pub use prune::{META_FIELDS, unknown_metadata};

/// Why a schema cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {message}")]
pub struct SchemaError {
    /// Path inside the schema, such as `openAPIV3Schema.properties[spec].type`.
    pub field: String,
    /// What is wrong there, as Kubernetes words it.
    pub message: String,
    /// `FieldValueRequired` and so on.
    pub reason: &'static str,
}

/// The declared type of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    /// No type: anything (only below preserved nodes and in value validations).
    Any,
    /// A map or a struct.
    Object,
    /// A list.
    Array,
    /// A text.
    String,
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// True or false.
    Boolean,
    /// `x-kubernetes-int-or-string`.
    IntOrString,
}

/// How a list is identified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListType {
    /// One value.
    Atomic,
    /// A set of scalars.
    Set,
    /// A map with these key fields.
    Map(Vec<String>),
}

/// One node of a compiled schema.
#[derive(Debug)]
#[allow(clippy::struct_excessive_bools, reason = "these are the independent flags of the schema language")]
pub struct Schema {
    /// Declared type.
    pub kind: Type,
    /// Null is allowed.
    pub nullable: bool,
    /// Known fields.
    pub properties: Properties,
    /// Schema of the values of a map.
    pub additional: Option<Box<Schema>>,
    /// Any additional field is fine: `additionalProperties: true`.
    pub open: bool,
    /// Schema of list items.
    pub items: Option<Box<Schema>>,
    /// Unknown fields are kept.
    pub preserve: bool,
    /// Holds a complete Kubernetes object.
    pub embedded: bool,
    /// Value set when the field is absent.
    pub default: Option<Value>,
    /// Required fields.
    pub required: Vec<String>,
    /// List identity.
    pub list: ListType,
    /// The map is one value for server-side apply.
    pub atomic: bool,
    /// Any node below (or this one) has a default.
    pub has_defaults: bool,
    /// Any node below (or this one) has CEL rules.
    pub has_rules: bool,
    checks: FewChecks,
    rules: Vec<carrick_cel::Rule>,
}

/// Value validations of one node.
#[derive(Debug, Default)]
struct Checks {
    values: Option<Vec<Value>>,
    minimum: Option<f64>,
    maximum: Option<f64>,
    exclusive_minimum: bool,
    exclusive_maximum: bool,
    multiple_of: Option<f64>,
    min_length: Option<u64>,
    max_length: Option<u64>,
    pattern: Option<Arc<GoRegex>>,
    min_items: Option<u64>,
    max_items: Option<u64>,
    unique: bool,
    min_properties: Option<u64>,
    max_properties: Option<u64>,
    format: Option<String>,
    all_of: Vec<Schema>,
    any_of: Vec<Schema>,
    one_of: Vec<Schema>,
    not: Option<Box<Schema>>,
}
