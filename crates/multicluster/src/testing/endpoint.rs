//! A server in memory.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;

use http::{Method, Request};
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::Value;

use super::answer::{Answer, Target, answer, refusal};
use super::objects::{ObjectKey, Objects};

/// A server in memory with the objects of any number of clusters. Cloning shares it.
///
/// It serves lists, watches, reads and writes of every kind: of one cluster at `/clusters/<name>`, of all clusters at its root, as kcp does.
#[derive(Clone, Default)]
pub struct FakeEndpoint(Arc<Mutex<Server>>);

#[derive(Default)]
struct Server {
    objects: Objects,
    requests: HashMap<String, RequestCounts>,
    down: bool,
    /// Clusters that refuse every request.
    forbidden: HashSet<String>,
}

/// How many requests a kind has had.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RequestCounts {
    /// Lists.
    pub lists: usize,
    /// Watches.
    pub watches: usize,
    /// Reads of single objects.
    pub gets: usize,
    /// Whatever changes something, or tries to.
    pub writes: usize,
}

/// What a [`FakeEndpoint`] had at one moment.
#[derive(Clone, Debug)]
pub struct FakeSnapshot((u64, BTreeMap<ObjectKey, Value>));

impl FakeEndpoint {
    /// A server without objects.
    pub fn new() -> Self {
        Self::default()
    }

    /// A client of all clusters at once. Must be called inside a tokio runtime.
    pub fn client(&self) -> kube::Client {
        let endpoint = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let endpoint = endpoint.clone();
            async move { Ok::<_, Infallible>(endpoint.answer(request).await) }
        });
        kube::Client::new(service, "default")
    }

    /// Creates or replaces an object of a kind, by the kind's plural name. The namespace of cluster-wide objects is empty. Name, namespace, uid,
    /// resource version and cluster are filled in; the rest of the object may be anything, even what no server would accept.
    pub fn put(&self, plural: &str, cluster: &str, namespace: &str, name: &str, object: &Value) {
        self.0.lock().objects.put(key(plural, cluster, namespace, name), object.clone());
    }

    /// Removes an object at once, whatever its finalizers say. Returns whether there was one.
    pub fn delete(&self, plural: &str, cluster: &str, namespace: &str, name: &str) -> bool {
        self.0.lock().objects.remove(&key(plural, cluster, namespace, name)).is_some()
    }

    /// An object as it is now.
    pub fn get(&self, plural: &str, cluster: &str, namespace: &str, name: &str) -> Option<Value> {
        self.0.lock().objects.get(&key(plural, cluster, namespace, name)).cloned()
    }

    /// Ends all watches and forgets all events: watches that want to resume are answered 410 and have to list again.
    pub fn expire_watches(&self) {
        self.0.lock().objects.forget_events();
    }

    /// Everything there is now, to go back to with [`FakeEndpoint::restore`].
    pub fn snapshot(&self) -> FakeSnapshot {
        FakeSnapshot(self.0.lock().objects.snapshot())
    }

    /// Goes back in time, as a server does that was restored from a backup: objects and versions are those of the snapshot, watches end, and
    /// those that resume at a version of the future are accepted and stay silent.
    pub fn restore(&self, snapshot: &FakeSnapshot) {
        self.0.lock().objects.restore(snapshot.0.clone());
    }

    /// Answers 503 to everything and ends all watches, until it is told otherwise.
    pub fn set_down(&self, down: bool) {
        let mut server = self.0.lock();
        server.down = down;
        if down {
            server.objects.end_watches();
        }
    }

    /// Answers 403 to every request for this cluster from now on.
    pub fn forbid(&self, cluster: &str) {
        self.0.lock().forbidden.insert(cluster.to_owned());
    }

    /// Whether anybody watches.
    pub fn is_watched(&self) -> bool {
        self.0.lock().objects.is_watched()
    }

    /// How many requests a kind has had, by its plural name; those that were answered 403 or 503 aside.
    pub fn requests(&self, plural: &str) -> RequestCounts {
        self.0.lock().requests.get(plural).copied().unwrap_or_default()
    }

    async fn answer(&self, request: Request<Body>) -> Answer {
        let (parts, body) = request.into_parts();
        let Ok(body) = body.collect_bytes().await else {
            return refusal(400, "BadRequest", "the body of the request broke off");
        };
        let mut server = self.0.lock();
        if server.down {
            return refusal(503, "ServiceUnavailable", "the fake server is down");
        }
        let Some(target) = Target::read(&parts.uri) else {
            return refusal(404, "NotFound", "the fake server serves nothing here");
        };
        if target.cluster.as_ref().is_some_and(|cluster| server.forbidden.contains(cluster)) {
            return refusal(403, "Forbidden", "the fake server forbids this cluster");
        }
        let counts = server.requests.entry(target.plural.clone()).or_default();
        match parts.method {
            Method::GET if target.is_watch() => counts.watches += 1,
            Method::GET if target.is_list() => counts.lists += 1,
            Method::GET => counts.gets += 1,
            _ => counts.writes += 1,
        }
        answer(&mut server.objects, &target, &parts, &body)
    }
}

impl fmt::Debug for FakeEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FakeEndpoint").finish_non_exhaustive()
    }
}

fn key(plural: &str, cluster: &str, namespace: &str, name: &str) -> ObjectKey {
    let [plural, cluster, namespace, name] = [plural, cluster, namespace, name].map(str::to_owned);
    ObjectKey { plural, cluster, namespace, name }
}
