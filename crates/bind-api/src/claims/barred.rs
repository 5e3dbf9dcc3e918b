//! What no claim moves, whatever it selects.

use std::collections::BTreeSet;

use carrick_kcp::token::CREDENTIAL_SECRETS;
use serde_json::Value;

use crate::core::names::CLEANUP_FINALIZER;
use crate::mapping::ObjectKey;
use crate::names::{PROVIDER_KUBECONFIG_LABEL, is_system_namespace};

/// Why an object does not travel although a claim selects it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Barred {
    /// It is a token of this cluster.
    #[error("tokens stay in the cluster that they are for")]
    Token,
    /// It is the kubeconfig of a provider.
    #[error("kubeconfigs of providers stay here")]
    Kubeconfig,
    /// It is in a namespace of the cluster itself, or of the konnector.
    #[error("what is in namespaces of the cluster itself, or of the konnector, stays there")]
    Namespace,
    /// The provider has it in a namespace that the consumer does not use for this.
    #[error("nobody uses an API of this binding in its namespace")]
    Unused,
}

/// What stays in the consumer's cluster beside what can be told by looking at it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Guarded {
    /// Namespaces of the konnector.
    pub namespaces: BTreeSet<String>,
    /// Namespaces and names of the Secrets that bindings and bundles name.
    pub kubeconfigs: BTreeSet<(String, String)>,
}

impl Guarded {
    /// Why an object of the consumer stays where it is; none if it may travel.
    pub fn bars(&self, key: &ObjectKey, object: &Value) -> Option<Barred> {
        let namespace = key.namespace.as_deref().unwrap_or_default();
        if is_system_namespace(namespace) || self.namespaces.contains(namespace) {
            return Some(Barred::Namespace);
        }
        if object["type"].as_str().is_some_and(|type_| CREDENTIAL_SECRETS.contains(&type_)) {
            return Some(Barred::Token);
        }
        let is_labelled = object["metadata"]["labels"][PROVIDER_KUBECONFIG_LABEL] == "true";
        let is_named = || self.kubeconfigs.contains(&(namespace.to_owned(), key.name.clone()));
        // That of a Connection, even before anybody has read the Connection.
        let finalizers = &object["metadata"]["finalizers"];
        let is_connected = finalizers.as_array().is_some_and(|all| all.iter().any(|it| it == CLEANUP_FINALIZER));
        let is_secret = object["kind"].as_str().is_none_or(|kind| kind == "Secret");
        (is_secret && (is_labelled || is_connected || is_named())).then_some(Barred::Kubeconfig)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn credentials_stay_and_the_rest_may_travel() {
        let guarded = Guarded {
            namespaces: BTreeSet::from(["konnectors".to_owned()]),
            kubeconfigs: BTreeSet::from([("team".to_owned(), "other".to_owned())]),
        };
        let bars =
            |namespace: &str, name: &str, object: &Value| guarded.bars(&ObjectKey::namespaced(namespace, name), object);
        assert_eq!(bars("team", "s", &json!({"kind": "Secret", "type": "Opaque"})), None);
        assert_eq!(bars("team", "s", &json!({"type": CREDENTIAL_SECRETS[0]})), Some(Barred::Token));
        assert_eq!(bars("team", "other", &json!({"kind": "Secret"})), Some(Barred::Kubeconfig));
        assert_eq!(bars("team", "other", &json!({"kind": "ConfigMap"})), None);
        let labelled = json!({"metadata": {"labels": {"kube-bind.io/provider-kubeconfig": "true"}}});
        assert_eq!(bars("team", "s", &labelled), Some(Barred::Kubeconfig));
        let connected = json!({"kind": "Secret", "metadata": {"finalizers": ["core.kbind.io/cleanup"]}});
        assert_eq!(bars("team", "s", &connected), Some(Barred::Kubeconfig));
        for namespace in ["kube-system", "kube-bind", "konnectors"] {
            assert_eq!(bars(namespace, "s", &json!({"kind": "ConfigMap"})), Some(Barred::Namespace), "{namespace}");
        }
    }
}
