//! What workers do for one object of an API.

use carrick_bind_api::copies::{Ownership, annotation, ownership};
use carrick_bind_api::existing::Existing;
use carrick_bind_api::mapping::{MappingError, ObjectKey};
use carrick_bind_api::names::{CONSUMER_CLUSTER_ANNOTATION, PROVIDER_NAMESPACE_ANNOTATION};
use carrick_client::Object;
use carrick_multicluster::Queue;
use carrick_sync::object::is_deleting;
use serde_json::Value;

use super::consumers::{Consumers, Place};
use super::execute::ContractWriting;
use super::hub::Hub;
use super::key::{Item, WorkKey};
use super::layout::{Api, consumer_namespaces, resource, service_namespaces};
use super::ledger::Ledger;
use super::outcome::{Outcome, Trouble};
use super::work::Workshop;
use crate::decide::objects::{ObjectView, SyncMode, decide};

impl Workshop for Hub {
    type Key = WorkKey;

    fn queue(&self) -> &Queue<WorkKey> {
        &self.queue
    }

    fn ledger(&self) -> &Ledger<WorkKey> {
        &self.ledger
    }

    fn shown(&self, key: &WorkKey) -> String {
        self.named(key)
    }

    fn problems_changed(&self) {
        self.tell();
    }

    fn settled(&self) {
        if self.layout().bindings.values().any(|mode| *mode != SyncMode::Keep) {
            self.tell();
        }
    }

    async fn process(&self, key: &WorkKey) -> Result<Outcome, Trouble> {
        let layout = self.layout();
        match &key.item {
            Item::Object(object) => match layout.apis.get(&key.lane) {
                Some(api) => self.sync(key, api, object).await,
                None => Ok(Outcome::Settled),
            },
            Item::Claimed(object) => match layout.claimed.get(&key.lane) {
                Some(kind) => self.sync_claimed(key, kind, object).await,
                None => Ok(Outcome::Settled),
            },
            Item::Namespaces => match &self.consumers {
                Consumers::Cluster(consumer) => self.sync_namespaces(&layout, consumer).await,
                Consumers::Workspaces(workspaces) => self.sync_tenant_namespaces(&layout, workspaces).await,
            },
        }
    }
}

impl Hub {
    /// Brings one object and its copy in line.
    async fn sync(&self, key: &WorkKey, api: &Api, object: &ObjectKey) -> Result<Outcome, Trouble> {
        let Some(consumer) = self.watched(&api.consumer) else { return Ok(Outcome::Unknown) };
        let found = consumer.store.get(object);
        let source = found.as_ref().map(|source| read(source, api.mode)).transpose()?;
        // Whoever keeps copies does not have to see them.
        if api.mode == SyncMode::Release {
            let place = match self.place(object, found.as_ref(), None) {
                Ok(place) if self.knows(&api.consumer, &place) => place,
                Ok(_) => return Ok(Outcome::Unknown),
                Err(outcome) => return Ok(outcome),
            };
            return self.carry_out(key, api, &place, object, source.as_ref(), None).await;
        }
        if object.namespace.is_some() && self.synced(&service_namespaces(&self.contract)).is_none() {
            return Ok(Outcome::Unknown);
        }
        let assigned = self.assigned();
        let mapped = api.mapping.to_provider(object, &assigned);
        let copy = match &mapped {
            Ok(copy_key) => {
                let Some(provider) = self.synced(&api.copy_watch(copy_key)) else {
                    return Ok(Outcome::Unknown);
                };
                let copy = provider.store.get(copy_key);
                copy.as_ref().map(|copy| read(copy, api.mode)).transpose()?
            }
            Err(_) => None,
        };
        let place = match self.place(object, found.as_ref(), copy.as_ref()) {
            Ok(place) => place,
            Err(outcome) => return Ok(outcome),
        };
        // Where the kind is not served any more there are no objects either; that counts only if copies have to go anyway.
        let is_known = self.knows(&api.consumer, &place)
            || api.mode == SyncMode::Drain && consumer.store.outage().is_some_and(|outage| outage.not_served);
        if !is_known {
            return Ok(Outcome::Unknown);
        }
        // It was looked up before all was known, and may have been listed in between.
        if found.is_none() && consumer.store.get(object).is_some() {
            return Err(Trouble::Race);
        }
        let copy_key = match (mapped, &source) {
            (Ok(copy_key), _) => copy_key,
            (Err(_), None) => return Ok(Outcome::Settled),
            (Err(error), Some(source)) if api.mode == SyncMode::Keep && !is_deleting(source) => {
                if let MappingError::NamespacePending(_) = &error {
                    self.look_at_namespaces();
                }
                return Err(Trouble::Pending(error.to_string()));
            }
            (Err(_), Some(source)) => match self.left_behind(api, object, source).await? {
                Some((copy_key, copy)) => {
                    return self.carry_out(key, api, &place, &copy_key, Some(source), copy.as_ref()).await;
                }
                // It never had a copy.
                None => {
                    return self.carry_out(key, &api.released(), &place, object, Some(source), None).await;
                }
            },
        };
        if source.is_none() && api.existing.makes_objects() && !self.has_namespace(object) {
            // It is looked at again when its namespace is there.
            let is_ours = |copy: &Value| ownership(copy, &self.contract) == Ownership::Ours;
            if !copy.as_ref().is_some_and(is_ours) {
                return Ok(Outcome::Settled);
            }
        }
        self.carry_out(key, api, &place, &copy_key, source.as_ref(), copy.as_ref()).await
    }

    /// Whether an object can be created in its namespace on the consumer.
    fn has_namespace(&self, object: &ObjectKey) -> bool {
        let Some(namespace) = &object.namespace else { return true };
        let found = self.watched(&consumer_namespaces());
        let found = found.and_then(|watched| watched.store.get(&ObjectKey::cluster(namespace)));
        found.is_some_and(|found| !found.is_deleting())
    }

    /// Where the copy of an object was before its namespace was unassigned, and whether it is still there.
    async fn left_behind(
        &self,
        api: &Api,
        object: &ObjectKey,
        source: &Value,
    ) -> Result<Option<(ObjectKey, Option<Value>)>, Trouble> {
        let Some(namespace) = annotation(source, PROVIDER_NAMESPACE_ANNOTATION) else { return Ok(None) };
        let at = ObjectKey::namespaced(namespace, &object.name);
        let path = resource(&api.kinds.provider).object_path(Some(namespace), &at.name, None);
        match self.provider.raw_get(&path).await {
            Ok(found) => Ok(Some((at, Some(found)))),
            Err(error) if error.is_missing(&at.name) => Ok(Some((at, None))),
            Err(error) => Err(Trouble::request(&error)),
        }
    }

    async fn carry_out(
        &self,
        key: &WorkKey,
        api: &Api,
        place: &Place,
        copy_key: &ObjectKey,
        source: Option<&Value>,
        copy: Option<&Value>,
    ) -> Result<Outcome, Trouble> {
        let owner = match api.mapping.owner_of_copies("") {
            Some(_) if source.is_some() && api.mode == SyncMode::Keep => {
                api.mapping.owner_of_copies(self.contract_uid().await?)
            }
            _ => None,
        };
        if let (Some(cluster), Some(copy)) = (&place.cluster, copy)
            && let Some(named) = annotation(copy, CONSUMER_CLUSTER_ANNOTATION).filter(|named| named != cluster)
            && ownership(copy, &self.contract) == Ownership::Ours
        {
            // Two workspaces have the same key by chance.
            let words = format!("its copy belongs to workspace {named}; choose another name or namespace here");
            return Err(Trouble::Conflict(words));
        }
        let noted = self.ledger.noted(key);
        let view = ObjectView {
            kinds: &api.kinds,
            has_status: api.has_status,
            contract: &self.contract,
            owner: owner.as_ref(),
            key: &place.key,
            cluster: place.cluster.as_deref(),
            existing: if place.cluster.is_some() { Existing::Leave } else { api.existing },
            copy_key,
            source,
            copy,
            derived: copy.is_some_and(|copy| self.is_derived(copy, source)),
            mode: api.mode,
            noted: &noted,
        };
        let plan = decide(&view).map_err(|problem| Trouble::Conflict(problem.to_string()))?;
        let watches = [api.consumer.clone(), api.copy_watch(copy_key)];
        let writing = ContractWriting { hub: self, key, noted: noted.clone(), copy_at: view.copy_at(), watches, place };
        writing.carry_out(plan).await
    }
}

/// An object, decoded. Where it only has to go, its metadata will do.
pub(super) fn read(object: &Object, mode: SyncMode) -> Result<Value, Trouble> {
    if mode != SyncMode::Keep || object.is_deleting() {
        return Ok(object.value());
    }
    object.read().map_err(|error| Trouble::Pending(error.to_string()))
}
