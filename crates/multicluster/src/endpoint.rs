//! Endpoints: where objects are listed and watched.

use std::fmt;
use std::sync::Arc;

use carrick_client::{Client, Object};

use crate::name::{ClusterName, EndpointId};

/// Where objects of one or more clusters are listed and watched: a cluster's API server, or one shard of kcp.
///
/// The runtime opens one watch per kind and endpoint, however many clusters the endpoint serves.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// Which endpoint.
    pub id: EndpointId,
    /// Lists and watches the objects of all its clusters.
    pub client: Client,
    /// How to find out which cluster an object belongs to.
    pub key: ClusterKey,
}

impl Endpoint {
    /// An endpoint; the client may be made from a [`kube::Client`].
    pub fn new(id: impl Into<EndpointId>, client: impl Into<Client>, key: ClusterKey) -> Self {
        Self { id: id.into(), client: client.into(), key }
    }
}

/// A function that returns the cluster an object belongs to; objects of none are left out.
pub type KeyFn = Arc<dyn Fn(&Object) -> Option<ClusterName> + Send + Sync>;

/// How to find out which cluster an object belongs to.
#[derive(Clone)]
#[non_exhaustive]
pub enum ClusterKey {
    /// Every object of the endpoint belongs to this cluster.
    Fixed(ClusterName),
    /// This annotation holds the name; objects without it are left out.
    Annotation(&'static str),
    /// Every namespace is a cluster; cluster-wide objects are left out.
    Namespace,
    /// By a function.
    With(KeyFn),
}

impl ClusterKey {
    /// The annotation kcp puts on every object it serves for all workspaces at once.
    pub const KCP: Self = Self::Annotation(carrick_client::CLUSTER_ANNOTATION);

    /// By a function.
    pub fn with(key: impl Fn(&Object) -> Option<ClusterName> + Send + Sync + 'static) -> Self {
        Self::With(Arc::new(key))
    }

    /// The cluster an object belongs to.
    pub fn of(&self, object: &Object) -> Option<ClusterName> {
        match self {
            Self::Fixed(name) => Some(name.clone()),
            // The client has read this one already.
            Self::Annotation(carrick_client::CLUSTER_ANNOTATION) => ClusterName::new(object.cluster.clone()).ok(),
            Self::Annotation(key) => ClusterName::new(object.annotation(key)?).ok(),
            Self::Namespace => ClusterName::new(object.namespace.clone()).ok(),
            Self::With(key) => key(object),
        }
    }
}

impl fmt::Debug for ClusterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(name) => write!(f, "Fixed({name})"),
            Self::Annotation(key) => write!(f, "Annotation({key})"),
            Self::Namespace => f.write_str("Namespace"),
            Self::With(_) => f.write_str("With(..)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn keys_tell_the_cluster_of_an_object() {
        let object = |namespace: &str| {
            let annotations = json!({"kcp.io/cluster": "c", "other": "o"});
            let metadata = json!({"name": "n", "namespace": namespace, "annotations": annotations});
            Object::from_value(&json!({"metadata": metadata})).unwrap()
        };
        let cases = [
            (ClusterKey::KCP, "ns", Some("c")),
            (ClusterKey::Annotation("other"), "ns", Some("o")),
            (ClusterKey::Annotation("missing"), "ns", None),
            (ClusterKey::Fixed("f".parse().unwrap()), "", Some("f")),
            (ClusterKey::Namespace, "ns", Some("ns")),
            (ClusterKey::Namespace, "", None),
            (ClusterKey::with(|object| object.name.clone().try_into().ok()), "", Some("n")),
        ];
        for (key, namespace, wanted) in cases {
            assert_eq!(key.of(&object(namespace)).as_deref(), wanted, "{key:?}");
        }
    }
}
