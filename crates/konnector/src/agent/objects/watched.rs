//! From a watch into its store.

use std::fmt::Display;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use carrick_bind_api::mapping::ObjectKey;
use carrick_client::watch::{Event, WatchOptions, watch};
use carrick_client::{Client, Object, Resource};
use carrick_sync::executor::refusal::is_unserved;
use futures::{FutureExt, StreamExt};
use tokio_util::sync::CancellationToken;

use super::store::{SeenObject, Store};

/// How long to wait after a panic, so that one that comes back does not keep a core busy.
const AFTER_PANIC: Duration = Duration::from_secs(5);

/// One watch and what it has reported.
pub(in crate::agent) struct Watched<I> {
    /// Which.
    pub id: I,
    /// What it has reported.
    pub store: Store,
    /// Ends it.
    pub stop: CancellationToken,
}

impl<I> Watched<I> {
    /// Whether it has reported what there is, or why it cannot.
    pub fn is_known(&self) -> bool {
        self.store.is_synced() || self.store.outage().is_some()
    }
}

/// Whoever acts on what watches report.
pub(in crate::agent) trait Observes<I>: Send + Sync {
    /// What of an object is kept.
    fn kept(&self, watched: &Watched<I>, object: Object) -> SeenObject;

    /// Objects with these keys have come, changed or gone.
    fn reported(&self, watched: &Watched<I>, keys: &[ObjectKey]);

    /// All there is was reported, or that there is nothing: what needs it was not decided before.
    fn reported_all(&self, watched: &Watched<I>);

    /// What is known of the watch itself has changed.
    fn watch_changed(&self);
}

/// Follows a watch at one endpoint until it is not needed any more; a defect does not end it for good.
pub(in crate::agent) async fn follow<I: Display>(
    hub: &impl Observes<I>,
    watched: &Watched<I>,
    part: &Arc<str>,
    client: &Client,
    (resource, options): (&Resource, &WatchOptions),
) {
    let once = || follow_once(hub, watched, part, watch(client.clone(), resource.clone(), options.clone()));
    while AssertUnwindSafe(once()).catch_unwind().await.is_err() {
        tracing::error!(watch = %watched.id, "The konnector panicked over a watch and begins it again; please report that.");
        tokio::select! {
            () = watched.stop.cancelled() => return,
            () = tokio::time::sleep(AFTER_PANIC) => {}
        }
    }
}

async fn follow_once<I: Display>(
    hub: &impl Observes<I>,
    watched: &Watched<I>,
    part: &Arc<str>,
    events: impl futures::Stream<Item = Event>,
) {
    let (id, store) = (&watched.id, &watched.store);
    let mut events = pin!(events);
    let mut listed = Vec::new();
    loop {
        let event = tokio::select! {
            () = watched.stop.cancelled() => return,
            event = events.next() => event,
        };
        match event {
            None => return,
            Some(Event::Begin) => listed.clear(),
            Some(Event::Listed(object)) => listed.push(hub.kept(watched, object)),
            Some(Event::Synced) => {
                let changed = store.replace(part, std::mem::take(&mut listed));
                hub.reported(watched, &changed);
                if store.mark_synced(part) {
                    hub.reported_all(watched);
                }
                hub.watch_changed();
            }
            Some(Event::Applied(object)) => {
                let key = store.key_of(&object);
                if store.put(part, &hub.kept(watched, object)) {
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
                store.fail(part, &error);
                if is_unserved(&error) {
                    // A binding that ends may go on without this kind.
                    hub.reported_all(watched);
                }
                hub.watch_changed();
            }
            Some(Event::WentBack { .. }) => store.went_back(part),
            Some(Event::Recovered) => {
                store.recover(part);
                hub.watch_changed();
            }
        }
    }
}
