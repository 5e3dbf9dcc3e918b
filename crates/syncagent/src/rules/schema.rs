//! CRD → APIResourceSchema.

use std::borrow::Cow;
use std::collections::HashSet;

use carrick_json::go;
use carrick_kcp::kinds::API_RESOURCE_SCHEMA;
use carrick_kcp::meta::ObjectMeta;
use serde::Serialize;
use serde_json::{Value, json};
use sha1::{Digest, Sha1};
use thiserror::Error;

use super::crd::{API_APPROVED, Crd, Names, PrinterColumn, Schema, Subresources, Version};
use super::hex;
use super::openapi::is_protected;
use crate::api::{AGENT_NAME, SOURCE_GENERATION};

/// Why a projected CRD cannot become an APIResourceSchema.
#[derive(Debug, Error)]
pub enum SchemaError {
    /// The names do not form a DNS name.
    #[error(
        "{0:?} is not a valid name for an API; plural and group must be lower-case DNS names (see spec.projection)"
    )]
    Name(String),
    /// A version is no DNS name.
    #[error(
        "{0:?} is not a valid name for a version; it must be a lower-case DNS name that begins with a letter (see spec.projection.versions)"
    )]
    Version(String),
    /// The core group cannot be published under its own name.
    #[error("the core group cannot be published as it is; set spec.projection.group of the PublishedResource")]
    CoreGroup,
    /// The group belongs to Kubernetes, and the kind has no approval to be in it.
    #[error(
        "kcp refuses kinds of the group {0:?}, which belongs to Kubernetes, without an approval; choose another group with \
         spec.projection.group, or set the annotation api-approved.kubernetes.io of the CRD"
    )]
    Protected(String),
    /// The schema cannot be written as JSON.
    #[error("schema cannot be encoded: {0}")]
    Encode(#[from] serde_json::Error),
    /// The schema cannot be hashed.
    #[error(transparent)]
    Hash(#[from] go::EncodeError),
}

/// Name of the schema: `v<8 hex>.<plural>.<group>`, where the digits are a hash of the projected spec.
pub fn name(projected: &Crd) -> Result<String, SchemaError> {
    let spec = &projected.spec;
    if spec.group.is_empty() {
        return Err(SchemaError::CoreGroup);
    }
    if is_protected(&spec.group) && projected.approved.is_none() {
        return Err(SchemaError::Protected(spec.group.clone()));
    }
    let crd_name = format!("{}.{}", spec.names.plural, spec.group);
    if !is_dns_subdomain(&format!("irrelevant.{crd_name}")) {
        return Err(SchemaError::Name(crd_name));
    }
    let is_version = |name: &str| carrick_kcp::path::is_label(name) && !name.starts_with(|c: char| c.is_ascii_digit());
    if let Some(version) = spec.versions.iter().find(|version| !is_version(&version.name)) {
        return Err(SchemaError::Version(version.name.clone()));
    }
    let text = go::to_line(spec)?;
    Ok(format!("v{}.{crd_name}", &hex(&Sha1::digest(text.as_bytes()))[..8]))
}

/// The APIResourceSchema of a projected CRD, which is serialized without copying its schemas.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceSchema<'a> {
    api_version: String,
    kind: &'static str,
    /// Its metadata.
    pub metadata: ObjectMeta,
    spec: ResourceSchemaSpec<'a>,
}

#[derive(Debug, Serialize)]
struct ResourceSchemaSpec<'a> {
    group: &'a str,
    names: &'a Names,
    scope: &'a str,
    versions: Vec<ResourceSchemaVersion<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    conversion: Option<Value>,
}

/// A version in the form of an APIResourceSchema: the bare schema and always an object of subresources.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ResourceSchemaVersion<'a> {
    name: &'a str,
    served: bool,
    storage: bool,
    schema: Cow<'a, Schema>,
    subresources: Cow<'a, Subresources>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deprecated: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deprecation_warning: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    additional_printer_columns: Vec<&'a PrinterColumn>,
}

impl<'a> ResourceSchema<'a> {
    /// The APIResourceSchema of a projected CRD.
    pub fn of(projected: &'a Crd, agent_name: &str) -> Result<Self, SchemaError> {
        let spec = &projected.spec;
        let mut metadata = ObjectMeta::named(name(projected)?);
        metadata.set_label(AGENT_NAME, agent_name);
        metadata.annotate(AGENT_NAME, agent_name);
        metadata.annotate(SOURCE_GENERATION, projected.generation.to_string());
        if let Some(approval) = projected.approved.as_deref().filter(|_| is_protected(&spec.group)) {
            metadata.annotate(API_APPROVED, approval);
        }
        let conversion =
            spec.conversion.clone().or_else(|| (spec.versions.len() > 1).then(|| json!({ "strategy": "None" })));
        let versions = spec.versions.iter().map(ResourceSchemaVersion::of).collect();
        Ok(Self {
            api_version: API_RESOURCE_SCHEMA.api_version(),
            kind: API_RESOURCE_SCHEMA.kind,
            metadata,
            spec: ResourceSchemaSpec {
                group: &spec.group,
                names: &spec.names,
                scope: &spec.scope,
                versions,
                conversion,
            },
        })
    }
}

impl<'a> ResourceSchemaVersion<'a> {
    fn of(version: &'a Version) -> Self {
        let schema = version.schema.as_ref().and_then(|schema| schema.open_api_v3_schema.as_deref());
        // A CRD may have several columns of one name, which kcp refuses. The name of the schema is computed from the unchanged CRD, so
        // nothing else changes.
        let mut names = HashSet::new();
        let columns = version.additional_printer_columns.iter().filter(|column| names.insert(column.name.as_str()));
        Self {
            name: &version.name,
            served: version.served,
            storage: version.storage,
            schema: schema.map_or_else(Cow::default, Cow::Borrowed),
            subresources: version.subresources.as_ref().map_or_else(Cow::default, Cow::Borrowed),
            deprecated: version.deprecated.then_some(true),
            deprecation_warning: version.deprecation_warning.as_deref(),
            additional_printer_columns: columns.collect(),
        }
    }
}

/// The APIResourceSchema object.
pub fn build(projected: &Crd, agent_name: &str) -> Result<Value, SchemaError> {
    Ok(serde_json::to_value(ResourceSchema::of(projected, agent_name)?)?)
}

/// Lower-case DNS labels joined by dots, at most 253 characters.
fn is_dns_subdomain(name: &str) -> bool {
    name.len() <= 253 && name.split('.').all(carrick_kcp::path::is_label)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::projection::project;
    use crate::rules::tests::{crontab, published};

    #[test]
    fn names_equal_those_of_the_reference_agent() {
        let projected = json!({"projection": {"group": "kcp.example.com"}});
        let mut two = crontab();
        let mut v2 = two.spec.versions[0].clone();
        v2.name = "v2".into();
        two.spec.versions[0].storage = false;
        two.spec.versions.push(v2);
        for (crd, spec, expected) in [
            (crontab(), json!({}), "v0595d221.crontabs.example.com"),
            (crontab(), projected.clone(), "v35f52fc4.crontabs.kcp.example.com"),
            (two.clone(), json!({}), "vdc951b0c.crontabs.example.com"),
            (two, projected, "v57d4f61b.crontabs.kcp.example.com"),
        ] {
            assert_eq!(name(&project(&published(spec), &crd).unwrap()).unwrap(), expected);
        }
    }

    #[test]
    fn the_object_holds_bare_schemas_and_the_agents_mark() {
        let ars = build(&crontab(), "my-agent").unwrap();
        assert_eq!(ars["metadata"]["labels"][AGENT_NAME], "my-agent");
        assert_eq!(ars["metadata"]["annotations"][SOURCE_GENERATION], "1");
        assert_eq!(ars["spec"]["versions"][0]["subresources"], json!({}));
        assert_eq!(
            ars["spec"]["versions"][0]["schema"]["properties"]["spec"]["properties"]["replicas"]["type"],
            "integer"
        );
        assert_eq!(ars["spec"].get("conversion"), None);
    }

    #[test]
    fn of_printer_columns_with_one_name_the_first_stays_because_kcp_refuses_the_others() {
        let column = |name: &str, path: &str| json!({"name": name, "type": "string", "jsonPath": path});
        let mut crd = serde_json::to_value(&crontab().spec).unwrap();
        crd["versions"][0]["additionalPrinterColumns"] =
            json!([column("Age", ".a"), column("Phase", ".b"), column("Age", ".c")]);
        let crd = Crd::from_json(&json!({"metadata": {"name": "crontabs.example.com"}, "spec": crd})).unwrap();
        let ars = build(&crd, "agent").unwrap();
        let columns = &ars["spec"]["versions"][0]["additionalPrinterColumns"];
        assert_eq!(*columns, json!([column("Age", ".a"), column("Phase", ".b")]));
        // The name is computed from the unchanged CRD, so that the reference agent finds the schema.
        assert_eq!(ars["metadata"]["name"], name(&crd).unwrap());
        let mut once = crd.clone();
        once.spec.versions[0].additional_printer_columns.pop();
        assert_ne!(name(&once).unwrap(), name(&crd).unwrap());
    }

    #[test]
    fn kinds_of_kubernetes_own_groups_carry_their_approval() {
        let mut crd = crontab();
        crd.spec.group = "batch.k8s.io".into();
        assert!(matches!(name(&crd), Err(SchemaError::Protected(group)) if group == "batch.k8s.io"));
        crd.approved = Some("https://example.com/approval".into());
        let annotations = &build(&crd, "agent").unwrap()["metadata"]["annotations"];
        assert_eq!(annotations[API_APPROVED], "https://example.com/approval");
        assert_eq!(build(&crontab(), "agent").unwrap()["metadata"]["annotations"].get(API_APPROVED), None);
    }

    #[test]
    fn names_that_kcp_would_refuse_are_refused() {
        let mut crd = crontab();
        crd.spec.names.plural = "CronTabs".into();
        assert!(matches!(name(&crd), Err(SchemaError::Name(n)) if n == "CronTabs.example.com"));
        crd.spec.group = String::new();
        assert!(matches!(name(&crd), Err(SchemaError::CoreGroup)));
        for wrong in ["not a version", "V1", "1v", ""] {
            let mut crd = crontab();
            crd.spec.versions[0].name = wrong.into();
            assert!(matches!(name(&crd), Err(SchemaError::Version(version)) if version == wrong), "{wrong}");
        }
    }

    #[test]
    fn deprecation_travels() {
        let mut crd = crontab();
        crd.spec.versions[0].deprecated = true;
        crd.spec.versions[0].deprecation_warning = Some("use v2".to_owned());
        let version = &build(&crd, "agent").unwrap()["spec"]["versions"][0];
        assert_eq!((&version["deprecated"], &version["deprecationWarning"]), (&json!(true), &json!("use v2")));
        let version = &build(&crontab(), "agent").unwrap()["spec"]["versions"][0];
        assert_eq!((version.get("deprecated"), version.get("deprecationWarning")), (None, None));
    }

    #[test]
    fn a_webhook_is_part_of_the_schema_and_of_its_name() {
        let versions = json!([{"name": "v2", "schema": {"openAPIV3Schema": {"type": "object"}}}]);
        let rules = json!([{"from": "v1", "to": "v2"}, {"from": "v2", "to": "v1"}]);
        let made = |webhook: Value| {
            let conversion = json!({"versions": versions, "rules": rules, "webhook": webhook});
            let crd = project(&published(json!({"conversion": conversion})), &crontab()).unwrap();
            build(&crd, "agent").unwrap()
        };
        let (without, with) = (made(Value::Null), made(json!({"url": "https://a.example", "caBundle": "eA=="})));
        assert_eq!(without["spec"]["conversion"], json!({"strategy": "None"}));
        let client = json!({"url": "https://a.example", "caBundle": "eA=="});
        let webhook = json!({"clientConfig": client, "conversionReviewVersions": ["v1"]});
        assert_eq!(with["spec"]["conversion"], json!({"strategy": "Webhook", "webhook": webhook}));
        assert_ne!(without["metadata"]["name"], with["metadata"]["name"], "a schema cannot be changed");
        let names = with["spec"]["versions"].as_array().unwrap().iter().map(|version| &version["name"]);
        assert_eq!(names.collect::<Vec<_>>(), ["v1", "v2"]);
    }

    #[test]
    fn several_versions_are_converted_by_name_alone() {
        let mut crd = crontab();
        let v2 = Version { name: "v2".into(), storage: false, ..crd.spec.versions[0].clone() };
        crd.spec.versions.push(v2);
        assert_eq!(build(&crd, "agent").unwrap()["spec"]["conversion"], json!({"strategy": "None"}));
    }
}
