//! Caches: the objects of one watch as they were last seen.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;

use carrick_bind_api::kinds::ApiObject;
use carrick_client::watch::{Event, WatchOptions, watch};
use carrick_client::{Client, Object, Resource};
use futures::StreamExt;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::notifier::Notifier;
use crate::decide::Seen;

/// The objects of one watch. What was seen stays while a server is away, but nobody then takes anything for gone.
#[derive(Debug)]
pub struct Cache {
    what: String,
    state: Mutex<CacheState>,
    notifier: Notifier,
}

type Objects = BTreeMap<(Arc<str>, Arc<str>), Object>;

#[derive(Debug, Default)]
struct CacheState {
    objects: Objects,
    /// A list that is not complete yet.
    coming: Objects,
    synced: bool,
    problem: Option<String>,
    /// Whether the problem is a right that is missing.
    forbidden: bool,
}

impl Cache {
    /// An empty one that rings whenever something changes.
    pub fn new(what: impl Into<String>, notifier: &Notifier) -> Arc<Self> {
        Arc::new(Self { what: what.into(), state: Mutex::default(), notifier: notifier.clone() })
    }

    /// Fills it until told to stop.
    pub async fn follow(
        self: Arc<Self>,
        client: Client,
        resource: Resource,
        options: WatchOptions,
        stop: CancellationToken,
    ) {
        let mut events = pin!(watch(client, resource, options));
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                Some(event) = events.next() => self.on(event),
            }
        }
    }

    fn on(&self, event: Event) {
        let key = |object: &Object| (object.namespace.clone(), object.name.clone());
        let mut state = self.state.lock();
        match event {
            Event::Begin => {
                state.coming.clear();
                return;
            }
            Event::Listed(object) => {
                state.coming.insert(key(&object), object);
                return;
            }
            Event::Synced => {
                state.objects = std::mem::take(&mut state.coming);
                state.synced = true;
            }
            Event::Applied(object) => drop(state.objects.insert(key(&object), object)),
            Event::Deleted(object) => drop(state.objects.remove(&key(&object))),
            Event::Failing(error) => {
                tracing::warn!(what = self.what, %error, "A watch does not work, trying again until it does.");
                state.problem = Some(error.to_string());
                state.forbidden = error.is_forbidden();
            }
            // The list that follows replaces everything.
            Event::WentBack { .. } => return,
            Event::Recovered => {
                tracing::info!(what = self.what, "The watch works again.");
                state.problem = None;
                state.forbidden = false;
            }
        }
        drop(state);
        self.notifier.notify();
    }

    /// Why it is not known what there is.
    pub fn unknown(&self) -> Option<String> {
        let state = self.state.lock();
        match &state.problem {
            Some(problem) => Some(problem.clone()),
            None if state.synced => None,
            None => Some(format!("{} have not been read yet", self.what)),
        }
    }

    /// Whether it is not known what there is because a right is missing.
    pub fn is_forbidden(&self) -> bool {
        self.state.lock().forbidden
    }

    /// Whether everything was read at least once.
    pub fn has_synced(&self) -> bool {
        self.state.lock().synced
    }

    /// Whether nothing was read yet, and nothing is wrong.
    pub fn is_pending(&self) -> bool {
        let state = self.state.lock();
        !state.synced && state.problem.is_none()
    }

    /// One object.
    pub fn get(&self, namespace: &str, name: &str) -> Seen<Object> {
        let found = self.state.lock().objects.get(&(Arc::from(namespace), Arc::from(name))).cloned();
        match (found, self.unknown()) {
            (Some(object), _) => Seen::Present(object),
            (None, Some(why)) => Seen::Unknown(why),
            (None, None) => Seen::Absent,
        }
    }

    /// All objects, as a type. Those that are not what they should be are left out, and the log says so.
    pub fn all<K: ApiObject>(&self) -> Vec<K> {
        self.objects().iter().filter_map(|object| self.read(object)).collect()
    }

    /// All objects.
    pub fn objects(&self) -> Vec<Object> {
        self.state.lock().objects.values().cloned().collect()
    }

    /// An object, as a type.
    pub fn read<K: ApiObject>(&self, object: &Object) -> Option<K> {
        object
            .decode()
            .inspect_err(|error| tracing::warn!(what = self.what, ?object, %error, "An object cannot be read."))
            .ok()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(name: &str) -> Object {
        Object::from_value(&json!({"metadata": {"name": name, "namespace": "n"}})).unwrap()
    }

    #[test]
    fn what_was_seen_stays_while_the_server_is_away_and_nothing_is_gone_then() {
        let cache = Cache::new("things", &Notifier::default());
        assert!(matches!(cache.get("n", "a"), Seen::Unknown(why) if why == "things have not been read yet"));
        cache.on(Event::Begin);
        cache.on(Event::Listed(object("a")));
        assert!(matches!(cache.get("n", "a"), Seen::Unknown(_)), "the list is not complete");
        cache.on(Event::Synced);
        assert!(matches!((cache.get("n", "a"), cache.get("n", "b")), (Seen::Present(_), Seen::Absent)));
        let error = carrick_client::Error::Transport { request: "GET".to_owned(), problem: "refused".to_owned() };
        cache.on(Event::Failing(error));
        assert!(matches!((cache.get("n", "a"), cache.get("n", "b")), (Seen::Present(_), Seen::Unknown(_))));
        cache.on(Event::Begin);
        cache.on(Event::Synced);
        assert!(matches!(cache.get("n", "a"), Seen::Unknown(_)), "a list alone does not end an outage");
        cache.on(Event::Recovered);
        assert!(matches!(cache.get("n", "a"), Seen::Absent));
    }
}
