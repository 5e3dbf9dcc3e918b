//! Mutations: changes to objects on their way.

use serde::{Deserialize, Serialize};

/// Changes on the way down (`spec`) and up (`status`).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Mutation {
    /// Applied to the source before it is written to the copy.
    pub spec: Vec<ResourceMutation>,
    /// Applied to the copy before its status is written to the source.
    pub status: Vec<ResourceMutation>,
}

/// One change; exactly one of the fields is meant to be set.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ResourceMutation {
    /// Removes a value.
    pub delete: Option<DeleteMutation>,
    /// Replaces text.
    pub regex: Option<RegexMutation>,
    /// Sets the result of a Go template.
    pub template: Option<TemplateMutation>,
    /// Sets the result of a CEL expression.
    pub cel: Option<CelMutation>,
}

/// Removes the value at a path.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DeleteMutation {
    /// Path of the value.
    pub path: String,
}

/// Replaces text in the value at a path.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RegexMutation {
    /// Path of the value.
    pub path: String,
    /// Pattern; empty sets the replacement as it is.
    pub pattern: String,
    /// Replacement, with `$1` and `${name}`.
    pub replacement: String,
}

/// Sets the result of a Go template at a path.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TemplateMutation {
    /// Path of the value.
    pub path: String,
    /// The template.
    pub template: String,
}

/// Sets the result of a CEL expression at a path.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CelMutation {
    /// Path of the value.
    pub path: String,
    /// The expression.
    pub expression: String,
}
