//! Numbers about the agent in Prometheus' text format; the library for many clusters has the writer.
//!
//! ```text
//!   recorded as it happens:  reconciles, steps, hops, errors ──┐
//!   asked when scraped:      queues, stores, requests ─────────┼─▶ Page ─▶ /metrics
//!   of the process:          memory, processor, files ─────────┘
//! ```

pub mod family;
pub mod legs;
mod process;
mod recent;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use carrick_client::Server;
use carrick_multicluster::Fleet;
use carrick_multicluster::metrics::{FAMILIES, Family, MetricsOptions, Page, controllers, show};
use parking_lot::Mutex;

use legs::Legs;
use recent::Recent;
pub(super) use recent::fix;

/// Adds samples when scraped.
type Show = Arc<dyn Fn(&mut Page) + Send + Sync>;

/// All numbers of one agent.
#[derive(Default)]
pub struct Metrics {
    published_resources: AtomicU64,
    reconciles: Mutex<BTreeMap<(&'static str, Outcome), u64>>,
    orphans: Mutex<BTreeMap<String, usize>>,
    errors: Mutex<BTreeMap<(&'static str, String), u64>>,
    steps: Mutex<BTreeMap<&'static str, u64>>,
    leader_of: Mutex<Option<(String, bool)>>,
    shows: Mutex<BTreeMap<u64, Show>>,
    next_show: AtomicU64,
    /// How long each part of the way takes.
    pub legs: Legs,
    /// What fails beside the orders.
    pub recent: Recent,
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

/// How a reconcile ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// Nothing more to do until something changes.
    Success,
    /// Failed, retried later.
    Error,
    /// Fine so far, reconciled again after a pause.
    RequeueAfter,
}

impl Outcome {
    fn label(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Error => "error",
            Self::RequeueAfter => "requeue_after",
        }
    }
}

/// Samples are added to every scrape until this is dropped.
pub struct Shown {
    metrics: Arc<Metrics>,
    id: u64,
}

impl Drop for Shown {
    fn drop(&mut self) {
        self.metrics.shows.lock().remove(&self.id);
    }
}

impl Metrics {
    /// Sets how many PublishedResources this agent takes care of.
    pub fn set_published_resources(&self, count: usize) {
        self.published_resources.store(count as u64, Ordering::Relaxed);
    }

    /// Counts one reconcile of a controller such as `syncagent-apiexport`.
    pub fn reconciled(&self, controller: &'static str, outcome: Outcome) {
        *self.reconciles.lock().entry((controller, outcome)).or_default() += 1;
    }

    /// Sets how many copies of a PublishedResource have no source.
    pub fn set_orphans(&self, published_resource: &str, count: usize) {
        let mut orphans = self.orphans.lock();
        if count == 0 {
            orphans.remove(published_resource);
        } else {
            orphans.insert(published_resource.to_owned(), count);
        }
    }

    /// Counts a failure of a controller, in one word or two, and remembers what failed and why until that is healed.
    pub fn failed(&self, controller: &'static str, reason: &str, about: &str, message: &str) {
        self.recent.note(about, reason, message, jiff::Timestamp::now());
        self.count_failure(controller, reason);
    }

    /// Counts a failure of a controller, in one word or two.
    pub fn count_failure(&self, controller: &'static str, reason: &str) {
        *self.errors.lock().entry((controller, reason.to_owned())).or_default() += 1;
    }

    /// Counts an executed step.
    pub fn executed(&self, step: &'static str) {
        *self.steps.lock().entry(step).or_default() += 1;
    }

    /// Says whether this process holds the lease of that name.
    pub fn set_leader(&self, lease: &str, leading: bool) {
        *self.leader_of.lock() = Some((lease.to_owned(), leading));
    }

    /// Adds samples to every scrape, until what is returned is dropped.
    #[must_use]
    pub fn show(self: &Arc<Self>, show: impl Fn(&mut Page) + Send + Sync + 'static) -> Shown {
        let id = self.next_show.fetch_add(1, Ordering::Relaxed);
        self.shows.lock().insert(id, Arc::new(show));
        Shown { metrics: Arc::clone(self), id }
    }

    /// The text served under `/metrics`.
    pub fn render(&self) -> String {
        let mut page = Page::default();
        page.sample(&family::PUBLISHED_RESOURCES, &[], self.published_resources.load(Ordering::Relaxed));
        for ((controller, outcome), count) in &*self.reconciles.lock() {
            page.sample(&family::RECONCILES, &[controller, outcome.label()], count);
            if *outcome == Outcome::Error {
                page.sample(&family::RECONCILE_ERRORS, &[controller], count);
            }
        }
        for (published_resource, count) in &*self.orphans.lock() {
            page.sample(&family::ORPHANS, &[published_resource], count);
        }
        for ((controller, reason), count) in &*self.errors.lock() {
            page.sample(&family::ERRORS, &[controller, reason], count);
        }
        for (step, count) in &*self.steps.lock() {
            page.sample(&family::STEPS, &[step], count);
        }
        if let Some((lease, leading)) = &*self.leader_of.lock() {
            page.sample(&family::LEADER, &[lease], u8::from(*leading));
        }
        self.legs.show(&mut page);
        // Called outside the lock: whoever adds samples may be waiting for it.
        let shows: Vec<Show> = self.shows.lock().values().cloned().collect();
        for show in shows {
            show(&mut page);
        }
        process::show(&mut page);
        page.text(families())
    }
}

/// Shows the queues of the controllers on a fleet, and its watches. `workers` is how many objects one controller works on at once.
pub(super) fn show_fleet(page: &mut Page, fleet: &Fleet, workers: usize) {
    let mut lag = std::time::Duration::ZERO;
    for (name, numbers) in controllers(fleet, MetricsOptions::default()) {
        let (one, two): (&[&str], &[&str]) = (&[&name], &[&name, &name]);
        let ended = |result: &str| numbers.ended.get(result).copied().unwrap_or_default();
        page.sample(&family::MAX_CONCURRENT, one, workers);
        page.sample(&family::ACTIVE_WORKERS, one, numbers.queue.running);
        page.sample(&family::RECONCILE_PANICS, one, ended("panic"));
        page.histogram(&family::RECONCILE_SECONDS, one, &numbers.took);
        page.sample(&family::QUEUE_DEPTH, two, numbers.queue.queued);
        page.sample(&family::QUEUE_ADDS, two, numbers.added);
        page.sample(&family::QUEUE_RETRIES, two, ended("error") + ended("panic") + ended("later"));
        page.histogram(&family::QUEUE_SECONDS, two, &numbers.waited);
        page.histogram(&family::WORK_SECONDS, two, &numbers.took);
        lag = lag.max(numbers.oldest);
    }
    page.sample(&family::LAG_SECONDS, &[], lag.as_secs_f64());
    show(page, fleet, MetricsOptions::default());
}

/// Shows the requests to some servers.
pub(super) fn show_requests(page: &mut Page, servers: &[Server]) {
    let mut waited: BTreeMap<(String, String), f64> = BTreeMap::new();
    let mut counts: BTreeMap<(u16, String, String), u64> = BTreeMap::new();
    for (asked, answers) in servers.iter().flat_map(Server::requests) {
        *waited.entry((asked.method.clone(), asked.host.clone())).or_default() += answers.waited.as_secs_f64();
        *counts.entry((asked.code, asked.method, asked.host)).or_default() += answers.count;
    }
    for ((code, method, host), count) in counts {
        let code = if code == 0 { "<error>".to_owned() } else { code.to_string() };
        page.sample(&family::REQUESTS, &[&code, &method, &host], count);
    }
    for ((method, host), seconds) in waited {
        page.sample(&family::REQUEST_SECONDS, &[&method, &host], seconds);
    }
    for (host, rewind) in servers.iter().flat_map(Server::rewinds) {
        page.sample(&family::REWINDS, &[&host], rewind.count);
    }
}

/// Why a server refused, or was not reached, if that is behind an error: one word.
pub(super) fn reason(error: &(dyn std::error::Error + 'static)) -> Option<String> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(refused) = error.downcast_ref::<carrick_client::Error>() {
            return Some(refused.reason());
        }
        cause = error.source();
    }
    None
}

/// Every metric that the agent may show: those of its own and those of the library for many clusters.
pub fn names() -> Vec<(&'static str, &'static str, String, &'static str)> {
    families().map(|Family { name, kind, labels, help }| (*name, *kind, labels.join(", "), *help)).collect()
}

/// All families, in the order in which they are shown: the agent's own, then those of the library for many clusters.
fn families() -> impl Iterator<Item = &'static Family> {
    family::ALL.iter().chain(FAMILIES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gauge_is_a_bare_integer_line() {
        let metrics = Metrics::default();
        assert!(metrics.render().lines().any(|line| line == "sync_agent_published_resource 0"));
        metrics.set_published_resources(2);
        assert!(metrics.render().lines().any(|line| line == "sync_agent_published_resource 2"));
    }

    #[test]
    fn what_happens_is_counted_under_its_names() {
        let metrics = Arc::new(Metrics::default());
        metrics.reconciled("syncagent-apiexport", Outcome::Success);
        metrics.reconciled("syncagent-apiexport", Outcome::Error);
        metrics.reconciled("syncagent-apiexport", Outcome::Error);
        metrics.failed("syncagent-sync", "Forbidden", "a", "no");
        metrics.executed("create");
        metrics.set_leader("syncagent.a", true);
        metrics.set_orphans("a", 3);
        metrics.set_orphans("b", 3);
        metrics.set_orphans("b", 0);
        let shown = metrics.show(|page| page.sample(&family::SYNCED_OBJECTS, &["a"], 3));
        let text = metrics.render();
        for line in [
            r#"controller_runtime_reconcile_total{controller="syncagent-apiexport",result="success"} 1"#,
            r#"controller_runtime_reconcile_total{controller="syncagent-apiexport",result="error"} 2"#,
            r#"controller_runtime_reconcile_errors_total{controller="syncagent-apiexport"} 2"#,
            r#"sync_agent_errors_total{controller="syncagent-sync",reason="Forbidden"} 1"#,
            r#"sync_agent_steps_total{step="create"} 1"#,
            r#"leader_election_master_status{name="syncagent.a"} 1"#,
            r#"sync_agent_synced_objects{publishedresource="a"} 3"#,
            r#"sync_agent_orphaned_copies{publishedresource="a"} 3"#,
        ] {
            assert!(text.lines().any(|got| got == line), "{line} is missing in\n{text}");
        }
        assert!(!text.contains(r#"publishedresource="b""#));
        drop(shown);
        assert!(!metrics.render().contains("sync_agent_synced_objects"), "no longer shown");
    }

    /// Every family once, with labels that need escapes: names, labels, types and help texts are what dashboards and alerts rely on.
    #[test]
    fn the_page_looks_as_it_always_did() {
        let stopwatch = carrick_multicluster::metrics::Stopwatch::default();
        for millis in [2, 1_000, 2_500, 400_000] {
            stopwatch.record(std::time::Duration::from_millis(millis));
        }
        let mut page = Page::default();
        for family in family::ALL.iter().rev() {
            for tail in ["", "\"\\\n"] {
                let values: Vec<String> = family.labels.iter().map(|label| format!("a {label}{tail}")).collect();
                let values: Vec<&str> = values.iter().map(String::as_str).collect();
                match family.kind {
                    "histogram" => page.histogram(family, &values, &stopwatch.read()),
                    "gauge" => page.sample(family, &values, 3),
                    _ => page.sample(family, &values, 0.25),
                }
            }
        }
        let text = page.text(families());
        assert_eq!(text, include_str!("metrics/golden.txt"));
    }
}
