//! What is done for one claimed object.

use carrick_bind_api::claims::{Barred, SelectedBy, Side};
use carrick_bind_api::copies;
use carrick_bind_api::mapping::ObjectKey;
use carrick_bind_api::names::{CONSUMER_UID_ANNOTATION, CONTRACT_ANNOTATION};
use carrick_client::Object;
use serde_json::Value;

use super::consumers::Place;
use super::execute::ContractWriting;
use super::hub::{Hub, PendingNamespace};
use super::key::WorkKey;
use super::layout::{BoundClaim, ClaimedKind, consumer_namespaces, service_namespaces};
use super::outcome::{Outcome, Trouble};
use super::store::{SeenObject, key_of};
use super::sync::read;
use super::watched::WatchId;
use crate::decide::claims::{ClaimedProblem, ClaimedView, decide};
use crate::decide::namespaces::allows_writes;
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
        // It was looked up before all was known, and may have been listed in between.
        if here.is_none() && consumer.store.get(object).is_some() {
            return Err(Trouble::Race);
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
        let at = Claimed { kind, object, key: &place.key, share: self.share(object) };
        let consumer_side = here.as_ref().map(|found| self.consumer_side(&at, found));
        let provider_side = match there.as_ref().map(|found| self.provider_side(&at, found)) {
            Some(None) => return Ok(Outcome::Unknown),
            side => side.flatten(),
        };
        let selected = [consumer_side, provider_side].map(|side| side.is_some_and(|side| side.selected));
        let mode = mode_of(kind, selected, |claim| {
            [&here, &there].into_iter().flatten().any(|found| at.selected_by(claim, found).is_some())
        });
        let noted = self.ledger.noted(key);
        let view = ClaimedView {
            kind: &kind.kind,
            contract: &self.contract,
            key: &place.key,
            cluster: place.cluster.as_deref(),
            provider_key: provider_key.as_ref(),
            consumer: consumer_side,
            provider: provider_side,
            mode,
            noted: &noted,
        };
        let plan = decide(&view).map_err(|problem| self.not_synced(key, object, &place, problem))?;
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
        ContractWriting { hub: self, key, noted: noted.clone(), copy_at, watches, place: &place }.carry_out(plan).await
    }
}

/// A claimed object on both sides.
struct Claimed<'a> {
    kind: &'a ClaimedKind,
    /// Its key among all consumers.
    object: &'a ObjectKey,
    /// Its key where it is.
    key: &'a ObjectKey,
    /// What stands for its workspace.
    share: &'a str,
}

impl<'a> Claimed<'a> {
    fn selected_by(&self, claim: &BoundClaim, found: &Value) -> Option<SelectedBy> {
        claim.selects(self.share, self.key, found)
    }

    /// The claims that are followed and select an object.
    fn selecting(&self, found: &Value) -> impl Iterator<Item = (&'a BoundClaim, SelectedBy)> {
        let kept = self.kind.claims.iter().filter(|claim| claim.mode == SyncMode::Keep);
        kept.filter_map(move |claim| Some((claim, self.selected_by(claim, found)?)))
    }
}

impl Hub {
    /// The consumer's half of a claimed object.
    fn consumer_side<'a>(&self, at: &Claimed<'_>, found: &'a Value) -> Side<'a> {
        let by: Vec<SelectedBy> = at.selecting(found).map(|(_, by)| by).collect();
        Side {
            object: found,
            selected: !by.is_empty(),
            barred: self.layout().guarded.bars(at.key, found),
            named: by.iter().any(|by| *by != SelectedBy::Labels),
        }
    }

    /// The provider's half of a claimed object; none as long as it is not known whether its namespace here is used.
    fn provider_side<'a>(&self, at: &Claimed<'_>, found: &'a Value) -> Option<Side<'a>> {
        let claims: Vec<&BoundClaim> = at.selecting(found).map(|(claim, _)| claim).collect();
        let welcome: Vec<Option<bool>> = claims.iter().map(|claim| self.is_welcome(at, claim)).collect();
        let barred = match () {
            () if claims.is_empty() || welcome.contains(&Some(true)) => None,
            () if welcome.contains(&None) => return None,
            () => Some(Barred::Unused),
        };
        Some(Side { barred, ..Side::new(found, !claims.is_empty()) })
    }

    /// Whether the provider of a claim may write an object here: where its API is used, or where somebody here has said so.
    fn is_welcome(&self, at: &Claimed<'_>, claim: &BoundClaim) -> Option<bool> {
        let Some(namespace) = at.object.namespace.as_deref() else { return Some(false) };
        if claim.names(at.share, at.key) {
            return Some(true);
        }
        let layout = self.layout();
        let apis = layout.apis.values().filter(|api| api.binding == claim.binding && api.kinds.consumer.namespaced);
        let stores: Vec<_> = apis.map(|api| self.watched(&api.consumer)).collect();
        let is_own = |object: &Object| !copies::came_from_provider(&object.value());
        if stores.iter().flatten().any(|watched| watched.store.any_in(namespace, is_own)) {
            return Some(true);
        }
        let found = self.synced(&consumer_namespaces())?.store.get(&ObjectKey::cluster(namespace));
        if found.is_some_and(|found| allows_writes(&found.value(), &self.contract)) {
            return Some(true);
        }
        stores.iter().all(|watched| watched.as_ref().is_some_and(|it| it.store.is_synced())).then_some(false)
    }

    /// What becomes of a claimed object that cannot be synced.
    fn not_synced(&self, key: &WorkKey, object: &ObjectKey, place: &Place, problem: ClaimedProblem) -> Trouble {
        let words = problem.to_string();
        let ClaimedProblem::NamespacePending(namespace) = problem else { return Trouble::Conflict(words) };
        let tenant = place.cluster.clone().map(|cluster| (cluster, namespace.clone()));
        let flat = object.namespace.clone().unwrap_or(namespace);
        self.pending.lock().insert(key.clone(), PendingNamespace { flat, tenant });
        self.look_at_namespaces();
        Trouble::Pending(words)
    }

    /// What a watch tells, without the content of objects that nobody claims: of the Secrets of a cluster, most are none of ours.
    pub fn bared(&self, id: &WatchId, object: Object) -> SeenObject {
        let layout = self.layout();
        let kind = layout.claimed.values().find(|kind| kind.consumer == *id);
        let is_read_by_others =
            || layout.claimed.values().any(|kind| kind.references().any(|reference| reference == id));
        let Some(kind) = kind.filter(|_| !is_read_by_others()) else { return SeenObject { object, is_bare: false } };
        let mut value = object.value();
        let is_marked =
            copies::labelled_owner(&value).is_some() || copies::annotation(&value, CONTRACT_ANNOTATION).is_some();
        let share = self.flat.as_ref().map(|flat| flat.of(&object.cluster, Some(&object.namespace), &object.name));
        let share = share.as_ref().map(share_of).unwrap_or_default();
        let selects = |claim: &BoundClaim| claim.selects(share, &key_of(&object), &value).is_some();
        if is_marked || kind.claims.iter().any(selects) {
            return SeenObject { object, is_bare: false };
        }
        if let Some(fields) = value.as_object_mut() {
            fields.retain(|field, _| ["apiVersion", "kind", "metadata", "type"].contains(&field.as_str()));
        }
        match Object::from_value(&value) {
            Some(object) => SeenObject { object, is_bare: true },
            None => SeenObject { object, is_bare: false },
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
