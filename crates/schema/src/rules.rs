//! CEL rules: `x-kubernetes-validations`.

use carrick_cel::{EvalError, Rule, Verdict};
use serde_json::Value;

use crate::cause::Cause;
use crate::node::{ListType, Schema, Type};

/// Errors that prevent the evaluation of rules, because rules rely on their absence.
const BLOCKING: [&str; 5] =
    ["FieldValueRequired", "FieldValueTypeInvalid", "FieldValueNotSupported", "FieldValueTooLong", "FieldValueTooMany"];

impl Schema {
    /// Faults the rules find in a new value.
    pub fn broken_rules(&self, value: &Value) -> Vec<Cause> {
        self.check_rules(value, None, &[])
    }

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
        let mut check = RuleRun { causes: Vec::new(), steps: STEPS };
        // the last error shows whether all rules could be evaluated
        let _ = self.walk_rules(object, old, &ValuePosition { path: String::new(), unchanged: false }, &mut check);
        check.causes
    }

    fn walk_rules(
        &self,
        value: &Value,
        old: Option<&Value>,
        spot: &ValuePosition,
        check: &mut RuleRun,
    ) -> Result<(), Stopped> {
        if !self.has_rules || value.is_null() {
            return Ok(());
        }
        let old = old.filter(|old| !old.is_null());
        let unchanged = spot.unchanged || old == Some(value);
        for rule in self.rules.iter().flat_map(|rules| rules.iter()) {
            self.judge(rule, value, old, &ValuePosition { path: spot.path.clone(), unchanged }, check)?;
        }
        match value {
            Value::Object(map) => {
                // parts of an atomic value have no old values
                let old = old.filter(|_| !self.atomic);
                for (name, found) in map {
                    let (child, path) = match (self.properties.get(name), &self.additional) {
                        (Some(child), _) if spot.path.is_empty() => (child, name.clone()),
                        (Some(child), _) => (child, format!("{}.{name}", spot.path)),
                        (None, Some(child)) => (&**child, format!("{}[{name}]", spot.path)),
                        (None, None) => continue,
                    };
                    child.walk_rules(
                        found,
                        old.and_then(|old| old.get(name)),
                        &ValuePosition { path, unchanged },
                        check,
                    )?;
                }
            }
            Value::Array(list) => {
                let Some(items) = &self.items else { return Ok(()) };
                // Items of other lists have no identity, and so no counterpart.
                let old = old.and_then(Value::as_array).filter(|_| matches!(self.list, ListType::Map(_)));
                for (index, item) in list.iter().enumerate() {
                    let before = old.and_then(|old| self.counterpart(item, index, old));
                    let path = format!("{}[{index}]", spot.path);
                    items.walk_rules(item, before, &ValuePosition { path, unchanged }, check)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Adds a rule's violation by a value.
    fn judge(
        &self,
        rule: &Rule,
        value: &Value,
        old: Option<&Value>,
        spot: &ValuePosition,
        check: &mut RuleRun,
    ) -> Result<(), Stopped> {
        let shown = rule.message().unwrap_or(rule.source());
        let mut refuse = |detail: String| {
            let message = format!("Invalid value: {:?}: {detail}", self.rule_type());
            check.causes.push(Cause::new("FieldValueInvalid", spot.field(), message));
        };
        if check.steps == 0 {
            refuse(
                "validation failed due to running out of cost budget, no further validation rules will be run".into(),
            );
            return Err(Stopped);
        }
        match rule.eval_within(value, old, &mut check.steps) {
            Ok(Verdict::Pass | Verdict::Skipped) => {}
            // an unchanged value that was accepted before is not refused now
            Ok(Verdict::Fail { .. }) if spot.unchanged && !rule.uses_old_self() => {}
            Ok(Verdict::Fail { message }) => check.causes.push(self.fault(rule, &message, value, spot)),
            Err(EvalError::TooManySteps) => {
                let words = "'operation cancelled: actual cost limit exceeded': no further validation rules will be run \
                             due to call cost exceeds limit for rule";
                refuse(format!("{words}: {shown}"));
                return Err(Stopped);
            }
            Err(EvalError::NoSuchOverload(_)) => {
                let words = "'no such overload': call arguments did not match a supported operator, function or macro \
                             signature for rule";
                refuse(format!("{words}: {shown}"));
            }
            Err(error) => refuse(format!("{error} evaluating rule: {shown}")),
        }
        Ok(())
    }

    /// The error of a violated rule, at the field and with the reason that the rule specifies.
    fn fault(&self, rule: &Rule, message: &str, value: &Value, spot: &ValuePosition) -> Cause {
        let place = rule.field_path().map(|relative| self.place(&spot.path, relative));
        let field = place.as_deref().unwrap_or(spot.field());
        let kind = self.rule_type();
        let reason = rule.reason().unwrap_or("FieldValueInvalid");
        let text = match reason {
            "FieldValueRequired" => format!("Required value: {message}"),
            "FieldValueForbidden" => format!("Forbidden: {message}"),
            "FieldValueDuplicate" => format!("Duplicate value: {kind:?}"),
            _ => format!("Invalid value: {kind:?}: {message}"),
        };
        let shown = (!value.is_object() && !value.is_array()).then(|| value.to_string());
        Cause { named_type: Some((kind, shown)), ..Cause::new(reason, field, text) }
    }

    /// The type as errors of rules name it; values may be secret.
    fn rule_type(&self) -> &'static str {
        if self.kind == Type::IntOrString { "" } else { self.type_name() }
    }

    /// A path such as `.spec.labels['a.b']` below another one: fields follow a dot, keys of maps stand in brackets.
    fn place(&self, path: &str, relative: &str) -> String {
        let (mut here, mut place, mut rest) = (Some(self), path.to_owned(), relative);
        while !rest.is_empty() {
            let quoted = rest.strip_prefix("['").and_then(|rest| rest.split_once("']"));
            let (name, after) = quoted.unwrap_or_else(|| {
                let plain = rest.trim_start_matches('.');
                plain.split_at(plain.find(['.', '[']).unwrap_or(plain.len()))
            });
            if name.is_empty() {
                break;
            }
            let field = here.and_then(|here| here.properties.get(name));
            match field {
                None if here.is_some_and(|here| here.additional.is_some()) => place.extend(["[", name, "]"]),
                _ if place.is_empty() => place.push_str(name),
                _ => place.extend([".", name]),
            }
            here = field.or_else(|| here.and_then(|here| here.additional.as_deref()));
            rest = after;
        }
        place
    }
}

/// The violations found so far, and the cost budget that is left.
struct RuleRun {
    causes: Vec<Cause>,
    steps: u64,
}

/// The cost budget of all rules for one object: ten times that of a single rule.
const STEPS: u64 = 10_000_000;

/// No further rules are evaluated.
struct Stopped;

/// A place in an object.
struct ValuePosition {
    path: String,
    /// Whether it is unchanged.
    unchanged: bool,
}

impl ValuePosition {
    fn field(&self) -> &str {
        if self.path.is_empty() { "<nil>" } else { &self.path }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn faults(rules: &Value, object: &Value, old: Option<&Value>) -> Vec<String> {
        let spec = json!({
            "type": "object", "x-kubernetes-validations": rules,
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}, "l": {"type": "array", "items": {"type": "integer"}}},
        });
        let schema = Schema::compile(&json!({"type": "object", "properties": {"spec": spec}})).expect("compiles");
        schema.check_rules(object, old, &[]).into_iter().map(|fault| fault.message).collect()
    }

    #[test]
    fn what_was_accepted_before_is_refused_only_when_it_changes() {
        let (before, after) = (json!({"spec": {"a": 9, "b": 1}}), json!({"spec": {"a": 9, "b": 2}}));
        let rules = json!([{"rule": "self.a < 5"}]);
        assert!(faults(&rules, &before, Some(&before)).is_empty());
        let refused = ["Invalid value: \"object\": failed rule: self.a < 5"];
        assert_eq!(faults(&rules, &after, Some(&before)), refused);
        assert_eq!(faults(&rules, &before, None), refused);
        // a rule about the change itself is always evaluated
        assert_eq!(
            faults(&json!([{"rule": "self != oldSelf", "message": "no change"}]), &before, Some(&before)).len(),
            1
        );
    }

    #[test]
    fn rules_that_take_too_long_end_the_check() {
        let list: Vec<u32> = (0..1_000).collect();
        let endless = "self.l.all(x, self.l.all(y, self.l.all(z, x + y + z >= 0)))";
        let got = faults(&json!([{"rule": endless}, {"rule": "false"}]), &json!({"spec": {"l": list}}), None);
        assert_eq!(got.len(), 1);
        assert!(got[0].contains("'operation cancelled: actual cost limit exceeded'"), "{}", got[0]);
    }
}
