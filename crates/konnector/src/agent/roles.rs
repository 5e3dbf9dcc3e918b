//! The roles that the bindings of a cluster need.

use carrick_bind_api::kinds::{API_SERVICE_BINDING, API_SERVICE_BINDING_BUNDLE};
use carrick_bind_api::v1alpha2::{ApiServiceBinding, ApiServiceBindingBundle};
use carrick_client::{Client, Error, ListOptions};
use serde_json::Value;

use super::resources;
use crate::decide::roles::{self, Subject};

/// What the konnector needs for the bindings and bundles that there are, beside the base role.
pub async fn of_cluster(client: &Client, subject: &Subject) -> Result<Vec<Value>, Error> {
    let mut all = Vec::new();
    for object in list(client, resources::of(API_SERVICE_BINDING)).await? {
        if let Ok(binding) = serde_json::from_value::<ApiServiceBinding>(object) {
            all.extend(roles::of_binding(&binding, subject));
        }
    }
    for object in list(client, resources::of(API_SERVICE_BINDING_BUNDLE)).await? {
        if let Ok(bundle) = serde_json::from_value::<ApiServiceBindingBundle>(object) {
            let name = format!("{}-bundle-{}", roles::BASE, bundle.metadata.name);
            all.extend(roles::of_secret(&name, &bundle.spec.kubeconfig_secret_ref, subject));
        }
    }
    Ok(all)
}

/// All objects of a kind; none if it is not there yet.
async fn list(client: &Client, resource: carrick_client::Resource) -> Result<Vec<Value>, Error> {
    match client.list(&resource, None, &ListOptions::default()).await {
        Err(error) if error.is_not_found() => Ok(Vec::new()),
        all => all,
    }
}
