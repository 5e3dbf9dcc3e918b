//! The workspaces that bind an APIExport: how to reach each of them, and which have ended for certain.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use carrick_bind_api::names::FIELD_MANAGER;
use carrick_client::Client;
use carrick_multicluster::providers::kcp::{ApiExport, Stage};
use carrick_multicluster::{Cluster, FleetEvent, Gone, Provider};
use futures::StreamExt;
use parking_lot::RwLock;
use tokio_util::sync::CancellationToken;

use super::notifier::{Notifier, Subscription};

/// The workspaces that bind an APIExport, on all shards that its slice lists.
#[derive(Default)]
pub struct Workspaces {
    state: RwLock<Fleet>,
    notifier: Notifier,
}

#[derive(Default)]
struct Fleet {
    /// Where objects of all workspaces of a shard are read.
    endpoints: BTreeMap<Arc<str>, Client>,
    clusters: HashMap<Arc<str>, Cluster>,
    /// Workspaces whose binding is being deleted, or was when it was last seen. Only those can be gone for good: a shard that is away, or a list
    /// that is empty, proves nothing.
    ending: HashSet<Arc<str>>,
    synced: bool,
    problems: BTreeMap<Arc<str>, String>,
}

impl Workspaces {
    /// Follows the slice of an export and its bindings until told to stop.
    pub fn start(workspace: Client, slice: &str, stop: &CancellationToken) -> Arc<Self> {
        let workspaces = Arc::new(Self::default());
        let (hooked, following, stop) = (Arc::clone(&workspaces), Arc::clone(&workspaces), stop.clone());
        let provider = ApiExport::new(workspace, slice).hooks(move |cluster, binding, stage| {
            hooked.met(&cluster, binding.metadata.is_deleting(), stage);
            std::future::ready(())
        });
        tokio::spawn(async move {
            let mut events = provider.events();
            loop {
                tokio::select! {
                    () = stop.cancelled() => return,
                    event = events.next() => match event {
                        Some(event) => following.on(event),
                        None => return,
                    },
                }
            }
        });
        workspaces
    }

    /// A binding was seen.
    fn met(&self, cluster: &Cluster, is_deleting: bool, stage: Stage) {
        let name: Arc<str> = cluster.name().to_arc();
        let mut state = self.state.write();
        let changed = match stage {
            Stage::Added | Stage::Changed if is_deleting => state.ending.insert(name),
            Stage::Added | Stage::Changed => state.ending.remove(&name),
            Stage::Removed => false,
        };
        drop(state);
        if changed {
            self.notifier.notify();
        }
    }

    fn on(&self, event: FleetEvent) {
        let mut state = self.state.write();
        match event {
            FleetEvent::EndpointUp(endpoint) => {
                tracing::info!(endpoint = %endpoint.id, "Found an endpoint of the APIExport.");
                state.endpoints.insert(Arc::from(endpoint.id.as_str()), endpoint.client);
            }
            FleetEvent::EndpointDown(id) => {
                tracing::warn!(endpoint = %id, "An endpoint of the APIExport is gone; nothing of its workspaces is deleted.");
                state.endpoints.remove(id.as_str());
                state.problems.remove(id.as_str());
            }
            FleetEvent::Engage(cluster) => {
                tracing::info!(workspace = %cluster.name(), "A workspace binds the APIExport.");
                state.clusters.insert(cluster.name().to_arc(), cluster);
            }
            FleetEvent::Disengage { name, epoch, why } => {
                if state.clusters.get(&*name).is_some_and(|known| known.epoch() == epoch) {
                    tracing::info!(workspace = %name, %why, "A workspace does not bind the APIExport any more.");
                    state.clusters.remove(&*name);
                    if why == Gone::EndpointDown {
                        state.ending.remove(&*name);
                    }
                }
            }
            FleetEvent::Synced => state.synced = true,
            FleetEvent::Failing { source, error } => {
                tracing::warn!(%source, %error, "Workspaces cannot be watched, trying again until they can.");
                state.problems.insert(source, error.to_string());
            }
            FleetEvent::Recovered { source } => {
                tracing::info!(%source, "Workspaces can be watched again.");
                state.problems.remove(&source);
            }
            // Paths, and APIs that have changed: every kind has a watch of its own.
            _ => return,
        }
        drop(state);
        self.notifier.notify();
    }

    /// A subscription to every change.
    pub fn subscribe(&self) -> Subscription {
        self.notifier.subscribe()
    }

    /// Whether the slice and the bindings were read once.
    pub fn has_synced(&self) -> bool {
        self.state.read().synced
    }

    /// Where objects of all workspaces are read: one endpoint per shard.
    pub fn endpoints(&self) -> Vec<(Arc<str>, Client)> {
        self.state.read().endpoints.iter().map(|(id, client)| (Arc::clone(id), client.clone())).collect()
    }

    /// How to reach a workspace; none if nobody knows it at the moment.
    pub fn client(&self, cluster: &str) -> Option<Client> {
        self.state.read().clusters.get(cluster).map(|cluster| cluster.json_client().writing_as(FIELD_MANAGER))
    }

    /// The endpoint that serves a workspace.
    pub fn endpoint_of(&self, cluster: &str) -> Option<Arc<str>> {
        self.state.read().clusters.get(cluster).map(|cluster| Arc::from(cluster.endpoint().as_str()))
    }

    /// Whether a workspace has unbound the export for certain: its binding was seen being deleted, and is gone.
    pub fn has_ended(&self, cluster: &str) -> bool {
        let state = self.state.read();
        state.ending.contains(cluster) && !state.clusters.contains_key(cluster)
    }

    /// Why the slice or the bindings cannot be watched.
    pub fn problem(&self) -> Option<String> {
        self.state.read().problems.values().next().cloned()
    }
}
