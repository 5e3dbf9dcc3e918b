//! How a watch is doing.

use std::sync::Arc;

use carrick_client::Error;
use carrick_client::watch::Event;
use tokio::time::Instant;

/// How the watch of one kind at one endpoint is doing.
#[derive(Clone, Debug)]
pub enum WatchState {
    /// No answer has arrived yet.
    Connecting,
    /// The first list comes in.
    Listing,
    /// Everything is known and changes arrive.
    Live,
    /// The endpoint cannot be reached, or refuses. What was known is kept; the watch goes on trying.
    Failing {
        /// Since when.
        since: Instant,
        /// What is wrong.
        error: Arc<Error>,
    },
}

impl WatchState {
    /// One word for logs and metrics.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Connecting => "connecting",
            Self::Listing => "listing",
            Self::Live => "live",
            Self::Failing { .. } => "failing",
        }
    }

    /// Whether everything is known and changes arrive.
    pub fn is_live(&self) -> bool {
        matches!(self, Self::Live)
    }
}

/// Follows the events of one watch.
#[derive(Debug)]
pub(super) struct Progress {
    pub(super) state: WatchState,
    /// Lists that were begun.
    pub(super) lists: u64,
    /// Whether the watch is over: its last events do not count.
    pub(super) ended: bool,
    /// Whether the watch has reported an outage, whose end it will report too.
    outage: bool,
}

impl Default for Progress {
    fn default() -> Self {
        Self { state: WatchState::Connecting, lists: 0, ended: false, outage: false }
    }
}

impl Progress {
    /// Applies an event; true if the state changed.
    pub(super) fn take(&mut self, event: &Event, now: Instant) -> bool {
        let failing = self.is_failing();
        self.state = match event {
            Event::Begin => {
                self.lists += 1;
                if !matches!(self.state, WatchState::Connecting) {
                    return false;
                }
                WatchState::Listing
            }
            Event::Synced if !self.outage && !self.state.is_live() => WatchState::Live,
            Event::Recovered => {
                self.outage = false;
                if !failing {
                    return false;
                }
                WatchState::Live
            }
            Event::Failing(error) => {
                self.outage = true;
                if failing {
                    return false;
                }
                WatchState::Failing { since: now, error: Arc::new(error.clone()) }
            }
            _ => return false,
        };
        true
    }

    /// Whether an outage is going on.
    pub(super) fn is_failing(&self) -> bool {
        matches!(self.state, WatchState::Failing { .. })
    }

    /// The watch is opened again, and knows nothing of outages that were reported before.
    pub(super) fn reopened(&mut self) {
        self.outage = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use carrick_client::Status;

    fn failing() -> Event {
        Event::Failing(Error::from(Status { code: 503, ..Status::default() }))
    }

    #[tokio::test]
    async fn states_follow_the_watch() {
        let mut progress = Progress::default();
        let script = [
            (Event::Begin, "listing"),
            (failing(), "failing"),
            (Event::Begin, "failing"),
            (Event::Synced, "failing"),
            (Event::Recovered, "live"),
            (Event::Begin, "live"),
            (Event::Synced, "live"),
            (failing(), "failing"),
        ];
        for (event, wanted) in script {
            progress.take(&event, Instant::now());
            assert_eq!(progress.state.as_str(), wanted, "{event:?}");
        }
        // Opened again, the list alone shows that all is well.
        progress.reopened();
        assert!(!progress.take(&Event::Begin, Instant::now()) && progress.take(&Event::Synced, Instant::now()));
        assert_eq!((progress.state.as_str(), progress.lists), ("live", 4));
    }
}
