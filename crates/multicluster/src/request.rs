//! What is to be reconciled.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use kube::runtime::reflector::{Lookup, ObjectRef};

use crate::name::ClusterName;

/// A key of a [`crate::Queue`]: anything that belongs to a cluster.
pub trait HasCluster {
    /// The cluster; the queue is fair between these.
    fn cluster(&self) -> &ClusterName;
}

/// One object of one cluster, by names alone: the key of stores and queues.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// Cluster.
    pub cluster: ClusterName,
    /// Namespace; empty for cluster-wide objects.
    pub namespace: Arc<str>,
    /// Name.
    pub name: Arc<str>,
}

impl Key {
    /// The key of an object.
    pub fn new(cluster: ClusterName, namespace: impl Into<Arc<str>>, name: impl Into<Arc<str>>) -> Self {
        Self { cluster, namespace: namespace.into(), name: name.into() }
    }
}

impl HasCluster for Key {
    fn cluster(&self) -> &ClusterName {
        &self.cluster
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cluster://{}/{}/{}", self.cluster, self.namespace, self.name)
    }
}

/// One object of one cluster, as a reconciler of kind `K` gets it.
pub struct Request<K: Lookup> {
    /// Cluster.
    pub cluster: ClusterName,
    /// Kind, namespace and name.
    pub obj: ObjectRef<K>,
}

impl<K: Lookup> Request<K> {
    /// A request for an object of a cluster.
    pub fn new(cluster: ClusterName, obj: ObjectRef<K>) -> Self {
        Self { cluster, obj }
    }

    /// Names alone.
    pub fn key(&self) -> Key {
        let namespace = self.obj.namespace.as_deref().unwrap_or_default();
        Key::new(self.cluster.clone(), namespace, self.obj.name.as_str())
    }

    /// A request for the object of a key.
    pub fn from_key(key: &Key, dyntype: K::DynamicType) -> Self {
        let obj = ObjectRef::new_with(&key.name, dyntype);
        let obj = if key.namespace.is_empty() { obj } else { obj.within(&key.namespace) };
        Self { cluster: key.cluster.clone(), obj }
    }
}

impl<K: Lookup> Clone for Request<K>
where
    K::DynamicType: Clone,
{
    fn clone(&self) -> Self {
        Self { cluster: self.cluster.clone(), obj: self.obj.clone() }
    }
}

impl<K: Lookup> PartialEq for Request<K>
where
    K::DynamicType: PartialEq,
{
    fn eq(&self, other: &Self) -> bool {
        self.cluster == other.cluster && self.obj == other.obj
    }
}

impl<K: Lookup> Eq for Request<K> where K::DynamicType: Eq {}

impl<K: Lookup> Hash for Request<K>
where
    K::DynamicType: Hash,
{
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.cluster.hash(state);
        self.obj.hash(state);
    }
}

impl<K: Lookup> fmt::Display for Request<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.key().fmt(f)
    }
}

impl<K: Lookup> fmt::Debug for Request<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.key().fmt(f)
    }
}
