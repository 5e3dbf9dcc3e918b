//! Watches of related objects, shared by all PublishedResources of the agent.

use std::collections::{HashMap, HashSet};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use carrick_client::watch::{Event, WatchOptions, watch};
use carrick_client::{Client, Object};
use carrick_multicluster::{EndpointId, FleetEvent};
use futures::StreamExt;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::bytes::RelatedBytes;
use super::cache::{CacheAnswer, Origin, RelatedCache, ServedBy};
use super::keys::{ClusterNamespace, PrimaryKey};
use super::patience::Patience;
use crate::agent::objects::copies::SERVICE;
use crate::agent::objects::fleet::Fleets;
use crate::agent::objects::related::kinds::{RelatedKinds, resource};
use crate::agent::objects::related::primaries::AllPrimaries;
use crate::agent::retry::Backoff;
use crate::decide::{ObjectAddress, Role, Side};
use crate::rules::metadata::{KCP_SIDE, SERVICE_SIDE, SourceKey};
use crate::rules::related::Gvr;
use crate::rules::selector::Selector;

/// How long changes of consumers' APIs are collected before related objects are listed anew.
const NEW_APIS: Duration = Duration::from_secs(1);

/// How long the moves of clusters to an endpoint are collected before its related objects are listed again.
const ARRIVAL: Duration = Duration::from_secs(1);

/// Everything that is known of related objects.
pub(in crate::agent::objects) struct RelatedWatches {
    local: Client,
    fleets: Fleets,
    /// Kinds of related resources.
    pub kinds: Arc<RelatedKinds>,
    /// The primaries they belong to.
    pub primaries: AllPrimaries,
    /// Since when related objects are absent, or no longer named.
    pub absences: Patience,
    /// Since when consumers refuse what the end of their orders needs.
    pub refusals: Patience,
    /// What they take of the agent's memory.
    bytes: RelatedBytes,
    running: Mutex<HashMap<(Side, Gvr), RunningWatch>>,
    interests: Mutex<HashMap<PrimaryKey, HashSet<Interest>>>,
    requeues: Arc<Requeues>,
}

/// Where to send primaries that are to be reconciled, by PublishedResource.
type Requeues = Mutex<HashMap<Arc<str>, mpsc::UnboundedSender<SourceKey>>>;

/// The watches of one kind on one side, and their cache.
struct RunningWatch {
    cache: Arc<Mutex<RelatedCache>>,
    /// Feeds the cache; ends with it.
    _task: JoinSet<()>,
}

/// What a primary needs.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(in crate::agent::objects) struct Interest {
    pub side: Side,
    pub gvr: Gvr,
    pub scope: ClusterNamespace,
    pub wanted: Wanted,
}

/// One object, or all that match.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(in crate::agent::objects) enum Wanted {
    Object(String),
    Matching(Selector),
}

impl RelatedWatches {
    /// Nothing is watched yet. What is absent is withdrawn when `absences` says so.
    pub fn new(local: Client, fleets: Fleets, absences: Patience) -> Self {
        Self {
            local,
            fleets,
            kinds: Arc::default(),
            primaries: AllPrimaries::default(),
            absences,
            refusals: Patience::default(),
            bytes: RelatedBytes::default(),
            running: Mutex::default(),
            interests: Mutex::default(),
            requeues: Arc::default(),
        }
    }

    /// Requeues primaries of a PublishedResource when their related objects change.
    pub fn join(&self, published: &str, requeue: mpsc::UnboundedSender<SourceKey>) {
        self.requeues.lock().insert(published.into(), requeue);
    }

    /// Forgets a PublishedResource.
    pub fn leave(&self, published: &str) {
        self.primaries.remove(published);
        self.absences.forget_all(published);
        self.refusals.forget_all(published);
        self.requeues.lock().remove(published);
        let users: Vec<PrimaryKey> =
            self.interests.lock().keys().filter(|(name, _)| **name == *published).cloned().collect();
        for user in users {
            self.set_interests(&user, &HashSet::new());
        }
        requeue(&self.requeues, self.bytes.forget_all(published));
        self.running.lock().retain(|_, running| !running.cache.lock().is_empty());
    }

    /// Replaces what a primary needs; nothing, once it is gone.
    pub fn set_interests(&self, user: &PrimaryKey, interests: &HashSet<Interest>) {
        let mut all = self.interests.lock();
        let old = if interests.is_empty() { all.remove(user) } else { all.insert(user.clone(), interests.clone()) };
        for gone in old.into_iter().flatten().filter(|old| !interests.contains(old)) {
            let Some(cache) = self.find(gone.side, &gone.gvr) else { continue };
            match &gone.wanted {
                Wanted::Object(name) => cache.lock().leave(user, &gone.scope, name),
                Wanted::Matching(selector) => cache.lock().leave_list(user, &gone.scope, selector),
            }
        }
    }

    /// A primary is gone.
    pub fn forget(&self, user: &PrimaryKey) {
        self.set_interests(user, &HashSet::new());
        self.settle_bytes(user, 0, false);
        self.absences.forget(user);
        self.refusals.forget(user);
    }

    /// A primary that is being read needs so many bytes in all. If its workspace has no room for them, returns how many it would have.
    pub fn reserve_bytes(&self, user: &PrimaryKey, bytes: usize, most: usize) -> Result<(), usize> {
        self.bytes.reserve(user, bytes, most)
    }

    /// A primary was read and needs so many bytes, or was refused some. Those that waited for room are reconciled if there is more.
    pub fn settle_bytes(&self, user: &PrimaryKey, bytes: usize, refused: bool) {
        requeue(&self.requeues, self.bytes.settle(user, bytes, refused));
    }

    /// What is known of one object.
    pub fn get(
        &self,
        user: &PrimaryKey,
        side: Side,
        gvr: &Gvr,
        scope: &ClusterNamespace,
        name: &str,
    ) -> CacheAnswer<Option<Object>> {
        let Some(endpoint) = self.endpoint(side, &scope.0) else { return CacheAnswer::Blind };
        self.cache(side, gvr).lock().get(user, &endpoint, scope, name)
    }

    /// What is known of all objects that match.
    pub fn list(
        &self,
        user: &PrimaryKey,
        side: Side,
        gvr: &Gvr,
        scope: &ClusterNamespace,
        selector: &Selector,
    ) -> CacheAnswer<Vec<Object>> {
        let Some(endpoint) = self.endpoint(side, &scope.0) else { return CacheAnswer::Blind };
        self.cache(side, gvr).lock().list(user, &endpoint, scope, selector)
    }

    /// Notes that the agent may not write an object that the end of a primary depends on, and says whether that has lasted for a while.
    pub fn refused(&self, user: &PrimaryKey, at: &str, grace: Duration) -> bool {
        self.refusals.one(user, &format!("write {at}"), Instant::now(), grace)
    }

    /// The end of a primary no longer depends on an object.
    pub fn give_up(&self, user: &PrimaryKey, at: &str) {
        self.refusals.one(user, &given_up(at), Instant::now(), Duration::ZERO);
    }

    /// Whether the end of a primary no longer depends on an object.
    pub fn is_given_up(&self, user: &PrimaryKey, at: &str) -> bool {
        self.refusals.has(user, &given_up(at), Instant::now(), Duration::ZERO)
    }

    /// Namespaces and names of objects that carry the marks of an entry of a primary. None if no watch knows yet; the user is requeued
    /// once one does.
    pub fn marked(
        &self,
        user: &PrimaryKey,
        side: Side,
        gvr: &Gvr,
        cluster: &str,
        owner: &str,
    ) -> Option<Vec<(String, String)>> {
        let endpoint = self.endpoint(side, cluster)?;
        let cluster = if side == KCP_SIDE { cluster } else { "" };
        self.cache(side, gvr).lock().marked(user, &endpoint, cluster, owner)
    }

    /// Whom a question goes to that is asked now; to be given with the answer.
    pub fn asked(&self, side: Side, gvr: &Gvr, cluster: &str) -> Option<Asked> {
        let (endpoint, cache) = (self.endpoint(side, cluster)?, self.find(side, gvr)?);
        let origin = cache.lock().origin(&endpoint);
        Some(Asked { endpoint, origin, cache })
    }

    /// An object was written.
    pub fn wrote(&self, cluster: &str, at: &ObjectAddress, object: &Value) {
        if let Some(asked) = self.asked(at.side, &gvr_of(at), cluster) {
            asked.learn(&scope_of(cluster, at), &at.name, Some(object));
        }
    }

    /// An object was deleted, or differs from what is cached.
    pub fn doubt(&self, cluster: &str, at: &ObjectAddress) {
        if let Some(cache) = self.find(at.side, &gvr_of(at)) {
            cache.lock().doubt(&scope_of(cluster, at), &at.name);
        }
    }

    /// The endpoint that serves a cluster.
    fn endpoint(&self, side: Side, cluster: &str) -> Option<String> {
        match side.role {
            Role::Provider => Some(SERVICE.to_owned()),
            Role::Consumer => self.fleets.consumers.cluster(cluster).ok().map(|cluster| cluster.endpoint().to_string()),
        }
    }

    fn find(&self, side: Side, gvr: &Gvr) -> Option<Arc<Mutex<RelatedCache>>> {
        self.running.lock().get(&(side, gvr.clone())).map(|running| running.cache.clone())
    }

    fn cache(&self, side: Side, gvr: &Gvr) -> Arc<Mutex<RelatedCache>> {
        let mut running = self.running.lock();
        let entry = running.entry((side, gvr.clone()));
        entry.or_insert_with(|| self.start(side, gvr.clone())).cache.clone()
    }

    fn start(&self, side: Side, gvr: Gvr) -> RunningWatch {
        let cache: Arc<Mutex<RelatedCache>> = Arc::default();
        let feed = CacheFeed {
            side,
            gvr,
            fleets: self.fleets.clone(),
            kinds: self.kinds.clone(),
            requeues: self.requeues.clone(),
            cache: cache.clone(),
        };
        let mut task = JoinSet::new();
        match side.role {
            Role::Provider => drop(task.spawn(feed.follow(self.local.clone(), SERVICE.to_owned()))),
            Role::Consumer => drop(task.spawn(feed.follow_endpoints())),
        }
        RunningWatch { cache, _task: task }
    }
}

/// A question to a server whose answer the cache is to learn.
pub(in crate::agent::objects) struct Asked {
    endpoint: String,
    origin: Origin,
    cache: Arc<Mutex<RelatedCache>>,
}

impl Asked {
    /// Takes in what the server answered about one object.
    pub fn learn(&self, scope: &ClusterNamespace, name: &str, object: Option<&Value>) {
        let object = object.and_then(|object| cached(object, scope));
        self.cache.lock().learn(&self.endpoint, self.origin, scope, name, object);
    }

    /// Takes in a list from the server.
    pub fn learn_list(&self, scope: &ClusterNamespace, selector: &Selector, objects: &[Value]) {
        let objects = objects.iter().filter_map(|object| cached(object, scope)).collect();
        self.cache.lock().learn_list(&self.endpoint, self.origin, scope, selector, objects);
    }
}

/// Feeds one cache.
#[derive(Clone)]
struct CacheFeed {
    side: Side,
    gvr: Gvr,
    fleets: Fleets,
    kinds: Arc<RelatedKinds>,
    requeues: Arc<Requeues>,
    cache: Arc<Mutex<RelatedCache>>,
}

impl CacheFeed {
    /// Keeps one watch for every endpoint.
    async fn follow_endpoints(self) {
        let start = |id: &EndpointId, client: &Client| {
            let mut task = JoinSet::new();
            task.spawn(self.clone().follow(client.clone(), id.to_string()));
            task
        };
        let mut events = self.fleets.consumers.subscribe();
        let mut running: HashMap<EndpointId, (Client, JoinSet<()>)> = HashMap::new();
        let mut refresh = None;
        // Endpoints to which clusters have moved, and when they are listed again.
        let mut arrivals: HashMap<EndpointId, Instant> = HashMap::new();
        loop {
            let arrived = arrivals.values().min().copied();
            tokio::select! {
                event = events.next() => match event {
                    Some(FleetEvent::EndpointUp(endpoint)) => {
                        let task = start(&endpoint.id, &endpoint.client);
                        running.insert(endpoint.id, (endpoint.client, task));
                    }
                    Some(FleetEvent::EndpointDown(id)) => {
                        drop(running.remove(&id));
                        self.cache.lock().lose(id.as_str());
                    }
                    // Another endpoint may serve it from now on, and may have said something about it before.
                    Some(FleetEvent::Engage(cluster)) => {
                        let (moved, users) = self.cache.lock().settle(cluster.name(), cluster.endpoint().as_str());
                        if moved {
                            arrivals.entry(cluster.endpoint().clone()).or_insert_with(|| Instant::now() + ARRIVAL);
                            self.requeue(users);
                        }
                    }
                    // kcp goes on serving a watch under the schema it began with, so a new schema needs a new list and watch.
                    Some(FleetEvent::ApisChanged { .. }) => refresh = Some(Instant::now() + NEW_APIS),
                    Some(_) => {}
                    None => return,
                },
                () = tokio::time::sleep_until(refresh.unwrap_or_else(Instant::now)), if refresh.is_some() => {
                    refresh = None;
                    for (id, (client, task)) in &mut running {
                        *task = start(id, client);
                    }
                }
                () = tokio::time::sleep_until(arrived.unwrap_or_else(Instant::now)), if arrived.is_some() => {
                    let now = Instant::now();
                    for (id, _) in arrivals.extract_if(|_, at| *at <= now) {
                        if let Some((client, task)) = running.get_mut(&id) {
                            *task = start(&id, client);
                        }
                    }
                }
            }
        }
    }

    fn requeue(&self, users: HashSet<PrimaryKey>) {
        requeue(&self.requeues, users);
    }

    /// Watches one endpoint.
    async fn follow(self, client: Client, endpoint: String) {
        let mut backoff = Backoff::for_servers();
        let kind = loop {
            match self.kinds.find(self.side, &client, &self.gvr).await {
                Ok(Some(found)) => break found.kind,
                Ok(None) => {}
                Err(error) => {
                    tracing::debug!(resource = self.gvr.resource, %error, "Cannot look up a related resource.");
                }
            }
            client.pause(backoff.pause()).await;
        };
        let options = WatchOptions { streaming_lists: self.side == SERVICE_SIDE, ..WatchOptions::default() };
        let mut events = pin!(watch(client, resource(&kind), options));
        while let Some(mut event) = events.next().await {
            match &mut event {
                Event::Listed(object) | Event::Applied(object) | Event::Deleted(object)
                    if self.side == SERVICE_SIDE =>
                {
                    // There is only one service cluster, even if it is a workspace of some kcp.
                    object.cluster = "".into();
                }
                Event::Failing(error) => {
                    tracing::warn!(resource = self.gvr.resource, %error, "Cannot watch related objects, changes arrive late until this works…");
                }
                Event::Recovered => tracing::info!(resource = self.gvr.resource, "Watching related objects again."),
                _ => {}
            }
            let serves = |cluster: &str| match self.side.role {
                Role::Provider => ServedBy::Here,
                Role::Consumer => match self.fleets.consumers.cluster(cluster) {
                    Ok(cluster) if cluster.endpoint().as_str() == endpoint => ServedBy::Here,
                    Ok(_) => ServedBy::Elsewhere,
                    Err(_) => ServedBy::Nobody,
                },
            };
            let users = self.cache.lock().apply(&endpoint, &event, serves);
            self.requeue(users);
        }
    }
}

fn requeue(requeues: &Requeues, users: HashSet<PrimaryKey>) {
    if users.is_empty() {
        return;
    }
    let requeues = requeues.lock();
    for (published, key) in users {
        if let Some(requeue) = requeues.get(&published) {
            // Nobody listens any more when the PublishedResource has gone.
            let _ = requeue.send(key);
        }
    }
}

fn given_up(at: &str) -> String {
    format!("give up {at}")
}

/// Group, version and resource of an object.
pub(in crate::agent::objects) fn gvr_of(at: &ObjectAddress) -> Gvr {
    Gvr { group: at.kind.group.clone(), version: at.kind.version.clone(), resource: at.kind.plural.clone() }
}

/// Where the cache keeps an object.
fn scope_of(cluster: &str, at: &ObjectAddress) -> ClusterNamespace {
    let cluster = if at.side == KCP_SIDE { cluster } else { "" };
    (cluster.to_owned(), at.namespace.clone().unwrap_or_default())
}

/// An object as the cache keeps it.
fn cached(object: &Value, scope: &ClusterNamespace) -> Option<Object> {
    let mut object = Object::from_value(object)?;
    object.cluster = scope.0.as_str().into();
    Some(object)
}
