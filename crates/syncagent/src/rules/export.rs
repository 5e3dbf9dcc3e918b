//! The APIExport: which schemas and permission claims it should list.

use std::collections::{BTreeMap, BTreeSet};

use carrick_kcp::apis::split_schema_name;
use carrick_kcp::apis::v1alpha1::{ApiExport, ApiExportSpec, PermissionClaim};

use super::related::kcp_group_resource;
use crate::api::{AGENT_NAME, PublishedResource};

/// What the export needs to know about a PublishedResource.
#[derive(Debug, Clone, Copy)]
pub struct Published<'a> {
    /// The PublishedResource.
    pub pr: &'a PublishedResource,
    /// Name of its schema.
    pub schema_name: &'a str,
    /// Whether the schema is known to exist.
    pub ready: bool,
    /// Whether its rules are valid. If not, an export that already lists its resource keeps it, and no other export gets it.
    pub valid: bool,
    /// Whether it is withdrawn and leaves the export.
    pub leaves: bool,
}

/// The result of updating an export.
#[derive(Debug, Clone, PartialEq)]
pub struct ExportChange {
    /// The export as it should be.
    pub object: ApiExport,
    /// Whether that differs from what is there.
    pub changed: bool,
    /// Schemas that are added.
    pub added_schemas: Vec<String>,
    /// Schemas that are removed: replaced by newer ones, or withdrawn.
    pub removed_schemas: Vec<String>,
    /// Claims that are added, as `group/resource` (core: `resource`).
    pub added_claims: Vec<String>,
    /// Claims that are removed, because only what is withdrawn needed them.
    pub removed_claims: Vec<String>,
    /// Existing claims that do not cover what the rules need: for some objects only, or for another identity.
    pub narrow_claims: Vec<String>,
    /// Related resources that do not exist in kcp under the given name, by PublishedResource: what is wrong, and how to fix it.
    pub doubts: BTreeMap<String, Vec<String>>,
}

/// Kinds of the core group that every workspace of kcp has.
const CORE: [&str; 6] = ["configmaps", "events", "namespaces", "resourcequotas", "secrets", "serviceaccounts"];
/// Groups of Kubernetes that every workspace of kcp has.
const BUILT_IN: [&str; 8] = [
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "certificates.k8s.io",
    "coordination.k8s.io",
    "events.k8s.io",
    "rbac.authorization.k8s.io",
];

/// Whether kcp refuses a claim on a group without the identity of its export.
fn needs_identity(group: &str) -> bool {
    group.contains('.') && !group.ends_with(".k8s.io") && !group.ends_with(".kcp.io")
}

/// Whether every workspace of kcp has a kind.
fn is_built_in(group: &str, resource: &str) -> bool {
    if group.is_empty() { CORE.contains(&resource) } else { BUILT_IN.contains(&group) || group.ends_with(".kcp.io") }
}

/// Merges schemas and claims of all PublishedResources into the export. Nothing of others is removed. What is withdrawn leaves it, with
/// the claims that nobody needs any more, unless other agents share the export, who may need them.
pub fn apply(export: &ApiExport, agent_name: &str, all: &[Published<'_>], shared: bool) -> ExportChange {
    let (leaving, published): (Vec<Published<'_>>, Vec<Published<'_>>) = all.iter().partition(|p| p.leaves);
    let withdrawn: BTreeSet<_> = leaving.iter().filter_map(|p| group_resource(p.schema_name)).collect();
    let spec = &without(&export.spec, &withdrawn);
    let listed: BTreeSet<(String, String)> =
        spec.latest_resource_schemas.iter().filter_map(|name| group_resource(name)).collect();
    let is_offered = |p: &&Published<'_>| {
        (p.valid && !p.pr.is_withdrawn()) || group_resource(p.schema_name).is_some_and(|gr| listed.contains(&gr))
    };
    let published: Vec<Published<'_>> = published.iter().filter(is_offered).copied().collect();
    let ready: BTreeSet<&str> = published.iter().filter(|p| p.ready).map(|p| p.schema_name).collect();
    let schemas = merge_schemas(&spec.latest_resource_schemas, &ready);

    let all = published.iter().map(|p| p.schema_name);
    let own: BTreeSet<(String, String)> = all.filter_map(group_resource).chain(listed).collect();
    let required = required_claims(&published, &own);
    let obsolete = if shared { BTreeMap::new() } else { required_claims(&leaving, &own) };
    let (existing, removed) = drop_claims(&spec.permission_claims, &obsolete, &required);
    let MergedClaims { claims, added, narrow } = merge_claims(&existing, required);
    let doubts = published.iter().map(|p| (p.pr.metadata.name.clone(), doubts(p.pr, &own, &claims)));
    let doubts = doubts.filter(|(_, doubts)| !doubts.is_empty()).collect();

    let mut object = export.clone();
    object.metadata.annotate(AGENT_NAME, agent_name);
    object.spec.latest_resource_schemas.clone_from(&schemas);
    if !added.is_empty() || !removed.is_empty() {
        object.spec.permission_claims = claims;
    }
    let missing = |from: &[String], other: &[String]| -> Vec<String> {
        from.iter().filter(|name| !other.contains(name)).cloned().collect()
    };
    ExportChange {
        changed: object != *export,
        added_schemas: missing(&schemas, &export.spec.latest_resource_schemas),
        removed_schemas: missing(&export.spec.latest_resource_schemas, &schemas),
        added_claims: added,
        removed_claims: removed,
        narrow_claims: narrow,
        doubts,
        object,
    }
}

/// Claims of the export that nothing published needs.
pub fn unneeded_claims(export: &ApiExport, published: &[Published<'_>]) -> Vec<PermissionClaim> {
    let listed = export.spec.latest_resource_schemas.iter().map(String::as_str);
    let own = published.iter().map(|p| p.schema_name).chain(listed).filter_map(group_resource).collect();
    let needed = required_claims(published, &own);
    let is_needed = |claim: &&PermissionClaim| needed.contains_key(&(claim.group.clone(), claim.resource.clone()));
    export.spec.permission_claims.iter().filter(|claim| !is_needed(claim)).cloned().collect()
}

/// The spec without the schemas of some resources.
fn without(spec: &ApiExportSpec, resources: &BTreeSet<(String, String)>) -> ApiExportSpec {
    let mut spec = spec.clone();
    spec.latest_resource_schemas.retain(|name| group_resource(name).is_none_or(|gr| !resources.contains(&gr)));
    spec
}

/// The claims without those that are needed no longer and look as if an agent had made them; and the names of these.
fn drop_claims(
    existing: &[PermissionClaim],
    obsolete: &BTreeMap<(String, String), String>,
    required: &BTreeMap<(String, String), String>,
) -> (Vec<PermissionClaim>, Vec<String>) {
    let goes = |claim: &PermissionClaim| {
        let place = (claim.group.clone(), claim.resource.clone());
        let ours = obsolete.get(&place).is_some_and(|identity| {
            *claim == PermissionClaim::all(claim.group.clone(), claim.resource.clone(), identity.clone())
        });
        ours && !required.contains_key(&place)
    };
    let (gone, kept): (Vec<PermissionClaim>, Vec<PermissionClaim>) = existing.iter().cloned().partition(goes);
    (kept, gone.iter().map(|claim| shown(&claim.group, &claim.resource)).collect())
}

fn shown(group: &str, resource: &str) -> String {
    if group.is_empty() { resource.to_owned() } else { format!("{group}/{resource}") }
}

/// Group and resource of a schema name.
fn group_resource(schema: &str) -> Option<(String, String)> {
    split_schema_name(schema).map(|(_, resource, group)| (group.to_owned(), resource.to_owned()))
}

/// Ready schemas replace older ones of the same group and resource; everything else stays. Sorted by `resource.group`.
fn merge_schemas(existing: &[String], ready: &BTreeSet<&str>) -> Vec<String> {
    let replaced: BTreeSet<_> = ready.iter().filter_map(|name| group_resource(name)).collect();
    let kept = existing
        .iter()
        .map(String::as_str)
        .filter(|name| ready.contains(name) || group_resource(name).is_none_or(|gr| !replaced.contains(&gr)));
    let all: BTreeSet<&str> = kept.chain(ready.iter().copied()).collect();
    let mut sorted: Vec<String> = all.into_iter().map(str::to_owned).collect();
    sorted.sort_by_cached_key(|name| name.split_once('.').map_or_else(String::new, |(_, rest)| rest.to_owned()));
    sorted
}

/// Claims that the rules need, as (group, resource) → identity.
fn required_claims(
    published: &[Published<'_>],
    own: &BTreeSet<(String, String)>,
) -> BTreeMap<(String, String), String> {
    let mut claims = BTreeMap::new();
    let mut claim = |group: &str, resource: &str, identity: &str| {
        claims.entry((group.to_owned(), resource.to_owned())).or_insert_with(|| identity.to_owned());
    };
    claim("", "events", "");
    for pr in published.iter().map(|p| p.pr) {
        let filters_namespaces = pr.spec.filter.as_ref().is_some_and(|f| f.namespace.is_some());
        if filters_namespaces || !pr.spec.related.is_empty() {
            claim("", "namespaces", "");
        }
        if pr.spec.enable_workspace_paths {
            claim("core.kcp.io", "logicalclusters", "");
        }
        for related in &pr.spec.related {
            let (group, resource) = kcp_group_resource(related);
            // kcp refuses claims on an export's own resources.
            if !own.contains(&(group.clone(), resource.clone())) {
                claim(&group, &resource, &related.identity_hash);
            }
        }
    }
    claims
}

/// What is wrong with the related resources of one PublishedResource in kcp.
fn doubts(pr: &PublishedResource, own: &BTreeSet<(String, String)>, claims: &[PermissionClaim]) -> Vec<String> {
    let related = pr.spec.related.iter().enumerate().map(|(at, related)| (at, related, kcp_group_resource(related)));
    let foreign = related.filter(|(_, related, gr)| !own.contains(gr) && related.identity_hash.is_empty());
    let doubts = foreign.filter_map(|(at, _, (group, resource))| {
        let shown = if group.is_empty() { resource.clone() } else { format!("{resource}.{group}") };
        let claimed = claims.iter().any(|claim| claim.group == group && claim.resource == resource);
        if needs_identity(&group) && !claimed {
            return Some(format!(
                "spec.related[{at}]: kcp lets nobody claim {shown} without the identity of the APIExport that offers it, so it is not \
                 claimed; set identityHash to status.identityHash of that APIExport, or publish {shown} in this one"
            ));
        }
        (!needs_identity(&group) && !is_built_in(&group, &resource))
            .then(|| format!("spec.related[{at}]: kcp workspaces have no {shown}; use a kind that they have, or set identityHash"))
    });
    doubts.collect()
}

/// The desired claims, and what changed.
struct MergedClaims {
    claims: Vec<PermissionClaim>,
    added: Vec<String>,
    narrow: Vec<String>,
}

/// Adds missing claims; whatever exists for a group and resource stays as it is, because kcp allows one entry for each, and it may be an
/// administrator's decision.
fn merge_claims(existing: &[PermissionClaim], required: BTreeMap<(String, String), String>) -> MergedClaims {
    let mut merged = MergedClaims { claims: existing.to_vec(), added: Vec::new(), narrow: Vec::new() };
    for ((group, resource), identity_hash) in required {
        let shown = shown(&group, &resource);
        match existing.iter().find(|claim| claim.group == group && claim.resource == resource) {
            Some(claim) if claim.all && claim.resource_selector.is_empty() && claim.identity_hash == identity_hash => {}
            Some(_) => merged.narrow.push(shown),
            // With such a claim kcp would refuse the whole export, including what others need in it.
            None if identity_hash.is_empty() && needs_identity(&group) => {}
            None => {
                merged.added.push(shown);
                merged.claims.push(PermissionClaim::all(group, resource, identity_hash));
            }
        }
    }
    merged.claims.sort_by(|a, b| (&a.group, &a.resource).cmp(&(&b.group, &b.resource)));
    merged
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::tests::published as pr;
    use serde_json::{Value, json};

    /// An export with this spec.
    fn export(spec: &Value) -> ApiExport {
        serde_json::from_value(json!({"spec": spec})).unwrap()
    }

    /// The spec as it is written.
    fn spec(change: &ExportChange) -> Value {
        serde_json::to_value(&change.object.spec).unwrap()
    }

    fn run(export: &ApiExport, prs: &[(&PublishedResource, &str)]) -> ExportChange {
        let published: Vec<_> = prs
            .iter()
            .map(|(pr, schema_name)| Published { pr, schema_name, ready: true, valid: true, leaves: false })
            .collect();
        apply(export, "agent", &published, false)
    }

    fn claims(change: &ExportChange) -> Vec<&str> {
        change.object.spec.permission_claims.iter().map(|claim| claim.resource.as_str()).collect()
    }

    #[test]
    fn an_empty_export_gets_schemas_the_events_claim_and_the_agents_mark() {
        let change = run(&export(&json!({})), &[(&pr(json!({})), "v1.crontabs.example.com")]);
        assert!(change.changed);
        assert_eq!(change.object.spec.latest_resource_schemas, ["v1.crontabs.example.com"]);
        assert_eq!(spec(&change)["permissionClaims"], json!([{"resource": "events", "all": true}]));
        assert_eq!(change.object.metadata.annotation(AGENT_NAME), Some("agent"));
        let again = run(&change.object, &[(&pr(json!({})), "v1.crontabs.example.com")]);
        assert!(!again.changed, "{again:?}");
    }

    #[test]
    fn foreign_schemas_stay_and_older_ones_of_the_same_resource_go() {
        let export = export(&json!({"latestResourceSchemas": ["v0.crontabs.example.com", "v1.fakes.example.com"]}));
        let change = run(&export, &[(&pr(json!({})), "v9.crontabs.example.com")]);
        assert_eq!(change.object.spec.latest_resource_schemas, ["v9.crontabs.example.com", "v1.fakes.example.com"]);
        assert_eq!(change.removed_schemas, ["v0.crontabs.example.com"]);
        assert_eq!(change.added_schemas, ["v9.crontabs.example.com"]);
    }

    #[test]
    fn related_resources_are_claimed_sorted_and_existing_claims_stay() {
        let related = pr(json!({"related": [
            {"identifier": "a", "origin": "service", "kind": "Secret", "object": {}},
            {"identifier": "b", "origin": "kcp", "group": "x.io", "version": "v1", "resource": "backups", "identityHash": "abc", "object": {}},
            {"identifier": "c", "origin": "kcp", "group": "example.com", "version": "v1", "resource": "crontabs", "object": {}},
        ]}));
        let export = export(&json!({"permissionClaims": [{"resource": "configmaps", "all": true, "note": "theirs"}]}));
        let change = run(&export, &[(&related, "v1.crontabs.example.com")]);
        assert_eq!(claims(&change), ["configmaps", "events", "namespaces", "secrets", "backups"]);
        assert_eq!(change.added_claims, ["events", "namespaces", "secrets", "x.io/backups"]);
        assert_eq!(change.object.spec.permission_claims[4].identity_hash, "abc");
        assert_eq!(spec(&change)["permissionClaims"][0]["note"], "theirs", "what others wrote into a claim stays");
    }

    #[test]
    fn claims_that_give_less_than_needed_stay_and_are_reported() {
        let related = pr(json!({"related": [
            {"identifier": "a", "origin": "service", "kind": "Secret", "object": {}},
            {"identifier": "b", "origin": "kcp", "group": "x.io", "version": "v1", "resource": "backups", "identityHash": "new", "object": {}},
        ]}));
        let existing = json!([
            {"resource": "events", "all": true},
            {"resource": "namespaces", "all": true},
            {"resource": "secrets", "resourceSelector": [{"name": "one", "namespace": "a"}]},
            {"group": "x.io", "resource": "backups", "all": true, "identityHash": "old"},
        ]);
        let change = run(&export(&json!({"permissionClaims": existing})), &[(&related, "v1.crontabs.example.com")]);
        assert_eq!(spec(&change)["permissionClaims"], existing);
        assert!(change.added_claims.is_empty());
        assert_eq!(change.narrow_claims, ["secrets", "x.io/backups"]);
    }

    #[test]
    fn claims_that_kcp_refuses_are_reported_and_do_not_spoil_the_export() {
        let related = |group: &str, resource: &str, identity: &str| {
            json!({"identifier": resource, "origin": "kcp", "group": group, "version": "v1", "resource": resource,
                "identityHash": identity, "object": {}})
        };
        let pr = pr(json!({"related": [
            related("x.io", "backups", ""), related("x.io", "queues", "abc"), related("example.com", "crontabs", ""),
            related("", "pods", ""), related("apps", "deployments", ""), related("coordination.k8s.io", "leases", ""),
            related("x.io", "known", ""),
        ]}));
        let claim = json!({"group": "x.io", "resource": "known", "all": true, "identityHash": "d"});
        let export = export(&json!({"permissionClaims": [claim]}));
        let change = run(&export, &[(&pr, "v1.crontabs.example.com")]);
        assert_eq!(claims(&change), ["events", "namespaces", "pods", "deployments", "leases", "known", "queues"]);
        let doubts = &change.doubts["publish-crontabs"];
        let wanted = [
            "spec.related[0]: kcp lets nobody claim backups.x.io without the identity",
            "spec.related[3]: kcp workspaces have no pods",
            "spec.related[4]: kcp workspaces have no deployments.apps",
        ];
        assert_eq!(doubts.len(), wanted.len(), "{doubts:?}");
        assert!(doubts.iter().zip(wanted).all(|(told, wanted)| told.starts_with(wanted)), "{doubts:?}");
    }

    #[test]
    fn rules_that_are_not_valid_come_into_no_export_and_stay_in_theirs() {
        let pr = pr(json!({"related": [{"identifier": "a", "origin": "service", "kind": "Secret", "object": {}}]}));
        let published =
            [Published { pr: &pr, schema_name: "v2.crontabs.example.com", ready: true, valid: false, leaves: false }];
        let events = json!([{"resource": "events", "all": true}]);
        let change = apply(&export(&json!({"permissionClaims": events})), "agent", &published, false);
        assert_eq!(spec(&change), json!({"permissionClaims": events}));
        let before = export(&json!({"latestResourceSchemas": ["v1.crontabs.example.com"]}));
        let change = apply(&before, "agent", &published, false);
        assert_eq!(change.object.spec.latest_resource_schemas, ["v2.crontabs.example.com"]);
        assert_eq!(claims(&change), ["events", "namespaces", "secrets"]);
    }

    #[test]
    fn what_is_withdrawn_leaves_with_the_claims_that_nobody_else_needs() {
        let related = |kind: &str| json!({"identifier": kind, "origin": "service", "kind": kind, "object": {}});
        let leaving = pr(json!({"related": [related("Secret"), related("ConfigMap")], "enableWorkspacePaths": true}));
        let staying = pr(json!({"related": [related("Secret")]}));
        let names = ["v1.crontabs.example.com", "v1.others.example.com", "v1.backups.example.com"];
        let before =
            run(&export(&json!({"latestResourceSchemas": names[1..2]})), &[(&leaving, names[0]), (&staying, names[2])]);
        assert_eq!(claims(&before), ["configmaps", "events", "namespaces", "secrets", "logicalclusters"]);
        let one = |pr, schema_name, leaves: bool| Published { pr, schema_name, ready: !leaves, valid: true, leaves };
        let all = [one(&leaving, names[0], true), one(&staying, names[2], false)];
        let change = apply(&before.object, "agent", &all, false);
        assert_eq!(change.object.spec.latest_resource_schemas, [names[2], names[1]]);
        assert_eq!(change.removed_schemas, [names[0]]);
        assert_eq!(change.removed_claims, ["configmaps", "core.kcp.io/logicalclusters"]);
        assert_eq!(claims(&change), ["events", "namespaces", "secrets"]);
        assert!(!apply(&change.object, "agent", &all, false).changed, "once is enough");
        let shared = apply(&before.object, "agent", &all, true);
        assert_eq!((shared.removed_claims.len(), shared.removed_schemas.len()), (0, 1));
        // What an administrator has narrowed is not the agent's.
        let mut narrowed = before.object.clone();
        narrowed.spec.permission_claims[0].all = false;
        assert_eq!(apply(&narrowed, "agent", &all, false).removed_claims, ["core.kcp.io/logicalclusters"]);
    }

    #[test]
    fn schemas_that_do_not_exist_yet_are_not_listed() {
        let pr = pr(json!({}));
        let change = apply(
            &export(&json!({})),
            "agent",
            &[Published { pr: &pr, schema_name: "v1.a.b", ready: false, valid: true, leaves: false }],
            false,
        );
        assert_eq!(spec(&change).get("latestResourceSchemas"), None);
    }

    #[test]
    fn an_export_does_not_claim_what_it_offers_itself() {
        let related =
            pr(json!({"related": [{"identifier": "c", "origin": "kcp", "group": "example.com", "version": "v1",
            "resource": "crontabs", "identityHash": "abc", "object": {}}]}));
        let change = run(&export(&json!({})), &[(&related, "v1.crontabs.example.com")]);
        assert_eq!(claims(&change), ["events", "namespaces"]);
    }
}
