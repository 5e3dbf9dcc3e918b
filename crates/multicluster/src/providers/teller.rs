//! From names to events: each stream of a provider engages clusters of its own, under epochs of their own.

use std::collections::HashMap;
use std::sync::Arc;

use carrick_client::{Client, ConnectError, Error, Server};

use crate::cluster::Cluster;
use crate::event::{FleetEvent, Gone};
use crate::name::{ClusterName, EndpointId};

/// Remembers the epoch under which each cluster is engaged.
#[derive(Debug, Default)]
pub(super) struct Teller {
    epochs: HashMap<ClusterName, u64>,
}

impl Teller {
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

    /// Nothing if the cluster is not engaged.
    pub(super) fn disengage(&mut self, name: &ClusterName, why: Gone) -> Option<FleetEvent> {
        let epoch = self.epochs.remove(name)?;
        Some(FleetEvent::Disengage { name: name.clone(), epoch, why })
    }

    pub(super) fn is_engaged(&self, name: &ClusterName) -> bool {
        self.epochs.contains_key(name)
    }
}

/// The servers that clusters were engaged with, by kubeconfigs.
#[derive(Default)]
pub(super) struct Servers(HashMap<ClusterName, Server>);

impl Servers {
    /// The server of a cluster's kubeconfig. Nothing if it is the one that is known: it has got the new credentials, and nobody needs to
    /// connect anew. Some kubeconfigs have a new token at every look.
    pub(super) fn open(&mut self, name: &ClusterName, kubeconfig: &str) -> Result<Option<Server>, ConnectError> {
        if let Some(known) = self.0.get(name)
            && known.renew_from_kubeconfig_yaml(kubeconfig)?
        {
            return Ok(None);
        }
        let server = Server::from_kubeconfig_yaml(kubeconfig)?;
        self.0.insert(name.clone(), server.clone());
        Ok(Some(server))
    }

    pub(super) fn forget(&mut self, name: &ClusterName) {
        self.0.remove(name);
    }
}

/// Something that stands for a cluster cannot be used.
pub(super) fn unusable(what: &str, problem: &dyn std::fmt::Display) -> Error {
    Error::Request { request: format!("requests to the cluster of {what}"), problem: problem.to_string() }
}

/// Events in words, for tests.
#[cfg(test)]
pub(super) fn words(event: &FleetEvent) -> String {
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
        FleetEvent::Synced => "synced".to_owned(),
        FleetEvent::Failing { source, .. } => format!("failing {source}"),
        FleetEvent::Recovered { source } => format!("recovered {source}"),
    }
}

/// A client that nobody sends anything with.
#[cfg(test)]
pub(super) fn idle_client() -> Client {
    let config = kube::Config::new("https://127.0.0.1:1".parse().unwrap());
    Client::try_from(config).unwrap()
}
