//! Namespaces of many workspaces: which are asked for, and which are given up.
//!
//! An APIServiceNamespace of this kind says in annotations which workspace and namespace it stands for. It is given up, and the provider then
//! deletes its namespace with all copies in it, only if nothing here is in it any more and its end was seen for certain.

use std::collections::{BTreeMap, BTreeSet};

use carrick_bind_api::names::{CONSUMER_CLUSTER_ANNOTATION, CONSUMER_NAMESPACE_ANNOTATION, Owner};
use carrick_bind_api::v1alpha2::ApiServiceNamespace;

use super::tenants::FlatKeys;

/// What namespaces of many workspaces are decided on.
#[derive(Clone, Debug)]
pub struct TenantNamespacesView<'a> {
    /// The APIServiceNamespaces of the contract.
    pub assigned: &'a [ApiServiceNamespace],
    /// How workspaces are told apart.
    pub flat: &'a FlatKeys,
    /// Logical cluster and namespace of the objects that have to travel, by flat name.
    pub needed: &'a BTreeMap<String, (String, String)>,
    /// Flat names of namespaces that may be gone, as far as watches tell.
    pub gone: &'a BTreeSet<String>,
}

/// What to do about namespaces of many workspaces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TenantNamespacesPlan {
    /// What to ask the provider for: flat name, logical cluster and namespace.
    pub ask_for: Vec<(String, String, String)>,
    /// APIServiceNamespaces to delete, by name and uid.
    pub give_up: Vec<(String, String)>,
    /// Namespaces that are not served: those that the provider wants, which belong to no workspace, and those that say something else than they should.
    pub refused: Vec<String>,
}

/// Logical cluster and namespace that APIServiceNamespaces stand for, by their names.
pub fn tenant_namespaces(all: &[ApiServiceNamespace], flat: &FlatKeys) -> BTreeMap<String, (String, String)> {
    let read = |object: &ApiServiceNamespace| Some((object.metadata.name.clone(), tenant(object, flat)?));
    all.iter().filter_map(read).collect()
}

/// Logical cluster and namespace that an APIServiceNamespace stands for. One that says something else than its name is not believed.
fn tenant(object: &ApiServiceNamespace, flat: &FlatKeys) -> Option<(String, String)> {
    let cluster = object.metadata.annotation(CONSUMER_CLUSTER_ANNOTATION)?;
    let namespace = object.metadata.annotation(CONSUMER_NAMESPACE_ANNOTATION)?;
    (flat.namespace(cluster, namespace) == object.metadata.name).then(|| (cluster.to_owned(), namespace.to_owned()))
}

/// Decides about namespaces of many workspaces.
pub fn decide(view: &TenantNamespacesView<'_>) -> TenantNamespacesPlan {
    let mut plan = TenantNamespacesPlan::default();
    for object in view.assigned.iter().filter(|object| !object.metadata.is_deleting()) {
        let name = &object.metadata.name;
        let known = tenant(object, view.flat);
        let needed = view.needed.get(name);
        if object.owner() == Owner::Provider || known.is_none() || needed.is_some() && needed != known.as_ref() {
            plan.refused.push(name.clone());
        } else if needed.is_none() && view.gone.contains(name) {
            plan.give_up.push((name.clone(), object.metadata.uid.clone()));
        }
    }
    let known: BTreeSet<&str> = view.assigned.iter().map(|object| object.metadata.name.as_str()).collect();
    let missing = view.needed.iter().filter(|(flat, _)| !known.contains(flat.as_str()));
    plan.ask_for =
        missing.map(|(flat, (cluster, namespace))| (flat.clone(), cluster.clone(), namespace.clone())).collect();
    plan
}

#[cfg(test)]
mod tests {
    use super::*;
    use carrick_bind_api::names::OWNER_LABEL;

    fn flat() -> FlatKeys {
        FlatKeys::new("c-1")
    }

    fn assigned(cluster: &str, namespace: &str) -> ApiServiceNamespace {
        let mut object = ApiServiceNamespace::new(flat().namespace(cluster, namespace));
        object.metadata.annotate(CONSUMER_CLUSTER_ANNOTATION, cluster);
        object.metadata.annotate(CONSUMER_NAMESPACE_ANNOTATION, namespace);
        object
    }

    fn needed(all: &[(&str, &str)]) -> BTreeMap<String, (String, String)> {
        let entry = |(cluster, namespace): &(&str, &str)| {
            (flat().namespace(cluster, namespace), ((*cluster).to_owned(), (*namespace).to_owned()))
        };
        all.iter().map(entry).collect()
    }

    fn ask(
        all: &[ApiServiceNamespace],
        needed: &BTreeMap<String, (String, String)>,
        gone: &[String],
    ) -> TenantNamespacesPlan {
        let gone = gone.iter().cloned().collect();
        decide(&TenantNamespacesView { assigned: all, flat: &flat(), needed, gone: &gone })
    }

    #[test]
    fn each_workspace_gets_a_namespace_of_its_own_once() {
        let needed = needed(&[("one", "team"), ("two", "team")]);
        let plan = ask(&[], &needed, &[]);
        assert_eq!(plan.ask_for.len(), 2);
        let all = [assigned("one", "team"), assigned("two", "team")];
        assert_eq!(ask(&all, &needed, &[]), TenantNamespacesPlan::default());
        assert_eq!(tenant_namespaces(&all, &flat()), needed);
    }

    #[test]
    fn only_what_is_gone_for_certain_and_empty_is_given_up() {
        let all = [assigned("one", "team"), assigned("two", "team"), assigned("one", "kept")];
        let gone: Vec<String> = all.iter().map(|object| object.metadata.name.clone()).take(2).collect();
        let plan = ask(&all, &needed(&[("two", "team")]), &gone);
        assert_eq!(plan.give_up, [(gone[0].clone(), String::new())]);
        assert_eq!(plan.refused, Vec::<String>::new());
    }

    #[test]
    fn what_says_something_else_than_its_name_is_not_believed() {
        let mut forged = assigned("one", "team");
        forged.metadata.annotate(CONSUMER_CLUSTER_ANNOTATION, "two");
        let mut theirs = assigned("three", "team");
        theirs.metadata.set_label(OWNER_LABEL, Owner::Provider.label());
        let all = [forged, theirs, ApiServiceNamespace::new("wild-west")];
        let names: Vec<String> = all.iter().map(|object| object.metadata.name.clone()).collect();
        let plan = ask(&all, &BTreeMap::new(), &names);
        assert_eq!((plan.refused, plan.give_up), (names, Vec::new()));
        assert_eq!(tenant_namespaces(&all[..1], &flat()), BTreeMap::new());
    }
}
