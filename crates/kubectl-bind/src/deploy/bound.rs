//! What is bound on this cluster already, which a konnector that is installed needs rights for.

use carrick_bind_api::claims::Accepted;
use carrick_bind_api::kinds::{API_SERVICE_BINDING, API_SERVICE_BINDING_BUNDLE, Kind};
use carrick_bind_api::v1alpha2::{ApiServiceBinding, ApiServiceBindingBundle};
use carrick_bind_api::{install, roles};
use carrick_client::{Client, ListOptions, Resource};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::error::DeployError;

/// The roles for what is bound, and what whoever grants them should know before.
pub(super) async fn roles(client: &Client) -> Result<(Vec<Value>, Vec<String>), DeployError> {
    let bindings: Vec<ApiServiceBinding> = all(client, API_SERVICE_BINDING).await?;
    let bundles: Vec<ApiServiceBindingBundle> = all(client, API_SERVICE_BINDING_BUNDLE).await?;
    let warnings = bindings.iter().flat_map(|it| roles::warnings(it, &Accepted::of_binding(it, &bundles))).collect();
    Ok((roles::of_bindings(&bindings, &bundles, &install::subject()), warnings))
}

/// All objects of a kind; none if it is not served yet.
async fn all<K: DeserializeOwned>(client: &Client, kind: Kind) -> Result<Vec<K>, DeployError> {
    let resource = Resource::cluster_wide(kind.group, kind.version, kind.kind, kind.plural);
    match client.list(&resource, None, &ListOptions::default()).await {
        Err(error) if error.is_not_found() => Ok(Vec::new()),
        Err(source) => Err(DeployError::Server { what: kind.plural.to_owned(), source }),
        Ok(found) => Ok(found.into_iter().filter_map(|object| serde_json::from_value(object).ok()).collect()),
    }
}
