//! Who may do what: kcp's chain of checks on top of RBAC.

use std::borrow::Cow;

use carrick_kcp::names::REQUIRED_GROUPS_ANNOTATION;
use serde_json::Value;

use super::data::{Data, EXPORTS, SYSTEM_ADMIN};
use super::identity::{belongs, effective, in_scope, is_account, prefixed, unlimited};
use super::object::{annotation, text};
use crate::auth::decision::{Decision, Verdict};
use crate::auth::rbac::{self, Rights, Source};
use crate::caller::Caller;
use crate::request::Attributes;
use crate::status::Status;

const MASTERS: &str = "system:masters";
/// Creates logical clusters, so it passes every check that needs one.
const CLUSTER_ADMIN: &str = "system:kcp:logical-cluster-admin";
/// Groups that need no other group to enter a workspace.
const ALWAYS_ENTER: [&str; 3] =
    ["system:kcp:admin", "system:kcp:tenancy:workspace-bootstrapper", "system:kcp:external-logical-cluster-admin"];
const POLICY_PREFIX: &str = "apis.kcp.io:binding:";
const OPEN_PATHS: [&str; 3] = ["healthz", "livez", "readyz"];
const LIVE_PHASES: [&str; 5] = ["Initializing", "Ready", "Inactive", "Terminating", "Deleting"];

/// The whole chain for a request to `/clusters/<cluster>`. kcp says nothing about its reasons.
pub fn decide(data: &Data, caller: &Caller, cluster: &str, attributes: &Attributes) -> Decision {
    let path = attributes.path.strip_prefix('/').unwrap_or(&attributes.path);
    if is_master(caller) || (!attributes.is_resource() && OPEN_PATHS.contains(&path)) {
        return Decision::new(Verdict::Allow, "");
    }
    match judge(data, caller, cluster, attributes) {
        Verdict::Allow => Decision::new(Verdict::Allow, "access granted"),
        verdict => Decision::new(verdict, "access denied"),
    }
}

fn judge(data: &Data, caller: &Caller, cluster: &str, attributes: &Attributes) -> Verdict {
    if let Err(verdict) = enter(data, caller, cluster) {
        return verdict;
    }
    let status_of_ours = attributes.group == "apis.kcp.io"
        && attributes.subresource == "status"
        && matches!(attributes.resource.as_str(), "apibindings" | "apiexports");
    if status_of_ours {
        return Verdict::Deny;
    }
    if within_policy(data, caller, cluster, attributes) && permits(data, caller, cluster, attributes) {
        Verdict::Allow
    } else {
        Verdict::NoOpinion
    }
}

/// The chain as an error for refused requests.
pub fn chain(data: &Data, caller: &Caller, cluster: &str, attributes: &Attributes) -> Result<(), Status> {
    if decide(data, caller, cluster, attributes).is_allowed() { Ok(()) } else { Err(refusal(caller, attributes)) }
}

/// Whether the caller is the plane itself or in `system:masters`, which may do everything.
pub fn is_master(caller: &Caller) -> bool {
    caller.system || caller.is_in(MASTERS)
}

/// Whether the caller may enter a cluster at all.
pub fn accessible(data: &Data, caller: &Caller, cluster: &str) -> bool {
    is_master(caller) || enter(data, caller, cluster).is_ok()
}

fn enter(data: &Data, caller: &Caller, cluster: &str) -> Result<(), Verdict> {
    let identities = effective(caller, cluster);
    if belongs(&identities, CLUSTER_ADMIN) {
        return Ok(());
    }
    let object = data.cluster(cluster);
    let groups = object.as_deref().and_then(|object| annotation(object, REQUIRED_GROUPS_ANNOTATION));
    // Service accounts are in no groups that an organization could require.
    if !is_account(caller) {
        if object.is_none() {
            return Err(Verdict::NoOpinion);
        }
        if groups.is_some_and(|groups| !in_required_groups(&identities, groups)) {
            return Err(Verdict::Deny);
        }
    }
    // Only those who need no authorization get into the plane's own clusters.
    if cluster.starts_with("system:") {
        return Err(Verdict::NoOpinion);
    }
    let object = object.ok_or(Verdict::Deny)?;
    if !LIVE_PHASES.contains(&text(&object, "/status/phase")) {
        return Err(Verdict::NoOpinion);
    }
    if is_account(caller) && in_scope(caller, cluster) {
        return Ok(());
    }
    let access = Attributes { verb: "access".into(), path: "/".into(), ..Attributes::default() };
    let rights = Rights { identities, sources: merged(cluster) };
    if rbac::allowed(&data.store, &rights, &access) { Ok(()) } else { Err(Verdict::NoOpinion) }
}

/// `a,b;c` means (a and b) or c.
fn in_required_groups(identities: &[Cow<'_, Caller>], required: &str) -> bool {
    ALWAYS_ENTER.iter().any(|group| belongs(identities, group))
        || required.split(';').any(|all| all.split(',').all(|group| belongs(identities, group)))
}

/// The bindings of a cluster and of `system:admin`, each with the roles of both.
fn merged(cluster: &str) -> Vec<Source<'_>> {
    let source = |bindings| Source { bindings, roles: vec![cluster, SYSTEM_ADMIN] };
    vec![source(cluster), source(SYSTEM_ADMIN)]
}

/// Where a caller's rights in a cluster come from: what applies everywhere, and what the cluster grants on its own or through the roles
/// that exist everywhere.
pub fn rights<'a>(caller: &'a Caller, cluster: &'a str) -> Rights<'a> {
    let everywhere = Source { bindings: SYSTEM_ADMIN, roles: vec![SYSTEM_ADMIN] };
    let here = Source { bindings: cluster, roles: vec![cluster, SYSTEM_ADMIN] };
    Rights { identities: effective(caller, cluster), sources: vec![everywhere, here] }
}

/// RBAC of a cluster together with that of `system:admin`, without the check for access.
pub fn permits(data: &Data, caller: &Caller, cluster: &str, attributes: &Attributes) -> bool {
    is_master(caller) || rbac::allowed(&data.store, &rights(caller, cluster), attributes)
}

/// Whether the maximal permission policy of the export behind a bound resource lets the caller do this.
fn within_policy(data: &Data, caller: &Caller, cluster: &str, attributes: &Attributes) -> bool {
    let mut bindings = data.bindings.in_cluster(&data.store, cluster).into_iter().map(|(_, binding)| binding);
    let Some(binding) = bindings.find(|binding| binding.serves(&attributes.group, &attributes.resource)) else {
        return true;
    };
    let export = data.get(&EXPORTS, &binding.home, &binding.export);
    export.is_none_or(|export| {
        let who = prefixed(caller, POLICY_PREFIX);
        !has_policy(&export) || is_granted(data, &binding.home, effective(&who, cluster), attributes)
    })
}

fn has_policy(export: &Value) -> bool {
    export.pointer("/spec/maximalPermissionPolicy/local").is_some()
}

fn is_granted(data: &Data, home: &str, identities: Vec<Cow<'_, Caller>>, attributes: &Attributes) -> bool {
    rbac::allowed(&data.store, &Rights { identities, sources: merged(home) }, attributes)
}

/// Whether the maximal permission policy of an export, if it has one, lets the caller use what another export claims.
pub fn policy_allows(data: &Data, export: &Value, home: &str, caller: &Caller, attributes: &Attributes) -> bool {
    if !has_policy(export) || is_master(caller) {
        return true;
    }
    let who = unlimited(&prefixed(caller, POLICY_PREFIX), is_account(caller));
    is_granted(data, home, effective(&who, home), attributes)
}

/// The error for a forbidden request, in kcp's wording.
pub fn refusal(caller: &Caller, attributes: &Attributes) -> Status {
    rbac::refusal(caller, attributes, ": access denied")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(groups: &[&str]) -> Caller {
        let groups = groups.iter().map(|group| (*group).to_owned()).collect();
        Caller { user: "u".into(), groups, ..Caller::default() }
    }

    #[test]
    fn required_groups_are_alternatives_of_combinations() {
        let required = "a,b;c";
        let cases =
            [(&["a", "b"][..], true), (&["c"], true), (&["a"], false), (&[], false), (&["system:kcp:admin"], true)];
        for (groups, allowed) in cases {
            assert_eq!(in_required_groups(&[Cow::Owned(user(groups))], required), allowed, "{groups:?}");
        }
    }

    #[test]
    fn refusals_read_as_those_of_kcp() {
        let list = Attributes { verb: "list".into(), resource: "configmaps".into(), ..Attributes::default() };
        assert_eq!(
            refusal(&user(&[]), &list).message,
            "configmaps is forbidden: User \"u\" cannot list resource \"configmaps\" in API group \"\" at the cluster scope: access denied"
        );
        let path = Attributes { verb: "get".into(), path: "/apis".into(), ..Attributes::default() };
        assert_eq!(
            refusal(&user(&[]), &path).message,
            "forbidden: User \"u\" cannot get path \"/apis\": access denied"
        );
    }
}
