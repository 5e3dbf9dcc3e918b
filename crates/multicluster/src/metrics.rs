//! Metrics of a fleet in Prometheus' text format.
//!
//! ```no_run
//! use carrick_multicluster::Fleet;
//! use carrick_multicluster::metrics::{MetricsOptions, render};
//!
//! /// The body of an answer at `/metrics`.
//! fn body(fleet: &Fleet) -> String {
//!     render(fleet, MetricsOptions::default())
//! }
//! ```

mod page;

use std::collections::BTreeMap;
use std::time::Duration;

use crate::fleet::Fleet;
use crate::name::ClusterName;
use crate::queue::QueueStats;
use crate::stats::Ended;

pub use crate::stats::{Durations, Stopwatch};
pub use page::{Family, Page};

/// How to render metrics.
#[derive(Clone, Copy, Debug, Default)]
pub struct MetricsOptions {
    /// Also show the clusters with the longest queues, this many per controller. Off by default: every cluster that
    /// ever had a long queue becomes a time series.
    pub busiest_clusters: usize,
}

macro_rules! families {
    ($($constant:ident = $kind:literal $name:literal $labels:tt $help:literal;)*) => {
        $(const $constant: Family = Family { name: $name, kind: $kind, labels: &$labels, help: $help };)*
        /// What [`render`] shows, in that order.
        pub const FAMILIES: &[Family] = &[$($constant),*];
    };
}

families! {
    CLUSTERS = "gauge" "carrick_fleet_clusters" [] "Engaged clusters.";
    WATCH_STATE = "gauge" "carrick_fleet_watch_state" ["endpoint", "resource", "state"] "State of each watch.";
    WATCH_RESTARTS = "counter" "carrick_fleet_watch_restarts_total" ["endpoint", "resource"]
        "How often a watch listed everything again.";
    PROVIDER_FAILING = "gauge" "carrick_fleet_provider_failing" [] "Sources of the provider that cannot be followed.";
    QUEUE_DEPTH = "gauge" "carrick_controller_queue_depth" ["controller", "state"] "Objects in the queue.";
    OPEN_CLUSTERS = "gauge" "carrick_controller_clusters" ["controller"] "Clusters the controller works on.";
    CLUSTER_QUEUE_DEPTH = "gauge" "carrick_controller_cluster_queue_depth" ["controller", "cluster"]
        "Objects that wait, of the clusters with the longest queues.";
    RECONCILES = "counter" "carrick_controller_reconcile_total" ["controller", "result"] "Reconciles by result.";
    UNDECODABLE = "counter" "carrick_controller_undecodable_total" ["controller"] "Objects that could not be understood.";
    QUEUE_WAIT = "histogram" "carrick_controller_queue_wait_seconds" ["controller"] "How long objects waited.";
    RECONCILE_SECONDS = "histogram" "carrick_controller_reconcile_seconds" ["controller"] "How long reconciles took.";
}

/// Statistics of all controllers of one name.
#[derive(Clone, Debug, Default)]
pub struct ControllerNumbers {
    /// What their queues hold.
    pub queue: QueueStats,
    /// How often an object was queued.
    pub added: u64,
    /// How long the oldest waiting object has waited.
    pub oldest: Duration,
    /// How many clusters they work on.
    pub clusters: u64,
    /// How often reconciles ended with each result.
    pub ended: BTreeMap<&'static str, u64>,
    /// How many objects could not be understood.
    pub undecodable: u64,
    /// How long objects waited.
    pub waited: Durations,
    /// How long reconciles took.
    pub took: Durations,
    longest: BTreeMap<ClusterName, usize>,
}

/// Statistics of all controllers on a fleet, by name.
pub fn controllers(fleet: &Fleet, options: MetricsOptions) -> BTreeMap<String, ControllerNumbers> {
    let mut all: BTreeMap<String, ControllerNumbers> = BTreeMap::new();
    for stats in fleet.stats() {
        let numbers = all.entry(stats.name().to_owned()).or_default();
        let queue = stats.queue();
        numbers.queue.queued += queue.queued;
        numbers.queue.running += queue.running;
        numbers.queue.delayed += queue.delayed;
        numbers.added += stats.added();
        numbers.oldest = numbers.oldest.max(stats.oldest());
        numbers.clusters += stats.open();
        for ended in Ended::ALL {
            *numbers.ended.entry(ended.as_str()).or_default() += stats.ended(ended);
        }
        numbers.undecodable += stats.undecodable();
        numbers.waited.add(&stats.waited.read());
        numbers.took.add(&stats.took.read());
        for (cluster, queued) in stats.longest(options.busiest_clusters) {
            *numbers.longest.entry(cluster).or_default() += queued;
        }
    }
    all
}

/// Metrics of a fleet and of all controllers on it, as text for `/metrics`.
pub fn render(fleet: &Fleet, options: MetricsOptions) -> String {
    let mut page = Page::default();
    show(&mut page, fleet, options);
    page.text(FAMILIES)
}

/// Adds the numbers of a fleet and of all controllers on it to a page, which shows more than that.
pub fn show(page: &mut Page, fleet: &Fleet, options: MetricsOptions) {
    let health = fleet.health();
    page.sample(&CLUSTERS, &[], health.clusters);
    for (id, endpoint) in &health.endpoints {
        for watch in &endpoint.watches {
            let resource = watch.resource.to_string();
            page.sample(&WATCH_STATE, &[id.as_str(), &resource, watch.state.as_str()], 1);
            page.sample(&WATCH_RESTARTS, &[id.as_str(), &resource], watch.restarts);
        }
    }
    page.sample(&PROVIDER_FAILING, &[], health.failing.len());
    show_controllers(page, &controllers(fleet, options));
}

fn show_controllers(page: &mut Page, all: &BTreeMap<String, ControllerNumbers>) {
    for (name, numbers) in all {
        let queue = numbers.queue;
        for (state, count) in [("queued", queue.queued), ("running", queue.running), ("delayed", queue.delayed)] {
            page.sample(&QUEUE_DEPTH, &[name, state], count);
        }
        page.sample(&OPEN_CLUSTERS, &[name], numbers.clusters);
        for (cluster, count) in &numbers.longest {
            page.sample(&CLUSTER_QUEUE_DEPTH, &[name, cluster.as_str()], count);
        }
        for (result, count) in &numbers.ended {
            page.sample(&RECONCILES, &[name, result], count);
        }
        page.sample(&UNDECODABLE, &[name], numbers.undecodable);
        page.histogram(&QUEUE_WAIT, &[name], &numbers.waited);
        page.histogram(&RECONCILE_SECONDS, &[name], &numbers.took);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names, labels, types and help texts are what dashboards and alerts rely on.
    #[test]
    fn the_numbers_of_controllers_look_as_they_always_did() {
        let (waited, took) = (Stopwatch::default(), Stopwatch::default());
        for millis in [2, 1_000, 2_500, 400_000] {
            waited.record(Duration::from_millis(millis));
        }
        let numbers = |longest: &[(&str, usize)]| ControllerNumbers {
            queue: QueueStats { queued: 3, running: 2, delayed: 1 },
            clusters: 4,
            ended: Ended::ALL.into_iter().zip(5..).map(|(ended, count)| (ended.as_str(), count)).collect(),
            undecodable: 6,
            waited: waited.read(),
            took: took.read(),
            longest: longest.iter().map(|(name, count)| (name.parse().unwrap(), *count)).collect(),
            ..ControllerNumbers::default()
        };
        let all = BTreeMap::from([
            ("a".to_owned(), numbers(&[("c1", 7), ("c\"2", 8)])),
            ("quote\"d\\\n".to_owned(), numbers(&[])),
        ]);
        let mut page = Page::default();
        show_controllers(&mut page, &all);
        assert_eq!(page.text(FAMILIES), include_str!("metrics/golden.txt"));
    }
}
