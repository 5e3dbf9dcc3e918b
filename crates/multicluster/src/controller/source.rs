//! Where requests come from.
//!
//! ```text
//!   update of an object ──▶ source: what does it concern? ──▶ intake ──▶ queue
//!   cluster opens       ──▶ source: everything it has for that cluster ──▶ intake
//! ```

mod foreign;
mod owner;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use carrick_client::{Error, Resource};
use futures::future::BoxFuture;

use crate::controller::intake::Intake;
use crate::fleet::ControllerEvent;
use crate::guard::{Callback, Panicked, caught};
use crate::informer::{Informer, Route};
use crate::name::{ClusterName, EndpointId};
use crate::priority::Priority;
use crate::queue::Reason;
use crate::request::Key;
use crate::store::{Change, Undecodable, Update};

pub(crate) use foreign::Foreign;
pub(crate) use owner::{Owners, Scope};

/// A source of requests. It keeps its watch alive.
pub(crate) trait Source: Send + Sync {
    /// Queues whatever concerns a cluster that has just been opened.
    fn replay(&self, cluster: &ClusterName);

    /// Whether everything at an endpoint is known.
    fn is_listed(&self, endpoint: &EndpointId) -> bool;

    /// Ends when everything is known that can be known, if the source watches another fleet. Clusters of it that fail are waited for that
    /// long.
    fn ready(&self, patience: Duration) -> Option<BoxFuture<'static, ()>> {
        let _ = patience;
        None
    }

    /// Reports failures of another fleet to the controller, if the source watches one.
    fn troubles(&self) -> Option<BoxFuture<'static, ()>> {
        None
    }
}

/// A value of an object that must change for a change to count.
pub(crate) type Property<K> = Box<dyn Fn(&K) -> Option<u64> + Send + Sync>;

/// The kind that is reconciled.
pub(crate) struct Primary<K: 'static> {
    number: usize,
    intake: Arc<Intake>,
    informer: Informer<K>,
    properties: Vec<Property<K>>,
}

impl<K: Send + Sync + 'static> Primary<K> {
    pub(crate) fn attach(
        number: usize,
        intake: Arc<Intake>,
        informer: Informer<K>,
        properties: Vec<Property<K>>,
    ) -> Arc<dyn Source> {
        let source = Arc::new(Self { number, intake, informer, properties });
        attach(&source.informer, &source);
        source
    }

    /// Whether a change counts: every property is missing, has a new value, or panics.
    fn counts(&self, key: &Key, old: &K, new: &K) -> bool {
        self.properties.iter().all(|property| {
            let counts = caught(|| {
                let new = property(new);
                new.is_none() || new != property(old)
            });
            counts.unwrap_or_else(|message| {
                self.intake.notify_panic(Callback::Predicate, key, message);
                true
            })
        })
    }
}

impl<K: Send + Sync + 'static> Source for Primary<K> {
    fn replay(&self, cluster: &ClusterName) {
        for (key, _) in self.informer.store().entries(cluster) {
            self.intake.push(key, Priority::Low, Reason::Engaged);
        }
    }

    fn is_listed(&self, endpoint: &EndpointId) -> bool {
        self.informer.store().is_synced(endpoint)
    }
}

impl<K: Send + Sync + 'static> Route<K> for Primary<K> {
    fn update(&self, update: &Update<K>) {
        let reason = match &update.change {
            Change::Changed { old, new } if !self.counts(&update.key, old, new) => return,
            Change::Deleted(_) => Reason::Deleted,
            _ if update.priority == Priority::Low => Reason::Listed,
            _ => Reason::Changed,
        };
        self.intake.push(update.key.clone(), update.priority, reason);
    }

    fn listed(&self, endpoint: &EndpointId) {
        self.intake.notify(ControllerEvent::Listed { source: self.number, endpoint: endpoint.clone() });
    }

    fn undecodable(&self, object: &Undecodable) {
        self.intake.notify(ControllerEvent::Undecodable(object.clone()));
    }

    fn panicked(&self, panic: &Panicked) {
        self.intake.notify(ControllerEvent::Panicked(panic.clone()));
    }

    fn failing(&self, resource: &Resource, endpoint: &EndpointId, error: &Arc<Error>) {
        self.intake.notify(ControllerEvent::watch_fails(resource, endpoint, error));
    }
}

type Map<O> = Box<dyn Fn(&Key, &O) -> Vec<Key> + Send + Sync>;

/// Another kind, whose objects concern objects of the same cluster.
pub(crate) struct Mapped<O: 'static> {
    number: usize,
    intake: Arc<Intake>,
    informer: Informer<O>,
    map: Map<O>,
}

impl<O: Send + Sync + 'static> Mapped<O> {
    pub(crate) fn attach(number: usize, intake: Arc<Intake>, informer: Informer<O>, map: Map<O>) -> Arc<dyn Source> {
        let source = Arc::new(Self { number, intake, informer, map });
        attach(&source.informer, &source);
        source
    }

    fn map(&self, key: &Key, object: &O) -> Vec<Key> {
        caught(|| (self.map)(key, object)).unwrap_or_else(|message| {
            self.intake.notify_panic(Callback::Mapper, key, message);
            Vec::new()
        })
    }
}

impl<O: Send + Sync + 'static> Source for Mapped<O> {
    fn replay(&self, cluster: &ClusterName) {
        for (key, object) in self.informer.store().entries(cluster) {
            for concerned in self.map(&key, &object) {
                self.intake.push(concerned, Priority::Low, Reason::Engaged);
            }
        }
    }

    fn is_listed(&self, endpoint: &EndpointId) -> bool {
        self.informer.store().is_synced(endpoint)
    }
}

impl<O: Send + Sync + 'static> Route<O> for Mapped<O> {
    fn update(&self, update: &Update<O>) {
        let map = |object: &O| self.map(&update.key, object);
        let concerned: HashSet<Key> = match &update.change {
            // An object that concerns another one from now on concerns the old one too.
            Change::Changed { old, new } => map(old).into_iter().chain(map(new)).collect(),
            Change::Added(object) | Change::Deleted(object) => map(object).into_iter().collect(),
        };
        let (priority, reason) = related(update.priority);
        for key in concerned {
            self.intake.push(key, priority, reason);
        }
    }

    fn listed(&self, endpoint: &EndpointId) {
        self.intake.notify(ControllerEvent::Listed { source: self.number, endpoint: endpoint.clone() });
    }

    fn undecodable(&self, object: &Undecodable) {
        self.intake.notify(ControllerEvent::Undecodable(object.clone()));
    }

    fn panicked(&self, panic: &Panicked) {
        self.intake.notify(ControllerEvent::Panicked(panic.clone()));
    }

    fn failing(&self, resource: &Resource, endpoint: &EndpointId, error: &Arc<Error>) {
        self.intake.notify(ControllerEvent::watch_fails(resource, endpoint, error));
    }
}

/// How urgent a change of one object is for another.
fn related(priority: Priority) -> (Priority, Reason) {
    if priority == Priority::Low { (Priority::Low, Reason::Listed) } else { (Priority::Normal, Reason::Related) }
}

fn attach<K: Send + Sync + 'static, R: Route<K> + 'static>(informer: &Informer<K>, route: &Arc<R>) {
    let route: Arc<dyn Route<K>> = route.clone();
    informer.add_route(&route);
}
