//! Bindings of consumers, and the claims they accepted.

use std::collections::BTreeMap;

use carrick_kcp::apis::v1alpha2::{AcceptablePermissionClaim, ApiBinding, ClaimState, PermissionClaim};
use carrick_kcp::condition::{self, READY};
use serde_json::json;

use super::Finding;
use crate::doctor::facts::Facts;

/// How many workspaces are named.
const NAMED: usize = 10;

pub(super) fn consumers(facts: &Facts) -> Vec<Finding> {
    let Some(export) = facts.export.object() else { return Vec::new() };
    let (requested, name) = (&export.spec.permission_claims, &export.metadata.name);
    let own: Vec<_> = facts.bindings.iter().filter(|binding| binding.spec.reference.export.name == *name).collect();
    // Bindings with the same problem are told of together.
    let mut problems: BTreeMap<(Problem, &str), Vec<&ApiBinding>> = BTreeMap::new();
    for binding in &own {
        if let Some(problem) = judge(binding, requested) {
            problems.entry((problem, binding.metadata.name.as_str())).or_default().push(binding);
        }
    }
    let well = own.len() - problems.values().map(Vec::len).sum::<usize>();
    let mut found = Vec::new();
    if well > 0 {
        let claims: Vec<_> = requested.iter().map(shown).collect();
        let text = format!("{well} of {} bindings are ready and accept all claims: {}", own.len(), claims.join(", "));
        found.push(Finding::green(text));
    }
    found.extend(problems.iter().map(|((problem, name), bindings)| report(facts, problem, name, bindings)));
    found
}

/// What is wrong with a binding.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Problem {
    /// It is not ready, and why.
    NotReady(String),
    /// It does not accept these claims; and the patch that accepts them.
    Refuses(Vec<String>, String),
}

fn judge(binding: &ApiBinding, requested: &[PermissionClaim]) -> Option<Problem> {
    if !binding.is_ready() {
        let ready = condition::find(&binding.status.conditions, READY);
        let message = ready.map(|ready| ready.message.as_str()).filter(|message| !message.is_empty());
        return Some(Problem::NotReady(message.unwrap_or("kcp gives no reason").to_owned()));
    }
    let accepts = |claim: &PermissionClaim| {
        let decided = binding.spec.permission_claims.iter().find(|decided| decided.key() == claim.key());
        decided.is_some_and(AcceptablePermissionClaim::is_accepted)
    };
    let missing: Vec<String> = requested.iter().filter(|claim| !accepts(claim)).map(shown).collect();
    (!missing.is_empty()).then(|| Problem::Refuses(missing, acceptance(binding, requested)))
}

/// The patch with which a binding accepts everything. What it has decided already stays: kcp lets nobody change the selector of a claim.
fn acceptance(binding: &ApiBinding, requested: &[PermissionClaim]) -> String {
    let mut all = binding.spec.permission_claims.clone();
    for claim in requested {
        match all.iter_mut().find(|decided| decided.key() == claim.key()) {
            Some(decided) => decided.state = ClaimState::Accepted,
            None => all.push(AcceptablePermissionClaim::accept(claim)),
        }
    }
    json!({ "spec": { "permissionClaims": all } }).to_string()
}

fn report(facts: &Facts, problem: &Problem, name: &str, bindings: &[&ApiBinding]) -> Finding {
    let workspaces: Vec<String> = bindings.iter().map(|binding| workspace(facts, binding)).collect();
    let (one, which) = match workspaces.as_slice() {
        [one] => (true, format!("APIBinding {name} in workspace {one}")),
        many => {
            let more = if many.len() > NAMED { format!(" and {} more", many.len() - NAMED) } else { String::new() };
            let listed = many[..many.len().min(NAMED)].join(", ");
            (false, format!("APIBindings {name} in {} workspaces ({listed}{more})", many.len()))
        }
    };
    let clusters: Vec<&str> = bindings.iter().map(|binding| binding.metadata.cluster().unwrap_or_default()).collect();
    let command = |rest: &str| -> Vec<String> {
        let url = |cluster: &str| carrick_kcp::url::retarget(&facts.kcp.url, cluster).unwrap_or_default();
        match clusters.as_slice() {
            [cluster] => vec![format!("kubectl --server {} {rest}", url(cluster))],
            many => vec![
                format!("for workspace in {}; do", many.join(" ")),
                format!("  kubectl --server {} {rest}", url("WORKSPACE").replace("WORKSPACE", "$workspace")),
                "done".to_owned(),
            ],
        }
    };
    let staged = are_staged(facts, bindings);
    let whose = if staged { "whoever runs the platform" } else { "the consumer" };
    match problem {
        Problem::NotReady(message) => {
            let verb = if one { "is" } else { "are" };
            let fixes = command(&format!("get apibinding {name} -o yaml"));
            let found = Finding::amber(format!("{which} {verb} not ready: {message}")).id("binding-not-ready");
            fixes.into_iter().fold(found.fix(format!("# with a kubeconfig of {whose}:")), Finding::fix)
        }
        Problem::Refuses(missing, patch) => {
            let verb = if one { "does" } else { "do" };
            let fixes = command(&format!("patch apibindings.v1alpha2.apis.kcp.io {name} --type=merge -p '{patch}'"));
            let found =
                Finding::amber(format!("{which} {verb} not accept {}", missing.join(", "))).id("claim-not-accepted");
            let more = if staged { "; a broker accepts claims only once" } else { ", who may also refuse" };
            fixes.into_iter().fold(found.fix(format!("# with a kubeconfig of {whose}{more}:")), Finding::fix)
        }
    }
}

/// The workspace of a binding: its path with the name of its cluster, as far as they are known, and whose orders a broker has brought there.
fn workspace(facts: &Facts, binding: &ApiBinding) -> String {
    let of = |cluster: &str| facts.copies.iter().find_map(|kind| kind.behind.get(cluster));
    let consumer = binding.metadata.cluster().and_then(of);
    let consumer = consumer.map(|consumer| format!(", consumer {consumer}")).unwrap_or_default();
    match (binding.metadata.path().filter(|path| !path.is_empty()), binding.metadata.cluster()) {
        (Some(path), Some(cluster)) if path != cluster => format!("{path} ({cluster}{consumer})"),
        (path, cluster) => path.or(cluster).unwrap_or_default().to_owned() + &consumer,
    }
}

/// Whether all bindings are in workspaces that a broker has made, so that no consumer can do anything about them.
fn are_staged(facts: &Facts, bindings: &[&ApiBinding]) -> bool {
    let is_staged = |binding: &&ApiBinding| {
        let (root, path) = (facts.asked.staging_root.as_ref(), binding.metadata.path());
        root.zip(path).is_some_and(|(root, path)| root.is_above(path))
    };
    bindings.iter().all(is_staged)
}

fn shown(claim: &PermissionClaim) -> String {
    if claim.group.is_empty() { claim.resource.clone() } else { format!("{}.{}", claim.resource, claim.group) }
}

#[cfg(test)]
mod tests {
    use carrick_kcp::apis::v1alpha2::ApiExport;
    use serde_json::Value;

    use super::super::Severity::{Amber, Green};
    use super::*;
    use crate::doctor::facts::Lookup;

    fn binding(export: &str, ready: &str, claims: &[(&str, &str)]) -> ApiBinding {
        let claims: Vec<_> = claims
            .iter()
            .map(|(resource, state)| json!({ "resource": resource, "verbs": ["*"], "selector": { "matchAll": true }, "state": state }))
            .collect();
        let binding = json!({
            "metadata": { "name": "b", "annotations": { "kcp.io/cluster": "abc" } },
            "spec": { "reference": { "export": { "name": export } }, "permissionClaims": claims },
            "status": { "conditions": [{ "type": "Ready", "status": ready, "message": "why" }] },
        });
        serde_json::from_value(binding).unwrap()
    }

    fn found(bindings: Vec<ApiBinding>) -> Vec<Finding> {
        consumers(&facts(bindings))
    }

    fn facts(bindings: Vec<ApiBinding>) -> Facts {
        let mut export = ApiExport::new("e");
        for resource in ["events", "secrets"] {
            export.claim_all("", resource, "");
        }
        let mut facts = Facts { export: Lookup::There(export), bindings, ..Facts::default() };
        facts.kcp.url = "https://h/clusters/root:p".to_owned();
        facts
    }

    #[test]
    fn bindings_are_ready_and_accept_what_is_claimed() {
        let (yes, no) = ("Accepted", "Rejected");
        let cases = [
            (binding("e", "True", &[("events", yes), ("secrets", yes)]), Green, "1 of 1 bindings"),
            (binding("e", "True", &[("events", yes), ("secrets", no)]), Amber, "does not accept secrets"),
            (binding("e", "True", &[]), Amber, "does not accept events, secrets"),
            (binding("e", "False", &[]), Amber, "is not ready: why"),
        ];
        for (binding, severity, wanted) in cases {
            let found = found(vec![binding]);
            assert_eq!((found.len(), found[0].severity), (1, severity), "{found:?}");
            assert!(found[0].text.contains(wanted), "{found:?}");
        }
        assert_eq!(found(vec![binding("another", "False", &[])]), []);
    }

    #[test]
    fn bindings_with_the_same_problem_are_one_finding() {
        let in_cluster = |cluster: &str| {
            let mut binding = binding("e", "True", &[]);
            binding.metadata.annotate("kcp.io/cluster", cluster);
            binding.metadata.annotate("kcp.io/path", format!("root:{cluster}"));
            binding
        };
        let told = found(["a", "b", "c"].map(in_cluster).to_vec());
        assert_eq!(told.len(), 1, "{told:?}");
        assert_eq!(
            told[0].text,
            "APIBindings b in 3 workspaces (root:a (a), root:b (b), root:c (c)) do not accept events, secrets"
        );
        assert_eq!(told[0].fix[1], "for workspace in a b c; do");
        assert!(told[0].fix[2].starts_with("  kubectl --server https://h/clusters/$workspace patch "), "{told:?}");
        let many = found((0..30).map(|at| in_cluster(&at.to_string())).collect());
        assert!(many[0].text.contains("and 20 more"), "{many:?}");
    }

    #[test]
    fn a_binding_that_a_broker_has_made_is_its_platforms_business_and_names_the_consumer() {
        let mut staged = binding("e", "True", &[]);
        staged.metadata.annotate("kcp.io/path", "root:staging:staging-1");
        let mut facts = facts(vec![staged]);
        facts.asked.staging_root = carrick_syncagent::options::staging_root("root:staging", "");
        let behind = [("abc".to_owned(), "2h3k".to_owned())].into();
        facts.copies = vec![crate::doctor::facts::KindCopies { behind, ..Default::default() }];
        let found = consumers(&facts);
        assert!(found[0].text.contains("in workspace root:staging:staging-1 (abc, consumer 2h3k)"), "{found:?}");
        assert_eq!(
            found[0].fix[0],
            "# with a kubeconfig of whoever runs the platform; a broker accepts claims only once:"
        );
    }

    #[test]
    fn the_fix_accepts_everything_in_the_consumers_workspace() {
        let told = found(vec![binding("e", "True", &[])]);
        let command = &told[0].fix[1];
        assert!(
            command.starts_with("kubectl --server https://h/clusters/abc patch apibindings.v1alpha2.apis.kcp.io b")
        );
        let patch: Value = serde_json::from_str(command.split('\'').nth(1).unwrap()).unwrap();
        assert_eq!(
            patch["spec"]["permissionClaims"][1],
            json!({ "group": "", "resource": "secrets", "identityHash": "", "verbs": ["*"], "selector": { "matchAll": true }, "state": "Accepted" })
        );
    }
}
