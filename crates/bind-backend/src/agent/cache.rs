//! Caches: the objects of one watch as they were last seen.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;

use carrick_bind_api::kinds::{ApiObject, BINDABLE_RESOURCES_REQUEST};
use carrick_client::watch::{Event, WatchOptions, watch};
use carrick_client::{Client, Object, Resource};
use carrick_sync::executor::refusal::is_unserved;
use futures::StreamExt;
use parking_lot::Mutex;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// Told about every object that has come, changed or gone, and once when everything was read.
pub type Listener = Arc<dyn Fn(Option<&Object>) + Send + Sync>;

/// The objects of one watch. What was seen stays while a server is away.
pub struct Cache {
    what: String,
    /// Whether a server may lack the kind: then there are no such objects.
    optional: bool,
    state: Mutex<CacheState>,
    listener: Listener,
}

type Objects = BTreeMap<(Arc<str>, Arc<str>), Object>;

/// Why a watch does not work.
enum Outage {
    /// The server says that there is no such kind.
    Unserved,
    /// Anything else, which passes by itself.
    Other,
}

#[derive(Default)]
struct CacheState {
    objects: Objects,
    /// A list that is not complete yet.
    coming: Objects,
    synced: bool,
    outage: Option<Outage>,
    /// Whether the server has gone back in time, so that a version may stand for another content than before.
    past: bool,
}

impl Cache {
    /// Begins to watch.
    pub fn start(
        client: &Client,
        resource: Resource,
        options: WatchOptions,
        listener: Listener,
        stop: &CancellationToken,
    ) -> Arc<Self> {
        // kube-bind's own suite installs no such CRD, and all else works without it.
        let optional = *resource.plural == *BINDABLE_RESOURCES_REQUEST.plural;
        let cache = Arc::new(Self { what: resource.plural.to_string(), optional, state: Mutex::default(), listener });
        let (filled, client, stop) = (Arc::clone(&cache), client.clone(), stop.clone());
        tokio::spawn(async move {
            let mut events = pin!(watch(client, resource, options));
            loop {
                tokio::select! {
                    () = stop.cancelled() => return,
                    Some(event) = events.next() => filled.on(event),
                }
            }
        });
        cache
    }

    fn on(&self, event: Event) {
        let key = |object: &Object| (object.namespace.clone(), object.name.clone());
        let mut changed = Vec::new();
        let mut state = self.state.lock();
        match event {
            Event::Begin => state.coming.clear(),
            Event::Listed(object) => drop(state.coming.insert(key(&object), object)),
            Event::Synced => {
                let coming = std::mem::take(&mut state.coming);
                let before = std::mem::replace(&mut state.objects, coming);
                let past = std::mem::take(&mut state.past);
                let same = |key, object: &Object| {
                    state.objects.get(key).is_some_and(|now| now.resource_version == object.resource_version)
                };
                changed.extend(before.iter().filter(|(key, object)| !same(*key, object)).map(|(_, it)| it.clone()));
                let known = |(key, object): &(&(Arc<str>, Arc<str>), &Object)| {
                    !past && before.get(*key).is_some_and(|it| it.resource_version == object.resource_version)
                };
                changed.extend(state.objects.iter().filter(|it| !known(it)).map(|(_, it)| it.clone()));
                state.synced = true;
                // It is served; whether the watch works again comes as an event of its own.
                state.outage = state.outage.take().map(|_| Outage::Other);
            }
            Event::Applied(object) => {
                state.objects.insert(key(&object), object.clone());
                changed.push(object);
            }
            Event::Deleted(object) => {
                state.objects.remove(&key(&object));
                changed.push(object);
            }
            Event::Failing(error) if self.optional && is_unserved(&error) => {
                tracing::info!(
                    what = self.what,
                    "The cluster does not serve this kind; nothing of it is done until it does."
                );
                state.synced = true;
            }
            Event::Failing(error) => {
                tracing::warn!(what = self.what, %error, "A watch does not work, trying again until it does.");
                state.outage = Some(if is_unserved(&error) { Outage::Unserved } else { Outage::Other });
            }
            Event::WentBack { .. } => state.past = true,
            Event::Recovered => {
                tracing::info!(what = self.what, "The watch works again.");
                state.outage = None;
            }
        }
        drop(state);
        for object in &changed {
            (self.listener)(Some(object));
        }
        (self.listener)(None);
    }

    /// Whether everything was read at least once.
    pub fn has_synced(&self) -> bool {
        self.state.lock().synced
    }

    /// Why nothing can be done with these objects. A server that is away for a while is no reason: what was seen stays.
    pub fn problem(&self) -> Option<String> {
        let state = self.state.lock();
        match (&state.outage, state.synced) {
            (Some(Outage::Unserved), _) => {
                Some(format!("the cluster does not serve {}; are the CRDs installed?", self.what))
            }
            (_, false) => Some(format!("{} have not been read yet", self.what)),
            (_, true) => None,
        }
    }

    /// Whether what is not here is certain not to exist.
    pub fn is_certain(&self) -> bool {
        let state = self.state.lock();
        state.synced && state.outage.is_none()
    }

    /// One object.
    pub fn get(&self, namespace: &str, name: &str) -> Option<Value> {
        let found = self.state.lock().objects.get(&(Arc::from(namespace), Arc::from(name))).cloned();
        found.map(|object| object.value())
    }

    /// One object, as a type.
    pub fn read<K: ApiObject>(&self, namespace: &str, name: &str) -> Option<K> {
        let found = self.state.lock().objects.get(&(Arc::from(namespace), Arc::from(name))).cloned();
        found.and_then(|object| self.decode(&object))
    }

    /// The objects of a namespace whose names begin like this; the namespace of cluster-wide ones is empty.
    pub fn all(&self, namespace: &str, prefix: &str) -> Vec<Object> {
        let state = self.state.lock();
        let from = (Arc::<str>::from(namespace), Arc::<str>::from(prefix));
        let found = state.objects.range(from..);
        found
            .take_while(|((at, name), _)| &**at == namespace && name.starts_with(prefix))
            .map(|(_, object)| object.clone())
            .collect()
    }

    /// The objects of a namespace, as a type. Those that are not what they should be are left out, and the log says so.
    pub fn typed<K: ApiObject>(&self, namespace: &str) -> Vec<K> {
        self.all(namespace, "").iter().filter_map(|object| self.decode(object)).collect()
    }

    /// All objects.
    pub fn objects(&self) -> Vec<Object> {
        self.state.lock().objects.values().cloned().collect()
    }

    fn decode<K: ApiObject>(&self, object: &Object) -> Option<K> {
        object
            .decode()
            .inspect_err(|error| tracing::warn!(what = self.what, ?object, %error, "An object cannot be read."))
            .ok()
    }
}

#[cfg(test)]
mod tests {
    use carrick_client::Status;

    use super::*;

    #[test]
    fn a_kind_that_a_cluster_may_lack_holds_nothing_up() {
        let missing = || Event::Failing(Status { code: 404, reason: "NotFound".into(), ..Status::default() }.into());
        for (optional, goes_on) in [(true, true), (false, false)] {
            let cache =
                Cache { what: "kinds".to_owned(), optional, state: Mutex::default(), listener: Arc::new(|_| ()) };
            cache.on(missing());
            assert_eq!((cache.has_synced(), cache.is_certain()), (goes_on, goes_on));
            assert_eq!(cache.problem().is_none(), goes_on, "{:?}", cache.problem());
            cache.on(Event::Begin);
            cache.on(Event::Synced);
            assert_eq!(cache.problem(), None, "it is served now");
            cache.on(Event::Failing(Status { code: 503, ..Status::default() }.into()));
            assert_eq!(cache.problem(), None, "a server that is away for a while");
            cache.on(missing());
            assert_eq!(cache.problem().is_none(), optional, "its CRD was deleted");
        }
    }
}
