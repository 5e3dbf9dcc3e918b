//! Who this cluster is.

use carrick_client::{Client, Error, Resource};

/// Why an identity is not known.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IdentityError {
    /// The server does not tell.
    #[error("cannot read namespace {namespace}: {source}")]
    Read {
        /// Which namespace.
        namespace: String,
        /// What the server said.
        source: Error,
    },
    /// There is no such namespace.
    #[error("there is no namespace {0}; name another one with -n")]
    Missing(String),
}

/// The uid of a namespace.
pub async fn of(client: &Client, namespace: &str) -> Result<String, IdentityError> {
    let namespaces = Resource::cluster_wide("", "v1", "Namespace", "namespaces");
    let found = client.get(&namespaces, None, namespace).await;
    let found = found.map_err(|source| IdentityError::Read { namespace: namespace.to_owned(), source })?;
    let uid = found.as_ref().and_then(|found| found["metadata"]["uid"].as_str()).map(str::to_owned);
    uid.ok_or_else(|| IdentityError::Missing(namespace.to_owned()))
}
