//! Which rights on the service cluster a PublishedResource needs. Pure.

use super::crd::Crd;
use super::related::Related;
use crate::api::{Origin, PublishedResource};

/// Verbs needed to read objects.
pub const READ: &[&str] = &["get", "list", "watch"];
/// Verbs needed to maintain copies. Without `patch`, whole objects are updated.
pub const KEEP: &[&str] = &["get", "list", "watch", "create", "update", "delete"];
/// Those of them that may be granted for a single namespace.
const WRITE: &[&str] = &["create", "update", "delete"];
/// The same for copies that are written by server-side apply.
const KEEP_APPLIED: &[&str] = &["get", "list", "watch", "create", "update", "patch", "delete"];
const WRITE_APPLIED: &[&str] = &["create", "update", "patch", "delete"];

/// One right that is needed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NeededRight {
    /// API group; empty for core.
    pub group: String,
    /// Plural resource name, with the subresource behind a slash.
    pub resource: String,
    /// Only in this namespace.
    pub namespace: Option<String>,
    /// What must be allowed.
    pub verbs: &'static [&'static str],
    /// What it is for.
    pub why: String,
}

impl NeededRight {
    fn new(group: &str, resource: &str, verbs: &'static [&'static str], why: &str) -> Self {
        Self { group: group.to_owned(), resource: resource.to_owned(), namespace: None, verbs, why: why.to_owned() }
    }

    /// `<plural>.<group>`, as kubectl wants it.
    pub fn shown(&self) -> String {
        let (plural, subresource) = match self.resource.split_once('/') {
            Some((plural, subresource)) => (plural, format!("/{subresource}")),
            None => (self.resource.as_str(), String::new()),
        };
        let dot = if self.group.is_empty() { "" } else { "." };
        format!("{plural}{dot}{}{subresource}", self.group)
    }

    /// A message that names missing verbs, the consequence, and the rule that grants them, ready to paste.
    pub fn lacks(&self, verbs: &[&str]) -> String {
        let (role, within) = match &self.namespace {
            Some(namespace) => (format!("a Role in namespace {namespace}"), format!(" in namespace {namespace}")),
            None => ("a ClusterRole".to_owned(), String::new()),
        };
        format!(
            "the agent may not {} {}{within}, {}: {}; add to {role} of the agent: \
             - {{apiGroups: [\"{}\"], resources: [\"{}\"], verbs: [{}]}}",
            verbs.join(", "),
            self.shown(),
            self.why,
            consequence(verbs),
            self.group,
            self.resource,
            verbs.iter().map(|verb| format!("\"{verb}\"")).collect::<Vec<_>>().join(", "),
        )
    }
}

/// What does not work without these verbs, the worst first.
fn consequence(verbs: &[&str]) -> &'static str {
    let lacks = |verb: &str| verbs.contains(&verb);
    if lacks("list") || lacks("watch") || lacks("get") {
        "objects there cannot be read"
    } else if lacks("create") {
        "copies cannot be created there"
    } else if lacks("update") || lacks("patch") {
        "copies there cannot be updated"
    } else {
        "copies there cannot be deleted, so orders cannot be deleted either"
    }
}

/// All rights that the rules of a PublishedResource need for copies and related objects. Invalid rules are reported elsewhere.
pub fn needs(pr: &PublishedResource, crd: &Crd, apply: bool) -> Vec<NeededRight> {
    let (keep, write) = if apply { (KEEP_APPLIED, WRITE_APPLIED) } else { (KEEP, WRITE) };
    let mut needs = Vec::new();
    let why = "needed for copies";
    let (group, plural) = (crd.spec.group.as_str(), crd.spec.names.plural.as_str());
    let naming = pr.spec.naming.as_ref().map(|naming| naming.namespace.as_str()).unwrap_or_default();
    if crd.is_namespaced() && !naming.is_empty() && !naming.contains(['{', '$']) {
        // All copies are in one namespace: no rights are needed in others.
        push(&mut needs, NeededRight::new(group, plural, READ, why));
        push(
            &mut needs,
            NeededRight { namespace: Some(naming.to_owned()), ..NeededRight::new(group, plural, write, why) },
        );
    } else {
        push(&mut needs, NeededRight::new(group, plural, keep, why));
    }
    for entry in &pr.spec.related {
        let Ok(related) = Related::compile("spec.related", entry) else { continue };
        let why = format!("needed for related objects {:?}", entry.identifier);
        let (gvr, verbs) = match related.origin {
            Origin::Service => (&related.source, READ),
            Origin::Kcp => (&related.destination, keep),
        };
        push(&mut needs, NeededRight::new(&gvr.group, &gvr.resource, verbs, &why));
        if related.sync_status && related.origin == Origin::Kcp {
            push(&mut needs, NeededRight::new(&gvr.group, &format!("{}/status", gvr.resource), &["update"], &why));
        }
    }
    for entry in &pr.spec.reads {
        let why = format!("needed to look at {:?} of spec.reads", entry.identifier);
        push(&mut needs, NeededRight::new(&entry.group, &entry.resource, READ, &why));
    }
    needs
}

/// Adds a right; of two for the same resource, the larger one stays.
pub fn push(needs: &mut Vec<NeededRight>, need: NeededRight) {
    let same = |other: &&mut NeededRight| {
        (&other.group, &other.resource, &other.namespace) == (&need.group, &need.resource, &need.namespace)
    };
    match needs.iter_mut().find(same) {
        Some(other) if other.verbs.len() >= need.verbs.len() => {}
        Some(other) => *other = need,
        None => needs.push(need),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::rules::tests::{crontab, published};

    fn of(spec: Value) -> Vec<(String, Option<String>, &'static [&'static str])> {
        let needs = needs(&published(spec), &crontab(), false);
        needs.into_iter().map(|need| (need.shown(), need.namespace, need.verbs)).collect()
    }

    #[test]
    fn published_and_related_kinds_need_rights_of_their_own() {
        let related = |origin: &str, kind: &str| json!({"identifier": origin, "origin": origin, "kind": kind, "syncStatus": true, "object": {"reference": {"path": "x"}}});
        let crontabs = || "crontabs.example.com".to_owned();
        assert_eq!(of(json!({})), [(crontabs(), None, KEEP)]);
        assert_eq!(
            of(json!({"related": [related("service", "Secret"), related("kcp", "ConfigMap")]})),
            [
                (crontabs(), None, KEEP),
                ("secrets".to_owned(), None, READ),
                ("configmaps".to_owned(), None, KEEP),
                ("configmaps/status".to_owned(), None, &["update"]),
            ]
        );
        // Of two rights for one kind the larger stays, and a single namespace needs no rights in others.
        assert_eq!(
            of(
                json!({"naming": {"namespace": "all"}, "related": [related("service", "Secret"), related("kcp", "Secret")]})
            ),
            [
                (crontabs(), None, READ),
                (crontabs(), Some("all".to_owned()), WRITE),
                ("secrets".to_owned(), None, KEEP),
                ("secrets/status".to_owned(), None, &["update"]),
            ]
        );
    }

    #[test]
    fn what_is_looked_at_must_be_readable_and_nothing_more() {
        let read = |resource: &str| json!({"identifier": "a", "version": "v1", "resource": resource, "object": {"template": {"template": "x"}}});
        assert_eq!(
            of(json!({"reads": [read("services")]})),
            [("crontabs.example.com".to_owned(), None, KEEP), ("services".to_owned(), None, READ)]
        );
        // What is kept in line is read as well.
        let related =
            json!({"identifier": "b", "origin": "kcp", "kind": "Secret", "object": {"reference": {"path": "x"}}});
        assert_eq!(
            of(json!({"related": [related], "reads": [read("secrets")]}))[1],
            ("secrets".to_owned(), None, KEEP)
        );
    }

    #[test]
    fn server_side_apply_needs_the_right_to_patch() {
        for (naming, verbs) in [(json!({}), KEEP_APPLIED), (json!({"naming": {"namespace": "n"}}), WRITE_APPLIED)] {
            let needs = needs(&published(naming), &crontab(), true);
            assert!(needs.iter().any(|need| need.verbs == verbs), "{needs:?}");
        }
    }

    #[test]
    fn what_is_missing_comes_with_a_rule_that_grants_it() {
        let need = needs(&published(json!({})), &crontab(), false).remove(0);
        assert_eq!(
            need.lacks(&["delete"]),
            "the agent may not delete crontabs.example.com, needed for copies: copies there cannot be deleted, so orders cannot be \
             deleted either; add to a ClusterRole of the agent: \
             - {apiGroups: [\"example.com\"], resources: [\"crontabs\"], verbs: [\"delete\"]}"
        );
        let here = NeededRight { namespace: Some("n".to_owned()), ..need };
        assert!(
            here.lacks(&["create", "update"])
                .contains(": copies cannot be created there; add to a Role in namespace n ")
        );
    }

    #[test]
    fn rights_are_needed_for_what_is_written_wherever_that_may_be() {
        let crontabs = || ("crontabs.example.com".to_owned(), None, KEEP);
        assert_eq!(of(json!({"naming": {"namespace": "$remoteClusterName"}})), [crontabs()]);
        let projected = json!({"identifier": "x", "origin": "kcp", "kind": "Secret", "object": {"reference": {"path": "x"}},
            "projection": {"group": "vault.io", "resource": "safes"}});
        assert_eq!(of(json!({ "related": [projected] })), [crontabs(), ("safes.vault.io".to_owned(), None, KEEP)]);
    }
}
