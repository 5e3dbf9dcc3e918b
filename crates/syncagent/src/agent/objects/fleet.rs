//! The clusters on both sides: consumers' workspaces, as they come and go, and the service cluster.

pub(super) mod consumers;

use std::collections::BTreeMap;
use std::sync::Arc;

use carrick_multicluster::providers::kcp::ApiExport;
use carrick_multicluster::providers::{Nop, Single};
use carrick_multicluster::{Fleet, FleetEvent};
use carrick_sync::executor::refusal::is_unserved;
use futures::StreamExt;
use tokio_util::sync::CancellationToken;

use super::context::Context;
use super::copies;
use crate::agent::health::{Health, Part};

/// The clusters on both sides. Cloning shares them.
#[derive(Clone)]
pub(super) struct Fleets {
    /// Workspaces that bind the export.
    pub consumers: Fleet,
    /// The service cluster alone.
    pub service: Fleet,
    /// No cluster at all, for kinds that the service cluster does not have.
    pub nowhere: Fleet,
}

impl Fleets {
    /// Follows the slice and the bindings, and logs what happens to them, until told to stop.
    pub fn start(context: &Context, stop: CancellationToken) -> Self {
        let (consumers, closed) = (context.consumers.clone(), context.recorder.closed());
        closed.clear();
        let provider = ApiExport::new(context.slice_workspace.clone(), context.slice.clone());
        let provider = provider.hooks(move |cluster, binding, stage| {
            closed.note(cluster.name().as_str(), &binding, stage);
            if let Some(consumers) = &consumers {
                consumers.note(cluster.name(), &binding, stage);
            }
            std::future::ready(())
        });
        // Their outages are reported as parts of the agent's health.
        let consumers = Fleet::builder(provider).quiet().cached_bytes_per_cluster(context.budget.cached_bytes).build();
        let service = Fleet::builder(Single::new(copies::SERVICE, context.local.clone())).quiet().build();
        tokio::spawn(log_events(consumers.clone(), context.health.clone(), stop));
        Self { consumers, service, nowhere: Fleet::from(Nop) }
    }
}

async fn log_events(consumers: Fleet, health: Arc<Health>, stop: CancellationToken) {
    let mut events = consumers.subscribe();
    // One for each source that fails, so that every outage is logged once and no recovery hides another outage.
    let mut failing: BTreeMap<Arc<str>, Part> = BTreeMap::new();
    loop {
        let event = tokio::select! {
            () = stop.cancelled() => return,
            event = events.next() => event,
        };
        match event {
            Some(FleetEvent::EndpointUp(endpoint)) => {
                tracing::info!(endpoint = %endpoint.id, "Found an endpoint of the APIExport.");
            }
            Some(FleetEvent::EndpointDown(id)) => {
                tracing::info!(endpoint = %id, "An endpoint of the APIExport is gone.");
                failing.remove(id.as_str());
            }
            Some(FleetEvent::Engage(cluster)) => {
                tracing::info!(cluster = %cluster.name(), "A workspace uses the APIExport.");
            }
            Some(FleetEvent::ApisChanged { name }) => {
                tracing::debug!(cluster = %name, "A workspace has got other APIs.");
            }
            Some(FleetEvent::Disengage { name, .. }) => {
                tracing::info!(cluster = %name, "A workspace does not use the APIExport any more.");
            }
            Some(FleetEvent::Failing { source, error }) => {
                let name = format!("consumers' workspaces at {source}");
                let part = failing.entry(source).or_insert_with(|| health.part(name));
                // kcp publishes an endpoint a moment before it serves it.
                if is_unserved(&error) { part.waits(&"it is not served yet") } else { part.fails(&error) }
            }
            Some(FleetEvent::Recovered { source }) => {
                if let Some(part) = failing.remove(&source) {
                    part.works();
                }
            }
            // Synced, paths, and whatever a later version reports.
            Some(_) => {}
            None => return,
        }
    }
}
