//! Which rights an agent needs. Pure.

use carrick_kcp::token::AccountToken;
use carrick_syncagent::rules::rights::{self, READ};

use super::facts::{AgentArguments, Published};
use super::right::{NeededRight, RightScope};
use crate::mesh::broker;

const ALL: &[&str] = &["get", "list", "watch", "create", "update", "patch", "delete"];

/// Everything on the service cluster.
pub fn on_the_service_cluster(asked: &AgentArguments, published: &[Published]) -> Vec<NeededRight> {
    let here = |group: &str, resource: &str, verbs, why: &str| {
        NeededRight::new(RightScope::Service, group, resource, verbs, why)
    };
    let own = asked.namespace.as_str();
    let mut needs = vec![
        here("apiextensions.k8s.io", "customresourcedefinitions", READ, "to read the CRDs that are published"),
        here("syncagent.kcp.io", "publishedresources", READ, "to read what is published"),
        here("syncagent.kcp.io", "publishedresources/status", &["update", "patch"], "to write conditions"),
        here("", "namespaces", &["get", "list", "watch", "create"], "to create namespaces for copies"),
        here("", "secrets", &["get", "list", "watch", "create", "update"], "to write state").within(own),
        here("", "secrets", &["delete"], "to delete state; without it, Secrets stay, emptied").within(own).optional(),
        here("", "events", &["create", "patch"], "to write events on PublishedResources").within("default").optional(),
        here("coordination.k8s.io", "leases", &["get", "create", "update"], "for --enable-leader-election")
            .within(own)
            .optional(),
    ];
    for one in published {
        let (Some(pr), Some(crd)) = (&one.pr, &one.crd) else { continue };
        for need in rights::needs(pr, crd, false) {
            let why = format!("{} of PublishedResource {}", need.why.trim_start_matches("needed "), one.name);
            let kept = need.verbs.contains(&"update") && !need.resource.contains('/');
            let place = |verbs| NeededRight {
                namespace: need.namespace.clone(),
                ..here(&need.group, &need.resource, verbs, &why)
            };
            push(&mut needs, place(need.verbs));
            if kept {
                let why = "to change single fields of copies; without it, whole copies are written by update";
                push_optional(&mut needs, NeededRight { why: why.to_owned(), ..place(&["patch"]) }.optional());
            }
        }
    }
    needs
}

/// Adds a right unless it is there already.
fn push_optional(needs: &mut Vec<NeededRight>, need: NeededRight) {
    if !needs.contains(&need) {
        needs.push(need);
    }
}

/// Adds a right; of two for the same resource, the larger one stays.
fn push(needs: &mut Vec<NeededRight>, need: NeededRight) {
    let same = |other: &&mut NeededRight| {
        (&other.group, &other.resource, &other.name, &other.namespace, other.optional)
            == (&need.group, &need.resource, &need.name, &need.namespace, need.optional)
    };
    match needs.iter_mut().find(same) {
        Some(other) if other.verbs.len() >= need.verbs.len() => {}
        Some(other) => *other = need,
        None => needs.push(need),
    }
}

/// Everything in kcp.
pub fn in_kcp(slice: &str, export: &str) -> Vec<NeededRight> {
    let there =
        |resource: &str, verbs, why: &str| NeededRight::new(RightScope::Export, "apis.kcp.io", resource, verbs, why);
    vec![
        NeededRight::new(
            RightScope::Slice,
            "apis.kcp.io",
            "apiexportendpointslices",
            READ,
            "to find the endpoints of kcp's shards",
        )
        .named(slice),
        NeededRight::new(
            RightScope::Export,
            "core.kcp.io",
            "logicalclusters",
            &["get"],
            "to learn which workspace this is",
        )
        .named("cluster"),
        there("apiexports", &["get", "list", "watch", "update", "patch"], "to publish schemas and claims")
            .named(export),
        there("apiresourceschemas", &["get", "list", "watch", "create"], "to publish schemas"),
        there("apiresourceschemas", &["update"], "to take over schemas of another agent").optional(),
        there("apiexports/content", ALL, "to work in consumers' workspaces").named(export),
        NeededRight::new(RightScope::Export, "", "events", &["create", "patch"], "to write events on the APIExport")
            .within("default")
            .optional(),
    ]
}

/// What it takes to keep AcceptAPIs.
pub fn of_accept_apis() -> NeededRight {
    let why = "to keep the AcceptAPI that spec.implements.accept asks for; without it, no broker brings orders";
    NeededRight::new(RightScope::Export, broker::GROUP, broker::PLURAL, broker::VERBS, why).optional()
}

/// What the account of a token needs to get another one.
pub fn of_renewals(token: &AccountToken) -> NeededRight {
    let why = "to renew its own token";
    NeededRight::new(RightScope::Slice, "", "serviceaccounts/token", &["create"], why)
        .named(&token.name)
        .within(&token.namespace)
}

/// What fixes change, and who may.
pub fn for_fixes() -> Vec<NeededRight> {
    let fix = |place, group: &str, resource: &str, verbs| NeededRight::new(place, group, resource, verbs, "");
    vec![
        fix(RightScope::Service, "apiextensions.k8s.io", "customresourcedefinitions", &["create", "patch"]),
        fix(RightScope::Service, "", "namespaces", &["create"]),
        fix(RightScope::Service, "syncagent.kcp.io", "publishedresources", &["create", "update", "patch"]),
        fix(RightScope::Slice, "apis.kcp.io", "apiexports", &["create", "patch"]),
        fix(RightScope::Slice, "apis.kcp.io", "apiexportendpointslices", &["delete"]),
        fix(RightScope::Export, "apis.kcp.io", "apiexports", &["create", "patch"]),
    ]
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use carrick_syncagent::rules::crd::Crd;
    use serde_json::{Value, json};

    use carrick_syncagent::rules::rights::KEEP;

    use super::*;

    pub(super) fn published(spec: &Value) -> Published {
        let crd = json!({
            "metadata": { "name": "buckets.example.com" },
            "spec": {
                "group": "example.com", "scope": "Namespaced", "names": { "plural": "buckets", "kind": "Bucket" },
                "versions": [{ "name": "v1", "served": true, "storage": true }],
            },
        });
        let pr = serde_json::from_value(json!({ "metadata": { "name": "buckets" }, "spec": spec })).unwrap();
        Published {
            name: "buckets".to_owned(),
            problem: None,
            doubts: Vec::new(),
            pr: Some(Arc::new(pr)),
            object: Value::Null,
            crd: Some(Arc::new(Crd::from_json(&crd).unwrap())),
            schema: None,
        }
    }

    #[test]
    fn published_and_related_kinds_need_rights_of_their_own() {
        let one = published(&json!({
            "resource": { "apiGroup": "example.com", "kind": "Bucket" },
            "related": [
                { "identifier": "a", "origin": "service", "kind": "Secret", "object": { "reference": { "path": "x" } } },
                { "identifier": "b", "origin": "kcp", "kind": "ConfigMap", "syncStatus": true, "object": { "reference": { "path": "y" } } },
                { "identifier": "broken", "origin": "kcp", "kind": "Secret", "object": {} },
            ],
        }));
        let needs = on_the_service_cluster(
            &AgentArguments { namespace: "own".to_owned(), ..AgentArguments::default() },
            &[one],
        );
        let of = |resource: &str, namespace: Option<&str>| {
            let found: Vec<_> =
                needs.iter().filter(|n| n.resource == resource && n.namespace.as_deref() == namespace).collect();
            found.iter().map(|need| need.verbs).collect::<Vec<_>>()
        };
        assert_eq!(of("buckets", None), [KEEP, &["patch"]]);
        assert_eq!(of("secrets", None), [READ]);
        assert_eq!(of("secrets", Some("own")).len(), 2);
        assert_eq!(of("configmaps", None), [KEEP, &["patch"]]);
        assert_eq!(of("configmaps/status", None), [&["update"][..]]);
    }

    #[test]
    fn of_two_needs_for_one_kind_the_greater_stays() {
        let related = |origin: &str| json!({ "identifier": origin, "origin": origin, "kind": "Secret", "object": { "reference": { "path": "x" } } });
        let (reads, keeps) = (
            published(&json!({ "related": [related("service")] })),
            published(&json!({ "related": [related("kcp")] })),
        );
        for both in [[reads.clone(), keeps.clone()], [keeps, reads]] {
            let needs = on_the_service_cluster(&AgentArguments::default(), &both);
            let secrets = needs.iter().filter(|n| n.resource == "secrets" && n.namespace.is_none() && !n.optional);
            assert_eq!(secrets.map(|need| need.verbs).collect::<Vec<_>>(), [KEEP]);
        }
    }

    #[test]
    fn names_are_those_that_kubectl_wants() {
        let need =
            |group: &str, resource: &str| NeededRight::new(RightScope::Service, group, resource, READ, "").shown();
        assert_eq!(need("", "secrets"), "secrets");
        assert_eq!(need("a.io", "bs"), "bs.a.io");
        assert_eq!(need("a.io", "bs/status"), "bs.a.io/status");
    }
}
