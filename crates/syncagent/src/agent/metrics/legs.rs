//! How long each part of the way from source to copy and back takes.
//!
//! ```text
//!   source seen ──▶ copy written ──▶ status seen ──▶ status written
//!       source_to_copy    copy_to_status    status_to_source
//! ```

use std::collections::HashMap;
use std::time::{Duration, Instant};

use carrick_multicluster::metrics::{Durations, Page, Stopwatch};
use parking_lot::Mutex;
use serde::Serialize;

use super::family::HOP_SECONDS;
use crate::rules::metadata::SourceKey;

/// For how many copies the time until their first status is measured at once.
const REMEMBERED: usize = 4096;

/// Durations of all objects.
#[derive(Default)]
pub struct Legs {
    source_to_copy: Stopwatch,
    copy_to_status: Stopwatch,
    status_to_source: Stopwatch,
    /// When copies were created that have no status yet.
    created: Mutex<HashMap<SourceKey, Instant>>,
    /// How long the last changes of objects took.
    last: Mutex<HashMap<SourceKey, Times>>,
}

/// How long the last change of one object took, as far as it has come since this agent started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Times {
    /// From the order to the copy.
    pub source_to_copy: Option<f64>,
    /// From the copy to its first status.
    pub copy_to_status: Option<f64>,
    /// From the status to the order.
    pub status_to_source: Option<f64>,
}

impl Legs {
    /// A copy was written, for a source that was seen so long ago; `new` if it was not there before.
    pub fn copy_written(&self, key: &SourceKey, seen_ago: Duration, new: bool) {
        self.source_to_copy.record(seen_ago);
        self.note(key, |times| times.source_to_copy = Some(seen_ago.as_secs_f64()));
        if new {
            let mut created = self.created.lock();
            if created.len() < REMEMBERED {
                created.insert(key.clone(), Instant::now());
            }
        }
    }

    /// A status was written to its source, after it was seen so long ago.
    pub fn status_written(&self, key: &SourceKey, seen_ago: Duration) {
        self.status_to_source.record(seen_ago);
        self.note(key, |times| times.status_to_source = Some(seen_ago.as_secs_f64()));
        if let Some(created) = self.created.lock().remove(key) {
            let operator = created.elapsed().saturating_sub(seen_ago);
            self.copy_to_status.record(operator);
            self.note(key, |times| times.copy_to_status = Some(operator.as_secs_f64()));
        }
    }

    /// How long the last change of an object took, as far as that is remembered.
    pub fn of(&self, key: &SourceKey) -> Times {
        self.last.lock().get(key).copied().unwrap_or_default()
    }

    fn note(&self, key: &SourceKey, change: impl FnOnce(&mut Times)) {
        let mut last = self.last.lock();
        if let Some(times) = last.get_mut(key) {
            return change(times);
        }
        // The latest matter most; older ones may be forgotten.
        if last.len() >= REMEMBERED {
            last.clear();
        }
        change(last.entry(key.clone()).or_default());
    }

    /// An object is gone.
    pub fn forget(&self, key: &SourceKey) {
        self.created.lock().remove(key);
        self.last.lock().remove(key);
    }

    pub(super) fn show(&self, page: &mut Page) {
        let legs = [
            ("source_to_copy", &self.source_to_copy),
            ("copy_to_status", &self.copy_to_status),
            ("status_to_source", &self.status_to_source),
        ];
        for (leg, stopwatch) in legs {
            let durations: Durations = stopwatch.read();
            page.histogram(&HOP_SECONDS, &[leg], &durations);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_first_status_ends_the_time_of_the_operator() {
        let legs = Legs::default();
        let key = SourceKey { cluster: "a".into(), namespace: "default".into(), name: "b".into() };
        legs.copy_written(&key, Duration::from_millis(2), true);
        legs.copy_written(&key, Duration::from_millis(2), false);
        legs.status_written(&key, Duration::ZERO);
        legs.status_written(&key, Duration::ZERO);
        let times = legs.of(&key);
        assert_eq!((times.source_to_copy, times.status_to_source), (Some(0.002), Some(0.0)));
        assert!(times.copy_to_status.is_some());
        let mut page = Page::default();
        legs.show(&mut page);
        let text = page.text(&[HOP_SECONDS]);
        for (leg, count) in [("source_to_copy", 2), ("copy_to_status", 1), ("status_to_source", 2)] {
            let line = format!("sync_agent_hop_seconds_count{{hop=\"{leg}\"}} {count}");
            assert!(text.lines().any(|got| got == line), "{line} is missing in\n{text}");
        }
        legs.forget(&key);
        assert_eq!(legs.of(&key), Times::default());
    }
}
