//! What is done for one claimed object.

use carrick_bind_api::claims::Side;
use carrick_bind_api::copies;
use carrick_bind_api::mapping::ObjectKey;
use carrick_bind_api::names::{CONSUMER_UID_ANNOTATION, CONTRACT_ANNOTATION};
use carrick_client::Object;
use serde_json::Value;

use super::execute::Writing;
use super::hub::{Hub, PendingNamespace};
use super::key::WorkKey;
use super::layout::{BoundClaim, ClaimedKind, WatchId, service_namespaces};
use super::outcome::{Outcome, Trouble};
use super::store::{Told, key_of};
use super::sync::read;
use crate::decide::claims::{ClaimedProblem, ClaimedView, decide};
use crate::decide::objects::{PROVIDER, SyncMode, address};
use crate::decide::tenants::share_of;

impl Hub {
    /// Brings a claimed object in line on both sides.
    pub async fn sync_claimed(
        &self,
        key: &WorkKey,
        kind: &ClaimedKind,
        object: &ObjectKey,
    ) -> Result<Outcome, Trouble> {
        let (Some(consumer), Some(_)) =
            (self.watched(&kind.consumer), self.synced(&service_namespaces(&self.contract)))
        else {
            return Ok(Outcome::Unknown);
        };
        let here = consumer.store.get(object);
        let place = match self.place_of_claimed(object, here.as_ref()) {
            Ok(place) => place,
            Err(outcome) => return Ok(outcome),
        };
        let mut needed = kind.references().chain([&kind.consumer]);
        if !needed.all(|id| self.knows(id, &place)) {
            return Ok(Outcome::Unknown);
        }
        let assigned = self.assigned();
        let namespace = object.namespace.as_deref().and_then(|namespace| assigned.assigned_to(namespace));
        let provider_key = namespace.map(|namespace| ObjectKey::namespaced(namespace, &object.name));
        let there = match &provider_key {
            Some(provider_key) => {
                let Some(provider) = self.synced(&kind.provider_watch(provider_key)) else {
                    return Ok(Outcome::Unknown);
                };
                provider.store.get(provider_key)
            }
            None => None,
        };
        let decoded = |object: Option<_>| object.as_ref().map(|object| read(object, SyncMode::Keep)).transpose();
        let (here, mut there) = (decoded(here)?, decoded(there)?);
        if let Some(found) = there.as_mut().filter(|found| self.is_derived(found, here.as_ref())) {
            // It is the provider's own, whatever it says.
            if let Some(annotations) = found["metadata"]["annotations"].as_object_mut() {
                annotations.remove(CONTRACT_ANNOTATION);
                annotations.remove(CONSUMER_UID_ANNOTATION);
            }
        }
        let selects = |claim: &BoundClaim, found: &Option<Value>| {
            found.as_ref().is_some_and(|found| claim.selects(self.share(object), &place.key, found))
        };
        let kept = || kind.claims.iter().filter(|claim| claim.mode == SyncMode::Keep);
        let selected = [&here, &there].map(|found| kept().any(|claim| selects(claim, found)));
        let mode = mode_of(kind, selected, |claim| selects(claim, &here) || selects(claim, &there));
        let noted = self.noted(key);
        let view = ClaimedView {
            kind: &kind.kind,
            contract: &self.contract,
            key: &place.key,
            cluster: place.cluster.as_deref(),
            provider_key: provider_key.as_ref(),
            consumer: here.as_ref().map(|object| Side { object, selected: selected[0] }),
            provider: there.as_ref().map(|object| Side { object, selected: selected[1] }),
            mode,
            noted: &noted,
        };
        let plan = match decide(&view) {
            Ok(plan) => plan,
            Err(ClaimedProblem::NamespacePending(namespace)) => {
                let words = format!("the provider has not assigned a namespace to {namespace} yet");
                let tenant = place.cluster.clone().map(|cluster| (cluster, namespace.clone()));
                let flat = object.namespace.clone().unwrap_or(namespace);
                self.pending.lock().insert(key.clone(), PendingNamespace { flat, tenant });
                self.look_at_namespaces();
                return Err(Trouble::Pending(words));
            }
            Err(problem) => return Err(Trouble::Conflict(problem.to_string())),
        };
        if self.pending.lock().remove(key).is_some() {
            self.look_at_namespaces();
        }
        if !plan.is_settled() && consumer.store.is_bare(object) {
            // Nobody claimed it before, so its content was not kept.
            let (namespace, name) = (place.key.namespace.as_deref(), &place.key.name);
            let found = place.client.get(&kind.consumer.resource, namespace, name).await;
            if let Some(found) = found.map_err(|error| Trouble::request(&error))? {
                consumer.store.wrote(&found);
            }
            return Ok(Outcome::Again);
        }
        let provider_key = provider_key.unwrap_or_else(|| object.clone());
        let copy_at = address(PROVIDER, &kind.kind, &provider_key);
        let watches = [kind.consumer.clone(), kind.provider_watch(&provider_key)];
        Writing { hub: self, key, noted: noted.clone(), copy_at, watches, place: &place }.carry_out(plan).await
    }
}

impl Hub {
    /// What a watch tells, without the content of objects that nobody claims: of the Secrets of a cluster, most are none of ours.
    pub fn bared(&self, id: &WatchId, object: Object) -> Told {
        let layout = self.layout();
        let kind = layout.claimed.values().find(|kind| kind.consumer == *id);
        let is_read_by_others =
            || layout.claimed.values().any(|kind| kind.references().any(|reference| reference == id));
        let Some(kind) = kind.filter(|_| !is_read_by_others()) else { return Told { object, is_bare: false } };
        let mut value = object.value();
        let is_marked =
            copies::labelled_owner(&value).is_some() || copies::annotation(&value, CONTRACT_ANNOTATION).is_some();
        let share = self.flat.as_ref().map(|flat| flat.of(&object.cluster, Some(&object.namespace), &object.name));
        let share = share.as_ref().map(share_of).unwrap_or_default();
        let selects = |claim: &BoundClaim| claim.selects(share, &key_of(&object), &value);
        if is_marked || kind.claims.iter().any(selects) {
            return Told { object, is_bare: false };
        }
        if let Some(fields) = value.as_object_mut() {
            fields.retain(|field, _| ["apiVersion", "kind", "metadata"].contains(&field.as_str()));
        }
        match Object::from_value(&value) {
            Some(object) => Told { object, is_bare: true },
            None => Told { object, is_bare: false },
        }
    }
}

/// What becomes of a claimed object: it stays as long as one binding needs it.
fn mode_of(kind: &ClaimedKind, selected: [bool; 2], selects: impl Fn(&BoundClaim) -> bool) -> SyncMode {
    let of = |mode| kind.claims.iter().filter(move |claim| claim.mode == mode);
    let drains = || of(SyncMode::Drain).any(&selects);
    if of(SyncMode::Keep).next().is_some() && (selected.contains(&true) || !drains()) {
        SyncMode::Keep
    } else if of(SyncMode::Drain).next().is_some() {
        SyncMode::Drain
    } else {
        SyncMode::Release
    }
}
