//! The watches that are open now, and orders to them.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tokio::sync::watch;

use super::{Ask, Match};

/// What an open watch is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
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
    open: Mutex<HashMap<u64, (Ask, watch::Sender<Order>)>>,
}

impl Watches {
    pub(super) fn register(self: &Arc<Self>, ask: Ask) -> Ticket {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let (sender, orders) = watch::channel(Order::Go);
        self.open.lock().insert(number, (ask, sender));
        Ticket { watches: self.clone(), number, orders }
    }

    /// Tells all fitting watches; returns how many there are.
    pub(super) fn tell(&self, wanted: &Match, order: Order) -> usize {
        let open = self.open.lock();
        let mut told = 0;
        for (_, sender) in open.values().filter(|(ask, _)| wanted.fits(ask)) {
            sender.send_replace(order);
            told += 1;
        }
        told
    }

    pub(super) fn open(&self) -> Vec<Ask> {
        self.open.lock().values().map(|(ask, _)| ask.clone()).collect()
    }
}

/// Held by an open watch.
#[derive(Debug)]
pub(crate) struct Ticket {
    watches: Arc<Watches>,
    number: u64,
    orders: watch::Receiver<Order>,
}

impl Ticket {
    /// The order that holds now.
    pub(crate) fn order(&self) -> Order {
        *self.orders.borrow()
    }

    /// Completes with the next order.
    pub(crate) async fn changed(&mut self) -> Order {
        match self.orders.changed().await {
            Ok(()) => *self.orders.borrow_and_update(),
            // The registry outlives its tickets.
            Err(_) => std::future::pending().await,
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.watches.open.lock().remove(&self.number);
    }
}
