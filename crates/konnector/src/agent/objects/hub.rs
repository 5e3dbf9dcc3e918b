//! What all tasks of one contract share.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use carrick_bind_api::copies::{annotation, uid};
use carrick_bind_api::mapping::{ObjectKey, ServiceNamespaces};
use carrick_bind_api::names::CONSUMER_UID_ANNOTATION;
use carrick_bind_api::v1alpha2::ApiServiceNamespace;
use carrick_client::{Client, Object, Resource};
use carrick_multicluster::{ClusterName, Queue, QueueConfig};
use carrick_sync::Role;
use carrick_sync::executor::Allowance;
use parking_lot::{Mutex, RwLock};
use serde_json::Value;
use tokio::sync::{Notify, OnceCell};

use super::consumers::{Consumers, Keys};
use super::key::{Item, WorkKey};
use super::layout::{Layout, consumer_namespaces, service_namespaces};
use super::ledger::Ledger;
use super::observer::WriteObserver;
use super::outcome::Trouble;
use super::wanted::Wanted;
use super::watched::{WatchId, Watched, Watches};
use super::writing::Tools;
use super::{PER_LANE, PER_WORKSPACE};
use crate::decide::tenant_namespaces::tenant_namespaces;
use crate::decide::tenants::{FlatKeys, share_of};

/// The longest pause before something that failed is tried again.
const LONGEST_RETRY: Duration = Duration::from_mins(1);

/// A namespace that a claimed object needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PendingNamespace {
    /// The name of its APIServiceNamespace.
    pub flat: String,
    /// Logical cluster and namespace, if there are many workspaces.
    pub tenant: Option<(String, String)>,
}

/// What all tasks of one contract share.
pub(super) struct Hub {
    /// Where consumers' objects are.
    pub consumers: Consumers,
    /// How they are told apart, if they are in many workspaces.
    pub flat: Option<FlatKeys>,
    pub provider: Client,
    pub contract: String,
    pub tools: Tools,
    pub queue: Queue<WorkKey>,
    /// Namespaces that the provider wants and does not get.
    pub refused: Mutex<Vec<String>>,
    /// Namespaces that claimed objects need, by object.
    pub pending: Mutex<BTreeMap<WorkKey, PendingNamespace>>,
    layout: RwLock<Arc<Layout>>,
    assigned: RwLock<Arc<ServiceNamespaces>>,
    /// Logical clusters and namespaces by the names of their APIServiceNamespaces, if there are many workspaces.
    tenants: RwLock<Arc<BTreeMap<String, (String, String)>>>,
    watches: Watches,
    /// What is remembered about each piece of work.
    pub ledger: Ledger<WorkKey>,
    contract_uid: OnceCell<String>,
    relayout: Notify,
    news: Notify,
}

impl Hub {
    pub fn new(
        consumers: Consumers,
        provider: Client,
        contract: String,
        observer: Arc<dyn WriteObserver>,
        writes: Allowance,
    ) -> Self {
        let per_cluster = if consumers.workspaces().is_some() { PER_WORKSPACE } else { PER_LANE };
        let config = QueueConfig { longest_retry: LONGEST_RETRY, per_cluster, ..QueueConfig::default() };
        Self {
            flat: consumers.workspaces().map(|_| FlatKeys::new(&contract)),
            consumers,
            provider,
            contract,
            tools: Tools::new(observer, writes),
            queue: Queue::new(config),
            refused: Mutex::default(),
            pending: Mutex::default(),
            layout: RwLock::default(),
            assigned: RwLock::default(),
            tenants: RwLock::default(),
            watches: Watches::default(),
            ledger: Ledger::default(),
            contract_uid: OnceCell::new(),
            relayout: Notify::new(),
            news: Notify::new(),
        }
    }

    /// What is synced.
    pub fn layout(&self) -> Arc<Layout> {
        Arc::clone(&self.layout.read())
    }

    /// Which namespaces are assigned.
    pub fn assigned(&self) -> Arc<ServiceNamespaces> {
        Arc::clone(&self.assigned.read())
    }

    /// A watch, if it is needed.
    pub fn watched(&self, id: &WatchId) -> Option<Arc<Watched>> {
        self.watches.get(id)
    }

    /// A watch that has told all there is.
    pub fn synced(&self, id: &WatchId) -> Option<Arc<Watched>> {
        self.watched(id).filter(|watched| watched.store.is_synced())
    }

    /// The APIServiceNamespaces of the contract, once they are known.
    pub fn service_namespaces(&self) -> Option<Vec<ApiServiceNamespace>> {
        let watched = self.synced(&service_namespaces(&self.contract))?;
        let decode = |object: &Object| object.decode::<ApiServiceNamespace>().ok();
        Some(watched.store.objects().iter().filter_map(decode).collect())
    }

    /// Follows what is wanted and what is assigned, and returns the watches to be started.
    pub fn lay_out(&self, wanted: &Wanted) -> Vec<Arc<Watched>> {
        let all = self.service_namespaces();
        if let (Some(all), Some(flat)) = (&all, &self.flat) {
            *self.tenants.write() = Arc::new(tenant_namespaces(all, flat));
        }
        let assigned = all.map(|all| Arc::new(ServiceNamespaces::new(&all)));
        let assigned = assigned.unwrap_or_else(|| self.assigned());
        let mut layout = Layout::new(wanted);
        let needed = layout.watches(&self.contract, &assigned);
        let started = self.watches.follow(needed, |id| self.keys(id));
        let before = self.layout();
        // What has not changed keeps what it knows.
        for (lane, kind) in &mut layout.claimed {
            if let Some(known) = before.claimed.get(lane).filter(|known| *known == kind) {
                *kind = Arc::clone(known);
            }
        }
        // Before anything is decided by it, and again afterwards, for what has changed in between.
        layout.claimed.values().for_each(|kind| self.read_references(kind, &assigned));
        let layout = Arc::new(layout);
        *self.layout.write() = Arc::clone(&layout);
        let assigned_before = std::mem::replace(&mut *self.assigned.write(), Arc::clone(&assigned));
        self.forget_gone(&layout);
        self.follow(&before, &layout, &assigned_before, &assigned);
        self.tell();
        started
    }

    /// How the objects of a watch are told apart.
    fn keys(&self, id: &WatchId) -> Keys {
        match &self.flat {
            Some(flat) if *id == consumer_namespaces() => Keys::FlatNamespaces(flat.clone()),
            Some(flat) if id.role == Role::Consumer => Keys::Flat(flat.clone()),
            _ => Keys::Plain,
        }
    }

    /// A piece of work in a lane.
    pub fn work(&self, lane: &ClusterName, item: Item) -> WorkKey {
        let share = match (&item, &self.flat) {
            (Item::Object(key) | Item::Claimed(key), Some(_)) => ClusterName::new(share_of(key)).ok(),
            _ => None,
        };
        WorkKey { lane: lane.clone(), turn: share.unwrap_or_else(|| lane.clone()), item }
    }

    /// What stands for the workspace of a key; nothing if there is only one.
    pub fn share<'k>(&self, key: &'k ObjectKey) -> &'k str {
        if self.flat.is_some() { share_of(key) } else { "" }
    }

    /// Logical cluster and namespace that an APIServiceNamespace stands for.
    pub fn tenant_of_namespace(&self, flat: &str) -> Option<(String, String)> {
        self.tenants.read().get(flat).cloned()
    }

    /// Forgets everything about lanes that are gone.
    fn forget_gone(&self, layout: &Layout) {
        let lives = |key: &WorkKey| match &key.item {
            Item::Object(_) => layout.apis.contains_key(&key.lane),
            Item::Claimed(_) => layout.claimed.contains_key(&key.lane),
            Item::Namespaces => true,
        };
        self.ledger.retain(lives);
        self.pending.lock().retain(|key, _| lives(key));
    }

    /// Asks for another look at what is wanted and assigned.
    pub fn lay_out_anew(&self) {
        self.relayout.notify_one();
    }

    /// Waits until somebody asks for another look.
    pub async fn laid_out_anew(&self) {
        self.relayout.notified().await;
    }

    /// There is something to tell.
    pub fn tell(&self) {
        self.news.notify_one();
    }

    /// Waits until there is something to tell.
    pub async fn news(&self) {
        self.news.notified().await;
    }

    /// Whether an object of the provider has the mark of a copy whose source is another one than this: somebody has derived it from that copy.
    pub fn is_derived(&self, copy: &Value, source: Option<&Value>) -> bool {
        let Some(named) = annotation(copy, CONSUMER_UID_ANNOTATION) else { return false };
        if source.is_some_and(|source| uid(source) == named) {
            return false;
        }
        let layout = self.layout();
        let apis = layout.apis.values().map(|api| &api.consumer);
        let mut watches = apis.chain(layout.claimed.values().map(|kind| &kind.consumer));
        watches.any(|id| self.watched(id).is_some_and(|watched| watched.store.has_uid(named)))
    }

    /// We have written an object.
    pub fn wrote(&self, id: &WatchId, object: &Value) {
        if let Some(watched) = self.watched(id) {
            watched.store.wrote(object);
        }
    }

    /// The uid of the contract namespace, which owns cluster-scoped copies. It never changes.
    pub async fn contract_uid(&self) -> Result<&str, Trouble> {
        let read = async || {
            let namespaces = Resource::cluster_wide("", "v1", "Namespace", "namespaces");
            let found = self.provider.get(&namespaces, None, &self.contract).await;
            let found = found.map_err(|error| Trouble::request(&error))?;
            let uid = found.as_ref().and_then(|found| found["metadata"]["uid"].as_str());
            uid.map(str::to_owned).ok_or_else(|| {
                Trouble::failed(format!("namespace {} of the contract does not exist on the provider", self.contract))
            })
        };
        self.contract_uid.get_or_try_init(read).await.map(String::as_str)
    }

    /// Ends all work.
    pub fn close(&self) {
        self.queue.close();
        self.watches.end();
    }
}
