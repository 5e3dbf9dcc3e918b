//! How each reconcile ended: counted, logged, and reported on the PublishedResource where it failed.

use std::collections::{BTreeMap, HashMap};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use carrick_client::Object;
use carrick_multicluster::{Action, Error, Request};
use futures::{Stream, StreamExt};
use tokio::sync::watch;
use tokio::time::Instant;

use super::act::Executor;
use super::context::{CONTROLLER, Troubles};
use super::error::ReconcileError;
use super::shared::Shared;
use super::source::source_key;
use crate::agent::metrics::{Outcome, reason};
use crate::agent::retry::wait_until;
use crate::rules::metadata::SourceKey;

/// What is said of a panic. Its own words stay in the log of the process: they may quote an object.
const PANICKED: &str = "the agent panicked over this object; please report this";
/// How long failures are collected before they are reported on the PublishedResource.
const PAUSE: Duration = Duration::from_secs(1);
/// How many objects a PublishedResource names.
const NAMED: usize = 3;

/// Follows the reports of a controller to their end.
pub(super) async fn follow(
    shared: Arc<Shared>,
    executor: Executor,
    reports: impl Stream<Item = Result<(Request<Object>, Action), Error<Object, ReconcileError>>>,
) {
    let name = shared.rules().name.clone();
    let mut failing = FailingObjects::default();
    let mut due: Option<Instant> = None;
    let mut reports = pin!(reports);
    loop {
        let changed = tokio::select! {
            () = wait_until(due) => {
                due = None;
                note(&shared.context.troubles, &name, failing.words(&shared.losses.lock()));
                continue;
            }
            report = reports.next() => match report {
                Some(report) => failing.take(&shared, &executor, report),
                None => break,
            },
        };
        if changed && due.is_none() {
            due = Some(Instant::now() + PAUSE);
        }
    }
    // Nothing is reconciled any more, so nothing fails.
    note(&shared.context.troubles, &name, None);
}

fn note(troubles: &watch::Sender<Troubles>, name: &str, words: Option<String>) {
    troubles.send_if_modified(|troubles| {
        if troubles.get(name) == words.as_ref() {
            return false;
        }
        match words {
            Some(words) => troubles.insert(name.to_owned(), words),
            None => troubles.remove(name),
        };
        true
    });
}

/// Objects whose last reconcile failed.
#[derive(Default)]
struct FailingObjects {
    /// What was logged last about each of them, so that it is logged once.
    logged: HashMap<SourceKey, String>,
    /// Those that no waiting will help, in a lasting order.
    lasting: BTreeMap<String, String>,
    /// How many left something behind.
    lost: usize,
}

impl FailingObjects {
    /// Takes in a report; returns whether there is anything new to publish.
    fn take(
        &mut self,
        shared: &Shared,
        executor: &Executor,
        report: Result<(Request<Object>, Action), Error<Object, ReconcileError>>,
    ) -> bool {
        let metrics = &shared.context.metrics;
        let (request, error, lasts) = match report {
            Ok((request, _)) => {
                metrics.reconciled(CONTROLLER, Outcome::Success);
                let key = source_key(&request.key());
                shared.note_failure(&key, None);
                self.logged.remove(&key);
                let losses = shared.losses.lock().len();
                let lost = std::mem::replace(&mut self.lost, losses) != losses;
                return self.lasting.remove(&key.to_string()).is_some() || lost;
            }
            Err(Error::Reconcile { request, error }) if error.is_race() => {
                tracing::debug!(%request, %error, "Somebody else was faster, retrying.");
                return false;
            }
            Err(Error::Reconcile { request, error }) => {
                let (text, word) = (error.to_string(), reason(&error).unwrap_or_else(|| error.word().to_owned()));
                metrics.failed(CONTROLLER, &word, &request.key().to_string(), &text);
                shared.note_failure(&source_key(&request.key()), Some(error.is_forbidden()));
                (request, text, !error.is_transient())
            }
            Err(Error::Panic { request, .. }) => {
                metrics.failed(CONTROLLER, "Panic", &request.key().to_string(), PANICKED);
                let key = source_key(&request.key());
                shared.note_failure(&key, Some(false));
                executor.report_panic(shared, &key, PANICKED);
                (request, PANICKED.to_owned(), true)
            }
            Err(error @ Error::Undecodable(_)) => {
                metrics.failed(CONTROLLER, "Undecodable", "an object", &error.to_string());
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
        let key = source_key(&request.key());
        if self.logged.insert(key.clone(), error.clone()).as_ref() == Some(&error) {
            tracing::debug!(object = %request, error, "Failed to process object again.");
        } else {
            tracing::error!(object = %request, error, "Failed to process object.");
        }
        if lasts {
            let before = self.lasting.insert(key.to_string(), error.clone());
            return before.as_ref() != Some(&error);
        }
        self.lasting.remove(&key.to_string()).is_some()
    }

    fn words(&self, losses: &BTreeMap<String, String>) -> Option<String> {
        let failing = words(&self.lasting);
        let left: Vec<String> = losses.iter().take(NAMED).map(|(order, loss)| format!("{order}: {loss}")).collect();
        let left =
            (!left.is_empty()).then(|| format!("{} orders left something behind: {}", losses.len(), left.join("; ")));
        match (failing, left) {
            (Some(failing), Some(left)) => Some(format!("{failing}. {left}")),
            (failing, left) => failing.or(left),
        }
    }
}

/// How many objects fail, and the first few of them with the reason.
fn words(failing: &BTreeMap<String, String>) -> Option<String> {
    if failing.is_empty() {
        return None;
    }
    let named: Vec<String> = failing.iter().take(NAMED).map(|(object, error)| format!("{object}: {error}")).collect();
    let more = if failing.len() > NAMED { "; …" } else { "" };
    let objects = if failing.len() == 1 { "object" } else { "objects" };
    Some(format!("{} {objects} cannot be synchronized: {}{more}", failing.len(), named.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_failing_objects_are_named_with_the_reason() {
        let failing = |count: usize| (0..count).map(|i| (format!("c|ns/{i}"), "no name".to_owned())).collect();
        assert_eq!(words(&failing(0)), None);
        assert_eq!(words(&failing(1)).unwrap(), "1 object cannot be synchronized: c|ns/0: no name");
        let many = words(&failing(5)).unwrap();
        assert!(many.starts_with("5 objects cannot") && many.contains("c|ns/2: ") && many.ends_with("; …"), "{many}");
        assert!(!many.contains("c|ns/3"), "{many}");
    }
}
