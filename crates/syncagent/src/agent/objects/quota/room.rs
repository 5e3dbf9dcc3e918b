//! Room: what one workspace may take of the agent's memory.
//!
//! Of objects for which a workspace has no room left there is only metadata in the cache. They wait until others of the workspace go or shrink.
//! An object takes many times its size while it is reconciled, so of those that are large each workspace has one under way.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::rules::metadata::SourceKey;

/// Objects with more JSON than this are large.
const LARGE: usize = 128 << 10;
/// How many large objects of one PublishedResource are reconciled at once, each of another workspace.
const LARGE_AT_ONCE: usize = 4;

/// Orders of one PublishedResource that wait because their workspaces have no room for them, with their size.
#[derive(Default)]
pub(in crate::agent::objects) struct RoomQueue(Mutex<BTreeMap<Arc<str>, BTreeMap<SourceKey, usize>>>);

impl RoomQueue {
    /// An order waits.
    pub fn note(&self, key: &SourceKey, bytes: usize) {
        self.0.lock().entry(Arc::from(&*key.cluster)).or_default().insert(key.clone(), bytes);
    }

    /// An order does not wait any more.
    pub fn over(&self, key: &SourceKey) {
        let mut all = self.0.lock();
        if let Some(waiting) = all.get_mut(&*key.cluster) {
            waiting.remove(key);
            if waiting.is_empty() {
                all.remove(&*key.cluster);
            }
        }
    }

    /// Those of a workspace that fit into its room, which is asked for only if any order waits.
    pub fn fitting(&self, cluster: &str, room: impl FnOnce() -> Option<usize>) -> Vec<SourceKey> {
        let all = self.0.lock();
        let Some(waiting) = all.get(cluster) else { return Vec::new() };
        let mut left = room().unwrap_or(usize::MAX);
        let mut fits = |bytes: usize| left.checked_sub(bytes).map(|rest| left = rest).is_some();
        waiting.iter().filter(|(_, bytes)| fits(**bytes)).map(|(key, _)| key.clone()).collect()
    }
}

/// The large orders of one PublishedResource: who has one under way, and who waits for a turn.
#[derive(Default)]
pub(in crate::agent::objects) struct LargeOrders(Mutex<Turns>);

#[derive(Default)]
struct Turns {
    running: HashSet<Arc<str>>,
    waiting: BTreeMap<Arc<str>, VecDeque<SourceKey>>,
    /// The workspace that had the last turn.
    last: Option<Arc<str>>,
}

impl LargeOrders {
    /// Whether an order of that size may be reconciled now. If not, it is returned by [`LargeOrders::end`] when it is its turn.
    pub fn begin(&self, key: &SourceKey, length: usize) -> bool {
        let mut turns = self.0.lock();
        let cluster: Arc<str> = Arc::from(&*key.cluster);
        turns.leave(key);
        if length <= LARGE {
            return true;
        }
        if turns.running.len() >= LARGE_AT_ONCE || turns.running.contains(&cluster) {
            turns.waiting.entry(cluster).or_default().push_back(key.clone());
            return false;
        }
        turns.running.insert(cluster)
    }

    /// An order that was allowed to begin has been reconciled; returns whose turn it is.
    pub fn end(&self, key: &SourceKey, length: usize) -> Option<SourceKey> {
        let mut turns = self.0.lock();
        if length > LARGE {
            turns.running.remove(&*key.cluster);
        }
        turns.next()
    }
}

impl Turns {
    fn leave(&mut self, key: &SourceKey) {
        if let Some(waiting) = self.waiting.get_mut(&*key.cluster) {
            waiting.retain(|other| other != key);
            if waiting.is_empty() {
                self.waiting.remove(&*key.cluster);
            }
        }
    }

    /// Workspaces take turns.
    fn next(&mut self) -> Option<SourceKey> {
        if self.running.len() >= LARGE_AT_ONCE {
            return None;
        }
        let after = self.last.clone().unwrap_or_else(|| Arc::from(""));
        let is_later = |cluster: &&Arc<str>| **cluster > after;
        let is_free = |cluster: &&Arc<str>| !self.running.contains(*cluster);
        let (later, first): (Vec<_>, Vec<_>) = self.waiting.keys().filter(is_free).partition(is_later);
        let cluster = later.into_iter().chain(first).next()?.clone();
        let next = self.waiting.get(&cluster)?.front().cloned();
        // It keeps its place until it begins, so that nothing is lost if it never does.
        self.last = Some(cluster);
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(cluster: &str, name: usize) -> SourceKey {
        SourceKey { cluster: cluster.into(), namespace: "n".into(), name: name.to_string().into() }
    }

    #[test]
    fn those_that_fit_are_called_when_there_is_room() {
        let room_queue = RoomQueue::default();
        assert_eq!(room_queue.fitting("a", || unreachable!("nobody waits")), []);
        for (name, bytes) in [(1, 50), (2, 30), (3, 20)] {
            room_queue.note(&key("a", name), bytes);
        }
        room_queue.note(&key("b", 1), 1);
        assert_eq!(room_queue.fitting("a", || Some(0)), []);
        assert_eq!(room_queue.fitting("a", || Some(45)), [key("a", 2)]);
        assert_eq!(room_queue.fitting("a", || Some(70)), [key("a", 1), key("a", 3)]);
        room_queue.over(&key("a", 1));
        assert_eq!(room_queue.fitting("a", || None), [key("a", 2), key("a", 3)]);
        room_queue.over(&key("b", 1));
        assert_eq!(room_queue.0.lock().len(), 1, "nothing is remembered of workspaces where nobody waits");
    }

    #[test]
    fn each_workspace_has_one_large_order_under_way_and_they_take_turns() {
        let large = LargeOrders::default();
        assert!((0..10).all(|name| large.begin(&key("a", name), LARGE)), "small ones do not wait");
        assert!(large.begin(&key("a", 0), LARGE + 1));
        assert!(!large.begin(&key("a", 1), LARGE + 1) && !large.begin(&key("a", 2), LARGE + 1));
        for cluster in ["b", "c", "d"] {
            assert!(large.begin(&key(cluster, 0), LARGE + 1), "{cluster} has none under way");
        }
        assert!(!large.begin(&key("e", 0), LARGE + 1), "four at once are enough");
        assert_eq!(large.end(&key("a", 9), LARGE), None, "a small one gives no turn away");
        assert_eq!(large.end(&key("a", 0), LARGE + 1), Some(key("a", 1)));
        assert_eq!(large.end(&key("a", 9), LARGE), Some(key("e", 0)), "it is the turn of another workspace");
        assert!(large.begin(&key("e", 0), LARGE + 1));
        assert_eq!(large.end(&key("b", 0), LARGE + 1), Some(key("a", 1)));
        // One that is gone, or small by now, leaves its place to the next.
        assert!(large.begin(&key("a", 1), 0));
        assert_eq!(large.end(&key("a", 1), 0), Some(key("a", 2)));
        assert!(large.begin(&key("a", 2), LARGE + 1));
        assert_eq!(large.end(&key("a", 2), LARGE + 1), None);
        assert!(large.0.lock().waiting.is_empty());
    }
}
