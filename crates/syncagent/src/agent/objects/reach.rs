//! What is out of reach in a consumer's workspace: its binding does not accept a claim, or no longer does.
//!
//! The end of an order must not wait for rights that nobody will grant. An object is given up only if the binding itself does not accept the
//! claim for it, or if the server keeps refusing while the binding can be read: an outage is no reason.

use std::collections::HashMap;
use std::time::Duration;

use carrick_client::{Client, Error, ListOptions, Resource};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::time::Instant;

use crate::decide::ObjectAddress;
use crate::rules::ApiKind;
use crate::rules::metadata::{KCP_SIDE, SourceKey};

/// How long the server may refuse what the binding accepts before it is given up.
const PATIENCE: Duration = Duration::from_secs(30);

/// Since when objects are refused, by order and object.
#[derive(Default)]
pub(super) struct Reach(Mutex<HashMap<SourceKey, HashMap<String, Instant>>>);

/// The same for one order.
#[derive(Clone, Copy)]
pub(super) struct Reaching<'a> {
    /// What is known.
    pub reach: &'a Reach,
    /// The consumer's workspace.
    pub kcp: &'a Client,
    /// The order.
    pub order: &'a SourceKey,
}

impl Reach {
    /// Forgets an order.
    pub fn forget(&self, order: &SourceKey) {
        self.0.lock().remove(order);
    }
}

impl Reaching<'_> {
    /// Whether an object in the consumer's workspace is given up, after the server has refused a request.
    pub async fn is_lost(&self, at: &ObjectAddress, error: &Error) -> bool {
        if !error.is_forbidden() || at.side != KCP_SIDE {
            return false;
        }
        let Ok(bindings) = self.kcp.list(&bindings(), None, &ListOptions::default()).await else { return false };
        let mut all = self.reach.0.lock();
        let since = *all.entry(self.order.clone()).or_default().entry(at.to_string()).or_insert_with(Instant::now);
        !bindings.iter().any(|binding| accepts(binding, &at.kind)) || since.elapsed() > PATIENCE
    }
}

fn bindings() -> Resource {
    Resource::cluster_wide("apis.kcp.io", "v1alpha1", "APIBinding", "apibindings")
}

/// Whether a binding serves a kind, or accepts a claim for it.
fn accepts(binding: &Value, kind: &ApiKind) -> bool {
    let list = |value: &'_ Value| value.as_array().cloned().unwrap_or_default();
    let is_kind = |entry: &Value, resource: &str| {
        entry["group"].as_str().unwrap_or_default() == kind.group && entry[resource] == kind.plural.as_str()
    };
    let bound = list(&binding["status"]["boundResources"]).iter().any(|bound| is_kind(bound, "resource"));
    let accepted = list(&binding["spec"]["permissionClaims"])
        .iter()
        .any(|claim| is_kind(claim, "resource") && claim["state"] == "Accepted");
    bound || accepted
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_binding_tells_what_is_withheld() {
        let kind = |group: &str, plural: &str| ApiKind {
            group: group.into(),
            version: "v1".into(),
            kind: String::new(),
            plural: plural.into(),
            namespaced: true,
        };
        let binding = json!({
            "spec": {"permissionClaims": [
                {"resource": "secrets", "state": "Accepted"},
                {"group": "", "resource": "configmaps", "state": "Rejected"},
                {"group": "g.io", "resource": "things", "state": "Accepted"},
            ]},
            "status": {"boundResources": [{"group": "a.io", "resource": "orders"}]},
        });
        for (kind, expected) in [
            (kind("", "secrets"), true),
            (kind("", "configmaps"), false),
            (kind("", "namespaces"), false),
            (kind("g.io", "things"), true),
            (kind("g.io", "secrets"), false),
            (kind("a.io", "orders"), true),
        ] {
            assert_eq!(accepts(&binding, &kind), expected, "{}", kind.plural);
        }
    }
}
