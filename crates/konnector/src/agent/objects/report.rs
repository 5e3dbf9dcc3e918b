//! What bindings are told.

use std::sync::Arc;
use std::time::Duration;

use carrick_bind_api::copies::{Ownership, ownership};
use carrick_bind_api::mapping::{ObjectKey, ServiceNamespaces};
use carrick_client::Object;
use carrick_sync::Role;
use carrick_sync::holders::has_finalizer;
use tokio::sync::watch;

use super::super::rights::GRANTED_WITH;
use super::hub::Hub;
use super::layout::{Api, ClaimedKind, Layout, service_namespaces};
use super::outcome::Problem;
use super::store::key_of;
use super::wanted::{BindingReport, SyncReport};
use super::watched::WatchId;
use crate::decide::claims::is_copy;
use crate::decide::objects::{SyncMode, WORDS};

/// How many objects are named.
const MOST: usize = 10;
/// News come in crowds: what happens within this time is told at once.
const CROWD: Duration = Duration::from_millis(50);

/// Tells what is new until nobody listens.
pub(super) async fn report(hub: Arc<Hub>, told: watch::Sender<Arc<SyncReport>>) {
    loop {
        hub.news().await;
        let now = hub.told_now();
        told.send_if_modified(|last| {
            let changed = **last != now;
            if changed {
                *last = Arc::new(now);
            }
            changed
        });
        tokio::time::sleep(CROWD).await;
    }
}

impl Hub {
    fn told_now(&self) -> SyncReport {
        let (layout, assigned, problems) = (self.layout(), self.assigned(), self.ledger.problems(|_| true));
        let mut told = SyncReport::default();
        for (binding, mode) in &layout.bindings {
            let own = |lane| {
                layout.apis.get(lane).is_some_and(|api| api.binding == *binding)
                    || layout.claimed.get(lane).is_some_and(|kind| kind.claims.iter().any(|it| it.binding == *binding))
            };
            let own: Vec<&Problem> = problems.iter().filter(|(key, _)| own(&key.lane)).map(|(_, it)| it).collect();
            let words =
                |is_conflict| own.iter().filter(move |it| it.is_conflict == is_conflict).map(|it| it.words.clone());
            let refused = self.refused.lock().clone();
            let refused = refused.iter().map(|name| format!("providers do not create namespace {name}"));
            let namespaces = assigned.conflicts().iter().map(ToString::to_string).chain(refused);
            told.bindings.insert(
                binding.clone(),
                BindingReport {
                    informers_synced: self.informers_synced(&layout, binding, &assigned),
                    conflicts: bounded(words(true).chain(namespaces)),
                    failing: bounded(words(false)),
                    drained: *mode != SyncMode::Keep && self.is_drained(&layout, binding, *mode, &assigned),
                },
            );
        }
        told
    }

    fn informers_synced(&self, layout: &Layout, binding: &str, assigned: &ServiceNamespaces) -> Result<(), String> {
        let mut watches = vec![service_namespaces(&self.contract)];
        watches.extend(layout.watches_of(binding, assigned));
        for id in &watches {
            let store = self.watched(id);
            let outage = store.as_ref().and_then(|watched| watched.store.outage());
            match (outage, store.is_some_and(|watched| watched.store.is_synced())) {
                (Some(outage), _) => {
                    return Err(format!("{id} cannot be watched: {}", outage.words));
                }
                (None, false) => return Err(format!("{id} are not listed yet")),
                (None, true) => {}
            }
        }
        Ok(())
    }

    fn is_drained(&self, layout: &Layout, binding: &str, mode: SyncMode, assigned: &ServiceNamespaces) -> bool {
        let apis = layout.apis.values().filter(|api| api.binding == binding);
        let own = |kind: &&Arc<ClaimedKind>| kind.claims.iter().any(|claim| claim.binding == binding);
        apis.into_iter().all(|api| self.is_api_drained(api, mode, assigned))
            && (mode == SyncMode::Release
                || layout.claimed.values().filter(own).all(|kind| self.is_claimed_drained(kind, assigned)))
    }

    fn is_api_drained(&self, api: &Api, mode: SyncMode, assigned: &ServiceNamespaces) -> bool {
        let Some(consumer) = self.watched(&api.consumer) else { return false };
        // Without the CRD there are no objects.
        let not_served = consumer.store.outage().is_some_and(|outage| outage.not_served);
        let held = || consumer.store.objects().iter().any(|object| has_finalizer(&WORDS, &object.value()));
        if !not_served && (!consumer.store.is_synced() || held()) {
            return false;
        }
        mode == SyncMode::Release
            || self.has_no_copy(&api.copy_watches(assigned), |copy| {
                // What does not map back is out of reach.
                let Some(key) = api.mapping.to_consumer(&key_of(copy), assigned) else { return false };
                let (copy, source) = (copy.value(), consumer.store.get(&key).map(|source| source.value()));
                ownership(&copy, &self.contract) == Ownership::Ours && !self.is_derived(&copy, source.as_ref())
            })
    }

    fn is_claimed_drained(&self, kind: &ClaimedKind, assigned: &ServiceNamespaces) -> bool {
        // What other bindings need stays.
        if kind.claims.iter().any(|claim| claim.mode == SyncMode::Keep) {
            return true;
        }
        self.has_no_copy(&kind.provider_watches(assigned), |copy| {
            let Some(namespace) = assigned.mirrored_by(&copy.namespace) else { return false };
            let source = self.watched(&kind.consumer).and_then(|consumer| {
                consumer.store.get(&ObjectKey::namespaced(namespace, &*copy.name)).map(|source| source.value())
            });
            let copy = copy.value();
            is_copy(&copy, Role::Provider, &self.contract) && !self.is_derived(&copy, source.as_ref())
        }) && self.has_no_copy(std::slice::from_ref(&kind.consumer), |copy| {
            is_copy(&copy.value(), Role::Consumer, &self.contract)
        })
    }

    /// Whether watches have told all there is, and no copy of ours is among it.
    fn has_no_copy(&self, watches: &[WatchId], is_ours: impl Fn(&Object) -> bool) -> bool {
        self.synced(&service_namespaces(&self.contract)).is_some()
            && watches.iter().all(|id| {
                let watched = self.synced(id).filter(|watched| watched.store.outage().is_none());
                watched.is_some_and(|watched| !watched.store.objects().iter().any(&is_ours))
            })
    }
}

/// As many as people read. What helps against all of them is said once, with the last one.
fn bounded(words: impl Iterator<Item = String>) -> Vec<String> {
    let mut all: Vec<String> = words.collect();
    let more = all.len().saturating_sub(MOST);
    all.truncate(MOST);
    let cured: Vec<usize> = (0..all.len()).filter(|at| all[*at].contains(GRANTED_WITH)).collect();
    for at in cured.into_iter().rev().skip(1) {
        let bare = all[at].split_once(GRANTED_WITH).map(|(words, _)| words.trim_end_matches("; ").to_owned());
        all[at] = bare.unwrap_or_default();
    }
    if more > 0 {
        all.push(format!("and {more} more"));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_many_objects_is_bounded_and_its_cure_is_said_once() {
        let all = bounded((0..12).map(|number| format!("o-{number} is forbidden; {GRANTED_WITH}paste")));
        assert_eq!((all.len(), all[0].as_str(), all[10].as_str()), (11, "o-0 is forbidden", "and 2 more"));
        assert_eq!(all.join("; ").matches("paste").count(), 1);
        assert!(all[9].ends_with("paste"));
        assert_eq!(bounded(["a".to_owned()].into_iter()), ["a"]);
    }
}
