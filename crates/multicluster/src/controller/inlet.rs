//! Where requests enter a controller.

use std::collections::HashSet;

use parking_lot::RwLock;
use tokio::sync::mpsc;

use crate::fleet::News;
use crate::name::ClusterName;
use crate::priority::Priority;
use crate::queue::{Queue, Reason};
use crate::request::Key;

/// Lets requests of open clusters into the queue and drops the others: when a cluster opens, everything in its stores is
/// looked at anyway.
pub(crate) struct Inlet {
    queue: Queue<Key>,
    open: RwLock<HashSet<ClusterName>>,
    news: mpsc::UnboundedSender<News>,
}

impl Inlet {
    pub(crate) fn new(queue: Queue<Key>, news: mpsc::UnboundedSender<News>) -> Self {
        Self { queue, open: RwLock::default(), news }
    }

    /// Queues a request, if its cluster is open.
    pub(crate) fn push(&self, key: Key, priority: Priority, reason: Reason) {
        // Held while queueing, so that no request slips in after its cluster was purged.
        let open = self.open.read();
        if open.contains(&key.cluster) {
            self.queue.add_with(key, priority, reason);
        }
    }

    /// Opens a cluster; from now on its requests pass.
    pub(crate) fn open(&self, cluster: ClusterName) {
        self.open.write().insert(cluster);
    }

    /// Closes a cluster and drops its waiting requests.
    pub(crate) fn close(&self, cluster: &ClusterName) {
        let mut open = self.open.write();
        open.remove(cluster);
        self.queue.purge(cluster);
    }

    /// Tells the controller something.
    pub(crate) fn tell(&self, news: News) {
        // Nobody listens any more when the controller has ended.
        let _ = self.news.send(news);
    }
}
