//! The APIExport: which schemas and permission claims it should list.

use std::collections::{BTreeMap, BTreeSet};

use carrick_kcp::apis::v1alpha2::{ApiExport, PermissionClaim, ResourceSchema};
use carrick_kcp::apis::{split_schema_name, v1alpha1};

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
    /// Existing claims that do not cover what the rules need: for some objects or verbs only, or for another identity.
    pub narrow_claims: Vec<String>,
    /// PublishedResources for whose sake it changes: their schema comes or goes, or they need a claim that is added.
    pub concerned: BTreeSet<String>,
    /// Schemas that cannot be listed, because the export offers their resource from elsewhere: why, and how to fix it.
    pub taken: BTreeMap<String, String>,
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

/// Merges schemas and claims of all PublishedResources into the export. Nothing of others is removed, changed or looked into: their
/// resources, whatever their storage, and their claims, whatever their verbs and selectors, stay as they are. What is withdrawn leaves it,
/// with the claims that nobody needs any more, unless other agents share the export, who may need them.
pub fn apply(export: &ApiExport, agent_name: &str, all: &[Published<'_>], shared: bool) -> ExportChange {
    let (leaving, published): (Vec<Published<'_>>, Vec<Published<'_>>) = all.iter().partition(|p| p.leaves);
    let withdrawn: BTreeSet<_> = leaving.iter().filter_map(|p| group_resource(p.schema_name)).collect();
    let mut resources = export.spec.resources.clone();
    resources.retain(|resource| !(resource.is_ordinary() && is_of(resource, &withdrawn)));
    let listed: BTreeSet<(String, String)> =
        resources.iter().filter_map(|resource| group_resource(&resource.schema)).collect();
    let foreign: BTreeSet<(String, String)> = resources
        .iter()
        .filter(|resource| !resource.is_ordinary())
        .filter_map(|resource| group_resource(&resource.schema))
        .collect();
    let is_offered = |p: &&Published<'_>| {
        (p.valid && !p.pr.is_withdrawn()) || group_resource(p.schema_name).is_some_and(|gr| listed.contains(&gr))
    };
    let published: Vec<Published<'_>> = published.iter().filter(is_offered).copied().collect();
    let (taken, ready): (BTreeSet<&str>, BTreeSet<&str>) = published
        .iter()
        .filter(|p| p.ready)
        .map(|p| p.schema_name)
        .partition(|name| group_resource(name).is_some_and(|gr| foreign.contains(&gr)));
    let resources = merge_resources(resources, &ready);

    let all = published.iter().map(|p| p.schema_name);
    let own: BTreeSet<(String, String)> = all.filter_map(group_resource).chain(listed).collect();
    let required = required_claims(&published, &own);
    let obsolete = if shared { BTreeMap::new() } else { required_claims(&leaving, &own) };

    let mut object = export.clone();
    object.metadata.annotate(AGENT_NAME, agent_name);
    // The order is of no meaning to kcp, so a list that holds the same is left as somebody has written it.
    if sorted(&resources) != sorted(&export.spec.resources) {
        object.spec.resources = resources;
    }
    let removed = drop_claims(&mut object, &obsolete, &required);
    let (added, narrow) = add_claims(&mut object, required);
    if !added.is_empty() || !removed.is_empty() {
        object.spec.permission_claims.sort_by(|a, b| (&a.group, &a.resource).cmp(&(&b.group, &b.resource)));
    }
    let claims = &object.spec.permission_claims;
    let doubts = published.iter().map(|p| (p.pr.metadata.name.clone(), doubts(p.pr, &own, claims)));
    let doubts = doubts.filter(|(_, doubts)| !doubts.is_empty()).collect();
    let names = |export: &ApiExport| -> BTreeSet<String> { export.schemas().map(str::to_owned).collect() };
    let (before, after) = (names(export), names(&object));
    let needs_added = |p: &Published<'_>| {
        required_claims(&[*p], &own).keys().any(|(group, resource)| added.contains(&shown(group, resource)))
    };
    let concerned = published
        .iter()
        .filter(|p| (after.contains(p.schema_name) && !before.contains(p.schema_name)) || needs_added(p))
        .chain(leaving.iter().filter(|p| before.contains(p.schema_name)))
        .map(|p| p.pr.metadata.name.clone())
        .collect();
    ExportChange {
        changed: object != *export,
        concerned,
        added_schemas: after.difference(&before).cloned().collect(),
        removed_schemas: before.difference(&after).cloned().collect(),
        added_claims: added,
        removed_claims: removed,
        narrow_claims: narrow,
        taken: taken.into_iter().map(|schema| (schema.to_owned(), why_taken(schema))).collect(),
        doubts,
        object,
    }
}

fn why_taken(schema: &str) -> String {
    let resource = group_resource(schema).map(|(group, resource)| format!("{resource}.{group}")).unwrap_or_default();
    format!(
        "the APIExport offers {resource} already, from a virtual workspace (spec.resources[].storage.virtual) of somebody else; remove \
         that entry, or publish under another name with spec.projection"
    )
}

/// Claims of the export that nothing published needs.
pub fn unneeded_claims(export: &ApiExport, published: &[Published<'_>]) -> Vec<PermissionClaim> {
    let listed = export.spec.resources.iter().map(|resource| resource.schema.as_str());
    let own = published.iter().map(|p| p.schema_name).chain(listed).filter_map(group_resource).collect();
    let needed = required_claims(published, &own);
    let is_needed = |claim: &&PermissionClaim| needed.contains_key(&(claim.group.clone(), claim.resource.clone()));
    export.spec.permission_claims.iter().filter(|claim| !is_needed(claim)).cloned().collect()
}

fn is_of(resource: &ResourceSchema, resources: &BTreeSet<(String, String)>) -> bool {
    group_resource(&resource.schema).is_some_and(|gr| resources.contains(&gr))
}

/// Takes back the claims that are needed no longer and look as if an agent had made them; returns the names of these.
fn drop_claims(
    export: &mut ApiExport,
    obsolete: &BTreeMap<(String, String), Need>,
    required: &BTreeMap<(String, String), Need>,
) -> Vec<String> {
    let made_in_v1 = export.v1_claims();
    let goes = |claim: &PermissionClaim| {
        let place = (claim.group.clone(), claim.resource.clone());
        let ours = obsolete.get(&place).is_some_and(|need| {
            let mut plain = PermissionClaim::new(&*claim.group, &*claim.resource, &["*"]);
            plain.identity_hash.clone_from(&need.identity);
            let note = v1alpha1::PermissionClaim::all(&*claim.group, &*claim.resource, &*need.identity);
            *claim == plain && made_in_v1.contains(&note)
        });
        ours && !required.contains_key(&place)
    };
    let claims = &export.spec.permission_claims;
    let gone = claims.iter().filter(|claim| goes(claim)).map(|claim| shown(&claim.group, &claim.resource)).collect();
    export.drop_claims(goes);
    gone
}

fn shown(group: &str, resource: &str) -> String {
    if group.is_empty() { resource.to_owned() } else { format!("{group}/{resource}") }
}

/// Group and resource of a schema name.
fn group_resource(schema: &str) -> Option<(String, String)> {
    split_schema_name(schema).map(|(_, resource, group)| (group.to_owned(), resource.to_owned()))
}

/// Ready schemas replace older ones of the same group and resource; everything else stays. Sorted by `resource.group`.
fn merge_resources(existing: Vec<ResourceSchema>, ready: &BTreeSet<&str>) -> Vec<ResourceSchema> {
    let mut missing: BTreeMap<(String, String), &str> =
        ready.iter().filter_map(|name| Some((group_resource(name)?, *name))).collect();
    let replaced: BTreeSet<(String, String)> = missing.keys().cloned().collect();
    let mut merged = Vec::new();
    for mut resource in existing {
        if resource.is_ordinary() && is_of(&resource, &replaced) {
            // One entry for each is all that kcp takes.
            let Some(wanted) = group_resource(&resource.schema).and_then(|gr| missing.remove(&gr)) else { continue };
            wanted.clone_into(&mut resource.schema);
        }
        merged.push(resource);
    }
    merged.extend(missing.into_values().map(ResourceSchema::of));
    sorted(&merged).into_iter().cloned().collect()
}

fn sorted(resources: &[ResourceSchema]) -> Vec<&ResourceSchema> {
    let mut sorted: Vec<&ResourceSchema> = resources.iter().collect();
    let place = |name: &str| name.split_once('.').map_or_else(String::new, |(_, rest)| rest.to_owned());
    sorted.sort_by_cached_key(|resource| (place(&resource.schema), resource.schema.clone()));
    sorted
}

/// What the rules need of one resource.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Need {
    /// Identity of the export that offers the resource.
    identity: String,
    /// What is done with objects of it.
    verbs: BTreeSet<&'static str>,
}

const READ: [&str; 3] = ["get", "list", "watch"];
const READ_AND_CREATE: [&str; 4] = ["get", "list", "watch", "create"];
const EVERYTHING: [&str; 7] = ["get", "list", "watch", "create", "update", "patch", "delete"];

/// Claims that the rules need, by group and resource.
fn required_claims(published: &[Published<'_>], own: &BTreeSet<(String, String)>) -> BTreeMap<(String, String), Need> {
    let mut claims: BTreeMap<(String, String), Need> = BTreeMap::new();
    let mut claim = |group: &str, resource: &str, identity: &str, verbs: &[&'static str]| {
        let need = claims
            .entry((group.to_owned(), resource.to_owned()))
            .or_insert_with(|| Need { identity: identity.to_owned(), verbs: BTreeSet::new() });
        need.verbs.extend(verbs);
    };
    claim("", "events", "", &["create", "patch"]);
    for pr in published.iter().map(|p| p.pr) {
        let filters_namespaces = pr.spec.filter.as_ref().is_some_and(|f| f.namespace.is_some());
        if filters_namespaces || !pr.spec.related.is_empty() {
            claim("", "namespaces", "", if pr.spec.related.is_empty() { &READ[..] } else { &READ_AND_CREATE[..] });
        }
        if pr.spec.enable_workspace_paths {
            claim("core.kcp.io", "logicalclusters", "", &READ);
        }
        for related in &pr.spec.related {
            let (group, resource) = kcp_group_resource(related);
            // kcp refuses claims on an export's own resources.
            if !own.contains(&(group.clone(), resource.clone())) {
                claim(&group, &resource, &related.identity_hash, &EVERYTHING);
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

/// Adds missing claims; whatever exists for a group and resource stays as it is, because kcp allows one entry for each, and it may be an
/// administrator's decision. Returns the names of those that were added, and of those that exist but are not enough.
fn add_claims(export: &mut ApiExport, required: BTreeMap<(String, String), Need>) -> (Vec<String>, Vec<String>) {
    let (mut added, mut narrow) = (Vec::new(), Vec::new());
    let made_in_v1 = export.v1_claims();
    for ((group, resource), need) in required {
        let claims = &export.spec.permission_claims;
        match claims.iter().find(|claim| claim.group == group && claim.resource == resource) {
            Some(claim) if is_enough(claim, &need, &made_in_v1) => {}
            Some(_) => narrow.push(shown(&group, &resource)),
            // With such a claim kcp would refuse the whole export, including what others need in it.
            None if need.identity.is_empty() && needs_identity(&group) => {}
            None => {
                added.push(shown(&group, &resource));
                export.claim_all(&group, &resource, &need.identity);
            }
        }
    }
    (added, narrow)
}

/// Whether a claim covers what the rules need: all objects, as either version says it, and all that is done with them.
fn is_enough(claim: &PermissionClaim, need: &Need, made_in_v1: &[v1alpha1::PermissionClaim]) -> bool {
    let v1 = made_in_v1.iter().find(|v1| v1.key() == claim.key());
    let whole = claim.default_selector.as_ref().is_none_or(|selector| selector.match_all)
        && v1.is_none_or(|v1| v1.all && v1.resource_selector.is_empty());
    whole && claim.identity_hash == need.identity && need.verbs.iter().all(|verb| claim.allows(verb))
}

#[cfg(test)]
mod tests;
