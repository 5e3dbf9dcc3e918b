//! One source and its copy, whichever side the source is on.

use serde_json::{Value, json};

use crate::address::ObjectAddress;
use crate::adopt::AdoptionPolicy;
use crate::content::{ContentChange, CopyContent, drop_keys, is_exact, is_refused, remembered};
use crate::error::PairError;
use crate::holders::{hold, is_held_by, release};
use crate::link::Link;
use crate::memory::{Applied, BY_APPLY, StateEntry, applied_mark, checksum, sum};
use crate::object::{annotation, is_deleting, label, set};
use crate::step::{Dependents, Event, PairProgress, Step};
use crate::transform::Transform;
use crate::vocabulary::Vocabulary;

/// In which direction the status is copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatusFlow {
    /// Nowhere.
    None,
    /// From the copy to the source.
    Back,
    /// From the copy to the source where there is no status subresource: status is then a field like any other, which the consumer may
    /// write too.
    BackAsField,
    /// From the source to the copy.
    Forward,
    /// It should be copied from the source to the copy, which cannot have one.
    Blocked,
}

/// A source, its copy and what matters between them.
#[allow(clippy::struct_excessive_bools)] // each says one thing about the copy, and they are independent
pub struct Pair<'a, T> {
    /// What the agent writes into metadata.
    pub vocabulary: &'static Vocabulary,
    /// The source.
    pub source: &'a Value,
    /// Where the source is.
    pub source_at: ObjectAddress,
    /// Its copy, if there is one.
    pub copy: Option<&'a Value>,
    /// Where the copy is, or where it will be created.
    pub copy_at: ObjectAddress,
    /// Key of this pair in the memory.
    pub entry: String,
    /// What is remembered about the copy.
    pub remembered: Option<&'a StateEntry>,
    /// Whether the memory holds more than has been read.
    pub partial: bool,
    /// UID of the copy, if it is remembered.
    pub copy_uid: Option<&'a str>,
    /// Whether the copy also belongs to another source of ours.
    pub shared: bool,
    /// Whether something other than the state shows that the copy is ours: state can be lost.
    pub vouched: bool,
    /// The name under which we hold the source with the finalizer until the copy is gone; `None` if it is not held.
    pub holder: Option<&'a str>,
    /// Whether this is the consumer's order itself and not a related object.
    pub primary: bool,
    /// Link and agent name, for copies that carry them.
    pub link: Option<(&'a Link, &'a str)>,
    /// Top-level fields that are not content.
    pub subresources: &'a [&'a str],
    /// Where the status goes.
    pub status: StatusFlow,
    /// What becomes of objects on their way.
    pub transform: &'a T,
    /// What to do with somebody else's object in the place of the copy.
    pub adoption: AdoptionPolicy,
    /// Name of the schema that a status must fit.
    pub schema: &'a str,
    /// Whether the copy is written by server-side apply.
    pub apply: bool,
}

/// Who owns an object in the place of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CopyOwner {
    /// Ours.
    Us,
    /// Ours, but that is not in the state yet.
    UsUnnoted,
    /// Somebody else's, who allows us to take it over.
    Willing,
    /// Somebody else's.
    Other,
    /// More of the memory must be read first.
    Unknown,
}

impl<T: Transform> Pair<'_, T> {
    /// Steps that keep the copy in line with a source that is not being deleted, and steps for the status, which may fail without affecting
    /// the rest.
    pub fn keep(&self, steps: &mut Vec<Step>, status: &mut Vec<Step>) -> Result<PairProgress, PairError<T::Error>> {
        let mutated = match self.copy {
            None if !self.transform.keeps_spec() => {
                self.transform.spec(self.source, Some(&draft(self.source, &self.copy_at)))
            }
            copy => self.transform.spec(self.source, copy),
        };
        let mutated = mutated.map_err(PairError::Transform)?;
        let owner = self.copy.map_or(CopyOwner::Us, |copy| self.owner(&mutated, copy, self.vouched));
        match owner {
            CopyOwner::Unknown => return Ok(PairProgress::Unknown),
            CopyOwner::Other => return Err(PairError::Taken(self.copy_at.to_string())),
            CopyOwner::Us | CopyOwner::UsUnnoted | CopyOwner::Willing => {}
        }
        let before = steps.len();
        if let Some(holder) = self.holder
            && let Some(step) =
                hold(self.vocabulary, &self.source_at, self.source, holder, self.primary || self.was_written())
        {
            steps.push(step);
            self.report(steps, Event::Accepted);
        }
        let Some(copy) = self.copy else {
            self.create(&mutated, steps);
            return Ok(self.wrote(None));
        };
        if is_deleting(copy) {
            return Ok(PairProgress::Waiting);
        }
        match self.content(&mutated, copy, owner, steps) {
            PairProgress::Settled => {}
            PairProgress::Unknown => {
                steps.truncate(before);
                return Ok(PairProgress::Unknown);
            }
            PairProgress::Waiting => return Ok(PairProgress::Waiting),
            PairProgress::Wrote | PairProgress::WroteBeforeStatus => return Ok(self.wrote(Some(copy))),
        }
        if steps.len() > before {
            return Ok(self.wrote(Some(copy)));
        }
        // Only once the spec is in line: until then, the status belongs to an older spec.
        self.status(&mutated, copy, status)?;
        if self.status == StatusFlow::Blocked && self.source.get("status").is_some() {
            self.report(status, Event::StatusSubresourceMissing);
        }
        Ok(PairProgress::Settled)
    }

    /// Who owns the object in the place of the copy. Its link says so; without a link, the state does, or the fact that it equals what
    /// would be written.
    fn owner(&self, mutated: &Value, copy: &Value, vouched: bool) -> CopyOwner {
        let is_marked = self
            .link
            .is_some_and(|(link, agent)| link.is_on(copy) && label(copy, self.vocabulary.agent_name) == Some(agent));
        if self.primary || is_marked {
            return CopyOwner::Us;
        }
        let is_same_object = self.copy_uid.map(|uid| copy["metadata"]["uid"] == uid);
        match is_same_object {
            Some(true) => return CopyOwner::Us,
            None if self.was_written() => return CopyOwner::Us,
            _ if self.shared => return CopyOwner::UsUnnoted,
            None if vouched && self.remembered.is_none() => return CopyOwner::UsUnnoted,
            _ => {}
        }
        let states: Vec<&Applied> =
            self.remembered.into_iter().flat_map(|entry| entry.last.iter().chain(&entry.next)).collect();
        let is_state = |state: &Value| is_exact(state, copy, self.subresources);
        if is_state(&remembered(self.vocabulary, mutated, self.subresources))
            || states.iter().filter_map(|state| state.whole()).any(is_state)
        {
            return CopyOwner::UsUnnoted;
        }
        if self.partial && states.iter().any(|state| state.whole().is_none()) {
            return CopyOwner::Unknown;
        }
        let willing = self.adoption == AdoptionPolicy::TakeOver
            || annotation(copy, self.vocabulary.adoption) == Some(AdoptionPolicy::TAKE_OVER);
        if willing { CopyOwner::Willing } else { CopyOwner::Other }
    }

    /// Whether a copy is known to have been written.
    fn was_written(&self) -> bool {
        self.remembered.is_some_and(|entry| entry.last.is_some())
    }

    /// Whether the object in the place of the copy is ours, so that it may be deleted; `None` if that is not known yet. A deletion cannot
    /// be undone, so only the state and the content count here.
    pub fn owns_copy(&self) -> Option<bool> {
        let Some(copy) = self.copy else { return Some(false) };
        let mutated = self.transform.spec(self.source, Some(copy));
        match mutated.map(|mutated| self.owner(&mutated, copy, false)) {
            Ok(CopyOwner::Unknown) => None,
            Ok(owner) => Some(matches!(owner, CopyOwner::Us | CopyOwner::UsUnnoted)),
            // If the rules fail, there is no desired state to compare with.
            Err(_) => Some(self.owner(&Value::Null, copy, false) == CopyOwner::Us),
        }
    }

    /// How far the pair has come once its content is written.
    fn wrote(&self, copy: Option<&Value>) -> PairProgress {
        let status = copy.and_then(|copy| copy.get("status"));
        let is_behind = self.status == StatusFlow::Forward && !same_status(self.source.get("status"), status);
        if is_behind { PairProgress::WroteBeforeStatus } else { PairProgress::Wrote }
    }

    fn status(&self, mutated: &Value, copy: &Value, steps: &mut Vec<Step>) -> Result<(), PairError<T::Error>> {
        let (from, to, to_at) = match self.status {
            StatusFlow::None | StatusFlow::Blocked => return Ok(()),
            StatusFlow::BackAsField => {
                let seen_by_consumer = self.transform.status(copy, mutated).map_err(PairError::Transform)?;
                return self.status_as_field(copy, &seen_by_consumer, steps);
            }
            StatusFlow::Forward => (self.transform.status(mutated, copy), copy, &self.copy_at),
            StatusFlow::Back => (self.transform.status(copy, mutated), self.source, &self.source_at),
        };
        let from = from.map_err(PairError::Transform)?;
        if self.is_settled_status(from.get("status"), to.get("status")) {
            return Ok(());
        }
        let object = with_status(to, from.get("status"));
        let (entry, schema) = (self.entry.clone(), self.schema.to_owned());
        steps.push(Step::WriteStatus { at: to_at.clone(), object, entry, schema });
        if self.status == StatusFlow::Back {
            self.report(steps, Event::StatusSynced);
        }
        Ok(())
    }

    /// The object whose status was refused and is not sent again.
    pub fn refused_status(&self) -> Option<&ObjectAddress> {
        let note = self.remembered?.status.as_ref()?;
        let at = if self.status == StatusFlow::Forward { &self.copy_at } else { &self.source_at };
        let refused = note.stored.is_none() && note.schema == self.schema;
        refused.then_some(at)
    }

    /// Whether a status is what it should be, as far as the server accepts it.
    fn is_settled_status(&self, wanted: Option<&Value>, there: Option<&Value>) -> bool {
        if same_status(wanted, there) {
            return true;
        }
        let note = self.remembered.and_then(|entry| entry.status.as_ref()).filter(|note| note.schema == self.schema);
        note.is_some_and(|note| {
            let sum = |status: Option<&Value>| checksum(status.unwrap_or(&Value::Null));
            note.sent == sum(wanted) && note.stored.as_ref().is_none_or(|stored| *stored == sum(there))
        })
    }

    /// A status that somebody other than the source wrote to the copy is copied back; one that came from the source is not.
    fn status_as_field(
        &self,
        copy: &Value,
        seen_by_consumer: &Value,
        steps: &mut Vec<Step>,
    ) -> Result<(), PairError<T::Error>> {
        let last = self.remembered.and_then(|entry| entry.last.as_ref()?.whole());
        let (old, new) = (&self.source["status"], &seen_by_consumer["status"]);
        if copy["status"].is_null()
            || last.is_some_and(|last| last["status"] == copy["status"])
            || self.is_settled_status(Some(new), Some(old))
        {
            return Ok(());
        }
        let resource_version = &self.source["metadata"]["resourceVersion"];
        let patch =
            json!({"metadata": {"resourceVersion": resource_version}, "status": carrick_json::merge::diff(old, new)});
        steps.push(Step::Patch { at: self.source_at.clone(), patch });
        // Recorded so that it does not count as a change of the desired state and is not sent to the copy again.
        let mut source = self.source.clone();
        source["status"] = new.clone();
        let desired = self.transform.spec(&source, Some(copy)).map_err(PairError::Transform)?;
        let value = remembered(self.vocabulary, &desired, self.subresources);
        steps.push(Step::Remember { entry: self.entry.clone(), value, copy: None, instead: None });
        self.report(steps, Event::StatusSynced);
        Ok(())
    }

    /// Steps that delete the copy, and then remove the finalizer from the source.
    pub fn remove(&self, steps: &mut Vec<Step>) -> PairProgress {
        if let Some(copy) = self.copy {
            if !is_deleting(copy) {
                let dependents = if self.source_at.side.is_consumer() {
                    Dependents::of(self.vocabulary, self.source)
                } else {
                    Dependents::default()
                };
                steps.push(delete(self.copy_at.clone(), copy, dependents));
                self.report(steps, Event::Cleanup);
            }
            return PairProgress::Waiting;
        }
        let Some(holder) = self.holder.filter(|holder| is_held_by(self.vocabulary, self.source, holder)) else {
            return PairProgress::Settled;
        };
        if self.primary {
            steps.push(Step::ConfirmNoCopy);
            steps.push(Step::Forget);
        }
        steps.push(release(self.vocabulary, &self.source_at, self.source, holder));
        self.report(steps, Event::Deleted);
        PairProgress::Wrote
    }

    fn create(&self, mutated: &Value, steps: &mut Vec<Step>) {
        let mut object = self.placed(mutated);
        let value = remembered(self.vocabulary, mutated, self.subresources);
        if self.primary {
            set(&mut object, "annotations", self.vocabulary.applied_state, &sum(&value));
        }
        // It had a copy before, which may still exist elsewhere, out of sight.
        if self.primary && self.remembered.is_some() {
            steps.push(Step::ConfirmNoCopy);
        }
        if let Some(namespace) = &self.copy_at.namespace {
            steps.push(Step::EnsureNamespace { side: self.copy_at.side, name: namespace.clone() });
        }
        steps.push(Step::Create { at: self.copy_at.clone(), object });
        steps.push(self.remember(value));
        self.report(steps, Event::Placed);
    }

    fn content(&self, mutated: &Value, copy: &Value, owner: CopyOwner, steps: &mut Vec<Step>) -> PairProgress {
        let desired = remembered(self.vocabulary, mutated, self.subresources);
        let remember = self.remember(desired.clone());
        let at = self.copy_at.clone();
        let (partial, link, subresources) = (self.partial, self.link, self.subresources);
        // The state does not apply to an object that somebody else put there.
        let entry = self.remembered.filter(|_| owner == CopyOwner::Us);
        let (desired_ref, is_marked) = (&desired, self.primary);
        let vocabulary = self.vocabulary;
        let content =
            CopyContent { vocabulary, desired: desired_ref, copy, entry, partial, link, is_marked, subresources };
        // An object that was not ours is written as a whole, once; from then on it is known who owns its fields.
        let is_known = entry.is_some()
            || (self.primary && owner == CopyOwner::Us && annotation(copy, self.vocabulary.applied_state).is_some());
        let change = if self.apply && is_known { content.apply() } else { content.compare() };
        match change {
            ContentChange::None => return PairProgress::Settled,
            ContentChange::Unknown => return PairProgress::Unknown,
            ContentChange::Remember => {
                steps.push(remember);
                return PairProgress::Wrote;
            }
            // The new copy is created when the old one is gone.
            ContentChange::Edit { edits, .. } if !self.primary && is_refused(&at.kind, copy, &edits) => {
                steps.push(delete(at, copy, Dependents::default()));
                return PairProgress::Waiting;
            }
            // Only marks are missing: there is nothing new to remember or report.
            ContentChange::Edit { edits, guard, .. } if self.remembered.is_some_and(|entry| entry.is_at(&desired)) => {
                let annotated = copy["metadata"]["annotations"].is_object();
                steps.push(Step::Edit { at, edits, guard, annotated });
                return PairProgress::Wrote;
            }
            ContentChange::Edit { edits, guard, certain } => {
                steps.push(Step::RememberNext { entry: self.entry.clone(), value: desired, only: certain });
                let annotated = copy["metadata"]["annotations"].is_object();
                steps.push(Step::Edit { at, edits, guard, annotated });
            }
            ContentChange::Replace(object) => steps.push(Step::Replace { at, object }),
            ContentChange::Apply { fields, .. } if !self.primary && is_refused(&at.kind, copy, &fields) => {
                steps.push(delete(at, copy, Dependents::default()));
                return PairProgress::Waiting;
            }
            ContentChange::Apply { first, .. } => {
                let object = self.applied(mutated, &desired, copy);
                steps.push(Step::Apply { at, object, primary: self.primary, first });
                // The copy itself records what was applied to it; the state only notes that.
                if !self.primary || !entry.is_some_and(StateEntry::is_applied) {
                    steps.push(self.remember_applied(desired));
                }
                self.report(steps, Event::Synced);
                return PairProgress::Wrote;
            }
        }
        steps.push(remember);
        self.report(steps, Event::Synced);
        PairProgress::Wrote
    }

    fn remember(&self, value: Value) -> Step {
        let copy = (!self.primary).then(|| self.copy_at.clone());
        let instead = self.apply.then(|| if self.primary { BY_APPLY.to_owned() } else { sum(&value) });
        Step::Remember { entry: self.entry.clone(), value, copy, instead }
    }

    fn remember_applied(&self, value: Value) -> Step {
        let copy = (!self.primary).then(|| self.copy_at.clone());
        let instead = Some(if self.primary { BY_APPLY.to_owned() } else { applied_mark(&sum(&value)) });
        Step::Remember { entry: self.entry.clone(), value, copy, instead }
    }

    /// What is applied to a copy: every field that should be ours.
    fn applied(&self, mutated: &Value, desired: &Value, copy: &Value) -> Value {
        let mut object = self.placed(mutated);
        drop_keys(&mut object, self.subresources);
        if self.primary {
            set(&mut object, "annotations", self.vocabulary.applied_state, &applied_mark(&sum(desired)));
        }
        for field in ["uid", "resourceVersion"] {
            object["metadata"][field] = copy["metadata"][field].clone();
        }
        object
    }

    /// The object as it is written in the place of the copy, with the link to its source.
    fn placed(&self, mutated: &Value) -> Value {
        let mut object = draft(&self.vocabulary.strip(mutated), &self.copy_at);
        if let Some((link, agent_name)) = self.link {
            link.write(&mut object, self.vocabulary, agent_name);
        }
        object
    }

    /// Reports an event on the object on the consumer's side, whichever of the two that is.
    fn report(&self, steps: &mut Vec<Step>, event: Event) {
        let at = if self.source_at.side.is_consumer() { &self.source_at } else { &self.copy_at };
        steps.push(Step::Report { at: at.clone(), event });
    }
}

/// The object moved to another place: what rules see of a copy that does not exist yet.
pub fn draft(object: &Value, at: &ObjectAddress) -> Value {
    let mut object = object.clone();
    object["apiVersion"] = at.kind.api_version().into();
    object["kind"] = at.kind.kind.as_str().into();
    object["metadata"]["name"] = at.name.as_str().into();
    match &at.namespace {
        Some(namespace) => object["metadata"]["namespace"] = namespace.as_str().into(),
        None => {
            if let Some(metadata) = object["metadata"].as_object_mut() {
                metadata.remove("namespace");
            }
        }
    }
    object
}

/// The step that deletes exactly this object.
pub fn delete(at: ObjectAddress, object: &Value, dependents: Dependents) -> Step {
    let uid = object["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
    Step::Delete { at, uid, dependents }
}

/// An object with another status. A missing status is left out, because servers refuse null where the schema says object.
fn with_status(object: &Value, status: Option<&Value>) -> Value {
    let mut object = object.clone();
    if let Some(fields) = object.as_object_mut() {
        match status {
            Some(status) if !status.is_null() => fields.insert("status".into(), status.clone()),
            _ => fields.remove("status"),
        };
    }
    object
}

/// Whether two statuses are equal; a status that was never written equals null.
fn same_status(a: Option<&Value>, b: Option<&Value>) -> bool {
    a.unwrap_or(&Value::Null) == b.unwrap_or(&Value::Null)
}

#[cfg(test)]
mod tests;
