//! Label and field selectors.

use std::fmt;

use carrick_go::labels::Selector;
use carrick_go::names::Words;
use serde_json::Value;

use crate::resource::Resource;
use crate::status::Status;

/// A parsed label selector; the empty one selects everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LabelSelector(Selector);

impl LabelSelector {
    /// Parses `a=b,c in (d,e),!f`; complaints are in the words of a release.
    pub fn parse(text: &str, words: Words) -> Result<Self, Status> {
        Selector::parse_in(words, text).map(Self).map_err(|error| Status::bad_request(error.to_string()))
    }

    /// Whether it selects everything.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether an object's labels fit.
    pub fn matches(&self, object: &Value) -> bool {
        let labels = &object["metadata"]["labels"];
        self.0.matches(|key| labels.get(key).and_then(Value::as_str))
    }
}

/// A parsed field selector; the empty one selects everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldSelector {
    /// Path, expected value, and whether it must be equal.
    tests: Vec<(Vec<String>, String, bool)>,
}

impl FieldSelector {
    /// Parses `metadata.name=a,spec.color!=b`; only selectable fields of the kind are allowed.
    pub fn parse(text: &str, resource: &Resource, version: &str) -> Result<Self, Status> {
        let mut tests = Vec::new();
        for part in text.split(',').filter(|part| !part.trim().is_empty()) {
            let (field, value, equal) = if let Some((field, value)) = part.split_once("!=") {
                (field, value, false)
            } else if let Some((field, value)) = part.split_once("==").or_else(|| part.split_once('=')) {
                (field, value, true)
            } else {
                let message = format!("invalid selector: '{part}'; can't understand '{part}'");
                return Err(Status::bad_request(message));
            };
            let field = field.trim();
            let extra = resource
                .version(version)
                .is_some_and(|found| found.selectable.iter().any(|path| path.trim_start_matches('.') == field));
            // Kubernetes' own kinds take it even where there are no namespaces, except for those with a list of their own.
            let has_namespace =
                resource.namespaced || !(resource.is_custom() || matches!(&*resource.plural, "namespaces" | "nodes"));
            if !(extra || field == "metadata.name" || (field == "metadata.namespace" && has_namespace)) {
                let own = resource.version(version).is_some_and(|found| !found.selectable.is_empty());
                let message = if own || resource.is_custom() {
                    format!("field label not supported: {field}")
                } else {
                    let known = "only \"metadata.name\", \"metadata.namespace\"";
                    format!("{field:?} is not a known field selector: {known}")
                };
                return Err(Status::bad_request(message));
            }
            tests.push((field.split('.').map(str::to_owned).collect(), value.trim().to_owned(), equal));
        }
        Ok(Self { tests })
    }

    /// Whether it selects everything.
    pub fn is_empty(&self) -> bool {
        self.tests.is_empty()
    }

    /// Whether an object in the selector's version fits.
    pub fn matches(&self, object: &Value) -> bool {
        self.tests.iter().all(|(path, wanted, equal)| {
            let mut found = object;
            for key in path {
                found = &found[key.as_str()];
            }
            let text = match found {
                Value::Null => String::new(),
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            (text == *wanted) == *equal
        })
    }

    /// The one value that a field must have.
    fn exactly(&self, field: &str) -> Option<&str> {
        let mut tests = self.tests.iter();
        let found = tests.find(|(path, _, equal)| *equal && field.split('.').eq(path.iter().map(String::as_str)));
        found.map(|(_, wanted, _)| wanted.as_str())
    }

    /// Whether it selects nothing over all workspaces of kcp, which then looks for what it names where the names of workspaces are: a
    /// namespace, or an object of a kind without namespaces.
    pub(super) fn loses_workspace(&self, namespaced: bool) -> bool {
        let field = if namespaced { "metadata.namespace" } else { "metadata.name" };
        self.exactly(field).is_some_and(|name| !name.is_empty())
    }

    /// Whether only name and namespace are used, which do not depend on the version.
    pub(super) fn only_metadata(&self) -> bool {
        self.tests.iter().all(|(path, _, _)| path[0] == "metadata")
    }
}

impl fmt::Display for FieldSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (path, value, equal)) in self.tests.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(f, "{comma}{}{}{value}", path.join("."), if *equal { "=" } else { "!=" })?;
        }
        Ok(())
    }
}
