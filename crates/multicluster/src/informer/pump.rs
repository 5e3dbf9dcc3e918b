//! The watch of one kind at one endpoint.

use std::pin::pin;
use std::sync::Arc;

use carrick_client::watch::watch;
use futures::StreamExt;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::Shared;
use super::state::{Progress, WatchState};
use crate::endpoint::Endpoint;

/// A running pump; it ends when this is dropped.
pub(super) struct Pump {
    wish: Arc<Wish>,
    progress: Arc<Mutex<Progress>>,
    task: AbortHandle,
}

/// The wish for a new list.
#[derive(Default)]
struct Wish {
    at: Mutex<Option<Order>>,
    changed: Notify,
}

#[derive(Clone, Copy)]
struct Order {
    at: Instant,
    /// Even if the watch is well.
    always: bool,
}

impl Pump {
    /// Starts to feed the store and the routes.
    pub(super) fn start<K: Send + Sync + 'static>(shared: Arc<Shared<K>>, endpoint: Endpoint) -> Self {
        let wish = Arc::<Wish>::default();
        let progress = Arc::<Mutex<Progress>>::default();
        let task = tokio::spawn(run(shared, endpoint, progress.clone(), wish.clone())).abort_handle();
        Self { wish, progress, task }
    }

    /// How the watch is doing, and how many lists it began.
    pub(super) fn progress(&self) -> (WatchState, u64) {
        let progress = self.progress.lock();
        (progress.state.clone(), progress.lists)
    }

    /// Drops the watch and opens a new one, which lists everything; only if it fails now, unless `always`.
    pub(super) fn reopen(&self, always: bool, at: Instant) {
        let mut order = self.wish.at.lock();
        *order = Some(match *order {
            Some(other) => Order { at: other.at.min(at), always: always || other.always },
            None => Order { at, always },
        });
        drop(order);
        self.wish.changed.notify_one();
    }
}

impl Drop for Pump {
    fn drop(&mut self) {
        // The task ends at its next pause only; whatever it does until then must not count.
        self.progress.lock().ended = true;
        self.task.abort();
    }
}

async fn run<K: Send + Sync + 'static>(
    shared: Arc<Shared<K>>,
    endpoint: Endpoint,
    progress: Arc<Mutex<Progress>>,
    wish: Arc<Wish>,
) {
    loop {
        let mut events = pin!(watch(endpoint.client.clone(), shared.resource.clone(), shared.options.clone()));
        progress.lock().reopened();
        loop {
            let due = wish.at.lock().map(|order| order.at);
            tokio::select! {
                event = events.next() => match event {
                    Some(event) => shared.take(&endpoint, &progress, event),
                    None => return,
                },
                () = wish.changed.notified() => {}
                () = tokio::time::sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                    let order = wish.at.lock().take();
                    if order.is_some_and(|order| order.always) || progress.lock().is_failing() {
                        break;
                    }
                }
            }
        }
    }
}
