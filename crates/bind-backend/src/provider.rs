//! The seam between the provider's clusters and the HTTP front: what a logged-in consumer may ask for.

use std::collections::BTreeMap;
use std::future::Future;

use serde_json::Value;

/// What logged-in consumers ask of a provider; the HTTP front knows nothing else.
pub trait Provider: Send + Sync + 'static {
    /// Why nobody can be served at the moment. Whoever asks has not logged in: it names kinds, and quotes nobody.
    fn problem(&self) -> Option<String> {
        None
    }

    /// Templates of one cluster ("" is the only one), as a Kubernetes list.
    fn templates(&self, cluster: &str) -> impl Future<Output = Result<Value, ProviderError>> + Send;

    /// Collections of templates of one cluster, as a Kubernetes list.
    fn collections(&self, cluster: &str) -> impl Future<Output = Result<Value, ProviderError>> + Send;

    /// Makes sure that the contract exists and returns what the consumer needs.
    fn bind(&self, cluster: &str, order: &BindOrder) -> impl Future<Output = Result<Bound, ProviderError>> + Send;

    /// The kubeconfig of the contract that an identity has, as YAML; `NotFound` without one.
    fn kubeconfig(&self, cluster: &str, identity: &str) -> impl Future<Output = Result<Vec<u8>, ProviderError>> + Send;

    /// Exports of an identity: (contract namespace, names of exports), or None without a contract.
    fn exports(
        &self,
        cluster: &str,
        identity: &str,
    ) -> impl Future<Output = Result<Option<(String, Vec<String>)>, ProviderError>> + Send;

    /// Whether this person may bind (`SubjectAccessReview`, verb `bind`, group kube-bind.io).
    fn may_bind(&self, cluster: &str, person: &Person) -> impl Future<Output = Result<bool, ProviderError>> + Send;

    /// A Secret of the backend's own namespace that holds keys, created when it is missing by whichever replica is first.
    fn keys(
        &self,
        make: &(dyn Fn() -> BTreeMap<String, Vec<u8>> + Send + Sync),
    ) -> impl Future<Output = Result<BTreeMap<String, Vec<u8>>, ProviderError>> + Send;
}

/// A consumer asks to be bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BindOrder {
    /// Name of the binding, hence of the export request and the export.
    pub name: String,
    /// Name of the template that says what is exported.
    pub template: String,
    /// Identity of the consumer's cluster.
    pub identity: String,
    /// How people call the consumer's cluster.
    pub pretty_name: String,
    /// Issuer and subject of who asks.
    pub author: String,
    /// The subject alone, by which kube-bind's backend knows authors.
    pub subject: String,
    /// In the UI flow the backend itself writes the export request.
    pub request_export: bool,
}

/// What a consumer needs once it is bound.
#[derive(Clone, PartialEq, Eq)]
pub struct Bound {
    /// The kubeconfig of the contract, as YAML.
    pub kubeconfig: Vec<u8>,
    /// The contract's namespace.
    pub namespace: String,
    /// Export requests that the consumer has to create.
    pub requests: Vec<Value>,
    /// Name of the binding, where the backend wrote the export request itself.
    pub binding_name: Option<String>,
}

/// Who is logged in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Person {
    /// The subject of the ID token.
    pub subject: String,
    /// The issuer of the ID token.
    pub issuer: String,
    /// The groups of the ID token.
    pub groups: Vec<String>,
}

/// Why an order was not carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProviderError {
    /// A cluster, template or contract does not exist.
    #[error("{0}")]
    NotFound(String),
    /// The identity belongs to another author.
    #[error("{0}")]
    Forbidden(String),
    /// The order itself is wrong.
    #[error("{0}")]
    Invalid(String),
    /// The provider's cluster did not answer, or not in time.
    #[error("{0}")]
    Unavailable(String),
}

impl std::fmt::Debug for Bound {
    /// Without the kubeconfig: it holds a token.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bound")
            .field("namespace", &self.namespace)
            .field("requests", &self.requests.len())
            .field("binding_name", &self.binding_name)
            .finish_non_exhaustive()
    }
}
