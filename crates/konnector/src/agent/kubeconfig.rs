//! From a Secret to a connection, with the care that kubeconfigs of strangers need.

use carrick_bind_api::secret::{self, SecretError};
use carrick_bind_api::v1alpha2::SecretKeyReference;
use carrick_client::{InlineKubeconfig, Server};
use serde_json::Value;

/// A kubeconfig that may be used, and the contract namespace in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderKubeconfig {
    kubeconfig: InlineKubeconfig,
    /// The contract namespace.
    pub contract: String,
}

/// Reads a kubeconfig, or says why it is refused, without a word of its content.
pub fn read(text: &str) -> Result<ProviderKubeconfig, String> {
    let kubeconfig = InlineKubeconfig::parse(text).map_err(|refused| refused.to_string())?;
    let contract =
        kubeconfig.namespace().ok_or("the kubeconfig's context names no namespace; the provider must set it")?;
    let contract = contract.to_owned();
    Ok(ProviderKubeconfig { kubeconfig, contract })
}

/// Reads the kubeconfig in a Secret.
pub fn of_secret(secret: Option<&Value>, at: &SecretKeyReference) -> Result<ProviderKubeconfig, SecretError> {
    let text = secret::text(secret, at)?;
    read(&text).map_err(|problem| invalid(at, problem))
}

/// A Secret that cannot be used.
pub fn invalid(at: &SecretKeyReference, problem: String) -> SecretError {
    SecretError::Invalid { secret: format!("{}/{}", at.namespace, at.name), problem }
}

impl ProviderKubeconfig {
    /// Opens the connection. Nothing is sent before the first request.
    pub fn open(&self) -> Result<Server, String> {
        Server::from_inline(&self.kubeconfig).map_err(|error| error.to_string())
    }

    /// The provider's URL.
    pub fn server(&self) -> &str {
        self.kubeconfig.server()
    }
}
