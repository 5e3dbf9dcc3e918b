//! Counts the steps of one reconcile, and what they mean for the way from source to copy and back.

use std::time::Duration;

use carrick_multicluster::Pace;
use carrick_sync::executor::{Observer, StepError};
use tokio::time::Instant;

use crate::agent::metrics::Metrics;
use crate::decide::{ObjectAddress, Role, Step};
use crate::rules::Rules;
use crate::rules::metadata::{KCP_SIDE, SERVICE_SIDE, SourceKey};

/// One reconcile of one object.
pub(in crate::agent::objects) struct Tally<'a> {
    /// Where it is counted.
    pub metrics: &'a Metrics,
    /// Who learns how long servers take.
    pub pace: &'a Pace,
    /// Which object.
    pub object: &'a SourceKey,
    /// What its PublishedResource says.
    pub rules: &'a Rules,
    /// Since when its change is known.
    pub since: Instant,
}

impl Observer for Tally<'_> {
    type Begun = (&'static str, Option<Leg>);

    fn begins(&self, step: &Step) -> Self::Begun {
        tracing::debug!(object = %self.object, step = step.verb(), "Executing a step.");
        (step.verb(), Leg::of(step, self.rules))
    }

    fn ended(&self, (verb, hop): Self::Begun, role: Option<Role>, took: Duration, result: Result<(), &StepError>) {
        match (role, result) {
            (_, Err(error)) if error.is_overload() => self.pace.refused(),
            (Some(role), _) => self.pace.answered(role as usize, took),
            (None, _) => {}
        }
        if result.is_ok() {
            self.executed(verb, hop);
        }
    }
}

impl Tally<'_> {
    /// Counts a step that was executed.
    fn executed(&self, verb: &'static str, hop: Option<Leg>) {
        self.metrics.executed(verb);
        match hop {
            Some(Leg::Copy { new }) => self.metrics.legs.copy_written(self.object, self.since.elapsed(), new),
            Some(Leg::Status) => self.metrics.legs.status_written(self.object, self.since.elapsed()),
            None => {}
        }
    }
}

/// A part of the way that a step ends.
#[derive(Clone, Copy)]
pub(in crate::agent::objects) enum Leg {
    /// The copy is written.
    Copy {
        /// Whether it was not there before.
        new: bool,
    },
    /// The status is back.
    Status,
}

impl Leg {
    /// The part that a step ends, if it ends one.
    pub fn of(step: &Step, rules: &Rules) -> Option<Self> {
        let is_copy = |at: &ObjectAddress| at.side == SERVICE_SIDE && *at.kind == rules.local;
        let is_source = |at: &ObjectAddress| at.side == KCP_SIDE && *at.kind == rules.remote;
        match step {
            Step::Create { at, .. } if is_copy(at) => Some(Self::Copy { new: true }),
            Step::Patch { at, .. } | Step::Replace { at, .. } if is_copy(at) => Some(Self::Copy { new: false }),
            Step::WriteStatus { at, .. } if is_source(at) => Some(Self::Status),
            _ => None,
        }
    }
}
