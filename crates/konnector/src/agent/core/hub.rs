//! The objects of all APIs of one Connection: what is wanted, what watches have reported, what is to be done.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use carrick_bind_api::claims::Guarded;
use carrick_bind_api::core::names::CONFLICT_ANNOTATION;
use carrick_bind_api::core::related::RESOURCES;
use carrick_bind_api::mapping::ObjectKey;
use carrick_client::{Client, Object};
use carrick_multicluster::{ClusterName, HasCluster, Priority, Queue, QueueConfig, Reason};
use carrick_sync::executor::{Allowance, resource};
use carrick_sync::holders::has_finalizer;
use carrick_sync::{ApiKind, Role};
use parking_lot::{Mutex, RwLock};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::follow;
use crate::agent::metrics::Metrics;
use crate::agent::notifier::Notifier;
use crate::agent::objects::consumers::Keys;
use crate::agent::objects::ledger::Ledger;
use crate::agent::objects::outcome::Problem;
use crate::agent::objects::watched::{WatchId, Watched, Watches};
use crate::agent::objects::work::work;
use crate::agent::objects::writing::Tools;
use crate::agent::objects::{PER_LANE, WORKERS};
use crate::decide::core::objects::{Coverage, WORDS};
use crate::decide::core::related::RelatedWant;

/// The longest pause before something that failed is tried again.
const LONGEST_RETRY: Duration = Duration::from_mins(1);

/// What is wanted, by name of the API.
pub(super) type Wanted = BTreeMap<String, Arc<WantedApi>>;

/// What is wanted of the objects of one API.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct WantedApi {
    pub kind: Arc<ApiKind>,
    pub has_status: bool,
    /// Bindings that list it, those for the whole cluster first; what none covers is watched, so that deletions go on.
    pub covers: Vec<Cover>,
    /// What bindings want of related objects, if these are Secrets or ConfigMaps.
    pub related: Vec<RelatedWant>,
    /// What of these never travels.
    pub guarded: Guarded,
}

/// What one binding wants of the objects of an API.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Cover {
    /// The namespace that it is for; none for all.
    pub namespace: Option<String>,
    pub coverage: Coverage,
}

impl WantedApi {
    /// An API of which nothing is wanted yet.
    pub fn new(kind: ApiKind, has_status: bool) -> Self {
        let (covers, related, guarded) = (Vec::new(), Vec::new(), Guarded::default());
        Self { kind: Arc::new(kind), has_status, covers, related, guarded }
    }

    /// Whether its objects are related ones.
    pub fn is_related(&self) -> bool {
        !self.related.is_empty()
    }

    /// Whether a watch reports its objects.
    pub fn is_seen_by(&self, id: &WatchId) -> bool {
        resource(&self.kind) == id.resource
    }

    /// What is wanted of objects in a namespace: whoever keeps them comes before whoever lets them go.
    pub fn coverage(&self, namespace: Option<&str>) -> Coverage {
        let mut all =
            self.covers.iter().filter(|cover| cover.namespace.is_none() || cover.namespace.as_deref() == namespace);
        let first = all.clone().next().map_or(Coverage::Nothing, |cover| cover.coverage);
        all.find(|cover| matches!(cover.coverage, Coverage::Keep { .. })).map_or(first, |cover| cover.coverage)
    }

    /// The namespaces that are watched: all at once if a binding for the whole cluster needs them, or none at all.
    fn namespaces(&self) -> BTreeSet<Option<String>> {
        let related = self.related.iter().map(|want| want.namespace.clone());
        let all: BTreeSet<_> = self.covers.iter().map(|cover| cover.namespace.clone()).chain(related).collect();
        if all.is_empty() || all.contains(&None) { BTreeSet::from([None]) } else { all }
    }
}

/// One object of one API.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct WorkKey {
    pub lane: ClusterName,
    pub object: ObjectKey,
}

impl HasCluster for WorkKey {
    fn cluster(&self) -> &ClusterName {
        &self.lane
    }
}

impl std::fmt::Display for WorkKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.lane, self.object)
    }
}

/// The objects of all APIs of one Connection.
pub(super) struct Hub {
    pub consumer: Client,
    pub provider: Client,
    /// Who the consumer is.
    pub cluster_uid: String,
    pub tools: Tools,
    pub queue: Queue<WorkKey>,
    /// Namespaces of the provider that are known to exist.
    pub namespaces: Mutex<HashSet<String>>,
    /// Rings whenever bindings may have something new to say.
    notifier: Notifier,
    wanted: RwLock<Arc<Wanted>>,
    watches: Watches,
    started: Mutex<Vec<Arc<Watched>>>,
    relayout: Notify,
    /// What is remembered about each object.
    pub ledger: Ledger<WorkKey>,
    /// Whether somebody waits until all related objects are decided about.
    awaited: AtomicBool,
}

impl Hub {
    pub fn new(
        consumer: Client,
        provider: Client,
        cluster_uid: String,
        metrics: Arc<Metrics>,
        notifier: Notifier,
        writes: Allowance,
    ) -> Self {
        let config = QueueConfig { longest_retry: LONGEST_RETRY, per_cluster: PER_LANE, ..QueueConfig::default() };
        Self {
            consumer,
            provider,
            cluster_uid,
            tools: Tools::new(metrics, writes),
            queue: Queue::new(config),
            namespaces: Mutex::default(),
            notifier,
            wanted: RwLock::default(),
            watches: Watches::default(),
            started: Mutex::default(),
            relayout: Notify::new(),
            ledger: Ledger::default(),
            awaited: AtomicBool::default(),
        }
    }

    /// Works until told to stop. Whoever drops this future ends all tasks with it.
    pub async fn run(self: Arc<Self>, stop: CancellationToken) {
        let mut tasks = JoinSet::new();
        for _ in 0..WORKERS {
            tasks.spawn(work(Arc::clone(&self)));
        }
        loop {
            for watched in std::mem::take(&mut *self.started.lock()) {
                tasks.spawn(follow::follow(Arc::clone(&self), watched));
            }
            tokio::select! {
                () = stop.cancelled() => break,
                () = self.relayout.notified() => {}
            }
            // Watches that have ended.
            while tasks.try_join_next().is_some() {}
        }
        self.queue.close();
        self.watches.end();
        tasks.shutdown().await;
    }

    /// What is wanted.
    pub fn wanted(&self) -> Arc<Wanted> {
        Arc::clone(&self.wanted.read())
    }

    /// Follows what is wanted from now on.
    pub fn want(&self, wanted: Wanted) {
        let before = self.wanted();
        if *before == wanted {
            return;
        }
        let needed = wanted.values().flat_map(|api| ids(api)).collect();
        self.started.lock().extend(self.watches.follow(needed, |_| Keys::Plain));
        let wanted = Arc::new(wanted);
        *self.wanted.write() = Arc::clone(&wanted);
        self.ledger.retain(|key| wanted.contains_key(&*key.lane));
        for (name, api) in wanted.iter().filter(|(name, api)| before.get(*name) != Some(*api)) {
            self.look_at(name, api);
        }
        self.relayout.notify_one();
        self.notifier.notify();
    }

    /// The watches in which an object is, of the consumer and of the provider.
    pub fn both(&self, key: &WorkKey, api: &WantedApi) -> Option<[Arc<Watched>; 2]> {
        let namespace = key.object.namespace.as_deref();
        Some([self.watched(Role::Consumer, api, namespace)?, self.watched(Role::Provider, api, namespace)?])
    }

    /// The watch of an API that covers a namespace.
    pub fn watched(&self, role: Role, api: &WantedApi, namespace: Option<&str>) -> Option<Arc<Watched>> {
        let id = |namespace| WatchId { role, resource: resource(&api.kind), namespace };
        self.watches.get(&id(None)).or_else(|| self.watches.get(&id(namespace.map(str::to_owned))))
    }

    /// All watches of an API on a side.
    pub fn watches(&self, role: Role, api: &WantedApi) -> Vec<Arc<Watched>> {
        ids(api).filter(|id| id.role == role).filter_map(|id| self.watches.get(&id)).collect()
    }

    /// Looks at all objects of an API that the consumer has: what only the provider has is none of ours, unless it is related.
    pub fn look_at(&self, name: &str, api: &WantedApi) {
        let Ok(lane) = ClusterName::new(name) else { return };
        let provider = if api.is_related() { self.watches(Role::Provider, api) } else { Vec::new() };
        for watched in self.watches(Role::Consumer, api).into_iter().chain(provider) {
            for object in watched.store.keys() {
                let key = WorkKey { lane: lane.clone(), object };
                self.queue.add_with(key, Priority::Low, Reason::Listed);
            }
        }
    }

    /// Bindings may have something new to say.
    pub fn notify(&self) {
        self.notifier.notify();
    }

    /// How many objects of an API are not synced because the provider has others of their names; none if that is not known yet.
    pub fn conflicts(&self, api: &str, namespace: Option<&str>) -> Option<usize> {
        let Some(api) = self.wanted().get(api).cloned() else { return Some(0) };
        let is_marked = |object: &Object| object.annotation(CONFLICT_ANNOTATION).is_some();
        let watches = self.watches(Role::Consumer, &api);
        if !watches.iter().all(|watched| watched.is_known()) {
            return None;
        }
        let objects = watches.iter().flat_map(|watched| watched.store.objects());
        Some(objects.filter(|object| is_in(object, namespace) && is_marked(object)).count())
    }

    /// Whether all related objects of a resource were decided about, as far as they are known. Otherwise it is noted that somebody waits for that.
    pub fn is_decided(&self, plural: &str) -> bool {
        let is_known = self.watches.all().iter().all(|watched| watched.is_known());
        let is_decided = is_known && !self.is_busy(plural);
        if !is_decided {
            self.awaited.store(true, Ordering::SeqCst);
        }
        is_decided
    }

    /// Whether an object of an API is being decided about, or waits for that.
    pub fn is_busy(&self, api: &str) -> bool {
        self.queue.running(api) > 0 || self.queue.longest(usize::MAX).iter().any(|(lane, _)| **lane == *api)
    }

    /// An object was decided about. Whoever waits for the last one is woken.
    pub fn decided(&self, key: &WorkKey) {
        let is_related = RESOURCES.iter().any(|(plural, _)| **plural == *key.lane);
        if is_related && self.awaited.swap(false, Ordering::SeqCst) && self.is_decided(&key.lane) {
            self.notifier.notify();
        }
    }

    /// What still holds objects of an API that nobody keeps in a scope; none if they are all let go.
    pub fn held(&self, name: &str, namespace: Option<&str>) -> Option<String> {
        let Some(api) = self.wanted().get(name).cloned() else { return Some(format!("{name} is not watched yet")) };
        let mut held = Vec::new();
        for watched in self.watches(Role::Consumer, &api) {
            // Without the CRD there are no objects.
            if watched.store.outage().is_some_and(|outage| outage.not_served) {
                continue;
            }
            if let Some(why) = watched.unread() {
                return Some(why);
            }
            held.extend(watched.store.objects().into_iter().filter(|object| {
                let kept = matches!(api.coverage(namespace_of(object)), Coverage::Keep { .. });
                is_in(object, namespace) && !kept && has_finalizer(&WORDS, &object.value())
            }));
        }
        if held.is_empty() {
            return None;
        }
        let lane = ClusterName::new(name).ok()?;
        let mut problems = self.ledger.problems(|key| key.lane == lane).into_values();
        let own = problems.next().map(|problem| format!(" ({})", problem.words));
        Some(format!(
            "{} object(s) of {name} wait for their copies to be deleted{}",
            held.len(),
            own.unwrap_or_default()
        ))
    }

    /// What is wrong with objects of an API.
    pub fn problems_of(&self, api: &str) -> BTreeMap<WorkKey, Problem> {
        self.ledger.problems(|key| &*key.lane == api)
    }

    /// The objects of an API that something else writes or deletes as soon as we have written them.
    pub fn contested(&self, api: &str, namespace: Option<&str>) -> Vec<String> {
        let all = self.problems_of(api).into_iter();
        let own = all.filter(|(key, it)| {
            it.is_contested && namespace.is_none_or(|own| key.object.namespace.as_deref() == Some(own))
        });
        own.map(|(_, it)| it.words).collect()
    }
}

fn ids(api: &WantedApi) -> impl Iterator<Item = WatchId> {
    let resource = resource(&api.kind);
    let id = move |(namespace, role)| WatchId { role, resource: resource.clone(), namespace };
    api.namespaces().into_iter().flat_map(|it| [(it.clone(), Role::Consumer), (it, Role::Provider)]).map(id)
}

fn namespace_of(object: &Object) -> Option<&str> {
    (!object.namespace.is_empty()).then_some(&*object.namespace)
}

fn is_in(object: &Object, namespace: Option<&str>) -> bool {
    namespace.is_none_or(|namespace| &*object.namespace == namespace)
}
