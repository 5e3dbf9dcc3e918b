//! What may go wrong with clusters and reconciles.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

use carrick_client::Resource;
use kube::runtime::reflector::Lookup;

use crate::cluster::Cluster;
use crate::guard::Panicked;
use crate::name::EndpointId;
use crate::request::Request;
use crate::store::Undecodable;

/// Why there is no such cluster.
///
/// A reconciler may just pass it on: the runtime finds it among the sources of any error. [`ClusterError::Unknown`] and
/// [`ClusterError::NotSynced`] are retried after a short while and do not count as failures. [`ClusterError::Gone`] ends a request
/// quietly if it is the request's own cluster that has left; if another cluster has left, that is a failure like any other, for the
/// error policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClusterError {
    /// The fleet is complete, and the cluster is not part of it.
    #[error("no cluster {cluster:?} in the fleet; check its name, and whether it has been bound or added")]
    Unknown {
        /// The name or path asked for.
        cluster: String,
    },
    /// The fleet is not complete yet, so the cluster may still appear.
    #[error("cluster {cluster:?} is not known yet; the fleet is still being read")]
    NotSynced {
        /// The name or path asked for.
        cluster: String,
    },
    /// The cluster was part of the fleet and has left.
    #[error("cluster {cluster:?} has left the fleet")]
    Gone {
        /// The name or path asked for.
        cluster: String,
    },
}

/// What a controller reports about something that failed. Whatever it is, the controller goes on.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error<K: Lookup, E: StdError + 'static> {
    /// The reconciler failed; it is called again as the error policy says.
    #[error("cannot reconcile {request}: {error}")]
    Reconcile {
        /// Which object.
        request: Request<K>,
        /// What the reconciler said.
        #[source]
        error: E,
    },
    /// The reconciler panicked; it is called again after a while.
    #[error("the reconciler panicked over {request}: {message}")]
    Panic {
        /// Which object.
        request: Request<K>,
        /// The message of the panic.
        message: String,
    },
    /// An object cannot be read as its kind; it is left out until it changes.
    #[error(transparent)]
    Undecodable(Undecodable),
    /// A function of the user panicked; everything but the object at hand goes on.
    #[error(transparent)]
    Callback(Panicked),
    /// A reconcile did not end in the time that a controller has to stop, and was aborted. Its last write may still arrive.
    #[error("the reconcile of {request} was aborted: it did not end in the time the controller has to stop")]
    Aborted {
        /// Which object.
        request: Request<K>,
    },
    /// A watch fails; reported once per outage. What was known is kept, and the watch goes on trying.
    #[error("cannot watch {resource} at endpoint {endpoint}: {error}; retrying")]
    Watch {
        /// Where.
        endpoint: EndpointId,
        /// What.
        resource: Resource,
        /// Why.
        #[source]
        error: Arc<carrick_client::Error>,
    },
    /// The provider cannot see changes of its fleet; reported once per outage of each thing it follows. What was known is kept, and the provider
    /// goes on trying.
    #[error("cannot see changes of {what}: {error}; retrying")]
    Provider {
        /// What fails: a URL, a file, an endpoint.
        what: Arc<str>,
        /// Why.
        #[source]
        error: carrick_client::Error,
    },
}

impl<K: Lookup, E: StdError + 'static> fmt::Debug for Error<K, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What an error of a reconciler means for its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The cluster of the request has left: nothing more to do.
    Gone,
    /// A cluster may still come: to be tried again soon.
    Later,
    /// The server refused; servers also refuse when the cluster has just left.
    Forbidden,
    /// A failure like any other.
    Failure,
}

/// Walks an error of a request of a cluster, and its sources.
pub(crate) fn verdict(own: &Cluster, error: &(dyn StdError + 'static)) -> Verdict {
    let is_own = |name: &str| *own.name() == *name || own.path().is_some_and(|path| *path == *name);
    let mut forbidden = false;
    let mut next = Some(error);
    while let Some(error) = next {
        match error.downcast_ref::<ClusterError>() {
            Some(ClusterError::Gone { cluster }) if is_own(cluster) => return Verdict::Gone,
            Some(ClusterError::Gone { .. }) => return Verdict::Failure,
            Some(ClusterError::Unknown { .. } | ClusterError::NotSynced { .. }) => return Verdict::Later,
            None => {}
        }
        forbidden |= is_forbidden(error);
        next = error.source();
    }
    if forbidden { Verdict::Forbidden } else { Verdict::Failure }
}

/// What an error has in common with others that end when this one does: see [`carrick_client::Error::shared_cause`].
pub(crate) fn shared_cause(server: &str, error: &(dyn StdError + 'static)) -> Option<String> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(error) = error.downcast_ref::<carrick_client::Error>() {
            return error.shared_cause();
        }
        let is_down = match error.downcast_ref::<kube::Error>() {
            Some(kube::Error::Api(status)) => matches!(status.code, 408 | 429 | 500 | 502..=504),
            Some(kube::Error::HyperError(_) | kube::Error::Service(_) | kube::Error::ReadEvents(_)) => true,
            _ => false,
        };
        if is_down {
            return Some(format!("{server} does not work"));
        }
        next = error.source();
    }
    None
}

fn is_forbidden(error: &(dyn StdError + 'static)) -> bool {
    if let Some(kube::Error::Api(status)) = error.downcast_ref::<kube::Error>() {
        return status.code == 403;
    }
    error.downcast_ref::<carrick_client::Error>().is_some_and(carrick_client::Error::is_forbidden)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::unreachable_client;

    #[derive(Debug, thiserror::Error)]
    #[error("wrapped")]
    struct Wrapped(#[source] Box<dyn StdError + Send + Sync>);

    fn wrapped(error: impl StdError + Send + Sync + 'static) -> Wrapped {
        Wrapped(Box::new(Wrapped(Box::new(error))))
    }

    #[tokio::test]
    async fn errors_are_told_by_their_sources() {
        let own = Cluster::new("c".parse().unwrap(), "e".into(), unreachable_client()).with_path("root:c");
        let cluster = || "c".to_owned();
        let kube = |code: u16| {
            let status = serde_json::json!({"status": "Failure", "code": code, "reason": "r", "message": "m"});
            let status: kube::core::Status = serde_json::from_value(status).unwrap();
            kube::Error::Api(Box::new(status))
        };
        let cases = [
            (wrapped(ClusterError::Gone { cluster: cluster() }), Verdict::Gone),
            (wrapped(ClusterError::Gone { cluster: "root:c".to_owned() }), Verdict::Gone),
            (wrapped(ClusterError::Gone { cluster: "other".to_owned() }), Verdict::Failure),
            (wrapped(ClusterError::Unknown { cluster: cluster() }), Verdict::Later),
            (wrapped(ClusterError::NotSynced { cluster: cluster() }), Verdict::Later),
            (wrapped(kube(403)), Verdict::Forbidden),
            (wrapped(kube(404)), Verdict::Failure),
            (wrapped(std::fmt::Error), Verdict::Failure),
        ];
        for (error, wanted) in cases {
            assert_eq!(verdict(&own, &error), wanted, "{error:?}");
        }
    }
}
