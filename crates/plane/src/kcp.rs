//! What makes the plane kcp: workspaces, exports and bindings, virtual workspaces.
//!
//! ```text
//!   request ─▶ resolve    path or name → logical cluster          (data)
//!           ─▶ authorize  access to the workspace, policies, RBAC (authorize)
//!           ─▶ apis       system kinds and bound kinds            (kinds, facts, apis)
//!           ─▶ admit      checks and completes writes             (admit, export, types)
//!   /services/apiexport/…              ─▶ view: exported and claimed objects of all consumers
//!   /services/apiresourceschema/…      ─▶ schemas: the schemas behind a workspace's bindings
//!   /services/initializingworkspaces/… ─▶ hooks: workspaces that wait for an initializer or terminator
//!
//!   change log ─▶ controller ─▶ workspace ─▶ cluster      scheduling, initialization, deletion
//!                            ─▶ export ─▶ slice           identity, endpoints
//!                            ─▶ binding (names, claim)    bound APIs, permission claims, clean-up
//! ```
//!
//! `shards` says which endpoint serves which clusters; all share one store.
//! Controllers read and write kcp's kinds as the types of `carrick-kcp`. What every request needs is read from the stored JSON
//! (`object`), because a typed copy would cost more than the rest of the request; what it needs of large objects is read once per change
//! (`derived`: bindings in `bound`, schemas in `facts`). The store is the only state, so a restart continues
//! where it stopped.

mod admit;
mod apis;
mod authorize;
mod binding;
mod bootstrap;
mod bound;
mod claim;
mod cluster;
mod controller;
mod data;
mod derived;
mod export;
mod facts;
mod home;
mod hooks;
mod identity;
mod kinds;
mod names;
mod object;
mod schemas;
pub(crate) mod shards;
mod stored;
mod subject;
mod types;
mod view;
mod workspace;

use std::sync::Arc;

use carrick_kcp::hash::Claim as ClaimKey;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::auth::decision::Decision;
use crate::auth::rbac::Rights;
use crate::caller::Caller;
use crate::extension::{Extension, Kinds, Review, VirtualView};
use crate::request::Attributes;
use crate::resource::Resource;
use crate::status::Status;
use crate::store::Store;
use shards::Shards;
use subject::Subject;

/// The kcp half of a plane.
pub struct Kcp {
    data: data::Data,
    apis: Arc<apis::Apis>,
    views: Arc<view::Views>,
}

impl Kcp {
    /// kcp over a store; `url` is the server's address, for the URLs in objects.
    pub fn new(store: Arc<Store>, url: &str, shards: Arc<Shards>) -> Self {
        Self { data: data::Data::new(store, url, shards), apis: Arc::new(apis::Apis::new()), views: Arc::default() }
    }
}

impl Extension for Kcp {
    fn resolve(&self, segment: &str) -> Option<Arc<str>> {
        self.data.resolve(segment)
    }

    fn resources(&self, cluster: &str) -> Arc<Vec<Arc<Resource>>> {
        self.apis.of_cluster(&self.data, cluster)
    }

    fn identified(&self, group: &str, plural: &str, identity: &str) -> Option<Arc<Resource>> {
        let claim = ClaimKey { group, resource: plural, identity_hash: identity };
        self.views.identified(&self.data, &self.apis, &Subject::from(claim))
    }

    fn admit(&self, review: &mut Review<'_>) -> Result<(), Status> {
        admit::review(&self.data, review)
    }

    fn admission_source(&self, cluster: &str, resource: &Resource) -> Arc<str> {
        self.data.exporter(cluster, &resource.group, &resource.plural).unwrap_or_else(|| cluster.into())
    }

    fn unstored(&self, caller: &Caller, cluster: &str, attributes: &Attributes) -> Result<Option<Value>, Status> {
        if home::is_asked_for(cluster, attributes) { home::of(&self.data, caller).map(Some) } else { Ok(None) }
    }

    fn decide(&self, caller: &Caller, cluster: &str, attributes: &Attributes) -> Decision {
        authorize::decide(&self.data, caller, cluster, attributes)
    }

    fn rights<'a>(&self, caller: &'a Caller, cluster: &'a str) -> Rights<'a> {
        authorize::rights(caller, cluster)
    }

    fn confine(&self, caller: &mut Caller, cluster: &str) {
        identity::limit(caller, cluster);
    }

    fn virtual_workspace(&self, kinds: Kinds<'_>, caller: &Caller, path: &str) -> Result<Option<VirtualView>, Status> {
        if let Some(view) = schemas::open(&self.data, kinds, path) {
            return Ok(Some(view));
        }
        match hooks::open(&self.data, kinds, caller, path)? {
            Some(view) => Ok(Some(view)),
            None => view::open(&self.data, &self.apis, &self.views, kinds, caller, path),
        }
    }

    fn shard_of(&self, cluster: &str) -> usize {
        self.data.shards.of(&self.data.store, cluster)
    }

    fn shard_at(&self, cluster: &str, revision: u64) -> usize {
        self.data.shards.at(&self.data.store, cluster, revision)
    }

    fn is_up(&self, shard: usize) -> bool {
        self.data.shards.is_up(shard)
    }

    fn start(&self, stop: CancellationToken) {
        bootstrap::run(&self.data);
        let mut controller = controller::Controller::new(self.data.clone(), self.apis.clone());
        controller.settle();
        tokio::spawn(controller.run(stop));
    }
}

#[cfg(test)]
mod tests;
