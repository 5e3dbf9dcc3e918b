//! Planes, and what providers say about them.

use std::time::Duration;

use carrick_client::{Client, Resource, Server};
use carrick_multicluster::{Cluster, FleetEvent, Provider};
use carrick_plane::{Config, Mode, Plane};
use futures::StreamExt;
use futures::stream::BoxStream;
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use serde_json::json;

/// A plane, and a client of its administrator.
pub async fn plane() -> (Plane, Client) {
    let plane = Plane::start(Config::new(Mode::Kube)).await.unwrap();
    let client = Server::from_kubeconfig_yaml(&plane.kubeconfig("admin", None).unwrap()).unwrap().client();
    (plane, client)
}

pub fn namespaces() -> Resource {
    Resource::cluster_wide("", "v1", "Namespace", "namespaces")
}

pub fn secrets() -> Resource {
    Resource::namespaced("", "v1", "Secret", "secrets")
}

pub async fn create_namespace(client: &Client, name: &str) {
    client.create(&namespaces(), None, &json!({"metadata": {"name": name}})).await.unwrap();
}

/// The events of a provider, in words.
pub struct EventLog {
    pub events: BoxStream<'static, FleetEvent>,
    pub engaged: Vec<Cluster>,
}

impl EventLog {
    pub fn of(provider: &impl Provider) -> Self {
        Self { events: provider.events(), engaged: Vec::new() }
    }

    pub async fn next(&mut self) -> String {
        let event = tokio::time::timeout(Duration::from_mins(1), self.events.next()).await.unwrap().unwrap();
        match event {
            FleetEvent::EndpointUp(endpoint) => format!("up {}", endpoint.id),
            FleetEvent::EndpointDown(id) => format!("down {id}"),
            FleetEvent::Engage(cluster) => {
                let text = format!("engage {}", cluster.name());
                self.engaged.push(cluster);
                text
            }
            FleetEvent::Disengage { name, .. } => format!("disengage {name}"),
            FleetEvent::Synced => "synced".to_owned(),
            FleetEvent::Failing { source, error } => format!("failing {source}: {error}"),
            FleetEvent::Recovered { source } => format!("recovered {source}"),
            other => format!("{other:?}"),
        }
    }

    /// Everything up to an event.
    pub async fn until(&mut self, last: &str) -> Vec<String> {
        let mut events = Vec::new();
        while events.last().is_none_or(|event| event != last) {
            events.push(self.next().await);
        }
        events
    }
}

/// Whether a cluster is the one of a plane that has this namespace.
pub async fn has_namespace(cluster: &Cluster, name: &str) -> bool {
    Api::<Namespace>::all(cluster.client()).get_opt(name).await.unwrap().is_some()
}
