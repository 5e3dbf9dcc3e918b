//! The object half: consumers' objects, their copies and whatever travels along.
//!
//! ```text
//!  Catalog ──▶ manager ──▶ one Syncer per PublishedResource, its rules swapped in place when they change
//!  fleets  ──▶    │            sources   one watch per endpoint, at <endpoint>/clusters/*
//!  (endpoints)    │            copies    one watch on the service cluster
//!                 │            related   one watch per kind and endpoint on each side, shared by all syncers
//!                 │               └──▶ controller ──▶ reconcile: see, decide, execute
//!                 └──▶ states: what was last written, from Secrets
//! ```
//!
//! Kinds whose PublishedResource is switched off, gone or not valid have a syncer too, as long as objects of theirs may be held: it lets
//! them go, or at least those that their consumers delete.

mod abandoned;
mod copies;
mod execute;
pub(super) mod explain;
mod fleet;
mod hop;
mod journey;
mod kinds;
mod others;
mod primaries;
mod reach;
mod reconcile;
mod related;
mod report;
mod states;
mod syncer;
mod uses;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use carrick_client::{Client, Error};
use carrick_multicluster::Pace;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Timing;
use super::backoff::Backoff;
use super::catalog::{Catalog, Entry};
use super::events::Recorder;
use super::health::Health;
use super::metrics::{Metrics, show_fleet};
use super::rights::Granted;
use crate::rules::abandoned::resource_of;
use crate::rules::related::Gvr;
use crate::rules::{Duty, Rules};
use fleet::Fleets;
pub(crate) use journey::Journeys;
use related::RelatedWatches;
pub(crate) use report::Troubles;
use states::States;
use syncer::Syncer;

/// Name of this controller in events and metrics.
pub(crate) const CONTROLLER: &str = "syncagent-sync";

/// How few and how many objects are worked on at once.
const AT_ONCE: (usize, usize) = (4, 128);

/// The pace of one agent.
pub(crate) fn pace() -> Pace {
    Pace::between(AT_ONCE.0, AT_ONCE.1)
}

/// Whether a server has a resource.
pub(crate) async fn is_served(client: &Client, gvr: &Gvr) -> Result<bool, Error> {
    Ok(kinds::discover(client, gvr).await?.is_some())
}

/// What the object half works with.
pub(crate) struct Context {
    /// The service cluster.
    pub local: Client,
    /// The workspace of the endpoint slice.
    pub slice_workspace: Client,
    /// Name of the endpoint slice.
    pub slice: String,
    /// The workspace of the export.
    pub export_workspace: Client,
    /// Name of the export.
    pub export: String,
    /// Name of the agent.
    pub agent_name: String,
    /// Namespace of the state Secrets.
    pub namespace: String,
    /// When objects are looked at again although no watch reported anything.
    pub timing: Timing,
    /// Tells consumers what happens to their objects.
    pub recorder: Recorder,
    /// How many objects are worked on at once, of all PublishedResources together.
    pub pace: Pace,
    /// Counts what was done.
    pub metrics: Arc<Metrics>,
    /// Knows what does not work.
    pub health: Arc<Health>,
    /// Where plans are told instead of being executed, if nothing shall be done.
    pub explained: Option<explain::Teller>,
    /// Where to tell of objects that fail.
    pub troubles: watch::Sender<Troubles>,
    /// Where to tell the names of PublishedResources whose objects were refused for want of a right.
    pub refused: mpsc::UnboundedSender<String>,
    /// What the service cluster grants.
    pub granted: watch::Receiver<Granted>,
}

/// Keeps one syncer running for every PublishedResource that is published and valid, and for every kind whose objects are to be let go,
/// until told to stop.
pub(crate) async fn run(context: Arc<Context>, mut catalog: watch::Receiver<Arc<Catalog>>, stop: CancellationToken) {
    let states = Arc::new(States::new(context.local.clone(), &context.namespace));
    let part = context.health.part("state Secrets");
    if !states.load(&part, &stop).await {
        return;
    }
    let fleets = Fleets::start(&context, stop.clone());
    let mut manager = Manager {
        related: Arc::new(RelatedWatches::new(context.local.clone(), fleets.clone())),
        fleets,
        context,
        states,
        syncers: HashMap::new(),
        abandoned: Vec::new(),
        stop,
    };
    let part = manager.context.health.part("search for kinds that are not published any more");
    let mut backoff = Backoff::for_servers();
    let mut published: Option<HashSet<String>> = None;
    let mut broken = HashSet::new();
    let mut look: Option<Instant> = None;
    let mut granted = manager.context.granted.clone();
    let mut regained = BTreeMap::new();
    let (consumers, pace) = (manager.fleets.consumers.clone(), manager.context.pace.clone());
    let _shown = manager.context.metrics.show(move |page| show_fleet(page, &consumers, pace.limit()));
    loop {
        let again = async {
            match look {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = manager.stop.cancelled() => break,
            changed = catalog.changed() => if changed.is_err() { break },
            () = changes(&mut granted) => {
                let now = granted.borrow_and_update().regained.clone();
                let more: Vec<String> = now.iter().filter(|(name, times)| regained.get(*name) != Some(*times)).map(|(name, _)| name.clone()).collect();
                manager.try_again(&more).await;
                regained = now;
            }
            () = again => {}
        }
        let current = catalog.borrow_and_update().clone();
        manager.adjust(&current).await;
        // Kinds may also have been abandoned while no agent ran.
        let (now, broken_now) = (published_schemas(&current), current.broken());
        let lost = published.as_ref().is_none_or(|before| !before.is_subset(&now)) || broken != broken_now;
        (published, broken) = (Some(now), broken_now);
        if lost || look.is_some_and(|at| at <= Instant::now()) {
            look = match abandoned::look(&manager.context, &current).await {
                Ok(found) => {
                    manager.abandoned = found;
                    manager.adjust(&current).await;
                    part.works();
                    backoff.reset();
                    None
                }
                Err(error) => {
                    part.fails(&error);
                    Some(Instant::now() + backoff.pause())
                }
            };
        }
    }
    futures::future::join_all(manager.syncers.into_values().map(Syncer::stop)).await;
}

/// Waits for a change; for ever if nobody tells any more.
async fn changes<T>(receiver: &mut watch::Receiver<T>) {
    if receiver.changed().await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Schemas of all PublishedResources that can be worked with.
fn published_schemas(catalog: &Catalog) -> HashSet<String> {
    catalog.entries.values().map(|entry| entry.schema_name.clone()).collect()
}

/// Starts, stops and re-rules syncers.
struct Manager {
    context: Arc<Context>,
    states: Arc<States>,
    fleets: Fleets,
    related: Arc<RelatedWatches>,
    syncers: HashMap<String, Syncer>,
    /// Rules for kinds that nobody publishes any more.
    abandoned: Vec<Arc<Rules>>,
    stop: CancellationToken,
}

impl Manager {
    /// Makes the syncers what the catalog says. An old one has ended before a new one for the same kind begins.
    async fn adjust(&mut self, catalog: &Catalog) {
        let wanted = self.wanted(catalog);
        let fits = |name: &String, syncer: &Syncer| wanted.get(name).is_some_and(|rules| syncer.fits(rules));
        let obsolete: Vec<String> =
            self.syncers.iter().filter(|(name, syncer)| !fits(name, syncer)).map(|(name, _)| name.clone()).collect();
        let ending = obsolete.into_iter().filter_map(|name| {
            let syncer = self.syncers.remove(&name)?;
            Some(async move {
                syncer.stop().await;
                tracing::info!(publishedresource = name, "Stopped synchronizing objects.");
            })
        });
        futures::future::join_all(ending).await;
        for (name, rules) in wanted {
            match (self.syncers.get(&name), rules.duty) {
                (Some(syncer), _) => {
                    syncer.set_rules(&rules);
                    continue;
                }
                (None, Duty::Sync) => {
                    tracing::info!(publishedresource = name, "Starting to synchronize objects…");
                }
                (None, Duty::End) => {
                    tracing::warn!(
                        publishedresource = name,
                        "There are no valid rules: objects are left as they are, deleted ones go with their copies."
                    );
                }
                (None, Duty::LetGo) => {
                    tracing::info!(
                        publishedresource = name,
                        "Letting go of objects that are not synchronized any more…"
                    );
                }
            }
            let (context, states, related) = (self.context.clone(), self.states.clone(), self.related.clone());
            let syncer = Syncer::start(context, states, &self.fleets, related, rules, &self.stop);
            self.syncers.insert(name, syncer);
        }
    }

    /// What was refused to these PublishedResources is allowed now. Pauses have grown meanwhile; nobody waits for their end.
    async fn try_again(&mut self, names: &[String]) {
        for name in names {
            let Some(syncer) = self.syncers.get(name) else { continue };
            if syncer.sees_copies() {
                syncer.try_again();
            } else if let Some(syncer) = self.syncers.remove(name) {
                // It is started anew, with watches that do not wait either.
                syncer.stop().await;
            }
        }
    }

    /// Rules by name of the PublishedResource, or of the schema where there is none.
    fn wanted(&self, catalog: &Catalog) -> BTreeMap<String, Arc<Rules>> {
        let mut wanted = BTreeMap::new();
        for (name, entry) in &catalog.entries {
            let Some(pr) = catalog.resources.get(name) else { continue };
            let rules = match &entry.rules {
                Ok(rules) if pr.is_at_work() => Some(rules.clone()),
                // Published for the first time: there is nothing to let go.
                _ if pr.status.resource_schema_name.is_empty() => None,
                // Not valid since the start of the agent.
                _ if pr.is_at_work() => self.afterwards(Duty::End, name, entry),
                _ => self.afterwards(Duty::LetGo, name, entry),
            };
            wanted.extend(rules.map(|rules| (name.clone(), rules)));
        }
        let taken = catalog.entries.values().map(|entry| resource_of(&entry.schema_name));
        // What another agent keeps is not ours to let go.
        let taken: HashSet<String> = taken.chain(catalog.elsewhere.iter().cloned()).collect();
        let abandoned = self.abandoned.iter().filter(|rules| !taken.contains(&rules.remote.resource()));
        let abandoned = abandoned.filter(|rules| self.is_worth_it(&rules.name, rules));
        wanted.extend(abandoned.map(|rules| (rules.name.clone(), rules.clone())));
        wanted
    }

    /// Rules for objects of a PublishedResource that are not synchronized any more; none if there are no such objects.
    fn afterwards(&self, duty: Duty, name: &str, entry: &Entry) -> Option<Arc<Rules>> {
        let rules = Rules::afterwards(duty, &entry.pr, &entry.crd, &self.context.agent_name).ok()?;
        // The same rules once more would have all objects looked at again.
        if let Some(syncer) = self.syncers.get(name)
            && syncer.rules().duty == duty
            && syncer.fits(&rules)
        {
            return Some(syncer.rules());
        }
        self.is_worth_it(name, &rules).then(|| Arc::new(rules))
    }

    /// Watching a kind to let go of its objects is worth it only if some were synchronized once.
    fn is_worth_it(&self, name: &str, rules: &Rules) -> bool {
        self.syncers.contains_key(name) || self.states.remembers(&rules.remote)
    }
}
