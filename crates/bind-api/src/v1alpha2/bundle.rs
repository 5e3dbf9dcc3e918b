//! APIServiceBindingBundle.

use carrick_kcp::condition::Condition;
use carrick_kcp::object::{kind, object};

use super::common::SecretKeyReference;
use crate::kinds::API_SERVICE_BINDING_BUNDLE;

kind! {
    /// An APIServiceBindingBundle makes an APIServiceBinding of every export of a contract.
    ApiServiceBindingBundle = API_SERVICE_BINDING_BUNDLE {
        /// Where the provider is.
        spec: ApiServiceBindingBundleSpec => "spec",
        /// What the konnector says about it.
        status: ApiServiceBindingBundleStatus => "status",
    }
}

object! {
    /// Where the provider is.
    ApiServiceBindingBundleSpec {
        /// The kubeconfig of the provider, with the contract namespace in its context. It cannot be changed.
        kubeconfig_secret_ref: SecretKeyReference => "kubeconfigSecretRef",
    }
}

object! {
    /// What the konnector says about a bundle.
    ApiServiceBindingBundleStatus {
        /// Conditions.
        conditions: Vec<Condition> => "conditions",
    }
}
