//! One source and its copy, whichever side the truth is on.

use serde_json::{Value, json};

use super::DecideError;
use super::content::{Change, compare, is_exact, is_refused, remembered};
use super::state::Entry;
use super::step::{Dependents, Event, Place, Side, Step};
use crate::api::FINALIZER;
use crate::rules::metadata::{Link, is_deleting, strip};
use crate::rules::mutation::Mutation;

/// Which way the status travels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StatusFlow {
    /// Nowhere.
    None,
    /// From the copy to the source.
    Back,
    /// From the copy to the source where there is no status subresource: status is a field like any other then, which the consumer may
    /// write as well.
    BackAsField,
    /// From the source to the copy.
    Forward,
    /// It should travel from the source to the copy, which cannot have one.
    Blocked,
}

/// A source, its copy and what is to be observed between them.
pub(super) struct Pair<'a> {
    pub source: &'a Value,
    pub source_at: Place,
    pub copy: Option<&'a Value>,
    /// Where the copy is; where it shall be, if there is none.
    pub copy_at: Place,
    /// Key of this pair in the remembered state.
    pub entry: String,
    pub remembered: Option<&'a Entry>,
    /// Whether the source is held by our finalizer until the copy is gone.
    pub blocks: bool,
    /// Whether this is the consumer's order itself and not a related object.
    pub primary: bool,
    /// Link and agent name, for copies that carry them.
    pub link: Option<(&'a Link, &'a str)>,
    pub subresources: &'a [&'a str],
    pub status: StatusFlow,
    pub mutation: &'a Mutation,
}

/// How far a pair is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// Nothing to write.
    Settled,
    /// Steps were added.
    Wrote,
    /// Steps were added, and a status is to follow at once.
    WroteBeforeStatus,
    /// The copy is being deleted; wait for it.
    Waiting,
}

impl Pair<'_> {
    /// Steps that keep the copy in line with a source that stays.
    pub fn keep(&self, steps: &mut Vec<Step>) -> Result<Progress, DecideError> {
        let before = steps.len();
        if self.blocks && !has_finalizer(self.source) {
            let mut finalizers = finalizers(self.source);
            finalizers.push(FINALIZER.to_owned());
            finalizers.sort();
            steps.push(set_finalizers(&self.source_at, self.source, finalizers));
            self.report(steps, Event::Accepted);
        }
        let mutated = match self.copy {
            None if !self.mutation.keeps_spec() => {
                self.mutation.spec(self.source, Some(&draft(self.source, &self.copy_at)))?
            }
            copy => self.mutation.spec(self.source, copy)?,
        };
        let Some(copy) = self.copy else {
            self.create(&mutated, steps);
            return Ok(self.wrote(None));
        };
        if is_deleting(copy) {
            return Ok(Progress::Waiting);
        }
        if self.content(&mutated, copy, steps) == Progress::Waiting {
            return Ok(Progress::Waiting);
        }
        // Only once the spec is in line: before that the status belongs to an older spec.
        let progress = if steps.len() == before {
            self.status(&mutated, copy, steps)?;
            if steps.len() == before { Progress::Settled } else { Progress::Wrote }
        } else {
            self.wrote(Some(copy))
        };
        if self.status == StatusFlow::Blocked && self.source.get("status").is_some() {
            self.report(steps, Event::StatusSubresourceMissing);
        }
        Ok(progress)
    }

    /// How far the pair is once its content is written.
    fn wrote(&self, copy: Option<&Value>) -> Progress {
        let status = copy.and_then(|copy| copy.get("status"));
        let is_behind = self.status == StatusFlow::Forward && !same_status(self.source.get("status"), status);
        if is_behind { Progress::WroteBeforeStatus } else { Progress::Wrote }
    }

    fn status(&self, mutated: &Value, copy: &Value, steps: &mut Vec<Step>) -> Result<(), DecideError> {
        let (from, to, to_at) = match self.status {
            StatusFlow::None | StatusFlow::Blocked => return Ok(()),
            StatusFlow::BackAsField => {
                return self.status_as_field(copy, &self.mutation.status(copy, mutated)?, steps);
            }
            StatusFlow::Forward => (self.mutation.status(mutated, copy)?, copy, &self.copy_at),
            StatusFlow::Back => (self.mutation.status(copy, mutated)?, self.source, &self.source_at),
        };
        if same_status(from.get("status"), to.get("status")) {
            return Ok(());
        }
        let object = with_status(to, from.get("status"));
        steps.push(Step::WriteStatus { at: to_at.clone(), object });
        if self.status == StatusFlow::Back {
            self.report(steps, Event::StatusSynced);
        }
        Ok(())
    }

    /// A status that the copy got from somebody else than its source goes back; one that came from the source does not.
    fn status_as_field(&self, copy: &Value, seen_from_kcp: &Value, steps: &mut Vec<Step>) -> Result<(), DecideError> {
        let (last, old, new) =
            (self.remembered.and_then(|entry| entry.last.as_ref()), &self.source["status"], &seen_from_kcp["status"]);
        if copy["status"].is_null() || last.is_some_and(|last| last["status"] == copy["status"]) || old == new {
            return Ok(());
        }
        let resource_version = &self.source["metadata"]["resourceVersion"];
        let patch =
            json!({"metadata": {"resourceVersion": resource_version}, "status": carrick_json::merge::diff(old, new)});
        steps.push(Step::Patch { at: self.source_at.clone(), patch });
        // Not a change of the desired state: without this it would be sent to the copy again.
        let mut source = self.source.clone();
        source["status"] = new.clone();
        let value = remembered(&self.mutation.spec(&source, Some(copy))?, self.subresources);
        steps.push(Step::Remember { entry: self.entry.clone(), value });
        self.report(steps, Event::StatusSynced);
        Ok(())
    }

    /// Whether the copy is exactly what the rules make of the source. Rules that fail make nothing.
    pub fn is_exact(&self) -> bool {
        let Some(copy) = self.copy else { return false };
        let mutated = self.mutation.spec(self.source, Some(copy));
        mutated.is_ok_and(|mutated| is_exact(&remembered(&mutated, self.subresources), copy, self.subresources))
    }

    /// Steps that remove the copy, and then the finalizer on the source.
    pub fn remove(&self, steps: &mut Vec<Step>) -> Progress {
        if let Some(copy) = self.copy {
            if !is_deleting(copy) {
                self.report(steps, Event::Cleanup);
                let consumer = (self.source_at.side == Side::Kcp).then_some(self.source);
                steps.push(delete(self.copy_at.clone(), copy, consumer));
            }
            return Progress::Waiting;
        }
        if !self.blocks || !has_finalizer(self.source) {
            return Progress::Settled;
        }
        if self.primary {
            steps.push(Step::ConfirmNoCopy);
            steps.push(Step::Forget);
        }
        steps.push(without_finalizer(&self.source_at, self.source));
        self.report(steps, Event::Deleted);
        Progress::Wrote
    }

    fn create(&self, mutated: &Value, steps: &mut Vec<Step>) {
        let mut object = draft(&strip(mutated), &self.copy_at);
        if let Some((link, agent_name)) = self.link {
            link.write(&mut object, agent_name);
        }
        // It had a copy before, which may be somewhere else and just out of sight.
        if self.primary && self.remembered.is_some() {
            steps.push(Step::ConfirmNoCopy);
        }
        if let Some(namespace) = &self.copy_at.namespace {
            steps.push(Step::EnsureNamespace { side: self.copy_at.side, name: namespace.clone() });
        }
        steps.push(Step::Create { at: self.copy_at.clone(), object });
        steps.push(Step::Remember { entry: self.entry.clone(), value: remembered(mutated, self.subresources) });
        self.report(steps, Event::Placed);
    }

    fn content(&self, mutated: &Value, copy: &Value, steps: &mut Vec<Step>) -> Progress {
        let desired = remembered(mutated, self.subresources);
        let remember = Step::Remember { entry: self.entry.clone(), value: desired.clone() };
        let at = self.copy_at.clone();
        match compare(&desired, copy, self.remembered, self.link, self.subresources) {
            Change::None => return Progress::Settled,
            Change::Remember => {
                steps.push(remember);
                return Progress::Wrote;
            }
            // The new one is created when the old one is gone.
            Change::Patch(patch) if !self.primary && is_refused(&at.kind, copy, &patch) => {
                steps.push(delete(at, copy, None));
                return Progress::Waiting;
            }
            // Only marks are missing: there is nothing new to be remembered or told.
            Change::Patch(patch) if self.remembered.is_some_and(|entry| entry.is_at(&desired)) => {
                steps.push(Step::Patch { at, patch });
                return Progress::Wrote;
            }
            Change::Patch(patch) => {
                steps.push(Step::RememberNext { entry: self.entry.clone(), value: desired });
                steps.push(Step::Patch { at, patch });
            }
            Change::Replace(object) => steps.push(Step::Replace { at, object }),
        }
        steps.push(remember);
        self.report(steps, Event::Synced);
        Progress::Wrote
    }

    /// Events go to the object in kcp, whichever of the two it is.
    fn report(&self, steps: &mut Vec<Step>, event: Event) {
        let at = if self.source_at.side == Side::Kcp { &self.source_at } else { &self.copy_at };
        steps.push(Step::Report { at: at.clone(), event });
    }
}

/// The object in another place. Rules see this of a copy that does not exist yet.
pub(super) fn draft(object: &Value, at: &Place) -> Value {
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

/// Whether the object carries our finalizer.
pub fn has_finalizer(object: &Value) -> bool {
    finalizers(object).iter().any(|f| f == FINALIZER)
}

/// The step that deletes exactly this object, as the consumer's original of it wishes.
pub(super) fn delete(at: Place, object: &Value, consumer: Option<&Value>) -> Step {
    let uid = object["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
    Step::Delete { at, uid, dependents: consumer.map(Dependents::of).unwrap_or_default() }
}

/// The step that takes our finalizer off an object.
pub(super) fn without_finalizer(at: &Place, object: &Value) -> Step {
    let mut finalizers = finalizers(object);
    finalizers.retain(|f| f != FINALIZER);
    set_finalizers(at, object, finalizers)
}

fn set_finalizers(at: &Place, object: &Value, finalizers: Vec<String>) -> Step {
    let resource_version = object["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned();
    Step::SetFinalizers { at: at.clone(), finalizers, resource_version }
}

fn finalizers(object: &Value) -> Vec<String> {
    let list = object["metadata"]["finalizers"].as_array();
    list.into_iter().flatten().filter_map(|f| f.as_str().map(str::to_owned)).collect()
}

/// An object with another status. No status is left out: servers refuse null where the schema says object.
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

/// A status that was never written equals null; everything else is compared as it is.
fn same_status(a: Option<&Value>, b: Option<&Value>) -> bool {
    a.unwrap_or(&Value::Null) == b.unwrap_or(&Value::Null)
}
