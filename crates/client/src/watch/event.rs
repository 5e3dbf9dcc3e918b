//! What a watch reports.

use crate::error::Error;
use crate::object::Object;

/// What happened to the watched objects, or to the watch.
#[derive(Clone, Debug)]
pub enum Event {
    /// A complete list begins. What is not [`Event::Listed`] before [`Event::Synced`] does not exist any more.
    Begin,
    /// An object of the list.
    Listed(Object),
    /// The list is complete.
    Synced,
    /// An object was created or changed.
    Applied(Object),
    /// An object was deleted, or does not match the selectors any more. Holds its last state.
    Deleted(Object),
    /// The server cannot be reached or refuses; sent once, then the loop goes on trying.
    Failing(Error),
    /// The outage is over.
    Recovered,
    /// The server has gone back in time: it was restored from a backup, or replaced. What was reported before may be undone, and its
    /// versions cannot be compared with those that come. A complete list has begun, or begins next.
    WentBack {
        /// The newest version that was known.
        known: u64,
        /// The server's version now.
        found: u64,
    },
}
