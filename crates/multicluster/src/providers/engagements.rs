//! The clusters that one stream of a provider has engaged. Each stream engages its clusters under epochs of their own.

use std::collections::HashMap;
use std::sync::Arc;

use carrick_client::Client;

use crate::cluster::Cluster;
use crate::event::{FleetEvent, Gone};
use crate::name::{ClusterName, EndpointId};

/// Remembers the epoch under which each cluster is engaged.
#[derive(Debug, Default)]
pub(super) struct Engagements {
    epochs: HashMap<ClusterName, u64>,
}

impl Engagements {
    /// The event that engages a cluster.
    pub(super) fn engage(
        &mut self,
        name: ClusterName,
        endpoint: EndpointId,
        client: Client,
        path: Option<Arc<str>>,
    ) -> FleetEvent {
        let cluster = Cluster::new(name.clone(), endpoint, client);
        let cluster = path.into_iter().fold(cluster, Cluster::with_path);
        self.epochs.insert(name, cluster.epoch());
        FleetEvent::Engage(cluster)
    }

    /// The event that disengages a cluster; none if it is not engaged.
    pub(super) fn disengage(&mut self, name: &ClusterName, why: Gone) -> Option<FleetEvent> {
        let epoch = self.epochs.remove(name)?;
        Some(FleetEvent::Disengage { name: name.clone(), epoch, why })
    }

    pub(super) fn is_engaged(&self, name: &ClusterName) -> bool {
        self.epochs.contains_key(name)
    }
}

/// An event in a few words, for tests.
#[cfg(test)]
pub(super) fn describe(event: &FleetEvent) -> String {
    match event {
        FleetEvent::EndpointUp(endpoint) => format!("up {}", endpoint.id),
        FleetEvent::EndpointDown(id) => format!("down {id}"),
        FleetEvent::Engage(cluster) => match cluster.path() {
            Some(path) => format!("engage {} at {} path {path}", cluster.name(), cluster.endpoint()),
            None => format!("engage {} at {}", cluster.name(), cluster.endpoint()),
        },
        FleetEvent::Disengage { name, .. } => format!("disengage {name}"),
        FleetEvent::Path { name, path } => format!("path {name} {path}"),
        FleetEvent::ApisChanged { name } => format!("apis of {name}"),
        FleetEvent::ClaimsOpen { name, claims } => format!("{name} does not accept {claims}"),
        FleetEvent::Synced => "synced".to_owned(),
        FleetEvent::Waiting { source, .. } => format!("waiting for {source}"),
        FleetEvent::Failing { source, .. } => format!("failing {source}"),
        FleetEvent::Recovered { source } => format!("recovered {source}"),
    }
}
