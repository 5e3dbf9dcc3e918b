//! Where requests enter a controller.

mod deletions;

use std::collections::HashMap;

use parking_lot::{Mutex, RwLock};
use tokio::sync::mpsc;

use crate::fleet::News;
use crate::guard::{Callback, Panicked};
use crate::name::ClusterName;
use crate::priority::Priority;
use crate::queue::{Queue, Reason};
use crate::request::Key;
use deletions::Deletions;

/// Lets requests of open clusters into the queue and drops the others: when a cluster opens, everything in its stores is
/// looked at anyway. What is in no store any more is remembered until then.
pub(crate) struct Inlet {
    queue: Queue<Key>,
    clusters: RwLock<HashMap<ClusterName, Standing>>,
    /// Deletions that this process has not reconciled, of clusters that it may work on later; none if nobody cares for deletions.
    deletions: Option<Mutex<Deletions>>,
    news: mpsc::UnboundedSender<News>,
}

/// What becomes of the requests of a cluster.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// They pass.
    Open,
    /// They are dropped: another process works on the cluster, or nothing is known of it yet.
    Closed,
}

impl Inlet {
    pub(crate) fn new(queue: Queue<Key>, news: mpsc::UnboundedSender<News>, remembers_deletions: bool) -> Self {
        let deletions = remembers_deletions.then(Mutex::default);
        Self { queue, clusters: RwLock::default(), deletions, news }
    }

    /// Queues a request, if its cluster is open.
    pub(crate) fn push(&self, key: Key, priority: Priority, reason: Reason) {
        // Held while queueing, so that no request slips in after its cluster was purged, and no deletion slips through when it opens.
        let clusters = self.clusters.read();
        match (clusters.get(&key.cluster), &self.deletions) {
            (Some(Standing::Open), _) => self.queue.add_with(key, priority, reason),
            (Some(Standing::Closed), Some(deletions)) if reason == Reason::Deleted => deletions.lock().remember(key),
            (Some(Standing::Closed), Some(deletions)) => deletions.lock().forget(&key),
            _ => {}
        }
    }

    /// A cluster takes part: it may open one day.
    pub(crate) fn expect(&self, cluster: ClusterName) {
        self.clusters.write().entry(cluster).or_insert(Standing::Closed);
    }

    /// Opens a cluster; from now on its requests pass. What was deleted while it was closed is queued.
    pub(crate) fn open(&self, cluster: ClusterName) {
        let mut clusters = self.clusters.write();
        let deleted = self.deletions.as_ref().map(|deletions| deletions.lock().take(&cluster)).unwrap_or_default();
        for key in deleted {
            self.queue.add_with(key, Priority::Normal, Reason::Deleted);
        }
        clusters.insert(cluster, Standing::Open);
    }

    /// Closes a cluster for a while and drops its waiting requests, except for those about objects that do not exist any more: nobody could
    /// find them later.
    pub(crate) fn close(&self, cluster: &ClusterName, exists: impl Fn(&Key) -> bool) {
        let mut clusters = self.clusters.write();
        clusters.insert(cluster.clone(), Standing::Closed);
        let dropped = self.queue.purge(cluster);
        if let Some(deletions) = &self.deletions {
            let mut deletions = deletions.lock();
            for key in dropped.into_iter().filter(|key| !exists(key)) {
                deletions.remember(key);
            }
        }
    }

    /// A cluster takes part no more: drops its requests.
    pub(crate) fn forget(&self, cluster: &ClusterName) {
        let mut clusters = self.clusters.write();
        clusters.remove(cluster);
        self.queue.purge(cluster);
        if let Some(deletions) = &self.deletions {
            deletions.lock().take(cluster);
        }
    }

    /// Tells the controller something.
    pub(crate) fn tell(&self, news: News) {
        // Nobody listens any more when the controller has ended.
        let _ = self.news.send(news);
    }

    /// Tells the controller that a function of its user panicked over an object.
    pub(crate) fn tell_panic(&self, callback: Callback, over: &Key, message: String) {
        self.tell(News::Panicked(Panicked { callback, over: Some(over.to_string()), message }));
    }
}
