//! Numbers about the agent in Prometheus' text format.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

/// All numbers of one agent.
#[derive(Debug, Default)]
pub struct Metrics {
    published_resources: AtomicU64,
    reconciles: Mutex<BTreeMap<(&'static str, Outcome), u64>>,
    orphans: Mutex<BTreeMap<String, usize>>,
    leader_of: Mutex<Option<(String, bool)>>,
}

/// How a reconcile ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// Nothing more to do until something changes.
    Success,
    /// Failed, tried again later.
    Error,
    /// Fine so far, looked at again after a pause.
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

    /// Says whether this process holds the lease of that name.
    pub fn set_leader(&self, lease: &str, leading: bool) {
        *self.leader_of.lock() = Some((lease.to_owned(), leading));
    }

    /// The text served under `/metrics`.
    pub fn render(&self) -> String {
        let mut text = String::new();
        family(
            &mut text,
            "sync_agent_published_resource",
            "gauge",
            "Number of PublishedResources currently managed by this syncagent instance.",
            &[(String::new(), self.published_resources.load(Ordering::Relaxed).to_string())],
        );
        let reconciles = self.reconciles.lock().clone();
        let totals: Vec<_> = reconciles
            .iter()
            .map(|((controller, outcome), count)| {
                (format!("{{controller=\"{controller}\",result=\"{}\"}}", outcome.label()), count.to_string())
            })
            .collect();
        let help = "Total number of reconciliations per controller.";
        family(&mut text, "controller_runtime_reconcile_total", "counter", help, &totals);
        let errors: Vec<_> = reconciles
            .iter()
            .filter(|((_, outcome), _)| *outcome == Outcome::Error)
            .map(|((controller, _), count)| (format!("{{controller=\"{controller}\"}}"), count.to_string()))
            .collect();
        let help = "Total number of reconciliation errors per controller.";
        family(&mut text, "controller_runtime_reconcile_errors_total", "counter", help, &errors);
        let orphans = self.orphans.lock();
        let orphans: Vec<_> = orphans
            .iter()
            .map(|(name, count)| (format!("{{publishedresource=\"{name}\"}}"), count.to_string()))
            .collect();
        let help = "Copies on the service cluster whose source does not exist.";
        family(&mut text, "sync_agent_orphaned_copies", "gauge", help, &orphans);
        if let Some((lease, leading)) = &*self.leader_of.lock() {
            let sample = (format!("{{name=\"{lease}\"}}"), u8::from(*leading).to_string());
            let help = "Whether this process holds the lease: 1 if so, 0 if another one does.";
            family(&mut text, "leader_election_master_status", "gauge", help, &[sample]);
        }
        process(&mut text);
        text
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

/// Appends memory, open files and threads of this process, where the system tells them.
fn process(text: &mut String) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let field = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name))?;
        line.split_whitespace().nth(1)?.parse::<u64>().ok()
    };
    let resident = field("VmRSS:").map(|kib| kib * 1024);
    let open = std::fs::read_dir("/proc/self/fd").ok().map(|files| files.count() as u64);
    let gauges = [
        ("process_resident_memory_bytes", "Resident memory size in bytes.", resident),
        ("process_open_fds", "Number of open file descriptors.", open),
        ("process_threads", "Number of threads.", field("Threads:")),
    ];
    for (name, help, value) in gauges {
        if let Some(value) = value {
            family(text, name, "gauge", help, &[(String::new(), value.to_string())]);
        }
    }
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
    fn reconciles_are_counted_by_controller_and_outcome() {
        let metrics = Metrics::default();
        metrics.reconciled("syncagent-apiexport", Outcome::Success);
        metrics.reconciled("syncagent-apiexport", Outcome::Error);
        metrics.reconciled("syncagent-apiexport", Outcome::Error);
        metrics.set_leader("syncagent.a", true);
        metrics.set_orphans("a", 3);
        metrics.set_orphans("b", 3);
        metrics.set_orphans("b", 0);
        let text = metrics.render();
        for line in [
            r#"controller_runtime_reconcile_total{controller="syncagent-apiexport",result="success"} 1"#,
            r#"controller_runtime_reconcile_total{controller="syncagent-apiexport",result="error"} 2"#,
            r#"controller_runtime_reconcile_errors_total{controller="syncagent-apiexport"} 2"#,
            r#"leader_election_master_status{name="syncagent.a"} 1"#,
            r#"sync_agent_orphaned_copies{publishedresource="a"} 3"#,
        ] {
            assert!(text.lines().any(|got| got == line), "{line} is missing in\n{text}");
        }
        assert!(!text.contains(r#"publishedresource="b""#));
    }
}
