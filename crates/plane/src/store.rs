//! Objects, one revision counter, and the log of recent changes. Pure data: no HTTP, no kcp.
//!
//! ```text
//!   commit ─▶ disk (if there is one) ─▶ objects ─▶ log ─▶ topics: the part of the log somebody watches ─▶ watchers
//! ```
//!
//! Every write takes the next revision. Watchers read a shared log at their own pace with a cursor each, so a slow one never
//! holds up a writer; when the log has moved past its cursor its stream ends. A watcher of one kind reads, and is woken by,
//! the changes of that kind only. The log is bounded in number and in bytes.

mod base;
mod change;
mod contents;
mod disk;
mod error;
mod key;
mod log;
mod object;
mod page;
mod size;
mod snapshot;
mod watch;

pub use base::Store;
pub use change::{Change, Expect, Stored, revision_of};
pub use disk::Durability;
pub use error::{Expired, StoreError};
pub use key::{Key, Kind};
pub use log::{LogLimits, Topic};
pub use object::Object;
pub use page::{Page, Selection};
pub use snapshot::Snapshot;
pub use watch::Watch;

#[cfg(test)]
mod tests;
