//! Which parts of the agent work: what `/readyz` answers, and what the log says once per change.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::Arc;

use parking_lot::Mutex;

/// The state of all parts.
#[derive(Debug, Default)]
pub struct Health {
    parts: Mutex<BTreeMap<String, State>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    Starting,
    Working,
    Failing(String),
}

impl Health {
    /// Registers a part; it counts as not ready until it says that it works, and is forgotten when dropped.
    pub fn part(self: &Arc<Self>, name: impl Into<String>) -> Part {
        let name = name.into();
        self.parts.lock().insert(name.clone(), State::Starting);
        Part { health: Arc::clone(self), name }
    }

    /// Why the agent is not ready, one line per part; empty when it is.
    pub fn problems(&self) -> Vec<String> {
        let parts = self.parts.lock();
        parts
            .iter()
            .filter_map(|(name, state)| match state {
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
    name: String,
}

impl Part {
    /// Everything is well; logged if it was not before.
    pub fn works(&self) {
        if let Some(State::Failing(_)) = self.set(State::Working) {
            tracing::info!(part = self.name, "Working again.");
        }
    }

    /// Something is wrong and being tried again; the same problem is logged only once.
    pub fn fails(&self, problem: &dyn Display) {
        let problem = problem.to_string();
        let failing = State::Failing(problem.clone());
        if self.set(failing.clone()) != Some(failing) {
            tracing::warn!(part = self.name, problem, "Not working, trying again until it does.");
        }
    }

    fn set(&self, state: State) -> Option<State> {
        self.health.parts.lock().insert(self.name.clone(), state)
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.health.parts.lock().remove(&self.name);
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
}
