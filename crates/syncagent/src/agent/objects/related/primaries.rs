//! The primaries of all PublishedResources that are synchronized.

use std::collections::HashMap;
use std::sync::Arc;

use carrick_client::Object;
use carrick_multicluster::{Fleet, FleetStore};
use parking_lot::Mutex;

use crate::agent::objects::related::users::{Primary, SecretUses};
use crate::decide::{OtherUser, has_finalizer};
use crate::rules::{ApiKind, Rules};

/// The primaries of each PublishedResource, and the rules they are copied by.
#[derive(Default)]
pub(in crate::agent::objects) struct AllPrimaries(Mutex<HashMap<String, Primaries>>);

/// The rules of one PublishedResource, and its primaries.
type Primaries = (Arc<Rules>, FleetStore<Object>);

impl AllPrimaries {
    /// Adds the primaries of a PublishedResource.
    pub fn add(&self, rules: &Arc<Rules>, store: FleetStore<Object>) {
        self.0.lock().insert(rules.name.clone(), (rules.clone(), store));
    }

    /// Replaces the rules of a PublishedResource.
    pub fn set_rules(&self, rules: &Arc<Rules>) {
        if let Some((known, _)) = self.0.lock().get_mut(&rules.name) {
            *known = rules.clone();
        }
    }

    /// Other PublishedResources whose copies are of the same kind, and could have a source of the same name.
    pub fn rivals(&self, rules: &Rules) -> Vec<(Arc<Rules>, FleetStore<Object>)> {
        let is_rival = |theirs: &Rules| {
            theirs.local.resource() == rules.local.resource()
                && theirs.remote.resource() != rules.remote.resource()
                && theirs.remote.namespaced == rules.remote.namespaced
        };
        self.0.lock().values().filter(|(theirs, _)| is_rival(theirs)).cloned().collect()
    }

    /// Removes them.
    pub fn remove(&self, published: &str) {
        self.0.lock().remove(published);
    }

    /// Whether objects of a kind in kcp are primaries.
    pub fn are_of(&self, kind: &ApiKind) -> bool {
        self.0.lock().values().any(|(known, _)| known.remote.group == kind.group && known.remote.kind == kind.kind)
    }

    /// Whether orders of a kind are seen where a primary is: what kcp does not serve any more is not.
    pub fn see(&self, consumers: &Fleet, primary: &Primary) -> bool {
        let Ok(cluster) = consumers.cluster(&primary.source.cluster) else { return false };
        let is_kind = |rules: &Rules| rules.remote.group == primary.group && rules.remote.kind == primary.kind;
        self.0.lock().values().any(|(rules, store)| is_kind(rules) && store.is_synced(cluster.endpoint()))
    }

    /// The rules by which objects of a kind in kcp are orders.
    pub fn rules_of(&self, kind: &ApiKind) -> Vec<Arc<Rules>> {
        let is_kind = |rules: &Rules| rules.remote.group == kind.group && rules.remote.kind == kind.kind;
        self.0.lock().values().map(|(rules, _)| rules.clone()).filter(|rules| is_kind(rules)).collect()
    }

    /// What a primary really uses of what its state Secret notes; all of it if nobody knows the primary.
    pub fn uses(&self, consumers: &Fleet, noted: &SecretUses, other: OtherUser) -> Option<OtherUser> {
        let Some(primary) = &noted.primary else { return Some(other) };
        let all = self.0.lock();
        let is_kind = |rules: &Rules| rules.remote.group == primary.group && rules.remote.kind == primary.kind;
        let found = all.values().find(|(rules, _)| is_kind(rules));
        let (Some((_, store)), Ok(cluster)) = (found, consumers.cluster(&noted.cluster)) else { return Some(other) };
        if !store.is_synced(cluster.endpoint()) {
            return Some(other);
        }
        let source = &primary.source;
        let order = store.get(&source.cluster, &source.namespace, &source.name)?;
        used_by(&order, other)
    }
}

/// What an order that is there really uses of what is noted.
fn used_by(order: &Object, other: OtherUser) -> Option<OtherUser> {
    // One that was released keeps its copies, but holds nothing in kcp.
    let held = has_finalizer(&order.value());
    (!order.is_deleting()).then_some(OtherUser { origin: other.origin && held, copy: other.copy })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use carrick_client::Client;
    use carrick_client::watch::WatchOptions;
    use carrick_multicluster::providers::Single;
    use serde_json::json;

    use super::*;
    use crate::agent::objects::related::kinds::resource;
    use crate::api::FINALIZER;
    use crate::decide::state::{PrimaryState, entry_key, secret_labels};
    use crate::rules::metadata::SourceKey;
    use crate::rules::tests::{crontab, published};

    /// What the state Secret of an order notes that uses a related object.
    fn noted() -> SecretUses {
        let source = SourceKey { cluster: "c1".into(), namespace: "default".into(), name: "a".into() };
        let metadata = json!({"namespace": "default", "name": "a"});
        let mut state = PrimaryState::default();
        state.note(
            &entry_key("c1", "default", "a"),
            json!({"apiVersion": "example.com/v1", "kind": "CronTab", "metadata": metadata}),
        );
        state.note("other", json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}));
        let noted = SecretUses::by(&json!({"labels": secret_labels(&source)}), &state).unwrap();
        assert!(noted.primary.is_some());
        noted
    }

    #[test]
    fn an_order_that_is_being_deleted_uses_nothing_and_one_that_was_released_holds_nothing() {
        let order = |metadata: serde_json::Value| {
            Object::from_value(&json!({"apiVersion": "example.com/v1", "kind": "CronTab", "metadata": metadata}))
                .unwrap()
        };
        let all = OtherUser { origin: true, copy: true };
        let held = json!({"name": "a", "finalizers": [FINALIZER]});
        assert_eq!(used_by(&order(held.clone()), all), Some(all));
        let mut deleted = held;
        deleted["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        assert_eq!(used_by(&order(deleted), all), None, "or two that are deleted together wait for each other");
        let released = Some(OtherUser { origin: false, copy: true });
        assert_eq!(used_by(&order(json!({"name": "a"})), all), released);
    }

    #[tokio::test]
    async fn orders_of_a_kind_that_is_not_listed_yet_use_what_they_used() {
        let nobody = Client::try_from(kube::Config::new("http://127.0.0.1:1".parse().unwrap())).unwrap();
        let fleet = Fleet::from(Single::new("c1", nobody));
        let rules = Arc::new(Rules::compile(&published(json!({})), &crontab(), "agent").unwrap());
        let informer = fleet.informer_compact(resource(&rules.remote), WatchOptions::default());
        fleet.wait_cluster("c1", Duration::from_mins(1)).await.unwrap();
        let primaries = AllPrimaries::default();
        let other = OtherUser { origin: true, copy: true };
        assert_eq!(primaries.uses(&fleet, &noted(), other), Some(other), "nobody knows the kind");
        primaries.add(&rules, informer.store().clone());
        assert_eq!(primaries.uses(&fleet, &noted(), other), Some(other), "it is not listed yet");
    }
}
