//! The facts that the checks judge: gathered once, plain data.

use carrick_bind_api::grant::RolesLine;
use carrick_bind_api::v1alpha2::{
    ApiServiceBinding, ApiServiceBindingBundle, ApiServiceExport, ApiServiceExportRequest, ClusterBinding,
    SecretKeyReference,
};
use jiff::Timestamp;
use serde_json::Value;

use crate::doctor::facts::{Access, Lookup};

/// Everything that is known.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// The consumer's cluster, if it was asked for.
    pub consumer: Option<ConsumerFacts>,
    /// The provider's cluster, if it was asked for.
    pub provider: Option<ProviderFacts>,
    /// What the local clock says.
    pub now: Timestamp,
}

/// What there is on the consumer's cluster.
#[derive(Debug, Clone)]
pub struct ConsumerFacts {
    /// Whether it answers.
    pub access: Access,
    /// Kinds of kube-bind that it lacks, or why that is not known.
    pub missing_kinds: Result<Vec<String>, String>,
    /// The uid of its `kube-system` namespace: who it is for providers.
    pub uid: Option<String>,
    /// The konnector's Deployment.
    pub deployment: Lookup,
    /// What that konnector may do here, if it works here.
    pub rights: Option<KonnectorRights>,
    /// Its bindings.
    pub bindings: Vec<ApiServiceBinding>,
    /// Its bundles.
    pub bundles: Vec<ApiServiceBindingBundle>,
    /// One for each kubeconfig that somebody here names.
    pub contracts: Vec<ContractFacts>,
}

impl ConsumerFacts {
    /// A cluster of which nothing is known but how it answers.
    pub fn new(access: Access) -> Self {
        Self {
            access,
            missing_kinds: Ok(Vec::new()),
            uid: None,
            deployment: Lookup::NotAsked,
            rights: None,
            bindings: Vec::new(),
            bundles: Vec::new(),
            contracts: Vec::new(),
        }
    }
}

/// What a konnector may do on its own cluster.
#[derive(Debug, Clone)]
pub struct KonnectorRights {
    /// Namespace and name of its ServiceAccount.
    pub account: String,
    /// What gives it all rights that it needs.
    pub line: RolesLine,
    /// Rights that it lacks, in words, or why that is not known.
    pub denied: Result<Vec<String>, String>,
}

/// What one kubeconfig of the consumer leads to.
#[derive(Debug, Clone)]
pub struct ContractFacts {
    /// Where the kubeconfig is.
    pub at: SecretKeyReference,
    /// The contract namespace, or why the kubeconfig cannot be used.
    pub namespace: Result<String, String>,
    /// The provider, as the konnector reaches it.
    pub access: Access,
    /// Rights that the konnector needs there and lacks, or why that is not known; none if nobody could ask.
    pub denied: Option<Result<Vec<DeniedRight>, String>>,
    /// The ClusterBinding.
    pub binding: Lookup<ClusterBinding>,
}

/// A right that is missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeniedRight {
    /// The API group; empty for core.
    pub group: &'static str,
    /// Plural resource, with the subresource behind a slash.
    pub resource: &'static str,
    /// Which verbs are denied.
    pub verbs: Vec<&'static str>,
}

/// What there is on the provider's cluster.
#[derive(Debug, Clone)]
pub struct ProviderFacts {
    /// Whether it answers.
    pub access: Access,
    /// Kinds of kube-bind that it lacks, or why that is not known.
    pub missing_kinds: Result<Vec<String>, String>,
    /// The policy that keeps consumers apart.
    pub policy: Lookup,
    /// Namespaces of contracts: name and identity.
    pub contracts: Result<Vec<(String, String)>, String>,
    /// Their ClusterBindings.
    pub bindings: Vec<ClusterBinding>,
    /// Requests for exports.
    pub requests: Vec<ApiServiceExportRequest>,
    /// Exports.
    pub exports: Vec<ApiServiceExport>,
    /// BindableResourcesRequests, as they are.
    pub orders: Vec<Value>,
}

impl ProviderFacts {
    /// A cluster of which nothing is known but how it answers.
    pub fn new(access: Access) -> Self {
        Self {
            access,
            missing_kinds: Ok(Vec::new()),
            policy: Lookup::NotAsked,
            contracts: Ok(Vec::new()),
            bindings: Vec::new(),
            requests: Vec::new(),
            exports: Vec::new(),
            orders: Vec::new(),
        }
    }
}
