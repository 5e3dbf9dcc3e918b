//! How long each part of an object's way takes.
//!
//! ```text
//!   source seen ──▶ copy written ──▶ status seen ──▶ status written
//!       source_to_copy    copy_to_status    status_to_source
//! ```

use std::collections::HashMap;
use std::time::{Duration, Instant};

use carrick_multicluster::Key;
use carrick_multicluster::metrics::{Durations, Stopwatch};
use parking_lot::Mutex;

use super::family::HOP_SECONDS;
use super::page::Page;

/// How many copies are remembered whose first status has not come: that of further ones is not timed.
const REMEMBERED: usize = 4096;

/// Durations of all objects.
#[derive(Default)]
pub struct Hops {
    source_to_copy: Stopwatch,
    copy_to_status: Stopwatch,
    status_to_source: Stopwatch,
    /// When copies were created that have no status yet.
    created: Mutex<HashMap<Key, Instant>>,
}

impl Hops {
    /// A copy was written, for a source that was seen so long ago; `new` if it was not there before.
    pub fn copy_written(&self, key: &Key, seen_ago: Duration, new: bool) {
        self.source_to_copy.record(seen_ago);
        if new {
            let mut created = self.created.lock();
            if created.len() < REMEMBERED {
                created.insert(key.clone(), Instant::now());
            }
        }
    }

    /// A status was written to its source, after it was seen so long ago.
    pub fn status_written(&self, key: &Key, seen_ago: Duration) {
        self.status_to_source.record(seen_ago);
        if let Some(created) = self.created.lock().remove(key) {
            self.copy_to_status.record(created.elapsed().saturating_sub(seen_ago));
        }
    }

    /// An object is gone.
    pub fn forget(&self, key: &Key) {
        self.created.lock().remove(key);
    }

    pub(super) fn show(&self, page: &mut Page) {
        let hops = [
            ("source_to_copy", &self.source_to_copy),
            ("copy_to_status", &self.copy_to_status),
            ("status_to_source", &self.status_to_source),
        ];
        for (hop, stopwatch) in hops {
            let durations: Durations = stopwatch.read();
            page.histogram(&HOP_SECONDS, &[hop], &durations);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_first_status_ends_the_time_of_the_operator() {
        let hops = Hops::default();
        let key = Key::new("a".parse().unwrap(), "default", "b");
        hops.copy_written(&key, Duration::from_millis(2), true);
        hops.copy_written(&key, Duration::from_millis(2), false);
        hops.status_written(&key, Duration::ZERO);
        hops.status_written(&key, Duration::ZERO);
        let mut page = Page::default();
        hops.show(&mut page);
        let text = page.text();
        for (hop, count) in [("source_to_copy", 2), ("copy_to_status", 1), ("status_to_source", 2)] {
            let line = format!("sync_agent_hop_seconds_count{{hop=\"{hop}\"}} {count}");
            assert!(text.lines().any(|got| got == line), "{line} is missing in\n{text}");
        }
    }
}
