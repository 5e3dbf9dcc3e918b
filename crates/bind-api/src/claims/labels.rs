//! Label selectors in claims.

use carrick_go::labels::{Requirement, Selector};
use carrick_go::names::V1_34;
use carrick_kcp::meta::LabelSelector;

/// Why a label selector makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LabelSelectorError {
    /// The operator is none that Kubernetes has.
    #[error("{0:?} is not a label selector operator; use In, NotIn, Exists or DoesNotExist")]
    Operator(String),
    /// The number of values does not fit the operator.
    #[error("operator {operator} of key {key:?} needs {needs}")]
    Values {
        /// The key.
        key: String,
        /// The operator.
        operator: String,
        /// What it needs.
        needs: &'static str,
    },
    /// A key cannot be that of a label.
    #[error("{key:?} is not the key of a label: {problem}")]
    Key {
        /// The key.
        key: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A value cannot be that of a label.
    #[error("{value:?} is not the value of a label: {problem}")]
    Value {
        /// The value.
        value: String,
        /// What is wrong with it.
        problem: String,
    },
}

/// Compiles a label selector; an empty one selects everything.
pub(crate) fn compile(selector: &LabelSelector) -> Result<Selector, LabelSelectorError> {
    let equal = selector.match_labels.iter().map(|(key, value)| {
        check_key(key)?;
        check_value(value)?;
        Ok(Requirement::equals(key, value))
    });
    let expressions = selector.match_expressions.iter().map(|expression| {
        let (key, operator, values) = (&expression.key, &expression.operator, &expression.values);
        let needs = |needs| Err(LabelSelectorError::Values { key: key.clone(), operator: operator.clone(), needs });
        check_key(key)?;
        match operator.as_str() {
            "In" | "NotIn" if values.is_empty() => return needs("at least one value"),
            "Exists" | "DoesNotExist" if !values.is_empty() => return needs("no values"),
            _ => {}
        }
        values.iter().try_for_each(|value| check_value(value))?;
        Requirement::expression(key, operator, values.clone())
            .ok_or_else(|| LabelSelectorError::Operator(operator.clone()))
    });
    equal.chain(expressions).collect()
}

fn check_key(key: &str) -> Result<(), LabelSelectorError> {
    match V1_34.label_key(key).into_iter().next() {
        Some(problem) => Err(LabelSelectorError::Key { key: key.to_owned(), problem }),
        None => Ok(()),
    }
}

fn check_value(value: &str) -> Result<(), LabelSelectorError> {
    match V1_34.label_value(value).into_iter().next() {
        Some(problem) => Err(LabelSelectorError::Value { value: value.to_owned(), problem }),
        None => Ok(()),
    }
}
