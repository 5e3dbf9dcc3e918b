//! A kind of another fleet, whose objects concern objects of any cluster.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::{Source, attach, related};
use crate::controller::inlet::Inlet;
use crate::fleet::{Fleet, News};
use crate::informer::{Informer, Route};
use crate::name::{ClusterName, EndpointId};
use crate::priority::Priority;
use crate::queue::Reason;
use crate::request::Key;
use crate::store::{Change, Undecodable, Update};

type Map<O> = Box<dyn Fn(&ClusterName, &O) -> Vec<Key> + Send + Sync>;

/// A kind of another fleet.
pub(crate) struct Foreign<O: 'static> {
    inlet: Arc<Inlet>,
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
    pub(crate) fn attach(inlet: Arc<Inlet>, fleet: Fleet, informer: Informer<O>, map: Map<O>) -> Arc<dyn Source> {
        let (ledger, listed) = (Mutex::default(), Arc::default());
        let source = Arc::new(Self { inlet, fleet, informer, map, ledger, listed });
        attach(&source.informer, &source);
        // Others may have been watching already.
        for (key, _) in source.informer.store().list_all() {
            let mut ledger = source.ledger.lock();
            if let Some(object) = source.informer.store().lookup(&key) {
                let concerned = (source.map)(&key.cluster, &object);
                ledger.set(&key, concerned);
            }
        }
        source
    }
}

impl<O: Send + Sync + 'static> Source for Foreign<O> {
    fn replay(&self, cluster: &ClusterName) {
        let concerned = self.ledger.lock().of(cluster);
        for key in concerned {
            self.inlet.push(key, Priority::Low, Reason::Engaged);
        }
    }

    fn is_listed(&self, endpoint: &EndpointId) -> bool {
        self.informer.store().is_synced(endpoint)
    }

    fn ready(&self) -> Option<BoxFuture<'static, ()>> {
        let (fleet, informer, listed) = (self.fleet.clone(), self.informer.clone(), self.listed.clone());
        let ready = async move {
            let mut fleet_news = fleet.changes();
            loop {
                let news = listed.notified();
                if fleet.is_synced() && fleet.endpoints().iter().all(|id| informer.store().is_synced(id)) {
                    return;
                }
                tokio::select! {
                    () = news => {}
                    changed = fleet_news.changed() => if changed.is_err() { return },
                }
            }
        };
        Some(ready.boxed())
    }
}

impl<O: Send + Sync + 'static> Route<O> for Foreign<O> {
    fn update(&self, update: &Update<O>) {
        let mut ledger = self.ledger.lock();
        let now = match &update.change {
            Change::Added(object) | Change::Changed { new: object, .. } => (self.map)(&update.key.cluster, object),
            Change::Deleted(_) => Vec::new(),
        };
        let mut concerned: HashSet<Key> = now.iter().cloned().collect();
        concerned.extend(ledger.set(&update.key, now));
        drop(ledger);
        let (priority, reason) = related(update.priority);
        for key in concerned {
            self.inlet.push(key, priority, reason);
        }
    }

    fn listed(&self, _: &EndpointId) {
        self.listed.notify_one();
    }

    fn undecodable(&self, object: &Undecodable) {
        self.inlet.tell(News::Undecodable(object.clone()));
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
