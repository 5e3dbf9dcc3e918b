//! `allOf`, `anyOf`, `oneOf` and `not`: what does not fit, and which alternative tells why.

use serde_json::Value;

use crate::cause::Cause;
use crate::node::{Schema, Type};

impl Schema {
    pub(super) fn check_branches(&self, value: &Value, path: &str, causes: &mut Vec<Cause>) {
        let checks = &self.checks;
        let body = format!("{path:?}");
        let fault = |detail: String, causes: &mut Vec<Cause>| {
            causes.push(Cause::invalid("<nil>", &Value::String(String::new()), &detail));
        };
        let fits = |schema: &Schema| schema.faults(value, path).is_empty();
        if !checks.any_of.is_empty() && !checks.any_of.iter().any(fits) {
            fault(format!("{body} must validate at least one schema (anyOf)"), causes);
            causes.extend(best(&checks.any_of, value, path));
        }
        if !checks.one_of.is_empty() {
            let valid = checks.one_of.iter().filter(|schema| fits(schema)).count();
            if valid != 1 {
                let found = if valid == 0 { "none valid".to_owned() } else { format!("{valid} valid alternatives") };
                fault(format!("{body} must validate one and only one schema (oneOf). Found {found}"), causes);
                if valid == 0 {
                    causes.extend(best(&checks.one_of, value, path));
                }
            }
        }
        let each: Vec<Vec<Cause>> = checks.all_of.iter().map(|schema| schema.faults(value, path)).collect();
        let broken = each.iter().filter(|faults| !faults.is_empty()).count();
        if broken > 0 {
            let none = if broken == each.len() { ". None validated" } else { "" };
            causes.extend(each.into_iter().flatten());
            fault(format!("{body} must validate all the schemas (allOf){none}"), causes);
        }
        if checks.not.as_deref().is_some_and(fits) {
            fault(format!("{body} must not validate the schema (not)"), causes);
        }
    }

    fn faults(&self, value: &Value, path: &str) -> Vec<Cause> {
        let mut causes = Vec::new();
        self.validate_node(value, None, path, &mut causes);
        causes
    }
}

/// The errors of the alternative that came closest: the one that checked most of the value, the first of several.
fn best(branches: &[Schema], value: &Value, path: &str) -> Vec<Cause> {
    let closest = closest(branches, value);
    closest.map(|(_, schema)| schema.faults(value, path)).unwrap_or_default()
}

fn closest<'a>(branches: &'a [Schema], value: &Value) -> Option<(usize, &'a Schema)> {
    let weighed = branches.iter().map(|schema| (schema.weight(value), schema));
    weighed.reduce(|best, next| if next.0 > best.0 { next } else { best })
}

impl Schema {
    /// How many checks look at a value, whether it passes them or not. The numbers are those of Kubernetes' validator: they decide which
    /// alternative's errors are reported.
    fn weight(&self, value: &Value) -> usize {
        const NODE: usize = 5;
        let checks = &self.checks;
        let own = NODE + usize::from(self.kind != Type::Any) + usize::from(checks.format.is_some());
        let below: usize = match value {
            Value::Object(map) => {
                let child = |name: &str| self.properties.get(name).or(self.additional.as_deref());
                map.iter().filter_map(|(name, found)| Some(child(name)?.weight(found))).sum()
            }
            Value::Array(list) => {
                self.items.as_ref().map_or(0, |items| list.iter().map(|item| items.weight(item)).sum())
            }
            _ => 0,
        };
        let fits = |schema: &&Schema| schema.faults(value, "").is_empty();
        let any = checks.any_of.iter().find(fits).map(|schema| schema.weight(value));
        let any = any.or_else(|| Some(closest(&checks.any_of, value)?.0)).unwrap_or_default();
        let valid: Vec<&Schema> = checks.one_of.iter().filter(fits).collect();
        let one = match valid.as_slice() {
            [] => closest(&checks.one_of, value).map_or(0, |(weight, _)| weight),
            [only] => only.weight(value),
            _ => 0,
        };
        let all: usize = checks.all_of.iter().map(|schema| schema.weight(value)).sum();
        own + below + any + one + all
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// What kube-apiserver 1.34 answers.
    #[test]
    fn of_several_alternatives_the_closest_one_tells_what_is_wrong() {
        let text = json!({"type": "string"});
        let schema = Schema::compile(&json!({"type": "object", "properties": {
            "both": {"type": "integer", "allOf": [{"minimum": 5}, {"maximum": 1}]},
            "one": {"type": "integer", "allOf": [{"minimum": 5}, {"minimum": 1}]},
            "any": {"type": "object", "properties": {"a": text, "b": text, "c": text}, "anyOf": [
                {"properties": {"a": {"enum": ["x"]}}},
                {"properties": {"a": {"enum": ["y"]}, "b": {"enum": ["z"]}}},
                {"required": ["c"]},
            ]},
        }}))
        .unwrap();
        for (object, wanted) in [
            (
                json!({"both": 3}),
                vec![
                    "both: Invalid value: 3: both in body should be greater than or equal to 5",
                    "both: Invalid value: 3: both in body should be less than or equal to 1",
                    "<nil>: Invalid value: \"\": \"both\" must validate all the schemas (allOf). None validated",
                ],
            ),
            (
                json!({"one": 3}),
                vec![
                    "one: Invalid value: 3: one in body should be greater than or equal to 5",
                    "<nil>: Invalid value: \"\": \"one\" must validate all the schemas (allOf)",
                ],
            ),
            (
                json!({"any": {"a": "q", "b": "q"}}),
                vec![
                    "<nil>: Invalid value: \"\": \"any\" must validate at least one schema (anyOf)",
                    "any.a: Unsupported value: \"q\": supported values: \"y\"",
                    "any.b: Unsupported value: \"q\": supported values: \"z\"",
                ],
            ),
            (
                json!({"any": {"a": "q"}}),
                vec![
                    "<nil>: Invalid value: \"\": \"any\" must validate at least one schema (anyOf)",
                    "any.a: Unsupported value: \"q\": supported values: \"x\"",
                ],
            ),
        ] {
            let causes = schema.validate(&object, None);
            let reported: Vec<String> =
                causes.iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect();
            assert_eq!(reported, wanted, "{object}");
        }
    }
}
