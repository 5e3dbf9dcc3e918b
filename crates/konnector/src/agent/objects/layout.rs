//! The layout: which APIs and claimed kinds are synced, and what has to be watched for that.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use carrick_bind_api::claims::{Claim, Guarded, NamedObjects, SelectedBy};
use carrick_bind_api::existing::Existing;
use carrick_bind_api::kinds::{API_SERVICE_NAMESPACE, GROUP, VERSION};
use carrick_bind_api::mapping::{KeyMapping, ObjectKey, ProviderWatch, ServiceNamespaces};
use carrick_client::Resource;
use carrick_multicluster::ClusterName;
use carrick_sync::{ApiKind, Role};
use parking_lot::Mutex;
use serde_json::Value;

use super::wanted::{Wanted, WantedBinding};
use super::watched::WatchId;
use crate::decide::binding::BoundApi;
use crate::decide::objects::{ApiKinds, SyncMode};

/// An API whose objects are synced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Api {
    /// The binding that wants it.
    pub binding: String,
    /// Its lane.
    pub lane: ClusterName,
    /// Its kinds.
    pub kinds: ApiKinds,
    /// Whether there is a status to be carried back.
    pub has_status: bool,
    /// Where copies are.
    pub mapping: KeyMapping,
    /// What becomes of its objects.
    pub mode: SyncMode,
    /// What becomes of those that the provider had before.
    pub existing: Existing,
    /// The watch of its sources.
    pub consumer: WatchId,
    /// Where copies are watched.
    copies: CopyWatch,
}

/// A claimed kind, with the claims of all bindings.
#[derive(Clone, Debug)]
pub(super) struct ClaimedKind {
    /// Its lane.
    pub lane: ClusterName,
    /// The kind.
    pub kind: Arc<ApiKind>,
    /// The watch of the consumer's objects.
    pub consumer: WatchId,
    /// Where the provider's objects are watched.
    provider: CopyWatch,
    /// The claims.
    pub claims: Vec<BoundClaim>,
}

/// What is named in each workspace.
pub(super) type NamedByShare = BTreeMap<String, NamedObjects>;

/// A claim of a binding.
#[derive(Clone, Debug)]
pub(super) struct BoundClaim {
    /// The binding.
    pub binding: String,
    /// What becomes of the objects that it selects.
    pub mode: SyncMode,
    /// The claim.
    pub claim: Claim,
    /// The watch for each of its references.
    pub references: Vec<WatchId>,
    /// What its references name, by what stands for the workspace; an empty text if there is only one.
    pub named: Arc<Mutex<NamedByShare>>,
}

impl BoundClaim {
    /// Whether an object is claimed that has this key on the consumer, in the workspace that the share stands for, and by what.
    pub fn selects(&self, share: &str, key: &ObjectKey, object: &Value) -> Option<SelectedBy> {
        let (named, nothing) = (self.named.lock(), NamedObjects::default());
        self.claim.selects_as(key, object, named.get(share).unwrap_or(&nothing))
    }

    /// Whether an object of the consumer names this key together with its namespace.
    pub fn names(&self, share: &str, key: &ObjectKey) -> bool {
        self.named.lock().get(share).is_some_and(|named| named.contains_exactly(key))
    }
}

impl PartialEq for BoundClaim {
    fn eq(&self, other: &Self) -> bool {
        (&self.binding, self.mode, &self.claim) == (&other.binding, other.mode, &other.claim)
    }
}

impl PartialEq for ClaimedKind {
    fn eq(&self, other: &Self) -> bool {
        self.provider == other.provider && self.claims == other.claims
    }
}

/// Where objects of the provider are watched.
#[derive(Clone, Debug, PartialEq, Eq)]
struct CopyWatch {
    resource: Resource,
    scope: ProviderWatch,
}

impl CopyWatch {
    /// The watch that tells about an object.
    fn of(&self, key: &ObjectKey) -> WatchId {
        let namespace = match &self.scope {
            ProviderWatch::Everywhere => None,
            ProviderWatch::Namespace(namespace) => Some(namespace.clone()),
            ProviderWatch::ServiceNamespaces => key.namespace.clone(),
        };
        WatchId { role: Role::Provider, resource: self.resource.clone(), namespace }
    }

    fn all(&self, namespaces: &ServiceNamespaces) -> Vec<WatchId> {
        let watch = |namespace| WatchId { role: Role::Provider, resource: self.resource.clone(), namespace };
        match &self.scope {
            ProviderWatch::Everywhere => vec![watch(None)],
            ProviderWatch::Namespace(namespace) => vec![watch(Some(namespace.clone()))],
            ProviderWatch::ServiceNamespaces => {
                namespaces.pairs().map(|(_, assigned)| watch(Some(assigned.to_owned()))).collect()
            }
        }
    }

    fn tells(&self, id: &WatchId) -> bool {
        let fits = match &self.scope {
            ProviderWatch::Everywhere => id.namespace.is_none(),
            ProviderWatch::Namespace(namespace) => id.namespace.as_ref() == Some(namespace),
            ProviderWatch::ServiceNamespaces => id.namespace.is_some(),
        };
        fits && id.role == Role::Provider && id.resource == self.resource
    }
}

impl Api {
    fn new(name: &str, bound: &BoundApi, binding: &WantedBinding) -> Option<Self> {
        let api = &bound.api;
        let kind = |namespaced| {
            Arc::new(ApiKind {
                group: api.group.clone(),
                version: api.version.clone(),
                kind: api.kind.clone(),
                plural: api.resource.clone(),
                namespaced,
            })
        };
        let kinds =
            ApiKinds { consumer: kind(api.is_namespaced), provider: kind(bound.mapping.is_namespaced_on_provider()) };
        Some(Self {
            binding: name.to_owned(),
            lane: lane(&api.resource, &api.group)?,
            has_status: api.has_status,
            mode: binding.mode,
            existing: binding.existing,
            consumer: WatchId { role: Role::Consumer, resource: resource(&kinds.consumer), namespace: None },
            copies: CopyWatch {
                resource: resource(&kinds.provider),
                scope: bound.mapping.provider_watch(&binding.informer_scope),
            },
            mapping: bound.mapping.clone(),
            kinds,
        })
    }

    /// The same API, whose objects are released.
    pub fn released(&self) -> Self {
        Self { mode: SyncMode::Release, ..self.clone() }
    }

    /// The watch that tells about a copy.
    pub fn copy_watch(&self, key: &ObjectKey) -> WatchId {
        self.copies.of(key)
    }

    /// All watches of copies.
    pub fn copy_watches(&self, namespaces: &ServiceNamespaces) -> Vec<WatchId> {
        self.copies.all(namespaces)
    }

    /// Whether a watch tells about copies.
    pub fn is_told_by(&self, id: &WatchId) -> bool {
        self.copies.tells(id)
    }
}

impl ClaimedKind {
    /// The watch that tells about an object of the provider.
    pub fn provider_watch(&self, key: &ObjectKey) -> WatchId {
        self.provider.of(key)
    }

    /// All watches of the provider's objects.
    pub fn provider_watches(&self, namespaces: &ServiceNamespaces) -> Vec<WatchId> {
        self.provider.all(namespaces)
    }

    /// Whether a watch tells about the provider's objects.
    pub fn is_told_by(&self, id: &WatchId) -> bool {
        self.provider.tells(id)
    }

    /// All watches of things that name the consumer's objects.
    pub fn references(&self) -> impl Iterator<Item = &WatchId> {
        self.claims.iter().flat_map(|claim| &claim.references)
    }
}

/// What is synced, by lane.
#[derive(Clone, Debug, Default)]
pub(super) struct Layout {
    /// The APIs.
    pub apis: BTreeMap<ClusterName, Arc<Api>>,
    /// The claimed kinds.
    pub claimed: BTreeMap<ClusterName, Arc<ClaimedKind>>,
    /// The exports that want something, by name, each with its uid.
    pub exports: BTreeMap<String, String>,
    /// The bindings, and what becomes of them.
    pub bindings: BTreeMap<String, SyncMode>,
    /// What goes to no provider.
    pub guarded: Guarded,
}

impl Layout {
    /// The layout of what is wanted.
    pub fn new(wanted: &Wanted) -> Self {
        let mut layout = Self { guarded: wanted.guarded.clone(), ..Self::default() };
        for (name, binding) in &wanted.bindings {
            layout.bindings.insert(name.clone(), binding.mode);
            if binding.mode == SyncMode::Keep && !binding.export_uid.is_empty() {
                layout.exports.insert(name.clone(), binding.export_uid.clone());
            }
            for bound in &binding.sync.apis {
                if let Some(api) = Api::new(name, bound, binding) {
                    layout.apis.entry(api.lane.clone()).or_insert_with(|| Arc::new(api));
                }
            }
        }
        let mut claimed: BTreeMap<ClusterName, ClaimedKind> = BTreeMap::new();
        for (name, binding) in &wanted.bindings {
            for claim in &binding.sync.claims {
                let Some(kind) = claimed_kind(claim, &mut claimed) else { continue };
                kind.claims.push(layout.bound_claim(name, claim, binding.mode));
            }
        }
        layout.claimed = claimed.into_iter().map(|(lane, kind)| (lane, Arc::new(kind))).collect();
        layout
    }

    fn bound_claim(&self, binding: &str, claim: &Claim, mode: SyncMode) -> BoundClaim {
        let references = claim.references().iter().map(|reference| {
            let (group, version, plural) = (reference.group(), reference.version(), reference.resource());
            let synced = self.apis.values().map(|api| &api.consumer.resource);
            let mut synced =
                synced.filter(|it| &*it.group == group && &*it.plural == plural && &*it.version == version);
            // Only the path matters for a watch.
            let other = || Resource::namespaced(group, version, plural, plural);
            let resource = synced.next().cloned().unwrap_or_else(other);
            WatchId { role: Role::Consumer, resource, namespace: None }
        });
        let references = references.collect();
        BoundClaim { binding: binding.to_owned(), mode, claim: claim.clone(), references, named: Arc::default() }
    }

    /// Every watch that is needed.
    pub fn watches(&self, contract: &str, namespaces: &ServiceNamespaces) -> HashSet<WatchId> {
        let mut all = HashSet::from([consumer_namespaces(), service_namespaces(contract)]);
        for binding in self.bindings.keys() {
            all.extend(self.watches_of(binding, namespaces));
        }
        all
    }

    /// Every watch that a binding needs.
    pub fn watches_of(&self, binding: &str, namespaces: &ServiceNamespaces) -> Vec<WatchId> {
        let mut all = Vec::new();
        for api in self.apis.values().filter(|api| api.binding == binding) {
            all.push(api.consumer.clone());
            all.extend(api.copy_watches(namespaces));
        }
        for kind in self.claimed.values() {
            let own: Vec<_> = kind.claims.iter().filter(|claim| claim.binding == binding).collect();
            if !own.is_empty() {
                all.push(kind.consumer.clone());
                all.extend(kind.provider_watches(namespaces));
                all.extend(own.into_iter().flat_map(|claim| claim.references.clone()));
            }
        }
        all
    }
}

/// The kind that a claim is about, which several claims may share.
fn claimed_kind<'a>(claim: &Claim, claimed: &'a mut BTreeMap<ClusterName, ClaimedKind>) -> Option<&'a mut ClaimedKind> {
    let api = claim.api();
    let lane = lane(api.resource, api.group)?;
    Some(claimed.entry(lane.clone()).or_insert_with(|| {
        let kind = ApiKind {
            group: api.group.to_owned(),
            version: api.version.to_owned(),
            kind: api.kind.to_owned(),
            plural: api.resource.to_owned(),
            namespaced: true,
        };
        let resource = resource(&kind);
        ClaimedKind {
            lane,
            kind: Arc::new(kind),
            consumer: WatchId { role: Role::Consumer, resource: resource.clone(), namespace: None },
            // Whatever the konnector may watch else: whoever may read all Secrets of a provider has the credentials of all its consumers.
            provider: CopyWatch { resource, scope: ProviderWatch::ServiceNamespaces },
            claims: Vec::new(),
        }
    }))
}

/// The watch of the consumer's namespaces.
pub(super) fn consumer_namespaces() -> WatchId {
    let resource = Resource::cluster_wide("", "v1", "Namespace", "namespaces");
    WatchId { role: Role::Consumer, resource, namespace: None }
}

/// The watch of the namespaces that the provider assigns.
pub(super) fn service_namespaces(contract: &str) -> WatchId {
    let kind = API_SERVICE_NAMESPACE;
    let resource = Resource::namespaced(GROUP, VERSION, kind.kind, kind.plural);
    WatchId { role: Role::Provider, resource, namespace: Some(contract.to_owned()) }
}

/// A kind as the client addresses it.
pub(super) fn resource(kind: &ApiKind) -> Resource {
    let ApiKind { group, version, kind, plural, namespaced } = kind;
    Resource { namespaced: *namespaced, ..Resource::namespaced(group, version, kind, plural) }
}

fn lane(plural: &str, group: &str) -> Option<ClusterName> {
    let name = if group.is_empty() { plural.to_owned() } else { format!("{plural}.{group}") };
    ClusterName::new(name).ok()
}
