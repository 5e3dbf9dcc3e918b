//! Namespaces: which ones the provider is asked for, which ones it wants to be there, which ones are given up.

use std::collections::{BTreeMap, BTreeSet};

use carrick_bind_api::carrick_kcp::meta::ObjectMeta;
use carrick_bind_api::copies::{annotation, labelled_owner};
use carrick_bind_api::names::{CONTRACT_ANNOTATION, OWNER_LABEL, Owner, PROVIDER_WRITES_LABEL, is_system_namespace};
use carrick_bind_api::v1alpha2::ApiServiceNamespace;
use serde_json::{Value, json};

use super::Seen;

/// Whether a namespace of the consumer lets the provider of a contract write claimed objects into it: somebody here has labelled it, or it was made
/// for that provider.
pub fn allows_writes(namespace: &Value, contract: &str) -> bool {
    let label = namespace["metadata"]["labels"][PROVIDER_WRITES_LABEL].as_str();
    let is_made_for = || annotation(namespace, CONTRACT_ANNOTATION).is_none_or(|it| it == contract);
    label.is_some_and(|it| it == "true" || it == contract)
        || labelled_owner(namespace) == Some(Owner::Provider) && is_made_for()
}

/// What namespaces are decided on.
#[derive(Clone, Debug)]
pub struct NamespacesView<'a> {
    /// The APIServiceNamespaces of the contract.
    pub assigned: &'a [ApiServiceNamespace],
    /// All namespaces of the consumer, with their metadata. Without them nothing is given up.
    pub here: Seen<&'a BTreeMap<String, ObjectMeta>>,
    /// The namespaces in which the consumer has objects that have to travel.
    pub needed: &'a BTreeSet<String>,
    /// The contract.
    pub contract: &'a str,
}

/// What to do about namespaces.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NamespacesPlan {
    /// Namespaces to ask the provider for.
    pub ask_for: Vec<String>,
    /// Namespaces to create on the consumer.
    pub create: Vec<Value>,
    /// APIServiceNamespaces to delete, by name and uid: the consumer's namespace is gone.
    pub give_up: Vec<(String, String)>,
    /// Namespaces that the provider wants and does not get.
    pub refused: Vec<String>,
}

/// Decides about namespaces.
pub fn decide(view: &NamespacesView<'_>) -> NamespacesPlan {
    let mut plan = NamespacesPlan::default();
    let Some(here) = view.here.present() else { return plan };
    for assigned in view.assigned.iter().filter(|assigned| !assigned.metadata.is_deleting()) {
        let name = &assigned.metadata.name;
        match (here.get(name), assigned.owner()) {
            // The provider then deletes its namespace and all copies in it: only if nobody here needs it any more.
            (None, Owner::Consumer) if !view.needed.contains(name) => {
                plan.give_up.push((name.clone(), assigned.metadata.uid.clone()));
            }
            (Some(_), _) | (None, Owner::Consumer) => {}
            (None, Owner::Provider) if is_system_namespace(name) => plan.refused.push(name.clone()),
            (None, Owner::Provider) => plan.create.push(json!({
                "apiVersion": "v1", "kind": "Namespace",
                "metadata": {"name": name, "labels": {OWNER_LABEL: Owner::Provider.label()},
                    "annotations": {CONTRACT_ANNOTATION: view.contract}},
            })),
        }
    }
    let known: BTreeSet<&str> = view.assigned.iter().map(|assigned| assigned.metadata.name.as_str()).collect();
    let lives = |name: &&String| here.get(name.as_str()).is_some_and(|metadata| !metadata.is_deleting());
    plan.ask_for = view.needed.iter().filter(|name| !known.contains(name.as_str())).filter(lives).cloned().collect();
    plan
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assigned(name: &str, owner: Option<Owner>) -> ApiServiceNamespace {
        let mut object = ApiServiceNamespace::new(name);
        if let Some(owner) = owner {
            object.metadata.set_label(OWNER_LABEL, owner.label());
        }
        object
    }

    fn here(names: &[&str]) -> BTreeMap<String, ObjectMeta> {
        names.iter().map(|name| ((*name).to_owned(), ObjectMeta::named(*name))).collect()
    }

    fn needed(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn what_is_needed_is_asked_for_once() {
        let (here, needed) = (here(&["a", "b"]), needed(&["a", "b", "gone"]));
        let plan =
            decide(&NamespacesView { assigned: &[], here: Seen::Present(&here), needed: &needed, contract: "c-1" });
        assert_eq!(plan, NamespacesPlan { ask_for: vec!["a".to_owned(), "b".to_owned()], ..NamespacesPlan::default() });
        let assigned = [assigned("a", None), assigned("b", None)];
        let plan = decide(&NamespacesView {
            assigned: &assigned,
            here: Seen::Present(&here),
            needed: &needed,
            contract: "c-1",
        });
        assert_eq!(plan, NamespacesPlan::default());
    }

    #[test]
    fn a_namespace_is_given_up_only_if_it_is_certain_to_be_gone() {
        let assigned = [assigned("a", None), assigned("b", Some(Owner::Consumer)), assigned("used", None)];
        let (nothing, needed) = (here(&[]), needed(&["used"]));
        let view = |here| NamespacesView { assigned: &assigned, here, needed: &needed, contract: "c-1" };
        for unknown in [Seen::Unknown("timeout".to_owned()), Seen::Absent] {
            assert_eq!(decide(&view(unknown)), NamespacesPlan::default());
        }
        let gone = decide(&view(Seen::Present(&nothing))).give_up;
        assert_eq!(gone.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    }

    #[test]
    fn providers_get_namespaces_but_none_of_the_system() {
        let assigned = ["wild-west", "kube-system", "kube-bind"].map(|name| assigned(name, Some(Owner::Provider)));
        let (nothing, needed) = (here(&[]), needed(&[]));
        let plan = decide(&NamespacesView {
            assigned: &assigned,
            here: Seen::Present(&nothing),
            needed: &needed,
            contract: "c-1",
        });
        assert_eq!(plan.refused, ["kube-system", "kube-bind"]);
        assert_eq!(
            plan.create,
            [json!({"apiVersion": "v1", "kind": "Namespace",
                "metadata": {"name": "wild-west", "labels": {"kube-bind.io/owner": "provider"},
                    "annotations": {"kube-bind.io/cluster-namespace": "c-1"}}})]
        );
        assert!(plan.give_up.is_empty());
        let there = here(&["wild-west", "kube-system", "kube-bind"]);
        let plan = decide(&NamespacesView {
            assigned: &assigned,
            here: Seen::Present(&there),
            needed: &needed,
            contract: "c-1",
        });
        assert_eq!(plan, NamespacesPlan::default());
    }

    #[test]
    fn a_namespace_is_open_to_whom_its_label_names_and_to_whom_it_was_made_for() {
        let open = |metadata: Value| allows_writes(&json!({"metadata": metadata}), "c-1");
        assert!(!open(json!({"name": "argocd"})));
        for (value, is_open) in [("true", true), ("c-1", true), ("c-2", false), ("false", false)] {
            assert_eq!(open(json!({"labels": {"kube-bind.io/provider-writes": value}})), is_open, "{value}");
        }
        let made = json!({"kube-bind.io/owner": "provider"});
        assert!(open(json!({"labels": made})), "kube-bind's konnector does not say for whom");
        let for_whom =
            |contract: &str| json!({"labels": made, "annotations": {"kube-bind.io/cluster-namespace": contract}});
        assert!(open(for_whom("c-1")) && !open(for_whom("c-2")));
    }
}
