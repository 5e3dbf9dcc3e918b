//! CustomResourceDefinitions, typed in the field order in which Go encodes them.
//!
//! The order matters: the name of an APIResourceSchema is a hash over this encoding, and both agents must compute the same one.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use thiserror::Error;

use super::raw_json::RawJson;

/// Annotation that says who approved a kind of one of Kubernetes' own groups.
pub const API_APPROVED: &str = carrick_kcp::names::API_APPROVED_ANNOTATION;

/// How deeply a CRD may nest. Whatever follows a schema takes stack for every level, and a server accepts thousands.
const DEEPEST: usize = 300;

/// Why a CRD cannot be read.
#[derive(Debug, Error)]
pub enum CrdError {
    /// Its schemas nest deeper than is followed.
    #[error(
        "CustomResourceDefinition {name:?} nests {levels} levels deep; at most {DEEPEST} are supported, so let a part of it preserve unknown fields"
    )]
    TooDeep {
        /// Name of the CRD.
        name: String,
        /// How deep it nests.
        levels: usize,
    },
    /// The document does not have the shape of an `apiextensions.k8s.io/v1` CRD.
    #[error("CustomResourceDefinition {name:?} cannot be read: {source}")]
    Shape {
        /// Name of the CRD.
        name: String,
        /// What is wrong with it.
        source: serde_json::Error,
    },
}

/// The part of a CRD that is published.
#[derive(Debug, Clone, PartialEq)]
pub struct Crd {
    /// Object name, `<plural>.<group>`.
    pub name: String,
    /// Generation of the CRD.
    pub generation: i64,
    /// Value of the annotation `api-approved.kubernetes.io`.
    pub approved: Option<String>,
    /// Its spec, without conversion.
    pub spec: CrdSpec,
}

/// `spec` of a CRD.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CrdSpec {
    /// API group.
    pub group: String,
    /// Names of the kind.
    pub names: Names,
    /// `Cluster` or `Namespaced`.
    pub scope: String,
    /// Versions, in the order of the CRD.
    pub versions: Vec<Version>,
    /// How kcp has objects converted. That of the CRD itself is never read: it is for the service cluster.
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    pub conversion: Option<Value>,
    /// Old switch that turns pruning off.
    #[serde(skip_serializing_if = "is_false")]
    pub preserve_unknown_fields: bool,
}

/// Names of a kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Names {
    /// Plural, as in URLs.
    pub plural: String,
    /// Singular.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub singular: String,
    /// Short names.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_as_default")]
    pub short_names: Vec<String>,
    /// Kind.
    pub kind: String,
    /// Kind of lists.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub list_kind: String,
    /// Categories.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_as_default")]
    pub categories: Vec<String>,
}

/// One version of a CRD.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Version {
    /// Name, such as `v1alpha1`.
    pub name: String,
    /// Whether it is served.
    pub served: bool,
    /// Whether it is the stored one.
    pub storage: bool,
    /// Whether it is deprecated.
    #[serde(skip_serializing_if = "is_false")]
    pub deprecated: bool,
    /// Text of the deprecation warning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deprecation_warning: Option<String>,
    /// Schema.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<Validation>,
    /// Subresources.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subresources: Option<Subresources>,
    /// Printer columns.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_as_default")]
    pub additional_printer_columns: Vec<PrinterColumn>,
    /// Fields that field selectors may use.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_as_default")]
    pub selectable_fields: Vec<SelectableField>,
}

/// Wrapper around the schema of a version.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Validation {
    /// The schema.
    #[serde(rename = "openAPIV3Schema", skip_serializing_if = "Option::is_none")]
    pub open_api_v3_schema: Option<Box<Schema>>,
}

/// Subresources of a version.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Subresources {
    /// `status`, an empty object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<BTreeMap<String, Value>>,
    /// `scale`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale: Option<Scale>,
}

/// The `scale` subresource.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Scale {
    /// Path of the desired count.
    pub spec_replicas_path: String,
    /// Path of the actual count.
    pub status_replicas_path: String,
    /// Path of the selector.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label_selector_path: Option<String>,
}

/// A printer column.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PrinterColumn {
    /// Heading.
    pub name: String,
    /// Type of the value.
    #[serde(rename = "type")]
    pub type_: String,
    /// Format of the value.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub format: String,
    /// Description.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Columns with a priority above zero appear only in wide output.
    #[serde(skip_serializing_if = "is_zero")]
    pub priority: i32,
    /// Path of the value.
    pub json_path: String,
}

/// A field that field selectors may use.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SelectableField {
    /// Path of the field.
    pub json_path: String,
}

/// `JSONSchemaProps` in Go's field order.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs, clippy::struct_excessive_bools)] // the keywords of JSON Schema, under their own names
pub struct Schema {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub id: String,
    #[serde(rename = "$schema", skip_serializing_if = "String::is_empty")]
    pub schema: String,
    #[serde(rename = "$ref", skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    #[serde(rename = "type", skip_serializing_if = "String::is_empty")]
    pub type_: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub format: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub title: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<RawJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub maximum: Option<f64>,
    #[serde(skip_serializing_if = "is_false")]
    pub exclusive_maximum: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minimum: Option<f64>,
    #[serde(skip_serializing_if = "is_false")]
    pub exclusive_minimum: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_length: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_length: Option<i64>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub pattern: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_items: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_items: Option<i64>,
    #[serde(skip_serializing_if = "is_false")]
    pub unique_items: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub multiple_of: Option<f64>,
    #[serde(rename = "enum", skip_serializing_if = "Vec::is_empty", deserialize_with = "null_as_default")]
    pub enum_: Vec<RawJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_properties: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_properties: Option<i64>,
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_as_default")]
    pub required: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items: Option<SchemaOrMany>,
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_as_default")]
    pub all_of: Vec<Schema>,
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_as_default")]
    pub one_of: Vec<Schema>,
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_as_default")]
    pub any_of: Vec<Schema>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not: Option<Box<Schema>>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "null_as_default")]
    pub properties: BTreeMap<String, Schema>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub additional_properties: Option<SchemaOrBool>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "null_as_default")]
    pub pattern_properties: BTreeMap<String, Schema>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "null_as_default")]
    pub dependencies: BTreeMap<String, RawJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub additional_items: Option<SchemaOrBool>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "null_as_default")]
    pub definitions: BTreeMap<String, Schema>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external_docs: Option<ExternalDocs>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub example: Option<RawJson>,
    #[serde(skip_serializing_if = "is_false")]
    pub nullable: bool,
    #[serde(rename = "x-kubernetes-preserve-unknown-fields", skip_serializing_if = "Option::is_none")]
    pub x_preserve_unknown_fields: Option<bool>,
    #[serde(rename = "x-kubernetes-embedded-resource", skip_serializing_if = "is_false")]
    pub x_embedded_resource: bool,
    #[serde(rename = "x-kubernetes-int-or-string", skip_serializing_if = "is_false")]
    pub x_int_or_string: bool,
    #[serde(
        rename = "x-kubernetes-list-map-keys",
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "null_as_default"
    )]
    pub x_list_map_keys: Vec<String>,
    #[serde(rename = "x-kubernetes-list-type", skip_serializing_if = "Option::is_none")]
    pub x_list_type: Option<String>,
    #[serde(rename = "x-kubernetes-map-type", skip_serializing_if = "Option::is_none")]
    pub x_map_type: Option<String>,
    #[serde(
        rename = "x-kubernetes-validations",
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "null_as_default"
    )]
    pub x_validations: Vec<ValidationRule>,
}

/// External documentation of a schema.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ExternalDocs {
    /// Description.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Address.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub url: String,
}

/// A CEL rule of a schema.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs)] // the fields of the Kubernetes API, under their own names
pub struct ValidationRule {
    pub rule: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message_expression: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub field_path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub optional_old_self: Option<bool>,
}

/// One schema, or one for each position.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum SchemaOrMany {
    /// One for each position.
    Many(Vec<Schema>),
    /// One for all.
    One(Box<Schema>),
}

/// A schema, or whether anything is allowed.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum SchemaOrBool {
    /// Anything, or nothing.
    Bool(bool),
    /// What the schema allows.
    Schema(Box<Schema>),
}

// Both read the raw text first, because serde's buffering for untagged enums would lose the order of keys in defaults.
impl<'de> Deserialize<'de> for SchemaOrMany {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        let text = raw.get();
        let read = if text.starts_with('[') {
            serde_json::from_str(text).map(Self::Many)
        } else {
            serde_json::from_str(text).map(Self::One)
        };
        read.map_err(serde::de::Error::custom)
    }
}

impl<'de> Deserialize<'de> for SchemaOrBool {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        let text = raw.get();
        let read = if text.starts_with('{') {
            serde_json::from_str(text).map(Self::Schema)
        } else {
            serde_json::from_str(text).map(Self::Bool)
        };
        read.map_err(serde::de::Error::custom)
    }
}

/// A CRD object as the server sends it.
#[derive(Default, Deserialize)]
#[serde(default)]
struct CrdObject {
    metadata: Value,
    spec: CrdSpec,
    status: Value,
}

impl Crd {
    /// Reads a CRD object and keeps what is published: name, generation, the approval annotation and the spec.
    ///
    /// A version without a schema accepts anything when the server has found the CRD to be non-structural.
    pub fn from_json(crd: &Value) -> Result<Self, CrdError> {
        let name = crd["metadata"]["name"].as_str().unwrap_or_default();
        // All keys are strings, so this cannot fail.
        check_depth(&serde_json::to_vec(crd).unwrap_or_default())?;
        CrdObject::deserialize(crd).map(Self::reduce).map_err(|source| CrdError::Shape { name: name.into(), source })
    }

    /// The same from text, which keeps the order of keys in defaults, as the hash in a schema's name requires.
    pub fn from_text(crd: &[u8]) -> Result<Self, CrdError> {
        check_depth(crd)?;
        serde_json::from_slice::<CrdObject>(crd)
            .map(Self::reduce)
            .map_err(|source| CrdError::Shape { name: name_in(crd), source })
    }

    fn reduce(CrdObject { metadata, mut spec, status }: CrdObject) -> Self {
        let non_structural = status["conditions"]
            .as_array()
            .is_some_and(|all| all.iter().any(|c| c["type"] == "NonStructuralSchema" && c["status"] == "True"));
        if non_structural {
            for version in &mut spec.versions {
                let schema = version.schema.get_or_insert_default();
                if schema.open_api_v3_schema.is_none() {
                    schema.open_api_v3_schema = Some(Box::new(Schema {
                        type_: "object".into(),
                        x_preserve_unknown_fields: Some(true),
                        ..Schema::default()
                    }));
                }
            }
        }
        Self {
            name: metadata["name"].as_str().unwrap_or_default().to_owned(),
            generation: metadata["generation"].as_i64().unwrap_or_default(),
            approved: metadata["annotations"][API_APPROVED].as_str().map(str::to_owned),
            spec,
        }
    }

    /// Whether objects of the kind live in namespaces.
    pub fn is_namespaced(&self) -> bool {
        self.spec.scope != "Cluster"
    }

    /// The same without schemas and everything else that is only for users of the API: what the rules for objects are made from.
    #[must_use]
    pub fn outline(&self) -> Self {
        let versions = self.spec.versions.iter().map(|version| Version {
            name: version.name.clone(),
            served: version.served,
            storage: version.storage,
            subresources: version.subresources.clone(),
            ..Version::default()
        });
        let spec = CrdSpec {
            group: self.spec.group.clone(),
            names: self.spec.names.clone(),
            scope: self.spec.scope.clone(),
            versions: versions.collect(),
            conversion: self.spec.conversion.clone(),
            preserve_unknown_fields: self.spec.preserve_unknown_fields,
        };
        Self { name: self.name.clone(), generation: self.generation, approved: self.approved.clone(), spec }
    }

    /// As JSON, from which [`Self::from_text`] restores the same CRD.
    pub fn to_text(&self) -> Vec<u8> {
        #[derive(Serialize)]
        struct Text<'a> {
            metadata: Value,
            spec: &'a CrdSpec,
        }
        let mut metadata = json!({ "name": self.name, "generation": self.generation });
        if let Some(approved) = &self.approved {
            metadata["annotations"] = json!({ API_APPROVED: approved });
        }
        // All keys are strings, so this cannot fail.
        serde_json::to_vec(&Text { metadata, spec: &self.spec }).unwrap_or_default()
    }
}

/// Refuses what nests too deeply before any schema is followed: [`SchemaOrBool`] and [`SchemaOrMany`] each read text of their own, for which
/// serde_json counts levels from zero.
fn check_depth(crd: &[u8]) -> Result<(), CrdError> {
    // Every level takes two bytes at least.
    let levels = if crd.len() <= 2 * DEEPEST { 0 } else { carrick_json::depth(crd) };
    if levels > DEEPEST { Err(CrdError::TooDeep { name: name_in(crd), levels }) } else { Ok(()) }
}

/// The name of a CRD that cannot be read as one.
fn name_in(crd: &[u8]) -> String {
    let object: Value = carrick_json::from_slice(crd).unwrap_or_default();
    object["metadata"]["name"].as_str().unwrap_or("<unnamed>").to_owned()
}

impl Version {
    /// Whether the version has a status subresource.
    pub fn has_status(&self) -> bool {
        self.subresources.as_ref().is_some_and(|s| s.status.is_some())
    }

    /// Whether the version has a scale subresource.
    pub fn has_scale(&self) -> bool {
        self.subresources.as_ref().is_some_and(|s| s.scale.is_some())
    }
}

#[allow(clippy::trivially_copy_pass_by_ref)] // the signature serde asks for
fn is_false(value: &bool) -> bool {
    !*value
}

#[allow(clippy::trivially_copy_pass_by_ref)] // the signature serde asks for
fn is_zero(value: &i32) -> bool {
    *value == 0
}

/// Servers write `null` for empty lists of some kinds.
fn null_as_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::tests::crontab;

    #[test]
    fn text_makes_the_same_crd_again() {
        let mut crd = crontab();
        crd.approved = Some("https://example.com".to_owned());
        let schema = crd.spec.versions[0].schema.as_mut().unwrap().open_api_v3_schema.as_mut().unwrap();
        schema.default = Some(RawJson::new(r#"{"b": 1.50, "a": "<"}"#).unwrap());
        assert_eq!(Crd::from_text(&crd.to_text()).unwrap(), crd);
    }

    /// A CRD whose schema is a map of maps of maps.
    fn deep(levels: usize) -> String {
        let (open, close) = (r#"{"type":"object","additionalProperties":"#.repeat(levels), "}".repeat(levels));
        let schema = format!(r#"{open}{{"type":"string"}}{close}"#);
        let version = format!(r#"{{"name":"v1","schema":{{"openAPIV3Schema":{schema}}}}}"#);
        format!(r#"{{"metadata":{{"name":"deep.example.com"}},"spec":{{"versions":[{version}]}}}}"#)
    }

    #[test]
    fn what_nests_too_deeply_is_refused_by_name_and_ends_no_process() {
        let test = || {
            assert!(Crd::from_text(deep(DEEPEST - 20).as_bytes()).is_ok());
            for levels in [DEEPEST, 900] {
                let refused = Crd::from_text(deep(levels).as_bytes()).unwrap_err().to_string();
                assert!(refused.contains("\"deep.example.com\" nests"), "{refused}");
                let object = carrick_json::from_str(&deep(levels)).unwrap();
                assert_eq!(Crd::from_json(&object).unwrap_err().to_string(), refused);
            }
            let refused = Crd::from_text(deep(100_000).as_bytes()).unwrap_err().to_string();
            assert!(refused.contains("at most 300 are supported"), "{refused}");
        };
        std::thread::Builder::new().stack_size(carrick_json::STACK).spawn(test).unwrap().join().unwrap();
    }

    #[test]
    fn an_outline_has_everything_but_schemas() {
        let crd = crontab();
        let outline = crd.outline();
        assert!(outline.spec.versions[0].schema.is_none());
        assert_eq!((outline.spec.names, outline.spec.versions[0].storage), (crd.spec.names, true));
    }
}
