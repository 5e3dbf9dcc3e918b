//! Numbers about a fleet in Prometheus' text format.

use std::fmt::Write as _;

use crate::fleet::Fleet;
use crate::stats::{ControllerStats, Ended, Histogram};

/// How to render metrics.
#[derive(Clone, Copy, Debug, Default)]
pub struct MetricsOptions {
    /// Also show the clusters with the longest queues, this many per controller. Off by default: every cluster that
    /// ever had a long queue becomes a time series.
    pub busiest_clusters: usize,
}

/// The numbers of a fleet and of all controllers on it, as text for `/metrics`.
pub fn render(fleet: &Fleet, options: MetricsOptions) -> String {
    let mut text = String::new();
    let health = fleet.health();
    let gauge = |value: usize| vec![(String::new(), value.to_string())];
    family(&mut text, "carrick_fleet_clusters", "gauge", "Engaged clusters.", &gauge(health.clusters));
    let mut states = Vec::new();
    let mut restarts = Vec::new();
    for (id, endpoint) in &health.endpoints {
        for watch in &endpoint.watches {
            let labels = format!("endpoint=\"{}\",resource=\"{}\"", escape(id), escape(&watch.resource.to_string()));
            states.push((format!("{{{labels},state=\"{}\"}}", watch.state.as_str()), "1".to_owned()));
            restarts.push((format!("{{{labels}}}"), watch.restarts.to_string()));
        }
    }
    family(&mut text, "carrick_fleet_watch_state", "gauge", "State of each watch.", &states);
    let help = "How often a watch listed everything again.";
    family(&mut text, "carrick_fleet_watch_restarts_total", "counter", help, &restarts);
    let failing = gauge(health.failing.len());
    let help = "Sources of the provider that cannot be followed.";
    family(&mut text, "carrick_fleet_provider_failing", "gauge", help, &failing);
    controllers(&mut text, &fleet.stats(), options);
    text
}

fn controllers(text: &mut String, all: &[std::sync::Arc<ControllerStats>], options: MetricsOptions) {
    let each = |value: &dyn Fn(&ControllerStats) -> Vec<(String, String)>| -> Vec<(String, String)> {
        let labelled = |stats: &ControllerStats| {
            let controller = escape(stats.name());
            let label = move |(more, value): (String, String)| {
                let comma = if more.is_empty() { "" } else { "," };
                (format!("{{controller=\"{controller}\"{comma}{more}}}"), value)
            };
            value(stats).into_iter().map(label).collect::<Vec<_>>()
        };
        all.iter().flat_map(|stats| labelled(stats)).collect()
    };
    let queue = each(&|stats| {
        let queue = stats.queue();
        let states = [("queued", queue.queued), ("running", queue.running), ("delayed", queue.delayed)];
        states.into_iter().map(|(state, count)| (format!("state=\"{state}\""), count.to_string())).collect()
    });
    family(text, "carrick_controller_queue_depth", "gauge", "Objects in the queue.", &queue);
    let open = each(&|stats| vec![(String::new(), stats.open().to_string())]);
    family(text, "carrick_controller_clusters", "gauge", "Clusters the controller works on.", &open);
    let busiest = each(&|stats| {
        let longest = stats.longest(options.busiest_clusters).into_iter();
        longest.map(|(cluster, count)| (format!("cluster=\"{}\"", escape(&cluster)), count.to_string())).collect()
    });
    let help = "Objects that wait, of the clusters with the longest queues.";
    family(text, "carrick_controller_cluster_queue_depth", "gauge", help, &busiest);
    let ended = each(&|stats| {
        let count = |ended: Ended| (format!("result=\"{}\"", ended.as_str()), stats.ended(ended).to_string());
        Ended::ALL.into_iter().map(count).collect()
    });
    family(text, "carrick_controller_reconcile_total", "counter", "Reconciles by result.", &ended);
    let undecodable = each(&|stats| vec![(String::new(), stats.undecodable().to_string())]);
    let help = "Objects that could not be understood.";
    family(text, "carrick_controller_undecodable_total", "counter", help, &undecodable);
    histogram(text, "carrick_controller_queue_wait_seconds", "How long objects waited.", all, |stats| &stats.waited);
    histogram(text, "carrick_controller_reconcile_seconds", "How long reconciles took.", all, |stats| &stats.took);
}

fn histogram(
    text: &mut String,
    name: &str,
    help: &str,
    all: &[std::sync::Arc<ControllerStats>],
    of: impl Fn(&ControllerStats) -> &Histogram,
) {
    if all.is_empty() {
        return;
    }
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} histogram");
    for stats in all {
        let (controller, histogram) = (escape(stats.name()), of(stats));
        for (bound, count) in histogram.cumulative() {
            let _ = writeln!(text, "{name}_bucket{{controller=\"{controller}\",le=\"{bound}\"}} {count}");
        }
        let (count, sum) = histogram.total();
        let _ = writeln!(text, "{name}_bucket{{controller=\"{controller}\",le=\"+Inf\"}} {count}");
        let _ = writeln!(text, "{name}_sum{{controller=\"{controller}\"}} {sum}");
        let _ = writeln!(text, "{name}_count{{controller=\"{controller}\"}} {count}");
    }
}

/// Appends one metric with its help text and samples (labels, value); nothing if there are none.
fn family(text: &mut String, name: &str, kind: &str, help: &str, samples: &[(String, String)]) {
    if samples.is_empty() {
        return;
    }
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    for (labels, value) in samples {
        let _ = writeln!(text, "{name}{labels} {value}");
    }
}

/// A label value between quotes.
fn escape(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
