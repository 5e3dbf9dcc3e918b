//! Workspaces that let the agent write no events: what their bindings say, and what their servers have answered.
//!
//! A consumer decides whether to accept the claim on events. Where it is not accepted, kcp refuses every one, and an agent would send two for
//! each order all the same.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use carrick_kcp::apis::v1alpha2::ApiBinding;
use carrick_multicluster::providers::kcp::Stage;
use parking_lot::Mutex;
use tokio::time::Instant;

/// How long a refusal counts if the binding does not change: kcp may have refused by mistake, or rights were given since.
const REMEMBERED: Duration = Duration::from_mins(10);

/// Which consumers' workspaces take no events.
#[derive(Debug, Default)]
pub(crate) struct Closed(Mutex<HashMap<String, Workspace>>);

/// What is known of one workspace.
#[derive(Debug, Default)]
struct Workspace {
    /// Whether each of its bindings accepts events.
    bindings: BTreeMap<String, bool>,
    /// When kcp refused an event.
    refused: Option<Instant>,
}

impl Closed {
    /// Takes note of a binding in a logical cluster. Whatever changes, kcp may answer otherwise than before.
    pub(crate) fn note(&self, cluster: &str, binding: &ApiBinding, stage: Stage) {
        let mut all = self.0.lock();
        let workspace = all.entry(cluster.to_owned()).or_default();
        workspace.refused = None;
        if stage == Stage::Removed {
            workspace.bindings.remove(&binding.metadata.name);
            if workspace.bindings.is_empty() {
                all.remove(cluster);
            }
        } else {
            workspace.bindings.insert(binding.metadata.name.clone(), accepts_events(binding));
        }
    }

    /// Forgets everything: other bindings count from now on.
    pub(crate) fn clear(&self) {
        self.0.lock().clear();
    }

    /// Takes note that an event was refused at a URL.
    pub(super) fn refused(&self, url: &str) {
        if let Some(cluster) = consumer(url) {
            self.0.lock().entry(cluster.to_owned()).or_default().refused = Some(Instant::now());
        }
    }

    /// Whether it is known that an event would be refused at a URL.
    pub(super) fn is_closed(&self, url: &str) -> bool {
        let all = self.0.lock();
        let Some(workspace) = consumer(url).and_then(|cluster| all.get(cluster)) else { return false };
        let decided = !workspace.bindings.is_empty() && !workspace.bindings.values().any(|accepts| *accepts);
        decided || workspace.refused.is_some_and(|at| at.elapsed() < REMEMBERED)
    }
}

/// The logical cluster of a consumer, if that is what a URL leads to: only there bindings decide.
fn consumer(url: &str) -> Option<&str> {
    url.split_once("/services/apiexport/")?;
    carrick_kcp::url::workspace(url).ok()
}

/// Whether a binding lets the provider create events, in whichever of both groups they are claimed.
fn accepts_events(binding: &ApiBinding) -> bool {
    binding.spec.permission_claims.iter().any(|claim| {
        let events = claim.resource == "events" && matches!(claim.group.as_str(), "" | "events.k8s.io");
        events && claim.is_accepted() && claim.allows("create")
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const URL: &str = "https://h/services/apiexport/p/e/clusters/c";

    fn binding(name: &str, verbs: &[&str], state: &str) -> ApiBinding {
        serde_json::from_value(json!({
            "metadata": {"name": name},
            "spec": {"permissionClaims": [{"group": "", "resource": "events", "verbs": verbs, "state": state}]},
        }))
        .unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn events_go_where_a_binding_accepts_them() {
        let closed = Closed::default();
        assert!(!closed.is_closed(URL), "nothing is known");
        for (verbs, state, wanted) in [
            (&["*"][..], "Accepted", false),
            (&["*"], "Rejected", true),
            (&["get", "list"], "Accepted", true),
            (&["create", "patch"], "Accepted", false),
        ] {
            closed.note("c", &binding("b", verbs, state), Stage::Changed);
            assert_eq!(closed.is_closed(URL), wanted, "{verbs:?} {state}");
        }
        closed.note("c", &ApiBinding::new("b"), Stage::Changed);
        assert!(closed.is_closed(URL), "undecided");
        assert!(!closed.is_closed("https://h/clusters/c"), "the provider's own workspace");
        closed.note("c", &binding("second", &["*"], "Accepted"), Stage::Added);
        assert!(!closed.is_closed(URL), "one that accepts them is enough");
        closed.note("c", &binding("second", &["*"], "Accepted"), Stage::Removed);
        assert!(closed.is_closed(URL));
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_counts_until_the_binding_changes_or_time_has_passed() {
        let closed = Closed::default();
        let accepts = binding("b", &["*"], "Accepted");
        closed.note("c", &accepts, Stage::Added);
        closed.refused(URL);
        assert!(closed.is_closed(URL));
        assert!(!closed.is_closed("https://h/services/apiexport/p/e/clusters/d"));
        closed.note("c", &accepts, Stage::Changed);
        assert!(!closed.is_closed(URL));
        closed.refused(URL);
        tokio::time::advance(REMEMBERED).await;
        assert!(!closed.is_closed(URL));
    }
}
