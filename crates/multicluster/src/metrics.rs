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

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use crate::fleet::Fleet;
use crate::name::ClusterName;
use crate::queue::QueueStats;
use crate::stats::Ended;

pub use crate::stats::{Durations, Stopwatch};

/// How to render metrics.
#[derive(Clone, Copy, Debug, Default)]
pub struct MetricsOptions {
    /// Also show the clusters with the longest queues, this many per controller. Off by default: every cluster that
    /// ever had a long queue becomes a time series.
    pub busiest_clusters: usize,
}

/// What [`render`] shows: names, types and meanings.
pub const FAMILIES: [(&str, &str, &str); 11] = [
    ("carrick_fleet_clusters", "gauge", "Engaged clusters."),
    ("carrick_fleet_watch_state", "gauge", "State of each watch."),
    ("carrick_fleet_watch_restarts_total", "counter", "How often a watch listed everything again."),
    ("carrick_fleet_provider_failing", "gauge", "Sources of the provider that cannot be followed."),
    ("carrick_controller_queue_depth", "gauge", "Objects in the queue."),
    ("carrick_controller_clusters", "gauge", "Clusters the controller works on."),
    ("carrick_controller_cluster_queue_depth", "gauge", "Objects that wait, of the clusters with the longest queues."),
    ("carrick_controller_reconcile_total", "counter", "Reconciles by result."),
    ("carrick_controller_undecodable_total", "counter", "Objects that could not be understood."),
    ("carrick_controller_queue_wait_seconds", "histogram", "How long objects waited."),
    ("carrick_controller_reconcile_seconds", "histogram", "How long reconciles took."),
];

/// Numbers about all controllers of one name.
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

/// The numbers of all controllers on a fleet, by name.
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

/// The numbers of a fleet and of all controllers on it, as text for `/metrics`.
pub fn render(fleet: &Fleet, options: MetricsOptions) -> String {
    let mut text = String::new();
    let health = fleet.health();
    let gauge = |value: usize| vec![(String::new(), value.to_string())];
    family(&mut text, "carrick_fleet_clusters", &gauge(health.clusters));
    let mut states = Vec::new();
    let mut restarts = Vec::new();
    for (id, endpoint) in &health.endpoints {
        for watch in &endpoint.watches {
            let labels = format!("endpoint=\"{}\",resource=\"{}\"", escape(id), escape(&watch.resource.to_string()));
            states.push((format!("{{{labels},state=\"{}\"}}", watch.state.as_str()), "1".to_owned()));
            restarts.push((format!("{{{labels}}}"), watch.restarts.to_string()));
        }
    }
    family(&mut text, "carrick_fleet_watch_state", &states);
    family(&mut text, "carrick_fleet_watch_restarts_total", &restarts);
    let failing = gauge(health.failing.len());
    family(&mut text, "carrick_fleet_provider_failing", &failing);
    show(&mut text, &controllers(fleet, options));
    text
}

fn show(text: &mut String, all: &BTreeMap<String, ControllerNumbers>) {
    let each = |value: &dyn Fn(&ControllerNumbers) -> Vec<(String, String)>| -> Vec<(String, String)> {
        let labelled = |(name, numbers): (&String, &ControllerNumbers)| {
            let controller = escape(name);
            let label = move |(more, value): (String, String)| {
                let comma = if more.is_empty() { "" } else { "," };
                (format!("{{controller=\"{controller}\"{comma}{more}}}"), value)
            };
            value(numbers).into_iter().map(label).collect::<Vec<_>>()
        };
        all.iter().flat_map(labelled).collect()
    };
    let queue = each(&|numbers| {
        let queue = numbers.queue;
        let states = [("queued", queue.queued), ("running", queue.running), ("delayed", queue.delayed)];
        states.into_iter().map(|(state, count)| (format!("state=\"{state}\""), count.to_string())).collect()
    });
    family(text, "carrick_controller_queue_depth", &queue);
    let open = each(&|numbers| vec![(String::new(), numbers.clusters.to_string())]);
    family(text, "carrick_controller_clusters", &open);
    let busiest = each(&|numbers| {
        let longest = numbers.longest.iter();
        longest.map(|(cluster, count)| (format!("cluster=\"{}\"", escape(cluster)), count.to_string())).collect()
    });
    family(text, "carrick_controller_cluster_queue_depth", &busiest);
    let ended = each(&|numbers| {
        let count = |(result, count): (&&str, &u64)| (format!("result=\"{result}\""), count.to_string());
        numbers.ended.iter().map(count).collect()
    });
    family(text, "carrick_controller_reconcile_total", &ended);
    let undecodable = each(&|numbers| vec![(String::new(), numbers.undecodable.to_string())]);
    family(text, "carrick_controller_undecodable_total", &undecodable);
    histogram(text, "carrick_controller_queue_wait_seconds", all, |numbers| &numbers.waited);
    histogram(text, "carrick_controller_reconcile_seconds", all, |numbers| &numbers.took);
}

fn histogram(
    text: &mut String,
    name: &str,
    all: &BTreeMap<String, ControllerNumbers>,
    of: impl Fn(&ControllerNumbers) -> &Durations,
) {
    if all.is_empty() {
        return;
    }
    head(text, name);
    for (controller, numbers) in all {
        let (controller, durations) = (escape(controller), of(numbers));
        for (bound, count) in durations.cumulative() {
            let _ = writeln!(text, "{name}_bucket{{controller=\"{controller}\",le=\"{bound}\"}} {count}");
        }
        let (count, sum) = (durations.count, durations.sum.as_secs_f64());
        let _ = writeln!(text, "{name}_bucket{{controller=\"{controller}\",le=\"+Inf\"}} {count}");
        let _ = writeln!(text, "{name}_sum{{controller=\"{controller}\"}} {sum}");
        let _ = writeln!(text, "{name}_count{{controller=\"{controller}\"}} {count}");
    }
}

/// Appends one metric with its help text and samples (labels, value); nothing if there are none.
fn family(text: &mut String, name: &str, samples: &[(String, String)]) {
    if samples.is_empty() {
        return;
    }
    head(text, name);
    for (labels, value) in samples {
        let _ = writeln!(text, "{name}{labels} {value}");
    }
}

fn head(text: &mut String, name: &str) {
    if let Some((_, kind, help)) = FAMILIES.iter().find(|(family, ..)| *family == name) {
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }
}

/// A label value between quotes.
fn escape(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
