//! Ownership of fields.

use serde_json::Value;

use super::{Scope, WriteOptions};

pub(super) fn written(_: &Scope, _: Option<&Value>, _: &mut Value, _: &WriteOptions, _: &str) {}
