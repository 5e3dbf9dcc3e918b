//! How a fleet is doing.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::informer::{WatchHealth, WatchState};
use crate::name::EndpointId;

/// How a fleet is doing.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Health {
    /// Whether the provider has reported everything that existed at the start.
    pub synced: bool,
    /// Number of engaged clusters.
    pub clusters: usize,
    /// The endpoints and their watches.
    pub endpoints: BTreeMap<EndpointId, EndpointHealth>,
    /// What the provider cannot see at the moment, and why.
    pub failing: BTreeMap<Arc<str>, String>,
}

/// How an endpoint is doing.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct EndpointHealth {
    /// Number of engaged clusters it serves.
    pub clusters: usize,
    /// Its watches, one per kind.
    pub watches: Vec<WatchHealth>,
}

impl EndpointHealth {
    /// The worst state of its watches; none if nothing is watched.
    pub fn state(&self) -> Option<&WatchState> {
        let badness = |state: &WatchState| match state {
            WatchState::Live => 0,
            WatchState::Listing => 1,
            WatchState::Connecting => 2,
            WatchState::Failing { .. } => 3,
        };
        self.watches.iter().map(|watch| &watch.state).max_by_key(|state| badness(state))
    }
}

impl Health {
    /// Whether everything is known and every change arrives.
    pub fn is_live(&self) -> bool {
        let live = |endpoint: &EndpointHealth| endpoint.state().is_none_or(WatchState::is_live);
        self.synced && self.failing.is_empty() && self.endpoints.values().all(live)
    }
}

impl std::fmt::Display for Health {
    /// One line for people, such as `3 clusters at 2 endpoints; https://b: widgets.v1.example.com failing: …`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.synced, self.clusters) {
            (false, 0) => write!(f, "reading the fleet")?,
            (true, 0) => write!(f, "no clusters: nobody takes part yet")?,
            (_, clusters) => write!(f, "{clusters} clusters at {} endpoints", self.endpoints.len())?,
        }
        for (source, error) in &self.failing {
            write!(f, "; {source}: {error}")?;
        }
        for (id, endpoint) in &self.endpoints {
            for watch in endpoint.watches.iter().filter(|watch| !watch.state.is_live()) {
                write!(f, "; {id}: {} {}", watch.resource, watch.state.as_str())?;
                if let WatchState::Failing { error, .. } = &watch.state {
                    write!(f, ": {error}")?;
                }
            }
        }
        Ok(())
    }
}
