//! Where clusters come from.

mod guarded;

use std::sync::Arc;

use futures::stream::BoxStream;

use crate::event::FleetEvent;

pub(crate) use guarded::guarded;

/// A source of clusters.
///
/// A provider only reports: it owns no caches, calls nobody back and cannot block anybody. It says where to list and watch
/// ([`FleetEvent::EndpointUp`]) and which clusters are part of the fleet ([`FleetEvent::Engage`]); the [`crate::Fleet`] does the rest.
///
/// Rules for implementors:
/// - an endpoint is reported before its clusters, and its clusters leave before it does;
/// - [`FleetEvent::Synced`] is reported once, after everything that existed at the start;
/// - outages are reported with [`FleetEvent::Failing`] and end nothing: an unreachable server does not disengage clusters;
/// - every stream reports the whole fleet from the beginning; it ends only when nothing will ever change again.
///
/// If a stream panics, that is reported as an outage and another stream is asked for; the clusters it had reported stay meanwhile.
///
/// ```
/// use carrick_multicluster::{Cluster, ClusterKey, Endpoint, FleetEvent, Provider};
/// use futures::StreamExt;
/// use futures::stream::BoxStream;
///
/// /// Two clusters that never change.
/// struct Pair(kube::Client, kube::Client);
///
/// impl Provider for Pair {
///     fn events(&self) -> BoxStream<'static, FleetEvent> {
///         let mut events = Vec::new();
///         for (name, client) in [("first", &self.0), ("second", &self.1)] {
///             let Ok(cluster) = name.parse() else { continue };
///             // Each has a server of its own: all objects found there are of this cluster.
///             let endpoint = Endpoint::new(name, client.clone(), ClusterKey::Fixed(cluster));
///             events.push(FleetEvent::EndpointUp(endpoint));
///             let Ok(cluster) = name.parse() else { continue };
///             events.push(FleetEvent::Engage(Cluster::new(cluster, name.into(), client.clone())));
///         }
///         events.push(FleetEvent::Synced);
///         futures::stream::iter(events).boxed()
///     }
/// }
/// ```
pub trait Provider: Send + Sync + 'static {
    /// The fleet as it is, then every change.
    fn events(&self) -> BoxStream<'static, FleetEvent>;
}

impl<P: Provider + ?Sized> Provider for Arc<P> {
    fn events(&self) -> BoxStream<'static, FleetEvent> {
        (**self).events()
    }
}

impl<P: Provider + ?Sized> Provider for Box<P> {
    fn events(&self) -> BoxStream<'static, FleetEvent> {
        (**self).events()
    }
}
