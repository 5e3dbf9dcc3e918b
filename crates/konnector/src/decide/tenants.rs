//! Tenants: how objects of many workspaces keep apart within one contract.
//!
//! A contract knows one consumer, and its mappings know a namespace and a name. If that consumer is an APIExport, objects of all workspaces that bind
//! it travel through the same contract, so the workspace has to be part of the key. It becomes part of what the provider sees anyway:
//!
//! ```text
//!   workspace, namespace/name ──▶ <share>-<namespace>/name    the APIServiceNamespace is called <share>-<namespace>
//!   workspace, name           ──▶ <share>-<name>              and then mapped by isolation: prefixed, in the contract namespace, or as it is
//! ```
//!
//! The share is a hash of the workspace's logical cluster, ten digits long: the provider puts `<contract>-` in front, and a namespace has 63
//! characters at most. What would be too long loses its end to a hash of the whole. Keys of this kind, called flat, do not lead back by themselves:
//! every copy and every APIServiceNamespace says in annotations which workspace, namespace and name it stands for, and those decide. So two
//! workspaces whose flat keys were the same by chance would be noticed, not mixed.

use carrick_bind_api::carrick_kcp::hash::b36s224;
use carrick_bind_api::copies::annotation;
use carrick_bind_api::mapping::ObjectKey;
use carrick_bind_api::names::{CONSUMER_CLUSTER_ANNOTATION, CONSUMER_NAME_ANNOTATION, CONSUMER_NAMESPACE_ANNOTATION};
use serde_json::Value;

/// How many digits of a hash stand for a workspace.
const SHARE: usize = 10;
/// How many digits of a hash stand for what is left out.
const REST: usize = 8;
/// The longest name of a namespace.
const LONGEST_NAMESPACE: usize = 63;
/// The longest name of another object.
const LONGEST_NAME: usize = 253;

/// An object of a workspace.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Tenant {
    /// The logical cluster of the workspace.
    pub cluster: String,
    /// Namespace and name there.
    pub key: ObjectKey,
}

/// Makes flat keys for one contract.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlatKeys {
    /// How much of a name is left beside `<contract>-`.
    taken: usize,
}

impl FlatKeys {
    /// Flat keys for a contract.
    pub fn new(contract: &str) -> Self {
        Self { taken: contract.len() + 1 }
    }

    /// The flat key of an object.
    pub fn of(&self, cluster: &str, namespace: Option<&str>, name: &str) -> ObjectKey {
        match namespace {
            Some(namespace) => ObjectKey::namespaced(self.namespace(cluster, namespace), name),
            None => ObjectKey::cluster(bounded(cluster, name, LONGEST_NAME.saturating_sub(self.taken))),
        }
    }

    /// The flat name of a namespace.
    pub fn namespace(&self, cluster: &str, namespace: &str) -> String {
        bounded(cluster, namespace, LONGEST_NAMESPACE.saturating_sub(self.taken))
    }
}

/// The part of a flat key that stands for the workspace.
pub fn share_of(key: &ObjectKey) -> &str {
    let flat = key.namespace.as_deref().unwrap_or(&key.name);
    flat.get(..SHARE).unwrap_or(flat)
}

/// The hash that stands for a workspace.
fn share(cluster: &str) -> String {
    let mut hash = b36s224(cluster);
    hash.truncate(SHARE);
    hash
}

fn bounded(cluster: &str, text: &str, longest: usize) -> String {
    let share = share(cluster);
    let whole = format!("{share}-{text}");
    if whole.len() <= longest {
        return whole;
    }
    let mut hash = b36s224(text);
    hash.truncate(REST);
    let room = longest.saturating_sub(SHARE + REST + 2);
    let kept: String = text.chars().take(room).collect();
    let kept = kept.trim_end_matches(['-', '.']);
    if kept.is_empty() { format!("{share}-{hash}") } else { format!("{share}-{kept}-{hash}") }
}

impl Tenant {
    /// The object that a copy on the provider says it stands for.
    pub fn of_copy(copy: &Value) -> Option<Self> {
        let cluster = annotation(copy, CONSUMER_CLUSTER_ANNOTATION)?.to_owned();
        let name = annotation(copy, CONSUMER_NAME_ANNOTATION).or_else(|| copy["metadata"]["name"].as_str())?.to_owned();
        let namespace = annotation(copy, CONSUMER_NAMESPACE_ANNOTATION).map(str::to_owned);
        Some(Self { cluster, key: ObjectKey { namespace, name } })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn equal_names_of_two_workspaces_stay_apart_and_one_share_stands_for_each() {
        let flat = FlatKeys::new("kube-bind-37p3oxx6sh4fd");
        let (one, two) = (flat.of("one", Some("team"), "db"), flat.of("two", Some("team"), "db"));
        assert_eq!((one.name.as_str(), two.name.as_str()), ("db", "db"));
        assert_ne!(one.namespace, two.namespace);
        assert_eq!(share_of(&one), share_of(&flat.of("one", None, "db")));
        assert_eq!(share_of(&one).len(), SHARE);
        assert!(
            one.namespace.as_deref().is_some_and(|namespace| namespace.ends_with("-team")),
            "people read it: {one}"
        );
    }

    #[test]
    fn a_copy_says_what_it_stands_for() {
        let copy = json!({"metadata": {"name": "x-db", "annotations": {"kube-bind.io/consumer-cluster": "c",
            "kube-bind.io/consumer-name": "db", "kube-bind.io/consumer-namespace": ""}}});
        let wanted = Tenant { cluster: "c".to_owned(), key: ObjectKey::cluster("db") };
        assert_eq!(Tenant::of_copy(&copy), Some(wanted));
        assert_eq!(Tenant::of_copy(&json!({"metadata": {"name": "db"}})), None);
    }

    proptest! {
        #[test]
        fn flat_keys_fit_beside_the_contract_and_differ(
            contract in "[a-z][a-z0-9-]{0,35}[a-z0-9]", cluster in "[a-z0-9]{1,20}", other in "[a-z0-9]{1,20}",
            namespace in "[a-z0-9]([a-z0-9-]{0,60}[a-z0-9])?", another in "[a-z0-9]([a-z0-9-]{0,60}[a-z0-9])?",
            name in "[a-z0-9]([a-z0-9.-]{0,250}[a-z0-9])?",
        ) {
            let flat = FlatKeys::new(&contract);
            let assigned = format!("{contract}-{}", flat.namespace(&cluster, &namespace));
            prop_assert!(assigned.len() <= 63 && !assigned.ends_with('-'), "{}", assigned);
            let prefixed = format!("{contract}-{}", flat.of(&cluster, None, &name).name);
            prop_assert!(prefixed.len() <= 253, "{}", prefixed);
            let same = (&cluster, &namespace) == (&other, &another);
            prop_assert_eq!(flat.namespace(&cluster, &namespace) == flat.namespace(&other, &another), same);
        }
    }
}
