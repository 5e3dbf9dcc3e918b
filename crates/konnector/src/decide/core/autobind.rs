//! autoBind: a ClusterBinding of everything that is offered, whose list does not shrink because one answer was short.
//!
//! An API leaves the list when two complete answers, a minute or more apart, have lacked it. The last one stays whatever happens, and so does the
//! ClusterBinding: an empty answer is more often a mistake than a wish, and unbinding deletes consumers' objects.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use carrick_bind_api::carrick_kcp::meta::OwnerReference;
use carrick_bind_api::clock;
use carrick_bind_api::core::names::{GONE_SINCE_ANNOTATION, MANAGED_LABEL};
use carrick_bind_api::core::schema::is_platform_group;
use carrick_bind_api::core::{ApiName, ClusterBinding, Connection, ExportedApi};
use carrick_bind_api::jiff::Timestamp;

/// How long an API must be missing before it leaves the list.
pub const CONFIRMED_AFTER: Duration = Duration::from_mins(1);

/// What becomes of the automatic ClusterBinding.
#[derive(Clone, Debug, PartialEq)]
pub enum AutoBind {
    /// It is as it should be.
    Nothing,
    /// It is created.
    Create(Box<ClusterBinding>),
    /// It is replaced.
    Replace(Box<ClusterBinding>),
    /// Somebody else has made a ClusterBinding of that name, which is left alone.
    Taken,
}

/// Whether an API is bound without being asked for by name: those of kcp and Kubernetes are not.
pub fn is_offered(api: &ExportedApi) -> bool {
    !is_platform_group(&api.group)
}

/// Whether a ClusterBinding was made for a Connection.
pub fn is_automatic(binding: &ClusterBinding, connection: &Connection) -> bool {
    let owned = |owner: &OwnerReference| owner.uid == connection.metadata.uid && owner.controller;
    binding.metadata.label(MANAGED_LABEL) == Some("true") && binding.metadata.owner_references.iter().any(owned)
}

/// Decides, given a complete answer of what is offered.
pub fn decide(
    connection: &Connection,
    there: Option<&ClusterBinding>,
    offered: &[ExportedApi],
    now: Timestamp,
) -> AutoBind {
    let offered: Vec<&str> = offered.iter().filter(|api| is_offered(api)).map(|api| api.name.as_str()).collect();
    let Some(there) = there else {
        return if offered.is_empty() {
            AutoBind::Nothing
        } else {
            AutoBind::Create(Box::new(new(connection, &offered)))
        };
    };
    if !is_automatic(there, connection) {
        return AutoBind::Taken;
    }
    if there.metadata.is_deleting() {
        return AutoBind::Nothing;
    }
    let (since, mut wanted, mut gone) = (gone_since(there), there.clone(), BTreeMap::new());
    let listed: BTreeSet<&str> = there.spec.apis.iter().map(|api| api.name.as_str()).collect();
    let mut names: BTreeSet<&str> = offered.iter().copied().collect();
    for name in listed.difference(&names.clone()).copied() {
        let first = since.get(name).copied().unwrap_or(now);
        if offered.is_empty() || now.duration_since(first).unsigned_abs() < CONFIRMED_AFTER {
            names.insert(name);
            gone.insert(name, first);
        }
    }
    if names != listed {
        wanted.spec.apis = names.into_iter().map(ApiName::new).collect();
    }
    let shown: Vec<String> = gone.iter().map(|(name, at)| format!("{name}={}", clock::show(*at))).collect();
    // An empty text, because a merge patch does not remove what it does not name.
    if !shown.is_empty() || there.metadata.annotation(GONE_SINCE_ANNOTATION).is_some() {
        wanted.metadata.annotate(GONE_SINCE_ANNOTATION, shown.join(","));
    }
    if wanted == *there { AutoBind::Nothing } else { AutoBind::Replace(Box::new(wanted)) }
}

/// Whether APIs are waiting to be confirmed as gone, so that it has to be decided again without any news.
pub fn is_waiting(there: Option<&ClusterBinding>) -> bool {
    there.is_some_and(|there| !gone_since(there).is_empty())
}

fn gone_since(binding: &ClusterBinding) -> BTreeMap<String, Timestamp> {
    let text = binding.metadata.annotation(GONE_SINCE_ANNOTATION).unwrap_or_default();
    let entry = |part: &str| {
        let (name, time) = part.split_once('=')?;
        Some((name.to_owned(), clock::read(time)?))
    };
    text.split(',').filter_map(entry).collect()
}

fn new(connection: &Connection, offered: &[&str]) -> ClusterBinding {
    let mut binding = ClusterBinding::new(&connection.metadata.name);
    binding.metadata.set_label(MANAGED_LABEL, "true");
    let mut owner = OwnerReference::to(connection);
    (owner.controller, owner.block_owner_deletion) = (true, true);
    binding.metadata.owner_references = vec![owner];
    binding.spec.connection_ref.name.clone_from(&connection.metadata.name);
    let mut names = offered.to_vec();
    names.sort_unstable();
    binding.spec.apis = names.into_iter().map(ApiName::new).collect();
    binding
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn api(resource: &str, group: &str) -> ExportedApi {
        ExportedApi::new(group, resource, "Namespaced", vec!["v1".to_owned()])
    }

    fn connection() -> Connection {
        let mut connection = Connection::new("west");
        connection.metadata.uid = "c".to_owned();
        connection
    }

    fn created(offered: &[ExportedApi]) -> ClusterBinding {
        let AutoBind::Create(binding) = decide(&connection(), None, offered, at(0)) else { panic!() };
        *binding
    }

    fn listed(binding: &ClusterBinding) -> Vec<&str> {
        binding.spec.apis.iter().map(|api| api.name.as_str()).collect()
    }

    #[test]
    fn everything_is_bound_but_what_belongs_to_kcp_or_kubernetes() {
        let offered =
            [api("widgets", "example.io"), api("apibindings", "apis.kcp.io"), api("leases", "coordination.k8s.io")];
        let binding = created(&offered);
        assert_eq!(listed(&binding), ["widgets.example.io"]);
        assert!(is_automatic(&binding, &connection()));
        assert_eq!(decide(&connection(), None, &offered[1..], at(0)), AutoBind::Nothing);
    }

    #[test]
    fn a_short_answer_removes_nothing_before_it_is_confirmed_and_an_empty_one_never_does() {
        let all = [api("a", "x.io"), api("b", "x.io")];
        let binding = created(&all);
        assert_eq!(decide(&connection(), Some(&binding), &all, at(5)), AutoBind::Nothing);
        let AutoBind::Replace(short) = decide(&connection(), Some(&binding), &all[..1], at(10)) else { panic!() };
        assert_eq!(listed(&short), ["a.x.io", "b.x.io"]);
        assert!(is_waiting(Some(&short)));
        assert_eq!(decide(&connection(), Some(&short), &all[..1], at(40)), AutoBind::Nothing);
        let AutoBind::Replace(back) = decide(&connection(), Some(&short), &all, at(40)) else { panic!() };
        assert!(!is_waiting(Some(&back)) && listed(&back).len() == 2);
        let AutoBind::Replace(gone) = decide(&connection(), Some(&short), &all[..1], at(71)) else { panic!() };
        assert_eq!(listed(&gone), ["a.x.io"]);
        // Nothing is offered any more, for ever.
        let AutoBind::Replace(empty) = decide(&connection(), Some(&binding), &[], at(10)) else { panic!() };
        assert_eq!(decide(&connection(), Some(&empty), &[], at(10_000)), AutoBind::Nothing);
        assert_eq!(listed(&empty).len(), 2);
    }

    #[test]
    fn what_somebody_else_made_under_the_name_is_left_alone() {
        let theirs = ClusterBinding::new("west");
        assert_eq!(decide(&connection(), Some(&theirs), &[api("a", "x.io")], at(0)), AutoBind::Taken);
    }
}
