//! What a provider tells about its fleet.

use std::sync::Arc;

use carrick_client::Error;

/// A change of the fleet.
#[derive(Clone, Debug)]
pub enum FleetEvent {
    /// A place to list and watch appeared: objects of all its clusters are at `<url>/clusters/*`.
    EndpointUp {
        /// The endpoint's URL, without `/clusters/…`.
        url: Arc<str>,
    },
    /// An endpoint is gone; its clusters have been disengaged before.
    EndpointDown {
        /// The endpoint's URL.
        url: Arc<str>,
    },
    /// A cluster takes part. Sent again, with the new endpoint, when a cluster moves.
    Engaged {
        /// Name of the logical cluster.
        cluster: Arc<str>,
        /// URL of the endpoint that serves it.
        endpoint: Arc<str>,
    },
    /// A cluster got other APIs than before: its binding follows a new schema, say. Watches opened before may go on
    /// showing objects as the old schema saw them.
    ApisChanged {
        /// Name of the logical cluster.
        cluster: Arc<str>,
    },
    /// A cluster takes part no more.
    Disengaged {
        /// Name of the logical cluster.
        cluster: Arc<str>,
    },
    /// Everything that existed at the start has been told. Sent once.
    Synced,
    /// Something cannot be watched; sent once per outage of a source. What was told before still holds.
    Failing {
        /// URL of the source: the workspace of the slice, or an endpoint.
        source: Arc<str>,
        /// What is wrong.
        error: Error,
    },
    /// The outage of a source is over.
    Recovered {
        /// URL of the source.
        source: Arc<str>,
    },
}
