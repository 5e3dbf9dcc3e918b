//! Labels, annotations, finalizers and well-known names: what konnectors, backends and the CLI must agree on.

/// Label of a CRD or APIResourceSchema of the provider that may be exported (`true`).
pub const EXPORTED_LABEL: &str = "kube-bind.io/exported";
/// Label that says who owns a claimed object, a namespace or an APIServiceNamespace: see [`Owner`].
pub const OWNER_LABEL: &str = "kube-bind.io/owner";
/// Label of a consumer's Secret (`true`) that makes the konnector heartbeat without any binding.
pub const PROVIDER_KUBECONFIG_LABEL: &str = "kube-bind.io/provider-kubeconfig";
/// Label of a ClusterRole (`true`) whose rules become part of [`EXPORTS_ROLE`].
pub const AGGREGATE_LABEL: &str = "rbac.kube-bind.io/aggregate-to-parent";

/// Annotation of every copy on the provider: the contract namespace that it belongs to. Another value, or none, means: leave it alone.
pub const CONTRACT_ANNOTATION: &str = "kube-bind.io/cluster-namespace";
/// Annotation of a copy on the provider: the namespace of its source.
pub const CONSUMER_NAMESPACE_ANNOTATION: &str = "kube-bind.io/consumer-namespace";
/// Annotation of a copy on the provider: the uid of its source.
pub const CONSUMER_UID_ANNOTATION: &str = "kube-bind.io/consumer-uid";
/// Annotation of a copy on the provider, and of an APIServiceNamespace, whose source is in a workspace of an APIExport (ours): the logical cluster.
pub const CONSUMER_CLUSTER_ANNOTATION: &str = "kube-bind.io/consumer-cluster";
/// Annotation of such a copy (ours): the name of its source.
pub const CONSUMER_NAME_ANNOTATION: &str = "kube-bind.io/consumer-name";
/// Annotation of an object on the consumer: the namespace of its other half on the provider.
pub const PROVIDER_NAMESPACE_ANNOTATION: &str = "kube-bind.io/provider-namespace";
/// Annotation of an object on the consumer: the uid of its other half on the provider.
pub const PROVIDER_UID_ANNOTATION: &str = "kube-bind.io/provider-uid";
/// Annotation of a BoundSchema or APIServiceExport: hash of the schemas it was made from.
pub const SOURCE_SPEC_HASH_ANNOTATION: &str = "kube-bind.io/source-spec-hash";
/// Annotation of an APIServiceBinding: its resources, for people. A column shows it.
pub const RESOURCES_ANNOTATION: &str = "kube-bind.io/resources";
/// Annotation of a service namespace: `<contract namespace>/<name of the APIServiceNamespace>`.
pub const SERVICE_NAMESPACE_ANNOTATION: &str = "kube-bind.io/api-service-namespace";
/// On a provider's namespace that a backend has made: the same text as [`SERVICE_NAMESPACE_ANNOTATION`] (ours). Without it the namespace is its owner's.
pub const MADE_FOR_ANNOTATION: &str = "backend.kube-bind.io/made-for";
/// On a provider's namespace that several contracts share (ours): those beside the one in [`SERVICE_NAMESPACE_ANNOTATION`], in the same form, with
/// commas between them and nothing else.
pub const SHARED_WITH_ANNOTATION: &str = "backend.kube-bind.io/shared-with";
/// Annotation of a contract namespace and of its ClusterBinding: the identity of the consumer.
pub const IDENTITY_ANNOTATION: &str = "backend.kube-bind.io/identity";
/// The same on contract namespaces of old backends.
pub const LEGACY_IDENTITY_ANNOTATION: &str = "example-backend.kube-bind.io/identity";
/// Annotation of a contract namespace and of its ClusterBinding: who asked for the contract.
pub const AUTHOR_ANNOTATION: &str = "backend.kube-bind.io/author";
/// Annotation of a contract namespace that a BindableResourcesRequest has founded (ours): `<namespace of the request>/<uid of that namespace>`. What a
/// request says about its author anybody can write; from where it came nobody can.
pub const REQUESTED_FROM_ANNOTATION: &str = "backend.kube-bind.io/requested-from";
/// Annotation of a contract namespace (ours): the templates that were ordered, with commas between them; `*` for whatever is offered. Requests get
/// what one of them has. Without it requests get whatever is offered.
pub const ORDERED_TEMPLATES_ANNOTATION: &str = "backend.kube-bind.io/templates";
/// Annotation of a ClusterBinding: what people call the consumer.
pub const CLUSTER_PRETTY_NAME_ANNOTATION: &str = "backend.kube-bind.io/cluster-pretty-name";
/// Annotation of a template that was made from an APIBinding of kcp: which one.
pub const OWNER_BINDING_ANNOTATION: &str = "apibindingtemplate.kube-bind.io/owner-binding";

/// Annotation of an APIServiceBinding (ours): the URL of the provider's conversion webhook that the consumer's API server may call. It would be
/// sent every object of the API, so a provider alone does not decide it.
pub const CONVERSION_WEBHOOK_ANNOTATION: &str = "kube-bind.io/conversion-webhook";
/// Annotation of an APIServiceBinding (ours, `true`): its copies stay on the provider when it is deleted.
pub const KEEP_COPIES_ANNOTATION: &str = "kube-bind.io/keep-copies";

/// Annotation of an APIServiceBinding, or of the APIServiceBindingBundle that it belongs to (ours): the claims that are accepted, by resource or by
/// what [`crate::claims::mark`] makes of one, with commas between them.
pub const ACCEPTED_CLAIMS_ANNOTATION: &str = "kube-bind.io/accepted-claims";
/// Label of a consumer's namespace (ours): providers may write claimed objects into it even if nobody uses their API there. The value is the contract
/// namespace of the one that may, or `true` for all.
pub const PROVIDER_WRITES_LABEL: &str = "kube-bind.io/provider-writes";

/// Finalizer of consumers' objects: the copy goes first. There is no hyphen in it.
pub const SYNCER_FINALIZER: &str = "kubebind.io/syncer";
/// Finalizer of bindings whose CRDs and objects are still there (ours). kube-bind has none and leaves objects behind that nobody can delete.
pub const BINDING_FINALIZER: &str = "kubebind.io/unbind";
/// Finalizer of an APIServiceExport (ours): its consumer is told before it goes.
pub const WITHDRAWAL_FINALIZER: &str = "backend.kube-bind.io/withdrawal";
/// Field manager of what is applied on the provider.
pub const FIELD_MANAGER: &str = "kube-bind.io";

/// Name of the one ClusterBinding of a contract.
pub const CLUSTER_BINDING_NAME: &str = "cluster";
/// Key of kubeconfigs in Secrets.
pub const KUBECONFIG_KEY: &str = "kubeconfig";
/// Key of the answer in the Secret of a BindableResourcesRequest.
pub const BINDING_RESPONSE_KEY: &str = "binding-response";
/// Namespace of the konnector and of its Secrets on the consumer.
pub const KONNECTOR_NAMESPACE: &str = "kube-bind";
/// ServiceAccount, ClusterRole and RoleBinding of a contract.
pub const BINDER: &str = "kube-binder";
/// ClusterRole of all exports.
pub const EXPORTS_ROLE: &str = "kube-binder-exports";
/// What stands for the core group in the name of a BoundSchema.
pub const CORE_GROUP: &str = "core";

/// Prefix of the labels by which kcp marks what a claim makes visible: never copied.
pub const KCP_CLAIM_LABEL: &str = "claimed.internal.apis.kcp.io";
/// Part of the annotations by which kcp names a workspace: never copied.
pub const KCP_CLUSTER_ANNOTATION: &str = carrick_kcp::CLUSTER_ANNOTATION;

/// Who owns an object that both sides have: the value of [`OWNER_LABEL`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Owner {
    /// The provider's object is the source, the consumer has a copy.
    Provider,
    /// The consumer's object is the source, the provider has a copy.
    Consumer,
}

impl Owner {
    /// The value of the label; none for another text.
    pub fn of_label(value: &str) -> Option<Self> {
        match value {
            "provider" => Some(Self::Provider),
            "consumer" => Some(Self::Consumer),
            _ => None,
        }
    }

    /// The value of the label.
    pub fn label(self) -> &'static str {
        match self {
            Self::Provider => "provider",
            Self::Consumer => "consumer",
        }
    }
}

/// The name of a BoundSchema: `<plural>.<group>`, with `core` for the core group.
pub fn bound_schema_name(group: &str, plural: &str) -> String {
    format!("{plural}.{}", if group.is_empty() { CORE_GROUP } else { group })
}

/// Whether a namespace of a consumer belongs to the cluster itself. A provider that names it is not followed there.
///
/// ```
/// use carrick_bind_api::names::is_system_namespace;
///
/// assert!(is_system_namespace("kube-system") && is_system_namespace("kube-bind"));
/// assert!(!is_system_namespace("kubernetes") && !is_system_namespace("default"));
/// ```
pub fn is_system_namespace(namespace: &str) -> bool {
    namespace.starts_with("kube-")
}

/// Whether a text is a name of Kubernetes, which no shell reads as anything else.
pub fn is_name(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    text.bytes().next().is_some_and(is_plain) && text.bytes().all(|byte| is_plain(byte) || matches!(byte, b'-' | b'.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_are_told_by_label_and_nothing_else_is_an_owner() {
        for owner in [Owner::Provider, Owner::Consumer] {
            assert_eq!(Owner::of_label(owner.label()), Some(owner));
        }
        for other in ["", "Provider", "both"] {
            assert_eq!(Owner::of_label(other), None, "{other}");
        }
    }

    #[test]
    fn schemas_of_the_core_group_have_a_name_too() {
        assert_eq!(bound_schema_name("", "secrets"), "secrets.core");
        assert_eq!(bound_schema_name("example.io", "widgets"), "widgets.example.io");
    }
}
