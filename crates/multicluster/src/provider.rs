//! Where clusters come from.

mod steady;

use std::sync::Arc;

use futures::stream::BoxStream;

use crate::event::FleetEvent;

pub(crate) use steady::steady;

/// A source of clusters.
///
/// A provider only tells: it owns no caches, calls nobody back and cannot block anybody. It says where to list and watch
/// ([`FleetEvent::EndpointUp`]) and which clusters take part ([`FleetEvent::Engage`]); the [`crate::Fleet`] does the rest.
///
/// Rules for implementors:
/// - an endpoint is told before its clusters, and its clusters leave before it does;
/// - [`FleetEvent::Synced`] is told once, after everything that existed at the start;
/// - outages are told with [`FleetEvent::Failing`] and end nothing: an unreachable server does not disengage clusters;
/// - every stream tells the whole fleet from the beginning; it ends only when nothing will ever change again.
///
/// A stream that panics is reported as failing and asked for anew; the clusters it told stay meanwhile.
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
