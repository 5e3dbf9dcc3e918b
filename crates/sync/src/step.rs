//! Steps: what to do, as data.

use serde_json::Value;

use crate::acquired::Acquired;
use crate::address::{ObjectAddress, Role, Side};
use crate::drift::{DriftedCopy, SeenNote};
use crate::edit::{Edit, Guard};
use crate::object::annotation;
use crate::record::Record;
use crate::vocabulary::Vocabulary;

/// What happens to the dependents of a deleted object.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Dependents {
    /// They are deleted afterwards.
    #[default]
    Later,
    /// They are deleted first.
    First,
    /// They stay.
    Stay,
}

impl Dependents {
    /// What the owner of a source has chosen for the dependents of its copy. Without a valid choice, they are deleted in the background,
    /// the default of most kinds.
    pub fn of(vocabulary: &Vocabulary, source: &Value) -> Self {
        match annotation(source, vocabulary.deletion_propagation) {
            Some("foreground") => Self::First,
            Some("orphan") => Self::Stay,
            _ => Self::Later,
        }
    }

    /// The propagation policy in Kubernetes' terms.
    pub fn policy(self) -> &'static str {
        match self {
            Self::Later => "Background",
            Self::First => "Foreground",
            Self::Stay => "Orphan",
        }
    }
}

/// One write. Steps are executed in order; the first failure ends the plan, and the object is reconciled again later.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Replace the list of finalizers, unless the object has changed since.
    SetFinalizers {
        /// The object.
        at: ObjectAddress,
        /// The whole list.
        finalizers: Vec<String>,
        /// The annotation that names the holders of our finalizer, if that changes.
        held_by: Option<Value>,
        /// Precondition.
        resource_version: String,
    },
    /// Make sure that a namespace exists.
    EnsureNamespace {
        /// Which cluster.
        side: Side,
        /// Its name.
        name: String,
    },
    /// Create an object. If it exists already, `adopt` decides whether it may be taken over.
    Create {
        /// Where.
        at: ObjectAddress,
        /// The object.
        object: Value,
    },
    /// Change some fields of a copy, unless somebody else has written it since.
    Edit {
        /// The object.
        at: ObjectAddress,
        /// What changes.
        edits: Vec<Edit>,
        /// What must still be true.
        guard: Guard,
    },
    /// Apply an object server-side, unless it has changed since.
    Apply {
        /// The object.
        at: ObjectAddress,
        /// The desired object, with UID and resourceVersion.
        object: Value,
        /// Whether it is the copy of an order rather than of a related object.
        primary: bool,
        /// Whether we may own some of its fields other than by an apply.
        first: bool,
    },
    /// Send a JSON merge patch.
    Patch {
        /// The object.
        at: ObjectAddress,
        /// The patch.
        patch: Value,
    },
    /// Replace the whole object, unless it has changed since.
    Replace {
        /// The object.
        at: ObjectAddress,
        /// The desired object, with its resourceVersion.
        object: Value,
    },
    /// Replace the status of an object, unless it has changed since.
    WriteStatus {
        /// The object.
        at: ObjectAddress,
        /// The object with the new status and its resourceVersion.
        object: Value,
        /// Key in the state Secret, in case the server does not store the status as it was sent.
        entry: String,
        /// Name of the schema that the server validates with.
        schema: String,
    },
    /// Delete exactly this object.
    Delete {
        /// The object.
        at: ObjectAddress,
        /// Precondition.
        uid: String,
        /// Precondition, where somebody may need it again.
        resource_version: Option<String>,
        /// What becomes of its dependents.
        dependents: Dependents,
    },
    /// Ask the server itself whether a copy of the source is left; if one is found, the plan ends.
    ConfirmNoCopy,
    /// Record what is about to be written to the copy, so that a crash after the next step is noticed.
    RememberNext {
        /// Key in the state Secret.
        entry: String,
        /// Desired state that is about to be written.
        value: Value,
    },
    /// Record what was written to the copy.
    Remember {
        /// Key in the state Secret.
        entry: String,
        /// Desired state that was written.
        value: Value,
        /// Where the copy is, if it should be recorded which object that is.
        copy: Option<ObjectAddress>,
        /// How the agent came to it, if that has just happened and the copy itself does not say so.
        how: Option<Acquired>,
        /// What to record instead of the state itself, where the server remembers that.
        instead: Option<String>,
        /// What to record of what the server stored, if drift is of interest.
        seen: Option<SeenNote>,
    },
    /// Record what the server stored of the copy, and what became of it since.
    RememberSeen {
        /// Key in the state Secret.
        entry: String,
        /// Desired state that it is about.
        value: Value,
        /// Where the copy is.
        copy: ObjectAddress,
        /// What to record.
        seen: SeenNote,
    },
    /// Record which related objects are about to be served, so that they are known whatever happens next.
    Track {
        /// Keys in the state Secret, the records, and what is about to be created.
        records: Vec<(String, Record, Option<Value>)>,
    },
    /// Remove one related object from the state.
    Drop {
        /// Key in the state Secret.
        entry: String,
    },
    /// Remove the whole state of the source.
    Forget,
    /// Report an event to the consumer. Never fails the plan.
    Report {
        /// The object on the consumer's side.
        at: ObjectAddress,
        /// What happened.
        event: Event,
    },
}

impl Step {
    /// The part of the server that is written to; `None` if it is not a single write.
    pub fn role(&self) -> Option<Role> {
        match self {
            // What is remembered is stored on the provider's side.
            Self::RememberNext { .. }
            | Self::Remember { .. }
            | Self::RememberSeen { .. }
            | Self::Track { .. }
            | Self::Drop { .. } => Some(Role::Provider),
            _ => self.address().map(|at| at.side.role),
        }
    }

    /// The object that is written, if it is a single one.
    pub fn address(&self) -> Option<&ObjectAddress> {
        match self {
            Self::SetFinalizers { at, .. }
            | Self::Create { at, .. }
            | Self::Edit { at, .. }
            | Self::Apply { at, .. }
            | Self::Patch { at, .. }
            | Self::Replace { at, .. }
            | Self::WriteStatus { at, .. }
            | Self::Delete { at, .. } => Some(at),
            _ => None,
        }
    }

    /// One word for logs and metrics.
    pub fn verb(&self) -> &'static str {
        match self {
            Self::SetFinalizers { .. } => "set-finalizers",
            Self::EnsureNamespace { .. } => "ensure-namespace",
            Self::Create { .. } => "create",
            Self::Edit { .. } => "edit",
            Self::Apply { .. } => "apply",
            Self::Patch { .. } => "patch",
            Self::Replace { .. } => "replace",
            Self::WriteStatus { .. } => "write-status",
            Self::Delete { .. } => "delete",
            Self::ConfirmNoCopy => "confirm-no-copy",
            Self::RememberNext { .. } => "remember-next",
            Self::Remember { .. } => "remember",
            Self::RememberSeen { .. } => "remember-seen",
            Self::Track { .. } => "track",
            Self::Drop { .. } => "drop",
            Self::Forget => "forget",
            Self::Report { .. } => "report",
        }
    }
}

/// What is reported to the consumer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Event {
    /// The object got its finalizer.
    Accepted,
    /// The copy was created.
    Placed,
    /// The copy was updated.
    Synced,
    /// The status was written back.
    StatusSynced,
    /// The copy is being deleted.
    Cleanup,
    /// The copy of a related object whose original is gone is being deleted.
    Pruned,
    /// The copy is gone.
    Deleted,
    /// The object is no longer synchronized.
    Released,
    /// The status cannot be written to the copy.
    StatusSubresourceMissing,
    /// The status was stored differently from how it was sent.
    StatusAltered,
    /// The status was refused.
    StatusRefused,
}

impl Event {
    /// Whether it needs somebody's attention.
    pub fn is_warning(self) -> bool {
        matches!(self, Self::StatusSubresourceMissing | Self::StatusAltered | Self::StatusRefused)
    }
}

/// When the object is reconciled again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Next {
    /// When a watch reports a change.
    #[default]
    OnChange,
    /// Also after the requeue interval: something is in progress that no watch reports.
    Soon,
    /// Also after a while: changes may happen that no watch reports.
    Later,
    /// At once: what was just written makes the next step possible.
    Now,
}

/// How far a pair has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PairProgress {
    /// Nothing to write.
    Settled,
    /// Steps were added.
    Wrote,
    /// Steps were added, and a status should follow at once.
    WroteBeforeStatus,
    /// The copy is being deleted; wait for it.
    Waiting,
    /// More of the memory must be read first.
    Unknown,
}

/// What to do for one object.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Plan {
    /// Writes, in order.
    pub steps: Vec<Step>,
    /// Writes for related objects, after `steps`. Strands are independent: one that fails does not stop the others.
    pub strands: Vec<Vec<Step>>,
    /// What cannot be done for some related objects.
    pub problems: Vec<String>,
    /// Notices to report although the agent can do nothing about them.
    pub notices: Vec<String>,
    /// Related objects that have only the reference agent's entry. Their records are added with the next write.
    pub implied: Vec<(String, Record)>,
    /// Whether more of the state must be read before anything can be decided.
    pub needs_memory: bool,
    /// What others have changed of copies; nothing if nobody has looked.
    pub drift: Option<Vec<DriftedCopy>>,
    /// Whether it must be read who changed a copy before that can be reported.
    pub needs_managers: bool,
    /// When to reconcile again.
    pub next: Next,
}

impl Plan {
    /// Adds a strand, and requeues as its progress requires.
    pub fn add(&mut self, strand: Vec<Step>, progress: PairProgress) {
        if !strand.is_empty() {
            self.strands.push(strand);
        }
        match progress {
            PairProgress::WroteBeforeStatus => self.next = Next::Now,
            PairProgress::Wrote | PairProgress::Waiting if self.next != Next::Now => self.next = Next::Soon,
            _ => {}
        }
    }

    /// Whether it releases the object.
    pub fn releases(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, Step::Report { event: Event::Released, .. }))
    }

    /// Whether there is nothing to write.
    pub fn is_settled(&self) -> bool {
        let mut steps = self.steps.iter().chain(self.strands.iter().flatten());
        steps.all(|step| matches!(step, Step::Report { .. }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependents_end_in_the_words_of_kubernetes() {
        let policies = [Dependents::Later, Dependents::First, Dependents::Stay].map(Dependents::policy);
        assert_eq!(policies, ["Background", "Foreground", "Orphan"]);
    }
}
