//! Which parts of the agent work: what `/readyz` answers, and what the log says once per change.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

/// The state of all parts.
#[derive(Debug, Default)]
pub struct Health {
    parts: Mutex<BTreeMap<Key, State>>,
    registered: AtomicU64,
}

/// Name of a part, and a number: a part may be registered again before its predecessor of the same name is dropped.
type Key = (String, u64);

#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    Starting,
    Working,
    Failing(String),
}

impl Health {
    /// Registers a part; it counts as not ready until it says that it works, and is forgotten when dropped.
    pub fn part(self: &Arc<Self>, name: impl Into<String>) -> Part {
        let key = (name.into(), self.registered.fetch_add(1, Ordering::Relaxed));
        self.parts.lock().insert(key.clone(), State::Starting);
        Part { health: Arc::clone(self), key }
    }

    /// Why the agent is not ready, one line per part; empty when it is.
    pub fn problems(&self) -> Vec<String> {
        let parts = self.parts.lock();
        parts
            .iter()
            .filter_map(|((name, _), state)| match state {
                State::Starting => Some(format!("{name}: starting")),
                State::Working => None,
                State::Failing(problem) => Some(format!("{name}: {problem}")),
            })
            .collect()
    }
}

/// One part of the agent, reporting for itself.
#[derive(Debug)]
pub struct Part {
    health: Arc<Health>,
    key: Key,
}

impl Part {
    /// Everything is well; logged if it was not before.
    pub fn works(&self) {
        if let Some(State::Failing(_)) = self.set(State::Working) {
            tracing::info!(part = self.key.0, "Working again.");
        }
    }

    /// Something is wrong and being tried again; the same problem is logged only once.
    pub fn fails(&self, problem: &dyn Display) {
        if let Some(problem) = self.stop_working(problem) {
            tracing::warn!(part = self.key.0, problem, "Not working, trying again until it does.");
        }
    }

    /// Something is not there yet, which is no reason to worry.
    pub fn waits(&self, problem: &dyn Display) {
        if let Some(problem) = self.stop_working(problem) {
            tracing::info!(part = self.key.0, problem, "Waiting.");
        }
    }

    /// The problem, if it is a new one.
    fn stop_working(&self, problem: &dyn Display) -> Option<String> {
        let problem = problem.to_string();
        let failing = State::Failing(problem.clone());
        (self.set(failing.clone()) != Some(failing)).then_some(problem)
    }

    fn set(&self, state: State) -> Option<State> {
        self.health.parts.lock().insert(self.key.clone(), state)
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.health.parts.lock().remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_agent_is_ready_when_every_part_works() {
        let health = Arc::new(Health::default());
        assert!(health.problems().is_empty());
        let watch = health.part("watch");
        let connect = health.part("connect");
        assert_eq!(health.problems(), ["connect: starting", "watch: starting"]);
        watch.works();
        connect.fails(&"refused");
        assert_eq!(health.problems(), ["connect: refused"]);
        drop(connect);
        assert!(health.problems().is_empty());
    }

    #[test]
    fn a_part_that_goes_late_does_not_take_its_successor_along() {
        let health = Arc::new(Health::default());
        let before = health.part("watch");
        let after = health.part("watch");
        after.fails(&"refused");
        drop(before);
        assert_eq!(health.problems(), ["watch: refused"]);
    }
}
