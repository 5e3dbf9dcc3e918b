//! What there is of v2 on this cluster.

use carrick_bind_api::core::roles::of_bindings;
use carrick_bind_api::core::{BINDING, Binding, BindingSpec, CLUSTER_BINDING, CONNECTION, ClusterBinding, Connection};
use carrick_bind_api::install;
use carrick_bind_api::kinds::Kind;
use carrick_bind_api::v1alpha2::SecretKeyReference;
use carrick_client::{Client, ListOptions};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{V2Error, resource};

/// What there is of v2 on this cluster.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    pub connections: Vec<Connection>,
    pub cluster_bindings: Vec<ClusterBinding>,
    pub bindings: Vec<Binding>,
}

impl Known {
    /// Reads it; nothing if the kinds are not served.
    pub async fn read(client: &Client) -> Result<Self, V2Error> {
        Ok(Self {
            connections: all(client, CONNECTION).await?,
            cluster_bindings: all(client, CLUSTER_BINDING).await?,
            bindings: all(client, BINDING).await?,
        })
    }

    pub fn connection(&self, name: &str) -> Option<&Connection> {
        self.connections.iter().find(|it| it.metadata.name == name)
    }

    /// The bindings that list an API, each with its kind and name, but for the ClusterBinding of this name.
    pub fn others_that_list(&self, api: &str, but: &str) -> Vec<String> {
        let lists = |spec: &BindingSpec| spec.apis.iter().any(|it| it.name == api);
        let cluster = self.cluster_bindings.iter().filter(|it| it.metadata.name != but && lists(&it.spec));
        let cluster = cluster.map(|it| format!("ClusterBinding {}", it.metadata.name));
        let own = self.bindings.iter().filter(|it| lists(&it.spec));
        cluster.chain(own.map(|it| format!("Binding {}/{}", it.metadata.namespace, it.metadata.name))).collect()
    }

    /// The roles that the konnector needs for all of it, and for what is about to be written: a binding with its namespace, a Connection's Secret.
    pub fn roles(
        &self,
        written: Option<(Option<&str>, &BindingSpec)>,
        secret: Option<SecretKeyReference>,
    ) -> Vec<Value> {
        let mut specs: Vec<(Option<&str>, &BindingSpec)> =
            self.cluster_bindings.iter().map(|it| (None, &it.spec)).collect();
        specs.extend(self.bindings.iter().map(|it| (Some(it.metadata.namespace.as_str()), &it.spec)));
        specs.extend(written);
        let mut secrets: Vec<SecretKeyReference> = self.connections.iter().map(Connection::secret).collect();
        secrets.extend(secret);
        of_bindings(&specs, &secrets, &install::subject())
    }
}

async fn all<K: DeserializeOwned>(client: &Client, kind: Kind) -> Result<Vec<K>, V2Error> {
    let what = || format!("{}.{}", kind.plural, kind.group);
    match client.list(&resource(kind), None, &ListOptions::default()).await {
        Err(error) if error.is_not_found() => Ok(Vec::new()),
        Err(source) => Err(V2Error::Server { what: what(), source }),
        Ok(found) => {
            let read = found.into_iter().map(serde_json::from_value).collect::<Result<Vec<K>, _>>();
            read.map_err(|error| V2Error::Unreadable { what: what(), problem: error.to_string() })
        }
    }
}
