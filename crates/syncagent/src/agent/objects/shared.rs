//! What everything that works on the orders of one PublishedResource shares.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use carrick_client::discovery::find_kind;
use carrick_client::{Client, Error, Object, Resource};
use carrick_multicluster::{Cluster, ClusterName, FleetStore};
use carrick_sync::executor::{Allowance, Brake, Namespaces};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::Instant;

use super::context::Context;
use super::deletion::leftovers::LeftCopies;
use super::deletion::let_go::LetGo;
use super::deletion::losses::Losses;
use super::deletion::orphans::Orphans;
use super::feedback::drifted::DriftedOrders;
use super::feedback::failing::{Failing, Failure, Warned};
use super::feedback::overwritten::OverwrittenCopies;
use super::feedback::paused::PausedOrders;
use super::feedback::races::Races;
use super::feedback::refusals::ReportedReasons;
use super::fleet::Fleets;
use super::import::ImportedObjects;
use super::quota::room::{LargeOrders, RoomQueue};
use super::quota::throttled::Throttled;
use super::quota::waiting::PlacedOrders;
use super::related::users::{Primary, SecretUses};
use super::related::withheld::Reach;
use super::related::{PrimaryKey, RelatedWatches};
use super::states::States;
use crate::agent::platform_mesh::consumer::Consumer;
use crate::decide::state::PrimaryState;
use crate::decide::{ObjectAddress, OtherUser, Record, has_finalizer};
use crate::rules::Rules;
use crate::rules::metadata::{KCP_SIDE, SourceKey, is_deleting};

/// The caches of one PublishedResource.
pub(super) struct Stores {
    /// Consumers' objects.
    pub sources: FleetStore<Object>,
    /// Their copies on the service cluster.
    pub copies: FleetStore<Object>,
    /// Namespaces in consumers' workspaces, if the rules filter by them.
    pub consumer_namespaces: Option<FleetStore<Object>>,
}

/// What all tasks of one PublishedResource share.
pub(super) struct Shared {
    pub context: Arc<Context>,
    pub states: Arc<States>,
    pub sources: FleetStore<Object>,
    pub copies: FleetStore<Object>,
    /// Namespaces in consumers' workspaces, if the rules filter by them.
    pub consumer_namespaces: Option<FleetStore<Object>>,
    pub related: Arc<RelatedWatches>,
    pub fleets: Fleets,
    pub namespaces: Namespaces,
    /// What is out of reach in consumers' workspaces.
    pub reach: Reach,
    /// Who has a place and who waits for one, where the rules limit that.
    pub places: PlacedOrders,
    /// Who waits because the own workspace has no room.
    pub room_queue: RoomQueue,
    /// Large orders take turns.
    pub large: LargeOrders,
    /// Workspace paths by cluster.
    pub paths: Mutex<HashMap<ClusterName, String>>,
    /// What could not be cleaned up.
    pub losses: Mutex<Losses>,
    released: Mutex<HashSet<SourceKey>>,
    /// Copies whose sources do not exist.
    pub orphans: Arc<Orphans>,
    /// Copies that may be left although no cache shows them.
    pub left: LeftCopies,
    /// Writes that something undoes again and again, or that never end.
    pub brake: Brake,
    /// Originals that were let go for orders that end.
    pub let_go: LetGo,
    /// Whether the service cluster answers the watch of copies that it has no such kind.
    pub no_kind: AtomicBool,
    /// Since when the service cluster cannot be reached, if it cannot.
    pub lost_since: Mutex<Option<Instant>>,
    /// Orders with which somebody else was faster.
    pub races: Races,
    /// Orders for which a server asked to wait.
    pub throttled: Throttled,
    /// What orders were told that are refused.
    pub told: ReportedReasons,
    /// What the conditions of orders were given.
    pub conditions: ReportedReasons,
    /// What events have said about orders that fail.
    pub reported: ReportedReasons,
    /// Objects whose last reconcile failed.
    pub failing: Arc<Failing>,
    /// Objects that are paused.
    pub paused: Arc<PausedOrders>,
    /// Objects whose copies others have changed.
    pub drifted: Arc<DriftedOrders>,
    /// Objects with related ones whose copies others have changed.
    pub overwritten: Arc<OverwrittenCopies>,
    /// Objects that get their orders from the agent.
    pub imports: ImportedObjects,
    /// What consumers were warned of that will not end by itself soon.
    pub warned: Arc<Mutex<HashMap<SourceKey, Warned>>>,
    /// Asks for another report on all orders.
    pub count_again: Notify,
    rules: watch::Sender<Arc<Rules>>,
    requeued: mpsc::UnboundedSender<SourceKey>,
}

impl Shared {
    /// Nothing has happened yet. Objects that are requeued go to the sender.
    pub fn new(
        context: Arc<Context>,
        states: Arc<States>,
        Stores { sources, copies, consumer_namespaces }: Stores,
        (related, fleets): (Arc<RelatedWatches>, Fleets),
        rules: Arc<Rules>,
        requeued: mpsc::UnboundedSender<SourceKey>,
    ) -> Self {
        // One object's writes are counted, so that one that never rests costs servers no more than many that do.
        let allowed = Allowance { most: context.budget.writes, flag: "--max-writes-per-minute" };
        Self {
            context,
            states,
            sources,
            copies,
            consumer_namespaces,
            related,
            fleets,
            namespaces: Namespaces::default(),
            reach: Reach::default(),
            places: PlacedOrders::default(),
            room_queue: RoomQueue::default(),
            large: LargeOrders::default(),
            paths: Mutex::default(),
            losses: Mutex::default(),
            released: Mutex::default(),
            orphans: Arc::default(),
            left: LeftCopies::default(),
            brake: Brake::allowing(allowed),
            let_go: LetGo::default(),
            lost_since: Mutex::default(),
            no_kind: AtomicBool::default(),
            races: Races::default(),
            throttled: Throttled::default(),
            told: ReportedReasons::default(),
            conditions: ReportedReasons::default(),
            reported: ReportedReasons::default(),
            failing: Arc::default(),
            paused: Arc::default(),
            drifted: Arc::default(),
            overwritten: Arc::default(),
            imports: ImportedObjects::default(),
            warned: Arc::default(),
            count_again: Notify::new(),
            rules: watch::Sender::new(rules),
            requeued,
        }
    }

    /// The rules of this moment.
    pub fn rules(&self) -> Arc<Rules> {
        self.rules.borrow().clone()
    }

    /// Swaps the rules.
    pub fn set_rules(&self, rules: &Arc<Rules>) {
        self.told.rules_changed();
        self.conditions.rules_changed();
        self.reported.rules_changed();
        self.rules.send_replace(rules.clone());
        self.places.rules_changed();
    }

    /// Reports every change of the rules.
    pub fn rules_changes(&self) -> watch::Receiver<Arc<Rules>> {
        self.rules.subscribe()
    }

    /// Requeues an object although nothing about it has changed.
    pub fn requeue(&self, key: SourceKey) {
        // Nobody listens any more when the syncer has stopped.
        let _ = self.requeued.send(key);
    }

    /// Whether an object was released.
    pub fn was_released(&self, key: &SourceKey) -> bool {
        self.released.lock().contains(key)
    }

    /// Whether another object had the name of the copy at the last reconcile.
    pub fn was_taken(&self, key: &SourceKey) -> bool {
        self.warned.lock().get(key).is_some_and(|warned| warned.taken)
    }

    /// Notes what the consumer is to be warned of, if anything, and says whether that is news.
    pub fn note_warned(&self, key: &SourceKey, warned: Option<Warned>) -> bool {
        let mut all = self.warned.lock();
        let Some(warned) = warned else { return all.remove(key).is_some() };
        all.insert(key.clone(), warned.clone()).is_none_or(|before| before != warned)
    }

    /// Notes that an object was released, or is synchronized again.
    pub fn note_released(&self, key: &SourceKey, released: bool) {
        let mut all = self.released.lock();
        if released {
            all.insert(key.clone())
        } else {
            all.remove(key)
        };
    }

    /// Notes that the reconcile of an object failed, and returns how it failed before, if it did. If it was for want of a right, somebody
    /// finds out which one.
    pub fn note_failure(&self, key: &SourceKey, failure: Failure, forbidden: bool) -> Option<Failure> {
        if forbidden {
            // Nobody listens where plans are only recorded.
            let _ = self.context.refused.send(self.rules().name.clone());
        }
        self.failing.note(key, failure)
    }

    /// An order, named so that people know it: with the path of its workspace, if that is known.
    pub fn shown(&self, key: &SourceKey) -> String {
        let path = self.fleets.consumers.cluster(&key.cluster).ok().and_then(|cluster| cluster.path());
        path.map_or_else(|| key.to_string(), |path| format!("{key} ({path})"))
    }

    /// Whose an order of that workspace is, by the broker's annotation on it.
    pub fn consumer(&self, cluster: &Cluster, annotation: impl FnOnce() -> Option<String>) -> Consumer {
        let Some(root) = &self.context.staging_root else { return Consumer::Owner };
        root.consumer(cluster.path().as_deref(), annotation().as_deref())
    }

    /// Whether an order that its owner has deleted is let go although its copy cannot be reached: a broker waits for that, and the provider has
    /// said for how long.
    pub fn gives_up(&self, source: &Value, cluster: &Cluster) -> bool {
        let lost = *self.lost_since.lock();
        let (Some(root), Some(since), Some(path)) = (&self.context.staging_root, lost, cluster.path()) else {
            return false;
        };
        is_deleting(source) && root.releases(&path, since.elapsed())
    }

    /// Notes that a source does not exist although it has a copy; or that this is no longer so. Such a copy is never deleted: its source
    /// may just be out of sight, and if it was deleted, that was while nothing was synchronized.
    pub fn note_orphan(&self, key: &SourceKey, copy: Option<&Arc<Object>>) {
        if !self.orphans.note(key, copy.map(Arc::as_ref), jiff::Timestamp::now()) {
            return;
        }
        if let Some(copy) = copy {
            tracing::warn!(
                object = %key,
                copy = format!("{}/{}", copy.namespace, copy.name),
                "A copy has no source in kcp and is left alone. Delete it if nobody needs it."
            );
        }
        self.context.metrics.set_orphans(&self.rules().name, self.orphans.len());
    }

    /// Forgets a source that does not exist any more.
    pub fn forget(&self, key: &SourceKey) {
        self.related.forget(&self.primary_key(key));
        self.reach.forget(key);
        self.left.forget(key);
        self.let_go.forget(key);
        self.races.over(key);
        self.throttled.forget(|known| known == key);
        self.told.over(key);
        self.conditions.over(key);
        self.reported.over(key);
        self.paused.forget(|known| known == key);
        self.drifted.forget(|known| known == key);
        self.overwritten.forget(|known| known == key);
        self.room_queue.over(key);
        self.note_released(key, false);
        self.note_warned(key, None);
        self.context.metrics.legs.forget(key);
        self.free_place(key);
    }

    /// Forgets the orders of a workspace that has left: no event will say what became of them. Should it come back, all of them are reconciled
    /// as after a restart.
    pub fn forget_workspace(&self, cluster: &str) {
        let is_there = |key: &SourceKey| *key.cluster == *cluster;
        let mut keys: HashSet<SourceKey> = self.released.lock().iter().filter(|key| is_there(key)).cloned().collect();
        keys.extend(self.warned.lock().keys().filter(|key| is_there(key)).cloned());
        keys.extend(self.failing.keys().into_iter().filter(is_there));
        for key in &keys {
            self.forget(key);
            self.failing.healed(key);
        }
        self.places.forget_workspace(cluster);
        self.throttled.forget(is_there);
        self.told.forget(is_there);
        self.conditions.forget(is_there);
        self.reported.forget(is_there);
        self.paused.forget(is_there);
        self.drifted.forget(is_there);
        self.overwritten.forget(is_there);
        self.paths.lock().retain(|known, _| **known != *cluster);
    }

    /// An object has no place any more. Whoever has waited longest for one in the same workspace is reconciled.
    pub fn free_place(&self, key: &SourceKey) {
        if let Some(waiting) = self.places.leave(key) {
            self.requeue(waiting);
        }
    }

    /// A primary as the watches of related objects know it.
    pub fn primary_key(&self, key: &SourceKey) -> PrimaryKey {
        (self.rules().name.as_str().into(), key.clone())
    }

    /// Other primaries that use the same original or the same copy, and stay.
    pub fn others(&self, rules: &Rules, key: &SourceKey, record: &Record) -> Vec<OtherUser> {
        let uses = self.states.others(&rules.remote, key, record);
        let used =
            |(uses, other): (SecretUses, OtherUser)| self.related.primaries.uses(&self.fleets.consumers, &uses, other);
        uses.into_iter().filter_map(used).collect()
    }

    /// Asks kcp about orders of kinds that nobody sees any more, where they are said to use the same originals as an order: a kind that was withdrawn
    /// holds nothing.
    pub async fn ask_about_others(
        &self,
        kcp: &Client,
        rules: &Rules,
        key: &SourceKey,
        state: &PrimaryState,
    ) -> Result<(), Error> {
        for (_, record) in state.records().filter(|(_, record)| record.origin.side == KCP_SIDE) {
            for (secret, primary) in self.states.users(&rules.remote, key, record) {
                if !self.related.primaries.see(&self.fleets.consumers, &primary)
                    && !is_held_in_kcp(kcp, &primary).await?
                {
                    self.states.holds_nothing(&secret);
                }
            }
        }
        Ok(())
    }

    /// A different original that another primary, which stays, copies to the same place.
    pub fn rival(&self, rules: &Rules, key: &SourceKey, record: &Record) -> Option<String> {
        let rival = self.states.rival(&rules.remote, key, record)?;
        self.others(rules, key, record).iter().any(|other| other.copy).then_some(rival)
    }

    /// Whether another primary needs an object in kcp that a primary is about to release.
    pub fn is_needed(&self, rules: &Rules, key: &SourceKey, at: &ObjectAddress) -> bool {
        let record = Record { identifier: String::new(), origin: at.clone(), copy: at.clone(), uid: None, how: None };
        self.others(rules, key, &record).iter().any(|other| other.origin)
    }
}

/// Whether kcp has an order that is held. One of a kind that is not served to the agent any more was let go before.
async fn is_held_in_kcp(kcp: &Client, primary: &Primary) -> Result<bool, Error> {
    let Some(kind) = find_kind(kcp, &primary.group, &primary.kind).await? else { return Ok(false) };
    let resource = if kind.namespaced { Resource::namespaced } else { Resource::cluster_wide };
    let resource = resource(&kind.group, &kind.preferred, &kind.kind, &kind.plural);
    let namespace = kind.namespaced.then_some(&*primary.source.namespace);
    Ok(kcp.get(&resource, namespace, &primary.source.name).await?.is_some_and(|order| has_finalizer(&order)))
}

#[cfg(test)]
mod tests;
