//! Which clusters belong to the fleet: decided from events alone.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use carrick_client::Error;

use crate::cluster::Cluster;
use crate::endpoint::Endpoint;
use crate::error::ClusterError;
use crate::event::{FleetEvent, Gone};
use crate::name::{ClusterName, EndpointId};

/// How many clusters that have left are remembered, to distinguish them from clusters that never existed.
const REMEMBERED: usize = 1024;

#[derive(Default)]
pub(super) struct Roster {
    clusters: BTreeMap<ClusterName, Cluster>,
    paths: HashMap<Arc<str>, ClusterName>,
    endpoints: BTreeMap<EndpointId, Endpoint>,
    /// Which clusters each endpoint serves.
    served: HashMap<EndpointId, BTreeSet<ClusterName>>,
    /// Names and paths of clusters that have left, oldest first.
    left: VecDeque<Arc<str>>,
    /// What the provider cannot see at the moment, and why.
    failing: BTreeMap<Arc<str>, Error>,
    synced: bool,
}

impl Roster {
    /// Applies an event and returns the events that follow: none if it is outdated, several if it has consequences.
    pub(super) fn apply(&mut self, event: FleetEvent) -> Vec<FleetEvent> {
        match event {
            FleetEvent::EndpointUp(endpoint) => {
                self.endpoints.insert(endpoint.id.clone(), endpoint.clone());
                vec![FleetEvent::EndpointUp(endpoint)]
            }
            FleetEvent::EndpointDown(id) => {
                if self.endpoints.remove(&id).is_none() {
                    return Vec::new();
                }
                self.failing.remove(id.as_str());
                let stranded = self.clusters_at(&id).filter_map(|name| self.clusters.get(name));
                let stranded: Vec<(ClusterName, u64)> =
                    stranded.map(|cluster| (cluster.name().clone(), cluster.epoch())).collect();
                let leave = |(name, epoch)| self.disengage(name, epoch, Gone::EndpointDown);
                let mut events: Vec<FleetEvent> = stranded.into_iter().filter_map(leave).collect();
                events.push(FleetEvent::EndpointDown(id));
                events
            }
            FleetEvent::Engage(cluster) => {
                let name = cluster.name().clone();
                if let Some(old) = self.clusters.insert(name.clone(), cluster.clone()) {
                    old.gone().cancel();
                    self.serve_no_more(&old);
                    // The path belongs to the cluster, not to the endpoint.
                    if let (None, Some(path)) = (cluster.path(), old.path()) {
                        cluster.set_path(path);
                    }
                }
                self.served.entry(cluster.endpoint().clone()).or_default().insert(name.clone());
                self.left.retain(|left| **left != *name);
                if let Some(path) = cluster.path() {
                    self.paths.insert(path, name);
                }
                vec![FleetEvent::Engage(cluster)]
            }
            FleetEvent::Disengage { name, epoch, why } => self.disengage(name, epoch, why).into_iter().collect(),
            FleetEvent::Path { name, path } => {
                let Some(cluster) = self.clusters.get(&name) else { return Vec::new() };
                let old = cluster.path();
                if old.as_ref() == Some(&path) {
                    return Vec::new();
                }
                cluster.set_path(path.clone());
                if let Some(old) = old {
                    self.drop_path(&old, &name);
                }
                self.paths.insert(path.clone(), name.clone());
                vec![FleetEvent::Path { name, path }]
            }
            FleetEvent::ApisChanged { name } | FleetEvent::ClaimsOpen { name, .. }
                if !self.clusters.contains_key(&name) =>
            {
                Vec::new()
            }
            FleetEvent::Synced if self.synced => Vec::new(),
            FleetEvent::Synced => {
                self.synced = true;
                vec![FleetEvent::Synced]
            }
            FleetEvent::Failing { source, error } => {
                self.failing.insert(source.clone(), error.clone());
                vec![FleetEvent::Failing { source, error }]
            }
            FleetEvent::Recovered { source } => {
                self.failing.remove(&source);
                vec![FleetEvent::Recovered { source }]
            }
            event @ (FleetEvent::ApisChanged { .. } | FleetEvent::ClaimsOpen { .. } | FleetEvent::Waiting { .. }) => {
                vec![event]
            }
        }
    }

    /// The fleet as events, for new subscribers.
    pub(super) fn replay(&self) -> Vec<FleetEvent> {
        let mut events: Vec<FleetEvent> = self.endpoints.values().cloned().map(FleetEvent::EndpointUp).collect();
        events.extend(self.clusters.values().cloned().map(FleetEvent::Engage));
        events.extend(self.synced.then_some(FleetEvent::Synced));
        let failing = |(source, error): (&Arc<str>, &Error)| {
            let (source, error) = (source.clone(), error.clone());
            FleetEvent::Failing { source, error }
        };
        events.extend(self.failing.iter().map(failing));
        events
    }

    /// A cluster by name, or else by path.
    pub(super) fn find(&self, wanted: &str) -> Result<Cluster, ClusterError> {
        let by_path = || self.clusters.get(self.paths.get(wanted)?);
        if let Some(cluster) = self.clusters.get(wanted).or_else(by_path) {
            return Ok(cluster.clone());
        }
        let cluster = wanted.to_owned();
        Err(if self.left.iter().any(|left| **left == *wanted) {
            ClusterError::Gone { cluster }
        } else if self.synced {
            ClusterError::Unknown { cluster }
        } else {
            ClusterError::NotSynced { cluster }
        })
    }

    pub(super) fn clusters(&self) -> impl Iterator<Item = &Cluster> {
        self.clusters.values()
    }

    pub(super) fn endpoints(&self) -> impl Iterator<Item = &Endpoint> {
        self.endpoints.values()
    }

    pub(super) fn endpoint(&self, id: &EndpointId) -> Option<&Endpoint> {
        self.endpoints.get(id)
    }

    /// Names of the clusters that an endpoint serves.
    pub(super) fn clusters_at(&self, id: &EndpointId) -> impl Iterator<Item = &ClusterName> {
        self.served.get(id).into_iter().flatten()
    }

    pub(super) fn failing(&self) -> &BTreeMap<Arc<str>, Error> {
        &self.failing
    }

    pub(super) fn is_synced(&self) -> bool {
        self.synced
    }

    fn disengage(&mut self, name: ClusterName, epoch: u64, why: Gone) -> Option<FleetEvent> {
        if self.clusters.get(&name).is_none_or(|cluster| cluster.epoch() != epoch) {
            return None;
        }
        let cluster = self.clusters.remove(&name)?;
        cluster.gone().cancel();
        self.serve_no_more(&cluster);
        self.remember(name.to_arc());
        if let Some(path) = cluster.path() {
            self.drop_path(&path, &name);
            self.remember(path);
        }
        Some(FleetEvent::Disengage { name, epoch, why })
    }

    fn serve_no_more(&mut self, cluster: &Cluster) {
        if let Some(served) = self.served.get_mut(cluster.endpoint()) {
            served.remove(cluster.name());
            if served.is_empty() {
                self.served.remove(cluster.endpoint());
            }
        }
    }

    fn drop_path(&mut self, path: &str, name: &ClusterName) {
        if self.paths.get(path) == Some(name) {
            self.paths.remove(path);
        }
    }

    fn remember(&mut self, left: Arc<str>) {
        if self.left.len() >= REMEMBERED {
            self.left.pop_front();
        }
        self.left.push_back(left);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::ClusterKey;
    use crate::testing::unreachable_client;

    fn endpoint(id: &str) -> FleetEvent {
        FleetEvent::EndpointUp(Endpoint::new(id, unreachable_client(), ClusterKey::KCP))
    }

    fn cluster(name: &str, endpoint: &str) -> Cluster {
        Cluster::new(name.parse().unwrap(), endpoint.into(), unreachable_client())
    }

    fn leave(cluster: &Cluster) -> FleetEvent {
        FleetEvent::Disengage { name: cluster.name().clone(), epoch: cluster.epoch(), why: Gone::Removed }
    }

    #[tokio::test]
    async fn a_cluster_that_moves_is_not_disengaged_by_the_late_word_of_its_old_endpoint() {
        let mut roster = Roster::default();
        roster.apply(endpoint("a"));
        roster.apply(endpoint("b"));
        let (old, new) = (cluster("c", "a"), cluster("c", "b"));
        roster.apply(FleetEvent::Engage(old.clone()));
        roster.apply(FleetEvent::Path { name: "c".parse().unwrap(), path: "root:c".into() });
        roster.apply(FleetEvent::Engage(new.clone()));
        assert!(old.gone().is_cancelled() && !new.gone().is_cancelled());
        assert!(roster.apply(leave(&old)).is_empty());
        assert_eq!(roster.apply(FleetEvent::EndpointDown("a".into())).len(), 1);
        assert_eq!(roster.find("c").unwrap(), new);
        assert_eq!(roster.find("root:c").unwrap(), new);
        let events = roster.apply(FleetEvent::EndpointDown("b".into()));
        assert!(matches!(
            &events[..],
            [FleetEvent::Disengage { why: Gone::EndpointDown, .. }, FleetEvent::EndpointDown(_)]
        ));
        assert!(new.gone().is_cancelled());
    }

    #[tokio::test]
    async fn lookups_tell_unknown_from_not_yet_and_no_longer() {
        let mut roster = Roster::default();
        let c = cluster("c", "a").with_path("root:c");
        let name = |wanted: &str| wanted.to_owned();
        assert_eq!(roster.find("c"), Err(ClusterError::NotSynced { cluster: name("c") }));
        roster.apply(FleetEvent::Engage(c.clone()));
        assert_eq!(roster.apply(FleetEvent::Synced).len(), 1);
        assert!(roster.apply(FleetEvent::Synced).is_empty());
        assert_eq!(roster.find("root:c").as_ref(), Ok(&c));
        assert_eq!(roster.find("other"), Err(ClusterError::Unknown { cluster: name("other") }));
        roster.apply(leave(&c));
        for wanted in ["c", "root:c"] {
            assert_eq!(roster.find(wanted), Err(ClusterError::Gone { cluster: name(wanted) }));
        }
        roster.apply(FleetEvent::Engage(cluster("c", "a")));
        assert!(roster.find("c").is_ok());
    }

    #[tokio::test]
    async fn a_changed_path_leaves_nothing_of_the_old_one() {
        let mut roster = Roster::default();
        let path = |path: &str| FleetEvent::Path { name: "c".parse().unwrap(), path: path.into() };
        assert!(roster.apply(path("root:early")).is_empty(), "the cluster is not engaged");
        roster.apply(FleetEvent::Engage(cluster("c", "a")));
        assert_eq!(roster.apply(path("root:one")).len(), 1);
        assert!(roster.apply(path("root:one")).is_empty());
        roster.apply(path("root:two"));
        assert!(roster.find("root:one").is_err() && roster.find("root:two").is_ok());
    }
}
