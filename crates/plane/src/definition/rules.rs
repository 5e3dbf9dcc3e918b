//! `x-kubernetes-validations`.

use serde_json::Value;

use super::path::Path;
use super::structural;
use crate::schema::{RuleContext, SchemaError, entry_faults, rule_faults};
use crate::status::Cause;

/// What is wrong with the texts of rules.
pub(super) fn texts(schema: &Value, path: &str) -> Vec<Cause> {
    let leads_somewhere =
        |field: &str| structural::unsupported(schema).is_some() || Path::parse(field, schema, true).is_ok();
    causes(entry_faults(schema, path, &leads_somewhere))
}

/// What is wrong with rules as expressions.
pub(super) fn compiled(schema: &Value, path: &str, root: bool, uncorrelated: Option<&str>) -> Vec<Cause> {
    causes(rule_faults(schema, &RuleContext { path, root, uncorrelated }))
}

fn causes(faults: Vec<SchemaError>) -> Vec<Cause> {
    faults.into_iter().map(|fault| Cause::new(fault.reason, &fault.field, fault.message)).collect()
}
