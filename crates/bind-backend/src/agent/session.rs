//! One provider's cluster: what there is, and who looks at what.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Weak};

use carrick_bind_api::kinds::{
    API_SERVICE_EXPORT, API_SERVICE_EXPORT_REQUEST, API_SERVICE_EXPORT_TEMPLATE, API_SERVICE_NAMESPACE,
    BINDABLE_RESOURCES_REQUEST, BOUND_SCHEMA, CLUSTER_BINDING,
};
use carrick_bind_api::names::{BINDER, EXPORTED_LABEL, KUBECONFIG_KEY};
use carrick_client::watch::WatchOptions;
use carrick_client::{Client, Object, Resource};
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::cache::{Cache, Listener};
use super::resources;
use super::work::{Key, Work};
use crate::decide::objects::{Contract, NamespaceFacts};
use crate::decide::offers::Offers;
use crate::decide::terms::Terms;

/// So many things are looked at at the same time.
const AT_ONCE: usize = 16;

/// Where schemas come from that may be exported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchemaSource {
    /// CustomResourceDefinitions.
    Crds,
    /// APIResourceSchemas of kcp.
    ApiResourceSchemas,
}

/// One provider's cluster.
pub struct ClusterSession {
    pub(super) client: Client,
    pub(super) terms: Terms,
    pub(super) work: Arc<Work>,
    pub(super) namespaces: Arc<Cache>,
    pub(super) cluster_bindings: Arc<Cache>,
    pub(super) requests: Arc<Cache>,
    pub(super) export_requests: Arc<Cache>,
    pub(super) exports: Arc<Cache>,
    pub(super) schemas: Arc<Cache>,
    pub(super) service_namespaces: Arc<Cache>,
    pub(super) templates: Arc<Cache>,
    pub(super) sources: Arc<Cache>,
    pub(super) accounts: Arc<Cache>,
    pub(super) tokens: Arc<Cache>,
    pub(super) kubeconfigs: Arc<Cache>,
    pub(super) cluster_roles: Arc<Cache>,
    pub(super) cluster_role_bindings: Arc<Cache>,
    pub(super) roles: Arc<Cache>,
    pub(super) role_bindings: Arc<Cache>,
    /// What a workspace of kcp has bound.
    pub(super) bindings: Option<Arc<Cache>>,
    pub(super) index: Arc<Index>,
    /// Whether the policy stands that keeps consumers apart.
    pub(super) policy_stands: AtomicBool,
    /// Why it cannot be written.
    pub(super) policy_problem: Mutex<Option<String>>,
    /// Requests that wait for a contract, by its namespace.
    pub(super) waiting: Mutex<BTreeMap<String, BTreeSet<Key>>>,
    /// What stands in the way of contracts, by their namespaces.
    pub(super) problems: Mutex<BTreeMap<String, String>>,
}

/// Which namespaces may stand for which identity, and serve which contract. Whoever asks looks at the namespace itself.
#[derive(Default)]
pub(super) struct Index {
    identities: Mutex<BTreeMap<String, BTreeSet<String>>>,
    serving: Mutex<BTreeMap<String, BTreeSet<String>>>,
    /// The contracts that a namespace serves, so that those are told which it serves no more.
    served: Mutex<BTreeMap<String, BTreeSet<String>>>,
    /// What is offered, until it changes.
    offers: Mutex<Option<Arc<Offers>>>,
}

impl Index {
    fn note(&self, namespace: &Object) -> Vec<Key> {
        let value = namespace.value();
        let mut keys = Vec::new();
        if let Some(contract) = Contract::of(&value) {
            self.identities.lock().entry(contract.identity).or_default().insert(contract.namespace.clone());
            keys.push(Key::Contract(contract.namespace));
        }
        let facts = NamespaceFacts::of(&value);
        let now: BTreeSet<String> = facts.users().map(|(contract, _)| contract.clone()).collect();
        for contract in &now {
            self.serving.lock().entry(contract.clone()).or_default().insert(facts.name.clone());
        }
        let before = if now.is_empty() {
            self.served.lock().remove(&facts.name)
        } else {
            self.served.lock().insert(facts.name, now.clone())
        };
        keys.extend(before.unwrap_or_default().union(&now).cloned().map(Key::Contract));
        keys
    }

    pub(super) fn of_identity(&self, identity: &str) -> Vec<String> {
        self.identities.lock().get(identity).into_iter().flatten().cloned().collect()
    }

    pub(super) fn serving(&self, contract: &str) -> Vec<String> {
        self.serving.lock().get(contract).into_iter().flatten().cloned().collect()
    }
}

impl ClusterSession {
    /// Begins to watch a cluster.
    pub fn start(client: &Client, terms: Terms, source: SchemaSource, stop: &CancellationToken) -> Arc<Self> {
        Arc::new_cyclic(|this: &Weak<Self>| {
            let (work, index) = (Arc::new(Work::default()), Arc::new(Index::default()));
            let follow = |resource: Resource, options: WatchOptions, keys: KeysOf| {
                let (work, index, this) = (Arc::clone(&work), Arc::clone(&index), this.clone());
                let listener: Listener = Arc::new(move |object: Option<&Object>| {
                    if let Some(object) = object {
                        for key in keys(object, &index, &this) {
                            work.mark(key);
                        }
                    }
                    work.ring();
                });
                Cache::start(client, resource, options, listener, stop)
            };
            let all = WatchOptions::default;
            let named = |name: &str| WatchOptions::fields(format!("metadata.name={name}"));
            let sources = match source {
                SchemaSource::Crds => resources::crds(),
                SchemaSource::ApiResourceSchemas => resources::schemas(),
            };
            let exported = WatchOptions::labels(format!("{EXPORTED_LABEL}=true"));
            work.mark(Key::Cluster);
            Self {
                namespaces: follow(resources::namespaces(), all(), |object, index, _| index.note(object)),
                cluster_bindings: follow(resources::of(CLUSTER_BINDING), all(), of_contract),
                requests: follow(resources::of(BINDABLE_RESOURCES_REQUEST), all(), |object, _, _| {
                    vec![Key::Request(object.namespace.to_string(), object.name.to_string())]
                }),
                export_requests: follow(resources::of(API_SERVICE_EXPORT_REQUEST), all(), of_contract),
                exports: follow(resources::of(API_SERVICE_EXPORT), all(), of_contract),
                schemas: follow(resources::of(BOUND_SCHEMA), all(), of_contract),
                service_namespaces: follow(resources::of(API_SERVICE_NAMESPACE), all(), of_contract),
                templates: follow(resources::of(API_SERVICE_EXPORT_TEMPLATE), all(), of_catalogue),
                sources: follow(sources, exported, of_offers),
                accounts: follow(resources::accounts(), named(BINDER), of_contract),
                tokens: follow(resources::secrets(), named(BINDER), of_contract),
                kubeconfigs: follow(resources::secrets(), named(KUBECONFIG_KEY), of_contract),
                cluster_roles: follow(resources::cluster_roles(), all(), of_owner),
                cluster_role_bindings: follow(resources::cluster_role_bindings(), all(), of_owner),
                roles: follow(resources::roles(), all(), of_served),
                role_bindings: follow(resources::role_bindings(), all(), of_served),
                bindings: terms.workspace.is_some().then(|| follow(resources::bindings(), all(), of_catalogue)),
                policy_stands: AtomicBool::new(false),
                policy_problem: Mutex::default(),
                waiting: Mutex::default(),
                problems: Mutex::default(),
                client: client.clone(),
                terms,
                work: Arc::clone(&work),
                index: Arc::clone(&index),
            }
        })
    }

    fn caches(&self) -> impl Iterator<Item = &Arc<Cache>> {
        let all = [
            &self.namespaces,
            &self.cluster_bindings,
            &self.requests,
            &self.export_requests,
            &self.exports,
            &self.schemas,
            &self.service_namespaces,
            &self.templates,
            &self.sources,
            &self.accounts,
            &self.tokens,
            &self.kubeconfigs,
            &self.cluster_roles,
            &self.cluster_role_bindings,
            &self.roles,
            &self.role_bindings,
        ];
        all.into_iter().chain(&self.bindings)
    }

    /// Whether everything was read once.
    pub fn has_synced(&self) -> bool {
        self.caches().all(|cache| cache.has_synced())
    }

    /// Why nothing is done in this cluster.
    pub fn problem(&self) -> Option<String> {
        let problems: BTreeSet<String> = self.caches().filter_map(|cache| cache.problem()).collect();
        (!problems.is_empty()).then(|| problems.into_iter().collect::<Vec<_>>().join("\n"))
    }

    /// Whether what is not seen is certain not to exist: nothing is deleted otherwise.
    pub(super) fn is_certain(&self) -> bool {
        self.caches().all(|cache| cache.is_certain())
    }

    /// What is offered.
    pub(super) fn offers(&self) -> Arc<Offers> {
        let mut offers = self.index.offers.lock();
        let read = || Arc::new(Offers::new(self.sources.objects().iter().filter_map(|object| object.read().ok())));
        Arc::clone(offers.get_or_insert_with(read))
    }

    /// The contracts that have asked for something.
    pub(super) fn asking(&self) -> Vec<Key> {
        let asking = [&self.export_requests, &self.exports].into_iter().flat_map(|cache| cache.objects());
        let names: BTreeSet<_> = asking.map(|object| object.namespace.to_string()).collect();
        names.into_iter().map(Key::Contract).collect()
    }

    /// Looks at everything that changes, until told to stop.
    pub async fn run(self: Arc<Self>, stop: CancellationToken) {
        let mut running = FuturesUnordered::new();
        while !stop.is_cancelled() {
            if self.has_synced() {
                while running.len() < AT_ONCE
                    && let Some(key) = self.work.take()
                {
                    let session = Arc::clone(&self);
                    running.push(async move {
                        let outcome = session.look(&key).await;
                        session.work.done(key, outcome);
                    });
                }
            }
            let due = self.work.next().filter(|_| self.has_synced() && running.len() < AT_ONCE);
            let rest = async {
                match due {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = stop.cancelled() => {}
                () = self.work.heard() => {}
                Some(()) = running.next(), if !running.is_empty() => {}
                () = rest => {}
            }
        }
        // What was begun is finished: each is a few writes.
        while running.next().await.is_some() {}
    }
}

/// What has to be looked at because of an object.
type KeysOf = fn(&Object, &Index, &Weak<ClusterSession>) -> Vec<Key>;

fn of_contract(object: &Object, _: &Index, _: &Weak<ClusterSession>) -> Vec<Key> {
    vec![Key::Contract(object.namespace.to_string())]
}

fn of_catalogue(_: &Object, _: &Index, _: &Weak<ClusterSession>) -> Vec<Key> {
    vec![Key::Cluster]
}

/// Roles of whole clusters belong to the namespace of a contract.
fn of_owner(object: &Object, _: &Index, _: &Weak<ClusterSession>) -> Vec<Key> {
    if !object.name.starts_with(BINDER) {
        return Vec::new();
    }
    let value = object.value();
    let owners = value["metadata"]["ownerReferences"].as_array();
    let owners = owners.into_iter().flatten().filter(|owner| owner["kind"] == "Namespace");
    owners.filter_map(|owner| Some(Key::Contract(owner["name"].as_str()?.to_owned()))).collect()
}

/// Roles in namespaces belong to the contract that the namespace is, or serves.
fn of_served(object: &Object, _: &Index, session: &Weak<ClusterSession>) -> Vec<Key> {
    if !object.name.starts_with(BINDER) {
        return Vec::new();
    }
    let mut keys = vec![Key::Contract(object.namespace.to_string())];
    let namespace = session.upgrade().and_then(|session| session.namespaces.get("", &object.namespace));
    let facts = namespace.map(|it| NamespaceFacts::of(&it));
    keys.extend(facts.iter().flat_map(NamespaceFacts::users).map(|(contract, _)| Key::Contract(contract.clone())));
    keys
}

/// What is offered concerns all who have asked for something.
fn of_offers(_: &Object, index: &Index, session: &Weak<ClusterSession>) -> Vec<Key> {
    *index.offers.lock() = None;
    let Some(session) = session.upgrade() else { return Vec::new() };
    session.asking()
}
