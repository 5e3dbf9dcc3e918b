//! Plans that are told instead of being executed.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use carrick_multicluster::Key;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::fleet::Fleets;
use super::related::RelatedWatches;
use super::states::States;
use super::syncer::Syncer;
use super::{Context, Manager};
use crate::agent::catalog::Catalog;
use crate::decide::Explanation;

/// How often to look whether everything has been seen while nothing is told.
const LOOK: Duration = Duration::from_millis(50);

/// Takes down what would be done.
#[derive(Debug, Clone)]
pub(crate) struct Teller(mpsc::UnboundedSender<Told>);

/// What would be done for one object of a PublishedResource, or why that cannot be said.
type Told = (String, Key, Result<Explanation, String>);

impl Teller {
    pub(super) fn tell(&self, published: &str, key: &Key, outcome: Result<Explanation, String>) {
        // Nobody listens any more when patience has ended.
        let _ = self.0.send((published.to_owned(), key.clone(), outcome));
    }
}

/// Everything that was told.
#[derive(Debug, Default)]
pub(crate) struct Looked {
    /// By PublishedResource and object.
    pub(crate) told: BTreeMap<(String, Key), Result<Explanation, String>>,
    /// Workspace paths by logical cluster.
    pub(crate) paths: BTreeMap<String, String>,
    /// Why some objects may be missing.
    pub(crate) problem: Option<String>,
}

/// Decides for every object once, as the agent would right now, and does nothing about it.
pub(crate) async fn look(mut context: Context, catalog: &Catalog, patience: Duration) -> Looked {
    let deadline = Instant::now() + patience;
    let stop = CancellationToken::new();
    let _end = stop.clone().drop_guard();
    let (sender, mut receiver) = mpsc::unbounded_channel();
    context.explained = Some(Teller(sender));
    let context = Arc::new(context);
    let mut looked = Looked::default();

    let states = Arc::new(States::new(context.local.clone(), &context.namespace));
    let part = context.health.part("state Secrets");
    if tokio::time::timeout_at(deadline, states.load(&part, &stop)).await.is_err() {
        looked.problem = Some(context.health.problems().join("; "));
        return looked;
    }
    let fleets = Fleets::start(&context, stop.clone());
    let abandoned = Vec::new();
    let related = Arc::new(RelatedWatches::new(context.local.clone(), fleets.clone()));
    let mut manager = Manager { context, states, fleets, related, syncers: HashMap::new(), abandoned, stop };
    manager.adjust(catalog).await;
    loop {
        while let Ok((published, key, outcome)) = receiver.try_recv() {
            looked.told.insert((published, key), outcome);
        }
        let missing = missing(&manager, &looked);
        if missing.is_none() {
            break;
        }
        if Instant::now() >= deadline {
            looked.problem = missing;
            break;
        }
        if let Ok(Some((published, key, outcome))) = tokio::time::timeout(LOOK, receiver.recv()).await {
            looked.told.insert((published, key), outcome);
        }
    }
    for cluster in manager.fleets.consumers.clusters() {
        looked.paths.extend(cluster.path().map(|path| (cluster.name().to_string(), path.to_string())));
    }
    futures::future::join_all(manager.syncers.into_values().map(Syncer::stop)).await;
    looked
}

/// What has not been seen yet.
fn missing(manager: &Manager, looked: &Looked) -> Option<String> {
    let fleets = &manager.fleets;
    for (fleet, place) in [(&fleets.consumers, "consumers' workspaces"), (&fleets.service, "the service cluster")] {
        let health = fleet.health();
        if !health.is_live() {
            return Some(format!("{place}: {health}"));
        }
    }
    let waits = |published: &String, key: &Key| !looked.told.contains_key(&(published.clone(), key.clone()));
    let waiting = manager.syncers.iter().flat_map(|(published, syncer)| {
        syncer.keys().into_iter().filter(move |key| waits(published, key)).map(|key| key.to_string())
    });
    let waiting: Vec<String> = waiting.collect();
    let first = waiting.first()?;
    Some(format!("{} objects were not looked at in time, the first is {first}", waiting.len()))
}
