//! Races: how often in a row somebody else was faster with an order.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::rules::metadata::SourceKey;

/// How many rounds in a row may be lost before that counts as a failure.
const ROUNDS: u32 = 3;
/// For how long. The first rounds follow each other within milliseconds, and a cache may be behind for longer than that.
const LAG: Duration = Duration::from_secs(2);

/// The orders of one PublishedResource whose last round was lost to somebody else.
#[derive(Default)]
pub(in crate::agent::objects) struct Races(Mutex<HashMap<SourceKey, (u32, Instant)>>);

impl Races {
    /// Somebody else was faster once more. The number of rounds, if no event seems to resolve that.
    pub fn lost(&self, key: &SourceKey) -> Option<u32> {
        let mut all = self.0.lock();
        let (rounds, since) = all.entry(key.clone()).or_insert_with(|| (0, Instant::now()));
        *rounds += 1;
        (*rounds >= ROUNDS && since.elapsed() >= LAG).then_some(*rounds)
    }

    /// A round ended in another way.
    pub fn over(&self, key: &SourceKey) {
        self.0.lock().remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_is_lost_again_and_again_is_no_race() {
        let races = Races::default();
        let key = |name: &str| SourceKey { cluster: "c".into(), namespace: "n".into(), name: name.into() };
        assert_eq!((0..9).find_map(|_| races.lost(&key("quick"))), None, "a cache may be a moment behind");
        assert_eq!(races.lost(&key("slow")), None);
        tokio::time::advance(LAG).await;
        assert_eq!((races.lost(&key("slow")), races.lost(&key("slow"))), (None, Some(3)));
        assert_eq!(races.lost(&key("quick")), Some(10));
        races.over(&key("slow"));
        assert_eq!(races.lost(&key("slow")), None, "it has come to an end in between");
    }
}
