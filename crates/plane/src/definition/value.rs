//! Single values of a definition.

use serde_json::Value;

/// A text field; empty if it is missing.
pub(super) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

/// Whether a flag is set.
pub(super) fn is_true(value: &Value) -> bool {
    *value == true || *value == "True"
}
