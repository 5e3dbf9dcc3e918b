//! While a server is not connected, one request goes first.
//!
//! The pool learns only from a finished handshake that a server speaks HTTP/2, so a burst of requests to a server it
//! is not connected to would open a connection each. While nothing is known to be connected, one request at a time
//! goes through; the others find its connection ready.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::uri::Authority;
use tokio::sync::{Semaphore, SemaphorePermit};

use super::lanes::Lane;

/// Requests do not wait longer than this for the first one: one slow answer must not delay all.
const PATIENCE: Duration = Duration::from_secs(1);

/// The gates of all connections of a pool.
#[derive(Default)]
pub(super) struct Gates {
    hosts: Mutex<HashMap<Authority, Vec<Arc<Gate>>>>,
}

/// The gate of one connection.
pub(super) struct Gate {
    connected: AtomicBool,
    first: Semaphore,
}

impl Gates {
    /// The gate of one of a host's connections.
    pub(super) fn of(&self, host: Option<&Authority>, Lane(lane): Lane) -> Arc<Gate> {
        let Some(host) = host else { return Arc::default() };
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        let gates = hosts.entry(host.clone()).or_default();
        if gates.len() <= lane {
            gates.resize_with(lane + 1, Arc::default);
        }
        Arc::clone(&gates[lane])
    }

    /// No connection of a host is known to work any more.
    pub(super) fn doubt(&self, host: Option<&Authority>) {
        let hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        for gate in host.and_then(|host| hosts.get(host)).into_iter().flatten() {
            gate.set_connected(false);
        }
    }
}

impl Gate {
    /// Waits until a connection is likely there, or it is this request's turn to open one.
    pub(super) async fn enter(&self) -> Option<SemaphorePermit<'_>> {
        if self.connected.load(Ordering::Relaxed) {
            return None;
        }
        let permit = tokio::time::timeout(PATIENCE, self.first.acquire()).await.ok()?.ok()?;
        // Another request may have connected meanwhile; then those behind need not wait either.
        (!self.connected.load(Ordering::Relaxed)).then_some(permit)
    }

    /// Remembers whether the last request found a connection.
    pub(super) fn set_connected(&self, connected: bool) {
        self.connected.store(connected, Ordering::Relaxed);
    }
}

impl Default for Gate {
    fn default() -> Self {
        Self { connected: AtomicBool::new(false), first: Semaphore::new(1) }
    }
}
