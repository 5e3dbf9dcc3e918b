//! Which clusters a controller works on: decided from events alone.
//!
//! A cluster is open when it is engaged, accepted by the controller's filter, owned by this process, and everything the
//! controller watches has been listed at its endpoint. The last is needed once only: a cluster that moves stays open.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::cluster::Cluster;
use crate::coordination::Ownership;
use crate::name::{ClusterName, EndpointId};

/// What changes for a cluster.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum GateChange {
    /// Work begins.
    Open(Cluster),
    /// Work goes on with another client.
    Switch(Cluster),
    /// Work ends.
    Close(ClusterName),
}

pub(crate) struct Gate {
    /// Sources that list at the same endpoints, by number.
    sources: HashSet<usize>,
    /// Sources of other fleets that are not complete yet.
    foreign: HashSet<usize>,
    /// Sources that have been listed at each endpoint.
    listed: HashMap<EndpointId, HashSet<usize>>,
    clusters: BTreeMap<ClusterName, GatedCluster>,
    ownership: Ownership,
}

struct GatedCluster {
    cluster: Cluster,
    accepted: bool,
    open: bool,
}

impl Gate {
    pub(crate) fn new(sources: HashSet<usize>, foreign: HashSet<usize>) -> Self {
        let (listed, clusters) = (HashMap::new(), BTreeMap::new());
        Self { sources, foreign, listed, clusters, ownership: Ownership::none(0) }
    }

    pub(crate) fn engage(&mut self, cluster: Cluster, accepted: bool) -> Option<GateChange> {
        let name = cluster.name().clone();
        let open = self.clusters.get(&name).is_some_and(|entry| entry.open);
        self.clusters.insert(name.clone(), GatedCluster { cluster: cluster.clone(), accepted, open });
        if open && accepted { Some(GateChange::Switch(cluster)) } else { self.decide(&name) }
    }

    pub(crate) fn disengage(&mut self, name: &ClusterName, epoch: u64) -> Option<GateChange> {
        if self.clusters.get(name).is_none_or(|entry| entry.cluster.epoch() != epoch) {
            return None;
        }
        self.clusters.remove(name).filter(|entry| entry.open).map(|_| GateChange::Close(name.clone()))
    }

    pub(crate) fn own(&mut self, ownership: Ownership) -> Vec<GateChange> {
        self.ownership = ownership;
        self.decide_all(|_| true)
    }

    pub(crate) fn listed(&mut self, source: usize, endpoint: &EndpointId) -> Vec<GateChange> {
        let listed = self.listed.entry(endpoint.clone()).or_default();
        if !listed.insert(source) || listed.len() < self.sources.len() {
            return Vec::new();
        }
        self.decide_all(|cluster| cluster.endpoint() == endpoint)
    }

    pub(crate) fn foreign_ready(&mut self, source: usize) -> Vec<GateChange> {
        if self.foreign.remove(&source) && self.foreign.is_empty() { self.decide_all(|_| true) } else { Vec::new() }
    }

    /// An endpoint is gone, or not watched any more; its clusters have been disengaged, or are not owned, since before.
    pub(crate) fn endpoint_down(&mut self, endpoint: &EndpointId) {
        self.listed.remove(endpoint);
    }

    /// Whether a cluster is in the fleet and concerns the controller, whichever process works on it.
    pub(crate) fn takes_part(&self, name: &ClusterName) -> bool {
        self.clusters.get(name).is_some_and(|entry| entry.accepted)
    }

    /// The version of the ownership that is followed.
    pub(crate) fn version(&self) -> u64 {
        self.ownership.version()
    }

    /// Whether work may begin in an open cluster right now: a right to it may lapse, and a cluster may go, before an event says so.
    pub(crate) fn may_begin(&self, cluster: &Cluster) -> bool {
        !cluster.gone().is_cancelled() && self.ownership.owns(cluster.name())
    }

    fn decide_all(&mut self, concerned: impl Fn(&Cluster) -> bool) -> Vec<GateChange> {
        let entries = self.clusters.iter().filter(|(_, entry)| concerned(&entry.cluster));
        let names: Vec<ClusterName> = entries.map(|(name, _)| name.clone()).collect();
        names.iter().filter_map(|name| self.decide(name)).collect()
    }

    fn decide(&mut self, name: &ClusterName) -> Option<GateChange> {
        let owned = self.ownership.owns(name);
        let foreign_ready = self.foreign.is_empty();
        let entry = self.clusters.get_mut(name)?;
        let listed = self.listed.get(entry.cluster.endpoint()).is_some_and(|listed| listed.len() >= self.sources.len());
        let wanted = entry.accepted && owned && (entry.open || listed && foreign_ready);
        match (std::mem::replace(&mut entry.open, wanted), wanted) {
            (false, true) => Some(GateChange::Open(entry.cluster.clone())),
            (true, false) => Some(GateChange::Close(name.clone())),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::unreachable_client;

    fn cluster(name: &str, endpoint: &str) -> Cluster {
        Cluster::new(name.parse().unwrap(), endpoint.into(), unreachable_client())
    }

    fn gate() -> Gate {
        let mut gate = Gate::new(HashSet::from([0, 1]), HashSet::new());
        gate.own(Ownership::all(1));
        gate
    }

    fn close(name: &str) -> GateChange {
        GateChange::Close(name.parse().unwrap())
    }

    #[tokio::test]
    async fn a_cluster_opens_when_every_source_of_its_endpoint_is_listed() {
        let mut gate = gate();
        let (c, d) = (cluster("c", "a"), cluster("d", "b"));
        assert_eq!(gate.engage(c.clone(), true), None);
        assert_eq!(gate.engage(d.clone(), true), None);
        assert!(gate.listed(0, &"a".into()).is_empty());
        assert!(gate.listed(0, &"a".into()).is_empty());
        assert_eq!(gate.listed(1, &"a".into()), [GateChange::Open(c)]);
        let late = cluster("late", "a");
        assert_eq!(gate.engage(late.clone(), true), Some(GateChange::Open(late)));
        assert_eq!(gate.engage(cluster("refused", "a"), false), None);
        gate.endpoint_down(&"a".into());
        assert_eq!(gate.engage(cluster("later", "a"), true), None);
    }

    #[tokio::test]
    async fn a_cluster_that_moves_stays_open_though_its_new_endpoint_is_not_listed() {
        let mut gate = gate();
        let (old, new) = (cluster("c", "a"), cluster("c", "b"));
        gate.listed(0, &"a".into());
        gate.listed(1, &"a".into());
        assert_eq!(gate.engage(old.clone(), true), Some(GateChange::Open(old.clone())));
        assert_eq!(gate.engage(new.clone(), true), Some(GateChange::Switch(new.clone())));
        assert_eq!(gate.disengage(old.name(), old.epoch()), None);
        assert_eq!(gate.disengage(new.name(), new.epoch()), Some(close("c")));
        assert_eq!(gate.disengage(new.name(), new.epoch()), None);
    }

    #[tokio::test]
    async fn only_owned_clusters_are_open() {
        let mut gate = gate();
        gate.listed(0, &"a".into());
        gate.listed(1, &"a".into());
        let (c, d) = (cluster("c", "a"), cluster("d", "a"));
        gate.engage(c.clone(), true);
        gate.engage(d.clone(), true);
        assert_eq!(gate.own(Ownership::new(2, |name| *name == "d")), [close("c")]);
        assert_eq!(gate.own(Ownership::new(3, |name| *name == "c")), [GateChange::Open(c), close("d")]);
        assert_eq!(gate.version(), 3);
    }

    #[tokio::test]
    async fn sources_of_other_fleets_are_waited_for() {
        let mut gate = Gate::new(HashSet::from([0]), HashSet::from([1, 2]));
        gate.own(Ownership::all(1));
        let c = cluster("c", "a");
        gate.listed(0, &"a".into());
        assert_eq!(gate.engage(c.clone(), true), None);
        assert!(gate.foreign_ready(1).is_empty());
        assert_eq!(gate.foreign_ready(2), [GateChange::Open(c)]);
    }
}
