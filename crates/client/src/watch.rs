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
//!                  ▲     ▲               │
//!                  │     └───────────────┤ the time of the request is over
//!                  └── small list ◀──────┘ ended early, broken connection, silence
//!                          │
//!                          └──▶ a version below the one that is known: list, WentBack
//! ```
//!
//! A server that was restored from a backup accepts a watch at a version of its future and stays silent, so a watch that did not end
//! in order first asks for the server's version. A server that was away for a while is listed: it may have passed the version already.
//!
//! The watch retries after errors with growing pauses, and reports each outage once. The stream ends only when it is dropped.

mod backoff;
mod clock;
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
