//! Label selectors, as objects in specs and as text on the command line.

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
    /// The text does not follow the selector grammar.
    #[error("unable to parse requirement {0:?}; write for example team=a, tier in (x,y), !legacy")]
    Syntax(String),
}

/// A compiled label selector; all requirements must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selector(Vec<Requirement>);

#[derive(Debug, Clone, PartialEq, Eq)]
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

    /// Parses the text form: `a=b, c!=d, e in (x,y), f notin (z), g, !h`.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        split_requirements(text).into_iter().map(parse_requirement).collect::<Result<_, _>>().map(Self)
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

/// Splits at commas outside of parentheses.
fn split_requirements(text: &str) -> Vec<&str> {
    let mut depth = 0;
    text.split(|c| {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        c == ',' && depth == 0
    })
    .map(str::trim)
    .filter(|part| !part.is_empty())
    .collect()
}

fn parse_requirement(text: &str) -> Result<Requirement, SelectorError> {
    let wrong = || SelectorError::Syntax(text.to_owned());
    let key = |s: &str| if is_key(s.trim()) { Ok(s.trim().to_owned()) } else { Err(wrong()) };
    let value = |s: &str| if is_value(s.trim()) { Ok(vec![s.trim().to_owned()]) } else { Err(wrong()) };
    if let Some(rest) = text.strip_prefix('!') {
        return Ok(Requirement::Missing(key(rest)?));
    }
    if let Some((left, list)) = text.split_once('(') {
        let list = list.trim().strip_suffix(')').ok_or_else(wrong)?;
        let values = list.split(',').map(&value).collect::<Result<Vec<_>, _>>()?.concat();
        let mut words = left.split_whitespace();
        return match (words.next(), words.next(), words.next()) {
            (Some(k), Some("in"), None) => Ok(Requirement::In(key(k)?, values)),
            (Some(k), Some("notin"), None) => Ok(Requirement::NotIn(key(k)?, values)),
            _ => Err(wrong()),
        };
    }
    if let Some((k, v)) = text.split_once("!=") {
        return Ok(Requirement::NotIn(key(k)?, value(v)?));
    }
    if let Some((k, v)) = text.split_once("==").or_else(|| text.split_once('=')) {
        return Ok(Requirement::In(key(k)?, value(v)?));
    }
    Ok(Requirement::Exists(key(text)?))
}

/// `[prefix/]name`, where the name is at most 63 characters of letters, digits, `-`, `_` and `.`.
fn is_key(key: &str) -> bool {
    let (prefix, name) = key.split_once('/').map_or((None, key), |(p, n)| (Some(p), n));
    let prefix_fits = prefix.is_none_or(|p| p.len() <= 253 && p.split('.').all(carrick_kcp::path::is_label));
    prefix_fits && !name.is_empty() && is_value(name)
}

/// Empty, or at most 63 characters that start and end with a letter or digit.
fn is_value(value: &str) -> bool {
    let bytes = value.as_bytes();
    bytes.len() <= 63
        && bytes.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
        && bytes.first().is_none_or(u8::is_ascii_alphanumeric)
        && bytes.last().is_none_or(u8::is_ascii_alphanumeric)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn selectors_as_text_match_as_kubectl_does() {
        let object = json!({"metadata": {"labels": {"team": "a", "tier": "x"}}});
        for (text, expected) in [
            ("", true),
            ("team=a", true),
            ("team==a,tier!=y", true),
            ("team in (a, b)", true),
            ("team notin (a,b)", false),
            ("other notin (a)", true),
            ("team, !other", true),
            ("!team", false),
            ("team=b", false),
        ] {
            assert_eq!(Selector::parse(text).unwrap().matches_object(&object), expected, "{text}");
        }
    }

    #[test]
    fn bad_texts_are_refused() {
        for text in ["a b", "a in x", "in (a)", "a=b c", "=x", "a in (b", "-a"] {
            assert!(Selector::parse(text).is_err(), "{text}");
        }
    }

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
}
