//! Who may do what: kcp's chain of checks on top of RBAC.

use carrick_kcp::names::REQUIRED_GROUPS_ANNOTATION;
use serde_json::Value;

use super::data::{Data, EXPORTS, SYSTEM_ADMIN};
use super::object::{annotation, text};
use crate::api::Caller;
use crate::auth::rbac;
use crate::extension::Attributes;
use crate::status::Status;

const MASTERS: &str = "system:masters";
const ACCOUNT_CLUSTER: &str = "authentication.kcp.io/cluster-name";
const ACCOUNT_PREFIX: &str = "system:serviceaccount:";
const POLICY_PREFIX: &str = "apis.kcp.io:binding:";
const OPEN_PATHS: [&str; 3] = ["/healthz", "/livez", "/readyz"];
const LIVE_PHASES: [&str; 5] = ["Initializing", "Ready", "Inactive", "Terminating", "Deleting"];

/// The whole chain for a request to `/clusters/<cluster>`.
pub fn chain(data: &Data, caller: &Caller, cluster: &str, attributes: &Attributes) -> Result<(), Status> {
    let open = !attributes.is_resource() && OPEN_PATHS.iter().any(|path| attributes.path.starts_with(path));
    if open || is_master(caller) {
        return Ok(());
    }
    let denied = || refusal(caller, attributes);
    if !accessible(data, caller, cluster) {
        return Err(denied());
    }
    let status_of_ours = attributes.group == "apis.kcp.io"
        && attributes.subresource == "status"
        && matches!(attributes.resource.as_str(), "apibindings" | "apiexports");
    if status_of_ours || !within_policy(data, caller, cluster, attributes) {
        return Err(denied());
    }
    if permits(data, caller, cluster, attributes) { Ok(()) } else { Err(denied()) }
}

/// Whether the caller is the plane itself or in `system:masters`, which may do everything.
pub fn is_master(caller: &Caller) -> bool {
    caller.system || caller.is_in(MASTERS)
}

/// Whether the caller may enter a cluster at all.
pub fn accessible(data: &Data, caller: &Caller, cluster: &str) -> bool {
    if is_master(caller) {
        return true;
    }
    if !cluster.starts_with("system:") {
        let Some(object) = data.cluster(cluster) else { return false };
        let alive = LIVE_PHASES.contains(&text(&object, "/status/phase"));
        let groups = annotation(&object, REQUIRED_GROUPS_ANNOTATION).unwrap_or_default();
        if !alive || !in_required_groups(caller, groups) {
            return false;
        }
    }
    let access = Attributes { verb: "access".into(), path: "/".into(), ..Attributes::default() };
    home_of(caller) == Some(cluster) || permits(data, caller, cluster, &access)
}

/// `a,b;c` means (a and b) or c.
fn in_required_groups(caller: &Caller, required: &str) -> bool {
    required.is_empty() || required.split(';').any(|all| all.split(',').all(|group| caller.is_in(group.trim())))
}

/// RBAC of a cluster together with that of `system:admin`, without the check for access.
pub fn permits(data: &Data, caller: &Caller, cluster: &str, attributes: &Attributes) -> bool {
    if is_master(caller) {
        return true;
    }
    let caller = seen_from(caller, cluster);
    rbac::allowed(&data.store, &[cluster, SYSTEM_ADMIN], &caller, attributes)
}

/// The logical cluster of a service account.
fn home_of(caller: &Caller) -> Option<&str> {
    if !caller.user.starts_with(ACCOUNT_PREFIX) {
        return None;
    }
    caller.extra.get(ACCOUNT_CLUSTER).and_then(|names| names.first()).map(String::as_str)
}

/// A service account of another cluster has no identity of its own here, but rights can be granted to its cluster.
pub fn seen_from(caller: &Caller, cluster: &str) -> Caller {
    match home_of(caller) {
        Some(home) if home != cluster => Caller {
            user: account_name(caller, home),
            groups: vec!["system:authenticated".into(), format!("system:cluster:{home}")],
            ..Caller::default()
        },
        _ => caller.clone(),
    }
}

fn account_name(caller: &Caller, home: &str) -> String {
    let account = caller.user.strip_prefix(ACCOUNT_PREFIX).unwrap_or_default();
    format!("system:kcp:serviceaccount:{home}:{account}")
}

/// Whether the maximal permission policy of the export behind a bound resource lets the caller do this.
fn within_policy(data: &Data, caller: &Caller, cluster: &str, attributes: &Attributes) -> bool {
    let mut bindings = data.bindings.in_cluster(&data.store, cluster).into_iter().map(|(_, binding)| binding);
    let Some(binding) = bindings.find(|binding| binding.serves(&attributes.group, &attributes.resource)) else {
        return true;
    };
    let export = data.get(&EXPORTS, &binding.home, &binding.export);
    export.is_none_or(|export| policy_allows(data, &export, &binding.home, caller, attributes))
}

/// Whether one export's maximal permission policy, if it has one, lets the caller do this.
pub fn policy_allows(data: &Data, export: &Value, home: &str, caller: &Caller, attributes: &Attributes) -> bool {
    if export.pointer("/spec/maximalPermissionPolicy/local").is_none() || is_master(caller) {
        return true;
    }
    let user = home_of(caller).map_or_else(|| caller.user.clone(), |account| account_name(caller, account));
    let prefixed = Caller {
        user: format!("{POLICY_PREFIX}{user}"),
        groups: caller.groups.iter().map(|group| format!("{POLICY_PREFIX}{group}")).collect(),
        ..Caller::default()
    };
    rbac::allowed(&data.store, &[home, SYSTEM_ADMIN], &prefixed, attributes)
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
        for (groups, allowed) in [(&["a", "b"][..], true), (&["c"], true), (&["a"], false), (&[], false)] {
            assert_eq!(in_required_groups(&user(groups), "a,b;c"), allowed, "{groups:?}");
        }
        assert!(in_required_groups(&user(&[]), ""));
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

    #[test]
    fn a_foreign_service_account_is_known_by_its_cluster_only() {
        let mut account = user(&["system:serviceaccounts"]);
        account.user = "system:serviceaccount:default:bot".into();
        account.extra.insert(ACCOUNT_CLUSTER.into(), vec!["home".into()]);
        assert_eq!(seen_from(&account, "home"), account);
        let seen = seen_from(&account, "other");
        assert_eq!(seen.user, "system:kcp:serviceaccount:home:default:bot");
        assert_eq!(seen.groups, ["system:authenticated", "system:cluster:home"]);
    }
}
