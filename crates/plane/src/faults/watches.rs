//! The watches that are open now, and commands for them.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tokio::sync::watch;

use super::rule::{Match, RequestInfo};

/// What an open watch should do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WatchCommand {
    /// Send events.
    Go,
    /// Send nothing, stay open.
    Stall,
    /// Break off.
    Cut,
}

#[derive(Debug, Default)]
pub(super) struct Watches {
    next: AtomicU64,
    open: Mutex<HashMap<u64, (RequestInfo, watch::Sender<WatchCommand>)>>,
}

impl Watches {
    pub(super) fn register(self: &Arc<Self>, ask: RequestInfo) -> OpenWatch {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let (sender, orders) = watch::channel(WatchCommand::Go);
        self.open.lock().insert(number, (ask, sender));
        OpenWatch { watches: self.clone(), number, orders }
    }

    /// Sends a command to all matching watches; returns how many there are.
    pub(super) fn report(&self, wanted: &Match, order: WatchCommand) -> usize {
        let open = self.open.lock();
        let mut reported = 0;
        for (_, sender) in open.values().filter(|(ask, _)| wanted.fits(ask)) {
            sender.send_replace(order);
            reported += 1;
        }
        reported
    }

    pub(super) fn open(&self) -> Vec<RequestInfo> {
        self.open.lock().values().map(|(ask, _)| ask.clone()).collect()
    }
}

/// Held by an open watch.
#[derive(Debug)]
pub(crate) struct OpenWatch {
    watches: Arc<Watches>,
    number: u64,
    orders: watch::Receiver<WatchCommand>,
}

impl OpenWatch {
    /// The current command.
    pub(crate) fn order(&self) -> WatchCommand {
        *self.orders.borrow()
    }

    /// Completes with the next command.
    pub(crate) async fn changed(&mut self) -> WatchCommand {
        match self.orders.changed().await {
            Ok(()) => *self.orders.borrow_and_update(),
            // The registry outlives its tickets.
            Err(_) => std::future::pending().await,
        }
    }
}

impl Drop for OpenWatch {
    fn drop(&mut self) {
        self.watches.open.lock().remove(&self.number);
    }
}
