//! Several providers as one.

mod merge;

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

use futures::StreamExt;
use futures::stream::{AbortHandle, BoxStream, SelectAll, abortable};
use parking_lot::Mutex;
use tokio::sync::mpsc;

use crate::event::FleetEvent;
use crate::provider::{Provider, guarded};
use merge::Merge;

/// Named providers, added and removed at any time. Cloning shares it.
///
/// The clusters of each are called `<provider>#<cluster>`, their paths and endpoints likewise. Adding never waits.
///
/// ```
/// # use carrick_multicluster::providers::{KubeconfigFiles, Multi, Static};
/// let fleet = Multi::new().with("files", KubeconfigFiles::infer()).with("tests", Static::new());
/// assert!(fleet.remove("tests"));
/// ```
#[derive(Clone, Default)]
pub struct Multi {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Default)]
struct Inner {
    providers: BTreeMap<Arc<str>, (u64, Arc<dyn Provider>)>,
    next: u64,
    listeners: Vec<mpsc::UnboundedSender<Change>>,
}

/// What is sent to listeners.
#[derive(Clone)]
enum Change {
    Added(Arc<str>, u64, Arc<dyn Provider>),
    Removed(u64),
}

impl Multi {
    /// No providers yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same with one more provider.
    #[must_use]
    pub fn with(self, name: &str, provider: impl Provider) -> Self {
        self.insert(name, provider);
        self
    }

    /// Adds a provider. One of that name is replaced, and its clusters leave.
    pub fn insert(&self, name: &str, provider: impl Provider) {
        let (name, provider): (Arc<str>, Arc<dyn Provider>) = (name.into(), Arc::new(provider));
        let mut inner = self.inner.lock();
        inner.remove(&name);
        inner.next += 1;
        let id = inner.next;
        inner.providers.insert(name.clone(), (id, provider.clone()));
        inner.announce(&Change::Added(name, id, provider));
    }

    /// Removes a provider, and all its clusters with it. Returns whether there was one.
    pub fn remove(&self, name: &str) -> bool {
        self.inner.lock().remove(name)
    }
}

impl Inner {
    fn remove(&mut self, name: &str) -> bool {
        let Some((id, _)) = self.providers.remove(name) else { return false };
        self.announce(&Change::Removed(id));
        true
    }

    fn announce(&mut self, change: &Change) {
        self.listeners.retain(|listener| listener.send(change.clone()).is_ok());
    }
}

impl fmt::Debug for Multi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.inner.lock().providers.keys()).finish()
    }
}

impl Provider for Multi {
    fn events(&self) -> BoxStream<'static, FleetEvent> {
        let (listener, changes) = mpsc::unbounded_channel();
        let mut inner = self.inner.lock();
        let mut streams =
            Streams { changes, events: SelectAll::new(), handles: HashMap::new(), merge: Merge::default() };
        for (name, (id, provider)) in &inner.providers {
            streams.add(name, *id, provider.clone());
        }
        inner.listeners.push(listener);
        drop(inner);
        let start = futures::stream::iter(streams.merge.begin());
        let later = futures::stream::unfold(streams, |mut streams| async move {
            let events = streams.next().await?;
            Some((futures::stream::iter(events), streams))
        });
        start.chain(later.flatten()).boxed()
    }
}

/// The streams of all providers, for one listener.
struct Streams {
    changes: mpsc::UnboundedReceiver<Change>,
    events: SelectAll<BoxStream<'static, (u64, FleetEvent)>>,
    handles: HashMap<u64, AbortHandle>,
    merge: Merge,
}

impl Streams {
    fn add(&mut self, name: &str, id: u64, provider: Arc<dyn Provider>) {
        let (events, handle) = abortable(guarded(provider).map(move |event| (id, event)));
        self.events.push(events.boxed());
        self.handles.insert(id, handle);
        self.merge.add(id, name);
    }

    async fn next(&mut self) -> Option<Vec<FleetEvent>> {
        tokio::select! {
            Some(change) = self.changes.recv() => Some(match change {
                Change::Added(name, id, provider) => {
                    self.add(&name, id, provider);
                    Vec::new()
                }
                Change::Removed(id) => {
                    if let Some(handle) = self.handles.remove(&id) {
                        handle.abort();
                    }
                    self.merge.remove(id)
                }
            }),
            Some((id, event)) = self.events.next() => Some(self.merge.on_event(id, event)),
            else => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::engagements::describe;
    use super::super::{Nop, Single, Static};
    use super::*;
    use crate::testing::unreachable_client;

    async fn all(multi: Multi) -> Vec<String> {
        let events = multi.events();
        drop(multi);
        let mut reported: Vec<String> = events.map(|event| describe(&event)).collect().await;
        reported.sort();
        reported
    }

    #[tokio::test]
    async fn clusters_bear_the_name_of_their_provider() {
        let single = |name| Single::new(name, unreachable_client());
        let multi = Multi::new().with("a", single("x")).with("b", single("x")).with("nothing", Nop);
        let wanted = ["engage a#x at a#x", "engage b#x at b#x", "synced", "up a#x", "up b#x"];
        assert_eq!(all(multi).await, wanted);
        assert_eq!(all(Multi::new()).await, ["synced"]);
    }

    /// A provider that panics at the first call.
    struct Shaky(std::sync::atomic::AtomicBool);

    impl Provider for Shaky {
        fn events(&self) -> BoxStream<'static, FleetEvent> {
            assert!(self.0.swap(true, std::sync::atomic::Ordering::Relaxed), "not yet");
            Single::new("x", unreachable_client()).events()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_provider_that_panics_is_asked_anew_and_the_others_do_not_notice() {
        let multi = Multi::new().with("a", Single::new("x", unreachable_client())).with("b", Shaky(false.into()));
        let reported = all(multi).await;
        let count = |event: &str| reported.iter().filter(|reported| *reported == event).count();
        assert_eq!(
            (count("up a#x"), count("engage a#x at a#x"), count("engage b#x at b#x")),
            (1, 1, 1),
            "{reported:?}"
        );
        assert_eq!((count("failing b#the provider"), count("recovered b#the provider")), (1, 1), "{reported:?}");
    }

    #[tokio::test]
    async fn a_burst_of_providers_blocks_nobody() {
        let multi = Multi::new();
        let mut events = multi.events();
        let client = unreachable_client();
        let providers: Vec<Static> = (0..1000).map(|_| Static::new()).collect();
        for (n, provider) in providers.iter().enumerate() {
            provider.insert("x", client.clone()).unwrap();
            multi.insert(&n.to_string(), provider.clone());
        }
        let mut engaged = std::collections::HashSet::new();
        while engaged.len() < 1000 {
            if let Some(FleetEvent::Engage(cluster)) = events.next().await {
                engaged.insert(cluster.name().clone());
            }
        }
    }

    #[tokio::test]
    async fn a_removed_provider_takes_its_clusters_along_and_a_replaced_one_starts_anew() {
        let multi = Multi::new().with("a", Single::new("x", unreachable_client()));
        let mut events = multi.events();
        let mut reported = Vec::new();
        while reported.len() < 3 {
            reported.push(describe(&events.next().await.unwrap()));
        }
        multi.insert("a", Single::new("y", unreachable_client()));
        assert!(multi.remove("a"));
        assert!(!multi.remove("a"));
        drop(multi);
        reported.extend(events.map(|event| describe(&event)).collect::<Vec<_>>().await);
        assert_eq!(reported[..5], ["up a#x", "engage a#x at a#x", "synced", "disengage a#x", "down a#x"]);
        let (ups, downs) =
            reported[5..].iter().partition::<Vec<_>, _>(|event| event.starts_with("up") || event.starts_with("eng"));
        assert_eq!(ups.len(), downs.len(), "{reported:?}");
    }
}
