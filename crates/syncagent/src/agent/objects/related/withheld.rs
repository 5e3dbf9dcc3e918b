//! What is out of reach in a consumer's workspace: its binding does not accept a claim, or no longer does.
//!
//! The end of an order must not wait for rights that nobody will grant. An object is given up only if the binding itself does not accept the
//! claim for it, or if the server keeps refusing while the binding can be read: an outage is no reason.

use std::collections::HashMap;
use std::time::Duration;

use carrick_client::{Client, Error, ListOptions};
use carrick_kcp::apis::v1alpha2::ApiBinding;
use carrick_sync::executor::refusal::{Access, Then, follows};
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
pub(in crate::agent::objects) struct Reach(Mutex<HashMap<SourceKey, HashMap<String, Instant>>>);

/// The same for one order.
#[derive(Clone, Copy)]
pub(in crate::agent::objects) struct Reaching<'a> {
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
        if follows(error, Access::LetGo, at.side.role).then != Then::GiveUp || at.side != KCP_SIDE {
            return false;
        }
        let Ok(bindings) = self.bindings().await else { return false };
        let mut all = self.reach.0.lock();
        let since = *all.entry(self.order.clone()).or_default().entry(at.to_string()).or_insert_with(Instant::now);
        !bindings.iter().any(|binding| accepts(binding, &at.kind)) || since.elapsed() > PATIENCE
    }

    /// Whether an object that the server does not show may exist nevertheless: a claim for its kind is accepted for some objects only.
    /// Without a right to read bindings, it may.
    pub async fn may_be_hidden(&self, at: &ObjectAddress) -> Result<bool, Error> {
        match self.bindings().await {
            Ok(bindings) => Ok(bindings.iter().any(|binding| selects(binding, &at.kind))),
            Err(error) if error.is_forbidden() || error.is_not_found() => Ok(true),
            Err(error) => Err(error),
        }
    }

    async fn bindings(&self) -> Result<Vec<Value>, Error> {
        let kind = self.kcp.newest::<ApiBinding>().await?;
        self.kcp.list(&kind.into(), None, &ListOptions::default()).await
    }
}

/// Whether a binding serves a kind, or accepts a claim for it.
fn accepts(binding: &Value, kind: &ApiKind) -> bool {
    let mut bound = entries(&binding["status"]["boundResources"]);
    bound.any(|bound| is_for(bound, kind)) || accepted_claims(binding, kind).next().is_some()
}

/// Whether a binding accepts a claim for some objects of a kind only.
fn selects(binding: &Value, kind: &ApiKind) -> bool {
    let is_empty =
        |value: &Value| entries(value).next().is_none() && value.as_object().is_none_or(serde_json::Map::is_empty);
    accepted_claims(binding, kind).any(|claim| {
        let selector = &claim["selector"];
        let by_label = selector["matchAll"] != true && !is_empty(selector);
        // As v1alpha1 has it.
        let by_name = claim["all"] != true && !is_empty(&claim["resourceSelector"]);
        by_label || by_name
    })
}

fn accepted_claims<'a>(binding: &'a Value, kind: &'a ApiKind) -> impl Iterator<Item = &'a Value> {
    entries(&binding["spec"]["permissionClaims"]).filter(|claim| is_for(claim, kind) && claim["state"] == "Accepted")
}

fn is_for(entry: &Value, kind: &ApiKind) -> bool {
    entry["group"].as_str().unwrap_or_default() == kind.group && entry["resource"] == kind.plural.as_str()
}

fn entries(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn kind(group: &str, plural: &str) -> ApiKind {
        ApiKind {
            group: group.into(),
            version: "v1".into(),
            kind: String::new(),
            plural: plural.into(),
            namespaced: true,
        }
    }

    #[test]
    fn only_a_selector_hides_objects() {
        let labels = json!({"matchLabels": {"shown": "yes"}});
        let names = json!([{"namespace": "default"}]);
        for (claim, expected) in [
            (json!({"state": "Accepted"}), false),
            (json!({"state": "Accepted", "selector": {}}), false),
            (json!({"state": "Accepted", "selector": {"matchAll": true}}), false),
            (json!({"state": "Accepted", "selector": labels}), true),
            (json!({"state": "Rejected", "selector": labels}), false),
            (json!({"state": "Accepted", "all": true}), false),
            (json!({"state": "Accepted", "resourceSelector": names}), true),
        ] {
            let mut claim = claim;
            claim["resource"] = json!("secrets");
            let binding = json!({"spec": {"permissionClaims": [claim]}});
            assert_eq!(selects(&binding, &kind("", "secrets")), expected, "{binding}");
            assert!(!selects(&binding, &kind("", "configmaps")), "{binding}");
        }
    }

    #[test]
    fn a_binding_tells_what_is_withheld() {
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
