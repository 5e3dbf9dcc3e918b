//! Clusters that code adds and removes.

use std::collections::BTreeMap;
use std::sync::Arc;

use carrick_client::{Client, Error};
use futures::StreamExt;
use futures::stream::BoxStream;
use parking_lot::Mutex;
use tokio::sync::mpsc;

use super::teller::Teller;
use crate::endpoint::{ClusterKey, Endpoint};
use crate::event::{FleetEvent, Gone};
use crate::name::{ClusterName, EmptyName, EndpointId};
use crate::provider::Provider;

/// Clusters that code adds and removes: for tests, and for those who know their clusters better than any provider. Cloning shares it.
///
/// Nothing here waits for anybody.
#[derive(Clone, Debug, Default)]
pub struct Static {
    board: Arc<Mutex<Board>>,
}

#[derive(Debug, Default)]
struct Board {
    endpoints: BTreeMap<EndpointId, Endpoint>,
    clusters: BTreeMap<ClusterName, Place>,
    listeners: Vec<mpsc::UnboundedSender<Change>>,
}

/// Where a cluster is.
#[derive(Clone, Debug)]
struct Place {
    endpoint: EndpointId,
    client: Client,
    path: Option<Arc<str>>,
}

#[derive(Clone)]
enum Change {
    Up(Endpoint),
    Down(EndpointId),
    Engage(ClusterName, Place),
    Disengage(ClusterName, Gone),
    /// Something that needs no epoch.
    Other(FleetEvent),
}

impl Static {
    /// No clusters yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a cluster with an API server of its own. One of that name is replaced: engaged anew with this client.
    pub fn insert(&self, name: &str, client: impl Into<Client>) -> Result<(), EmptyName> {
        let (cluster, client) = (ClusterName::new(name)?, client.into());
        let key = ClusterKey::Fixed(cluster.clone());
        let endpoint = Endpoint { id: EndpointId::new(cluster.to_arc()), client: client.clone(), key };
        let place = Place { endpoint: endpoint.id.clone(), client, path: None };
        let mut board = self.board.lock();
        board.up(endpoint);
        board.engage(cluster, place);
        Ok(())
    }

    /// Removes a cluster, and its endpoint if it was added with [`Static::insert`]. Says whether there was one.
    pub fn remove(&self, name: &str) -> bool {
        let mut board = self.board.lock();
        let Some((name, place)) = board.clusters.remove_entry(name) else { return false };
        board.tell(&Change::Disengage(name.clone(), Gone::Removed));
        let own = |endpoint: &Endpoint| matches!(&endpoint.key, ClusterKey::Fixed(fixed) if *fixed == name);
        if board.endpoints.get(&place.endpoint).is_some_and(own) {
            board.down(&place.endpoint);
        }
        true
    }

    /// Adds an endpoint that serves any number of clusters, or replaces the one of that id.
    pub fn insert_endpoint(&self, endpoint: Endpoint) {
        self.board.lock().up(endpoint);
    }

    /// Removes an endpoint and the clusters that are there.
    pub fn remove_endpoint(&self, id: &EndpointId) {
        let mut board = self.board.lock();
        let here: Vec<ClusterName> =
            board.clusters.iter().filter(|(_, place)| place.endpoint == *id).map(|(name, _)| name.clone()).collect();
        for name in here {
            board.clusters.remove(&name);
            board.tell(&Change::Disengage(name, Gone::EndpointDown));
        }
        board.down(id);
    }

    /// Engages a cluster at an endpoint; one that is engaged already is engaged anew.
    pub fn engage(&self, name: &str, endpoint: &EndpointId, client: impl Into<Client>) -> Result<(), EmptyName> {
        let place = Place { endpoint: endpoint.clone(), client: client.into(), path: None };
        self.board.lock().engage(ClusterName::new(name)?, place);
        Ok(())
    }

    /// Gives a cluster a path to be found by.
    pub fn set_path(&self, name: &str, path: &str) {
        let mut board = self.board.lock();
        let Some((name, _)) = board.clusters.get_key_value(name) else { return };
        let (name, path): (_, Arc<str>) = (name.clone(), path.into());
        if let Some(place) = board.clusters.get_mut(&name) {
            place.path = Some(path.clone());
        }
        board.tell(&Change::Other(FleetEvent::Path { name, path }));
    }

    /// Says that a source cannot be seen.
    pub fn fail(&self, source: &str, error: Error) {
        self.board.lock().tell(&Change::Other(FleetEvent::Failing { source: source.into(), error }));
    }

    /// Says that a source can be seen again.
    pub fn recover(&self, source: &str) {
        self.board.lock().tell(&Change::Other(FleetEvent::Recovered { source: source.into() }));
    }
}

impl Board {
    fn up(&mut self, endpoint: Endpoint) {
        self.endpoints.insert(endpoint.id.clone(), endpoint.clone());
        self.tell(&Change::Up(endpoint));
    }

    fn down(&mut self, id: &EndpointId) {
        if self.endpoints.remove(id).is_some() {
            self.tell(&Change::Down(id.clone()));
        }
    }

    fn engage(&mut self, name: ClusterName, place: Place) {
        self.clusters.insert(name.clone(), place.clone());
        self.tell(&Change::Engage(name, place));
    }

    fn tell(&mut self, change: &Change) {
        self.listeners.retain(|listener| listener.send(change.clone()).is_ok());
    }
}

impl Provider for Static {
    fn events(&self) -> BoxStream<'static, FleetEvent> {
        let (listener, changes) = mpsc::unbounded_channel();
        let mut board = self.board.lock();
        let endpoints = board.endpoints.values().cloned().map(Change::Up);
        let clusters = board.clusters.iter().map(|(name, place)| Change::Engage(name.clone(), place.clone()));
        let synced = Change::Other(FleetEvent::Synced);
        let now: Vec<Change> = endpoints.chain(clusters).chain([synced]).collect();
        board.listeners.push(listener);
        let later = futures::stream::unfold(changes, |mut changes| async move {
            let change = changes.recv().await?;
            Some((change, changes))
        });
        let mut teller = Teller::default();
        let tell = move |change| match change {
            Change::Up(endpoint) => Some(FleetEvent::EndpointUp(endpoint)),
            Change::Down(id) => Some(FleetEvent::EndpointDown(id)),
            Change::Engage(name, place) => Some(teller.engage(name, place.endpoint, place.client, place.path)),
            Change::Disengage(name, why) => teller.disengage(&name, why),
            Change::Other(event) => Some(event),
        };
        let mut tell = tell;
        futures::stream::iter(now).chain(later).filter_map(move |change| futures::future::ready(tell(change))).boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::super::teller::{idle_client, words};
    use super::*;

    #[tokio::test]
    async fn every_listener_hears_what_is_there_and_what_changes() {
        let pushed = Static::new();
        pushed.insert("a", idle_client()).unwrap();
        let early = pushed.events();
        pushed.insert_endpoint(Endpoint::new("shard", idle_client(), ClusterKey::KCP));
        pushed.engage("b", &"shard".into(), idle_client()).unwrap();
        pushed.set_path("b", "root:b");
        assert!(pushed.remove("a"));
        assert!(!pushed.remove("a"));
        let late = pushed.events();
        pushed.remove_endpoint(&"shard".into());
        drop(pushed);
        let early: Vec<String> = early.map(|event| words(&event)).collect().await;
        let both = ["up shard", "engage b at shard", "path b root:b", "disengage a", "down a"];
        let end = ["disengage b", "down shard"];
        assert_eq!(early, [&["up a", "engage a at a", "synced"][..], &both, &end].concat());
        let late: Vec<String> = late.map(|event| words(&event)).collect().await;
        assert_eq!(late, [&["up shard", "engage b at shard path root:b", "synced"][..], &end].concat());
    }

    #[tokio::test]
    async fn a_cluster_inserted_again_is_engaged_anew() {
        let pushed = Static::new();
        pushed.insert("a", idle_client()).unwrap();
        let events = pushed.events();
        pushed.insert("a", idle_client()).unwrap();
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
