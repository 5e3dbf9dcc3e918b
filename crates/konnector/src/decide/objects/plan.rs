//! What to do about one object.

use carrick_sync::memory::StatusNote;
use carrick_sync::{ObjectAddress, Step};

/// What is remembered about an object as long as the konnector runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Noted {
    /// A status that the consumer's server did not store as it was sent.
    pub status: Option<StatusNote>,
    /// Checksum of what a server made of content that it did not store as it was sent.
    pub altered: Option<String>,
}

/// What has to be asked of a server itself before the steps of a plan, because a cache may be wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Confirm {
    /// This object is gone.
    Gone(ObjectAddress),
}

/// What to do about an object. Whoever has carried it out decides again, until there is nothing left to write.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ObjectPlan {
    /// What has to be asked first.
    pub confirm: Option<Confirm>,
    /// Writes, in order.
    pub steps: Vec<Step>,
}

impl ObjectPlan {
    /// Whether there is nothing to write.
    pub fn is_settled(&self) -> bool {
        self.steps.is_empty()
    }

    /// Whether there is nothing to write but a status.
    pub fn is_settled_but_for_status(&self) -> bool {
        self.steps.iter().all(|step| matches!(step, Step::WriteStatus { .. }))
    }
}
