//! One reader of the change log.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::Stream;
use futures::future::BoxFuture;
use tokio::sync::watch::Receiver;

use super::base::Store;
use super::change::Change;
use super::error::Expired;
use super::log::Topic;

const BATCH: usize = 256;

/// Changes in order; ends when the reader has fallen behind the log.
pub struct Watch {
    store: Arc<Store>,
    topic: Option<Topic>,
    cursor: u64,
    batch: VecDeque<Arc<Change>>,
    wake: BoxFuture<'static, Receiver<u64>>,
}

impl Store {
    /// All changes after a revision, in order and without gaps. The stream ends when its reader falls behind the log.
    pub fn watch(self: &Arc<Self>, after: u64) -> Result<Watch, Expired> {
        self.inner.read().log.check(after)?;
        Ok(Watch::new(self.clone(), None, after, self.newest.subscribe()))
    }

    /// The same for one kind, in one cluster or in all of them; other changes cost this reader nothing.
    pub(crate) fn watch_topic(self: &Arc<Self>, topic: Topic, after: u64) -> Result<Watch, Expired> {
        let mut inner = self.inner.write();
        inner.log.check(after)?;
        let newest = inner.log.subscribe(&topic);
        drop(inner);
        Ok(Watch::new(self.clone(), Some(topic), after, newest))
    }

    /// Up to `limit` changes after a revision, or none if the log no longer reaches back that far.
    fn changes(&self, topic: Option<&Topic>, after: u64, limit: usize) -> Option<Vec<Arc<Change>>> {
        self.inner.read().log.changes(topic, after, limit)
    }
}

impl Watch {
    fn new(store: Arc<Store>, topic: Option<Topic>, after: u64, newest: Receiver<u64>) -> Self {
        Self { store, topic, cursor: after, batch: VecDeque::new(), wake: Box::pin(async move { newest }) }
    }
}

impl Stream for Watch {
    type Item = Arc<Change>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(change) = self.batch.pop_front() {
                self.cursor = change.revision;
                return Poll::Ready(Some(change));
            }
            match self.store.changes(self.topic.as_ref(), self.cursor, BATCH) {
                None => return Poll::Ready(None),
                Some(changes) if !changes.is_empty() => {
                    self.batch = changes.into();
                    continue;
                }
                Some(_) => {}
            }
            let Poll::Ready(mut newest) = self.wake.as_mut().poll(context) else { return Poll::Pending };
            let cursor = self.cursor;
            self.wake = Box::pin(async move {
                // An error means the store is gone; the next read of the log then finds nothing new.
                let _ = newest.wait_for(|now| *now > cursor).await;
                newest
            });
        }
    }
}
