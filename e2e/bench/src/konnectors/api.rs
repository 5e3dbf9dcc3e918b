//! Which contract is measured, and what is different about it.

use carrick_bind_api::core::{CLUSTER_BINDING, CONNECTION, crds};
use carrick_e2e_stage::contract::{Contract, apply, kind};
use carrick_e2e_stage::kinds;
use carrick_e2e_stage::stage::condition;
use serde_json::{Value, json};

/// Name of the Connection, of its Secret and of the ClusterBinding.
const NAME: &str = "west";
/// Where the Secret is.
const NAMESPACE: &str = "kbind";

/// Which contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Api {
    /// kube-bind 0.8, with a contract as a backend leaves it
    #[value(name = "0.8")]
    Old,
    /// kube-bind v2: a Connection and a ClusterBinding
    #[value(name = "v2")]
    V2,
}

impl Api {
    /// What is added to the names of figures.
    pub fn suffix(self) -> &'static str {
        if self == Self::V2 { " v2" } else { "" }
    }

    /// The writes of one object.
    pub fn writes(self) -> &'static str {
        if self == Self::V2 { "two writes" } else { "three writes" }
    }

    /// The name of a copy.
    pub fn copy_name(self, name: &str) -> String {
        if self == Self::V2 { name.to_owned() } else { Contract::copy_name(name) }
    }

    /// Sets the provider up.
    pub async fn offer(self, contract: &Contract<'_>) -> anyhow::Result<()> {
        if self == Self::Old {
            return contract.offer().await;
        }
        let mut crd = contract.crd();
        crd["metadata"]["labels"] = json!({ "core.kbind.io/exported": "true" });
        contract.install(&contract.provider, &crd).await?;
        for crd in crds::all() {
            contract.install(&contract.consumer, &crd).await?;
        }
        Ok(())
    }

    /// Binds, while a konnector runs, and waits until it is done.
    pub async fn bind(self, contract: &Contract<'_>) -> anyhow::Result<()> {
        if self == Self::Old {
            return contract.bind().await.map(drop);
        }
        let api = format!("sheriffs.{}", contract.group);
        apply(&contract.consumer, &kinds::secrets(), &contract.secret(NAMESPACE, NAME)).await?;
        let connection = json!({ "apiVersion": CONNECTION.api_version(), "kind": CONNECTION.kind, "metadata": { "name": NAME },
            "spec": { "kubeconfigSecretRef": { "namespace": NAMESPACE, "name": NAME }, "schema": { "source": "CRD" } } });
        apply(&contract.consumer, &kind(CONNECTION), &connection).await?;
        let binding = json!({ "apiVersion": CLUSTER_BINDING.api_version(), "kind": CLUSTER_BINDING.kind, "metadata": { "name": NAME },
            "spec": { "connectionRef": { "name": NAME }, "apis": [{ "name": api }] } });
        apply(&contract.consumer, &kind(CLUSTER_BINDING), &binding).await?;
        for (kind, name, wanted) in
            [(kind(CLUSTER_BINDING), NAME, "Ready"), (kinds::crds(), api.as_str(), "Established")]
        {
            let at = (&contract.consumer, &kind, None, name);
            contract.is(name, at, |it| condition(it, wanted)["status"] == "True").await?;
        }
        Ok(())
    }

    /// Whether a source is placed as far as it tells itself.
    pub fn is_traced(self, source: &Value) -> bool {
        let metadata = &source["metadata"];
        match self {
            Self::Old => metadata["annotations"]["kube-bind.io/provider-uid"].is_string(),
            Self::V2 => {
                metadata["finalizers"].as_array().is_some_and(|all| all.iter().any(|it| it == "core.kbind.io/syncer"))
            }
        }
    }
}
