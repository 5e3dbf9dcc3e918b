//! Which things have to be looked at, and when.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(15);

/// Something to be looked at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// What the cluster needs once.
    Cluster,
    /// A contract, by its namespace.
    Contract(String),
    /// A BindableResourcesRequest, by namespace and name.
    Request(String, String),
}

/// How a look went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Something could not be done.
    pub failed: bool,
    /// Look again after this long.
    pub again: Option<Duration>,
}

impl Outcome {
    /// How two parts of a look went together.
    pub fn add(&mut self, other: Self) {
        self.failed |= other.failed;
        self.again = match (self.again, other.again) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
    }
}

/// Which things have to be looked at; each by one task at a time.
#[derive(Default)]
pub struct Work {
    state: Mutex<WorkState>,
    bell: Notify,
}

#[derive(Default)]
struct WorkState {
    due: BTreeMap<Key, Instant>,
    running: BTreeSet<Key>,
    pauses: BTreeMap<Key, Duration>,
}

impl Work {
    /// Something has changed: look at it now.
    pub fn mark(&self, key: Key) {
        self.state.lock().due.insert(key, Instant::now());
        self.bell.notify_one();
    }

    /// Something else has changed.
    pub fn ring(&self) {
        self.bell.notify_one();
    }

    /// Waits until something has changed.
    pub async fn heard(&self) {
        self.bell.notified().await;
    }

    /// The next thing that is due; it is not handed out again before it is done.
    pub fn take(&self) -> Option<Key> {
        let (mut state, now) = (self.state.lock(), Instant::now());
        let ready = state.due.iter().filter(|(key, at)| **at <= now && !state.running.contains(key));
        let key = ready.min_by_key(|(_, at)| **at).map(|(key, _)| key.clone())?;
        state.due.remove(&key);
        state.running.insert(key.clone());
        Some(key)
    }

    /// A thing was looked at. One that failed comes again after a pause that grows.
    pub fn done(&self, key: Key, outcome: Outcome) {
        let mut state = self.state.lock();
        state.running.remove(&key);
        let mut again = outcome.again;
        if outcome.failed {
            let pause = state.pauses.get(&key).map_or(FIRST_PAUSE, |pause| (*pause * 2).min(LONGEST_PAUSE));
            state.pauses.insert(key.clone(), pause);
            again = Some(again.map_or(pause, |again| again.min(pause)));
        } else {
            state.pauses.remove(&key);
        }
        if let Some(again) = again {
            let at = Instant::now() + again;
            let due = state.due.entry(key).or_insert(at);
            *due = at.min(*due);
        }
    }

    /// When the next thing that nobody looks at is due.
    pub fn next(&self) -> Option<Instant> {
        let state = self.state.lock();
        state.due.iter().filter(|(key, _)| !state.running.contains(key)).map(|(_, at)| *at).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_thing_is_looked_at_by_one_at_a_time_and_again_after_a_pause() {
        let (work, key) = (Work::default(), Key::Cluster);
        work.mark(key.clone());
        assert_eq!(work.take(), Some(key.clone()));
        work.mark(key.clone());
        assert_eq!((work.take(), work.next()), (None, None), "it is being looked at");
        work.done(key.clone(), Outcome { failed: true, again: None });
        assert_eq!(work.take(), Some(key.clone()), "it has changed meanwhile");
        for pause in [200, 400] {
            work.done(key.clone(), Outcome { failed: true, again: None });
            assert_eq!(work.take(), None);
            tokio::time::advance(Duration::from_millis(pause)).await;
            assert_eq!(work.take(), Some(key.clone()));
        }
        work.done(key, Outcome::default());
        assert_eq!(work.next(), None);
    }
}
