//! Kubeconfigs in Secrets: which Secrets have one, and how to get at it.

use serde_json::Value;

use crate::names::PROVIDER_KUBECONFIG_LABEL;
use crate::problems::{BindingProblem, BundleProblem, ClusterBindingProblem};
use crate::v1alpha2::SecretKeyReference;

/// Why a Secret gives no kubeconfig. Nothing here holds a word of its content.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SecretError {
    /// It does not exist.
    #[error("secret {0} not found")]
    NotFound(String),
    /// It cannot be used.
    #[error("secret {secret} cannot be used: {problem}")]
    Invalid {
        /// Namespace and name.
        secret: String,
        /// What is wrong.
        problem: String,
    },
}

impl SecretError {
    /// The problem of an APIServiceBinding.
    pub fn of_binding(self) -> BindingProblem {
        match self {
            Self::NotFound(secret) => BindingProblem::SecretNotFound { secret },
            Self::Invalid { secret, problem } => BindingProblem::SecretInvalid { secret, problem },
        }
    }

    /// The problem of an APIServiceBindingBundle.
    pub fn of_bundle(self) -> BundleProblem {
        match self {
            Self::NotFound(secret) => BundleProblem::SecretNotFound { secret },
            Self::Invalid { secret, problem } => BundleProblem::SecretInvalid { secret, problem },
        }
    }

    /// The problem of a ClusterBinding.
    pub fn of_cluster_binding(self) -> ClusterBindingProblem {
        match self {
            Self::NotFound(secret) => ClusterBindingProblem::ProviderSecretNotFound { secret },
            Self::Invalid { secret, problem } => ClusterBindingProblem::ProviderSecretInvalid { secret, problem },
        }
    }
}

/// The text under a key of a Secret, given the Secret or that there is none.
///
/// ```
/// use carrick_bind_api::secret::text;
/// use carrick_bind_api::v1alpha2::SecretKeyReference;
/// use serde_json::json;
///
/// let at = SecretKeyReference::new("kube-bind", "provider", "kubeconfig");
/// assert_eq!(text(Some(&json!({"data": {"kubeconfig": "YTog"}})), &at).as_deref(), Ok("a: "));
/// assert_eq!(text(None, &at).unwrap_err().to_string(), "secret kube-bind/provider not found");
/// ```
pub fn text(secret: Option<&Value>, at: &SecretKeyReference) -> Result<String, SecretError> {
    let shown = || format!("{}/{}", at.namespace, at.name);
    let invalid = |problem: String| SecretError::Invalid { secret: shown(), problem };
    let secret = secret.ok_or_else(|| SecretError::NotFound(shown()))?;
    let key = &at.key;
    let data = secret["data"][key.as_str()].as_str().ok_or_else(|| invalid(format!("it has no key {key:?}")))?;
    let bytes =
        data_encoding::BASE64.decode(data.as_bytes()).map_err(|_| invalid(format!("key {key:?} is not base64")))?;
    String::from_utf8(bytes).map_err(|_| invalid(format!("key {key:?} is not text")))
}

/// Whether a Secret starts heartbeats by itself.
pub fn is_provider_kubeconfig(secret: &Value) -> bool {
    secret["metadata"]["labels"][PROVIDER_KUBECONFIG_LABEL] == "true"
}

/// What has to be written to take over new credentials: the data of the provider's Secret, beside the consumer's own other keys. None if nothing is
/// new.
pub fn rotated(consumer: &Value, provider: &Value) -> Option<Value> {
    let data = provider["data"].as_object()?;
    // The type of a Secret cannot be changed once it is set, so another one is no reason to write.
    if data.iter().all(|(key, value)| consumer["data"].get(key) == Some(value)) {
        return None;
    }
    let mut new = consumer.clone();
    if !new["data"].is_object() {
        new["data"] = serde_json::json!({});
    }
    for (key, value) in data {
        new["data"][key] = value.clone();
    }
    Some(new)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_wrong_with_a_secret_is_told_without_its_content() {
        let at = SecretKeyReference::new("n", "s", "k");
        for (data, wanted) in [
            (json!({}), "it has no key \"k\""),
            (json!({"k": "very-secret"}), "key \"k\" is not base64"),
            (json!({"k": "/w=="}), "key \"k\" is not text"),
        ] {
            let error = text(Some(&json!({"data": data})), &at).unwrap_err();
            assert_eq!(error.to_string(), format!("secret n/s cannot be used: {wanted}"));
            assert_eq!(error.clone().of_binding().reason(), "KubeconfigSecretInvalid");
            assert_eq!(error.clone().of_bundle().reason(), "KubeconfigSecretInvalid");
            assert_eq!(error.of_cluster_binding().reason(), "ProviderSecretInvalid");
        }
        let missing = text(None, &at).unwrap_err();
        assert_eq!(missing.clone().of_binding().reason(), "KubeconfigSecretNotFound");
        assert_eq!(missing.clone().of_bundle().reason(), "KubeconfigSecretNotFound");
        assert_eq!(missing.of_cluster_binding().reason(), "ProviderSecretNotFound");
    }

    #[test]
    fn only_the_label_true_starts_heartbeats() {
        let labelled = |value: Value| json!({"metadata": {"labels": {PROVIDER_KUBECONFIG_LABEL: value}}});
        assert!(is_provider_kubeconfig(&labelled(json!("true"))));
        assert!(!is_provider_kubeconfig(&labelled(json!("false"))));
        assert!(!is_provider_kubeconfig(&json!({})));
    }

    #[test]
    fn rotation_takes_over_what_is_new_and_keeps_the_rest() {
        let consumer =
            json!({"metadata": {"name": "s"}, "type": "Opaque", "data": {"kubeconfig": "b2xk", "own": "b3du"}});
        let provider = json!({"metadata": {"name": "other"}, "type": "Other", "data": {"kubeconfig": "bmV3"}});
        let new = rotated(&consumer, &provider).unwrap();
        assert_eq!(
            new,
            json!({"metadata": {"name": "s"}, "type": "Opaque", "data": {"kubeconfig": "bmV3", "own": "b3du"}})
        );
        assert_eq!(rotated(&new, &provider), None, "once is enough");
        assert_eq!(rotated(&json!({}), &json!({})), None);
        assert_eq!(rotated(&json!({}), &json!({"data": {}})), None);
        assert_eq!(rotated(&json!({}), &provider), Some(json!({"data": {"kubeconfig": "bmV3"}})));
    }
}
