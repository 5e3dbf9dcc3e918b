//! One endless stream of events about all objects of a kind below a base URL.
//!
//! ```text
//!            ┌────────────── 410, ERROR event, silence of an unfinished list ─────────────┐
//!            ▼                                                                            │
//!   streaming list ──(refused or ignored: remembered)──▶ list page by page                │
//!            │                                                  │                         │
//!            └──▶ Begin, Listed…, Synced ◀──────────────────────┘                         │
//!                              │                                                          │
//!                              ▼                                                          │
//!                watch from the last version ──▶ Applied, Deleted ────────────────────────┘
//!                              ▲            │
//!                              └────────────┘ end of stream, broken connection, silence
//! ```
//!
//! Errors are waited out with growing pauses and told once per outage. The stream ends only when it is dropped.

mod backoff;
mod lines;
mod state;

use std::time::Duration;

use futures::Stream;

use crate::client::{Client, ListOptions};
use crate::error::Error;
use crate::object::Object;
use crate::resource::Resource;

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
}

/// What to watch, and how.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WatchOptions {
    /// Only this namespace.
    pub namespace: Option<String>,
    /// Only objects that match.
    pub select: ListOptions,
    /// Objects per page when listing.
    pub page_size: u32,
    /// Whether to try a streaming list before a paged one.
    pub streaming_lists: bool,
    /// How long the server shall keep one watch request open; up to a fifth more, so that not all end together.
    pub timeout: Duration,
    /// A watch that is silent for longer than its time and this is considered dead.
    pub grace: Duration,
    /// How long an unfinished streaming list may be silent before it is replaced by a paged list.
    pub list_silence: Duration,
}

impl Default for WatchOptions {
    fn default() -> Self {
        Self {
            namespace: None,
            select: ListOptions::default(),
            page_size: 500,
            streaming_lists: true,
            timeout: Duration::from_secs(290),
            grace: Duration::from_secs(10),
            list_silence: Duration::from_secs(30),
        }
    }
}

impl WatchOptions {
    /// Only objects with these labels.
    pub fn labels(selector: impl Into<String>) -> Self {
        Self { select: ListOptions::labels(selector), ..Self::default() }
    }

    /// Only objects with these fields, such as `metadata.name=a`.
    pub fn fields(selector: impl Into<String>) -> Self {
        Self { select: ListOptions::fields(selector), ..Self::default() }
    }
}

/// Watches all objects of a kind; the stream ends only when it is dropped.
pub fn watch(client: Client, resource: Resource, options: WatchOptions) -> impl Stream<Item = Event> + Send + 'static {
    futures::stream::unfold(state::Watch::new(client, resource, options), |mut watch| async move {
        let event = watch.next().await;
        Some((event, watch))
    })
}
