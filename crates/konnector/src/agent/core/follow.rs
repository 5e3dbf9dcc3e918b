//! From a watch into its store.

use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use carrick_client::watch::{Event, WatchOptions, watch};
use carrick_sync::Role;
use carrick_sync::executor::refusal::is_unserved;
use carrick_sync::executor::resource;
use futures::{FutureExt, StreamExt};

use super::hub::{Hub, Watched};

/// How long to wait after a panic, so that one that comes back does not keep a core busy.
const AFTER_PANIC: Duration = Duration::from_secs(5);

/// Follows a watch until it is not needed any more; a defect does not end it for good.
pub(super) async fn follow(hub: Arc<Hub>, watched: Arc<Watched>) {
    while AssertUnwindSafe(follow_once(&hub, &watched)).catch_unwind().await.is_err() {
        tracing::error!(watch = %watched.id, "The konnector panicked over a watch and begins it anew; please report that.");
        tokio::select! {
            () = watched.stop.cancelled() => return,
            () = tokio::time::sleep(AFTER_PANIC) => {}
        }
    }
}

async fn follow_once(hub: &Hub, watched: &Watched) {
    let (id, store, part) = (&watched.id, &watched.store, Arc::from(""));
    let client = if id.role == Role::Consumer { &hub.consumer } else { &hub.provider };
    let options = WatchOptions { namespace: id.namespace.clone(), ..WatchOptions::default() };
    let mut events = pin!(watch(client.clone(), resource(&id.kind), options));
    let seen = |object| hub.bared(watched, object);
    let mut listed = Vec::new();
    loop {
        let event = tokio::select! {
            () = watched.stop.cancelled() => return,
            event = events.next() => event,
        };
        match event {
            None => return,
            Some(Event::Begin) => listed.clear(),
            Some(Event::Listed(object)) => listed.push(seen(object)),
            Some(Event::Synced) => {
                let changed = store.replace(&part, std::mem::take(&mut listed));
                hub.reported(watched, &changed);
                if store.mark_synced(&part) {
                    hub.reported_all(watched);
                }
            }
            Some(Event::Applied(object)) => {
                let key = store.key_of(&object);
                if store.put(&part, &seen(object)) {
                    hub.reported(watched, &[key]);
                }
            }
            Some(Event::Deleted(object)) => {
                if store.remove(&object) {
                    hub.reported(watched, &[store.key_of(&object)]);
                }
            }
            Some(Event::Failing(error)) => {
                tracing::warn!(watch = %id, %error, "A watch does not work.");
                store.fail(&part, &error);
                if is_unserved(&error) {
                    // A binding that ends may go on without this kind.
                    hub.reported_all(watched);
                }
                hub.notify();
            }
            Some(Event::WentBack { .. }) => store.went_back(&part),
            Some(Event::Recovered) => {
                store.recover(&part);
                hub.notify();
            }
        }
    }
}
