//! Bindings of consumers, and the claims they accepted.

use carrick_kcp::apis::{ApiExportSpec, PermissionClaim};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Finding;
use crate::doctor::facts::Facts;

pub(super) fn consumers(facts: &Facts) -> Vec<Finding> {
    let Some(export) = facts.export.object() else { return Vec::new() };
    let requested = ApiExportSpec::deserialize(&export["spec"]).unwrap_or_default().permission_claims;
    let name = &export["metadata"]["name"];
    let own: Vec<_> =
        facts.bindings.iter().filter(|binding| binding["spec"]["reference"]["export"]["name"] == *name).collect();
    let mut found: Vec<Finding> = own.iter().filter_map(|binding| judge(facts, binding, &requested)).collect();
    let well = own.len() - found.len();
    if well > 0 {
        let claims: Vec<_> = requested.iter().map(shown).collect();
        let text = format!("{well} of {} bindings are ready and accept all claims: {}", own.len(), claims.join(", "));
        found.insert(0, Finding::green(text));
    }
    found
}

/// What is wrong with a binding.
fn judge(facts: &Facts, binding: &Value, requested: &[PermissionClaim]) -> Option<Finding> {
    let name = binding["metadata"]["name"].as_str().unwrap_or_default();
    let cluster = binding["metadata"]["annotations"][carrick_kcp::CLUSTER_ANNOTATION].as_str().unwrap_or_default();
    let url = carrick_kcp::url::retarget(&facts.kcp.url, cluster).unwrap_or_default();
    let conditions = binding["status"]["conditions"].as_array();
    let ready = conditions.and_then(|all| all.iter().find(|condition| condition["type"] == "Ready"));
    if ready.is_none_or(|ready| ready["status"] != "True") {
        let message = ready.and_then(|ready| ready["message"].as_str()).unwrap_or("kcp gives no reason");
        let text = format!("APIBinding {name} in workspace {cluster} is not ready: {message}");
        return Some(
            Finding::amber(text)
                .fix(format!("kubectl --server {url} get apibinding {name} -o yaml    # as the consumer")),
        );
    }
    let accepted: Vec<&Value> = binding["spec"]["permissionClaims"].as_array().into_iter().flatten().collect();
    let accepts = |claim: &PermissionClaim| {
        let same = |one: &&&Value| {
            let text = |key: &str| one[key].as_str().unwrap_or_default();
            text("group") == claim.group
                && text("resource") == claim.resource
                && text("identityHash") == claim.identity_hash
        };
        accepted.iter().find(same).is_some_and(|one| one["state"] == "Accepted")
    };
    let missing: Vec<_> = requested.iter().filter(|claim| !accepts(claim)).collect();
    if missing.is_empty() {
        return None;
    }
    let names: Vec<_> = missing.iter().map(|claim| shown(claim)).collect();
    let text = format!("APIBinding {name} in workspace {cluster} does not accept {}", names.join(", "));
    let all: Vec<Value> = requested
        .iter()
        .map(|claim| {
            let mut claim = serde_json::to_value(claim).unwrap_or_default();
            claim["state"] = json!("Accepted");
            claim
        })
        .collect();
    let patch = json!({ "spec": { "permissionClaims": all } });
    Some(
        Finding::amber(text).fix("# as the consumer, who may also refuse:").fix(format!(
            "kubectl --server {url} patch apibindings.v1alpha1.apis.kcp.io {name} --type=merge -p '{patch}'"
        )),
    )
}

fn shown(claim: &PermissionClaim) -> String {
    if claim.group.is_empty() { claim.resource.clone() } else { format!("{}.{}", claim.resource, claim.group) }
}

#[cfg(test)]
mod tests {
    use super::super::Severity::{Amber, Green};
    use super::*;
    use crate::doctor::facts::Lookup;

    fn binding(export: &str, ready: &str, claims: &[(&str, &str)]) -> Value {
        let claims: Vec<_> = claims
            .iter()
            .map(|(resource, state)| json!({ "resource": resource, "all": true, "state": state }))
            .collect();
        json!({
            "metadata": { "name": "b", "annotations": { "kcp.io/cluster": "abc" } },
            "spec": { "reference": { "export": { "name": export } }, "permissionClaims": claims },
            "status": { "conditions": [{ "type": "Ready", "status": ready, "message": "why" }] },
        })
    }

    fn found(bindings: Vec<Value>) -> Vec<Finding> {
        let claims = json!([{ "resource": "events", "all": true }, { "resource": "secrets", "all": true }]);
        let export = json!({ "metadata": { "name": "e" }, "spec": { "permissionClaims": claims } });
        let mut facts = Facts { export: Lookup::There(export), bindings, ..Facts::default() };
        facts.kcp.url = "https://h/clusters/root:p".to_owned();
        consumers(&facts)
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
    fn the_fix_accepts_everything_in_the_consumers_workspace() {
        let told = found(vec![binding("e", "True", &[])]);
        let command = &told[0].fix[1];
        assert!(
            command.starts_with("kubectl --server https://h/clusters/abc patch apibindings.v1alpha1.apis.kcp.io b")
        );
        let patch: Value = serde_json::from_str(command.split('\'').nth(1).unwrap()).unwrap();
        assert_eq!(
            patch["spec"]["permissionClaims"][1],
            json!({ "resource": "secrets", "all": true, "state": "Accepted" })
        );
    }
}
