//! APIServiceNamespace.

use carrick_kcp::condition::Condition;
use carrick_kcp::object::{kind, object};

use crate::kinds::API_SERVICE_NAMESPACE;
use crate::names::{OWNER_LABEL, Owner};

kind! {
    /// An APIServiceNamespace assigns a namespace of the provider to the consumer namespace of its name.
    ApiServiceNamespace = API_SERVICE_NAMESPACE {
        /// There is nothing to be said.
        spec: ApiServiceNamespaceSpec => "spec",
        /// The assigned namespace.
        status: ApiServiceNamespaceStatus => "status",
    }
}

impl ApiServiceNamespace {
    /// Who wants the namespace: the consumer unless the label says otherwise.
    pub fn owner(&self) -> Owner {
        self.metadata.label(OWNER_LABEL).and_then(Owner::of_label).unwrap_or(Owner::Consumer)
    }
}

object! {
    /// There is nothing to be said.
    ApiServiceNamespaceSpec {}
}

object! {
    /// The assigned namespace.
    ApiServiceNamespaceStatus {
        /// Its name on the provider; empty as long as none is assigned.
        namespace: String => "namespace",
        /// Conditions (ours): why none is assigned.
        conditions: Vec<Condition> => "conditions",
    }
}
