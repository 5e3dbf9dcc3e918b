//! Label selectors of specs.

use std::collections::BTreeMap;

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
pub struct Selector(Vec<Requirement>);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Requirement {
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
    Exists(String),
    Missing(String),
}

impl Selector {
    /// Compiles the selector of a spec. An empty one matches everything.
    pub fn compile(selector: &LabelSelector) -> Result<Self, SelectorError> {
        let mut all: Vec<Requirement> =
            selector.match_labels.iter().map(|(k, v)| Requirement::In(k.clone(), vec![v.clone()])).collect();
        for expression in &selector.match_expressions {
            let (key, values) = (expression.key.clone(), expression.values.clone());
            let needs =
                |needs| SelectorError::Values { key: key.clone(), operator: expression.operator.clone(), needs };
            let requirement = match expression.operator.as_str() {
                "In" | "NotIn" if values.is_empty() => return Err(needs("at least one value")),
                "Exists" | "DoesNotExist" if !values.is_empty() => return Err(needs("no values")),
                "In" => Requirement::In(key, values),
                "NotIn" => Requirement::NotIn(key, values),
                "Exists" => Requirement::Exists(key),
                "DoesNotExist" => Requirement::Missing(key),
                other => return Err(SelectorError::Operator(other.to_owned())),
            };
            all.push(requirement);
        }
        Ok(Self(all))
    }

    /// Whether an object with these labels is selected.
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.0.iter().all(|requirement| requirement.holds(|key| labels.get(key).map(String::as_str)))
    }

    /// Whether the JSON object is selected by its labels.
    pub fn matches_object(&self, object: &Value) -> bool {
        let labels = &object["metadata"]["labels"];
        self.0.iter().all(|requirement| requirement.holds(|key| labels.get(key).and_then(Value::as_str)))
    }
}

impl Requirement {
    fn holds<'a>(&self, get: impl Fn(&str) -> Option<&'a str>) -> bool {
        let has = |value: &str, values: &[String]| values.iter().any(|v| v == value);
        match self {
            Self::In(key, values) => get(key).is_some_and(|v| has(v, values)),
            Self::NotIn(key, values) => get(key).is_none_or(|v| !has(v, values)),
            Self::Exists(key) => get(key).is_some(),
            Self::Missing(key) => get(key).is_none(),
        }
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
