//! The object half: consumers' objects, their copies and whatever travels along.
//!
//! ```text
//!  Catalog ──▶ manager ──▶ one Syncer per PublishedResource, its rules swapped in place when they change
//!  fleets  ──▶    │            sources   one watch per endpoint, at <endpoint>/clusters/*
//!  (endpoints)    │            copies    one watch on the service cluster
//!                 │            related   one watch per origin kind
//!                 │               └──▶ controller ──▶ reconcile: see, decide, execute
//!                 └──▶ states: what was last written, from Secrets
//! ```

mod copies;
mod execute;
mod fleet;
mod kinds;
mod reconcile;
mod related;
mod states;
mod syncer;

use std::collections::HashMap;
use std::sync::Arc;

use carrick_client::Client;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::catalog::Catalog;
use super::events::Recorder;
use super::health::Health;
use super::metrics::Metrics;
use fleet::Fleets;
use states::States;
use syncer::Syncer;

/// Name of this controller in events and metrics.
pub(crate) const CONTROLLER: &str = "syncagent-sync";

/// What the object half works with.
pub(crate) struct Context {
    /// The service cluster.
    pub local: Client,
    /// The workspace of the endpoint slice.
    pub slice_workspace: Client,
    /// Name of the endpoint slice.
    pub slice: String,
    /// Namespace of the state Secrets.
    pub namespace: String,
    /// Tells consumers what happens to their objects.
    pub recorder: Recorder,
    /// Counts what was done.
    pub metrics: Arc<Metrics>,
    /// Knows what does not work.
    pub health: Arc<Health>,
}

/// Keeps one syncer running for every PublishedResource that is published and valid, until told to stop.
pub(crate) async fn run(context: Arc<Context>, mut catalog: watch::Receiver<Arc<Catalog>>, stop: CancellationToken) {
    let states = Arc::new(States::new(context.local.clone(), &context.namespace));
    let part = context.health.part("state Secrets");
    if !states.load(&part, &stop).await {
        return;
    }
    let fleets = Fleets::start(&context, stop.clone());
    let mut syncers: HashMap<String, Syncer> = HashMap::new();
    loop {
        let current = catalog.borrow_and_update().clone();
        adjust(&context, &states, &fleets, &current, &mut syncers, &stop).await;
        tokio::select! {
            () = stop.cancelled() => break,
            changed = catalog.changed() => if changed.is_err() { break },
        }
    }
    for (_, syncer) in syncers {
        syncer.stop().await;
    }
}

/// Starts, stops and re-rules syncers until they are what the catalog says.
async fn adjust(
    context: &Arc<Context>,
    states: &Arc<States>,
    fleets: &Fleets,
    catalog: &Catalog,
    syncers: &mut HashMap<String, Syncer>,
    stop: &CancellationToken,
) {
    let wanted: HashMap<_, _> = catalog
        .entries
        .iter()
        .filter(|(name, _)| {
            catalog.resources.get(*name).is_some_and(|pr| {
                pr.metadata.deletion_timestamp.is_none()
                    && pr.is_synchronized()
                    && !pr.status.resource_schema_name.is_empty()
            })
        })
        .filter_map(|(name, entry)| entry.rules.as_ref().ok().map(|rules| (name, rules)))
        .collect();
    let obsolete: Vec<String> = syncers
        .iter()
        .filter(|(name, syncer)| wanted.get(name).is_none_or(|rules| !syncer.fits(rules)))
        .map(|(name, _)| name.clone())
        .collect();
    for name in obsolete {
        if let Some(syncer) = syncers.remove(&name) {
            syncer.stop().await;
            tracing::info!(publishedresource = name, "Stopped synchronizing objects.");
        }
    }
    for (name, rules) in wanted {
        if let Some(syncer) = syncers.get(name) {
            syncer.set_rules(rules);
        } else {
            tracing::info!(publishedresource = name.as_str(), "Starting to synchronize objects…");
            let syncer = Syncer::start(context.clone(), states.clone(), fleets, rules.clone(), stop);
            syncers.insert(name.clone(), syncer);
        }
    }
}
