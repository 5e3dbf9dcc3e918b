//! A kind as it is served.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use super::groups::{AUTHENTICATION, AUTHORIZATION};
use super::text::SchemaText;
use crate::conversion::Conversion;
use crate::schema::Schema;
use crate::store::Kind;

/// Where a kind comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// Kubernetes' own kinds.
    Builtin,
    /// kcp's own kinds, served in every cluster.
    System,
    /// A CRD of the same cluster.
    Crd,
    /// Bound from an `APIExport`.
    Bound,
}

/// One column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Heading.
    pub name: String,
    /// `string`, `integer`, `date` and so on.
    pub kind: String,
    /// Format hint, may be empty.
    pub format: String,
    /// Text for people.
    pub description: String,
    /// Zero is always shown, higher only in wide output.
    pub priority: i64,
    /// Where the value is, as a Kubernetes JSON path such as `.spec.size`.
    pub path: String,
}

/// The `scale` subresource: three JSON paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scale {
    /// Where `spec.replicas` is.
    pub spec: String,
    /// Where `status.replicas` is.
    pub status: String,
    /// Where the label selector text is, may be empty.
    pub selector: String,
}

/// One version of a kind.
#[derive(Debug, Clone)]
pub struct Version {
    /// `v1`.
    pub name: Arc<str>,
    /// Answered over HTTP.
    pub served: bool,
    /// The version objects are stored in.
    pub storage: bool,
    /// The warning to send when this version is deprecated.
    pub deprecated: Option<String>,
    /// Compiled schema; none for kinds stored without a schema.
    pub schema: Option<Arc<Schema>>,
    /// The schema as written, for OpenAPI; empty if unknown.
    pub openapi: SchemaText,
    /// Has a status subresource.
    pub status: bool,
    /// Has a scale subresource.
    pub scale: Option<Scale>,
    /// Table columns after the name.
    pub columns: Vec<Column>,
    /// Fields a field selector may use besides name and namespace, such as `.spec.color`.
    pub selectable: Vec<String>,
}

/// Converts an object in place between two full API versions such as `apis.kcp.io/v1alpha1`.
pub type Convert = fn(from: &str, to: &str, object: &mut Value);

/// A kind as it is served.
#[derive(Clone)]
pub struct Resource {
    /// API group, empty for core.
    pub group: Arc<str>,
    /// Plural name as in URLs.
    pub plural: Arc<str>,
    /// Singular name.
    pub singular: Arc<str>,
    /// `Widget`.
    pub kind: Arc<str>,
    /// `WidgetList`.
    pub list_kind: Arc<str>,
    /// Abbreviations.
    pub short_names: Vec<String>,
    /// Categories such as `all`.
    pub categories: Vec<String>,
    /// Lives in namespaces.
    pub namespaced: bool,
    /// Identity of the export it is bound from, empty otherwise.
    pub identity: Arc<str>,
    /// All versions, in order of preference.
    pub versions: Vec<Version>,
    /// Where it comes from.
    pub origin: Origin,
    /// Conversion between versions; `None` changes only `apiVersion`.
    pub convert: Option<Convert>,
    /// The webhook that converts between versions, if there is one.
    pub(crate) conversion: Option<Arc<Conversion>>,
    /// Verbs that are answered.
    pub verbs: Vec<&'static str>,
    /// Group its objects are stored under, normally `group`.
    pub stored_group: Arc<str>,
    /// Shown in discovery.
    pub established: bool,
    /// Being deleted: no new objects.
    pub terminating: bool,
    /// Revision of the CRD or schema it was read from; older objects may have fields that it does not know.
    pub revision: u64,
}

impl fmt::Debug for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.plural, self.group)
    }
}

/// Every verb an ordinary kind has, in discovery's order.
pub const ALL_VERBS: [&str; 8] = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

impl Resource {
    /// The kind under which its objects are stored.
    pub fn stored_kind(&self) -> Kind {
        Kind { group: self.stored_group.clone(), resource: self.plural.clone(), identity: self.identity.clone() }
    }

    /// A version by name, served or not.
    pub fn version(&self, name: &str) -> Option<&Version> {
        self.versions.iter().find(|version| *version.name == *name)
    }

    /// The version objects are stored in.
    pub fn storage_version(&self) -> Option<&Version> {
        self.versions.iter().find(|version| version.storage)
    }

    /// `group/version`, or only the version in the core group.
    pub fn api_version(&self, version: &str) -> String {
        api_version(&self.group, version)
    }

    /// The `apiVersion` of stored objects.
    pub fn stored_api_version(&self) -> String {
        api_version(&self.stored_group, self.storage_version().map_or("v1", |version| &version.name))
    }

    /// Custom kinds follow the rules of CRDs, whatever their origin.
    pub fn is_custom(&self) -> bool {
        self.origin != Origin::Builtin
    }

    /// Whether this is a review, which is answered but not stored.
    pub fn is_review(&self) -> bool {
        self.origin == Origin::Builtin && matches!(&*self.group, AUTHENTICATION | AUTHORIZATION)
    }

    /// Whether a verb is answered.
    pub fn allows(&self, verb: &str) -> bool {
        self.verbs.contains(&verb)
    }
}

/// `group/version`, or only the version in the core group.
pub fn api_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

/// Sorts versions as Kubernetes prefers them: GA before beta before alpha, higher numbers first.
pub fn version_rank(name: &str) -> (u8, i64, i64, String) {
    let parse = |text: &str| -> Option<(u8, i64, i64)> {
        let rest = text.strip_prefix('v')?;
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let major: i64 = rest[..digits].parse().ok()?;
        let tail = &rest[digits..];
        if tail.is_empty() {
            return Some((0, -major, 0));
        }
        let (stability, minor) = match (tail.strip_prefix("beta"), tail.strip_prefix("alpha")) {
            (Some(minor), _) => (1, minor),
            (_, Some(minor)) => (2, minor),
            _ => return None,
        };
        Some((stability, -major, -minor.parse::<i64>().ok()?))
    };
    match parse(name) {
        Some((stability, major, minor)) => (stability, major, minor, String::new()),
        None => (3, 0, 0, name.to_owned()),
    }
}
