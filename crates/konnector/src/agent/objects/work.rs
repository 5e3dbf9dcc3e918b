//! The workers: one piece of work after the other, and how each ends.

use std::hash::Hash;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use carrick_multicluster::{HasCluster, Lease, Queue};
use futures::FutureExt;

use super::ledger::Ledger;
use super::outcome::{Outcome, Problem, Trouble};

/// How long an object waits that has been written many times without coming to rest. Not ever longer: what undoes it may end at any time,
/// and no event comes for what was read back from our own write.
const RESTLESS: Duration = Duration::from_secs(1);

/// What workers share.
pub(in crate::agent) trait Workshop: Send + Sync + 'static {
    /// What is worked on.
    type Key: HasCluster + Clone + Eq + Hash + Ord + Send + Sync + 'static;

    /// What is to be done.
    fn queue(&self) -> &Queue<Self::Key>;

    /// What is remembered.
    fn ledger(&self) -> &Ledger<Self::Key>;

    /// How a piece of work is called.
    fn shown(&self, key: &Self::Key) -> String;

    /// Does it.
    fn process(&self, key: &Self::Key) -> impl Future<Output = Result<Outcome, Trouble>> + Send;

    /// Something else is wrong than before.
    fn problems_changed(&self);

    /// A piece of work has come to rest.
    fn settled(&self) {}

    /// A piece of work has ended, well or not.
    fn ended(&self, _: &Self::Key) {}
}

/// Works until the queue is closed.
pub(in crate::agent) async fn work<W: Workshop>(shop: Arc<W>) {
    while let Some(lease) = shop.queue().next().await {
        let key = lease.key().clone();
        let done = AssertUnwindSafe(shop.process(&key)).catch_unwind().await;
        let done = done.unwrap_or_else(|_| Err(Trouble::failed("the konnector panicked over it; please report that")));
        end(&*shop, lease, &key, done);
        shop.ended(&key);
    }
}

fn end<W: Workshop>(shop: &W, lease: Lease<W::Key>, key: &W::Key, done: Result<Outcome, Trouble>) {
    let set = |problem: Option<Problem>| {
        if shop.ledger().set_problem(key, problem) {
            shop.problems_changed();
        }
    };
    let problem = |words: &str| Problem { words: format!("{}: {words}", shop.shown(key)), ..Problem::default() };
    match done {
        Ok(Outcome::Again) if shop.ledger().another_round(key) => {
            set(Some(problem("what is written is undone at once; look for whoever else changes it")));
            lease.again_after(RESTLESS);
        }
        Ok(Outcome::Again) => {
            shop.queue().add(key.clone());
            lease.done();
        }
        Ok(Outcome::Settled) => {
            shop.ledger().at_rest(key);
            set(None);
            lease.done();
            shop.settled();
        }
        Ok(Outcome::Unknown) => lease.done(),
        Err(Trouble::Conflict(words)) => {
            set(Some(Problem { is_conflict: true, ..problem(&words) }));
            lease.done();
        }
        Err(Trouble::Pending(words)) => {
            set(Some(problem(&words)));
            lease.done();
        }
        Err(Trouble::Failed { words, cause }) => {
            tracing::warn!(object = shop.shown(key), problem = words, "An object cannot be synced.");
            set(Some(problem(&words)));
            match cause {
                Some(cause) => lease.wait_for(&cause),
                None => {
                    lease.retry();
                }
            }
        }
        Err(Trouble::Contested { words, wait }) => {
            tracing::warn!(object = shop.shown(key), problem = words, "An object is contested.");
            set(Some(Problem { is_contested: true, ..problem(&words) }));
            lease.again_after(wait);
        }
        Err(Trouble::Race) => {
            lease.retry();
        }
    }
}

#[cfg(test)]
mod tests {
    use carrick_multicluster::ClusterName;
    use parking_lot::Mutex;
    use tokio::time::Instant;

    use super::*;

    #[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    struct Piece(ClusterName);

    impl HasCluster for Piece {
        fn cluster(&self) -> &ClusterName {
            &self.0
        }
    }

    /// A storm that undoes so many writes, each time with other content, and then ends without an event.
    struct Storm {
        queue: Queue<Piece>,
        ledger: Ledger<Piece>,
        left: Mutex<u32>,
    }

    impl Workshop for Storm {
        type Key = Piece;

        fn queue(&self) -> &Queue<Piece> {
            &self.queue
        }

        fn ledger(&self) -> &Ledger<Piece> {
            &self.ledger
        }

        fn shown(&self, _: &Piece) -> String {
            "billy".to_owned()
        }

        async fn process(&self, _: &Piece) -> Result<Outcome, Trouble> {
            let mut left = self.left.lock();
            *left = left.saturating_sub(1);
            Ok(if *left == 0 { Outcome::Settled } else { Outcome::Again })
        }

        fn problems_changed(&self) {}

        fn settled(&self) {
            self.queue.close();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_storm_that_has_ended_is_caught_up_with_soon_however_long_it_was() {
        let storm = Storm { queue: Queue::default(), ledger: Ledger::default(), left: Mutex::new(50) };
        storm.queue.add(Piece(ClusterName::new("west").unwrap()));
        let begun = Instant::now();
        work(Arc::new(storm)).await;
        assert!(begun.elapsed() < Duration::from_mins(1), "{:?}", begun.elapsed());
    }
}
