//! BindableResourcesRequest.

use carrick_kcp::condition::Condition;
use carrick_kcp::object::{kind, object};

use super::common::{LocalSecretKeyReference, Phase};
use crate::kinds::BINDABLE_RESOURCES_REQUEST;

kind! {
    /// A BindableResourcesRequest asks for a contract without a browser: the answer is a Secret.
    BindableResourcesRequest = BINDABLE_RESOURCES_REQUEST {
        /// For whom.
        spec: BindableResourcesRequestSpec => "spec",
        /// How far it is.
        status: BindableResourcesRequestStatus => "status",
    }
}

object! {
    /// Who asks for a contract.
    BindableResourcesRequestSpec {
        /// A template that must exist.
        template_ref: Option<TemplateReference> => "templateRef",
        /// The consumer.
        cluster_identity: ClusterIdentity => "clusterIdentity" [always],
        /// Who asks.
        author: String => "author",
        /// Where to put the answer, instead of a Secret named after the request.
        kubeconfig_secret_ref: Option<LocalSecretKeyReference> => "kubeconfigSecretRef",
        /// How long the request stays once it is done, as a duration of Go; for ever if left out.
        ttl_after_finished: String => "ttlAfterFinished",
    }
}

object! {
    /// A template by name.
    TemplateReference {
        /// Its name.
        name: String => "name",
    }
}

object! {
    /// Which cluster a consumer is.
    ClusterIdentity {
        /// What tells it from all others: the uid of its namespace `kube-system` unless chosen otherwise.
        identity: String => "identity",
        /// What people call it.
        pretty_name: String => "prettyName",
    }
}

object! {
    /// How far a request is. Its conditions are those of Kubernetes, without severity.
    BindableResourcesRequestStatus {
        /// How far it is.
        phase: Phase => "phase",
        /// The contract namespace.
        namespace: String => "namespace",
        /// The Secret with the answer.
        kubeconfig_secret_ref: Option<LocalSecretKeyReference> => "kubeconfigSecretRef",
        /// When it was done, in RFC 3339.
        completion_time: String => "completionTime",
        /// Conditions.
        conditions: Vec<Condition> => "conditions",
    }
}
