//! A kind's definition, from a CRD or from kcp's APIResourceSchema.

use serde_json::Value;
use thiserror::Error;

/// Why a document is no definition.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum DefinitionError {
    /// It is of another kind.
    #[error("{0:?} defines no kind; give a CustomResourceDefinition or an APIResourceSchema")]
    Kind(String),
    /// Something that every definition has is missing.
    #[error("{kind} {name:?} has no {field}")]
    Missing {
        /// Kind of the document.
        kind: String,
        /// Its name.
        name: String,
        /// What is missing.
        field: &'static str,
    },
}

/// A kind's definition.
#[derive(Debug, Clone, PartialEq)]
pub struct Definition {
    /// API group.
    pub group: String,
    /// Plural name.
    pub plural: String,
    /// Kind.
    pub kind: String,
    /// `Namespaced` or `Cluster`.
    pub scope: String,
    pub(crate) list_kind: String,
    pub(crate) singular: String,
    pub(crate) short_names: Vec<String>,
    pub(crate) categories: Vec<String>,
    pub(crate) versions: Vec<Version>,
    /// `None` or `Webhook`.
    pub(crate) conversion: String,
}

/// One version of a kind.
#[derive(Debug, Clone, PartialEq)]
#[allow(clippy::struct_excessive_bools, reason = "these are the independent flags of a version")]
pub(crate) struct Version {
    pub(crate) name: String,
    pub(crate) served: bool,
    pub(crate) storage: bool,
    pub(crate) deprecated: bool,
    pub(crate) schema: Value,
    pub(crate) status: bool,
    pub(crate) scale: Value,
    pub(crate) columns: Value,
    pub(crate) selectable: Vec<String>,
}

impl Definition {
    /// Whether a document is a definition at all.
    pub fn is_one(document: &Value) -> bool {
        matches!(document["kind"].as_str(), Some("CustomResourceDefinition" | "APIResourceSchema"))
    }

    /// Reads a document.
    pub fn read(document: &Value) -> Result<Self, DefinitionError> {
        let kind = document["kind"].as_str().unwrap_or_default();
        let bare = match kind {
            "CustomResourceDefinition" => false,
            "APIResourceSchema" => true,
            other => return Err(DefinitionError::Kind(other.to_owned())),
        };
        let missing = |field| DefinitionError::Missing {
            kind: kind.to_owned(),
            name: document["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
            field,
        };
        let spec = &document["spec"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let names = &spec["names"];
        let word = |value: &Value, field| value.as_str().map(str::to_owned).ok_or_else(|| missing(field));
        let (own_kind, plural) =
            (word(&names["kind"], "spec.names.kind")?, word(&names["plural"], "spec.names.plural")?);
        let versions = spec["versions"].as_array().filter(|versions| !versions.is_empty());
        let versions = versions.ok_or_else(|| missing("spec.versions"))?;
        let or = |value: &Value, other: String| Some(text(value)).filter(|text| !text.is_empty()).unwrap_or(other);
        let open = spec["preserveUnknownFields"] == true;
        Ok(Self {
            group: text(&spec["group"]),
            scope: or(&spec["scope"], "Cluster".to_owned()),
            list_kind: or(&names["listKind"], format!("{own_kind}List")),
            singular: or(&names["singular"], own_kind.to_lowercase()),
            short_names: texts(&names["shortNames"]),
            categories: texts(&names["categories"]),
            versions: versions.iter().map(|version| Version::read(version, bare, open)).collect(),
            conversion: or(&spec["conversion"]["strategy"], "None".to_owned()),
            kind: own_kind,
            plural,
        })
    }

    /// `<plural>.<group>`.
    pub fn resource(&self) -> String {
        if self.group.is_empty() { self.plural.clone() } else { format!("{}.{}", self.plural, self.group) }
    }

    /// The schema of a version, if there is that version.
    pub fn schema(&self, version: &str) -> Option<&Value> {
        self.version(version).map(|version| &version.schema)
    }

    pub(crate) fn version(&self, name: &str) -> Option<&Version> {
        self.versions.iter().find(|version| version.name == name)
    }
}

impl Version {
    fn read(version: &Value, bare: bool, open: bool) -> Self {
        let schema = if bare { &version["schema"] } else { &version["schema"]["openAPIV3Schema"] };
        let mut schema = schema.clone();
        if !schema.is_object() {
            schema = serde_json::json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        }
        if open {
            schema["x-kubernetes-preserve-unknown-fields"] = Value::Bool(true);
        }
        let selectable = version["selectableFields"].as_array().into_iter().flatten();
        Self {
            name: version["name"].as_str().unwrap_or_default().to_owned(),
            served: version["served"] == true,
            storage: version["storage"] == true,
            deprecated: version["deprecated"] == true,
            schema,
            status: version["subresources"]["status"].is_object(),
            scale: version["subresources"]["scale"].clone(),
            columns: version["additionalPrinterColumns"].clone(),
            selectable: selectable.filter_map(|field| field["jsonPath"].as_str()).map(str::to_owned).collect(),
        }
    }
}

pub(crate) fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}
