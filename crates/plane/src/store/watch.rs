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
use super::log::{Now, Topic};

const BATCH: usize = 256;

/// Changes in order; ends when the reader has fallen behind the log, or the store has gone back in time.
pub struct Watch {
    store: Arc<Store>,
    topic: Option<Topic>,
    /// The life of the store this watch belongs to; it ends with it.
    life: u64,
    cursor: u64,
    batch: VecDeque<Arc<Change>>,
    wake: BoxFuture<'static, Receiver<Now>>,
}

impl Store {
    /// All changes after a revision, in order and without gaps. The stream ends when its reader falls behind the log, or when
    /// the store goes back in time. A revision of the future belongs to an earlier life.
    pub fn watch(self: &Arc<Self>, after: u64) -> Result<Watch, Expired> {
        let inner = self.inner.read();
        inner.log.check(after)?;
        if after > inner.contents.revision {
            return Err(Expired { asked: after, oldest: inner.log.oldest() });
        }
        let life = inner.log.life();
        drop(inner);
        Ok(Watch::new(self.clone(), None, life, after, self.newest.subscribe()))
    }

    /// The same for one kind, in one cluster or in all of them; other changes cost this reader nothing. A revision of the future
    /// is accepted without a word, as API servers do: nothing comes until the counter has passed it.
    pub(crate) fn watch_topic(self: &Arc<Self>, topic: Topic, after: u64) -> Result<Watch, Expired> {
        let mut inner = self.inner.write();
        inner.log.check(after)?;
        let newest = inner.log.subscribe(&topic);
        let life = inner.log.life();
        drop(inner);
        Ok(Watch::new(self.clone(), Some(topic), life, after, newest))
    }

    /// Up to `limit` changes after a revision, or none if the log no longer reaches back that far or is another one by now.
    fn changes(&self, topic: Option<&Topic>, life: u64, after: u64, limit: usize) -> Option<Vec<Arc<Change>>> {
        let inner = self.inner.read();
        if inner.log.life() == life { inner.log.changes(topic, after, limit) } else { None }
    }
}

impl Watch {
    fn new(store: Arc<Store>, topic: Option<Topic>, life: u64, after: u64, newest: Receiver<Now>) -> Self {
        Self { store, topic, life, cursor: after, batch: VecDeque::new(), wake: Box::pin(async move { newest }) }
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
            match self.store.changes(self.topic.as_ref(), self.life, self.cursor, BATCH) {
                None => return Poll::Ready(None),
                Some(changes) if !changes.is_empty() => {
                    self.batch = changes.into();
                    continue;
                }
                Some(_) => {}
            }
            let Poll::Ready(mut newest) = self.wake.as_mut().poll(context) else { return Poll::Pending };
            let (life, cursor) = (self.life, self.cursor);
            self.wake = Box::pin(async move {
                // An error means that the log was restarted; the next read finds that out.
                let _ = newest.wait_for(|now| now.life != life || now.revision > cursor).await;
                newest
            });
        }
    }
}
