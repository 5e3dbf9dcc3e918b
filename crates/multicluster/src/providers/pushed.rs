//! Clusters that code adds and removes.

use std::collections::BTreeMap;
use std::sync::Arc;

use carrick_client::{Client, Error};
use futures::StreamExt;
use futures::stream::BoxStream;
use parking_lot::Mutex;
use tokio::sync::mpsc;

use super::engagements::Engagements;
use crate::endpoint::{ClusterKey, Endpoint};
use crate::event::{FleetEvent, Gone};
use crate::name::{ClusterName, EmptyName, EndpointId};
use crate::provider::Provider;

/// Clusters that code adds and removes: for tests, and for programs that know their clusters better than any provider. Cloning shares it.
///
/// No method waits for anything.
///
/// ```
/// # use carrick_multicluster::providers::Static;
/// # fn example(first: kube::Client, second: kube::Client) -> Result<(), Box<dyn std::error::Error>> {
/// let clusters = Static::new();
/// clusters.insert("first", first)?;
/// clusters.insert("second", second)?;
/// // Controllers on a clone of it stop working on the cluster.
/// assert!(clusters.remove("first"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Static {
    inventory: Arc<Mutex<Inventory>>,
}

/// What there is, and who wants to know.
#[derive(Debug, Default)]
struct Inventory {
    endpoints: BTreeMap<EndpointId, Endpoint>,
    clusters: BTreeMap<ClusterName, Location>,
    listeners: Vec<mpsc::UnboundedSender<Change>>,
}

/// Where a cluster is.
#[derive(Clone, Debug)]
struct Location {
    endpoint: EndpointId,
    client: Client,
    path: Option<Arc<str>>,
}

/// What is sent to listeners.
#[derive(Clone)]
enum Change {
    Up(Endpoint),
    Down(EndpointId),
    Engage(ClusterName, Location),
    Disengage(ClusterName, Gone),
    /// Something that needs no epoch.
    Other(FleetEvent),
}

impl Static {
    /// No clusters yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a cluster with an API server of its own. One of that name is replaced: engaged again with this client.
    pub fn insert(&self, name: &str, client: impl Into<Client>) -> Result<(), EmptyName> {
        let (cluster, client) = (ClusterName::new(name)?, client.into());
        let key = ClusterKey::Fixed(cluster.clone());
        let endpoint = Endpoint { id: EndpointId::new(cluster.to_arc()), client: client.clone(), key };
        let location = Location { endpoint: endpoint.id.clone(), client, path: None };
        let mut inventory = self.inventory.lock();
        inventory.up(endpoint);
        inventory.engage(cluster, location);
        Ok(())
    }

    /// Removes a cluster, and its endpoint if it was added with [`Static::insert`]. Returns whether there was one.
    pub fn remove(&self, name: &str) -> bool {
        let mut inventory = self.inventory.lock();
        let Some((name, location)) = inventory.clusters.remove_entry(name) else { return false };
        inventory.announce(&Change::Disengage(name.clone(), Gone::Removed));
        let own = |endpoint: &Endpoint| matches!(&endpoint.key, ClusterKey::Fixed(fixed) if *fixed == name);
        if inventory.endpoints.get(&location.endpoint).is_some_and(own) {
            inventory.down(&location.endpoint);
        }
        true
    }

    /// Adds an endpoint that serves any number of clusters, or replaces the one of that id.
    pub fn insert_endpoint(&self, endpoint: Endpoint) {
        self.inventory.lock().up(endpoint);
    }

    /// Removes an endpoint and the clusters that are there.
    pub fn remove_endpoint(&self, id: &EndpointId) {
        let mut inventory = self.inventory.lock();
        let here: Vec<ClusterName> = inventory
            .clusters
            .iter()
            .filter(|(_, location)| location.endpoint == *id)
            .map(|(name, _)| name.clone())
            .collect();
        for name in here {
            inventory.clusters.remove(&name);
            inventory.announce(&Change::Disengage(name, Gone::EndpointDown));
        }
        inventory.down(id);
    }

    /// Engages a cluster at an endpoint; one that is engaged already is engaged again.
    pub fn engage(&self, name: &str, endpoint: &EndpointId, client: impl Into<Client>) -> Result<(), EmptyName> {
        let location = Location { endpoint: endpoint.clone(), client: client.into(), path: None };
        self.inventory.lock().engage(ClusterName::new(name)?, location);
        Ok(())
    }

    /// Gives a cluster a path to be found by.
    pub fn set_path(&self, name: &str, path: &str) {
        let mut inventory = self.inventory.lock();
        let Some((name, _)) = inventory.clusters.get_key_value(name) else { return };
        let (name, path): (_, Arc<str>) = (name.clone(), path.into());
        if let Some(location) = inventory.clusters.get_mut(&name) {
            location.path = Some(path.clone());
        }
        inventory.announce(&Change::Other(FleetEvent::Path { name, path }));
    }

    /// Reports that the provider cannot see changes of a source: see [`FleetEvent::Failing`].
    pub fn fail(&self, source: &str, error: Error) {
        self.inventory.lock().announce(&Change::Other(FleetEvent::Failing { source: source.into(), error }));
    }

    /// Reports that a source can be seen again: see [`FleetEvent::Recovered`].
    pub fn recover(&self, source: &str) {
        self.inventory.lock().announce(&Change::Other(FleetEvent::Recovered { source: source.into() }));
    }
}

impl Inventory {
    fn up(&mut self, endpoint: Endpoint) {
        self.endpoints.insert(endpoint.id.clone(), endpoint.clone());
        self.announce(&Change::Up(endpoint));
    }

    fn down(&mut self, id: &EndpointId) {
        if self.endpoints.remove(id).is_some() {
            self.announce(&Change::Down(id.clone()));
        }
    }

    fn engage(&mut self, name: ClusterName, location: Location) {
        self.clusters.insert(name.clone(), location.clone());
        self.announce(&Change::Engage(name, location));
    }

    fn announce(&mut self, change: &Change) {
        self.listeners.retain(|listener| listener.send(change.clone()).is_ok());
    }
}

impl Provider for Static {
    fn events(&self) -> BoxStream<'static, FleetEvent> {
        let (listener, changes) = mpsc::unbounded_channel();
        let mut inventory = self.inventory.lock();
        let endpoints = inventory.endpoints.values().cloned().map(Change::Up);
        let clusters = inventory.clusters.iter().map(|(name, location)| Change::Engage(name.clone(), location.clone()));
        let synced = Change::Other(FleetEvent::Synced);
        let now: Vec<Change> = endpoints.chain(clusters).chain([synced]).collect();
        inventory.listeners.push(listener);
        let later = futures::stream::unfold(changes, |mut changes| async move {
            let change = changes.recv().await?;
            Some((change, changes))
        });
        let mut engagements = Engagements::default();
        let mut to_event = move |change| match change {
            Change::Up(endpoint) => Some(FleetEvent::EndpointUp(endpoint)),
            Change::Down(id) => Some(FleetEvent::EndpointDown(id)),
            Change::Engage(name, location) => {
                Some(engagements.engage(name, location.endpoint, location.client, location.path))
            }
            Change::Disengage(name, why) => engagements.disengage(&name, why),
            Change::Other(event) => Some(event),
        };
        futures::stream::iter(now)
            .chain(later)
            .filter_map(move |change| futures::future::ready(to_event(change)))
            .boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::super::engagements::describe;
    use super::*;
    use crate::testing::unreachable_client;

    #[tokio::test]
    async fn every_listener_hears_what_is_there_and_what_changes() {
        let pushed = Static::new();
        pushed.insert("a", unreachable_client()).unwrap();
        let early = pushed.events();
        pushed.insert_endpoint(Endpoint::new("shard", unreachable_client(), ClusterKey::KCP));
        pushed.engage("b", &"shard".into(), unreachable_client()).unwrap();
        pushed.set_path("b", "root:b");
        assert!(pushed.remove("a"));
        assert!(!pushed.remove("a"));
        let late = pushed.events();
        pushed.remove_endpoint(&"shard".into());
        drop(pushed);
        let early: Vec<String> = early.map(|event| describe(&event)).collect().await;
        let both = ["up shard", "engage b at shard", "path b root:b", "disengage a", "down a"];
        let end = ["disengage b", "down shard"];
        assert_eq!(early, [&["up a", "engage a at a", "synced"][..], &both, &end].concat());
        let late: Vec<String> = late.map(|event| describe(&event)).collect().await;
        assert_eq!(late, [&["up shard", "engage b at shard path root:b", "synced"][..], &end].concat());
    }

    #[tokio::test]
    async fn a_cluster_inserted_again_is_engaged_anew() {
        let pushed = Static::new();
        pushed.insert("a", unreachable_client()).unwrap();
        let events = pushed.events();
        pushed.insert("a", unreachable_client()).unwrap();
        pushed.remove("a");
        drop(pushed);
        let epochs: Vec<u64> = events
            .filter_map(async |event| match event {
                FleetEvent::Engage(cluster) => Some(cluster.epoch()),
                FleetEvent::Disengage { epoch, .. } => Some(epoch),
                _ => None,
            })
            .collect()
            .await;
        assert!(epochs[0] < epochs[1] && epochs[1] == epochs[2], "{epochs:?}");
    }
}
