//! Left copies: whether the service cluster still has a copy that no cache shows.
//!
//! ```text
//!  where the copy was deleted is known   ──▶ that one object is asked for
//!  it is not, and one order wants to know ─▶ one list, for all orders that wait by then
//! ```
//!
//! Every list makes the server go through all copies of the kind, so a thousand orders that end at once must not cost a thousand lists.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use carrick_client::{Error, Object};
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::sync::oneshot::error::TryRecvError;

use crate::decide::ObjectAddress;
use crate::rules::metadata::SourceKey;

/// How many orders one list is for: their names are part of its address.
const MOST: usize = 100;

/// How many requests without an answer are remembered.
const UNANSWERED: usize = 1000;

type Answer = Result<Arc<Vec<Object>>, Error>;

/// What is known about copies of one PublishedResource that may be left.
#[derive(Default)]
pub(in crate::agent::objects) struct LeftCopies {
    /// Where the copies of orders that end were deleted, with the UID of the order.
    deleted: Mutex<HashMap<SourceKey, (String, ObjectAddress)>>,
    /// Hashes of the names of orders that wait for a list that has not begun.
    waiting: Mutex<Vec<(String, oneshot::Sender<Answer>)>>,
    /// Copies that a server was asked to make without an answer, by the order and its UID: they may come at any time. The latest come last.
    unanswered: Mutex<VecDeque<(SourceKey, String)>>,
    /// Held while a list is under way.
    turn: tokio::sync::Mutex<()>,
}

impl LeftCopies {
    /// The copy of an order is being deleted.
    pub fn note_deleted(&self, key: &SourceKey, uid: &str, at: ObjectAddress) {
        self.deleted.lock().insert(key.clone(), (uid.to_owned(), at));
    }

    /// Where the copy of an order was deleted, if that was seen.
    pub fn deleted_at(&self, key: &SourceKey, uid: &str) -> Option<ObjectAddress> {
        self.deleted.lock().get(key).filter(|(known, _)| known == uid).map(|(_, at)| at.clone())
    }

    /// A server did not answer whether it made the copy of an order.
    pub fn note_unanswered(&self, key: &SourceKey, uid: &str) {
        let mut all = self.unanswered.lock();
        if !all.iter().any(|(known, theirs)| known == key && theirs == uid) {
            all.push_back((key.clone(), uid.to_owned()));
        }
        if all.len() > UNANSWERED {
            all.pop_front();
        }
    }

    /// Whether the copy of an order, by its UID, may come although that order has ended.
    pub fn may_come(&self, key: &SourceKey, uid: &str) -> bool {
        self.unanswered.lock().iter().any(|(known, theirs)| known == key && theirs == uid)
    }

    /// An order is gone.
    pub fn forget(&self, key: &SourceKey) {
        self.deleted.lock().remove(key);
    }

    /// All copies of orders whose names have this hash, from a list that begins now or later. Whoever waits together is asked for together.
    pub async fn named<F>(&self, hash: &str, list: impl Fn(Vec<String>) -> F) -> Answer
    where
        F: Future<Output = Result<Vec<Object>, Error>>,
    {
        let ask = || {
            let (sender, answer) = oneshot::channel();
            self.waiting.lock().push((hash.to_owned(), sender));
            answer
        };
        let mut answer = ask();
        let _turn = self.turn.lock().await;
        loop {
            match answer.try_recv() {
                // Somebody else has asked for this one, too.
                Ok(answer) => return answer,
                Err(TryRecvError::Empty) => {}
                // Somebody else was about to, and was stopped.
                Err(TryRecvError::Closed) => answer = ask(),
            }
            let batch: Vec<_> = {
                let mut waiting = self.waiting.lock();
                let count = waiting.len().min(MOST);
                waiting.drain(..count).collect()
            };
            let mut hashes: Vec<String> = batch.iter().map(|(hash, _)| hash.clone()).collect();
            hashes.sort_unstable();
            hashes.dedup();
            let listed = list(hashes).await.map(Arc::new);
            for (_, waiting) in batch {
                // Whoever does not wait any more needs no answer.
                let _ = waiting.send(listed.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn one_list_serves_all_that_wait_and_none_that_come_later() {
        let (left, lists) = (LeftCopies::default(), AtomicUsize::new(0));
        let list = async |hashes: Vec<String>| {
            lists.fetch_add(1, Ordering::Relaxed);
            assert!(hashes.len() <= MOST);
            tokio::time::sleep(Duration::from_secs(1)).await;
            Ok(Vec::new())
        };
        let ask = async |number: usize| {
            tokio::time::sleep(Duration::from_millis(u64::from(number != 0))).await;
            left.named(&format!("{number}"), list).await.unwrap();
        };
        futures::future::join_all((0..=2 * MOST).map(ask)).await;
        assert_eq!(lists.load(Ordering::Relaxed), 3, "the first one is under way when the others come");
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_is_stopped_in_the_middle_holds_up_nobody() {
        let left = LeftCopies::default();
        let list = async |_| {
            tokio::time::sleep(Duration::from_secs(1)).await;
            Ok(Vec::new())
        };
        let stopped = tokio::time::timeout(Duration::from_millis(500), left.named("a", list));
        let (stopped, other) = futures::future::join(stopped, left.named("b", list)).await;
        assert!(stopped.is_err() && other.is_ok());
    }

    #[test]
    fn a_copy_may_come_if_nobody_answered_and_memory_has_an_end() {
        let (left, key) = (LeftCopies::default(), |name: &str| SourceKey {
            cluster: "c".into(),
            namespace: "n".into(),
            name: name.into(),
        });
        for _ in 0..2 {
            left.note_unanswered(&key("a"), "u1");
        }
        assert!(left.may_come(&key("a"), "u1") && !left.may_come(&key("a"), "u2") && !left.may_come(&key("b"), "u1"));
        left.forget(&key("a"));
        assert!(left.may_come(&key("a"), "u1"), "it may come after the end of its order");
        for number in 0..UNANSWERED {
            left.note_unanswered(&key("b"), &number.to_string());
        }
        assert!(!left.may_come(&key("a"), "u1") && left.unanswered.lock().len() == UNANSWERED);
    }

    #[test]
    fn where_a_copy_was_deleted_counts_for_that_order_only() {
        let left = LeftCopies::default();
        let key = SourceKey { cluster: "c".into(), namespace: "n".into(), name: "a".into() };
        let kind = crate::rules::ApiKind {
            group: "g".into(),
            version: "v1".into(),
            kind: "Thing".into(),
            plural: "things".into(),
            namespaced: true,
        };
        let at = ObjectAddress {
            side: crate::rules::metadata::SERVICE_SIDE,
            kind: Arc::new(kind),
            namespace: None,
            name: "x".into(),
        };
        left.note_deleted(&key, "u1", at.clone());
        assert_eq!((left.deleted_at(&key, "u1"), left.deleted_at(&key, "u2")), (Some(at), None));
        left.forget(&key);
        assert_eq!(left.deleted_at(&key, "u1"), None);
    }
}
