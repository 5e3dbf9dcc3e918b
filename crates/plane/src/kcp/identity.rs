//! Who a caller counts as in a logical cluster: scopes limit a caller to some clusters, service accounts belong to one, and warrants lend
//! the rights of somebody else.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::caller::{ACCOUNT_CLUSTER, Caller};

const SCOPES: &str = "authentication.kcp.io/scopes";
const WARRANT: &str = "authorization.kcp.io/warrant";
const ACCOUNT_PREFIX: &str = "system:serviceaccount:";
const CLUSTER_SCOPE: &str = "cluster:";
const ANONYMOUS: &str = "system:anonymous";
const AUTHENTICATED: &str = "system:authenticated";
const UNAUTHENTICATED: &str = "system:unauthenticated";
/// Warrants may hold warrants; nobody nests them deeper than this.
const DEPTH: usize = 16;

/// Somebody whose rights a caller has as well, as JSON in the caller's extra attributes.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Warrant {
    #[serde(skip_serializing_if = "String::is_empty")]
    user: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    uid: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    groups: Vec<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    extra: BTreeMap<String, Vec<String>>,
}

impl From<Warrant> for Caller {
    fn from(warrant: Warrant) -> Self {
        let Warrant { user, uid, groups, extra } = warrant;
        Self { user, uid, groups, extra, system: false }
    }
}

fn values<'a>(caller: &'a Caller, key: &str) -> &'a [String] {
    caller.extra.get(key).map_or(&[], Vec::as_slice)
}

/// Whether the caller is a service account, of whatever cluster.
pub fn is_account(caller: &Caller) -> bool {
    caller.user.starts_with(ACCOUNT_PREFIX)
}

/// Whether the caller has an identity of their own in a cluster. Service accounts without a cluster are taken for local ones.
pub fn in_scope(caller: &Caller, cluster: &str) -> bool {
    let homes = values(caller, ACCOUNT_CLUSTER);
    if is_account(caller) && !homes.is_empty() && homes != [cluster] {
        return false;
    }
    let names = |scope: &str| scope.strip_prefix(CLUSTER_SCOPE) == Some(cluster);
    values(caller, SCOPES).iter().all(|scopes| scopes.split(',').any(names))
}

/// Limits a caller to one cluster, besides all limits that apply already.
pub fn limit(caller: &mut Caller, cluster: &str) {
    caller.extra.entry(SCOPES.to_owned()).or_default().push(format!("{CLUSTER_SCOPE}{cluster}"));
}

/// The groups that stand for the clusters all of a caller's scopes have in common.
fn cluster_groups(caller: &Caller) -> impl Iterator<Item = String> {
    let (first, rest) = match values(caller, SCOPES) {
        [] => ("", &[][..]),
        [first, rest @ ..] => (first.as_str(), rest),
    };
    let common = first.split(',').filter(move |scope| rest.iter().all(|other| other.split(',').any(|o| o == *scope)));
    common.filter(|scope| scope.starts_with(CLUSTER_SCOPE)).map(|scope| format!("system:{scope}"))
}

/// Everybody a caller counts as in a cluster.
pub fn effective<'a>(caller: &'a Caller, cluster: &str) -> Vec<Cow<'a, Caller>> {
    let mut found = Found::default();
    found.add(Cow::Borrowed(caller), cluster, DEPTH);
    let Found { mut all, authenticated, unauthenticated } = found;
    let anonymous = |groups: Vec<String>| Caller { user: ANONYMOUS.into(), groups, ..Caller::default() };
    if authenticated {
        let groups = std::iter::once(AUTHENTICATED.to_owned()).chain(cluster_groups(caller)).collect();
        all.push(Cow::Owned(anonymous(groups)));
    }
    if unauthenticated {
        all.push(Cow::Owned(anonymous(vec![UNAUTHENTICATED.to_owned()])));
    }
    all
}

#[derive(Default)]
struct Found<'a> {
    all: Vec<Cow<'a, Caller>>,
    /// Somebody who is out of scope still counts as somebody with, or without, credentials.
    authenticated: bool,
    unauthenticated: bool,
}

impl<'a> Found<'a> {
    fn add(&mut self, caller: Cow<'a, Caller>, cluster: &str, depth: usize) {
        let global = global_account(&caller);
        let warrants = lent(&caller);
        if in_scope(&caller, cluster) {
            self.all.push(caller);
        } else if caller.is_in(AUTHENTICATED) {
            self.authenticated = true;
        } else {
            self.unauthenticated = true;
        }
        self.all.extend(global.map(Cow::Owned));
        for mut warrant in warrants {
            // A service account means nothing without its cluster.
            if depth == 0 || (is_account(&warrant) && values(&warrant, ACCOUNT_CLUSTER).is_empty()) {
                continue;
            }
            let groups: Vec<String> = cluster_groups(&warrant).collect();
            warrant.groups.extend(groups);
            self.add(Cow::Owned(warrant), cluster, depth - 1);
        }
    }
}

/// A service account under the name by which every cluster knows it.
fn global_account(caller: &Caller) -> Option<Caller> {
    let account = caller.user.strip_prefix(ACCOUNT_PREFIX)?;
    let [home] = values(caller, ACCOUNT_CLUSTER) else { return None };
    let known = caller.groups.iter().filter(|group| *group == AUTHENTICATED).cloned();
    Some(Caller {
        user: format!("system:kcp:serviceaccount:{home}:{account}"),
        groups: known.chain(cluster_groups(caller)).collect(),
        ..Caller::default()
    })
}

fn lent(caller: &Caller) -> Vec<Caller> {
    let read = |text: &String| serde_json::from_str::<Warrant>(text).ok().map(Caller::from);
    values(caller, WARRANT).iter().filter_map(read).collect()
}

/// Whether the caller counts as a member of a group in a cluster.
pub fn belongs(identities: &[Cow<'_, Caller>], group: &str) -> bool {
    identities.iter().any(|who| who.is_in(group))
}

/// The caller with a prefix before the name and every group; service accounts under their global name.
pub fn prefixed(caller: &Caller, prefix: &str) -> Caller {
    let groups = |caller: &Caller| caller.groups.iter().map(|group| format!("{prefix}{group}")).collect();
    let name = match (is_account(caller), global_account(caller)) {
        (false, _) => caller.user.clone(),
        (true, Some(global)) => global.user,
        (true, None) => {
            let group = if caller.is_in(AUTHENTICATED) { AUTHENTICATED } else { UNAUTHENTICATED };
            let groups = vec![format!("{prefix}{group}")];
            return Caller { user: format!("{prefix}{ANONYMOUS}"), groups, ..Caller::default() };
        }
    };
    let mut extra = caller.extra.clone();
    if let Some(warrants) = extra.get_mut(WARRANT) {
        *warrants = lent(caller).iter().filter_map(|warrant| written(&prefixed(warrant, prefix))).collect();
    }
    Caller {
        user: format!("{prefix}{name}"),
        uid: caller.uid.clone(),
        groups: groups(caller),
        extra,
        system: caller.system,
    }
}

fn written(caller: &Caller) -> Option<String> {
    let Caller { user, uid, groups, extra, .. } = caller.clone();
    serde_json::to_string(&Warrant { user, uid, groups, extra }).ok()
}

/// The caller without scopes, if it is a service account: their tokens are always limited to one cluster.
pub fn unlimited(caller: &Caller, was_account: bool) -> Caller {
    let mut caller = caller.clone();
    if was_account {
        caller.extra.remove(SCOPES);
        caller.extra.remove(ACCOUNT_CLUSTER);
    }
    caller
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(user: &str, groups: &[&str], extra: &[(&str, &str)]) -> Caller {
        let mut caller = Caller { user: user.into(), ..Caller::default() };
        caller.groups = groups.iter().map(|group| (*group).to_owned()).collect();
        for (key, value) in extra {
            caller.extra.entry((*key).to_owned()).or_default().push((*value).to_owned());
        }
        caller
    }

    fn shown(caller: &Caller, cluster: &str) -> Vec<(String, Vec<String>)> {
        effective(caller, cluster).iter().map(|who| (who.user.clone(), who.groups.clone())).collect()
    }

    fn who(user: &str, groups: &[&str]) -> (String, Vec<String>) {
        (user.to_owned(), groups.iter().map(|group| (*group).to_owned()).collect())
    }

    #[test]
    fn a_service_account_is_itself_at_home_and_known_by_its_cluster_elsewhere() {
        let extra = [(ACCOUNT_CLUSTER, "home"), (SCOPES, "cluster:home")];
        let account = caller("system:serviceaccount:ns:bot", &["system:serviceaccounts", AUTHENTICATED], &extra);
        let global = who("system:kcp:serviceaccount:home:ns:bot", &[AUTHENTICATED, "system:cluster:home"]);
        let own = who("system:serviceaccount:ns:bot", &["system:serviceaccounts", AUTHENTICATED]);
        assert_eq!(shown(&account, "home"), [own, global.clone()]);
        assert_eq!(shown(&account, "other"), [global, who(ANONYMOUS, &[AUTHENTICATED, "system:cluster:home"])]);
        assert_eq!(prefixed(&account, "p:").user, "p:system:kcp:serviceaccount:home:ns:bot");
    }

    #[test]
    fn a_service_account_without_a_cluster_is_a_local_one() {
        let account = caller("system:serviceaccount:ns:bot", &[], &[]);
        assert_eq!(shown(&account, "any"), [who("system:serviceaccount:ns:bot", &[])]);
        assert_eq!(prefixed(&account, "p:").user, "p:system:anonymous");
    }

    #[test]
    fn all_scopes_must_name_the_cluster() {
        let both = caller("u", &[AUTHENTICATED], &[(SCOPES, "cluster:a,cluster:b"), (SCOPES, "cluster:b,cluster:c")]);
        for (cluster, inside) in [("a", false), ("b", true), ("c", false)] {
            assert_eq!(in_scope(&both, cluster), inside, "{cluster}");
        }
        assert_eq!(shown(&both, "a"), [who(ANONYMOUS, &[AUTHENTICATED, "system:cluster:b"])]);
        let nobody = caller("u", &[], &[(SCOPES, "nonsense")]);
        assert_eq!(shown(&nobody, "a"), [who(ANONYMOUS, &[UNAUTHENTICATED])]);
    }

    #[test]
    fn warrants_add_identities_and_may_be_nested() {
        let inner = r#"{"user":"c","groups":["g"]}"#;
        let outer = serde_json::json!({"user": "b", "extra": {WARRANT: [inner]}}).to_string();
        let lender = caller("a", &[], &[(WARRANT, &outer), (WARRANT, "nonsense")]);
        assert_eq!(shown(&lender, "x"), [who("a", &[]), who("b", &[]), who("c", &["g"])]);
        let prefixed = prefixed(&lender, "p:");
        assert_eq!(shown(&prefixed, "x"), [who("p:a", &[]), who("p:b", &[]), who("p:c", &["p:g"])]);
        let account = caller("a", &[], &[(WARRANT, r#"{"user":"system:serviceaccount:n:x"}"#)]);
        assert_eq!(shown(&account, "x"), [who("a", &[])]);
    }
}
