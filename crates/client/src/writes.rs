//! Which writes may still take effect.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

/// A write that nobody waits for any more may reach its server, or be done there, for so long: servers end requests after a minute.
const MAY_ARRIVE: Duration = Duration::from_mins(1);

/// The writes of one pool.
#[derive(Default)]
pub(crate) struct Writes {
    state: Mutex<WritesState>,
    changed: Notify,
}

#[derive(Default)]
struct WritesState {
    next: u64,
    /// Those that are waited for.
    open: BTreeSet<u64>,
    /// Those that were given up without an answer, and when.
    given_up: BTreeMap<u64, Instant>,
}

/// One write under way. Dropped without an answer, it may take effect all the same.
pub(crate) struct Write {
    writes: Arc<Writes>,
    number: u64,
    answered: bool,
}

impl Writes {
    /// A write is about to be sent.
    pub(crate) fn begin(self: &Arc<Self>) -> Write {
        let mut state = self.state.lock();
        state.next += 1;
        let number = state.next;
        state.open.insert(number);
        Write { writes: Arc::clone(self), number, answered: false }
    }

    /// Waits, but not longer than given, until every write that was sent so far is answered; false if one is not, or was given up.
    pub(crate) async fn settle(&self, longest: Duration) -> bool {
        let last = self.state.lock().next;
        let deadline = Instant::now() + longest;
        loop {
            let changed = self.changed.notified();
            {
                let mut state = self.state.lock();
                state.given_up.retain(|_, since| since.elapsed() < MAY_ARRIVE);
                if state.given_up.range(..=last).next().is_some() {
                    return false;
                }
                if state.open.range(..=last).next().is_none() {
                    return true;
                }
            }
            if tokio::time::timeout_at(deadline, changed).await.is_err() {
                return false;
            }
        }
    }
}

impl Write {
    /// The server has answered, or the connection has ended.
    pub(crate) fn answered(mut self) {
        self.answered = true;
    }
}

impl Drop for Write {
    fn drop(&mut self) {
        let mut state = self.writes.state.lock();
        state.open.remove(&self.number);
        if !self.answered {
            state.given_up.retain(|_, since| since.elapsed() < MAY_ARRIVE);
            state.given_up.insert(self.number, Instant::now());
        }
        drop(state);
        self.writes.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(5);

    #[tokio::test(start_paused = true)]
    async fn writes_are_settled_when_they_are_answered() {
        let writes = Arc::<Writes>::default();
        assert!(writes.settle(Duration::ZERO).await, "none was sent");
        let write = writes.begin();
        assert!(!writes.settle(LONG).await, "no answer");
        let waiting = tokio::spawn({
            let writes = writes.clone();
            async move { writes.settle(LONG).await }
        });
        tokio::task::yield_now().await;
        // What is sent later is not waited for.
        let _later = writes.begin();
        write.answered();
        assert!(waiting.await.unwrap());
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_that_was_given_up_may_arrive_for_a_while() {
        let writes = Arc::<Writes>::default();
        drop(writes.begin());
        assert!(!writes.settle(LONG).await);
        tokio::time::advance(MAY_ARRIVE).await;
        assert!(writes.settle(LONG).await);
    }
}
