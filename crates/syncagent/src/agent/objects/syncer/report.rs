//! How each reconcile ended: counted, logged, and reported on the PublishedResource where it failed.

use std::collections::HashSet;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use carrick_client::Object;
use carrick_multicluster::{Action, Error, Key, Request};
use futures::{Stream, StreamExt};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::agent::metrics::{Outcome, reason};
use crate::agent::objects::act::Executor;
use crate::agent::objects::context::{CONTROLLER, Drift, ObjectsReport, Troubles};
use crate::agent::objects::copies;
use crate::agent::objects::deletion::losses::Losses;
use crate::agent::objects::error::{HELD, ReconcileError};
use crate::agent::objects::feedback::failing::{Failure, Station};
use crate::agent::objects::import::policy::report_on as report_on_imports;
use crate::agent::objects::shared::Shared;
use crate::agent::objects::source::source_key;
use crate::agent::retry::wait_until;
use crate::rules::metadata::SourceKey;

/// What is said of a panic. Its own words stay in the log of the process: they may quote an object.
const PANICKED: &str = "the agent panicked over this object; please report this";
/// How long failures are collected before they are reported on the PublishedResource.
const PAUSE: Duration = Duration::from_secs(1);
/// How often it is checked whether every object was reconciled once.
const FIRST_CHECK: Duration = Duration::from_millis(200);
/// How long the first look at all objects may take before the state of those that were looked at is told.
const LONGEST_PASS: Duration = Duration::from_mins(1);
/// How many objects a PublishedResource names.
const NAMED: usize = 3;

/// Follows the reports of a controller to their end.
pub(super) async fn follow(
    shared: Arc<Shared>,
    executor: Executor,
    reports: impl Stream<Item = Result<(Request<Object>, Action), Error<Object, ReconcileError>>>,
) {
    let name = shared.rules().name.clone();
    let mut lost = 0;
    let mut first = FirstPass::begin();
    // Where there is no object, that is to be told, too.
    let mut due = Some(Instant::now() + PAUSE);
    let mut reports = pin!(reports);
    loop {
        let ends = shared.losses.lock().ends();
        let pause = tokio::select! {
            () = wait_until(ends) => {
                shared.losses.lock().expire(Instant::now());
                PAUSE
            }
            () = shared.count_again.notified() => shared.context.timing.count,
            () = wait_until(due) => {
                due = (!first.is_over(&shared)).then(|| Instant::now() + FIRST_CHECK);
                if due.is_none() {
                    note(&shared.context.troubles, &name, Some(report_on(&shared)));
                }
                continue;
            }
            report = reports.next() => match report {
                Some(report) => {
                    first.note(&report);
                    if take(&shared, &executor, &mut lost, report) { PAUSE } else { shared.context.timing.count }
                }
                None => break,
            },
        };
        let at = Instant::now() + pause;
        due = Some(due.map_or(at, |due| due.min(at)));
    }
    // Nothing is reconciled any more, so there is nothing to tell.
    note(&shared.context.troubles, &name, None);
}

fn note(troubles: &watch::Sender<Troubles>, name: &str, report: Option<ObjectsReport>) {
    troubles.send_if_modified(|troubles| {
        if troubles.get(name) == report.as_ref() {
            return false;
        }
        match report {
            Some(report) => troubles.insert(name.to_owned(), report),
            None => troubles.remove(name),
        };
        true
    });
}

/// The time until every object was looked at once: before that, nobody knows how they are doing, and a restart must not take back what was told.
struct FirstPass {
    seen: Option<HashSet<SourceKey>>,
    begun: Instant,
}

impl FirstPass {
    fn begin() -> Self {
        Self { seen: Some(HashSet::new()), begun: Instant::now() }
    }

    fn note(&mut self, report: &Result<(Request<Object>, Action), Error<Object, ReconcileError>>) {
        let Some(seen) = &mut self.seen else { return };
        if let Ok((request, _)) | Err(Error::Reconcile { request, .. } | Error::Panic { request, .. }) = report {
            seen.insert(source_key(&request.key()));
        }
    }

    fn is_over(&mut self, shared: &Shared) -> bool {
        let Some(seen) = &self.seen else { return true };
        let known = shared.sources.is_listed() && shared.copies.is_listed();
        let is_seen = |(key, _): &(Key, Arc<Object>)| seen.contains(&source_key(key));
        let all = || seen.len() >= shared.sources.len() && shared.sources.list_all().iter().all(is_seen);
        // Something that cannot even be read must not keep the rest from being told.
        let over = known && all() || self.begun.elapsed() > LONGEST_PASS;
        if over {
            self.seen = None;
        }
        over
    }
}

/// Takes in a report; returns whether there is anything new to publish. `lost` is how many orders have left something behind.
fn take(
    shared: &Shared,
    executor: &Executor,
    lost: &mut usize,
    report: Result<(Request<Object>, Action), Error<Object, ReconcileError>>,
) -> bool {
    let metrics = &shared.context.metrics;
    let (key, failure, forbidden) = match report {
        Ok((request, _)) => {
            metrics.reconciled(CONTROLLER, Outcome::Success);
            let key = source_key(&request.key());
            let healed = shared.failing.healed(&key);
            let losses = shared.losses.lock().count();
            let more = std::mem::replace(lost, losses) != losses;
            return healed.is_some_and(|failure| failure.lasts) || more;
        }
        Err(Error::Reconcile { request, error }) if error.is_race() => {
            tracing::debug!(%request, %error, "Somebody else was faster, retrying.");
            return false;
        }
        Err(Error::Reconcile { request, error }) => {
            let ((text, lasts), word) = (error.told(), reason(&error).unwrap_or_else(|| error.word().to_owned()));
            if matches!(error, ReconcileError::Throttled { .. }) {
                // That was reported when the server asked to wait.
                return false;
            }
            let key = source_key(&request.key());
            let station = error.station(&shared.rules(), &key);
            (key, Failure::new(station, &word, text, lasts, jiff::Timestamp::now()), error.is_forbidden())
        }
        Err(Error::Panic { request, .. }) => {
            let key = source_key(&request.key());
            executor.report_panic(shared, &key, PANICKED);
            (key, Failure::new(Station::Order, "Panic", PANICKED.to_owned(), true, jiff::Timestamp::now()), false)
        }
        Err(error @ Error::Undecodable(_)) => {
            metrics.count_failure(CONTROLLER, "Undecodable");
            tracing::error!(%error, "Failed to read object.");
            return false;
        }
        // The agent follows its watches and its fleet itself: they are parts of its health.
        Err(Error::Watch { .. } | Error::Provider { .. }) => return false,
        Err(error) => {
            tracing::error!(%error, "Something went wrong beside the objects.");
            return false;
        }
    };
    metrics.reconciled(CONTROLLER, Outcome::Error);
    metrics.count_failure(CONTROLLER, &failure.reason);
    let (error, lasts) = (failure.message.clone(), failure.lasts);
    let before = shared.note_failure(&key, failure, forbidden);
    if before.as_ref().is_some_and(|before| before.message == error) {
        tracing::debug!(object = %key, error, "Failed to process object again.");
    } else {
        tracing::error!(object = %key, error, "Failed to process object.");
    }
    let lasted = before.filter(|before| before.lasts);
    lasted.map(|before| before.message) != lasts.then_some(error)
}

/// How all objects are doing.
fn report_on(shared: &Shared) -> ObjectsReport {
    let resource = shared.rules().remote.resource();
    let placed = copies::count(&shared.copies, &resource).saturating_sub(shared.orphans.len());
    let keys = shared.failing.keys();
    let homeless = keys.iter().filter(|key| copies::of(&shared.copies, key, &resource).is_empty()).count();
    let failing = troubles(shared, &shared.losses.lock());
    let (orders, failures) = (placed + homeless, keys.len());
    ObjectsReport {
        failing,
        orders,
        failures,
        paused: paused(shared),
        drift: drift(shared),
        imports: report_on_imports(shared),
    }
}

fn troubles(shared: &Shared, losses: &Losses) -> Option<String> {
    let (count, named) = shared.failing.lasting(NAMED, HELD);
    let named: Vec<String> = named.iter().map(|(key, error)| format!("{}: {error}", shared.shown(key))).collect();
    let failing = words(count, &named);
    let left: Vec<String> = losses.latest(NAMED).map(|(order, loss)| format!("{order}: {loss}")).collect();
    let left =
        (!left.is_empty()).then(|| format!("{} orders left something behind: {}", losses.count(), left.join("; ")));
    let said: Vec<String> = [held(shared.failing.count(HELD)), failing, left].into_iter().flatten().collect();
    (!said.is_empty()).then(|| said.join(". "))
}

/// How many orders are paused, and the first of them. They are no failures, so they are counted apart from those.
fn paused(shared: &Shared) -> Option<String> {
    let (count, (key, words)) = (shared.paused.len(), shared.paused.first()?);
    let objects = if count == 1 { "object is" } else { "objects are" };
    Some(format!("{count} {objects} paused, the first is {}: {words}", shared.shown(&key)))
}

/// What others have changed of copies, if somebody wants to know.
fn drift(shared: &Shared) -> Option<Drift> {
    let summary = || shared.drifted.summary(|key| shared.shown(key));
    shared.rules().watches_drift().then(|| summary().map_or(Drift::None, Drift::Some))
}

/// How many orders are held because they have gone back in time, and what shows and frees them.
fn held(count: usize) -> Option<String> {
    let orders = match count {
        0 => return None,
        1 => "1 order is".to_owned(),
        count => format!("{count} orders are"),
    };
    Some(format!(
        "{orders} held, because kcp went back in time: see them with carrick restore status, and let them go on with carrick restore accept"
    ))
}

/// How many objects fail, and the first few of them with the reason.
fn words(count: usize, named: &[String]) -> Option<String> {
    if count == 0 {
        return None;
    }
    let more = if count > named.len() { "; …" } else { "" };
    let objects = if count == 1 { "object" } else { "objects" };
    Some(format!("{count} {objects} cannot be synchronized: {}{more}", named.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_failing_objects_are_named_with_the_reason() {
        let named = |count: usize| (0..count).map(|i| format!("c|ns/{i}: no name")).collect::<Vec<_>>();
        assert_eq!(words(0, &[]), None);
        assert_eq!(words(1, &named(1)).unwrap(), "1 object cannot be synchronized: c|ns/0: no name");
        let many = words(5, &named(3)).unwrap();
        assert!(many.starts_with("5 objects cannot") && many.contains("c|ns/2: ") && many.ends_with("; …"), "{many}");
    }
}
