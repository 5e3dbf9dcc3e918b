//! From what a provider has to a BoundSchema.

use carrick_kcp::apis::v1alpha1::{ApiResourceSchema, ResourceScope};
use serde_json::{Value, json};

use super::error::SchemaError;
use super::hash::hash;
use crate::names::{SOURCE_SPEC_HASH_ANNOTATION, bound_schema_name};
use crate::v1alpha2::{BoundSchema, BoundSchemaSpec, InformerScope, Isolation, SchemaUpdatePolicy};

/// The BoundSchema of a CRD of the provider. With isolation Namespaced, consumers see namespaced kinds as cluster-scoped ones.
pub fn from_crd(crd: &Value, scope: InformerScope, isolation: &Isolation) -> Result<BoundSchema, SchemaError> {
    let source = &crd["spec"];
    let mut conversion = source["conversion"].clone();
    // A service of the provider's cluster is none of the consumer's.
    if let Some(Value::Object(client)) = conversion.pointer_mut("/webhook/clientConfig") {
        client.remove("service");
    }
    let spec = json!({
        "group": source["group"], "names": source["names"], "scope": source["scope"], "versions": source["versions"],
        "conversion": conversion,
    });
    let mut spec: BoundSchemaSpec = serde_json::from_value(spec)
        .map_err(|error| SchemaError::Shape { what: "CustomResourceDefinition", problem: error.to_string() })?;
    if spec.conversion.is_none() {
        spec.rest.remove("conversion");
    }
    Ok(finished(spec, scope, isolation))
}

/// The BoundSchema of an APIResourceSchema of kcp.
pub fn from_api_resource_schema(
    source: &ApiResourceSchema,
    scope: InformerScope,
    isolation: &Isolation,
) -> BoundSchema {
    let mut spec = BoundSchemaSpec::default();
    spec.group.clone_from(&source.spec.group);
    spec.names = source.spec.names.clone();
    spec.scope = source.spec.scope.clone();
    spec.versions.clone_from(&source.spec.versions);
    spec.conversion.clone_from(&source.spec.conversion);
    finished(spec, scope, isolation)
}

fn finished(mut spec: BoundSchemaSpec, scope: InformerScope, isolation: &Isolation) -> BoundSchema {
    spec.informer_scope = scope;
    if *isolation == Isolation::Namespaced && spec.scope == ResourceScope::Namespaced {
        spec.scope = ResourceScope::Cluster;
    }
    let mut schema = BoundSchema::new(bound_schema_name(&spec.group, &spec.names.plural));
    schema.metadata.annotate(SOURCE_SPEC_HASH_ANNOTATION, hash([&spec]));
    schema.spec = spec;
    schema
}

/// What to do with a BoundSchema whose source may have changed.
#[derive(Clone, Debug, PartialEq)]
pub enum Refresh {
    /// Nothing.
    Keep,
    /// Write this one, which keeps the metadata and the status of the old one.
    Replace(Box<BoundSchema>),
}

/// Whether a BoundSchema follows its source: with policy Always and another hash. A policy that is not known follows nothing.
pub fn refresh(existing: &BoundSchema, source: &BoundSchema, policy: &SchemaUpdatePolicy) -> Refresh {
    let wanted = source.metadata.annotation(SOURCE_SPEC_HASH_ANNOTATION);
    let has = existing.metadata.annotation(SOURCE_SPEC_HASH_ANNOTATION);
    if *policy != SchemaUpdatePolicy::Always || wanted.is_none() || has == wanted {
        return Refresh::Keep;
    }
    let mut new = existing.clone();
    new.spec = source.spec.clone();
    new.metadata.annotate(SOURCE_SPEC_HASH_ANNOTATION, wanted.unwrap_or_default());
    Refresh::Replace(Box::new(new))
}
