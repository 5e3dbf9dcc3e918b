//! Clients that do not read their watch are disconnected.
//!
//! A watch hands out an event only when its connection can take it. While an event waits, the time since when it waits is recorded here,
//! and a connection on which an event waits too long is closed, so that nothing piles up.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use tracing::info;

/// All streams that are being sent.
#[derive(Debug)]
pub(crate) struct SlowReaders {
    limit: Duration,
    began: Instant,
    next: AtomicU64,
    streams: Mutex<HashMap<u64, (Arc<AtomicU64>, CancellationToken)>>,
}

impl SlowReaders {
    pub(crate) fn new(limit: Duration) -> Self {
        Self { limit, began: Instant::now(), next: AtomicU64::new(0), streams: Mutex::default() }
    }

    /// Registers a new stream on a connection.
    pub(super) fn stream(self: &Arc<Self>, connection: CancellationToken) -> StreamClock {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let waiting = Arc::new(AtomicU64::new(0));
        self.streams.lock().insert(number, (waiting.clone(), connection));
        StreamClock { slow: self.clone(), number, waiting }
    }

    fn now(&self) -> u64 {
        // Zero means that nothing waits.
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX).max(1)
    }

    /// Closes connections that take too long, until stopped.
    pub(crate) async fn run(self: Arc<Self>, stop: CancellationToken) {
        let mut ticks = tokio::time::interval((self.limit / 4).max(Duration::from_millis(10)));
        let limit = u64::try_from(self.limit.as_millis()).unwrap_or(u64::MAX);
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                _ = ticks.tick() => {}
            }
            let now = self.now();
            for (waiting, connection) in self.streams.lock().values() {
                let since = waiting.load(Ordering::Relaxed);
                if since != 0 && now.saturating_sub(since) > limit && !connection.is_cancelled() {
                    info!("closing the connection of a client that does not read its watch");
                    connection.cancel();
                }
            }
        }
    }
}

/// Held by one stream.
#[derive(Debug)]
pub(super) struct StreamClock {
    slow: Arc<SlowReaders>,
    number: u64,
    waiting: Arc<AtomicU64>,
}

impl StreamClock {
    /// An event was handed out and may wait for the client.
    pub(super) fn handed_out(&self) {
        self.waiting.store(self.slow.now(), Ordering::Relaxed);
    }

    /// The client has received everything so far.
    pub(super) fn taken(&self) {
        self.waiting.store(0, Ordering::Relaxed);
    }
}

impl Drop for StreamClock {
    fn drop(&mut self) {
        self.slow.streams.lock().remove(&self.number);
    }
}
