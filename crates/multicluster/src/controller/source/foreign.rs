//! A kind of another fleet, whose objects concern objects of any cluster.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use carrick_client::{Error, Resource};
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::{Source, attach, related};
use crate::controller::intake::Intake;
use crate::deadline::after;
use crate::event::FleetEvent;
use crate::fleet::{ControllerEvent, Fleet};
use crate::guard::{Callback, Panicked, caught};
use crate::informer::{Informer, Route, WatchState};
use crate::name::{ClusterName, EndpointId};
use crate::priority::Priority;
use crate::queue::Reason;
use crate::request::Key;
use crate::store::{Change, Undecodable, Update};

type Map<O> = Box<dyn Fn(&ClusterName, &O) -> Vec<Key> + Send + Sync>;

/// A kind of another fleet.
pub(crate) struct Foreign<O: 'static> {
    intake: Arc<Intake>,
    fleet: Fleet,
    informer: Informer<O>,
    map: Map<O>,
    ledger: Mutex<Ledger>,
    listed: Arc<Notify>,
}

/// Which object concerns which, in both directions: a cluster that opens must find what concerns it without looking at
/// everything.
#[derive(Default)]
struct Ledger {
    concerned: HashMap<Key, Vec<Key>>,
    by_cluster: HashMap<ClusterName, HashMap<Key, usize>>,
}

impl<O: Send + Sync + 'static> Foreign<O> {
    pub(crate) fn attach(intake: Arc<Intake>, fleet: Fleet, informer: Informer<O>, map: Map<O>) -> Arc<dyn Source> {
        let (ledger, listed) = (Mutex::default(), Arc::default());
        let source = Arc::new(Self { intake, fleet, informer, map, ledger, listed });
        attach(&source.informer, &source);
        // Others may have been watching already.
        for (key, _) in source.informer.store().list_all() {
            let mut ledger = source.ledger.lock();
            if let Some(object) = source.informer.store().lookup(&key) {
                let concerned = source.map(&key, &object).unwrap_or_default();
                ledger.set(&key, concerned);
            }
        }
        source
    }

    /// What an object concerns; `None` if the function panics.
    fn map(&self, key: &Key, object: &O) -> Option<Vec<Key>> {
        let concerned = caught(|| (self.map)(&key.cluster, object));
        concerned.map_err(|message| self.intake.notify_panic(Callback::Mapper, key, message)).ok()
    }
}

/// How much of another fleet is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    Everything,
    /// Everything but what fails.
    WhatLives,
    TooLittle,
}

fn known<O: Send + Sync + 'static>(fleet: &Fleet, informer: &Informer<O>) -> Known {
    let (endpoints, health) = (fleet.watched(), informer.health());
    let is_listed = |id: &EndpointId| informer.store().is_synced(id);
    let fails = |id: &EndpointId| health.get(id).is_some_and(|watch| matches!(watch.state, WatchState::Failing { .. }));
    if fleet.is_synced() && endpoints.iter().all(is_listed) {
        Known::Everything
    } else if (fleet.is_synced() || fleet.is_failing())
        && endpoints.iter().any(is_listed)
        && endpoints.iter().all(|id| is_listed(id) || fails(id))
    {
        Known::WhatLives
    } else {
        Known::TooLittle
    }
}

impl<O: Send + Sync + 'static> Source for Foreign<O> {
    fn replay(&self, cluster: &ClusterName) {
        let concerned = self.ledger.lock().of(cluster);
        for key in concerned {
            self.intake.push(key, Priority::Low, Reason::Engaged);
        }
    }

    fn is_listed(&self, endpoint: &EndpointId) -> bool {
        self.informer.store().is_synced(endpoint)
    }

    fn ready(&self, patience: Duration) -> Option<BoxFuture<'static, ()>> {
        let (fleet, informer, listed) = (self.fleet.clone(), self.informer.clone(), self.listed.clone());
        let ready = async move {
            let (mut fleet_news, mut watch_news) = (fleet.changes(), informer.health_changes());
            let mut at_last = None;
            loop {
                let changed = listed.notified();
                at_last = match known(&fleet, &informer) {
                    Known::Everything => return,
                    Known::WhatLives => at_last.or_else(|| Some(after(Instant::now(), patience))),
                    Known::TooLittle => None,
                };
                tokio::select! {
                    () = changed => {}
                    changed = fleet_news.changed() => if changed.is_err() { return },
                    changed = watch_news.changed() => if changed.is_err() { return },
                    () = tokio::time::sleep_until(at_last.unwrap_or_else(Instant::now)), if at_last.is_some() => return,
                }
            }
        };
        Some(ready.boxed())
    }

    fn troubles(&self) -> Option<BoxFuture<'static, ()>> {
        let (mut events, intake) = (self.fleet.subscribe(), self.intake.clone());
        let follow = async move {
            while let Some(event) = events.next().await {
                if let FleetEvent::Failing { source, error } = event {
                    intake.notify(ControllerEvent::ProviderFails { what: source, error });
                }
            }
        };
        Some(follow.boxed())
    }
}

impl<O: Send + Sync + 'static> Route<O> for Foreign<O> {
    fn update(&self, update: &Update<O>) {
        let mut ledger = self.ledger.lock();
        let now = match &update.change {
            // If that is not known, it still concerns what it did before.
            Change::Added(object) | Change::Changed { new: object, .. } => {
                self.map(&update.key, object).unwrap_or_else(|| ledger.concerned(&update.key))
            }
            Change::Deleted(_) => Vec::new(),
        };
        let mut concerned: HashSet<Key> = now.iter().cloned().collect();
        concerned.extend(ledger.set(&update.key, now));
        drop(ledger);
        let (priority, reason) = related(update.priority);
        for key in concerned {
            self.intake.push(key, priority, reason);
        }
    }

    fn listed(&self, _: &EndpointId) {
        self.listed.notify_one();
    }

    fn undecodable(&self, object: &Undecodable) {
        self.intake.notify(ControllerEvent::Undecodable(object.clone()));
    }

    fn panicked(&self, panic: &Panicked) {
        self.intake.notify(ControllerEvent::Panicked(panic.clone()));
    }

    fn failing(&self, resource: &Resource, endpoint: &EndpointId, error: &Arc<Error>) {
        self.intake.notify(ControllerEvent::watch_fails(resource, endpoint, error));
    }
}

impl Ledger {
    /// Notes what an object concerns, and returns what it concerned before.
    fn set(&mut self, object: &Key, concerned: Vec<Key>) -> Vec<Key> {
        for key in &concerned {
            let keys = self.by_cluster.entry(key.cluster.clone()).or_default();
            *keys.entry(key.clone()).or_default() += 1;
        }
        let old = if concerned.is_empty() {
            self.concerned.remove(object)
        } else {
            self.concerned.insert(object.clone(), concerned)
        };
        let old = old.unwrap_or_default();
        for key in &old {
            let Some(keys) = self.by_cluster.get_mut(&key.cluster) else { continue };
            if let Some(count) = keys.get_mut(key) {
                *count -= 1;
                if *count == 0 {
                    keys.remove(key);
                }
            }
            if keys.is_empty() {
                self.by_cluster.remove(&key.cluster);
            }
        }
        old
    }

    /// What an object concerns.
    fn concerned(&self, object: &Key) -> Vec<Key> {
        self.concerned.get(object).cloned().unwrap_or_default()
    }

    /// Everything of a cluster that some object concerns.
    fn of(&self, cluster: &ClusterName) -> Vec<Key> {
        self.by_cluster.get(cluster).into_iter().flat_map(HashMap::keys).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(cluster: &str, name: &str) -> Key {
        Key::new(cluster.parse().unwrap(), "", name)
    }

    #[test]
    fn the_ledger_knows_what_concerns_a_cluster_until_nothing_does() {
        let mut ledger = Ledger::default();
        let c = &"c".parse().unwrap();
        assert!(ledger.set(&key("t", "1"), vec![key("c", "x"), key("d", "y")]).is_empty());
        assert!(ledger.set(&key("t", "2"), vec![key("c", "x")]).is_empty());
        assert_eq!(ledger.of(c), [key("c", "x")]);
        assert_eq!(ledger.set(&key("t", "1"), vec![key("d", "y")]), [key("c", "x"), key("d", "y")]);
        assert_eq!(ledger.of(c), [key("c", "x")]);
        assert_eq!(ledger.set(&key("t", "2"), Vec::new()), [key("c", "x")]);
        ledger.set(&key("t", "1"), Vec::new());
        assert!(ledger.concerned.is_empty() && ledger.by_cluster.is_empty());
    }
}
