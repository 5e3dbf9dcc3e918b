//! From a watch into its store.

use std::collections::{HashMap, HashSet};
use std::fmt::{Display, Formatter};
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;

use carrick_bind_api::mapping::ObjectKey;
use carrick_client::watch::{Event, WatchOptions, watch};
use carrick_client::{Client, Object, Resource};
use carrick_sync::Role;
use carrick_sync::executor::refusal::is_unserved;
use futures::{FutureExt, StreamExt};
use parking_lot::RwLock;
use tokio_util::sync::CancellationToken;

use super::consumers::Keys;
use super::store::{SeenObject, Store};
use crate::agent::task::AFTER_PANIC;

/// Which watch.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::agent) struct WatchId {
    /// Where.
    pub role: Role,
    /// What.
    pub resource: Resource,
    /// In which namespace; none for all, and for cluster-scoped kinds.
    pub namespace: Option<String>,
}

impl Display for WatchId {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let side = if self.role == Role::Consumer { "consumer" } else { "provider" };
        let dot = if self.resource.group.is_empty() { "" } else { "." };
        write!(f, "{}{dot}{} of the {side}", self.resource.plural, self.resource.group)?;
        self.namespace.as_ref().map_or(Ok(()), |namespace| write!(f, " in namespace {namespace}"))
    }
}

/// One watch and what it has reported.
pub(in crate::agent) struct Watched {
    /// Which.
    pub id: WatchId,
    /// What it has reported.
    pub store: Store,
    /// Ends it.
    pub stop: CancellationToken,
}

impl Watched {
    /// Whether it has reported what there is, or why it cannot.
    pub fn is_known(&self) -> bool {
        self.store.is_synced() || self.store.outage().is_some()
    }

    /// Why it is not known what there is; none if it is.
    pub fn unread(&self) -> Option<String> {
        let why = || self.store.outage().map_or_else(|| "not listed yet".to_owned(), |outage| outage.words);
        (!self.store.is_synced()).then(|| format!("{}: {}", self.id, why()))
    }
}

/// The watches that somebody needs.
#[derive(Default)]
pub(in crate::agent) struct Watches(RwLock<HashMap<WatchId, Arc<Watched>>>);

impl Watches {
    /// One of them.
    pub fn get(&self, id: &WatchId) -> Option<Arc<Watched>> {
        self.0.read().get(id).cloned()
    }

    /// All of them.
    pub fn all(&self) -> Vec<Arc<Watched>> {
        self.0.read().values().cloned().collect()
    }

    /// Ends those that nobody needs any more, and returns those to be started.
    pub fn follow(&self, needed: HashSet<WatchId>, keys: impl Fn(&WatchId) -> Keys) -> Vec<Arc<Watched>> {
        let mut watched = self.0.write();
        watched.retain(|id, watched| {
            let stays = needed.contains(id);
            if !stays {
                watched.stop.cancel();
            }
            stays
        });
        let mut started = Vec::new();
        for id in needed {
            watched.entry(id.clone()).or_insert_with(|| {
                let new = Watched { store: Store::new(keys(&id)), id, stop: CancellationToken::new() };
                let new = Arc::new(new);
                started.push(Arc::clone(&new));
                new
            });
        }
        started
    }

    /// Ends all of them.
    pub fn end(&self) {
        self.0.read().values().for_each(|watched| watched.stop.cancel());
    }
}

/// Whoever acts on what watches report.
pub(in crate::agent) trait Observes: Send + Sync {
    /// What of an object is kept.
    fn kept(&self, watched: &Watched, object: Object) -> SeenObject;

    /// Objects with these keys have come, changed or gone.
    fn reported(&self, watched: &Watched, keys: &[ObjectKey]);

    /// All there is was reported, or that there is nothing: what needs it was not decided before.
    fn reported_all(&self, watched: &Watched);

    /// What is known of the watch itself has changed.
    fn watch_changed(&self);
}

/// Follows a watch at one endpoint until it is not needed any more; a defect does not end it for good.
pub(in crate::agent) async fn follow(
    hub: &impl Observes,
    watched: &Watched,
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

async fn follow_once(
    hub: &impl Observes,
    watched: &Watched,
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
