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
//! The watch retries after errors with growing pauses, and reports each outage once. The stream ends only when it is dropped.

mod backoff;
mod event;
mod lines;
mod machine;
mod options;

use futures::Stream;

use crate::client::Client;
use crate::resource::Resource;

pub use event::Event;
pub use options::WatchOptions;

/// Watches all objects of a kind; the stream ends only when it is dropped.
pub fn watch(client: Client, resource: Resource, options: WatchOptions) -> impl Stream<Item = Event> + Send + 'static {
    futures::stream::unfold(machine::Watch::new(client, resource, options), |mut watch| async move {
        let event = watch.next().await;
        Some((event, watch))
    })
}
