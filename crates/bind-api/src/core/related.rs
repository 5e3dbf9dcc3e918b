//! Which Secrets and ConfigMaps an entry of a binding selects.

use carrick_go::labels::Selector;
use serde_json::Value;

use super::{Direction, RelatedResource};
use crate::claims::{LabelSelectorError, labels};

/// The resources that entries may name, with their kinds.
pub const RESOURCES: [(&str, &str); 2] = [("secrets", "Secret"), ("configmaps", "ConfigMap")];

/// The direction that brings the provider's objects here.
pub const FROM_PROVIDER: &str = "FromProvider";

/// A selector that is ready to be asked: labels and names must both match, and without either everything does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompiledSelector {
    labels: Option<Selector>,
    names: Vec<String>,
}

impl CompiledSelector {
    /// Compiles the selector of an entry.
    pub fn of(entry: &RelatedResource) -> Result<Self, LabelSelectorError> {
        let labels = entry.selector.label_selector.as_ref().map(labels::compile).transpose()?;
        Ok(Self { labels, names: entry.selector.names.clone() })
    }

    /// Whether it selects an object.
    pub fn selects(&self, object: &Value) -> bool {
        let metadata = &object["metadata"];
        let by_labels = || {
            let label = |key: &str| metadata["labels"].get(key).and_then(Value::as_str);
            self.labels.as_ref().is_none_or(|selector| selector.matches(label))
        };
        (self.names.is_empty() || self.names.iter().any(|name| metadata["name"] == name.as_str())) && by_labels()
    }

    /// Whether it says anything about the objects, so that it is worth a word if one of them does not travel.
    pub fn is_specific(&self) -> bool {
        self.labels.is_some() || !self.names.is_empty()
    }
}

/// Direction and resource of an entry, as a binding remembers it.
pub fn kind_of(entry: &RelatedResource) -> String {
    let direction = if entry.direction == Direction::FromProvider { FROM_PROVIDER } else { "FromConsumer" };
    format!("{direction}/{}", entry.resource)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn labels_and_names_must_both_match_and_nothing_said_is_everything() {
        let selects = |selector: Value, name: &str, app: &str| {
            let entry: RelatedResource =
                serde_json::from_value(json!({"resource": "secrets", "selector": selector})).unwrap();
            let object = json!({"metadata": {"name": name, "labels": {"app": app}}});
            CompiledSelector::of(&entry).unwrap().selects(&object)
        };
        let both = json!({"labelSelector": {"matchLabels": {"app": "widget"}}, "names": ["a", "b"]});
        assert!(selects(both.clone(), "b", "widget"));
        assert!(!selects(both.clone(), "b", "other") && !selects(both, "c", "widget"));
        assert!(selects(json!({}), "a", "x") && selects(json!({"labelSelector": {}}), "a", "x"));
        let wrong = json!({"resource": "secrets", "selector": {"labelSelector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}}});
        assert!(CompiledSelector::of(&serde_json::from_value(wrong).unwrap()).is_err());
    }
}
