//! Patience: what is seen once may be a passing state. Nothing is withdrawn before the same is seen again later.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::keys::PrimaryKey;

/// Since when each observation about a primary holds.
#[derive(Default)]
pub(in crate::agent::objects) struct Patience {
    since: Mutex<HashMap<PrimaryKey, HashMap<String, Instant>>>,
    /// Whether observations count at once.
    none: bool,
}

impl Patience {
    /// No patience: every observation counts at once.
    pub fn none() -> Self {
        Self { none: true, ..Self::default() }
    }

    /// Replaces all observations about a primary, and returns those that have held for long enough.
    pub fn all(&self, user: &PrimaryKey, things: &[String], now: Instant, grace: Duration) -> HashSet<String> {
        let mut all = self.since.lock();
        if things.is_empty() {
            all.remove(user);
            return HashSet::new();
        }
        let before = all.remove(user).unwrap_or_default();
        let since: HashMap<String, Instant> =
            things.iter().map(|thing| (thing.clone(), before.get(thing).copied().unwrap_or(now))).collect();
        let lasting =
            since.iter().filter(|(_, since)| self.none || is_over(**since, now, grace)).map(|(thing, _)| thing.clone());
        let lasting = lasting.collect();
        all.insert(user.clone(), since);
        lasting
    }

    /// Notes one observation about a primary, and says whether it has held for long enough.
    pub fn one(&self, user: &PrimaryKey, thing: &str, now: Instant, grace: Duration) -> bool {
        let mut all = self.since.lock();
        let since = *all.entry(user.clone()).or_default().entry(thing.to_owned()).or_insert(now);
        is_over(since, now, grace)
    }

    /// Whether an observation that was noted for a primary has held for long enough.
    pub fn has(&self, user: &PrimaryKey, thing: &str, now: Instant, grace: Duration) -> bool {
        let all = self.since.lock();
        all.get(user).and_then(|things| things.get(thing)).is_some_and(|since| is_over(*since, now, grace))
    }

    /// An observation about a primary no longer holds.
    pub fn forget_one(&self, user: &PrimaryKey, thing: &str) {
        let mut all = self.since.lock();
        if let Some(things) = all.get_mut(user) {
            things.remove(thing);
            if things.is_empty() {
                all.remove(user);
            }
        }
    }

    /// A primary is gone.
    pub fn forget(&self, user: &PrimaryKey) {
        self.since.lock().remove(user);
    }

    /// All primaries of a PublishedResource are gone.
    pub fn forget_all(&self, published: &str) {
        self.since.lock().retain(|(name, _), _| **name != *published);
    }
}

/// Even without a grace period, the same must be seen twice.
fn is_over(since: Instant, now: Instant, grace: Duration) -> bool {
    now > since && now.duration_since(since) >= grace
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::metadata::SourceKey;

    const GRACE: Duration = Duration::from_secs(5);

    fn user(name: &str) -> PrimaryKey {
        ("pr".into(), SourceKey { cluster: "c".into(), namespace: "ns".into(), name: name.into() })
    }

    fn things(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn what_is_absent_must_be_so_twice_and_for_a_while() {
        let (patience, a, start) = (Patience::default(), user("a"), Instant::now());
        let look = |names: &[&str], seconds: u64| {
            let mut lasting: Vec<_> =
                patience.all(&a, &things(names), start + Duration::from_secs(seconds), GRACE).into_iter().collect();
            lasting.sort();
            lasting
        };
        assert!(look(&["x"], 0).is_empty(), "seen once");
        assert!(look(&["x", "y"], 4).is_empty(), "seen twice, but not for long");
        assert_eq!(look(&["x", "y"], 5), ["x"]);
        assert_eq!(look(&["y"], 8), [""; 0], "x is back");
        assert_eq!(look(&["x", "y"], 9), ["y"], "and has all its time again");
        assert!(look(&[], 20).is_empty() && look(&["x", "y"], 20).is_empty());
        assert!(patience.all(&user("b"), &things(&["x"]), start + GRACE * 9, GRACE).is_empty(), "another primary");
        assert!(patience.since.lock().len() == 2);
        patience.forget(&a);
        patience.forget_all("pr");
        assert!(patience.since.lock().is_empty());
    }

    #[test]
    fn without_a_grace_period_the_same_must_still_be_seen_twice() {
        let (patience, a, start) = (Patience::default(), user("a"), Instant::now());
        assert!(patience.all(&a, &things(&["x"]), start, Duration::ZERO).is_empty());
        assert!(patience.all(&a, &things(&["x"]), start, Duration::ZERO).is_empty());
        assert_eq!(patience.all(&a, &things(&["x"]), start + Duration::from_nanos(1), Duration::ZERO).len(), 1);
    }

    #[test]
    fn what_is_noted_one_by_one_stays_noted() {
        let (patience, a, start) = (Patience::default(), user("a"), Instant::now());
        assert!(!patience.has(&a, "x", start + GRACE, GRACE));
        assert!(!patience.one(&a, "x", start, GRACE) && !patience.one(&a, "y", start + GRACE / 2, GRACE));
        assert!(patience.one(&a, "x", start + GRACE, GRACE) && patience.has(&a, "x", start + GRACE, GRACE));
        assert!(!patience.has(&a, "y", start + GRACE, GRACE));
        patience.forget_one(&a, "x");
        assert!(!patience.one(&a, "x", start + GRACE * 2, GRACE), "its time begins anew");
        patience.forget_one(&a, "x");
        patience.forget_one(&a, "y");
        assert!(patience.since.lock().is_empty());
    }

    #[test]
    fn without_patience_every_observation_counts_at_once() {
        let (patience, start) = (Patience::none(), Instant::now());
        assert_eq!(patience.all(&user("a"), &things(&["x", "y"]), start, GRACE).len(), 2);
    }
}
