//! Connection.

use carrick_kcp::condition::Condition;
use carrick_kcp::object::{kind, object, words};

use super::kinds::CONNECTION;
use crate::v1alpha2::SecretKeyReference;

words! {
    /// Where schemas come from.
    SchemaSource {
        /// From CRDs if the provider has some with the label, else from its OpenAPI documents.
        Auto,
        /// From CRDs with the label.
        CRD,
        /// From discovery and OpenAPI documents.
        OpenAPI,
    }
}

words! {
    /// Which CRDs are installed.
    PullPolicy {
        /// Those of APIs that a binding lists.
        Bound,
        /// Those of all exported APIs.
        All,
        /// None: somebody else installs them.
        None,
    }
}

words! {
    /// Whether installed CRDs follow those of the provider.
    UpdatePolicy {
        /// They do.
        Always,
        /// They stay as they were installed.
        Once,
    }
}

kind! {
    /// A Connection is the link to one provider.
    Connection = CONNECTION {
        /// Where the provider is, and how its schemas are used.
        spec: ConnectionSpec => "spec",
        /// What the konnector has found.
        status: ConnectionStatus => "status",
    }
}

object! {
    /// Where the provider is, and how its schemas are used.
    ConnectionSpec {
        /// The kubeconfig of the provider. It cannot be changed.
        kubeconfig_secret_ref: SecretKeyReference => "kubeconfigSecretRef",
        /// How schemas are used.
        schema: SchemaPolicy => "schema",
        /// Whether everything that is exported is bound.
        auto_bind: bool => "autoBind",
    }
}

object! {
    /// How schemas are used.
    SchemaPolicy {
        /// Where they come from; Auto if nothing is said.
        source: SchemaSource => "source",
        /// Which are installed; Bound if nothing is said.
        pull_policy: PullPolicy => "pullPolicy",
        /// Whether they follow; Always if nothing is said.
        update_policy: UpdatePolicy => "updatePolicy",
    }
}

object! {
    /// What the konnector has found.
    ConnectionStatus {
        /// Who the provider is. It stays once it is set.
        remote_cluster_uid: String => "remoteClusterUID",
        /// Who the consumer is. It stays once it is set.
        local_cluster_uid: String => "localClusterUID",
        /// Where schemas come from: CRD or OpenAPI.
        active_schema_source: String => "activeSchemaSource",
        /// What the provider offers, by name.
        exported_apis: Vec<ExportedApi> => "exportedAPIs",
        /// Conditions.
        conditions: Vec<Condition> => "conditions",
    }
}

object! {
    /// An API that a provider offers.
    ExportedApi {
        /// `<plural>.<group>`.
        name: String => "name",
        /// API group.
        group: String => "group",
        /// Plural name.
        resource: String => "resource",
        /// Namespaced or Cluster.
        scope: String => "scope",
        /// The versions that are served.
        versions: Vec<String> => "versions",
    }
}

impl Connection {
    /// The Secret with the kubeconfig, with the default of its key.
    pub fn secret(&self) -> SecretKeyReference {
        let mut at = self.spec.kubeconfig_secret_ref.clone();
        if at.key.is_empty() {
            crate::names::KUBECONFIG_KEY.clone_into(&mut at.key);
        }
        at
    }

    /// Whether the provider offers an API.
    pub fn exports(&self, name: &str) -> bool {
        self.status.exported_apis.iter().any(|api| api.name == name)
    }
}

impl ExportedApi {
    /// An API by name, group, plural, scope and versions.
    pub fn new(group: &str, resource: &str, scope: &str, versions: Vec<String>) -> Self {
        Self {
            name: format!("{resource}.{group}"),
            group: group.to_owned(),
            resource: resource.to_owned(),
            scope: scope.to_owned(),
            versions,
            ..Self::default()
        }
    }
}
