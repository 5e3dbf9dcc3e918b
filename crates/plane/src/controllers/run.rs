//! The loop that all controllers share: the current state first, then every change; it restarts when it falls behind.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use tokio_util::sync::CancellationToken;

use crate::api::Api;
use crate::store::{Change, Key, Kind};

/// Unfinished work is retried after this time.
const RETRY: Duration = Duration::from_millis(250);

/// A controller over stored objects.
pub trait Reconcile: Send + 'static {
    /// Kinds to process at the start; `None` means all kinds.
    fn kinds(&self) -> Option<Vec<Kind>>;

    /// Handles a change; returns the keys that need work.
    fn noticed(&mut self, change: &Change) -> Vec<Key>;

    /// Does the work for a key; false asks for a retry a little later.
    fn reconcile(&mut self, api: &Api, key: &Key) -> bool;
}

/// Runs a controller until `stop` is cancelled.
pub async fn run(api: Arc<Api>, mut controller: impl Reconcile, stop: CancellationToken) {
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = follow(&api, &mut controller) => {}
        }
    }
}

/// Follows the store until this reader falls behind.
async fn follow(api: &Arc<Api>, controller: &mut impl Reconcile) {
    let after = api.store.revision();
    let Ok(mut watch) = api.store.watch(after) else { return };
    let mut work: BTreeSet<Key> = BTreeSet::new();
    for kind in controller.kinds().unwrap_or_else(|| api.store.all_kinds()) {
        for (key, object) in api.store.list(&kind, None, None).1 {
            let change = Change { revision: object.revision(), key, before: None, after: Some(object) };
            work.extend(controller.noticed(&change));
        }
    }
    loop {
        let todo = std::mem::take(&mut work);
        for key in todo {
            if !controller.reconcile(api, &key) {
                work.insert(key);
            }
            // Controllers share the threads with requests.
            tokio::task::yield_now().await;
        }
        let change = if work.is_empty() {
            watch.next().await
        } else {
            match tokio::time::timeout(RETRY, watch.next()).await {
                Ok(change) => change,
                Err(_) => continue,
            }
        };
        let Some(change) = change else { return };
        work.extend(controller.noticed(&change));
    }
}
