//! What of the service cluster an order may lead to. Consumers write the fields that names are made of, and the agent reads and writes with
//! its own rights: so it is the rules that have to say what a consumer may reach.

use std::collections::BTreeSet;
use std::sync::Arc;

use carrick_kcp::token::CREDENTIAL_SECRETS;
use serde_json::Value;

use super::is_secret;
use crate::api::Access;

/// What is in the namespaces with this prefix belongs to the cluster itself.
const OF_CLUSTER: &str = "kube-";

/// Namespaces of the service cluster that nothing leads to unless a PublishedResource names them literally: those of the cluster, the
/// agent's own, and those that the provider lists.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reserved {
    listed: Arc<BTreeSet<String>>,
}

impl Reserved {
    /// The namespace of the agent and those that are listed; one that ends with `*` stands for all that begin like it.
    pub fn new(own: &str, listed: &[String]) -> Self {
        let all = listed.iter().map(String::as_str).chain([own]).filter(|name| !name.is_empty());
        Self { listed: Arc::new(all.map(str::to_owned).collect()) }
    }

    /// Whether a namespace is one of them, and no literal in the rules.
    pub fn refuses(&self, namespace: &str, literal: Option<&str>) -> bool {
        let is_listed = |listed: &String| match listed.strip_suffix('*') {
            Some(beginning) => namespace.starts_with(beginning),
            None => namespace == listed,
        };
        literal != Some(namespace) && (namespace.starts_with(OF_CLUSTER) || self.listed.iter().any(is_listed))
    }
}

/// What one order, and one workspace, may take of the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// Names that one entry may yield for one order.
    pub names: usize,
    /// Related objects of one order, of all entries together.
    pub objects: usize,
    /// Bytes of the orders of one workspace that are kept in memory, and as many of their related objects.
    pub cached_bytes: usize,
    /// Orders of one workspace that are reconciled at once, each with one request under way.
    pub in_flight: usize,
    /// Writes of one object in a minute.
    pub writes: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Self { names: 1000, objects: 1000, cached_bytes: 32 << 20, in_flight: 32, writes: 600 }
    }
}

/// Why an object of the service cluster is not handed to a consumer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Denial {
    /// It is not in the namespace of the copy.
    Elsewhere,
    /// It does not belong to the copy.
    NotOwned,
}

/// Whether an entry may hand out an object of the service cluster. `given` says that the provider alone determines its name.
pub fn denies(access: Option<Access>, object: &Value, copy: &Value, given: bool) -> Option<Denial> {
    let is_beside = is_in_namespace_of(copy, object["metadata"]["namespace"].as_str().unwrap_or_default());
    match access {
        None | Some(Access::Any) => None,
        Some(Access::Namespace) => (!is_beside).then_some(Denial::Elsewhere),
        Some(Access::Owned) => (!(belongs(object, copy) || given && is_beside)).then_some(Denial::NotOwned),
    }
}

/// Whether an entry may place objects in a namespace of the service cluster.
pub fn may_place_in(access: Option<Access>, namespace: &str, copy: &Value) -> bool {
    matches!(access, None | Some(Access::Any)) || is_in_namespace_of(copy, namespace)
}

/// Cluster-scoped objects are in nobody's namespace.
fn is_in_namespace_of(copy: &Value, namespace: &str) -> bool {
    !namespace.is_empty() && copy["metadata"]["namespace"] == namespace
}

/// Whether an object says that it belongs to a copy: by an owner reference, or by a label with the copy's UID.
fn belongs(object: &Value, copy: &Value) -> bool {
    let Some(uid) = copy["metadata"]["uid"].as_str().filter(|uid| !uid.is_empty()) else { return false };
    let owners = object["metadata"]["ownerReferences"].as_array();
    let labels = object["metadata"]["labels"].as_object();
    owners.into_iter().flatten().any(|owner| owner["uid"] == uid)
        || labels.into_iter().flatten().any(|(_, value)| value == uid)
}

/// The type of a Secret that gives access to a cluster, given the groups and plurals of both sides.
pub fn credential<'a>(object: &'a Value, kinds: [(&str, &str); 2]) -> Option<&'a str> {
    let type_ = object["type"].as_str().filter(|type_| CREDENTIAL_SECRETS.contains(type_))?;
    kinds.iter().any(|(group, plural)| is_secret(group, plural)).then_some(type_)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_a_literal_leads_into_a_reserved_namespace() {
        let reserved = Reserved::new("agent", &["vault".to_owned(), "openshift-*".to_owned()]);
        for (namespace, refused) in [
            ("agent", true),
            ("kube-system", true),
            ("kube-public", true),
            ("vault", true),
            ("openshift-config", true),
            ("agents", false),
            ("vaults", false),
            ("kubernetes", false),
            ("default", false),
        ] {
            assert_eq!(reserved.refuses(namespace, None), refused, "{namespace}");
            assert_eq!(reserved.refuses(namespace, Some("elsewhere")), refused, "{namespace}");
            assert!(!reserved.refuses(namespace, Some(namespace)), "{namespace}");
        }
        assert!(!Reserved::new("", &[]).refuses("", None), "without a namespace there is nothing to reserve");
    }

    #[test]
    fn each_access_hands_out_what_it_says() {
        use Denial::{Elsewhere, NotOwned};
        let copy = json!({"metadata": {"name": "c", "namespace": "ns", "uid": "u"}});
        let plain = |namespace: &str| json!({"metadata": {"name": "s", "namespace": namespace}});
        let mut owned = plain("other");
        owned["metadata"]["ownerReferences"] = json!([{"uid": "x"}, {"uid": "u"}]);
        let mut labelled = plain("other");
        labelled["metadata"]["labels"] = json!({"a": "b", "of": "u"});
        let mut strange = plain("ns");
        strange["metadata"]["ownerReferences"] = json!([{"uid": "v"}]);
        strange["metadata"]["annotations"] = json!({"of": "u"});
        let cluster_scoped = json!({"metadata": {"name": "s"}});
        for (access, object, given, wanted) in [
            (None, plain("other"), false, None),
            (Some(Access::Any), plain("other"), false, None),
            (Some(Access::Namespace), plain("ns"), false, None),
            (Some(Access::Namespace), plain("other"), true, Some(Elsewhere)),
            (Some(Access::Namespace), owned.clone(), false, Some(Elsewhere)),
            (Some(Access::Namespace), cluster_scoped.clone(), true, Some(Elsewhere)),
            (Some(Access::Owned), owned, false, None),
            (Some(Access::Owned), labelled, false, None),
            (Some(Access::Owned), plain("ns"), true, None),
            (Some(Access::Owned), plain("ns"), false, Some(NotOwned)),
            (Some(Access::Owned), plain("other"), true, Some(NotOwned)),
            (Some(Access::Owned), strange, false, Some(NotOwned)),
            (Some(Access::Owned), cluster_scoped, true, Some(NotOwned)),
        ] {
            assert_eq!(denies(access, &object, &copy, given), wanted, "{access:?} {object} {given}");
        }
        let nobody = json!({"metadata": {"namespace": "ns"}});
        let orphan = json!({"metadata": {"namespace": "ns", "ownerReferences": [{"name": "n"}]}});
        assert_eq!(denies(Some(Access::Owned), &orphan, &nobody, false), Some(NotOwned), "no UID is no owner");
    }

    #[test]
    fn objects_are_placed_beside_the_copy_unless_any_place_is_meant() {
        let copy = json!({"metadata": {"namespace": "ns"}});
        for (access, namespace, wanted) in [
            (None, "other", true),
            (Some(Access::Any), "other", true),
            (Some(Access::Namespace), "ns", true),
            (Some(Access::Namespace), "other", false),
            (Some(Access::Owned), "ns", true),
            (Some(Access::Owned), "other", false),
            (Some(Access::Owned), "", false),
        ] {
            assert_eq!(may_place_in(access, namespace, &copy), wanted, "{access:?} {namespace}");
        }
    }

    #[test]
    fn tokens_are_credentials_and_certificates_are_not() {
        let secrets = [("", "secrets"); 2];
        let of = |type_: &str| json!({"type": type_});
        for type_ in CREDENTIAL_SECRETS {
            assert_eq!(credential(&of(type_), secrets), Some(type_));
            assert_eq!(credential(&of(type_), [("", "configmaps"), ("", "secrets")]), Some(type_), "it becomes one");
            assert_eq!(credential(&of(type_), [("a.io", "secrets"); 2]), None, "it is another kind");
        }
        assert_eq!(credential(&of("kubernetes.io/tls"), secrets), None);
        assert_eq!(credential(&json!({}), secrets), None);
    }
}
