//! From a BoundSchema to the CRD of the consumer.

use std::collections::BTreeSet;

use carrick_kcp::apis::v1alpha1::{ApiResourceVersion, Conversion};
use serde_json::{Map, Value, json};

use super::error::SchemaError;
use super::hash::hash;
use crate::kinds::{API_SERVICE_BINDING, ApiObject as _};
use crate::names::{CONVERSION_WEBHOOK_ANNOTATION, SOURCE_SPEC_HASH_ANNOTATION, bound_schema_name};
use crate::v1alpha2::{ApiServiceBinding, BoundSchema};

/// The CRD that a BoundSchema stands for, owned by a binding. It has all versions, unless they are converted by a webhook that cannot be called from
/// here, or that the consumer has not agreed to: then it has the one that is synced. She agrees by an annotation of the binding; a webhook that is in
/// the CRD that is there stays.
pub fn crd(schema: &BoundSchema, binding: &ApiServiceBinding, existing: Option<&Value>) -> Result<Value, SchemaError> {
    let spec = &schema.spec;
    let name = bound_schema_name(&spec.group, &spec.names.plural);
    if schema.metadata.name != name {
        // The export and the binding know it by its name: content for another API must not come in under it.
        return Err(SchemaError::OtherName { name: schema.metadata.name.clone(), content: name });
    }
    if spec.group.is_empty() {
        return Err(SchemaError::CoreGroup(spec.names.plural.clone()));
    }
    if !spec.versions.iter().any(|version| version.served) {
        return Err(SchemaError::NothingServed(name));
    }
    let count = spec.versions.iter().filter(|version| version.storage).count();
    if count != 1 {
        return Err(SchemaError::StorageVersions { name, count });
    }
    let mut seen = BTreeSet::new();
    let mut versions = Vec::new();
    for version in &spec.versions {
        if !seen.insert(version.name.as_str()) {
            return Err(SchemaError::Duplicate { name, version: version.name.clone() });
        }
        versions.push(crd_version(version, &name)?);
    }
    let agreed = binding.metadata().annotation(CONVERSION_WEBHOOK_ANNOTATION);
    let known = existing.and_then(|crd| crd["spec"]["conversion"]["webhook"]["clientConfig"]["url"].as_str());
    let conversion = spec.conversion.as_ref().filter(|conversion| is_callable(conversion, [agreed, known]));
    if conversion.is_none() && spec.conversion.is_some() {
        // Nobody here can convert, so there must be nothing to convert: the version that is synced is the only one.
        versions.retain(|version| version["served"] == true);
        versions.truncate(1);
        for version in &mut versions {
            version["storage"] = json!(true);
        }
    }
    let mut crd_spec = Map::new();
    crd_spec.insert("group".to_owned(), json!(spec.group));
    crd_spec.insert("names".to_owned(), json!(spec.names));
    crd_spec.insert("scope".to_owned(), json!(spec.scope));
    crd_spec.insert("versions".to_owned(), Value::Array(versions));
    if let Some(conversion) = conversion {
        crd_spec.insert("conversion".to_owned(), json!(conversion));
    }
    let metadata = binding.metadata();
    Ok(json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": name,
            "annotations": {SOURCE_SPEC_HASH_ANNOTATION: hash([spec])},
            "ownerReferences": [{
                "apiVersion": API_SERVICE_BINDING.api_version(), "kind": API_SERVICE_BINDING.kind,
                "name": metadata.name, "uid": metadata.uid, "controller": true,
            }],
        },
        "spec": crd_spec,
    }))
}

/// Whether a consumer's server can do what a conversion asks for, and may. A webhook that is a service of the provider's cluster has lost its address
/// on the way.
fn is_callable(conversion: &Conversion, allowed: [Option<&str>; 2]) -> bool {
    let url = conversion.webhook["clientConfig"]["url"].as_str().unwrap_or_default();
    conversion.strategy != "Webhook" || !url.is_empty() && allowed.contains(&Some(url))
}

/// A version of a CRD. Its schema is wrapped, whichever way the provider has spelled it.
fn crd_version(version: &ApiResourceVersion, name: &str) -> Result<Value, SchemaError> {
    let wrapped = match &version.schema {
        schema if schema.get("openAPIV3Schema").is_some_and(Value::is_object) => schema.clone(),
        Value::Object(schema) if !schema.is_empty() && !schema.contains_key("openAPIV3Schema") => {
            json!({"openAPIV3Schema": schema})
        }
        _ => return Err(SchemaError::NoSchema { name: name.to_owned(), version: version.name.clone() }),
    };
    let mut value = json!(version);
    value["schema"] = wrapped;
    Ok(value)
}
