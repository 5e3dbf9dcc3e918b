//! Bindings of consumers, and the claims they accepted.

use carrick_kcp::apis::v1alpha1::{AcceptablePermissionClaim, ApiBinding, ClaimState, PermissionClaim};
use carrick_kcp::condition::{self, READY};
use serde_json::json;

use super::Finding;
use crate::doctor::facts::Facts;

pub(super) fn consumers(facts: &Facts) -> Vec<Finding> {
    let Some(export) = facts.export.object() else { return Vec::new() };
    let (requested, name) = (&export.spec.permission_claims, &export.metadata.name);
    let own: Vec<_> = facts.bindings.iter().filter(|binding| binding.spec.reference.export.name == *name).collect();
    let mut found: Vec<Finding> = own.iter().filter_map(|binding| judge(facts, binding, requested)).collect();
    let well = own.len() - found.len();
    if well > 0 {
        let claims: Vec<_> = requested.iter().map(shown).collect();
        let text = format!("{well} of {} bindings are ready and accept all claims: {}", own.len(), claims.join(", "));
        found.insert(0, Finding::green(text));
    }
    found
}

/// What is wrong with a binding.
fn judge(facts: &Facts, binding: &ApiBinding, requested: &[PermissionClaim]) -> Option<Finding> {
    let name = &binding.metadata.name;
    let cluster = binding.metadata.cluster().unwrap_or_default();
    let url = carrick_kcp::url::retarget(&facts.kcp.url, cluster).unwrap_or_default();
    if !binding.is_ready() {
        let ready = condition::find(&binding.status.conditions, READY);
        let message = ready.map(|ready| ready.message.as_str()).filter(|message| !message.is_empty());
        let message = message.unwrap_or("kcp gives no reason");
        let text = format!("APIBinding {name} in workspace {cluster} is not ready: {message}");
        return Some(
            Finding::amber(text)
                .fix(format!("kubectl --server {url} get apibinding {name} -o yaml    # as the consumer")),
        );
    }
    let accepts = |claim: &PermissionClaim| {
        let decided = binding.spec.permission_claims.iter().find(|decided| decided.key() == claim.key());
        decided.is_some_and(AcceptablePermissionClaim::is_accepted)
    };
    let missing: Vec<_> = requested.iter().filter(|claim| !accepts(claim)).collect();
    if missing.is_empty() {
        return None;
    }
    let names: Vec<_> = missing.iter().map(|claim| shown(claim)).collect();
    let text = format!("APIBinding {name} in workspace {cluster} does not accept {}", names.join(", "));
    let all: Vec<_> = requested.iter().map(|claim| claim.clone().decided(ClaimState::Accepted)).collect();
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
    use carrick_kcp::apis::v1alpha1::ApiExport;
    use serde_json::Value;

    use super::super::Severity::{Amber, Green};
    use super::*;
    use crate::doctor::facts::Lookup;

    fn binding(export: &str, ready: &str, claims: &[(&str, &str)]) -> ApiBinding {
        let claims: Vec<_> = claims
            .iter()
            .map(|(resource, state)| json!({ "resource": resource, "all": true, "state": state }))
            .collect();
        let binding = json!({
            "metadata": { "name": "b", "annotations": { "kcp.io/cluster": "abc" } },
            "spec": { "reference": { "export": { "name": export } }, "permissionClaims": claims },
            "status": { "conditions": [{ "type": "Ready", "status": ready, "message": "why" }] },
        });
        serde_json::from_value(binding).unwrap()
    }

    fn found(bindings: Vec<ApiBinding>) -> Vec<Finding> {
        let mut export = ApiExport::new("e");
        export.spec.permission_claims =
            ["events", "secrets"].map(|resource| PermissionClaim::all("", resource, "")).to_vec();
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
