//! Parameters of policies: any objects of one kind.

use std::fmt;
use std::sync::Arc;

use carrick_go::labels::Selector;
use serde_json::Value;

use super::rule::selector;

/// The kind of a policy's parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ParamKind {
    pub(super) group: String,
    pub(super) version: String,
    pub(super) kind: String,
}

impl ParamKind {
    pub(super) fn read(kind: &Value) -> Option<Self> {
        let version = kind["apiVersion"].as_str()?;
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        let kind = kind["kind"].as_str().unwrap_or_default().to_owned();
        Some(Self { group: group.to_owned(), version: version.to_owned(), kind })
    }
}

impl fmt::Display for ParamKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}, Kind={}", self.group, self.version, self.kind)
    }
}

/// Where parameters come from.
pub(super) trait ParamSource {
    /// Whether there is such a kind.
    fn knows(&self, kind: &ParamKind) -> bool;
    /// Whether its objects live in namespaces.
    fn is_namespaced(&self, kind: &ParamKind) -> bool;
    /// One object.
    fn get(&self, kind: &ParamKind, namespace: &str, name: &str) -> Option<Arc<Value>>;
    /// All objects, of one namespace if the kind has namespaces.
    fn list(&self, kind: &ParamKind, namespace: &str) -> Vec<Arc<Value>>;
}

/// Which parameters a binding uses.
#[derive(Debug)]
pub(super) struct ParamRef {
    name: String,
    namespace: String,
    selector: Option<Selector>,
    /// `parameterNotFoundAction: Deny`.
    required: bool,
}

impl ParamRef {
    pub(super) fn read(reference: &Value) -> Option<Self> {
        let text = |key: &str| reference[key].as_str().unwrap_or_default().to_owned();
        reference.is_object().then(|| Self {
            name: text("name"),
            namespace: text("namespace"),
            selector: reference["selector"].is_object().then(|| selector(&reference["selector"])),
            required: reference["parameterNotFoundAction"] == "Deny",
        })
    }

    /// The parameters for a request in a namespace; none means that the binding does not apply.
    pub(super) fn collect(
        &self,
        kind: &ParamKind,
        source: &dyn ParamSource,
        namespace: &str,
    ) -> Result<Vec<Arc<Value>>, String> {
        let namespace = match (source.is_namespaced(kind), self.namespace.as_str()) {
            (true, "") if namespace.is_empty() => {
                let why = "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources";
                return Err(why.to_owned());
            }
            (true, "") => namespace,
            (true, given) => given,
            (false, "") => "",
            (false, _) => {
                return Err("paramRef.namespace must not be provided for a cluster-scoped `paramKind`".to_owned());
            }
        };
        let found: Vec<Arc<Value>> = match &self.selector {
            _ if !self.name.is_empty() => source.get(kind, namespace, &self.name).into_iter().collect(),
            Some(selector) => {
                let fits = |object: &Arc<Value>| {
                    let labels = &object["metadata"]["labels"];
                    selector.matches(|key| labels.get(key).and_then(Value::as_str))
                };
                source.list(kind, namespace).into_iter().filter(fits).collect()
            }
            None => return Err("one of name or selector must be provided".to_owned()),
        };
        if found.is_empty() && self.required {
            return Err("no params found for policy binding with `Deny` parameterNotFoundAction".to_owned());
        }
        Ok(found)
    }
}
