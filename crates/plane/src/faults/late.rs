//! Requests that are held back: their clients have given up, and they are still executed later.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use parking_lot::Mutex;

use super::rule::RequestInfo;

/// Executes a request, and returns the status code of the response that nobody receives.
pub(crate) type Job = Box<dyn FnOnce() -> BoxFuture<'static, u16> + Send>;

/// All requests that are held back now, in the order of their arrival.
#[derive(Default)]
pub(super) struct HeldRequests {
    next: AtomicU64,
    held: Mutex<BTreeMap<u64, (RequestInfo, Job)>>,
}

impl HeldRequests {
    /// Holds a request back for a while, or until it is released.
    pub(super) fn hold(self: &Arc<Self>, ask: RequestInfo, job: Job, duration: Option<Duration>) {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.held.lock().insert(number, (ask, job));
        if let Some(duration) = duration {
            let late = self.clone();
            tokio::spawn(async move {
                tokio::time::sleep(duration).await;
                late.release(number).await;
            });
        }
    }

    /// Executes a request that is held back, unless that has already happened.
    async fn release(&self, number: u64) -> Option<(RequestInfo, u16)> {
        let (ask, job) = self.held.lock().remove(&number)?;
        Some((ask, job().await))
    }

    /// Executes all matching requests, one after the other.
    pub(super) async fn release_all(&self, fits: impl Fn(&RequestInfo) -> bool) -> Vec<(RequestInfo, u16)> {
        let numbers: Vec<u64> =
            self.held.lock().iter().filter(|(_, (ask, _))| fits(ask)).map(|(number, _)| *number).collect();
        let mut done = Vec::new();
        for number in numbers {
            done.extend(self.release(number).await);
        }
        done
    }

    /// What is held back now.
    pub(super) fn held(&self) -> Vec<RequestInfo> {
        self.held.lock().values().map(|(ask, _)| ask.clone()).collect()
    }

    /// Drops what is held back, as if it had been lost on its way.
    pub(super) fn forget(&self) {
        self.held.lock().clear();
    }
}
