//! The manager: one syncer for every PublishedResource, started, stopped and given new rules as the catalog changes.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::act::Executor;
use super::context::Context;
use super::deletion::{abandoned, released};
use super::fleet::Fleets;
use super::related::{Patience, RelatedWatches};
use super::states::States;
use super::syncer::{Setup, Syncer};
use crate::agent::catalog::{Catalog, CatalogEntry};
use crate::agent::metrics::show_fleet;
use crate::agent::retry::Retry;
use crate::rules::abandoned::resource_of;
use crate::rules::{Duty, Rules};

/// Keeps one syncer running for every PublishedResource that is published and valid, and for every kind whose objects are to be released,
/// until told to stop.
pub(crate) async fn run(context: Arc<Context>, mut catalog: watch::Receiver<Arc<Catalog>>, stop: CancellationToken) {
    let states = Arc::new(States::new(context.local.clone(), &context.namespace, &context.agent_name));
    let part = context.health.part("state Secrets");
    if !states.load(&part, &stop).await {
        return;
    }
    let part = context.health.part("search for kinds that are not published any more");
    let mut retry = Retry::for_servers();
    let mut published: Option<HashSet<String>> = None;
    let mut broken = HashSet::new();
    let mut granted = context.granted.clone();
    let mut regained = BTreeMap::new();
    let mut manager = Manager::new(context, states, Executor::Send, Patience::default(), stop.clone());
    let Setup { context, fleets, .. } = &manager.setup;
    let (consumers, pace) = (fleets.consumers.clone(), context.pace.clone());
    let _shown = context.metrics.show(move |page| show_fleet(page, &consumers, pace.limit()));
    loop {
        tokio::select! {
            () = stop.cancelled() => break,
            changed = catalog.changed() => if changed.is_err() { break },
            () = changes(&mut granted) => {
                let now = granted.borrow_and_update().regained.clone();
                let more: Vec<String> = now.iter().filter(|(name, times)| regained.get(*name) != Some(*times)).map(|(name, _)| name.clone()).collect();
                manager.retry_failing(&more).await;
                regained = now;
            }
            () = retry.due() => {}
        }
        let current = catalog.borrow_and_update().clone();
        manager.adjust(&current).await;
        // Kinds may also have been abandoned while no agent ran.
        let (now, broken_now) = (published_schemas(&current), current.broken());
        let lost = published.as_ref().is_none_or(|before| !before.is_subset(&now)) || broken != broken_now;
        (published, broken) = (Some(now), broken_now);
        if lost || retry.is_due() {
            match abandoned::find(&manager.setup.context, &current).await {
                Ok(found) => {
                    manager.abandoned = found;
                    manager.adjust(&current).await;
                    part.works();
                    retry.succeeded();
                }
                Err(error) => {
                    part.fails(&error);
                    retry.failed();
                }
            }
        }
    }
    manager.stop().await;
}

/// Waits for a change; for ever if there will be none.
async fn changes<T>(receiver: &mut watch::Receiver<T>) {
    if receiver.changed().await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Schemas of all usable PublishedResources.
fn published_schemas(catalog: &Catalog) -> HashSet<String> {
    catalog.entries.values().map(|entry| entry.schema_name.clone()).collect()
}

/// Starts and stops syncers, and swaps their rules.
pub(super) struct Manager {
    setup: Setup,
    syncers: HashMap<String, Syncer>,
    /// Rules for kinds that nobody publishes any more.
    abandoned: Vec<Arc<Rules>>,
}

impl Manager {
    /// A manager without syncers. What is absent is withdrawn when `absences` says so.
    pub fn new(
        context: Arc<Context>,
        states: Arc<States>,
        executor: Executor,
        absences: Patience,
        stop: CancellationToken,
    ) -> Self {
        let fleets = Fleets::start(&context, stop.clone());
        let related = Arc::new(RelatedWatches::new(context.local.clone(), fleets.clone(), absences));
        let setup = Setup { context, states, fleets, related, executor, stop };
        Self { setup, syncers: HashMap::new(), abandoned: Vec::new() }
    }

    /// The clusters on both sides.
    pub fn fleets(&self) -> &Fleets {
        &self.setup.fleets
    }

    /// All syncers, by name of the PublishedResource, or of the schema where there is none.
    pub fn syncers(&self) -> &HashMap<String, Syncer> {
        &self.syncers
    }

    /// Stops all syncers.
    pub async fn stop(self) {
        futures::future::join_all(self.syncers.into_values().map(Syncer::stop)).await;
    }

    /// Makes the syncers what the catalog says. An old one has ended before a new one for the same kind begins.
    pub async fn adjust(&mut self, catalog: &Catalog) {
        self.inherit(&catalog.former);
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
                (None, Duty::Release) => {
                    tracing::info!(publishedresource = name, "Releasing objects that are no longer synchronized…");
                }
            }
            self.syncers.insert(name, Syncer::start(&self.setup, rules));
        }
        // Where no object was ever held, there is nothing to release.
        for (name, pr) in catalog.resources.iter().filter(|(name, _)| !self.syncers.contains_key(*name)) {
            let holds_nothing = pr.is_withdrawn() && catalog.entries.contains_key(name);
            released::note(&self.setup.context.released, name, holds_nothing);
        }
        let exists = |name: &str| self.syncers.contains_key(name) || catalog.resources.contains_key(name);
        released::keep_only(&self.setup.context.released, exists);
    }

    /// Takes the part of agents that are no more. What waited for them is reconciled again.
    fn inherit(&self, names: &BTreeSet<String>) {
        let news = self.setup.context.former.send_if_modified(|known| {
            let news = **known != *names;
            if news {
                *known = Arc::new(names.clone());
            }
            news
        });
        if news {
            for syncer in self.syncers.values() {
                syncer.requeue_all();
            }
        }
    }

    /// Rights that these PublishedResources lacked are granted now. Pauses have grown meanwhile; nobody should wait for their end.
    async fn retry_failing(&mut self, names: &[String]) {
        for name in names {
            let Some(syncer) = self.syncers.get(name) else { continue };
            if syncer.sees_copies() {
                syncer.retry_failing();
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
                // Published for the first time: there is nothing to release.
                _ if pr.status.resource_schema_name.is_empty() => None,
                // Not valid since the start of the agent.
                _ if pr.is_at_work() => self.afterwards(Duty::End, name, entry),
                _ => self.afterwards(Duty::Release, name, entry),
            };
            wanted.extend(rules.map(|rules| (name.clone(), rules)));
        }
        let taken = catalog.entries.values().map(|entry| resource_of(&entry.schema_name));
        // What another agent keeps is not ours to release.
        let taken: HashSet<String> = taken.chain(catalog.elsewhere.iter().cloned()).collect();
        let abandoned = self.abandoned.iter().filter(|rules| !taken.contains(&rules.remote.resource()));
        let abandoned = abandoned.filter(|rules| self.is_worth_it(&rules.name, rules));
        wanted.extend(abandoned.map(|rules| (rules.name.clone(), rules.clone())));
        wanted
    }

    /// Rules for objects of a PublishedResource that are no longer synchronized; none if there are no such objects.
    fn afterwards(&self, duty: Duty, name: &str, entry: &CatalogEntry) -> Option<Arc<Rules>> {
        let rules = Rules::afterwards(duty, &entry.pr, &entry.crd, &self.setup.context.agent_name).ok()?;
        // The same rules once more would requeue all objects.
        if let Some(syncer) = self.syncers.get(name)
            && syncer.rules().duty == duty
            && syncer.fits(&rules)
        {
            return Some(syncer.rules());
        }
        self.is_worth_it(name, &rules).then(|| Arc::new(rules))
    }

    /// Watching a kind to release its objects is worth it only if some were synchronized once.
    fn is_worth_it(&self, name: &str, rules: &Rules) -> bool {
        // Whoever asks what would be done wants to know about objects that nothing is done about, too.
        let asked = matches!(self.setup.executor, Executor::Record(_));
        asked || self.syncers.contains_key(name) || self.setup.states.remembers(&rules.remote)
    }
}
