//! The roles that the bindings of a cluster need.

use carrick_bind_api::carrick_kcp::kinds::API_EXPORT_ENDPOINT_SLICE;
use carrick_bind_api::claims::Accepted;
use carrick_bind_api::core;
use carrick_bind_api::core::roles::of_bindings;
use carrick_bind_api::kinds::{API_SERVICE_BINDING, API_SERVICE_BINDING_BUNDLE};
use carrick_bind_api::roles::{self, Subject};
use carrick_bind_api::v1alpha2::{ApiServiceBinding, ApiServiceBindingBundle};
use carrick_client::{Client, Error, ListOptions};
use carrick_sync::executor::refusal::is_unserved;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::resources;

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
    let bundles: Vec<ApiServiceBindingBundle> = typed(client, resources::of(API_SERVICE_BINDING_BUNDLE)).await?;
    let bindings: Vec<ApiServiceBinding> = typed(client, resources::of(API_SERVICE_BINDING)).await?;
    if slice.is_none() {
        all.extend(roles::of_bindings(&bindings, &bundles, subject));
        all.extend(of_core(client, subject).await?);
        return Ok(all);
    }
    for binding in &bindings {
        let name = format!("{}-{}", roles::BASE, binding.metadata.name);
        all.extend(roles::of_secret(&name, &binding.spec.kubeconfig_secret_ref, subject));
    }
    all.extend(roles::of_bundles(&bundles, subject));
    Ok(all)
}

/// What the konnector needs for kube-bind v2, if its kinds are there.
async fn of_core(client: &Client, subject: &Subject) -> Result<Vec<Value>, Error> {
    let is_served = match client.list(&resources::of(core::CONNECTION), None, &ListOptions::default()).await {
        Err(error) if is_unserved(&error) => false,
        found => found.map(|_| true)?,
    };
    if !is_served {
        return Ok(Vec::new());
    }
    let connections: Vec<core::Connection> = typed(client, resources::of(core::CONNECTION)).await?;
    let cluster: Vec<core::ClusterBinding> = typed(client, resources::of(core::CLUSTER_BINDING)).await?;
    let namespaced: Vec<core::Binding> = typed(client, resources::of(core::BINDING)).await?;
    let namespaced = namespaced.iter().map(|it| (Some(it.metadata.namespace.as_str()), &it.spec));
    let bindings: Vec<_> = cluster.iter().map(|it| (None, &it.spec)).chain(namespaced).collect();
    let secrets: Vec<_> = connections.iter().map(core::Connection::secret).collect();
    Ok(of_bindings(&bindings, &secrets, subject))
}

/// What whoever grants the roles of the bindings that there are should know before.
pub async fn warnings(client: &Client) -> Result<Vec<String>, Error> {
    let bundles: Vec<ApiServiceBindingBundle> = typed(client, resources::of(API_SERVICE_BINDING_BUNDLE)).await?;
    let bindings: Vec<ApiServiceBinding> = typed(client, resources::of(API_SERVICE_BINDING)).await?;
    let of_binding = |binding| roles::warnings(binding, &Accepted::of_binding(binding, &bundles));
    Ok(bindings.iter().flat_map(of_binding).collect())
}

/// All objects of a kind that can be read; none if it is not there yet.
async fn typed<K: DeserializeOwned>(client: &Client, resource: carrick_client::Resource) -> Result<Vec<K>, Error> {
    match client.list(&resource, None, &ListOptions::default()).await {
        Err(error) if is_unserved(&error) => Ok(Vec::new()),
        all => Ok(all?.into_iter().filter_map(|object| serde_json::from_value(object).ok()).collect()),
    }
}
