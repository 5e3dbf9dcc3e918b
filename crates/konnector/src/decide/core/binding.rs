//! What a binding says about itself.

use carrick_bind_api::core::conditions::{
    API_NOT_EXPORTED, AS_EXPECTED, CLUSTER_SCOPED_API, CONFLICTS, CONTESTED, FORBIDDEN, FOREIGN_OBJECT_EXISTS, Finding,
    PENDING, PERMISSION_DENIED, READY, SCHEMA_IN_SYNC, SYNCED,
};
use carrick_bind_api::core::{ApiName, BoundApi, ExportedApi};

use super::crd::CrdPlan;

/// How many objects a condition names.
const MOST_NAMED: usize = 3;

/// What was found about one API that a binding lists.
#[derive(Clone, Debug, Default)]
pub struct ApiFacts {
    /// Its name.
    pub name: String,
    /// What becomes of its CRD; none if the provider does not offer the API, or not to a Binding.
    pub crd: Option<CrdPlan>,
    /// What a server said to the write of its CRD.
    pub refused: Option<String>,
    /// Whether it has no namespaces and a Binding lists it.
    pub cluster_scoped: bool,
    /// How many of its objects are not synced because of others on the provider.
    pub conflicts: usize,
    /// Objects of it that something else writes or deletes as soon as they are synced, in words.
    pub contested: Vec<String>,
}

/// Whether a binding may use an API that the provider offers.
pub fn is_cluster_scoped_in_namespace(namespace: Option<&str>, api: &ExportedApi) -> bool {
    namespace.is_some() && api.scope != "Namespaced"
}

/// The APIs that bindings list, each once.
pub fn names(apis: &[ApiName]) -> Vec<&str> {
    let mut names: Vec<&str> = apis.iter().map(|api| api.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// The conditions of a binding whose Connection works.
pub fn findings(apis: &[ApiFacts]) -> Vec<Finding> {
    let mut all = vec![ready(apis)];
    let contested: Vec<&str> = apis.iter().flat_map(|api| &api.contested).map(String::as_str).collect();
    if !contested.is_empty() {
        let some = contested[..contested.len().min(MOST_NAMED)].join("; ");
        let words = format!("{} object(s) contested: {some}", contested.len());
        all.push(Finding::no(SYNCED, CONTESTED, words));
    } else if all[0].holds {
        all.push(Finding::yes(SYNCED, AS_EXPECTED, "all APIs installed"));
    }
    let behind: Vec<&str> = apis.iter().filter(|api| is_behind(api)).map(|api| api.name.as_str()).collect();
    all.push(if behind.is_empty() {
        Finding::yes(SCHEMA_IN_SYNC, AS_EXPECTED, "schemas are those of the provider")
    } else {
        let words = format!("installed schemas are not those of the provider: {}", behind.join(", "));
        Finding::no(SCHEMA_IN_SYNC, PENDING, words)
    });
    let conflicts: usize = apis.iter().map(|api| api.conflicts).sum();
    all.push(if conflicts == 0 {
        Finding::no(CONFLICTS, AS_EXPECTED, "no conflicts")
    } else {
        let words = format!("{conflicts} object(s) skipped due to foreign ownership; see object Events");
        Finding::yes(CONFLICTS, FOREIGN_OBJECT_EXISTS, words)
    });
    all.push(Finding::no(PERMISSION_DENIED, AS_EXPECTED, "no RBAC denials"));
    all
}

fn is_behind(api: &ApiFacts) -> bool {
    api.refused.is_some() || api.crd.as_ref().is_some_and(|crd| !crd.in_sync)
}

fn ready(apis: &[ApiFacts]) -> Finding {
    let listed = |which: fn(&ApiFacts) -> bool| {
        let names: Vec<&str> = apis.iter().filter(|api| which(api)).map(|api| api.name.as_str()).collect();
        (!names.is_empty()).then(|| names.join(", "))
    };
    if let Some(names) = listed(|api| api.cluster_scoped) {
        let words = format!("cluster-scoped APIs cannot be bound in one namespace, use a ClusterBinding: {names}");
        return Finding::no(READY, CLUSTER_SCOPED_API, words);
    }
    if let Some(names) = listed(|api| api.crd.is_none()) {
        return Finding::no(READY, API_NOT_EXPORTED, format!("APIs not exported by the provider yet: {names}"));
    }
    if let Some(problem) = apis.iter().find_map(|api| api.crd.as_ref()?.problem.clone()) {
        return problem;
    }
    if let Some(words) = apis.iter().find_map(|api| api.refused.clone()) {
        return Finding::no(READY, PENDING, words);
    }
    Finding::yes(READY, AS_EXPECTED, "binding ready")
}

/// The conditions of a binding that has to wait for its Connection.
pub fn waiting(connection: &str, exists: bool) -> Finding {
    let what = if exists { "not ready yet" } else { "not found yet" };
    Finding::no(READY, PENDING, format!("Connection {connection:?} {what}"))
}

/// The conditions of a binding whose provider lets nobody read its CRDs.
pub fn forbidden() -> Finding {
    Finding::no(READY, FORBIDDEN, "provider RBAC denies reading the CRD")
}

/// The APIs of a binding that can be used, for its status.
pub fn bound_apis(apis: &[ApiFacts]) -> Vec<BoundApi> {
    let usable = |api: &&ApiFacts| api.refused.is_none() && api.crd.as_ref().is_some_and(|crd| crd.usable.is_some());
    let bound = apis.iter().filter(usable).map(|api| {
        let mut bound = BoundApi::default();
        bound.name.clone_from(&api.name);
        bound.crd_hash = api.crd.as_ref().map(|crd| crd.hash.clone()).unwrap_or_default();
        bound.conflict_count = (api.conflicts > 0).then(|| i64::try_from(api.conflicts).unwrap_or(i64::MAX));
        bound
    });
    bound.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn installed(name: &str) -> ApiFacts {
        let crd = CrdPlan {
            write: None,
            usable: Some(serde_json::json!({})),
            hash: "sha256:1".to_owned(),
            in_sync: true,
            problem: None,
        };
        ApiFacts { name: name.to_owned(), crd: Some(crd), ..ApiFacts::default() }
    }

    #[test]
    fn a_binding_is_ready_if_every_api_is_there_and_conflicts_do_not_matter_for_that() {
        let ready = |apis: &[ApiFacts]| {
            let all = findings(apis);
            let synced = all.iter().any(|finding| finding.type_ == SYNCED);
            assert_eq!(all[0].holds, synced);
            (all[0].holds, all[0].reason)
        };
        let one = || installed("a.x");
        assert_eq!(ready(&[one()]), (true, AS_EXPECTED));
        assert_eq!(ready(&[ApiFacts { conflicts: 2, ..one() }]), (true, AS_EXPECTED));
        assert_eq!(ready(&[one(), ApiFacts { crd: None, ..one() }]), (false, API_NOT_EXPORTED));
        assert_eq!(ready(&[ApiFacts { cluster_scoped: true, ..one() }]), (false, CLUSTER_SCOPED_API));
        assert_eq!(ready(&[ApiFacts { refused: Some("no".to_owned()), ..one() }]), (false, PENDING));
        let mut foreign = one();
        let problem = Finding::no(READY, "ForeignCRD", "not ours");
        foreign.crd.as_mut().unwrap().problem = Some(problem);
        assert_eq!(ready(&[foreign]), (false, "ForeignCRD"));
    }

    #[test]
    fn what_something_undoes_is_named_and_the_others_are_ready() {
        let contested = (1..=5).map(|number| format!("a.x team/{number}: is undone")).collect();
        let all = findings(&[ApiFacts { contested, ..installed("a.x") }]);
        assert!(all[0].holds);
        let synced = all.iter().find(|finding| finding.type_ == SYNCED).unwrap();
        assert!(!synced.holds && synced.reason == CONTESTED);
        let words = "5 object(s) contested: a.x team/1: is undone; a.x team/2: is undone; a.x team/3: is undone";
        assert_eq!(synced.message, words);
    }

    #[test]
    fn bound_apis_are_those_that_can_be_used() {
        let missing = ApiFacts { crd: None, ..installed("b.x") };
        let bound = bound_apis(&[ApiFacts { conflicts: 1, ..installed("a.x") }, missing]);
        let shown = serde_json::json!([{"name": "a.x", "crdHash": "sha256:1", "conflictCount": 1}]);
        assert_eq!(serde_json::to_value(bound).unwrap(), shown);
    }
}
