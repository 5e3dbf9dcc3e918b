//! What is counted, as Prometheus reads it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use carrick_sync::Role;
use parking_lot::Mutex;

use super::objects::WriteObserver;

/// Side, resource, verb and how it went.
type Labels = (&'static str, String, &'static str, String);

/// The counts of one konnector.
#[derive(Debug, Default)]
pub struct Metrics {
    writes: Mutex<BTreeMap<Labels, u64>>,
    contracts: AtomicU64,
    leading: AtomicU64,
}

impl Metrics {
    /// A write was answered: `ok`, or the server's reason.
    pub fn wrote(&self, side: &'static str, resource: &str, verb: &'static str, result: impl Into<String>) {
        *self.writes.lock().entry((side, resource.to_owned(), verb, result.into())).or_default() += 1;
    }

    /// How many contracts are connected has changed.
    pub fn set_contracts(&self, count: usize) {
        self.contracts.store(u64::try_from(count).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Whether this process has the Lease.
    pub fn set_leading(&self, leading: bool) {
        self.leading.store(u64::from(leading), Ordering::Relaxed);
    }

    /// All of them as text.
    pub fn render(&self) -> String {
        let mut text = String::from("# HELP konnector_writes_total Writes, by how they were answered.\n");
        text.push_str("# TYPE konnector_writes_total counter\n");
        for ((side, resource, verb, result), count) in &*self.writes.lock() {
            let labels = format!("side={side:?},resource={resource:?},verb={verb:?},result={result:?}");
            // Writing to a String cannot fail.
            let _ = writeln!(text, "konnector_writes_total{{{labels}}} {count}");
        }
        for (name, help, value) in [
            ("konnector_contracts", "Kubeconfigs that are in use.", &self.contracts),
            ("konnector_leading", "Whether this process has the Lease.", &self.leading),
        ] {
            let value = value.load(Ordering::Relaxed);
            let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} gauge\n{name} {value}\n");
        }
        text
    }
}

impl WriteObserver for Metrics {
    fn wrote(&self, verb: &'static str, role: Option<Role>, _took: Duration, failed: Option<&str>) {
        let side = match role {
            Some(Role::Consumer) => "consumer",
            Some(Role::Provider) | None => "provider",
        };
        self.wrote(side, "objects", verb, failed.unwrap_or("ok"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_are_counted_by_how_they_went() {
        let metrics = Metrics::default();
        for result in ["ok", "ok", "Conflict"] {
            metrics.wrote("consumer", "apiservicebindings", "write-status", result);
        }
        metrics.set_contracts(2);
        let text = metrics.render();
        let line =
            "konnector_writes_total{side=\"consumer\",resource=\"apiservicebindings\",verb=\"write-status\",result=";
        assert!(text.contains(&format!("{line}\"ok\"}} 2\n")) && text.contains(&format!("{line}\"Conflict\"}} 1\n")));
        assert!(text.contains("\nkonnector_contracts 2\n"), "{text}");
    }
}
