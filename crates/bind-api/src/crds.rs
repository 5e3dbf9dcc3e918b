//! The CustomResourceDefinitions of all kinds, as konnectors install two of them and providers the others.
//!
//! They are written out here, field by field, and accept and refuse what kube-bind's own ones do. Kinds that had a version `v1alpha1` still serve it,
//! so that an installation of kube-bind can be taken over; no konnector and no backend reads it.

pub(crate) mod build;
mod consumer;
pub(crate) mod parts;
mod provider;

use serde_json::Value;

use crate::kinds::{self, Kind};

/// The CRDs that a konnector installs on its cluster: APIServiceBinding and APIServiceBindingBundle.
pub fn consumer() -> Vec<Value> {
    vec![consumer::binding(), consumer::bundle()]
}

/// The CRDs that a provider needs.
pub fn provider() -> Vec<Value> {
    vec![
        provider::export_request(),
        provider::export(),
        provider::bound_schema(),
        provider::namespace(),
        provider::cluster_binding(),
        provider::bindable_resources_request(),
        provider::template(),
        provider::collection(),
        provider::cluster(),
    ]
}

/// The CRD of a kind.
pub fn of(kind: Kind) -> Option<Value> {
    let name = format!("{}.{}", kind.plural, kinds::GROUP);
    consumer().into_iter().chain(provider()).find(|crd| crd["metadata"]["name"] == name.as_str())
}

#[cfg(test)]
mod tests;
