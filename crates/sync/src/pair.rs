//! One source and its copy, whichever side the source is on.

use serde_json::{Value, json};

use crate::acquired::{Acquired, is_kept, is_proven, let_go};
use crate::address::ObjectAddress;
use crate::content::{ContentChange, CopyContent, drop_keys, is_refused, overwritten, remembered};
use crate::drift::Field;
use crate::edit::{self, Edit, Guard};
use crate::error::PairError;
use crate::holders::{Holder, hold, is_held_by, release};
use crate::link::Link;
use crate::mark::Mark;
use crate::memory::{BY_APPLY, CopyNote, StateEntry, checksum, sum};
use crate::object::{annotation, is_deleting, label, set};
use crate::ownership::is_written_by;
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
    /// UID of the copy of a related object, if it is remembered.
    pub copy_uid: Option<&'a str>,
    /// How we came to the copy of a related object with that UID, if it is remembered.
    pub how: Option<Acquired>,
    /// What the copy of a related object carries in its annotation if it was given to us: state can be lost.
    pub proof: Option<&'a str>,
    /// Whether the copy also belongs to another source of ours.
    pub shared: bool,
    /// Whether something else says that the original has a copy of ours. That is the consumer's word: it counts only if the server says that
    /// an agent wrote the copy.
    pub vouched: bool,
    /// Whether the object in the place of the copy belongs to another order, whatever is remembered of it.
    pub ordered: bool,
    /// Whether the copy is the original of what its own original would be the copy of: without a record, nobody knows who was first.
    pub circular: bool,
    /// The name under which we hold the source with the finalizer until the copy is gone; `None` if it is not held.
    pub holder: Option<Holder<'a>>,
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
    /// Whether somebody who may has offered the object in the place of the copy.
    pub offered: bool,
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
}

/// What becomes of a copy when its source goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopyEnd {
    /// It is deleted, because we made it.
    Delete,
    /// It stays, without what we wrote into its metadata.
    LetGo,
    /// It is not ours.
    Leave,
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
        let owner = self.copy.map_or(CopyOwner::Us, |copy| self.owner(copy));
        if owner == CopyOwner::Other {
            return Err(PairError::Taken(self.copy_at.to_string()));
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
            PairProgress::Waiting if self.is_let_go(copy) => {
                steps.truncate(before);
                return Err(PairError::Immutable(self.copy_at.to_string()));
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

    /// Steps for the status alone, while the content of the copy stays as it is.
    pub fn bring_back(&self, status: &mut Vec<Step>) -> Result<(), PairError<T::Error>> {
        let Some(copy) = self.copy else { return Ok(()) };
        let mutated = self.transform.spec(self.source, Some(copy)).map_err(PairError::Transform)?;
        self.status(&mutated, copy, status)
    }

    /// The desired state of the copy, in the form in which it is remembered.
    pub fn desired(&self) -> Result<Value, PairError<T::Error>> {
        let mutated = self.transform.spec(self.source, self.copy).map_err(PairError::Transform)?;
        Ok(remembered(self.vocabulary, &mutated, self.subresources))
    }

    /// What guards a write to the copy as it is: no two copies that differ in our eyes have the same.
    pub fn guard_of(&self, copy: &Value) -> String {
        let mark = annotation(copy, self.vocabulary.applied_state).filter(|_| self.primary);
        mark.or(copy["metadata"]["resourceVersion"].as_str()).unwrap_or_default().to_owned()
    }

    /// The step that sets fields of the copy back to what is desired, under the guard of any other edit. Other fields that have drifted stay
    /// as they are.
    pub fn revert(
        &self,
        desired: &Value,
        copy: &Value,
        fields: &[Field],
        others: &[Field],
    ) -> Result<Step, PairError<T::Error>> {
        let at = self.copy_at.clone();
        if self.apply {
            let mutated = self.transform.spec(self.source, Some(copy)).map_err(PairError::Transform)?;
            let mut object = self.applied(&mutated, desired, copy);
            for field in others {
                copy_field(copy, &mut object, &field.keys);
            }
            return Ok(Step::Apply { at, object, primary: self.primary, first: false });
        }
        let content = CopyContent {
            vocabulary: self.vocabulary,
            desired,
            copy,
            entry: self.remembered,
            partial: self.partial,
            link: self.link,
            is_marked: self.primary,
            subresources: self.subresources,
            floor: self.noted().map_or(0, |noted| noted.write),
        };
        let (edits, guard) = content.revert(fields);
        Ok(Step::Edit { at, edits, guard })
    }

    /// Who owns the object in the place of the copy. That is recorded by us, or by the server, or proven by what only we write to it; that an object equals what
    /// would be written proves nothing, because anybody can have made it, or guessed.
    fn owner(&self, copy: &Value) -> CopyOwner {
        let is_marked = self
            .link
            .is_some_and(|(link, agent)| link.is_on(copy) && label(copy, self.vocabulary.agent_name) == Some(agent));
        if self.primary {
            return CopyOwner::Us;
        }
        if self.ordered {
            return CopyOwner::Other;
        }
        let is_same_object = self.copy_uid.map(|uid| copy["metadata"]["uid"] == uid);
        let is_written = is_written_by(copy, self.vocabulary.manager);
        match is_same_object {
            Some(true) => CopyOwner::Us,
            None if self.was_written() => CopyOwner::Us,
            // The state was lost, or does not apply to it, because it was restored from a backup.
            _ if is_marked || self.proof.is_some_and(|proof| is_proven(self.vocabulary, copy, proof)) => {
                CopyOwner::UsUnnoted
            }
            _ if self.shared => CopyOwner::UsUnnoted,
            // The agent died after it had created the copy; or the state was lost.
            None if is_written && (self.remembered.is_some() || self.vouched) => CopyOwner::UsUnnoted,
            _ if self.offered => CopyOwner::Willing,
            _ => CopyOwner::Other,
        }
    }

    /// Whether a copy is known to have been written.
    fn was_written(&self) -> bool {
        self.remembered.is_some_and(|entry| entry.last.is_some())
    }

    /// What is remembered of the copy of a primary.
    fn noted(&self) -> Option<&CopyNote> {
        self.remembered.and_then(|entry| entry.copy.as_ref())
    }

    /// How we came to the copy, as far as is known. What speaks against a deletion counts more.
    fn acquired(&self, copy: &Value) -> Option<Acquired> {
        let uid = copy["metadata"]["uid"].as_str();
        let related = self.how.filter(|_| self.copy_uid.is_some() && self.copy_uid == uid);
        let noted = self.noted().filter(|noted| Some(noted.uid.as_str()) == uid).and_then(|noted| noted.how);
        let known = related.or(noted).filter(|how| how.is_let_go());
        known.or(Acquired::of(self.vocabulary, copy)).or(related).or(noted)
    }

    /// Whether the copy stays when its source goes. A consumer can write to the metadata of copies on her own side: there, nobody can ask for it.
    fn is_let_go(&self, copy: &Value) -> bool {
        if !self.copy_at.side.is_consumer() && is_kept(self.vocabulary, copy) {
            return true;
        }
        self.acquired(copy).map_or(self.circular, Acquired::is_let_go)
    }

    /// What becomes of the object in the place of the copy when its source goes. A deletion cannot be undone, so only what is recorded
    /// and what is proven count here.
    pub fn end(&self) -> CopyEnd {
        let Some(copy) = self.copy else { return CopyEnd::Leave };
        match self.owner(copy) {
            CopyOwner::Us | CopyOwner::UsUnnoted if self.is_let_go(copy) => CopyEnd::LetGo,
            CopyOwner::Us | CopyOwner::UsUnnoted => CopyEnd::Delete,
            CopyOwner::Willing | CopyOwner::Other => CopyEnd::Leave,
        }
    }

    /// Whether it is certain that we made the copy.
    pub fn made_copy(&self) -> bool {
        self.copy.is_some_and(|copy| self.acquired(copy) == Some(Acquired::Made)) && self.end() == CopyEnd::Delete
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

    /// The step that gives the source a status; none if it has it, as far as the server accepts it.
    pub fn write_status(&self, wanted: &Value) -> Option<Step> {
        if self.is_settled_status(Some(wanted), self.source.get("status")) {
            return None;
        }
        let object = with_status(self.source, Some(wanted));
        let (at, entry, schema) = (self.source_at.clone(), self.entry.clone(), self.schema.to_owned());
        Some(Step::WriteStatus { at, object, entry, schema })
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
        steps.push(Step::Remember {
            entry: self.entry.clone(),
            value,
            copy: None,
            how: None,
            instead: None,
            seen: None,
        });
        self.report(steps, Event::StatusSynced);
        Ok(())
    }

    /// Steps that delete the copy, and then remove the finalizer from the source.
    pub fn remove(&self, steps: &mut Vec<Step>) -> PairProgress {
        if let Some(copy) = self.copy {
            if self.is_let_go(copy) {
                // It is not found by its link any more.
                steps.extend(release_copy(self.vocabulary, &self.copy_at, copy));
                return PairProgress::Waiting;
            }
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
        let Some(holder) = self.holder.filter(|holder| is_held_by(self.vocabulary, self.source, *holder)) else {
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
            let mark = Mark::first(sum(&value)).to_string();
            set(&mut object, "annotations", self.vocabulary.applied_state, &mark);
        }
        // It had a copy before, which may still exist elsewhere, out of sight.
        if self.primary && self.remembered.is_some() {
            steps.push(Step::ConfirmNoCopy);
            // What is remembered is about that copy, and would be taken for what is on the new one.
            steps.extend((!self.apply).then(|| self.intend(&value)).flatten());
        }
        if let Some(namespace) = &self.copy_at.namespace {
            steps.push(Step::EnsureNamespace { side: self.copy_at.side, name: namespace.clone() });
        }
        steps.push(Step::Create { at: self.copy_at.clone(), object });
        steps.push(self.remember_as(value, Some(Acquired::Made)));
        self.report(steps, Event::Placed);
    }

    fn content(&self, mutated: &Value, copy: &Value, owner: CopyOwner, steps: &mut Vec<Step>) -> PairProgress {
        let desired = remembered(self.vocabulary, mutated, self.subresources);
        let remember = self.remember(desired.clone());
        let at = self.copy_at.clone();
        let (partial, link, subresources) = (self.partial, self.link, self.subresources);
        // The state applies neither to an object that somebody else put there, nor to one that was restored from a backup. An apply brings
        // every field of ours up to date anyway; and as it names no version, a copy that is only seen late would be applied to again and again.
        let noted = self.noted().filter(|_| !self.apply);
        let is_restored = noted.is_some_and(|noted| noted.is_restored(self.vocabulary, copy));
        let entry = self.remembered.filter(|_| owner == CopyOwner::Us && !is_restored);
        let floor = noted.map_or(0, |noted| noted.write);
        if owner == CopyOwner::Willing {
            steps.extend([Step::Replace { at, object: self.adopted(&desired, copy) }, remember]);
            self.report(steps, Event::Synced);
            return PairProgress::Wrote;
        }
        let (desired_ref, is_marked) = (&desired, self.primary);
        let vocabulary = self.vocabulary;
        let content = CopyContent {
            vocabulary,
            desired: desired_ref,
            copy,
            entry,
            partial,
            link,
            is_marked,
            subresources,
            floor,
        };
        // An object that was not ours is written as a whole, once; from then on it is known who owns its fields.
        let is_known = entry.is_some()
            || (self.primary && owner == CopyOwner::Us && annotation(copy, self.vocabulary.applied_state).is_some());
        let is_applied = entry.is_some_and(StateEntry::is_applied);
        // Only the server knows what was applied: what changes is applied once more, and remembered from then on.
        let once_more = (!self.apply && is_applied && is_known).then(|| content.apply());
        let change = match once_more.filter(|change| matches!(change, ContentChange::Apply { .. })) {
            Some(change) => change,
            None if self.apply && is_known => content.apply(),
            None => content.compare(),
        };
        match change {
            ContentChange::None => return PairProgress::Settled,
            ContentChange::Unknown => return PairProgress::Unknown,
            ContentChange::Remember => {
                steps.push(remember);
                return PairProgress::Wrote;
            }
            // The new copy is created when the old one is gone.
            ContentChange::Edit { edits, .. } if !self.primary && is_refused(&at.kind, copy, &edits) => {
                steps.push(delete_unchanged(at, copy, Dependents::default()));
                return PairProgress::Waiting;
            }
            // Only marks are missing: there is nothing new to remember or report.
            ContentChange::Edit { edits, guard, .. } if self.remembered.is_some_and(|entry| entry.is_at(&desired)) => {
                steps.push(Step::Edit { at, edits, guard });
                return PairProgress::Wrote;
            }
            ContentChange::Void { edits, guard, state } => {
                steps.extend([Step::Edit { at, edits, guard }, self.remember(state)]);
                return PairProgress::Wrote;
            }
            ContentChange::Edit { edits, guard } => {
                steps.extend(self.intend(&desired));
                steps.push(Step::Edit { at, edits, guard });
            }
            ContentChange::Replace(object) => {
                // Whose a related copy is follows from what is remembered, so nothing is noted before it is certain.
                steps.extend(self.primary.then(|| self.intend(&desired)).flatten());
                steps.push(Step::Replace { at, object });
            }
            ContentChange::Apply { fields, .. } if !self.primary && is_refused(&at.kind, copy, &fields) => {
                steps.push(delete_unchanged(at, copy, Dependents::default()));
                return PairProgress::Waiting;
            }
            ContentChange::Apply { first, .. } => {
                let object = self.applied(mutated, &desired, copy);
                // The copy of an order says itself what was applied to it; others do not.
                steps.extend((!self.primary).then(|| self.intend(&desired)).flatten());
                steps.push(Step::Apply { at, object, primary: self.primary, first });
                // The copy itself records what was applied to it; the state only notes that, unless something removes the mark.
                let is_marked = annotation(copy, self.vocabulary.applied_state).is_some();
                if !self.apply {
                    steps.push(remember);
                } else if !(self.primary && is_applied && is_marked) {
                    steps.push(self.remember_applied(desired, is_marked));
                }
                self.report(steps, Event::Synced);
                return PairProgress::Wrote;
            }
        }
        steps.push(remember);
        self.report(steps, Event::Synced);
        PairProgress::Wrote
    }

    /// Records what is about to be written, unless it is known already that the copy may be in that state.
    fn intend(&self, value: &Value) -> Option<Step> {
        let is_known = self.remembered.is_some_and(|entry| entry.has(value));
        (!is_known).then(|| Step::RememberNext { entry: self.entry.clone(), value: value.clone() })
    }

    fn remember(&self, value: Value) -> Step {
        self.remember_as(value, None)
    }

    fn remember_as(&self, value: Value, how: Option<Acquired>) -> Step {
        let instead = self.apply.then(|| if self.primary { BY_APPLY.to_owned() } else { sum(&value) });
        Step::Remember { entry: self.entry.clone(), value, copy: Some(self.copy_at.clone()), how, instead, seen: None }
    }

    fn remember_applied(&self, value: Value, is_marked: bool) -> Step {
        let is_noted = self.primary && is_marked;
        let instead = Some(if is_noted { BY_APPLY.to_owned() } else { applied(sum(&value)).to_string() });
        Step::Remember {
            entry: self.entry.clone(),
            value,
            copy: Some(self.copy_at.clone()),
            how: None,
            instead,
            seen: None,
        }
    }

    /// An object that was offered, with the whole desired state, and with how we came to it: what we made once is ours still.
    fn adopted(&self, desired: &Value, copy: &Value) -> Value {
        let object = overwritten(self.vocabulary, desired, copy, self.link, self.subresources);
        let mut object = object.unwrap_or_else(|| copy.clone());
        if !self.vocabulary.acquired.is_empty() {
            let how = Acquired::of(self.vocabulary, copy).unwrap_or(Acquired::Adopted);
            set(&mut object, "annotations", self.vocabulary.acquired, &how.mark(self.proof));
        }
        object
    }

    /// What is applied to a copy: every field that should be ours.
    fn applied(&self, mutated: &Value, desired: &Value, copy: &Value) -> Value {
        let mut object = self.placed(mutated);
        drop_keys(&mut object, self.subresources);
        if self.primary {
            let mark = annotation(copy, self.vocabulary.applied_state);
            let mark = Mark::after(mark, sum(desired), true).to_string();
            set(&mut object, "annotations", self.vocabulary.applied_state, &mark);
        }
        // What is owned by an apply is removed by the next one that does not name it.
        if let Some(acquired) = annotation(copy, self.vocabulary.acquired) {
            set(&mut object, "annotations", self.vocabulary.acquired, acquired);
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

/// Gives a field of one object to another, or takes it away.
fn copy_field(from: &Value, to: &mut Value, keys: &[String]) {
    let value = keys.iter().try_fold(from, |object, key| object.get(key)).cloned();
    edit::apply(&[Edit { path: keys.to_vec(), value }], to);
}

/// What is remembered of a related copy that was applied.
fn applied(sum: String) -> Mark {
    Mark { sum, applied: true, number: 0 }
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

/// The step that deletes exactly this object, whatever has been written to it since.
pub fn delete(at: ObjectAddress, object: &Value, dependents: Dependents) -> Step {
    let uid = object["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
    Step::Delete { at, uid, resource_version: None, dependents }
}

/// The same unless it has changed since: somebody may need it again.
pub fn delete_unchanged(at: ObjectAddress, object: &Value, dependents: Dependents) -> Step {
    let text = |field: &str| object["metadata"][field].as_str().map(str::to_owned);
    let uid = text("uid").unwrap_or_default();
    Step::Delete { at, uid, resource_version: text("resourceVersion"), dependents }
}

/// The step that lets exactly this version of a copy go; none if nothing of ours is on it.
pub fn release_copy(vocabulary: &Vocabulary, at: &ObjectAddress, copy: &Value) -> Option<Step> {
    let edits = let_go(vocabulary, copy);
    let guard = Guard::Version(copy["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned());
    (!edits.is_empty()).then(|| Step::Edit { at: at.clone(), edits, guard })
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
