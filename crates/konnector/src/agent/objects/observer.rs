//! Who counts writes.

use std::time::Duration;

use carrick_sync::executor::{Observer, StepError};
use carrick_sync::{Role, Step};

/// Whoever counts every write.
pub trait WriteObserver: Send + Sync {
    /// A step was executed on a side, or failed for a reason in one word.
    fn wrote(&self, verb: &'static str, role: Option<Role>, took: Duration, failed: Option<&str>);
}

/// Nobody counts.
impl WriteObserver for () {
    fn wrote(&self, _: &'static str, _: Option<Role>, _: Duration, _: Option<&str>) {}
}

/// Reports every step that is executed to an observer, with the reason of a failure in one word.
pub struct Counting<'a>(pub &'a dyn WriteObserver);

impl Observer for Counting<'_> {
    type Begun = &'static str;

    fn begins(&self, step: &Step) -> &'static str {
        step.verb()
    }

    fn ended(&self, verb: &'static str, role: Option<Role>, took: Duration, result: Result<(), &StepError>) {
        let reason = result.err().map(|error| match error {
            StepError::Write { source, .. } => source.reason(),
            error if error.is_race() => "Race".to_owned(),
            _ => "Refused".to_owned(),
        });
        self.0.wrote(verb, role, took, reason.as_deref());
    }
}
