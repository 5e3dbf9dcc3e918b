//! Label selectors in specs.

use std::collections::BTreeMap;

use carrick_go::labels::{self, Requirement};
use serde_json::Value;
use thiserror::Error;

use crate::api::LabelSelector;

/// Why a label selector is refused.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum SelectorError {
    /// The operator is none of In, NotIn, Exists, DoesNotExist.
    #[error("{0:?} is not a valid label selector operator; use In, NotIn, Exists or DoesNotExist")]
    Operator(String),
    /// The number of values does not fit the operator.
    #[error("operator {operator} of key {key:?} needs {needs}")]
    Values {
        /// Label key.
        key: String,
        /// Operator.
        operator: String,
        /// What it needs.
        needs: &'static str,
    },
}

/// A compiled label selector; all requirements must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Selector(labels::Selector);

impl Selector {
    /// Compiles the selector of a spec. An empty one matches everything.
    pub fn compile(selector: &LabelSelector) -> Result<Self, SelectorError> {
        let equal = selector.match_labels.iter().map(|(key, value)| Ok(Requirement::equals(key, value)));
        let expressions = selector.match_expressions.iter().map(|expression| {
            let (key, operator) = (&expression.key, &expression.operator);
            let needs = |needs| Err(SelectorError::Values { key: key.clone(), operator: operator.clone(), needs });
            match operator.as_str() {
                "In" | "NotIn" if expression.values.is_empty() => needs("at least one value"),
                "Exists" | "DoesNotExist" if !expression.values.is_empty() => needs("no values"),
                _ => Requirement::expression(key, operator, expression.values.clone())
                    .ok_or_else(|| SelectorError::Operator(operator.clone())),
            }
        });
        equal.chain(expressions).collect::<Result<_, _>>().map(Self)
    }

    /// Whether an object with these labels is selected.
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.0.matches(|key| labels.get(key).map(String::as_str))
    }

    /// Whether the JSON object is selected by its labels.
    pub fn matches_object(&self, object: &Value) -> bool {
        let labels = &object["metadata"]["labels"];
        self.0.matches(|key| labels.get(key).and_then(Value::as_str))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn selectors_as_objects_match() {
        let selector = |v: Value| Selector::compile(&serde_json::from_value(v).unwrap());
        let object = json!({"metadata": {"labels": {"a": "1"}}});
        assert!(selector(json!({})).unwrap().matches_object(&object));
        assert!(selector(json!({"matchLabels": {"a": "1"}})).unwrap().matches_object(&object));
        let not_in = json!({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["1"]}]});
        assert!(!selector(not_in).unwrap().matches_object(&object));
        assert!(selector(json!({"matchExpressions": [{"key": "a", "operator": "Near"}]})).is_err());
        assert!(selector(json!({"matchExpressions": [{"key": "a", "operator": "In"}]})).is_err());
    }

    #[test]
    fn all_requirements_must_hold_and_a_missing_label_has_no_value() {
        let labels = BTreeMap::from([("a".to_owned(), "1".to_owned())]);
        let object = json!({"metadata": {"labels": labels}});
        let expression = |key: &str, operator: &str, values: &[&str]| json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]});
        for (selector, expected) in [
            (json!({"matchLabels": {"a": "1", "b": "2"}}), false),
            (json!({"matchLabels": {"b": "2"}}), false),
            (expression("b", "In", &["2"]), false),
            (expression("b", "NotIn", &["2"]), true),
            (expression("a", "NotIn", &["2"]), true),
            (expression("a", "Exists", &[]), true),
            (expression("b", "Exists", &[]), false),
            (expression("a", "DoesNotExist", &[]), false),
            (expression("b", "DoesNotExist", &[]), true),
        ] {
            let compiled = Selector::compile(&serde_json::from_value(selector.clone()).unwrap()).unwrap();
            assert_eq!(
                (compiled.matches(&labels), compiled.matches_object(&object)),
                (expected, expected),
                "{selector}"
            );
        }
    }
}
