//! One reader of the change log.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::Stream;
use futures::future::BoxFuture;
use tokio::sync::watch::Receiver;

use super::{Change, Store, Topic};

const BATCH: usize = 256;

/// Changes in order; ends when the reader has fallen behind the log.
pub struct Watch {
    store: Arc<Store>,
    topic: Option<Topic>,
    cursor: u64,
    batch: VecDeque<Arc<Change>>,
    wake: BoxFuture<'static, Receiver<u64>>,
}

impl Watch {
    pub(super) fn new(store: Arc<Store>, topic: Option<Topic>, after: u64, newest: Receiver<u64>) -> Self {
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
