//! The endpoints of the export's virtual workspace, as they come and go.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::Arc;

use carrick_client::{Client, ConnectError};
use carrick_multicluster::{ApiExport, FleetEvent};
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
        let part = context.health.part("consumers' workspaces");
        part.works();
        tokio::spawn(async move {
            let mut events = pin!(provider.events());
            let mut failing = BTreeMap::new();
            loop {
                let event = tokio::select! {
                    () = stop.cancelled() => return,
                    event = events.next() => event,
                };
                match event {
                    Some(FleetEvent::EndpointUp { url }) => {
                        tracing::info!(endpoint = &*url, "Found an endpoint of the APIExport.");
                        sender.send_modify(|state| state.urls.extend([url]));
                    }
                    Some(FleetEvent::EndpointDown { url }) => {
                        tracing::info!(endpoint = &*url, "An endpoint of the APIExport is gone.");
                        failing.remove(&url);
                        tell(&part, &failing);
                        sender.send_modify(|state| state.urls.retain(|other| *other != url));
                    }
                    Some(FleetEvent::Engaged { cluster, .. }) => {
                        tracing::info!(cluster = &*cluster, "A workspace uses the APIExport.");
                        sender.send_modify(|state| state.joined += 1);
                    }
                    Some(FleetEvent::ApisChanged { cluster }) => {
                        tracing::debug!(cluster = &*cluster, "A workspace has got other APIs.");
                        sender.send_modify(|state| state.apis += 1);
                    }
                    Some(FleetEvent::Disengaged { cluster }) => {
                        tracing::info!(cluster = &*cluster, "A workspace does not use the APIExport any more.");
                    }
                    Some(FleetEvent::Failing { source, error }) => {
                        tracing::warn!(url = &*source, %error, "Cannot watch consumers' workspaces, trying on…");
                        failing.insert(source, error.to_string());
                        tell(&part, &failing);
                    }
                    Some(FleetEvent::Recovered { source }) => {
                        tracing::info!(url = &*source, "Watching consumers' workspaces again.");
                        failing.remove(&source);
                        tell(&part, &failing);
                    }
                    Some(FleetEvent::Synced) => {}
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

/// Says how the watches of the slice and of all endpoints are together; `failing` are the problems by URL.
fn tell(part: &Part, failing: &BTreeMap<Arc<str>, String>) {
    match failing.values().next() {
        Some(problem) => part.fails(problem),
        None => part.works(),
    }
}
