//! ClusterBinding.

use carrick_kcp::condition::Condition;
use carrick_kcp::object::{kind, object};
use serde_json::Value;

use super::common::{LocalSecretKeyReference, SecretReference};
use crate::kinds::CLUSTER_BINDING;

kind! {
    /// The ClusterBinding `cluster` of a contract namespace stands for the consumer: its credentials and its heartbeat.
    ClusterBinding = CLUSTER_BINDING {
        /// What the provider says.
        spec: ClusterBindingSpec => "spec",
        /// What the konnector says, and the provider about that.
        status: ClusterBindingStatus => "status",
    }
}

object! {
    /// What the provider says to a consumer.
    ClusterBindingSpec {
        /// The Secret beside it with the consumer's kubeconfig; konnectors copy what is new in it.
        kubeconfig_secret_ref: LocalSecretKeyReference => "kubeconfigSecretRef",
        /// What the provider calls itself.
        provider_pretty_name: String => "providerPrettyName",
        /// Whatever the provider wants to keep here.
        service_provider_spec: Value => "serviceProviderSpec",
    }
}

object! {
    /// What the konnector says, and the provider about that.
    ClusterBindingStatus {
        /// When the konnector was last there, in RFC 3339.
        last_heartbeat_time: String => "lastHeartbeatTime",
        /// How often it comes, as a duration of Go.
        heartbeat_interval: String => "heartbeatInterval",
        /// The konnector's version.
        konnector_version: String => "konnectorVersion",
        /// Where the consumer keeps its kubeconfig.
        consumer_secret_ref: Option<SecretReference> => "consumerSecretRef",
        /// Conditions.
        conditions: Vec<Condition> => "conditions",
    }
}
