//! How often one object is written, whatever it is that is written.
//!
//! Whoever changes an order as fast as a server takes changes would have its copy written as fast. What comes after the last write that is
//! allowed in a minute waits for the next one, and is then one write: nothing is lost, and nobody else waits.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// The time in which writes are counted.
const MINUTE: Duration = Duration::from_mins(1);
/// With more objects than this, those whose minute is over are forgotten.
const ENOUGH: usize = 256;

/// What one object may have written to it in a minute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allowance {
    /// How many writes.
    pub most: usize,
    /// What sets this, for whoever reads that it is not enough.
    pub flag: &'static str,
}

/// Counts the writes of each object, minute by minute.
#[derive(Debug)]
pub struct Rate {
    allowed: Allowance,
    counted: Mutex<Counted>,
}

#[derive(Debug, Default)]
struct Counted {
    objects: HashMap<u64, Minute>,
    /// How many were left when old ones were forgotten.
    left: usize,
}

/// The minute that began with a write.
#[derive(Debug, Clone, Copy)]
struct Minute {
    since: Instant,
    writes: usize,
}

impl Minute {
    fn is_over(&self, now: Instant) -> bool {
        now >= self.since + MINUTE
    }
}

impl Rate {
    /// Counts against an allowance.
    pub fn new(allowed: Allowance) -> Self {
        Self { allowed, counted: Mutex::default() }
    }

    /// How long the next write of an object has to wait, and what was allowed; nothing if it need not.
    pub fn exceeded(&self, object: u64, now: Instant) -> Option<(Allowance, Duration)> {
        let counted = self.counted.lock();
        let minute = counted.objects.get(&object).filter(|minute| !minute.is_over(now))?;
        (minute.writes >= self.allowed.most).then(|| (self.allowed, minute.since + MINUTE - now))
    }

    /// Counts a write, whatever the server answers.
    pub fn count(&self, object: u64, now: Instant) {
        let mut counted = self.counted.lock();
        let minute = counted.objects.entry(object).or_insert(Minute { since: now, writes: 0 });
        if minute.is_over(now) {
            *minute = Minute { since: now, writes: 0 };
        }
        minute.writes += 1;
        if counted.objects.len() > ENOUGH.max(counted.left.saturating_mul(2)) {
            counted.objects.retain(|_, minute| !minute.is_over(now));
            counted.left = counted.objects.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn one_object_is_written_so_often_in_a_minute_and_goes_on_in_the_next() {
        let allowed = Allowance { most: 60, flag: "--most" };
        let rate = Rate::new(allowed);
        let mut writes = 0;
        // Something changes it ten times a second, for an hour.
        for tick in 0..36_000_u64 {
            let now = Instant::now();
            match rate.exceeded(1, now) {
                None => {
                    rate.count(1, now);
                    writes += 1;
                }
                Some((reported, wait)) => {
                    assert!(reported == allowed && wait <= MINUTE && !wait.is_zero(), "{tick}: {wait:?}");
                }
            }
            tokio::time::advance(Duration::from_millis(100)).await;
        }
        assert!((59 * 60..=60 * 60).contains(&writes), "{writes}");
        // Whoever writes once a second is never held up, and nobody else's writes count.
        for second in 0..3_600_u64 {
            assert_eq!(rate.exceeded(2, Instant::now()), None, "{second}");
            rate.count(2, Instant::now());
            tokio::time::advance(Duration::from_secs(1)).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn objects_whose_minute_is_over_are_forgotten() {
        let rate = Rate::new(Allowance { most: 1, flag: "" });
        (0..10_000).for_each(|object| rate.count(object, Instant::now()));
        assert_eq!(rate.exceeded(9_999, Instant::now()).map(|(_, wait)| wait), Some(MINUTE));
        tokio::time::advance(MINUTE).await;
        (10_000..30_000).for_each(|object| rate.count(object, Instant::now()));
        assert!(rate.counted.lock().objects.len() <= 20_000);
    }
}
