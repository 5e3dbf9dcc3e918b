//! One order: observe, decide, act.

use std::sync::Arc;

use carrick_client::Object;
use carrick_multicluster::{Cluster, Key};
use serde_json::Value;
use tokio::time::Instant;

use super::act::Executor;
use super::copies;
use super::error::ReconcileError;
use super::observe::{Observed, observe};
use super::order::Order;
use super::related::kinds::resource;
use super::shared::Shared;
use crate::api::{REMOTE_RESOURCE, REMOTE_UID};
use crate::decide::{Next, Plan, decide};
use crate::rules::Duty;
use crate::rules::metadata::{SourceKey, annotation};

/// Brings one object in line, and reports what is wrong if that fails.
pub(super) async fn reconcile(
    shared: &Shared,
    executor: &Executor,
    key: &SourceKey,
    source: Option<Arc<Object>>,
    (cluster, since): (&Cluster, Instant),
) -> Result<Next, ReconcileError> {
    let length = source.as_ref().map_or(0, |source| source.length());
    if !shared.large.begin(key, length) {
        return Ok(Next::Soon);
    }
    let ended = Ended { shared, key, length };
    let result = reconcile_now(shared, executor, key, source, (cluster, since)).await;
    drop(ended);
    result
}

/// The end of a reconcile, also of one that is aborted: others may have a turn, and there may be room for more.
struct Ended<'a> {
    shared: &'a Shared,
    key: &'a SourceKey,
    length: usize,
}

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        let Self { shared, key, length } = self;
        let fitting = shared.room_queue.fitting(&key.cluster, || shared.sources.room(&key.cluster));
        for next in fitting.into_iter().filter(|next| next != *key).chain(shared.large.end(key, *length)) {
            shared.requeue(next);
        }
    }
}

async fn reconcile_now(
    shared: &Shared,
    executor: &Executor,
    key: &SourceKey,
    source: Option<Arc<Object>>,
    (cluster, since): (&Cluster, Instant),
) -> Result<Next, ReconcileError> {
    let Some(source) = source else {
        shared.forget(key);
        let orphan = orphan(shared, key);
        if let Some(copy) = orphan.as_ref().map(|copy| copy.value()).filter(|copy| is_late(shared, key, copy, None)) {
            executor.remove_late(shared, key, &copy).await?;
            return Ok(Next::Soon);
        }
        shared.note_orphan(key, orphan.as_ref());
        return Ok(Next::OnChange);
    };
    shared.note_orphan(key, None);
    if let Some(waits) = shared.throttled.left(key) {
        return Err(waits);
    }
    let source = whole(shared, key, cluster, source).await?;
    let order = Order::new(shared, key, cluster, &source, since);
    let result = process(executor, &order).await;
    result.as_ref().err().into_iter().for_each(|error| shared.throttled.note(key, error));
    let result = contested(shared, key, result);
    if result.as_ref().is_err_and(ReconcileError::is_transient) && shared.gives_up(&order.source, cluster) {
        return executor.give_up(&order).await.map(|()| Next::OnChange);
    }
    executor.report(&order, result.as_ref().err());
    let Err(error) = result else {
        shared.told.over(key);
        shared.conditions.over(key);
        shared.reported.over(key);
        return result;
    };
    let told = match error.refusal() {
        Some(why) => executor.tell(&order, &why).await,
        None => Ok(()),
    };
    let told = told.and(executor.report_unplaced(&order, &error).await);
    // What the provider does not want is no failure: it is reconciled again when something changes.
    if error.is_unwanted() { told.map(|()| Next::OnChange) } else { Err(error) }
}

/// The whole of an object that was left out for want of room, if there is room by now.
async fn whole(
    shared: &Shared,
    key: &SourceKey,
    cluster: &Cluster,
    source: Arc<Object>,
) -> Result<Arc<Object>, ReconcileError> {
    let Some(bytes) = source.left_out() else {
        shared.room_queue.over(key);
        return Ok(source);
    };
    shared.room_queue.note(key, bytes);
    if source.is_deleting() || shared.sources.room(&key.cluster).is_some_and(|room| room < bytes) {
        // Finalizers are written as a list, and others' must stay in it.
        let read = if source.lacks_finalizers() { read_source(shared, key, cluster).await? } else { None };
        return Ok(read.map_or(source, |read| Arc::new(read.without_content_for_now(bytes))));
    }
    let Some(read) = read_source(shared, key, cluster).await? else { return Ok(source) };
    let place = Key::new(cluster.name().clone(), &*key.namespace, &*key.name);
    shared.room_queue.over(key);
    // Another version is reported by the watch.
    let is_complete = shared.sources.complete(&place, read);
    Ok(shared.sources.lookup(&place).filter(|_| is_complete).unwrap_or(source))
}

/// The object as it is in kcp now, if it is there.
async fn read_source(shared: &Shared, key: &SourceKey, cluster: &Cluster) -> Result<Option<Object>, ReconcileError> {
    let remote = resource(&shared.rules().remote);
    let read = cluster.json_client().get(&remote, Some(&*key.namespace).filter(|it| !it.is_empty()), &key.name).await;
    let unreadable =
        |source| ReconcileError::Read { what: "the object".to_owned(), cluster: key.cluster.to_string(), source };
    Ok(read.map_err(unreadable)?.as_ref().and_then(Object::from_value))
}

/// Somebody else may be faster once; whoever is so again and again is in the way, or the agent does not see what is there.
fn contested<T>(shared: &Shared, key: &SourceKey, result: Result<T, ReconcileError>) -> Result<T, ReconcileError> {
    match result {
        Err(ReconcileError::Step(step)) if step.is_race() => Err(match shared.races.lost(key) {
            Some(rounds) => ReconcileError::Contested { step, rounds },
            None => step.into(),
        }),
        result => {
            shared.races.over(key);
            result
        }
    }
}

async fn process(executor: &Executor, order: &Order<'_>) -> Result<Next, ReconcileError> {
    let mut observed = observe(order).await?;
    if observed.ahead.is_none() {
        return Ok(Next::Soon);
    }
    let is_late = |copy: &&Value| is_late(order.shared, order.key, copy, order.source["metadata"]["uid"].as_str());
    if let Some(copy) = observed.copies.iter().find(is_late) {
        executor.remove_late(order.shared, order.key, copy).await?;
        return Ok(Next::Soon);
    }
    executor.note_paused(order, &observed);
    let mut plan = plan(order, &mut observed).await?;
    if plan.needs_managers {
        if executor.count_drift(order, &plan) {
            return Ok(Next::Now);
        }
        observed.read_managers(order).await?;
        plan = decide(&order.rules, observed.seen(order))?;
    }
    plan.notices.extend(observed.notices());
    executor.act(order, observed, plan).await
}

/// Decides what to do. Where a decision needs more than was observed, that is read first: related objects, then all that is remembered.
async fn plan(order: &Order<'_>, observed: &mut Observed) -> Result<Plan, ReconcileError> {
    let mut plan = decide(&order.rules, observed.seen(order))?;
    if observed.lacks_related(order, &plan) {
        observed.read_related(order).await?;
        plan = decide(&order.rules, observed.seen(order))?;
    }
    if plan.needs_memory {
        observed.read_memory(order).await?;
        plan = decide(&order.rules, observed.seen(order))?;
    }
    Ok(plan)
}

/// Whether a copy was made for an order of the same name that had ended by then: a server took its time with it.
fn is_late(shared: &Shared, key: &SourceKey, copy: &Value, uid: Option<&str>) -> bool {
    // An order that is only out of sight has not ended.
    let has_ended = |theirs: &str| shared.states.has_ended(theirs) && shared.left.may_come(key, theirs);
    annotation(copy, REMOTE_UID).is_some_and(|theirs| Some(theirs) != uid && has_ended(theirs))
}

/// The copy of a source that does not exist. Copies of other agents do not name the kind of their source, but what is remembered does.
fn orphan(shared: &Shared, key: &SourceKey) -> Option<Arc<Object>> {
    let rules = shared.rules();
    let is_remembered = || !shared.states.get(&rules.remote, key).is_empty();
    let is_ours = |copy: &Arc<Object>| copy.annotation(REMOTE_RESOURCE).is_some() || is_remembered();
    let mut copies = copies::of(&shared.copies, key, &rules.remote.resource()).into_iter();
    copies.next().filter(|copy| rules.duty == Duty::Sync && is_ours(copy))
}
