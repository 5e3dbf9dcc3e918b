//! Names of copies on the service cluster.

use carrick_template::Template;
use serde_json::{Map, Value};
use thiserror::Error;

use super::access::Reserved;
use super::hints;
use super::metadata::{SourceKey, sha1_hex};
use crate::api;

/// The logical cluster of whoever has ordered; of the order itself, unless a broker stands between.
const CONSUMER: &str = "ConsumerCluster";
const DEFAULT_NAMESPACE: &str = "{{ .ClusterName }}";
const DEFAULT_NAME: &str = "{{ .Object.metadata.namespace | sha3short }}-{{ .Object.metadata.name | sha3short }}";
/// The default fails on objects without a namespace; cluster-scoped kinds get this one instead.
const DEFAULT_CLUSTER_SCOPED_NAME: &str = "{{ .ClusterName }}-{{ .Object.metadata.name | sha3short }}";

/// Why a copy cannot be named.
#[derive(Debug, Error)]
pub enum NamingError {
    /// The pattern is not a valid template.
    #[error("spec.naming.{field} is not a valid template: {problem}")]
    Compile {
        /// `name` or `namespace`.
        field: &'static str,
        /// What is wrong, and what may have been meant.
        problem: String,
    },
    /// The template failed on this object.
    #[error("spec.naming.{field} cannot be rendered: {source}")]
    Render {
        /// `name` or `namespace`.
        field: &'static str,
        /// What is wrong.
        source: carrick_template::RenderError,
    },
    /// The result is not a valid name for an object.
    #[error(
        "spec.naming.{field} yields {result:?}, which is not a valid Kubernetes name (lower-case letters, digits, '-' and '.')"
    )]
    Invalid {
        /// `name` or `namespace`.
        field: &'static str,
        /// What came out.
        result: String,
    },
    /// The result is a namespace of the cluster, of the agent, or one that the provider reserves.
    #[error(
        "spec.naming.{field} yields {result:?}, which is reserved: only a PublishedResource that names it literally leads there"
    )]
    Reserved {
        /// `name` or `namespace`.
        field: &'static str,
        /// What came out.
        result: String,
    },
}

/// What names may be made of beside an order and its logical cluster.
#[derive(Debug, Clone, Copy, Default)]
pub struct Workspace<'a> {
    /// Path of the workspace, if the rules ask for it.
    pub path: Option<&'a str>,
    /// Logical cluster of the consumer, if a broker stands between her and the workspace.
    pub consumer: Option<&'a str>,
}

/// Compiled naming rules.
#[derive(Debug, Clone)]
pub struct Naming {
    name: Pattern,
    /// None for kinds that are cluster-scoped on the service cluster.
    namespace: Option<Pattern>,
    /// Whether the result may be secret unless it is a valid name.
    discreet: bool,
    /// Whether copies are namespaces themselves.
    of_namespaces: bool,
    /// Namespaces that copies are not placed in.
    reserved: Reserved,
}

#[derive(Debug, Clone)]
enum Pattern {
    Template(Template),
    /// The deprecated `$remoteName` form.
    Placeholders(String),
}

impl Naming {
    /// Compiles the rules; empty fields get the defaults.
    pub fn compile(naming: &api::Naming, local_namespaced: bool, remote_namespaced: bool) -> Result<Self, NamingError> {
        let or = |text: &str, default: &str| if text.is_empty() { default.to_owned() } else { text.to_owned() };
        let default_name = if remote_namespaced { DEFAULT_NAME } else { DEFAULT_CLUSTER_SCOPED_NAME };
        let namespace = or(&naming.namespace, DEFAULT_NAMESPACE);
        Ok(Self {
            name: Pattern::compile("name", or(&naming.name, default_name))?,
            namespace: local_namespaced.then(|| Pattern::compile("namespace", namespace)).transpose()?,
            discreet: false,
            of_namespaces: false,
            reserved: Reserved::default(),
        })
    }

    /// The same rules for objects with confidential content: a result that is not a valid name is not shown.
    #[must_use]
    pub fn discreet(self) -> Self {
        Self { discreet: true, ..self }
    }

    /// The same rules for copies that are namespaces themselves.
    #[must_use]
    pub fn of_namespaces(self) -> Self {
        Self { of_namespaces: true, ..self }
    }

    /// The same rules with namespaces that copies are not placed in.
    #[must_use]
    pub fn reserving(self, reserved: &Reserved) -> Self {
        Self { reserved: reserved.clone(), ..self }
    }

    /// The namespace of all copies, if the rules name it as it is.
    pub fn literal_namespace(&self) -> Option<&str> {
        self.namespace.as_ref().and_then(Pattern::literal)
    }

    /// Whether names depend on who is behind a broker.
    pub fn asks_for_consumer(&self) -> bool {
        self.namespace.iter().chain([&self.name]).any(Pattern::asks_for_consumer)
    }

    /// Namespace (if any) and name of the copy of a source.
    pub fn name_copy(
        &self,
        source: &SourceKey,
        workspace: Workspace<'_>,
        object: &Value,
    ) -> Result<(Option<String>, String), NamingError> {
        let (namespace, name) = self.evaluate(source, workspace, object)?;
        let invalid = |field, result: String| {
            let result = if self.discreet { "…".to_owned() } else { result };
            NamingError::Invalid { field, result }
        };
        if name.len() > 253 || !name.split('.').all(is_name_part) {
            return Err(invalid("name", name));
        }
        if self.of_namespaces && self.reserved.refuses(&name, self.name.literal()) {
            return Err(NamingError::Reserved { field: "name", result: name });
        }
        match namespace {
            Some(result) if !carrick_kcp::path::is_label(&result) => Err(invalid("namespace", result)),
            Some(result) if self.reserved.refuses(&result, self.literal_namespace()) => {
                Err(NamingError::Reserved { field: "namespace", result })
            }
            namespace => Ok((namespace, name)),
        }
    }

    /// The result of the rules, valid or not.
    pub fn evaluate(
        &self,
        source: &SourceKey,
        workspace: Workspace<'_>,
        object: &Value,
    ) -> Result<(Option<String>, String), NamingError> {
        let evaluate = |field, pattern: &Pattern| pattern.evaluate(field, source, workspace, object);
        let namespace = self.namespace.as_ref().map(|pattern| evaluate("namespace", pattern)).transpose()?;
        Ok((namespace, evaluate("name", &self.name)?))
    }
}

impl Pattern {
    fn compile(field: &'static str, text: String) -> Result<Self, NamingError> {
        if text.contains("{{") {
            return Template::compile(&text)
                .map(Self::Template)
                .map_err(|error| NamingError::Compile { field, problem: hints::template(&text, &error) });
        }
        Ok(Self::Placeholders(text))
    }

    fn asks_for_consumer(&self) -> bool {
        match self {
            Self::Template(template) => {
                template.fields().iter().any(|field| field.first().is_some_and(|first| *first == CONSUMER))
            }
            Self::Placeholders(_) => false,
        }
    }

    /// The result, if it is the same for every object.
    fn literal(&self) -> Option<&str> {
        match self {
            Self::Placeholders(text) if !text.contains('$') => Some(text),
            _ => None,
        }
    }

    fn evaluate(
        &self,
        field: &'static str,
        source: &SourceKey,
        workspace: Workspace<'_>,
        object: &Value,
    ) -> Result<String, NamingError> {
        match self {
            Self::Template(template) => {
                let mut data = Map::new();
                data.insert("Object".into(), object.clone());
                data.insert("ClusterName".into(), (&*source.cluster).into());
                data.insert("ClusterPath".into(), workspace.path.unwrap_or_default().into());
                data.insert(CONSUMER.into(), workspace.consumer.unwrap_or(&source.cluster).into());
                let rendered = template.render(&data).map_err(|source| NamingError::Render { field, source })?;
                Ok(rendered.trim().to_owned())
            }
            Self::Placeholders(text) => {
                // Like templates, they see the object after mutation.
                let field = |key: &str| object["metadata"][key].as_str().unwrap_or_default().to_owned();
                let (namespace, name) = (field("namespace"), field("name"));
                Ok(fill_placeholders(
                    text,
                    &SourceKey { cluster: source.cluster.clone(), namespace: namespace.into(), name: name.into() },
                ))
            }
        }
    }
}

/// Replaces the deprecated placeholders in one pass from left to right.
fn fill_placeholders(text: &str, source: &SourceKey) -> String {
    let hash = |s: &str| sha1_hex(s)[..20].to_owned();
    // Longer names first, so that `$remoteNameHash` is not mistaken for `$remoteName`.
    let values = [
        ("$remoteClusterName", source.cluster.to_string()),
        ("$remoteNamespaceHash", hash(&source.namespace)),
        ("$remoteNamespace", source.namespace.to_string()),
        ("$remoteNameHash", hash(&source.name)),
        ("$remoteName", source.name.to_string()),
    ];
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        if let Some((placeholder, value)) = values.iter().find(|(placeholder, _)| rest.starts_with(placeholder)) {
            out.push_str(value);
            rest = &rest[placeholder.len()..];
        } else {
            out.push('$');
            rest = &rest[1..];
        }
    }
    out.push_str(rest);
    out
}

/// One dot-separated part of an object name; the whole may be longer than a label.
fn is_name_part(part: &str) -> bool {
    let bytes = part.as_bytes();
    let edge = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    bytes.iter().all(|b| edge(b) || *b == b'-') && bytes.first().is_some_and(edge) && bytes.last().is_some_and(edge)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn name(naming: &api::Naming, namespace: &str) -> Result<(Option<String>, String), NamingError> {
        let source = SourceKey { cluster: "testcluster".into(), namespace: namespace.into(), name: "objname".into() };
        let object = json!({"metadata": {"namespace": namespace, "name": "objname"}});
        Naming::compile(naming, true, !namespace.is_empty())?.name_copy(&source, Workspace::default(), &object)
    }

    #[test]
    fn defaults_equal_those_of_the_reference_agent() {
        let (namespace, name) = name(&api::Naming::default(), "objnamespace").unwrap();
        assert_eq!(namespace.as_deref(), Some("testcluster"));
        assert_eq!(name, "2928c2aa0e510f017f07-73d08a1ba188f1340dae");
    }

    #[test]
    fn cluster_scoped_sources_get_a_name_too() {
        let (_, name) = name(&api::Naming::default(), "").unwrap();
        assert_eq!(name, "testcluster-73d08a1ba188f1340dae");
    }

    #[test]
    fn placeholders_and_templates_are_both_understood() {
        let old =
            api::Naming { name: "$remoteName-$remoteNameHash-$x".into(), namespace: "synced-$remoteNamespace".into() };
        assert_eq!(
            fill_placeholders(
                "$remoteName$",
                &SourceKey { cluster: "c".into(), namespace: "n".into(), name: "m".into() }
            ),
            "m$"
        );
        assert!(matches!(name(&old, "ns"), Err(NamingError::Invalid { field: "name", .. })));
        let new = api::Naming {
            name: "{{ .Object.metadata.name }}".into(),
            namespace: " synced-{{ .Object.metadata.namespace }} ".into(),
        };
        assert_eq!(name(&new, "ns").unwrap(), (Some("synced-ns".into()), "objname".into()));
    }

    #[test]
    fn copies_stay_out_of_reserved_namespaces_unless_they_are_named() {
        let reserved = Reserved::new("agent", &[]);
        let source = SourceKey { cluster: "c".into(), namespace: "agent".into(), name: "kube-system".into() };
        let object = json!({"metadata": {"namespace": "agent", "name": "kube-system"}});
        let naming = |name: &str, namespace: &str| {
            let naming = api::Naming { name: name.into(), namespace: namespace.into() };
            Naming::compile(&naming, !namespace.is_empty(), true).unwrap().reserving(&reserved)
        };
        let (name, namespace) = ("{{ .Object.metadata.name }}", "{{ .Object.metadata.namespace }}");
        let refused = |naming: &Naming| match naming.name_copy(&source, Workspace::default(), &object) {
            Err(NamingError::Reserved { field, .. }) => Some(field),
            other => other.map(|_| None).unwrap(),
        };
        assert_eq!(refused(&naming(name, namespace)), Some("namespace"));
        assert_eq!(refused(&naming(name, "$remoteNamespace")), Some("namespace"));
        assert_eq!(refused(&naming(name, "agent")), None, "it is named literally");
        assert_eq!(refused(&naming(name, "")), None, "it is just a name");
        assert_eq!(refused(&naming(name, "").of_namespaces()), Some("name"), "it is a namespace itself");
        assert_eq!(refused(&naming("kube-system", "").of_namespaces()), None);
    }

    #[test]
    fn bad_patterns_say_which_field_is_wrong() {
        let bad = api::Naming { name: "{{ .Object.metadata.name | nosuchfunction }}".into(), namespace: String::new() };
        let error = name(&bad, "ns").unwrap_err().to_string();
        assert!(error.starts_with("spec.naming.name is not a valid template"), "{error}");
        let upper = api::Naming { name: "{{ .Object.metadata.name | upper }}".into(), namespace: String::new() };
        assert!(
            matches!(name(&upper, "ns"), Err(NamingError::Invalid { field: "name", result }) if result == "OBJNAME")
        );
    }

    #[test]
    fn only_valid_kubernetes_names_are_accepted() {
        let long = |count: usize| "x".repeat(count);
        for (field, result, valid) in [
            ("name", "a.b-c.9".to_owned(), true),
            ("name", long(253), true),
            ("name", long(254), false),
            ("name", String::from("{{ \"\" }}"), false),
            ("name", "a..b".into(), false),
            ("name", "-a".into(), false),
            ("name", "a/b".into(), false),
            ("name", "<no value>".into(), false),
            ("namespace", "a-9".into(), true),
            ("namespace", "a.b".into(), false),
            ("namespace", long(63), true),
            ("namespace", long(64), false),
            ("namespace", String::from("{{ \"\" }}"), false),
        ] {
            let naming = match field {
                "name" => api::Naming { name: result.clone(), namespace: String::new() },
                _ => api::Naming { name: String::new(), namespace: result.clone() },
            };
            match name(&naming, "ns") {
                Ok(_) => assert!(valid, "{field} {result}"),
                Err(NamingError::Invalid { field: at, .. }) => assert!(!valid && at == field, "{field} {result}"),
                Err(error) => panic!("{error}"),
            }
        }
    }

    #[test]
    fn hashes_and_paths_are_those_of_the_reference_agent() {
        let source = SourceKey { cluster: "c1".into(), namespace: "default".into(), name: "n".into() };
        let object = serde_json::json!({"metadata": {"namespace": "default", "name": "n"}});
        let workspace = Workspace { path: Some("root:a"), consumer: None };
        let named = |name: &str| {
            let naming = api::Naming { name: name.into(), namespace: "ns".into() };
            Naming::compile(&naming, true, true).unwrap().name_copy(&source, workspace, &object).unwrap().1
        };
        assert_eq!(named("$remoteNameHash"), "d1854cae891ec7b29161");
        assert_eq!(named(r#"{{ .ClusterPath | replace ":" "-" }}"#), "root-a");
    }

    #[test]
    fn whoever_is_behind_a_broker_is_named_as_herself_and_all_others_by_their_workspace() {
        let source = SourceKey { cluster: "c1".into(), namespace: "default".into(), name: "n".into() };
        let object = json!({"metadata": {"namespace": "default", "name": "n"}});
        let compile = |name: &str| {
            Naming::compile(&api::Naming { name: name.into(), namespace: "ns".into() }, true, true).unwrap()
        };
        let naming = compile("{{ .ConsumerCluster }}-{{ .Object.metadata.name }}");
        assert!(naming.asks_for_consumer() && !compile("{{ .ClusterName }}").asks_for_consumer());
        for (consumer, wanted) in [(Some("c9"), "c9-n"), (None, "c1-n")] {
            let workspace = Workspace { path: None, consumer };
            assert_eq!(naming.name_copy(&source, workspace, &object).unwrap().1, wanted);
        }
    }
}
