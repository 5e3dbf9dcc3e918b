//! ClusterBinding and Binding: one for the cluster, one for a namespace, alike in everything else.

use carrick_kcp::condition::Condition;
use carrick_kcp::meta::LabelSelector;
use carrick_kcp::object::{kind, object, words};

use super::kinds::{BINDING, CLUSTER_BINDING};
use super::names::BOUND_BY_ANNOTATION;

words! {
    /// What becomes of objects that the provider had before.
    ConflictPolicy {
        /// They are left alone, and ours is not synced.
        Fail,
        /// Those that nobody has marked become copies.
        Adopt,
    }
}

words! {
    /// Which side related objects come from.
    Direction {
        /// The provider's are copied here.
        FromProvider,
        /// The consumer's are copied to the provider.
        FromConsumer,
    }
}

kind! {
    /// A ClusterBinding brings APIs of a provider into the whole cluster.
    ClusterBinding = CLUSTER_BINDING {
        /// Which APIs of which provider.
        spec: BindingSpec => "spec",
        /// What has become of them.
        status: BindingStatus => "status",
    }
}

kind! {
    /// A Binding brings APIs of a provider into its namespace.
    Binding = BINDING {
        /// Which APIs of which provider.
        spec: BindingSpec => "spec",
        /// What has become of them.
        status: BindingStatus => "status",
    }
}

object! {
    /// Which APIs of which provider.
    BindingSpec {
        /// The provider.
        connection_ref: ConnectionReference => "connectionRef",
        /// The APIs.
        apis: Vec<ApiName> => "apis",
        /// What becomes of objects that the provider had before; Fail if nothing is said.
        conflict_policy: ConflictPolicy => "conflictPolicy",
        /// Secrets and ConfigMaps that travel along.
        related_resources: Vec<RelatedResource> => "relatedResources",
    }
}

object! {
    /// A Connection by its name.
    ConnectionReference {
        /// Its name.
        name: String => "name",
    }
}

object! {
    /// An API by its name.
    ApiName {
        /// `<plural>.<group>`.
        name: String => "name",
    }
}

object! {
    /// Secrets or ConfigMaps that travel along.
    RelatedResource {
        /// API group; only the core group means anything.
        group: String => "group",
        /// secrets or configmaps.
        resource: String => "resource",
        /// Which side they come from.
        direction: Direction => "direction",
        /// Which of them; all if nothing is said.
        selector: RelatedSelector => "selector",
    }
}

object! {
    /// Which related objects: those that all given parts select.
    RelatedSelector {
        /// By their labels.
        label_selector: Option<LabelSelector> => "labelSelector",
        /// By their names.
        names: Vec<String> => "names",
    }
}

object! {
    /// What has become of the APIs of a binding.
    BindingStatus {
        /// Those that are installed, by name.
        bound_apis: Vec<BoundApi> => "boundAPIs",
        /// Conditions.
        conditions: Vec<Condition> => "conditions",
    }
}

object! {
    /// An API that is installed.
    BoundApi {
        /// `<plural>.<group>`.
        name: String => "name",
        /// Hash of the CRD that was pulled.
        crd_hash: String => "crdHash",
        /// Objects that are not synced because the provider has others of their names.
        conflict_count: Option<i64> => "conflictCount",
    }
}

impl ClusterBinding {
    /// The Connection that it belongs to: the one that has bound it, or else the one that it names.
    pub fn connection(&self) -> &str {
        let mark = self.metadata.annotation(BOUND_BY_ANNOTATION).and_then(|mark| mark.split_once('/'));
        let bound = mark.filter(|(_, uid)| *uid == self.metadata.uid).map(|(connection, _)| connection);
        bound.unwrap_or(&self.spec.connection_ref.name)
    }
}

impl ApiName {
    /// An API by its name.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }
}
