//! The endpoints of the export's virtual workspace, as they come and go.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use carrick_client::{Client, ConnectError};
use carrick_multicluster::providers::kcp::ApiExport;
use carrick_multicluster::{FleetEvent, Provider};
use futures::StreamExt;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::Context;
use crate::agent::health::Part;

/// The endpoints that serve consumers' workspaces now. Cloning shares the view.
#[derive(Clone)]
pub(super) struct Fleet {
    client: Client,
    state: watch::Receiver<Endpoints>,
}

/// A moment of the fleet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Endpoints {
    /// URLs of the endpoints.
    pub urls: BTreeSet<Arc<str>>,
    /// Grows whenever a workspace joins: an API that was not served before may be served now.
    pub joined: u64,
    /// Grows whenever a workspace gets other APIs: watches opened before may show objects as an old schema saw them.
    pub apis: u64,
}

impl Fleet {
    /// Watches the slice and the bindings until told to stop.
    pub fn start(context: &Context, stop: CancellationToken) -> Self {
        let (sender, state) = watch::channel(Endpoints::default());
        let provider = ApiExport::new(context.slice_workspace.clone(), context.slice.clone());
        let health = context.health.clone();
        tokio::spawn(async move {
            let mut events = provider.events();
            // One for each source that fails, so that every outage is told once and no recovery hides another outage.
            let mut failing: BTreeMap<Arc<str>, Part> = BTreeMap::new();
            loop {
                let event = tokio::select! {
                    () = stop.cancelled() => return,
                    event = events.next() => event,
                };
                match event {
                    Some(FleetEvent::EndpointUp(endpoint)) => {
                        tracing::info!(endpoint = %endpoint.id, "Found an endpoint of the APIExport.");
                        sender.send_modify(|state| state.urls.extend([endpoint.id.as_str().into()]));
                    }
                    Some(FleetEvent::EndpointDown(id)) => {
                        tracing::info!(endpoint = %id, "An endpoint of the APIExport is gone.");
                        failing.remove(id.as_str());
                        sender.send_modify(|state| state.urls.retain(|url| **url != *id));
                    }
                    Some(FleetEvent::Engage(cluster)) => {
                        tracing::info!(cluster = %cluster.name(), "A workspace uses the APIExport.");
                        sender.send_modify(|state| state.joined += 1);
                    }
                    Some(FleetEvent::ApisChanged { name }) => {
                        tracing::debug!(cluster = %name, "A workspace has got other APIs.");
                        sender.send_modify(|state| state.apis += 1);
                    }
                    Some(FleetEvent::Disengage { name, .. }) => {
                        tracing::info!(cluster = %name, "A workspace does not use the APIExport any more.");
                    }
                    Some(FleetEvent::Failing { source, error }) => {
                        let name = format!("consumers' workspaces at {source}");
                        let part = failing.entry(source).or_insert_with(|| health.part(name));
                        // kcp publishes an endpoint a moment before it serves it.
                        if error.is_not_found() { part.waits(&"it is not served yet") } else { part.fails(&error) }
                    }
                    Some(FleetEvent::Recovered { source }) => {
                        if let Some(part) = failing.remove(&source) {
                            part.works();
                        }
                    }
                    Some(FleetEvent::Synced | FleetEvent::Path { .. }) => {}
                    None => return,
                }
            }
        });
        Self { client: context.slice_workspace.clone(), state }
    }

    /// The fleet, and news of it.
    pub fn subscribe(&self) -> watch::Receiver<Endpoints> {
        self.state.clone()
    }

    /// A client for one logical cluster, or for all with `*`, with the credentials for kcp.
    pub fn client(&self, endpoint: &str, cluster: &str) -> Result<Client, ConnectError> {
        self.client.at_url(&carrick_kcp::url::in_endpoint(endpoint, cluster))
    }
}
