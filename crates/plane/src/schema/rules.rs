//! CEL rules: `x-kubernetes-validations`.

use carrick_cel::{Rule, Verdict};
use serde_json::Value;

use super::{ListType, Schema};
use crate::status::Cause;

/// Faults that keep the rules from being evaluated, because rules rely on their absence.
const BLOCKING: [&str; 5] =
    ["FieldValueRequired", "FieldValueTypeInvalid", "FieldValueNotSupported", "FieldValueTooLong", "FieldValueTooMany"];

impl Schema {
    /// Faults the rules find; `faults` are those of the schema itself.
    pub(super) fn check_rules(&self, object: &Value, old: Option<&Value>, faults: &[Cause]) -> Vec<Cause> {
        if !self.has_rules {
            return Vec::new();
        }
        if faults.iter().any(|fault| BLOCKING.contains(&fault.reason.as_str())) {
            let message = "Invalid value: null: some validation rules were not checked because the object was invalid; \
                           correct the existing errors to complete validation";
            return vec![Cause::new("FieldValueInvalid", "<nil>", message)];
        }
        let mut causes = Vec::new();
        self.walk_rules(object, old, "", &mut causes);
        causes
    }

    fn walk_rules(&self, value: &Value, old: Option<&Value>, path: &str, causes: &mut Vec<Cause>) {
        if !self.has_rules || (value.is_null() && self.nullable) {
            return;
        }
        causes.extend(self.rules.iter().filter_map(|rule| fault(rule, value, old, path)));
        match value {
            Value::Object(map) => {
                for (name, found) in map {
                    if let Some(child) = self.properties.get(name).or(self.additional.as_deref()) {
                        let below = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                        child.walk_rules(found, old.and_then(|old| old.get(name)), &below, causes);
                    }
                }
            }
            Value::Array(list) => {
                let Some(items) = &self.items else { return };
                // Items of other lists have no counterpart: they have no identity.
                let old = old.and_then(Value::as_array).filter(|_| matches!(self.list, ListType::Map(_)));
                for (index, item) in list.iter().enumerate() {
                    let before = old.and_then(|old| self.counterpart(item, index, old));
                    items.walk_rules(item, before, &format!("{path}[{index}]"), causes);
                }
            }
            _ => {}
        }
    }
}

fn fault(rule: &Rule, value: &Value, old: Option<&Value>, path: &str) -> Option<Cause> {
    let message = match rule.eval(value, old) {
        Ok(Verdict::Pass | Verdict::Skipped) => return None,
        Ok(Verdict::Fail { message }) => message,
        Err(error) => format!("rule evaluation error: {error}"),
    };
    let field = match rule.field_path() {
        Some(relative) if path.is_empty() => relative.trim_start_matches('.').to_owned(),
        Some(relative) => format!("{path}{relative}"),
        None if path.is_empty() => "<nil>".to_owned(),
        None => path.to_owned(),
    };
    let reason = rule.reason().unwrap_or("FieldValueInvalid");
    let word = match reason {
        "FieldValueRequired" => "Required value",
        "FieldValueForbidden" => "Forbidden",
        "FieldValueDuplicate" => "Duplicate value",
        _ => "Invalid value",
    };
    Some(Cause::new(reason, &field, format!("{word}: {message}")))
}
