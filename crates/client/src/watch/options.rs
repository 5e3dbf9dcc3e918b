//! What to watch, and how.

use std::time::Duration;

use crate::lists::ListOptions;

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
    /// How long the server is asked to keep one watch request open; up to a fifth more, so that not all end together.
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
