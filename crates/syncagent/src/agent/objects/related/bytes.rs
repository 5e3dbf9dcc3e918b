//! What the related objects of one workspace take of the agent's memory.
//!
//! The caches keep whatever some order needs, and consumers decide how much that is: they name related objects and write them. So the bytes are
//! counted while an order is read, for its workspace, and what would be too much is not kept.
//!
//! ```text
//!  read an order: reserve, object by object ──(too much)──▶ the entry is refused, the order waits ──▶ called when others of the workspace need less
//!                       └──▶ settle: what was read is counted until the order is read again, or gone
//! ```

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use parking_lot::Mutex;

use super::keys::PrimaryKey;

/// Bytes of related objects, by workspace and order.
#[derive(Default)]
pub(in crate::agent::objects) struct RelatedBytes(Mutex<HashMap<Arc<str>, WorkspaceBytes>>);

#[derive(Default)]
struct WorkspaceBytes {
    total: usize,
    orders: HashMap<PrimaryKey, OrderBytes>,
    /// Orders that were refused some of their objects.
    waiting: HashSet<PrimaryKey>,
}

/// What one order takes.
#[derive(Debug, Clone, Copy, Default)]
struct OrderBytes {
    /// What counts: the most that was needed since it was last settled.
    counted: usize,
    /// What it was settled at.
    settled: usize,
}

impl RelatedBytes {
    /// An order that is being read needs so many bytes in all. If its workspace has no room for them, returns how many it would have.
    pub fn reserve(&self, user: &PrimaryKey, bytes: usize, most: usize) -> Result<(), usize> {
        let mut all = self.0.lock();
        let workspace = all.entry(user.1.cluster.clone()).or_default();
        let counted = workspace.orders.get(user).copied().unwrap_or_default().counted;
        let wanted = workspace.total - counted + bytes.max(counted);
        if bytes > counted && wanted > most {
            return Err(wanted);
        }
        workspace.orders.entry(user.clone()).or_default().counted = bytes.max(counted);
        workspace.total = wanted;
        Ok(())
    }

    /// An order was read and needs so many bytes. Returns who waited for room, if there is more of it than before.
    pub fn settle(&self, user: &PrimaryKey, bytes: usize, refused: bool) -> HashSet<PrimaryKey> {
        let mut all = self.0.lock();
        let workspace = all.entry(user.1.cluster.clone()).or_default();
        let before = workspace.orders.remove(user).unwrap_or_default();
        workspace.total = workspace.total - before.counted + bytes;
        workspace.waiting.remove(user);
        let called = if bytes < before.settled { std::mem::take(&mut workspace.waiting) } else { HashSet::default() };
        if bytes > 0 {
            workspace.orders.insert(user.clone(), OrderBytes { counted: bytes, settled: bytes });
        }
        if refused {
            workspace.waiting.insert(user.clone());
        }
        if workspace.orders.is_empty() && workspace.waiting.is_empty() {
            all.remove(&user.1.cluster);
        }
        called
    }

    /// The orders of a PublishedResource need nothing any more. Returns who waited for room.
    pub fn forget_all(&self, published: &str) -> HashSet<PrimaryKey> {
        let mut called = HashSet::new();
        self.0.lock().retain(|_, workspace| {
            let before = workspace.total;
            workspace.orders.retain(|(name, _), _| **name != *published);
            workspace.waiting.retain(|(name, _)| **name != *published);
            workspace.total = workspace.orders.values().map(|order| order.counted).sum();
            if workspace.total < before {
                called.extend(workspace.waiting.drain());
            }
            !workspace.orders.is_empty()
        });
        called
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::metadata::SourceKey;

    fn user(cluster: &str, name: &str) -> PrimaryKey {
        ("pr".into(), SourceKey { cluster: cluster.into(), namespace: "n".into(), name: name.into() })
    }

    #[test]
    fn the_orders_of_a_workspace_share_its_bytes_and_others_have_their_own() {
        let bytes = RelatedBytes::default();
        let (first, second, other) = (user("a", "1"), user("a", "2"), user("b", "1"));
        assert_eq!(bytes.reserve(&first, 40, 100), Ok(()));
        assert_eq!(bytes.reserve(&first, 60, 100), Ok(()));
        assert_eq!(bytes.reserve(&second, 41, 100), Err(101));
        assert_eq!(bytes.reserve(&second, 40, 100), Ok(()));
        assert_eq!(bytes.reserve(&other, 100, 100), Ok(()));
        assert_eq!(bytes.reserve(&other, 101, 100), Err(101), "one alone has no more than all");
        // What it needs less by the end is free for others.
        assert_eq!(bytes.settle(&first, 50, false), HashSet::new());
        assert_eq!(bytes.reserve(&second, 50, 100), Ok(()));
        assert_eq!(bytes.reserve(&second, 51, 100), Err(101));
    }

    #[test]
    fn whoever_waits_is_called_once_there_is_more_room_and_not_by_itself() {
        let bytes = RelatedBytes::default();
        let (first, second) = (user("a", "1"), user("a", "2"));
        bytes.reserve(&first, 80, 100).unwrap();
        bytes.settle(&first, 80, false);
        for _ in 0..3 {
            bytes.reserve(&second, 20, 100).unwrap();
            assert!(bytes.reserve(&second, 30, 100).is_err());
            assert_eq!(bytes.settle(&second, 0, true), HashSet::new(), "its own attempts call nobody");
        }
        // Reading the same again calls nobody, and takes no room twice.
        bytes.reserve(&first, 80, 100).unwrap();
        assert_eq!(bytes.settle(&first, 80, false), HashSet::new());
        assert_eq!(bytes.settle(&first, 0, false), HashSet::from([second.clone()]), "it is gone");
        assert_eq!(bytes.settle(&second, 30, false), HashSet::new());
        assert_eq!(bytes.settle(&second, 0, false), HashSet::new());
        assert!(bytes.0.lock().is_empty(), "nothing is remembered of a workspace that needs nothing");
    }

    #[test]
    fn what_a_published_resource_leaves_is_free_for_others() {
        let bytes = RelatedBytes::default();
        let other: PrimaryKey = ("other".into(), user("a", "1").1);
        bytes.reserve(&user("a", "1"), 80, 100).unwrap();
        bytes.settle(&user("a", "1"), 80, false);
        bytes.settle(&other, 10, true);
        bytes.settle(&user("b", "1"), 0, true);
        assert_eq!(bytes.forget_all("pr"), HashSet::from([other.clone()]));
        assert_eq!(bytes.reserve(&other, 100, 100), Ok(()));
        assert_eq!(bytes.forget_all("other"), HashSet::new());
        assert!(bytes.0.lock().is_empty());
    }

    #[test]
    fn an_order_that_has_room_keeps_it_when_the_limit_is_lower_after_a_restart_of_others() {
        let bytes = RelatedBytes::default();
        let first = user("a", "1");
        bytes.reserve(&first, 80, 100).unwrap();
        bytes.settle(&first, 80, false);
        assert_eq!(bytes.reserve(&first, 80, 50), Ok(()), "it needs no more than before");
        assert_eq!(bytes.reserve(&first, 81, 50), Err(81));
    }
}
