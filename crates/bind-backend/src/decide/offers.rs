//! What the provider offers: CRDs with the label that says so, as BoundSchemas.

use std::collections::BTreeMap;

use carrick_bind_api::carrick_kcp::apis::v1alpha1::{ApiResourceSchema, ResourceScope};
use carrick_bind_api::schema::{from_api_resource_schema, from_crd};
use carrick_bind_api::v1alpha2::{BoundSchema, InformerScope, Isolation};
use serde_json::Value;

/// What the provider offers, by names of BoundSchemas.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Offers {
    sources: BTreeMap<String, Value>,
}

impl Offers {
    /// What these CustomResourceDefinitions or APIResourceSchemas offer. Of several that describe the same API the newest counts.
    pub fn new(sources: impl IntoIterator<Item = Value>) -> Self {
        let mut all: Vec<Value> = sources.into_iter().filter(|it| !super::plan::is_deleting(it)).collect();
        let age = |it: &Value| {
            let text = |field: &str| it["metadata"][field].as_str().unwrap_or_default().to_owned();
            (text("creationTimestamp"), text("name"))
        };
        all.sort_by_key(age);
        let name = |it: &Value| {
            let text = |path: &str| it.pointer(path).and_then(Value::as_str).unwrap_or_default();
            carrick_bind_api::names::bound_schema_name(text("/spec/group"), text("/spec/names/plural"))
        };
        Self { sources: all.into_iter().map(|it| (name(&it), it)).collect() }
    }

    /// Whether objects of an API live in namespaces at the provider; none if it is not offered.
    pub fn scope(&self, name: &str) -> Option<ResourceScope> {
        let scope = self.sources.get(name)?["spec"]["scope"].as_str()?;
        Some(ResourceScope::from(scope))
    }

    /// The BoundSchema of an API; none if it is not offered, or cannot be read.
    pub fn schema(&self, name: &str, scope: &InformerScope, isolation: &Isolation) -> Option<BoundSchema> {
        let source = self.sources.get(name)?;
        if source["kind"] == "APIResourceSchema" {
            let source: ApiResourceSchema = serde_json::from_value(source.clone()).ok()?;
            return Some(from_api_resource_schema(&source, scope.clone(), isolation));
        }
        from_crd(source, scope.clone(), isolation).ok()
    }
}
