//! Secrets and ConfigMaps that bindings select: which there are, what they wait for, and what is done for one.

use std::collections::BTreeSet;
use std::sync::Arc;

use carrick_bind_api::claims::Guarded;
use carrick_bind_api::core::RelatedResource;
use carrick_bind_api::core::conditions::{FOREIGN_OBJECT_EXISTS, Finding, PENDING, RELATED_SYNCED};
use carrick_bind_api::core::names::{
    CONSUMER_CLUSTER_UID, RELATED_BINDING_ANNOTATION, RELATED_FIELD_MANAGER, RELATED_KINDS_ANNOTATION,
};
use carrick_bind_api::core::related::{CompiledSelector, FROM_PROVIDER, RESOURCES, kind_of};
use carrick_client::Object;
use carrick_sync::executor::resource;
use carrick_sync::{ApiKind, Role};

use super::any_binding::AnyBinding;
use super::bindings::keeps_copies;
use super::execute::CoreWriting;
use super::hub::{Hub, Wanted, WantedApi, WorkKey};
use super::local::CoreLocal;
use super::sync::read;
use crate::agent::contract::bundles::written;
use crate::agent::contract::pace::PassResult;
use crate::agent::objects::outcome::{Outcome, Trouble};
use crate::agent::objects::store::SeenObject;
use crate::agent::objects::watched::Watched;
use crate::decide::core::binding;
use crate::decide::core::related::{RelatedView, RelatedWant, decide, is_copy};
use crate::decide::objects::{CONSUMER, PROVIDER, address};

/// How many objects a condition names.
const MOST_NAMED: usize = 8;

/// Adds what a binding wants of related objects, and of what it has wanted before; if it lets go, copies of all that go.
pub(super) fn want(wanted: &mut Wanted, found: &AnyBinding, lets_go: bool, guarded: &Guarded) -> Vec<String> {
    let mut problems = Vec::new();
    if keeps_copies(found) && lets_go {
        return problems;
    }
    let entries: &[RelatedResource] = if lets_go { &[] } else { &found.spec.related_resources };
    // What is not recorded yet would not be found again.
    for named in recorded(found) {
        let Some((direction, plural)) = named.split_once('/') else { continue };
        let Some((_, kind)) = RESOURCES.iter().find(|(known, _)| *known == plural) else { continue };
        let selected = entries.iter().filter(|entry| kind_of(entry) == named).map(CompiledSelector::of);
        let selectors = match selected.collect::<Result<Vec<_>, _>>() {
            Ok(selectors) => selectors,
            // What it selects is not known, so nothing is copied and nothing is deleted.
            Err(error) => {
                problems.push(format!("an entry for {plural} is not followed: {error}"));
                continue;
            }
        };
        let text = str::to_owned;
        let (group, version, kind) = (String::new(), text("v1"), text(kind));
        let kind = ApiKind { group, version, kind, plural: text(plural), namespaced: true };
        let api = wanted.entry(text(plural)).or_insert_with(|| Arc::new(WantedApi::new(kind, false)));
        let api = Arc::make_mut(api);
        api.guarded = guarded.clone();
        api.related.push(RelatedWant {
            binding: found.metadata.uid.clone(),
            namespace: found.namespace().map(text),
            apis: binding::names(&found.spec.apis).into_iter().map(text).collect(),
            from_provider: direction == FROM_PROVIDER,
            selectors,
        });
    }
    problems
}

fn recorded(found: &AnyBinding) -> BTreeSet<String> {
    let text = found.metadata.annotation(RELATED_KINDS_ANNOTATION).unwrap_or_default();
    text.split(',').filter(|kind| !kind.is_empty()).map(str::to_owned).collect()
}

/// Records on a binding what its entries are about, before there are copies, and forgets it when the last copy is gone.
pub(super) async fn record(local: &CoreLocal, found: &AnyBinding, hub: Option<&Arc<Hub>>) -> PassResult {
    let before = recorded(found);
    let mut kinds: BTreeSet<String> = found.spec.related_resources.iter().map(kind_of).collect();
    let is_left = |kind: &String| hub.is_none_or(|hub| hub.left(found, Some(kind.as_str())).is_some());
    kinds.extend(before.iter().filter(|kind| is_left(kind)).cloned().collect::<Vec<_>>());
    if kinds == before {
        return PassResult::default();
    }
    let mut new = found.clone();
    let text = kinds.into_iter().collect::<Vec<_>>().join(",");
    // An empty text, because a merge patch does not remove what it does not name.
    new.metadata.annotate(RELATED_KINDS_ANNOTATION, text);
    written(new.write_metadata(&local.context.writer).await, "binding", &found.key())
}

impl Hub {
    /// Why copies that were made for a binding are still there, or may be; none if they are gone.
    pub fn left(&self, found: &AnyBinding, kind: Option<&str>) -> Option<String> {
        let uid = &found.metadata.uid;
        for named in recorded(found).iter().filter(|named| kind.is_none_or(|kind| kind == named.as_str())) {
            let (direction, plural) = named.split_once('/')?;
            let wanted = self.wanted();
            let Some(api) = wanted.get(plural) else { return Some(format!("{plural} are not watched yet")) };
            let from_provider = direction == FROM_PROVIDER;
            let is_draining = |want: &RelatedWant| {
                want.binding == *uid && want.from_provider == from_provider && want.selectors.is_empty()
            };
            if !api.related.iter().any(is_draining) {
                return Some(format!("{plural} are still copied"));
            }
            let role = if from_provider { Role::Consumer } else { Role::Provider };
            for watched in self.watches(role, api).iter().filter(|it| scopes(found, it)) {
                if let Some(why) = watched.unread() {
                    return Some(why);
                }
                let is_ours = |object: &Object| {
                    object.annotation(RELATED_BINDING_ANNOTATION).as_ref() == Some(uid)
                        && object.annotation(CONSUMER_CLUSTER_UID).as_ref() == Some(&self.cluster_uid)
                };
                let count = watched.store.objects().into_iter().filter(is_ours).count();
                if count > 0 {
                    return Some(format!("{count} related copies of {} are being deleted", watched.id));
                }
            }
        }
        None
    }

    /// What a binding says about related objects that do not travel; none if all do.
    pub fn related_finding(&self, found: &AnyBinding, mut problems: Vec<String>) -> Option<Finding> {
        let mut reason = PENDING;
        if !found.spec.related_resources.iter().all(|entry| self.is_decided(&entry.resource)) {
            // Until it is known again, it is what it was.
            let known = found.status.conditions.iter().find(|it| it.type_ == RELATED_SYNCED)?;
            let reason = if known.reason == FOREIGN_OBJECT_EXISTS { FOREIGN_OBJECT_EXISTS } else { PENDING };
            return Some(Finding::no(RELATED_SYNCED, reason, known.message.clone()));
        }
        let wanted = self.wanted();
        for entry in &found.spec.related_resources {
            let Some(api) = wanted.get(&entry.resource) else { continue };
            let all = [Role::Consumer, Role::Provider].into_iter().flat_map(|role| self.watches(role, api));
            let outages =
                all.filter(|it| scopes(found, it)).filter_map(|it| Some((it.store.outage()?, it.id.to_string())));
            problems.extend(outages.map(|(outage, id)| format!("{id}: {}", outage.words)));
            for (key, problem) in self.problems_of(&entry.resource) {
                if found.namespace().is_none() || key.object.namespace.as_deref() == found.namespace() {
                    reason = if problem.is_conflict { FOREIGN_OBJECT_EXISTS } else { reason };
                    problems.push(problem.words);
                }
            }
        }
        problems.sort_unstable();
        problems.dedup();
        let more = problems.len().saturating_sub(MOST_NAMED);
        problems.truncate(MOST_NAMED);
        let end = if more > 0 { format!("; and {more} more") } else { String::new() };
        (!problems.is_empty()).then(|| Finding::no(RELATED_SYNCED, reason, problems.join("; ") + &end))
    }

    /// Brings a related object in line.
    pub async fn sync_related(&self, key: &WorkKey, api: &WantedApi) -> Result<Outcome, Trouble> {
        let namespace = key.object.namespace.as_deref();
        let Some([consumer, provider]) = self.both(key, api) else { return Ok(Outcome::Unknown) };
        // Whoever only deletes copies does not have to see sources.
        let needs = |is_provider: bool| {
            let mut wants = api.related.iter().filter(|want| want.is_for(namespace));
            wants.any(|want| want.from_provider != is_provider || !want.selectors.is_empty())
        };
        if needs(false) && !consumer.store.is_synced() || needs(true) && !provider.store.is_synced() {
            return Ok(Outcome::Unknown);
        }
        let (here, there) = (read(&consumer, key)?, read(&provider, key)?);
        let noted = self.ledger.noted(key);
        let view = RelatedView {
            kind: &api.kind,
            key: &key.object,
            cluster_uid: &self.cluster_uid,
            consumer: here.as_ref(),
            provider: there.as_ref(),
            wants: &api.related,
            bars: &|object| api.guarded.bars(&key.object, object),
            is_used: &|want| self.is_used(want, namespace),
            noted: &noted,
        };
        let Some(decided) = decide(&view) else { return Ok(Outcome::Unknown) };
        let bare = [(&consumer, &self.consumer), (&provider, &self.provider)];
        if !decided.plan.plan.is_settled()
            && let Some((watched, client)) = bare.into_iter().find(|(it, _)| it.store.is_bare(&key.object))
        {
            // Nobody selected it before, so its content was not kept.
            let found = client.get(&resource(&api.kind), namespace, &key.object.name).await;
            if let Some(found) = found.map_err(|error| Trouble::request(&error))? {
                watched.store.wrote(&found);
            }
            return Ok(Outcome::Again);
        }
        if api.related.iter().any(|want| want.selectors.is_empty()) {
            // Somebody waits for the last copy to go.
            self.notify();
        }
        let Some(want) = decided.want else {
            return decided.plan.conflict.map_or(Ok(Outcome::Settled), |it| Err(it.into()));
        };
        let copy_at = address(if want.from_provider { CONSUMER } else { PROVIDER }, &api.kind, &key.object);
        let (manager, marks, watches) = (RELATED_FIELD_MANAGER, view.marks(want), [&consumer, &provider]);
        let writing =
            CoreWriting { hub: self, key, noted: noted.clone(), source: None, copy_at, marks, manager, watches };
        writing.carry_out(decided.plan).await
    }

    /// Whether there is an object of a binding's APIs in a namespace; none if that is not known yet.
    fn is_used(&self, want: &RelatedWant, namespace: Option<&str>) -> Option<bool> {
        let (wanted, namespace) = (self.wanted(), namespace.unwrap_or_default());
        let apis = want.apis.iter().filter_map(|name| wanted.get(name)).filter(|api| api.kind.namespaced);
        let stores: Vec<_> = apis.map(|api| self.watched(Role::Consumer, api, Some(namespace))).collect();
        if stores.iter().flatten().any(|watched| watched.store.any_in(namespace, |_| true)) {
            return Some(true);
        }
        stores.iter().all(|watched| watched.as_ref().is_some_and(|it| it.store.is_synced())).then_some(false)
    }

    /// What a watch has reported, without the content of Secrets that nobody selects: of those of a cluster, most are none of ours.
    pub fn bared(&self, watched: &Watched, object: Object) -> SeenObject {
        let wanted = self.wanted();
        let Some(api) =
            wanted.get(&*watched.id.resource.plural).filter(|api| api.is_related() && api.is_seen_by(&watched.id))
        else {
            return SeenObject { object, is_bare: false };
        };
        let mut value = object.value();
        let from_provider = watched.id.role == Role::Provider;
        let selects = |want: &RelatedWant| want.from_provider == from_provider && want.selects(&value);
        let is_needed = is_copy(&value) || api.related.iter().any(selects);
        if !is_needed && let Some(fields) = value.as_object_mut() {
            fields.retain(|field, _| ["apiVersion", "kind", "metadata", "type"].contains(&field.as_str()));
            if let Some(object) = Object::from_value(&value) {
                return SeenObject { object, is_bare: true };
            }
        }
        SeenObject { object, is_bare: false }
    }
}

/// Whether a binding is for what a watch reports.
fn scopes(found: &AnyBinding, watched: &Watched) -> bool {
    watched.id.namespace.is_none()
        || found.namespace().is_none()
        || watched.id.namespace.as_deref() == found.namespace()
}
