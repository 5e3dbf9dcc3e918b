//! Numbers, read from the agent's own metrics: what is shown is what Prometheus sees. Pure.

use std::collections::BTreeMap;

/// Samples in their order: name, labels, value.
pub(super) struct Numbers(Vec<(String, BTreeMap<String, String>, f64)>);

impl Numbers {
    /// Reads Prometheus' text format, as far as the agent uses it.
    pub(super) fn read(text: &str) -> Self {
        Self(text.lines().filter(|line| !line.starts_with('#')).filter_map(sample).collect())
    }

    /// The sum of all samples of a name.
    pub(super) fn sum(&self, name: &str) -> f64 {
        // Not sum(), which is -0 for no samples.
        self.of(name).fold(0.0, |sum, (_, value)| sum + value)
    }

    /// The first sample of a name.
    pub(super) fn find(&self, name: &str) -> Option<f64> {
        self.of(name).next().map(|(_, value)| value)
    }

    /// The sums of a name by one of its labels.
    pub(super) fn by(&self, name: &str, label: &str) -> BTreeMap<String, f64> {
        let mut sums = BTreeMap::new();
        for (labels, value) in self.of(name) {
            *sums.entry(labels.get(label).cloned().unwrap_or_default()).or_default() += value;
        }
        sums
    }

    /// The mean of a histogram in seconds, by one of its labels; those without a sample are left out.
    pub(super) fn means(&self, name: &str, label: &str) -> BTreeMap<String, f64> {
        let (sums, counts) = (self.by(&format!("{name}_sum"), label), self.by(&format!("{name}_count"), label));
        let known = counts.into_iter().filter(|(_, count)| *count > 0.0);
        known.map(|(key, count)| (key.clone(), sums.get(&key).copied().unwrap_or(0.0) / count)).collect()
    }

    fn of<'a>(&'a self, name: &'a str) -> impl Iterator<Item = (&'a BTreeMap<String, String>, f64)> {
        self.0.iter().filter(move |(known, ..)| known == name).map(|(_, labels, value)| (labels, *value))
    }
}

/// `name{label="value",…} number`. The agent uses no values that contain quotes.
fn sample(line: &str) -> Option<(String, BTreeMap<String, String>, f64)> {
    let (series, value) = line.rsplit_once(' ')?;
    let value = value.parse().ok()?;
    let Some((name, labels)) = series.split_once('{') else { return Some((series.to_owned(), BTreeMap::new(), value)) };
    let labels = labels.trim_end_matches('}').split("\",").filter_map(|label| {
        let (key, text) = label.split_once("=\"")?;
        Some((key.to_owned(), text.trim_end_matches('"').to_owned()))
    });
    Some((name.to_owned(), labels.collect(), value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_found_summed_and_grouped() {
        let numbers = Numbers::read(
            "# HELP a what\na 1\nb{x=\"1\",y=\"p\"} 2\nb{x=\"1\",y=\"q\"} 3\nb{x=\"2\",y=\"p\"} 4.5\nh_sum{k=\"v\"} 3\nh_count{k=\"v\"} 2\nh_count{k=\"w\"} 0\n",
        );
        assert_eq!((numbers.sum("a"), numbers.sum("b")), (1.0, 9.5));
        assert!(numbers.sum("missing").is_sign_positive());
        assert_eq!((numbers.find("a"), numbers.find("missing")), (Some(1.0), None));
        assert_eq!(numbers.by("b", "x"), BTreeMap::from([("1".to_owned(), 5.0), ("2".to_owned(), 4.5)]));
        assert_eq!(numbers.means("h", "k"), BTreeMap::from([("v".to_owned(), 1.5)]));
    }
}
