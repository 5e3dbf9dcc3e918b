//! The intake: where requests enter a controller.

mod deletions;

use std::collections::HashMap;

use parking_lot::{Mutex, RwLock};
use tokio::sync::mpsc;

use crate::fleet::ControllerEvent;
use crate::guard::{Callback, Panicked};
use crate::name::ClusterName;
use crate::priority::Priority;
use crate::queue::{Queue, Reason};
use crate::request::Key;
use deletions::Deletions;

/// Lets requests of open clusters into the queue and drops the others: when a cluster opens, everything in its stores is
/// queued anyway. Deletions, which are in no store any more, are remembered until then.
pub(crate) struct Intake {
    queue: Queue<Key>,
    clusters: RwLock<HashMap<ClusterName, Admission>>,
    /// Deletions that this process has not reconciled, of clusters that it may work on later; none if nobody cares for deletions.
    deletions: Option<Mutex<Deletions>>,
    events: mpsc::UnboundedSender<ControllerEvent>,
}

/// What becomes of the requests of a cluster.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Admission {
    /// They pass.
    Open,
    /// They are dropped: another process works on the cluster, or nothing is known of it yet.
    Closed,
}

impl Intake {
    pub(crate) fn new(
        queue: Queue<Key>,
        events: mpsc::UnboundedSender<ControllerEvent>,
        remembers_deletions: bool,
    ) -> Self {
        let deletions = remembers_deletions.then(Mutex::default);
        Self { queue, clusters: RwLock::default(), deletions, events }
    }

    /// Queues a request, if its cluster is open.
    pub(crate) fn push(&self, key: Key, priority: Priority, reason: Reason) {
        // Held while queueing, so that no request slips in after its cluster was purged, and no deletion slips through when it opens.
        let clusters = self.clusters.read();
        match (clusters.get(&key.cluster), &self.deletions) {
            (Some(Admission::Open), _) => self.queue.add_with(key, priority, reason),
            (Some(Admission::Closed), Some(deletions)) if reason == Reason::Deleted => deletions.lock().remember(key),
            (Some(Admission::Closed), Some(deletions)) => deletions.lock().forget(&key),
            _ => {}
        }
    }

    /// A cluster has joined the fleet: it may open later.
    pub(crate) fn expect(&self, cluster: ClusterName) {
        self.clusters.write().entry(cluster).or_insert(Admission::Closed);
    }

    /// Opens a cluster; from now on its requests pass. What was deleted while it was closed is queued.
    pub(crate) fn open(&self, cluster: ClusterName) {
        let mut clusters = self.clusters.write();
        let deleted = self.deletions.as_ref().map(|deletions| deletions.lock().take(&cluster)).unwrap_or_default();
        for key in deleted {
            self.queue.add_with(key, Priority::Normal, Reason::Deleted);
        }
        clusters.insert(cluster, Admission::Open);
    }

    /// Closes a cluster for a while and drops its waiting requests, except for those about objects that do not exist any more: nobody could
    /// find them later.
    pub(crate) fn close(&self, cluster: &ClusterName, exists: impl Fn(&Key) -> bool) {
        let mut clusters = self.clusters.write();
        clusters.insert(cluster.clone(), Admission::Closed);
        let dropped = self.queue.purge(cluster);
        if let Some(deletions) = &self.deletions {
            let mut deletions = deletions.lock();
            for key in dropped.into_iter().filter(|key| !exists(key)) {
                deletions.remember(key);
            }
        }
    }

    /// A cluster has left the fleet: drops its requests.
    pub(crate) fn forget(&self, cluster: &ClusterName) {
        let mut clusters = self.clusters.write();
        clusters.remove(cluster);
        self.queue.purge(cluster);
        if let Some(deletions) = &self.deletions {
            deletions.lock().take(cluster);
        }
    }

    /// Sends the controller an event.
    pub(crate) fn notify(&self, event: ControllerEvent) {
        // Nobody listens any more when the controller has ended.
        let _ = self.events.send(event);
    }

    /// Reports to the controller that a function of its user panicked for an object.
    pub(crate) fn notify_panic(&self, callback: Callback, over: &Key, message: String) {
        self.notify(ControllerEvent::Panicked(Panicked { callback, over: Some(over.to_string()), message }));
    }
}
