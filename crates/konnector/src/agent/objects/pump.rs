//! From a watch into its store.

use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use carrick_client::watch::{Event, WatchOptions, watch};
use futures::{FutureExt, StreamExt};

use super::hub::{Hub, Watched};
use super::layout::consumer_namespaces;
use super::store::key_of;

/// How long to wait after a panic, so that one that comes back does not keep a core busy.
const AFTER_PANIC: Duration = Duration::from_secs(5);

/// Follows a watch until it is not needed any more.
pub(super) async fn pump(hub: Arc<Hub>, watched: Arc<Watched>) {
    while AssertUnwindSafe(follow(&hub, &watched)).catch_unwind().await.is_err() {
        tracing::error!(watch = %watched.id, "The konnector panicked over a watch and begins it anew; please report that.");
        tokio::select! {
            () = watched.stop.cancelled() => return,
            () = tokio::time::sleep(AFTER_PANIC) => {}
        }
    }
}

async fn follow(hub: &Hub, watched: &Watched) {
    let id = &watched.id;
    let client = hub.client(id.role).clone();
    // Of namespaces only metadata matters.
    let client = if *id == consumer_namespaces() { client.metadata_only() } else { client };
    let options = WatchOptions { namespace: id.namespace.clone(), ..WatchOptions::default() };
    let mut events = pin!(watch(client, id.resource.clone(), options));
    let mut listed = Vec::new();
    loop {
        let event = tokio::select! {
            () = watched.stop.cancelled() => return,
            event = events.next() => event,
        };
        match event {
            None => return,
            Some(Event::Begin) => listed.clear(),
            Some(Event::Listed(object)) => listed.push(hub.bared(id, object)),
            Some(Event::Synced) => {
                let changed = watched.store.replace(std::mem::take(&mut listed));
                hub.told(watched, &changed);
                if watched.store.mark_synced() {
                    hub.told_first(watched);
                }
                hub.tell();
            }
            Some(Event::Applied(object)) => {
                let key = key_of(&object);
                if watched.store.put(&hub.bared(id, object)) {
                    hub.told(watched, &[key]);
                }
            }
            Some(Event::Deleted(object)) => {
                if watched.store.remove(&object) {
                    hub.told(watched, &[key_of(&object)]);
                }
            }
            Some(Event::Failing(error)) => {
                tracing::warn!(watch = %id, %error, "A watch does not work.");
                watched.store.fail(&error);
                if error.is_not_found() {
                    // A binding that ends may go on without this kind.
                    hub.told_first(watched);
                }
                hub.tell();
            }
            Some(Event::Recovered) => {
                watched.store.recover();
                hub.tell();
            }
        }
    }
}
