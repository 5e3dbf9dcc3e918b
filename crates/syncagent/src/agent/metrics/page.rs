//! One answer to a scrape: samples, gathered by metric, in Prometheus' text format.

use std::collections::BTreeMap;
use std::fmt::{Display, Write as _};

use carrick_multicluster::metrics::Durations;

use super::family::{ALL, Family};

/// Samples that are gathered for one answer.
#[derive(Debug, Default)]
pub struct Page {
    /// Lines by the name of their metric: all lines of a metric must follow each other.
    lines: BTreeMap<&'static str, String>,
    /// What other libraries have rendered already.
    more: String,
}

impl Page {
    /// Adds one sample. The values are those of the metric's labels, in that order.
    pub fn sample(&mut self, family: &Family, values: &[&str], value: impl Display) {
        let labels = labels(family, values, None);
        let _ = writeln!(self.lines.entry(family.name).or_default(), "{}{labels} {value}", family.name);
    }

    /// Adds a histogram.
    pub fn histogram(&mut self, family: &Family, values: &[&str], durations: &Durations) {
        let (lines, name) = (self.lines.entry(family.name).or_default(), family.name);
        let bounds = durations.cumulative().map(|(bound, count)| (bound.to_string(), count));
        for (bound, count) in bounds.chain([("+Inf".to_owned(), durations.count)]) {
            let _ = writeln!(lines, "{name}_bucket{} {count}", labels(family, values, Some(&bound)));
        }
        let labels = labels(family, values, None);
        let _ = writeln!(lines, "{name}_sum{labels} {}", durations.sum.as_secs_f64());
        let _ = writeln!(lines, "{name}_count{labels} {}", durations.count);
    }

    /// Adds what another library has rendered.
    pub fn append(&mut self, text: &str) {
        self.more.push_str(text);
    }

    /// The whole text.
    pub fn text(self) -> String {
        let mut text = String::new();
        for family in ALL {
            if let Some(lines) = self.lines.get(family.name) {
                let Family { name, kind, help, .. } = family;
                let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{lines}");
            }
        }
        text + &self.more
    }
}

fn labels(family: &Family, values: &[&str], bound: Option<&str>) -> String {
    let pairs = family.labels.iter().copied().zip(values.iter().copied()).chain(bound.map(|bound| ("le", bound)));
    let pairs: Vec<String> = pairs.map(|(label, value)| format!("{label}=\"{}\"", escape(value))).collect();
    if pairs.is_empty() { String::new() } else { format!("{{{}}}", pairs.join(",")) }
}

fn escape(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::metrics::family::{LEADER, SYNCED_OBJECTS};

    #[test]
    fn lines_of_one_metric_follow_each_other_whatever_the_order_of_samples() {
        let mut page = Page::default();
        page.sample(&SYNCED_OBJECTS, &["a"], 1);
        page.sample(&LEADER, &["quote\"d"], 0);
        page.sample(&SYNCED_OBJECTS, &["b"], 2);
        let text = page.text();
        let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        let wanted = [
            r#"sync_agent_synced_objects{publishedresource="a"} 1"#,
            r#"sync_agent_synced_objects{publishedresource="b"} 2"#,
            r#"leader_election_master_status{name="quote\"d"} 0"#,
        ];
        assert_eq!(lines, wanted);
    }
}
