//! Who is told about writes.

use std::time::Duration;

use carrick_sync::Role;

/// Who is told about every write.
pub trait WriteObserver: Send + Sync {
    /// A step was executed on a side, or failed for a reason in one word.
    fn wrote(&self, verb: &'static str, role: Option<Role>, took: Duration, failed: Option<&str>);
}

/// Nobody counts.
impl WriteObserver for () {
    fn wrote(&self, _: &'static str, _: Option<Role>, _: Duration, _: Option<&str>) {}
}
