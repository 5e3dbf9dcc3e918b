//! The watch of one kind at one endpoint.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use carrick_client::watch::watch;
use futures::StreamExt;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::Shared;
use super::state::{Progress, WatchState};
use crate::deadline::after;
use crate::endpoint::Endpoint;

/// A running follower; it ends when this is dropped.
pub(super) struct Follower {
    wish: Arc<Wish>,
    progress: Arc<Mutex<Progress>>,
    task: AbortHandle,
}

/// A request for a new list.
#[derive(Default)]
struct Wish {
    orders: Mutex<Orders>,
    changed: Notify,
}

/// When to open a new watch, for each reason to do so.
#[derive(Clone, Copy, Default)]
struct Orders {
    /// If the watch fails then.
    if_failing: Option<Instant>,
    /// In any case.
    always: Option<Instant>,
    /// In any case, and the list must hold everything that clusters brought along.
    arrived: Option<Instant>,
}

impl Orders {
    fn next(&self) -> Option<Instant> {
        [self.if_failing, self.always, self.arrived].into_iter().flatten().min()
    }
}

impl Follower {
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

    /// Opens a new watch at once, if this one fails.
    pub(super) fn try_again(&self) {
        self.order(|orders| orders.if_failing = Some(Instant::now()));
    }

    /// Opens a new watch, which lists everything, after a while. Requests that come meanwhile are served by the same list.
    pub(super) fn relist_in(&self, delay: Duration) {
        self.order(|orders| {
            orders.always.get_or_insert_with(|| after(Instant::now(), delay));
        });
    }

    /// Lists everything once no cluster has moved here for a while.
    pub(super) fn compare_in(&self, delay: Duration) {
        self.order(|orders| orders.arrived = Some(after(Instant::now(), delay)));
    }

    fn order(&self, give: impl FnOnce(&mut Orders)) {
        give(&mut self.wish.orders.lock());
        self.wish.changed.notify_one();
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        // The task ends at its next await only; what it does until then must not count.
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
            let due = wish.orders.lock().next();
            tokio::select! {
                event = events.next() => match event {
                    Some(event) => shared.take(&endpoint, &progress, event),
                    None => return,
                },
                () = wish.changed.notified() => {}
                () = tokio::time::sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                    if is_wanted(&shared, &endpoint, &progress, &wish) {
                        break;
                    }
                }
            }
        }
    }
}

/// Removes the requests that are due, and returns whether they want a new watch.
fn is_wanted<K: Send + Sync>(shared: &Shared<K>, endpoint: &Endpoint, progress: &Mutex<Progress>, wish: &Wish) -> bool {
    let now = Instant::now();
    let mut orders = wish.orders.lock();
    let due = |order: &mut Option<Instant>| order.take_if(|at| *at <= now).is_some();
    let (if_failing, always, arrived) =
        (due(&mut orders.if_failing), due(&mut orders.always), due(&mut orders.arrived));
    drop(orders);
    if arrived {
        shared.store.expect_everything(&endpoint.id);
    }
    always || arrived || if_failing && progress.lock().is_failing()
}
