//! From an object to its owners.

use std::any::TypeId;

use kube::Resource;
use kube::core::{ClusterResourceScope, NamespaceResourceScope};

use crate::request::Key;
use crate::store::FleetStore;

/// Whether objects of a kind live in namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// They do.
    Namespaced,
    /// They belong to the whole cluster.
    ClusterWide,
    /// The type does not say.
    Unknown,
}

impl Scope {
    /// The scope of a kind of kube.
    pub(crate) fn of<K: Resource<Scope: 'static>>() -> Self {
        let scope = TypeId::of::<K::Scope>();
        if scope == TypeId::of::<NamespaceResourceScope>() {
            Self::Namespaced
        } else if scope == TypeId::of::<ClusterResourceScope>() {
            Self::ClusterWide
        } else {
            Self::Unknown
        }
    }
}

/// Finds owners of one kind. Versions do not matter: an owner is the same object in all of them.
pub(crate) struct Owners<K> {
    pub(crate) group: String,
    pub(crate) kind: String,
    pub(crate) scope: Scope,
    /// Every owner counts, not just the one that controls the object.
    pub(crate) every: bool,
    /// Where owners are, to find out their scope.
    pub(crate) store: FleetStore<K>,
}

impl<K> Owners<K> {
    /// The owners of an object, in its own cluster.
    pub(crate) fn of<O: Resource>(&self, key: &Key, object: &O) -> Vec<Key> {
        let owners = object.meta().owner_references.iter().flatten();
        let ours = owners.filter(|owner| {
            let group = owner.api_version.split_once('/').map_or("", |(group, _)| group);
            owner.kind == self.kind && group == self.group && (self.every || owner.controller == Some(true))
        });
        ours.map(|owner| self.key(key, &owner.name)).collect()
    }

    fn key(&self, object: &Key, name: &str) -> Key {
        let is_there = |namespace: &str| self.store.get(&object.cluster, namespace, name).is_some();
        let cluster_wide = match self.scope {
            Scope::Namespaced => false,
            Scope::ClusterWide => true,
            Scope::Unknown => !is_there(&object.namespace) && is_there(""),
        };
        let namespace = if cluster_wide { "".into() } else { object.namespace.clone() };
        Key::new(object.cluster.clone(), namespace, name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::apps::v1::Deployment;
    use k8s_openapi::api::core::v1::{ConfigMap, Node};
    use kube::core::DynamicObject;
    use serde_json::json;

    fn child(owners: &serde_json::Value) -> ConfigMap {
        serde_json::from_value(json!({"metadata": {"name": "x", "namespace": "ns", "ownerReferences": owners}}))
            .unwrap()
    }

    #[test]
    fn scopes_come_from_types() {
        assert_eq!(Scope::of::<Deployment>(), Scope::Namespaced);
        assert_eq!(Scope::of::<Node>(), Scope::ClusterWide);
        assert_eq!(Scope::of::<DynamicObject>(), Scope::Unknown);
    }

    #[test]
    fn owners_are_found_by_group_and_kind_in_the_same_cluster() {
        let owner = |version: &str, kind: &str, name: &str, controller: bool| json!({"apiVersion": version, "kind": kind, "name": name, "uid": "u", "controller": controller});
        let owners = json!([
            owner("apps/v1", "Deployment", "controls", true),
            owner("apps/v1beta9", "Deployment", "controls-old", true),
            owner("apps/v1", "Deployment", "owns", false),
            owner("apps/v1", "StatefulSet", "other-kind", true),
            owner("v1", "Deployment", "other-group", true),
        ]);
        let key = Key::new("c".parse().unwrap(), "ns", "x");
        let cases = [
            (Scope::Namespaced, false, vec!["ns/controls", "ns/controls-old"]),
            (Scope::Namespaced, true, vec!["ns/controls", "ns/controls-old", "ns/owns"]),
            (Scope::ClusterWide, false, vec!["/controls", "/controls-old"]),
            (Scope::Unknown, false, vec!["ns/controls", "ns/controls-old"]),
        ];
        for (scope, every, wanted) in cases {
            let store = FleetStore::<Deployment>::typed();
            let owners_of = Owners { group: "apps".into(), kind: "Deployment".into(), scope, every, store };
            let found = owners_of.of(&key, &child(&owners));
            let found: Vec<String> = found.iter().map(|key| format!("{}/{}", key.namespace, key.name)).collect();
            assert_eq!(found, wanted, "{scope:?} {every}");
        }
    }
}
