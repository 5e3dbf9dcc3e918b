//! Plans that are sent to the servers, step by step.
#![allow(clippy::result_large_err)] // failures are rare, and reported at once

use std::collections::HashMap;
use std::time::Duration;

use carrick_client::{DeleteOptions, Error, Object};
use carrick_multicluster::FleetStore;
use carrick_sync::executor::refusal::{Access, Then, follows, is_done};
use carrick_sync::executor::{Deferred, Executor, StepError, Target, Verb};
use serde_json::Value;
use tokio::time::Instant;

use super::agent::OrderAgent;
use super::drifted;
use crate::agent::events::Type;
use crate::agent::objects::copies;
use crate::agent::objects::error::{PROVIDER_SIDE, Problem, ReconcileError};
use crate::agent::objects::feedback::failing::Warned;
use crate::agent::objects::feedback::steps::Tally;
use crate::agent::objects::observe::Observed;
use crate::agent::objects::order::Order;
use crate::agent::objects::reader::{ReadError, RelatedRead, Unseen};
use crate::agent::objects::related::kinds::resource;
use crate::agent::objects::shared::Shared;
use crate::api::{FIELD_MANAGER, FINALIZER, REFUSAL};
use crate::decide::feedback::{self, Fate};
use crate::decide::{Next, ObjectAddress, Plan, Record, RelatedView, Step};
use crate::rules::Rules;
use crate::rules::metadata::{KCP_SIDE, SERVICE_SIDE, SourceKey, annotation};

/// How long to wait until the caches show what was written. Nothing breaks if they do not: it only saves a needless reconcile.
const CATCH_UP: Duration = Duration::from_secs(2);

/// How many related objects are remembered by one write.
const TOGETHER: usize = 50;

/// Sends the plan for an order.
pub(super) async fn send(order: &Order<'_>, mut observed: Observed, mut plan: Plan) -> Result<Next, ReconcileError> {
    let Order { shared, rules, key, .. } = order;
    drifted::note(order, &plan);
    drifted::note_related(order, &observed, &plan);
    if !plan.implied.is_empty() {
        shared.states.imply(&rules.remote, key, std::mem::take(&mut plan.implied));
    }
    plan.next = match (plan.next, observed.related.unseen) {
        (Next::OnChange, Unseen::Appearance) => Next::Soon,
        (Next::OnChange, Unseen::Changes) => Next::Later,
        (next, _) => next,
    };
    if !observed.related.lost.is_empty() {
        report_loss(order, &observed.related.lost);
    }
    let blame = RelatedProblems::of(&mut observed.related, &plan);
    if plan.steps.is_empty() && plan.strands.is_empty() {
        return outcome(plan.next, None, blame, plan.notices);
    }
    note_deletions(order, &plan.steps);
    announce(order, plan.steps.iter().chain(plan.strands.iter().flatten()));
    if let Some(setback) = observed.seen(order).followed(rules).filter(|_| !plan.steps.is_empty()) {
        tracing::warn!(object = %key, "An order is carried out although it went back in time: {setback}.");
        let message =
            "The control plane was restored from a backup, and this object with it. It is carried out as it is now.";
        warn_consumer(order, "FollowedAfterRestore", message);
    }
    let (kcp, local) = (order.kcp().writing_as(FIELD_MANAGER), shared.context.local.writing_as(FIELD_MANAGER));
    let former = shared.context.former.borrow().clone();
    let agent = OrderAgent {
        kcp: &kcp,
        local: &local,
        states: &shared.states,
        recorder: &shared.context.recorder,
        rules,
        was_taken: shared.was_taken(key),
        key,
        source: &order.source,
        rivals: &observed.rivals,
        left: &shared.left,
        brake: &shared.brake,
        former: &former,
        workspace: observed.workspace(),
    };
    let mut executor = Executor {
        consumer: &kcp,
        provider: &local,
        namespaces: &shared.namespaces,
        agent,
        objects: HashMap::from([(ObjectAddress::of_source(KCP_SIDE, &rules.remote, key), order.source.clone())]),
        rebased: HashMap::new(),
    };
    let released = plan.releases();
    let (metrics, pace) = (&shared.context.metrics, &shared.context.pace);
    let tally = Tally { metrics, pace, rules, object: key, since: order.since };
    let mut failed = executor.run(plan.steps, &tally).await.err();
    if failed.as_ref().is_some_and(|error| error.is_transient() && is_create(error)) {
        shared.left.note_unanswered(key, order.source["metadata"]["uid"].as_str().unwrap_or_default());
    }
    if failed.is_none() && !plan.strands.is_empty() {
        executor.objects.extend(related_objects(rules, &observed.related.view));
        let (mut strands, mut deferred) = (plan.strands.into_iter().peekable(), Deferred::default());
        while strands.peek().is_some() {
            let together: Vec<Vec<Step>> = strands.by_ref().take(TOGETHER).collect();
            if let Err(error) = executor.intend(&together).await {
                failed = Some(error);
                break;
            }
            for strand in together {
                match send_strand(order, &mut executor, &tally, strand, &mut deferred).await {
                    Err(StepError::StatusRefused(notice)) => plan.notices.push(notice),
                    result => failed = result.err().or(failed),
                }
            }
            failed = executor.flush(&mut deferred).await.err().or(failed);
        }
    }
    shared.note_released(key, released && failed.is_none());
    if let Some(drift) = plan.drift.as_ref().filter(|_| failed.is_none()) {
        drifted::report(order, &observed, drift, &executor.objects);
    }
    // A cache that lags is no error: the next event decides anew.
    let _ = tokio::time::timeout(CATCH_UP, catch_up(order, &executor.objects, !observed.copies.is_empty())).await;
    outcome(plan.next, failed, blame, plan.notices)
}

fn is_create(error: &StepError) -> bool {
    matches!(error, StepError::Write { verb: Verb::Create, .. })
}

/// Deletes a copy that was made after the order it was meant for had ended, because a server took its time.
pub(super) async fn remove_late(shared: &Shared, key: &SourceKey, copy: &Value) -> Result<(), ReconcileError> {
    let kind = shared.rules().local.clone();
    let text = |field: &str| copy["metadata"][field].as_str();
    let (namespace, name) = (text("namespace"), text("name").unwrap_or_default());
    tracing::warn!(object = %key, copy = format!("{}/{name}", namespace.unwrap_or_default()), "A copy was made after its order had ended. It is deleted.");
    let options = DeleteOptions { uid: text("uid").map(str::to_owned), ..DeleteOptions::default() };
    let deleted =
        shared.context.local.writing_as(FIELD_MANAGER).delete(&resource(&kind), namespace, name, &options).await;
    match deleted {
        Err(source) if !is_done(&source, Access::Delete) => {
            let at = ObjectAddress::of_object(SERVICE_SIDE, &kind, copy).into();
            Err(StepError::Write { verb: Verb::Delete, at, source }.into())
        }
        _ => Ok(()),
    }
}

/// Writes on the order why it was refused, unless it says so already.
pub(super) async fn tell(order: &Order<'_>, why: &str) -> Result<(), ReconcileError> {
    let Order { rules, key, source, .. } = order;
    let at = ObjectAddress::of_source(KCP_SIDE, &rules.remote, key);
    let Some(step) = feedback::tell(rules, &at, source, Fate::Refused(why)) else { return Ok(()) };
    if is_only_refusal(&step) {
        let generation = source["metadata"]["generation"].as_i64().unwrap_or_default();
        if !order.shared.told.is_news(key, generation, annotation(source, REFUSAL), why) {
            return Ok(());
        }
    }
    announce(order, std::iter::once(&step));
    let Step::Patch { at, patch } = step else { return Ok(()) };
    let (kcp, kind) = (order.kcp().writing_as(FIELD_MANAGER), resource(&rules.remote));
    match kcp.merge_patch(&kind, at.namespace.as_deref(), &at.name, &patch).await {
        // An order that is gone, or whose kind is, needs no words.
        Err(source) if !source.is_not_found() => {
            Err(StepError::Write { verb: Verb::Patch, at: at.into(), source }.into())
        }
        _ => Ok(()),
    }
}

/// Whether nothing changes but the words of a refusal.
fn is_only_refusal(step: &Step) -> bool {
    let Step::Patch { patch, .. } = step else { return false };
    patch["metadata"]["annotations"].as_object().is_some_and(|changed| changed.keys().all(|key| key == REFUSAL))
}

/// Notes where the copy of an order that ends is deleted: before the order is released, that place is asked for.
fn note_deletions(order: &Order<'_>, steps: &[Step]) {
    let Order { shared, rules, key, source, .. } = order;
    let deleted = steps.iter().filter(|step| matches!(step, Step::Delete { .. })).filter_map(Step::address);
    for at in deleted.filter(|at| at.side == SERVICE_SIDE && *at.kind == rules.local) {
        shared.left.note_deleted(key, source["metadata"]["uid"].as_str().unwrap_or_default(), at.clone());
    }
}

/// Tells the consumer by an event what annotations announce.
fn announce<'a>(order: &Order<'_>, steps: impl Iterator<Item = &'a Step>) {
    for notice in steps.filter_map(feedback::announced) {
        let message = format!("This API is withdrawn by its provider at {notice}");
        warn_consumer(order, "Withdrawal", &message);
    }
}

/// Tells the consumer what is wrong, if anything is and unless it was reported before.
pub(super) fn report(order: &Order<'_>, error: Option<&ReconcileError>) {
    let Order { shared, key, .. } = order;
    // What only others can fix is retried again and again, but reported once.
    let lasting = error.filter(|error| {
        error.is_taken() || error.is_transient() || error.is_unwanted() || error.is_held() || error.pause().is_some()
    });
    let warned = lasting.map(|error| Warned { message: error.for_consumer(), taken: error.is_taken() });
    let is_news = shared.note_warned(key, warned) || lasting.is_none();
    if let Some(error) = error
        && is_news
        && !error.is_race()
        && !matches!(error, ReconcileError::Notices(_))
    {
        let reason = match error {
            _ if error.is_unwanted() => "NotPlaced",
            _ if error.is_held() => "HeldAfterRestore",
            _ => "ReconcilingError",
        };
        let (generation, message) = (order.source["metadata"]["generation"].as_i64(), error.for_consumer());
        if shared.reported.is_event(key, generation.unwrap_or_default(), &message) {
            warn_consumer(order, reason, &message);
        }
    }
}

/// Tells the consumer that the agent is broken, as far as that is the consumer's business.
pub(super) fn report_panic(shared: &Shared, key: &SourceKey) {
    let (recorder, source) = (&shared.context.recorder, shared.sources.get(&key.cluster, &key.namespace, &key.name));
    if let (Ok(cluster), Some(source)) = (shared.fleets.consumers.cluster(&key.cluster), source) {
        let (kcp, source) = (cluster.json_client(), source.value());
        recorder.event(kcp, &source, Type::Warning, "ReconcilingError", PROVIDER_SIDE);
    }
}

/// Tells the consumer, and the log, what stays behind.
fn report_loss(order: &Order<'_>, lost: &[String]) {
    let Order { shared, key, .. } = order;
    let message = format!(
        "Cannot clean up in logical cluster {}, because its APIBinding does not accept the claims: {}. Remove by hand what is left, or the finalizer {FINALIZER} where it is left.",
        key.cluster,
        lost.join(", "),
    );
    tracing::warn!(object = %key, "{message}");
    shared.losses.lock().note(&key.to_string(), message.clone(), Instant::now());
    warn_consumer(order, "RelatedOutOfReach", &message);
}

fn warn_consumer(order: &Order<'_>, reason: &str, message: &str) {
    order.shared.context.recorder.event(order.kcp(), &order.source, Type::Warning, reason, message);
}

/// Sends the steps for one related object, and lets the cache know.
async fn send_strand(
    order: &Order<'_>,
    executor: &mut Executor<'_, OrderAgent<'_>>,
    tally: &Tally<'_>,
    strand: Vec<Step>,
    deferred: &mut Deferred,
) -> Result<(), StepError> {
    let Order { shared, key, .. } = order;
    let addresses: Vec<ObjectAddress> = strand.iter().filter_map(Step::address).cloned().collect();
    let deletes = strand.iter().any(|step| matches!(step, Step::Delete { .. }));
    let frees = |step: &Step| matches!(step, Step::SetFinalizers { .. }) && order.is_deleting();
    for at in strand.iter().filter(|step| frees(step)).filter_map(Step::address) {
        shared.let_go.note(key, at.clone());
    }
    let result = executor.run_deferring(strand, tally, deferred).await;
    for at in &addresses {
        match executor.objects.get(at).filter(|_| result.is_ok() && !deletes) {
            Some(object) => shared.related.wrote(&key.cluster, at, object),
            None => shared.related.doubt(&key.cluster, at),
        }
    }
    if let Some(StepError::Write { at: Target::Object(at), source, .. }) =
        result.as_ref().err().filter(|_| order.is_deleting())
        && follows(source, Access::LetGo, at.side.role).then == Then::GiveUp
        && is_for_good(order, at, source).await
    {
        shared.related.give_up(&shared.primary_key(key), &at.to_string());
    }
    result
}

/// Whether what was refused now is given up. In a consumer's workspace the binding decides that, elsewhere the same answer after a while.
async fn is_for_good(order: &Order<'_>, refused: &ObjectAddress, error: &Error) -> bool {
    let Order { shared, key, .. } = order;
    if refused.side == KCP_SIDE {
        return order.reaching().is_lost(refused, error).await;
    }
    shared.related.refused(&shared.primary_key(key), &refused.to_string(), shared.context.timing.grace)
}

/// What cannot be done for some related objects.
struct RelatedProblems {
    problems: Vec<Problem>,
    /// What a server said, if one is to blame.
    cause: Option<ReadError>,
}

impl RelatedProblems {
    fn of(read: &mut RelatedRead, plan: &Plan) -> Self {
        let problems = read.problems.iter().map(Problem::from).chain(plan.problems.iter().map(Problem::from)).collect();
        // If a server is to blame, they end when it recovers.
        let cause =
            std::mem::take(&mut read.problems).into_iter().find(|problem| matches!(problem, ReadError::Server { .. }));
        Self { problems, cause }
    }
}

/// The result, after everything that could be done was done.
fn outcome(
    next: Next,
    failed: Option<StepError>,
    RelatedProblems { problems, cause }: RelatedProblems,
    notices: Vec<String>,
) -> Result<Next, ReconcileError> {
    match failed {
        // A race is reported only if nothing is worse: it is retried at once and without a word.
        Some(error) if problems.is_empty() || !error.is_race() => Err(error.into()),
        _ if !problems.is_empty() => Err(ReconcileError::Problems(problems, cause.map(Box::new))),
        None if next == Next::OnChange && !notices.is_empty() => Err(ReconcileError::Notices(notices)),
        _ => Ok(next),
    }
}

/// Related objects: those in kcp get events, and all are known by their UID.
fn related_objects(rules: &Rules, view: &RelatedView) -> Vec<(ObjectAddress, Value)> {
    let mut objects = Vec::new();
    let mut add = |record: Record, origin: Option<&Value>, copy: Option<&Value>| {
        objects.extend(origin.map(|origin| (record.origin, origin.clone())));
        objects.extend(copy.map(|copy| (record.copy, copy.clone())));
    };
    for seen in &view.seen {
        if let Some(rules) = rules.related.get(seen.entry) {
            add(seen.record(rules), Some(&seen.origin), seen.destination.as_ref());
        }
    }
    for dropped in &view.dropped {
        add(dropped.record.clone(), dropped.origin.as_ref(), dropped.copy.as_ref());
    }
    objects
}

/// Waits until the caches show what was written of the source and of its copy.
async fn catch_up(order: &Order<'_>, objects: &HashMap<ObjectAddress, Value>, had_copy: bool) {
    let Order { shared, rules, key, .. } = order;
    for (at, object) in objects {
        if *at.kind == rules.remote && at.side == KCP_SIDE {
            seen_in(&shared.sources, &key.cluster, at, object, true).await;
        } else if *at.kind == rules.local && at.side == SERVICE_SIDE {
            seen_in(&shared.copies, copies::SERVICE, at, object, had_copy).await;
        }
    }
}

/// Waits until a cache shows a version of the object that is at least as new.
async fn seen_in(store: &FleetStore<Object>, cluster: &str, at: &ObjectAddress, object: &Value, existed: bool) {
    let number = |version: &str| version.parse::<u64>().unwrap_or(u64::MAX);
    let written = number(object["metadata"]["resourceVersion"].as_str().unwrap_or_default());
    let is_seen =
        |store: &FleetStore<Object>| match store.get(cluster, at.namespace.as_deref().unwrap_or_default(), &at.name) {
            Some(cached) => number(&cached.resource_version) >= written,
            // It was there before and is gone: the cache is ahead.
            None => existed,
        };
    store.wait_until(is_seen).await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::tests::{crontab, published};

    #[test]
    fn what_went_wrong_is_reported_and_a_race_only_if_nothing_is_worse() {
        let blame = |problems: &[&str]| RelatedProblems {
            problems: problems.iter().map(|problem| Problem::from(&(*problem).to_owned())).collect(),
            cause: None,
        };
        let rules = Rules::compile(&published(serde_json::json!({})), &crontab(), "agent").unwrap();
        let at = || ObjectAddress::of_object(SERVICE_SIDE, &rules.local, &serde_json::json!({}));
        let (race, failure) = (|| Some(StepError::Stale(at())), || Some(StepError::Refused { at: at(), advice: "" }));
        let out = |next, failed, problems: &[&str], notices: &[&str]| {
            outcome(next, failed, blame(problems), notices.iter().map(ToString::to_string).collect())
        };
        assert!(matches!(out(Next::OnChange, None, &["p"], &[]), Err(ReconcileError::Problems(..))));
        assert!(matches!(out(Next::OnChange, race(), &["p"], &[]), Err(ReconcileError::Problems(..))));
        assert!(matches!(out(Next::OnChange, failure(), &["p"], &[]), Err(ReconcileError::Step(_))));
        assert!(matches!(out(Next::OnChange, race(), &[], &[]), Err(ReconcileError::Step(_))));
        assert!(matches!(out(Next::OnChange, None, &[], &["n"]), Err(ReconcileError::Notices(_))));
        assert!(matches!(out(Next::Soon, None, &[], &["n"]), Ok(Next::Soon)), "it is reconciled again anyway");
    }
}
