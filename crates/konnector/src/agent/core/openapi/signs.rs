//! Watches that say when what an API server serves may have changed: CRDs, the servers behind it, and in kcp what a workspace has bound.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::Arc;

use carrick_client::watch::{Event, WatchOptions, watch};
use carrick_client::{Client, Resource};
use carrick_sync::executor::refusal::is_unserved;
use futures::StreamExt;
use parking_lot::Mutex;
use serde_json::Value;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::agent::notifier::Notifier;

/// Group, kind and plural of what is watched; versions are those that the server prefers.
const KINDS: [(&str, &str, &str); 3] = [
    ("apiextensions.k8s.io", "CustomResourceDefinition", "customresourcedefinitions"),
    (AGGREGATED, "APIService", "apiservices"),
    ("apis.kcp.io", "APIBinding", "apibindings"),
];
/// The group of what says which other servers there are.
const AGGREGATED: &str = "apiregistration.k8s.io";

/// What the watches have reported.
#[derive(Debug, Default)]
struct Reported {
    /// Something has changed, and whether another server may serve it.
    changed: Option<bool>,
    /// Which kinds are watched, by group. The server refuses the others.
    watched: HashMap<&'static str, bool>,
}

/// Watches that say when what an API server serves may have changed.
#[derive(Debug, Default)]
pub(super) struct Signs {
    reported: Arc<Mutex<Reported>>,
    /// Ends all of them.
    stop: Option<(CancellationToken, DropGuard)>,
}

impl Signs {
    /// Watches what of this the server has, by its list of groups, and is not watched yet.
    pub fn follow(&mut self, client: &Client, groups: &Value, notifier: &Notifier) {
        let (stop, _) = self.stop.get_or_insert_with(|| {
            let stop = CancellationToken::new();
            (stop.clone(), stop.drop_guard())
        });
        for (group, kind, plural) in KINDS {
            let found = groups["groups"].as_array().into_iter().flatten().find(|found| found["name"] == group);
            let version = found.and_then(|found| found["preferredVersion"]["version"].as_str());
            let mut reported = self.reported.lock();
            let Some(version) = version else {
                if reported.watched.get(group) == Some(&false) {
                    reported.watched.remove(group);
                }
                continue;
            };
            if reported.watched.insert(group, true) != Some(true) {
                let (client, stop) = (client.metadata_only(), stop.clone());
                let (reported, notifier) = (Arc::clone(&self.reported), notifier.clone());
                let resource = Resource::cluster_wide(group, version, kind, plural);
                tokio::spawn(async move {
                    tokio::select! {
                        () = stop.cancelled() => {}
                        () = report(client, resource, group, &reported, &notifier) => {
                            reported.lock().watched.insert(group, false);
                            notifier.notify();
                        }
                    }
                });
            }
        }
    }

    /// Whether something has changed since this was asked last, and whether another server may serve it.
    pub fn take(&self) -> Option<bool> {
        self.reported.lock().changed.take()
    }

    /// Whether all changes are reported.
    pub fn see_all(&self) -> bool {
        self.reported.lock().watched.values().all(|is_watched| *is_watched)
    }
}

/// Reports changes of a kind, until the server does not let it be watched.
async fn report(
    client: Client,
    resource: Resource,
    group: &'static str,
    reported: &Mutex<Reported>,
    notifier: &Notifier,
) {
    let what = Arc::clone(&resource.plural);
    let mut events = pin!(watch(client, resource, WatchOptions::default()));
    while let Some(event) = events.next().await {
        match event {
            // What has changed between the last read and the list is reported by the list.
            Event::Synced | Event::Applied(_) | Event::Deleted(_) => {
                let mut reported = reported.lock();
                let is_aggregated = group == AGGREGATED || reported.changed == Some(true);
                reported.changed = Some(is_aggregated);
                drop(reported);
                notifier.notify();
            }
            Event::Failing(error) if error.is_forbidden() || is_unserved(&error) => {
                tracing::info!(kind = &*what, %error, "The provider does not let a kind be watched that says when its offer \
                    changes; the offer is read every ten minutes instead. Rights to list and watch it would help.");
                return;
            }
            Event::Begin | Event::Listed(_) | Event::Failing(_) | Event::Recovered | Event::WentBack { .. } => {}
        }
    }
}
