//! One answer to a scrape: samples, gathered by metric, in Prometheus' text format.
//!
//! Why not the crate `prometheus-client`: it writes OpenMetrics only. There the bound of a bucket is `le="1.0"` where this is `le="1"`, and
//! the header of a counter lacks `_total`, so that every time series of a histogram and the type of every counter would change for those
//! who scrape `text/plain; version=0.0.4`. Both are hard-wired. Most numbers are read at the moment of a scrape, for which it has no more
//! to offer than the writer below.

use std::collections::BTreeMap;
use std::fmt::{Display, Write as _};

use crate::stats::Durations;

/// One metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Family {
    /// Its name.
    pub name: &'static str,
    /// `gauge`, `counter` or `histogram`.
    pub kind: &'static str,
    /// Its labels.
    pub labels: &'static [&'static str],
    /// What it measures.
    pub help: &'static str,
}

/// Samples that are gathered for one answer.
#[derive(Debug, Default)]
pub struct Page {
    /// Lines by the name of their metric: all lines of a metric must follow each other.
    lines: BTreeMap<&'static str, String>,
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

    /// The text of these metrics, in this order; without those that have no sample.
    pub fn text<'a>(&self, families: impl IntoIterator<Item = &'a Family>) -> String {
        let mut text = String::new();
        for Family { name, kind, help, .. } in families {
            if let Some(lines) = self.lines.get(name) {
                let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{lines}");
            }
        }
        text
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

    const ONE: Family = Family { name: "one", kind: "gauge", labels: &["a"], help: "One." };
    const TWO: Family = Family { name: "two", kind: "gauge", labels: &["a"], help: "Two." };

    #[test]
    fn lines_of_one_metric_follow_each_other_whatever_the_order_of_samples() {
        let mut page = Page::default();
        page.sample(&ONE, &["a"], 1);
        page.sample(&TWO, &["quote\"d"], 0);
        page.sample(&ONE, &["b"], 2);
        let text = page.text(&[ONE, TWO]);
        let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(lines, [r#"one{a="a"} 1"#, r#"one{a="b"} 2"#, r#"two{a="quote\"d"} 0"#]);
    }
}
