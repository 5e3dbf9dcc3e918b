//! One reconcile: from a request to its outcome.

use std::error::Error as StdError;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::action::Action;
use crate::cluster::Cluster;
use crate::controller::context::Context;
use crate::error::{Verdict, shared_cause, verdict};
use crate::fleet::Fleet;
use crate::guard::panic_message;
use crate::queue::{Lease, Reason};
use crate::request::Key;

/// How long a refused reconcile waits for the event that its cluster has left: servers refuse requests shortly before they report that.
const FAREWELL: Duration = Duration::from_millis(500);

/// What to reconcile.
pub(crate) struct Task<K> {
    pub(crate) key: Key,
    pub(crate) object: Option<Arc<K>>,
    pub(crate) cluster: Cluster,
    pub(crate) fleet: Fleet,
    pub(crate) attempt: u32,
    pub(crate) reason: Reason,
    pub(crate) since: Instant,
    pub(crate) stop: CancellationToken,
}

impl<K> Task<K> {
    pub(crate) fn context<C>(&self, data: Arc<C>) -> Context<C> {
        Context {
            cluster: self.cluster.clone(),
            fleet: self.fleet.clone(),
            attempt: self.attempt,
            reason: self.reason,
            since: self.since,
            stop: self.stop.clone(),
            data,
        }
    }
}

/// How a reconcile ended.
pub(crate) enum Outcome<E> {
    /// There is no object, and the reconciler does not handle deletions.
    Skipped,
    /// The reconciler succeeded.
    Done(Action),
    /// The reconciler failed.
    Failed {
        /// What it said.
        error: E,
        /// What the error policy wants.
        action: Action,
        /// What it has in common with other failures.
        cause: Option<String>,
    },
    /// The reconciler panicked.
    Panicked(String),
    /// A cluster may still come.
    Later,
    /// A cluster has left.
    Gone,
}

impl<E> Outcome<E> {
    /// One word for traces.
    fn as_str(&self) -> &'static str {
        match self {
            Self::Skipped => "skipped",
            Self::Done(_) => "success",
            Self::Failed { .. } => "error",
            Self::Panicked(_) => "panic",
            Self::Later => "later",
            Self::Gone => "gone",
        }
    }
}

/// Reconciles, whatever form the reconciler has.
pub(crate) type Work<K, E> = Arc<dyn Fn(Task<K>) -> BoxFuture<'static, Outcome<E>> + Send + Sync>;

/// A finished reconcile.
pub(crate) struct Done<E> {
    pub(crate) lease: Lease<Key>,
    pub(crate) outcome: Outcome<E>,
    /// The epoch of the cluster it ran in.
    pub(crate) epoch: u64,
    /// Which opening of the cluster it belongs to.
    pub(crate) opening: u64,
    pub(crate) took: Duration,
}

/// Works on one request.
pub(crate) async fn perform<K, E>(work: Work<K, E>, task: Task<K>, lease: Lease<Key>, opening: u64) -> Done<E> {
    let epoch = task.cluster.epoch();
    let path = task.cluster.path();
    let span = tracing::info_span!(
        "reconcile",
        cluster = %task.key.cluster,
        path = path.as_deref(),
        object = %format_args!("{}/{}", task.key.namespace, task.key.name),
        reason = task.reason.as_str(),
        attempt = task.attempt,
        outcome = tracing::field::Empty,
    );
    let started = Instant::now();
    // The reconciler is called inside, so that a panic before its first await is caught as well.
    let outcome = async { work(task).await };
    let outcome = AssertUnwindSafe(outcome).catch_unwind().instrument(span.clone()).await;
    let outcome = outcome.unwrap_or_else(|panic| Outcome::Panicked(panic_message(&*panic)));
    span.record("outcome", outcome.as_str());
    Done { lease, outcome, epoch, opening, took: started.elapsed() }
}

/// What the error of a reconciler means. The policy is asked only if it is a failure.
pub(crate) async fn judge<E: StdError + 'static>(
    cluster: &Cluster,
    error: E,
    policy: impl FnOnce(&E) -> Action,
) -> Outcome<E> {
    let refused = match verdict(cluster, &error) {
        Verdict::Gone => return Outcome::Gone,
        Verdict::Later => return Outcome::Later,
        Verdict::Forbidden => true,
        Verdict::Failure => false,
    };
    let gone = cluster.gone();
    if refused && tokio::time::timeout(FAREWELL, gone.cancelled()).await.is_ok() {
        return Outcome::Gone;
    }
    let (action, cause) = (policy(&error), shared_cause(cluster.endpoint().as_str(), &error));
    Outcome::Failed { error, action, cause }
}
