//! What a provider reports about its fleet.

use std::fmt;
use std::sync::Arc;

use carrick_client::Error;

use crate::cluster::Cluster;
use crate::endpoint::Endpoint;
use crate::name::{ClusterName, EndpointId};

/// A change of the fleet.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum FleetEvent {
    /// An endpoint to list and watch at appeared. Reported before the clusters it serves. It replaces a known endpoint of the same id: with new
    /// credentials, for example.
    EndpointUp(Endpoint),
    /// An endpoint is gone. Clusters it served leave with it, unless they were engaged at another endpoint before.
    EndpointDown(EndpointId),
    /// A cluster joins the fleet. If one of that name is engaged it has moved, or has new credentials: it stays engaged and
    /// goes on under the new epoch.
    Engage(Cluster),
    /// A cluster leaves the fleet. Ignored if the name is engaged under another epoch meanwhile.
    Disengage {
        /// Name of the cluster.
        name: ClusterName,
        /// The epoch that ends.
        epoch: u64,
        /// Why.
        why: Gone,
    },
    /// The path of an engaged cluster became known, or changed.
    Path {
        /// Name of the cluster.
        name: ClusterName,
        /// Its path.
        path: Arc<str>,
    },
    /// A cluster got other APIs than before: its binding follows a new schema, for example. Watches opened before may go on
    /// showing objects as the old schema saw them, so everything is listed again.
    ApisChanged {
        /// Name of the cluster.
        name: ClusterName,
    },
    /// The consumer of a cluster has not accepted all that the export claims: what such claims are about is not seen there, and no request
    /// says so. Sent when it is found, and again when it has become something else.
    ClaimsOpen {
        /// Name of the cluster.
        name: ClusterName,
        /// The claims, as resources: `configmaps, widgets.example.io`.
        claims: Arc<str>,
    },
    /// Everything that existed at the start has been reported. Sent once.
    Synced,
    /// There is nothing to follow yet, and the provider waits for it; sent once until there was something in between.
    Waiting {
        /// What would list the fleet.
        source: Arc<str>,
        /// What it lacks.
        lacks: Lacks,
    },
    /// The provider cannot see changes of its fleet; sent once per outage of a source. What was reported before still holds.
    Failing {
        /// What fails: a URL, a file, an endpoint.
        source: Arc<str>,
        /// What is wrong.
        error: Error,
    },
    /// The outage of a source is over.
    Recovered {
        /// What failed.
        source: Arc<str>,
    },
}

/// Why a provider has nothing to follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Lacks {
    /// The object that lists the endpoints does not exist. Its name may be wrong.
    Object,
    /// The object lists no endpoint. kcp adds one for each shard once the API is bound there.
    Endpoints,
}

impl fmt::Display for Lacks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Object => "it does not exist; check its name and the workspace of the kubeconfig",
            Self::Endpoints => "it lists no endpoint yet; kcp adds one for each shard once the API is bound there",
        })
    }
}

/// Why a cluster has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Gone {
    /// Its owner took it out: the binding, Secret, file or object that stood for it is gone.
    Removed,
    /// The endpoint that served it is gone.
    EndpointDown,
    /// It is engaged again: at another endpoint or with other credentials.
    Replaced,
}

impl fmt::Display for Gone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Removed => "it was removed from the fleet",
            Self::EndpointDown => "its endpoint is gone",
            Self::Replaced => "it is engaged again",
        })
    }
}
