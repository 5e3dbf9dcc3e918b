//! How a controller runs.

use std::time::Duration;

use crate::pace::Pace;

/// Pods are killed 30 s after they were asked to end.
const FAREWELL: Duration = Duration::from_secs(25);

/// How a controller runs.
///
/// ```
/// # use std::time::Duration;
/// use carrick_multicluster::Config;
///
/// let config = Config::default()
///     .concurrency(32)
///     .per_cluster(4)
///     .backoff(Duration::from_millis(100), Duration::from_secs(60))
///     .shutdown_grace(Duration::from_secs(10));
/// # drop(config);
/// ```
#[derive(Clone, Debug)]
pub struct Config {
    pub(crate) concurrency: usize,
    pub(crate) per_cluster: usize,
    pub(crate) grace: Duration,
    pub(crate) shutdown_grace: Option<Duration>,
    pub(crate) patience: Duration,
    pub(crate) first_retry: Duration,
    pub(crate) longest_retry: Duration,
    pub(crate) later: Duration,
    pub(crate) pace: Option<Pace>,
}

impl Default for Config {
    /// 64 reconciles at once, 8 of them in one cluster. The grace is less than a third of a Lease of 15 s, so that with
    /// [`crate::coordination`] nothing runs any more when another process may begin.
    fn default() -> Self {
        Self {
            concurrency: 64,
            per_cluster: 8,
            grace: Duration::from_secs(4),
            shutdown_grace: None,
            patience: Duration::from_secs(10),
            first_retry: Duration::from_millis(5),
            longest_retry: Duration::from_secs(1000),
            later: Duration::from_millis(500),
            pace: None,
        }
    }
}

impl Config {
    /// How many reconciles run at once; 0 for any number.
    #[must_use]
    pub fn concurrency(mut self, concurrency: usize) -> Self {
        self.concurrency = concurrency;
        self
    }

    /// Besides, no more at once than a pace allows. Controllers with the same pace share its limit.
    #[must_use]
    pub fn paced_by(mut self, pace: Pace) -> Self {
        self.pace = Some(pace);
        self
    }

    /// How many reconciles of one cluster run at once; 0 for any number.
    #[must_use]
    pub fn per_cluster(mut self, per_cluster: usize) -> Self {
        self.per_cluster = per_cluster;
        self
    }

    /// How long running reconciles of a cluster that leaves, or that another process takes over, may take before they are aborted; 4 s if
    /// not set.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// How long running reconciles may take before they are aborted when the controller has to stop. If not set, 25 s: a little less than
    /// Kubernetes gives a pod; or [`Config::grace`], if that is longer.
    #[must_use]
    pub fn shutdown_grace(mut self, grace: Duration) -> Self {
        self.shutdown_grace = Some(grace);
        self
    }

    /// How long clusters of [another fleet](crate::MultiClusterController::watches_from) that fail are waited for before work begins without
    /// them; 10 s if not set.
    #[must_use]
    pub fn wait_for_failing(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// How long a stopping controller waits for what runs.
    pub(crate) fn farewell(&self) -> Duration {
        self.shutdown_grace.unwrap_or_else(|| self.grace.max(FAREWELL))
    }

    /// The pauses of [`crate::Action::Backoff`]: the first one, doubled from try to try up to the longest.
    #[must_use]
    pub fn backoff(mut self, first: Duration, longest: Duration) -> Self {
        self.first_retry = first;
        self.longest_retry = longest;
        self
    }

    /// The pause before a reconcile that needs a cluster which is not there yet is tried again.
    #[must_use]
    pub fn retry_unknown_cluster_after(mut self, pause: Duration) -> Self {
        self.later = pause;
        self
    }
}
