//! The roles that the bindings of a cluster need.

use carrick_bind_api::carrick_kcp::kinds::API_EXPORT_ENDPOINT_SLICE;
use carrick_bind_api::kinds::{API_SERVICE_BINDING, API_SERVICE_BINDING_BUNDLE};
use carrick_bind_api::v1alpha2::{ApiServiceBinding, ApiServiceBindingBundle};
use carrick_client::{Client, Error, ListOptions};
use serde_json::Value;

use super::resources;
use crate::decide::existing;
use crate::decide::roles::{self, Subject};

/// What the konnector needs for the bindings and bundles that there are, beside the base role. If it serves the workspaces of an APIExport, that is
/// where it works, and not here.
pub async fn of_cluster(client: &Client, subject: &Subject, slice: Option<&str>) -> Result<Vec<Value>, Error> {
    let mut all = Vec::new();
    if let Some(slice) = slice {
        let found = client.get(&API_EXPORT_ENDPOINT_SLICE.into(), None, slice).await?.unwrap_or_default();
        // A slice has the name of its export, unless somebody has made it by hand.
        let export = found["spec"]["export"]["name"].as_str().unwrap_or(slice);
        all.extend(roles::of_export(slice, export, subject));
    }
    let bundles = list(client, resources::of(API_SERVICE_BINDING_BUNDLE)).await?;
    let bundles = bundles.into_iter().filter_map(|object| serde_json::from_value(object).ok());
    let bundles: Vec<ApiServiceBindingBundle> = bundles.collect();
    for object in list(client, resources::of(API_SERVICE_BINDING)).await? {
        if let Ok(binding) = serde_json::from_value::<ApiServiceBinding>(object) {
            // For a word that nobody knows, nothing is done.
            let existing = existing::of_binding(&binding, &bundles).unwrap_or_default();
            if slice.is_some() {
                let name = format!("{}-{}", roles::BASE, binding.metadata.name);
                all.extend(roles::of_secret(&name, &binding.spec.kubeconfig_secret_ref, subject));
                continue;
            }
            all.extend(roles::of_binding(&binding, existing, subject));
        }
    }
    for bundle in bundles {
        let name = format!("{}-bundle-{}", roles::BASE, bundle.metadata.name);
        all.extend(roles::of_secret(&name, &bundle.spec.kubeconfig_secret_ref, subject));
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
