//! Aggregated ClusterRoles: their rules are those of the roles they select, in the same cluster.

use serde_json::{Value, json};
use tracing::warn;

use super::run::Reconcile;
use crate::api::{Api, WriteOptions};
use crate::auth::aggregation::{aggregated, name};
use crate::caller::Caller;
use crate::patch::Patch;
use crate::store::{Change, Key, Kind, Store};

const GROUP: &str = "rbac.authorization.k8s.io";
const MANAGER: &str = "clusterrole-aggregation-controller";

pub(super) struct Aggregation {
    roles: Kind,
}

impl Default for Aggregation {
    fn default() -> Self {
        Self { roles: Kind::new(GROUP, "clusterroles") }
    }
}

impl Reconcile for Aggregation {
    fn kinds(&self) -> Option<Vec<Kind>> {
        Some(vec![self.roles.clone()])
    }

    /// Any role may be selected by any other, so a change concerns its whole cluster, for which a key without a name stands.
    fn noticed(&mut self, change: &Change) -> Vec<Key> {
        if change.key.kind == self.roles {
            vec![Key::new(&self.roles, &change.key.cluster, "", "")]
        } else {
            Vec::new()
        }
    }

    fn reconcile(&mut self, api: &Api, key: &Key) -> bool {
        let all = roles(&api.store, &self.roles, &key.cluster);
        // All of them are processed, even if one fails. What is written here is noticed again, so roles of roles settle too.
        all.iter().map(|role| settle(api, &key.cluster, role, &all)).fold(true, |all, done| all & done)
    }
}

/// The ClusterRoles of a cluster by name.
fn roles(store: &Store, kind: &Kind, cluster: &str) -> Vec<Value> {
    let mut all: Vec<Value> =
        store.list(kind, Some(cluster), None).1.iter().map(|(_, role)| Value::clone(&store.value(role))).collect();
    all.sort_by(|a, b| name(a).cmp(name(b)));
    all
}

/// Writes the rules of one role, if it aggregates and they have changed; false if it must be retried.
fn settle(api: &Api, cluster: &str, role: &Value, all: &[Value]) -> bool {
    let Some(rules) = aggregated(role, all) else { return true };
    let same = role["rules"].as_array().map_or(&[][..], Vec::as_slice) == rules;
    let Some(scope) = api.scope(cluster, GROUP, "clusterroles").filter(|_| !same) else { return true };
    let mut wanted = json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": "ClusterRole", "metadata": {"name": name(role)},
    });
    if !rules.is_empty() {
        wanted["rules"] = rules.into();
    }
    let options = WriteOptions { manager: MANAGER.into(), force: true, ..WriteOptions::default() };
    match api.patch(&Caller::system(), &scope, name(role), "", &Patch::Apply(wanted), &options) {
        Ok(_) => true,
        Err(status) => {
            warn!(error = %status, cluster, role = name(role), "cannot store the rules of an aggregated role");
            false
        }
    }
}
