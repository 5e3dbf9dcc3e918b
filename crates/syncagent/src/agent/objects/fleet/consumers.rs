//! Who binds the export, and which claims they have accepted: for the dashboard, from the watch of bindings that the agent has anyway.

use std::collections::BTreeMap;

use carrick_kcp::apis::v1alpha2::ApiBinding;
use carrick_multicluster::ClusterName;
use carrick_multicluster::providers::kcp::Stage;
use parking_lot::Mutex;
use serde::Serialize;

/// All bindings, by logical cluster and name.
#[derive(Default)]
pub(crate) struct Consumers(Mutex<BTreeMap<String, BTreeMap<String, Bound>>>);

/// One binding of the export.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Bound {
    /// Name of the APIBinding.
    pub name: String,
    /// Whether it works.
    pub ready: bool,
    /// What the export claims, and what the consumer has decided.
    pub claims: Vec<Decision>,
}

/// The decision on one claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Decision {
    /// The resource, with its group.
    pub claim: String,
    /// `accepted`, `rejected` or `undecided`.
    pub state: &'static str,
}

impl Consumers {
    /// Notes what became of a binding.
    pub fn note(&self, cluster: &ClusterName, binding: &ApiBinding, stage: Stage) {
        let mut all = self.0.lock();
        let name = binding.metadata.name.clone();
        if stage == Stage::Removed {
            if let Some(bindings) = all.get_mut(cluster.as_str()) {
                bindings.remove(&name);
                if bindings.is_empty() {
                    all.remove(cluster.as_str());
                }
            }
            return;
        }
        let bound = Bound { name: name.clone(), ready: binding.is_ready(), claims: decisions(binding) };
        all.entry(cluster.to_string()).or_default().insert(name, bound);
    }

    /// All of them, by logical cluster.
    pub fn all(&self) -> BTreeMap<String, Vec<Bound>> {
        self.0.lock().iter().map(|(cluster, all)| (cluster.clone(), all.values().cloned().collect())).collect()
    }

    /// Forgets all of them.
    pub fn clear(&self) {
        self.0.lock().clear();
    }
}

/// What was decided about every claim of the export, as far as kcp has told the binding of it.
fn decisions(binding: &ApiBinding) -> Vec<Decision> {
    let decided = &binding.spec.permission_claims;
    let each = binding.status.export_permission_claims.iter().map(|claim| {
        let decision = decided.iter().find(|decided| decided.key() == claim.key());
        let state = match decision {
            Some(decision) if decision.is_accepted() => "accepted",
            Some(_) => "rejected",
            None => "undecided",
        };
        let dot = if claim.group.is_empty() { "" } else { "." };
        Decision { claim: format!("{}{dot}{}", claim.resource, claim.group), state }
    });
    each.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn binding(name: &str) -> ApiBinding {
        serde_json::from_value(json!({
            "metadata": {"name": name},
            "spec": {"permissionClaims": [
                {"resource": "secrets", "all": true, "state": "Accepted"},
                {"group": "g.io", "resource": "things", "identityHash": "h", "all": true, "state": "Rejected"},
                {"resource": "long-gone", "all": true, "state": "Accepted"},
            ]},
            "status": {"exportPermissionClaims": [
                {"resource": "secrets", "all": true},
                {"group": "g.io", "resource": "things", "identityHash": "h", "all": true},
                {"resource": "events", "all": true},
            ]},
        }))
        .unwrap()
    }

    #[test]
    fn every_claim_of_the_export_has_a_decision_or_none() {
        let told: Vec<_> = decisions(&binding("b")).into_iter().map(|one| (one.claim, one.state)).collect();
        let wanted = [("secrets", "accepted"), ("things.g.io", "rejected"), ("events", "undecided")];
        assert_eq!(told, wanted.map(|(claim, state)| (claim.to_owned(), state)));
    }

    #[test]
    fn a_workspace_is_a_consumer_until_its_last_binding_is_gone() {
        let (consumers, cluster) = (Consumers::default(), ClusterName::new("c").unwrap());
        for (name, stage) in [("a", Stage::Added), ("b", Stage::Added), ("a", Stage::Changed), ("a", Stage::Removed)] {
            consumers.note(&cluster, &binding(name), stage);
        }
        assert_eq!(consumers.all()["c"].iter().map(|bound| bound.name.as_str()).collect::<Vec<_>>(), ["b"]);
        consumers.note(&cluster, &binding("b"), Stage::Removed);
        assert!(consumers.all().is_empty());
    }
}
