//! Who takes more than others, and has to make room while somebody else waits.
//!
//! A fair queue hands out the next key of whoever was idle at once. But each of that key's requests then waits behind all those
//! that are under way, and a cluster that changes thousands of objects always has as many under way as servers bear. So clusters that have
//! had many turns lately take turns one by one, as long as others have changes of their own.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;

use crate::name::ClusterName;
use crate::priority::Priority;

/// How many turns a cluster may have at once, and how many each second for ever, before it counts as greedy.
const BURST: f64 = 64.0;
const STEADY: f64 = 64.0;
/// More turns than this are not remembered: two seconds later, they are forgiven.
const MOST: f64 = 3.0 * BURST;
/// For how long after a change of one cluster another one is expected.
const EXPECTED: Duration = Duration::from_secs(10);
/// With more clusters than this, those that are at rest are forgotten.
const ENOUGH: usize = 256;

/// Who has had many turns lately, and who waits.
#[derive(Debug, Default)]
pub(super) struct Shares {
    turns: HashMap<ClusterName, Turns>,
    /// How many clusters were left when those at rest were forgotten.
    left: usize,
    /// The last cluster that changed something without being greedy, and the last other one before it.
    last: [Option<(ClusterName, Instant)>; 2],
}

/// How many turns a cluster has had, of which a few are forgotten every second.
#[derive(Debug, Clone, Copy)]
struct Turns {
    count: f64,
    at: Instant,
}

impl Turns {
    fn now(self, now: Instant) -> f64 {
        (self.count - now.saturating_duration_since(self.at).as_secs_f64() * STEADY).max(0.0)
    }

    /// When they are no longer more than a burst.
    fn forgiven(self) -> Instant {
        // A little later: timers are not as exact as numbers.
        self.at + Duration::from_secs_f64((self.count - BURST).max(0.0) / STEADY) + Duration::from_millis(1)
    }
}

impl Shares {
    /// A cluster has its turn. What nobody waits for makes room anyway, and does not count.
    pub(super) fn begin(&mut self, cluster: &ClusterName, priority: Priority, now: Instant) {
        if priority == Priority::Low {
            return;
        }
        let turns = self.turns.entry(cluster.clone()).or_insert(Turns { count: 0.0, at: now });
        *turns = Turns { count: (turns.now(now) + 1.0).min(MOST), at: now };
        if priority == Priority::High && !self.is_greedy(cluster, now) {
            let [last, before] = &mut self.last;
            if last.as_ref().is_some_and(|(name, _)| name != cluster) {
                *before = last.take();
            }
            *last = Some((cluster.clone(), now));
        }
        if self.turns.len() > ENOUGH.max(self.left.saturating_mul(2)) {
            self.turns.retain(|_, turns| turns.now(now) > 0.0);
            self.left = self.turns.len();
        }
    }

    /// Whether a cluster has had many turns lately.
    pub(super) fn is_greedy(&self, cluster: &ClusterName, now: Instant) -> bool {
        self.turns.get(cluster).is_some_and(|turns| turns.now(now) > BURST)
    }

    /// Clusters that make room now, as long as one of them runs, and when that may be over for one of them.
    pub(super) fn making_room(&self, now: Instant) -> (Vec<ClusterName>, Option<Instant>) {
        let waiting = self.last.iter().flatten().map(|(_, at)| *at + EXPECTED).filter(|end| *end > now);
        let Some(mut until) = waiting.min() else { return (Vec::new(), None) };
        let mut making_room = Vec::new();
        for (cluster, turns) in &self.turns {
            if turns.now(now) > BURST && self.others_wait(cluster, now) {
                until = until.min(turns.forgiven());
                making_room.push(cluster.clone());
            }
        }
        let until = (!making_room.is_empty()).then_some(until);
        (making_room, until)
    }

    /// Whether somebody else than this cluster changes something now and then.
    fn others_wait(&self, cluster: &ClusterName, now: Instant) -> bool {
        self.last.iter().flatten().any(|(name, at)| name != cluster && now < *at + EXPECTED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cluster(name: &str) -> ClusterName {
        name.parse().unwrap()
    }

    fn names(shares: &Shares, now: Instant) -> Vec<String> {
        let mut names: Vec<String> = shares.making_room(now).0.iter().map(ToString::to_string).collect();
        names.sort();
        names
    }

    fn change(shares: &mut Shares, name: &str, turns: usize, now: Instant) {
        (0..turns).for_each(|_| shares.begin(&cluster(name), Priority::High, now));
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_has_had_many_turns_makes_room_for_others_that_change_something() {
        let (mut shares, now) = (Shares::default(), Instant::now());
        change(&mut shares, "greedy", 1_000, now);
        assert!(names(&shares, now).is_empty(), "nobody else is there");
        shares.begin(&cluster("lists"), Priority::Low, now);
        shares.begin(&cluster("status"), Priority::Normal, now);
        assert!(names(&shares, now).is_empty(), "nobody has changed what an object should be");
        change(&mut shares, "calm", 1, now);
        assert_eq!(names(&shares, now), ["greedy"]);
        change(&mut shares, "second", 1_000, now);
        assert_eq!(names(&shares, now), ["greedy", "second"], "both make room for the third one");
        let later = now + EXPECTED;
        change(&mut shares, "greedy", 1_000, later);
        assert!(names(&shares, later).is_empty(), "the others have had all they wanted");
    }

    #[tokio::test(start_paused = true)]
    async fn a_burst_and_a_steady_rate_are_nobodys_greed_which_is_forgiven_soon() {
        let (mut shares, begin) = (Shares::default(), Instant::now());
        for tick in 0..10_000_u32 {
            let now = begin + Duration::from_millis(20) * tick;
            change(&mut shares, "steady", 1, now);
            assert!(!shares.is_greedy(&cluster("steady"), now), "{tick}");
        }
        change(&mut shares, "burst", 64, begin);
        assert!(!shares.is_greedy(&cluster("burst"), begin));
        change(&mut shares, "burst", 100_000, begin);
        assert!(shares.is_greedy(&cluster("burst"), begin));
        assert!(!shares.is_greedy(&cluster("burst"), begin + Duration::from_secs(2)));
    }

    #[tokio::test(start_paused = true)]
    async fn clusters_at_rest_are_forgotten() {
        let (mut shares, now) = (Shares::default(), Instant::now());
        (0..10_000).for_each(|number| change(&mut shares, &format!("c{number}"), 1, now));
        let later = now + Duration::from_secs(1);
        (0..20_000).for_each(|number| change(&mut shares, &format!("d{number}"), 1, later));
        assert!(shares.turns.len() <= 20_000, "{}", shares.turns.len());
    }
}
