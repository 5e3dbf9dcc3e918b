//! Where an object of a consumer is, whether it is there or not.

use carrick_bind_api::mapping::ObjectKey;
use carrick_client::Object;
use serde_json::Value;

use super::consumers::{Consumers, Place};
use super::hub::Hub;
use super::key::{Item, WorkKey};
use super::outcome::Outcome;
use super::watched::WatchId;
use crate::agent::workspaces::Workspaces;
use crate::decide::tenants::Tenant;

impl Hub {
    /// Where the object with a key is, by what is known of it or of its copy. If that cannot be told there is nothing to decide.
    pub fn place(&self, key: &ObjectKey, found: Option<&Object>, copy: Option<&Value>) -> Result<Place, Outcome> {
        self.resolve(key, found, || copy.and_then(Tenant::of_copy).or_else(|| self.tenant_by_namespace(key)))
    }

    /// Where the claimed object with a key is. What the provider has may be its own, so its namespace says whom it is for.
    pub fn place_of_claimed(&self, key: &ObjectKey, found: Option<&Object>) -> Result<Place, Outcome> {
        self.resolve(key, found, || self.tenant_by_namespace(key))
    }

    /// Whether a watch has told all there is where an object is.
    pub fn knows(&self, id: &WatchId, place: &Place) -> bool {
        let Some(watched) = self.watched(id) else { return false };
        match (&self.consumers, &place.cluster) {
            (Consumers::Workspaces(workspaces), Some(cluster)) => {
                workspaces.endpoint_of(cluster).is_some_and(|endpoint| watched.store.has_synced(&endpoint))
            }
            _ => watched.store.is_synced(),
        }
    }

    /// A piece of work in words, with the workspace and the real names if there are many.
    pub fn named(&self, key: &WorkKey) -> String {
        let (Item::Object(flat) | Item::Claimed(flat)) = &key.item else { return key.to_string() };
        let layout = self.layout();
        let watched = layout.apis.get(&key.lane).map(|api| &api.consumer);
        let watched = watched.or_else(|| layout.claimed.get(&key.lane).map(|kind| &kind.consumer));
        let found = watched.and_then(|id| self.watched(id)?.store.get(flat));
        let tenant = found.as_ref().map(tenant_of).or_else(|| self.tenant_by_namespace(flat));
        match tenant.filter(|_| self.flat.is_some()) {
            Some(Tenant { cluster, key: real }) => format!("{} {real} of workspace {cluster}", key.lane),
            None => key.to_string(),
        }
    }

    fn resolve(
        &self,
        key: &ObjectKey,
        found: Option<&Object>,
        otherwise: impl FnOnce() -> Option<Tenant>,
    ) -> Result<Place, Outcome> {
        match &self.consumers {
            Consumers::Cluster(client) => Ok(Place { key: key.clone(), cluster: None, client: client.clone() }),
            Consumers::Workspaces(workspaces) => {
                let tenant = found.map(tenant_of).or_else(otherwise).filter(|tenant| self.is_flat(key, tenant));
                // What says something else than its key is nobody's.
                reach(workspaces, tenant.ok_or(Outcome::Settled)?)
            }
        }
    }

    fn is_flat(&self, key: &ObjectKey, tenant: &Tenant) -> bool {
        let (namespace, name) = (tenant.key.namespace.as_deref(), &tenant.key.name);
        self.flat.as_ref().is_some_and(|flat| flat.of(&tenant.cluster, namespace, name) == *key)
    }

    fn tenant_by_namespace(&self, key: &ObjectKey) -> Option<Tenant> {
        let (cluster, namespace) = self.tenant_of_namespace(key.namespace.as_deref()?)?;
        Some(Tenant { cluster, key: ObjectKey::namespaced(namespace, &key.name) })
    }
}

fn tenant_of(object: &Object) -> Tenant {
    let namespace = (!object.namespace.is_empty()).then(|| object.namespace.to_string());
    Tenant { cluster: object.cluster.to_string(), key: ObjectKey { namespace, name: object.name.to_string() } }
}

/// A workspace that cannot be reached now is looked at again when it can.
fn reach(workspaces: &Workspaces, tenant: Tenant) -> Result<Place, Outcome> {
    let client = workspaces.client(&tenant.cluster).ok_or(Outcome::Unknown)?;
    Ok(Place { key: tenant.key, cluster: Some(tenant.cluster), client })
}
