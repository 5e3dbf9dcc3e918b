//! Heartbeats: when a konnector sends one, what a provider makes of it, and how two konnectors on one contract are told apart.

use std::collections::VecDeque;
use std::time::Duration;

use carrick_go::duration;
use jiff::Timestamp;

use crate::clock;
use crate::conditions::{Condition, HEALTHY};
use crate::problems::ClusterBindingProblem;
use crate::v1alpha2::{ClusterBindingStatus, SecretReference};

/// How often konnectors promise to come: kube-bind's own interval.
pub const INTERVAL: Duration = Duration::from_mins(5);

/// By how much clocks of two clusters may differ before anybody is told.
const TOLERATED_DRIFT: Duration = Duration::from_secs(10);

/// Whether a heartbeat is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beat {
    /// Send it.
    Due,
    /// Look again after this long.
    Wait(Duration),
}

/// When the konnector sends the next heartbeat: as soon as the last one is older than half the interval. One that lies in the future, because a
/// clock was wrong, is replaced at once.
pub fn next(status: &ClusterBindingStatus, interval: Duration, now: Timestamp) -> Beat {
    let Some(last) = clock::read(&status.last_heartbeat_time) else { return Beat::Due };
    let (half, age) = (interval / 2, since(last, now));
    match age {
        Some(age) if age <= half && status.heartbeat_interval == duration_text(interval) => {
            // Times in objects have whole seconds: one more, so that the next look does not come too early.
            Beat::Wait(half.saturating_sub(age).saturating_add(Duration::from_secs(1)))
        }
        _ => Beat::Due,
    }
}

/// Writes a heartbeat into the status of a ClusterBinding.
pub fn beat(status: &mut ClusterBindingStatus, interval: Duration, now: Timestamp) {
    status.last_heartbeat_time = clock::show(now);
    status.heartbeat_interval = duration_text(interval);
}

/// What a provider says about a konnector, and how long that holds if nothing changes.
#[derive(Clone, Debug, PartialEq)]
pub struct Health {
    /// The condition `Healthy`.
    pub condition: Condition,
    /// When to look again; nobody has to if it is left out.
    pub look_again: Option<Duration>,
}

/// What the heartbeat of a konnector says: overdue after twice the interval.
pub fn health(status: &ClusterBindingStatus, now: Timestamp) -> Health {
    let waits = |problem: ClusterBindingProblem| Health { condition: problem.condition(), look_again: None };
    let Some(last) = clock::read(&status.last_heartbeat_time) else {
        return waits(ClusterBindingProblem::FirstHeartbeatPending {});
    };
    let interval = duration::parse(&status.heartbeat_interval).and_then(|nanos| u64::try_from(nanos).ok());
    let Some(interval) = interval.filter(|nanos| *nanos > 0).map(Duration::from_nanos) else {
        return waits(ClusterBindingProblem::IntervalMissing {});
    };
    let limit = interval.saturating_mul(2);
    let Some(age) = since(last, now) else {
        let ahead = since(now, last).unwrap_or_default();
        if ahead <= TOLERATED_DRIFT {
            return Health { condition: Condition::holds(HEALTHY), look_again: Some(limit) };
        }
        let problem = ClusterBindingProblem::HeartbeatTimeDrift { ahead: duration_text(ahead) };
        // Ends by itself when that time has come.
        return Health { condition: problem.condition(), look_again: Some(ahead) };
    };
    if age > limit {
        return waits(ClusterBindingProblem::HeartbeatTimeout {
            limit: duration_text(limit),
            last: status.last_heartbeat_time.clone(),
        });
    }
    let left = limit.saturating_sub(age).saturating_add(Duration::from_secs(1));
    Health { condition: Condition::holds(HEALTHY), look_again: Some(left) }
}

/// How long ago a time was; none if it lies in the future.
fn since(time: Timestamp, now: Timestamp) -> Option<Duration> {
    Duration::try_from(now.duration_since(time)).ok()
}

/// A duration as Go writes it.
fn duration_text(duration: Duration) -> String {
    duration::format(i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX))
}

/// Watches a ClusterBinding for heartbeats that somebody else sends: two clusters with one identity fight over everything in their contract.
///
/// One strange heartbeat proves nothing: it may be the last one of a konnector that has lost its Lease. Two do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeartbeatWatch {
    /// The newest heartbeat that is accounted for.
    known: Option<Timestamp>,
    /// Our own ones of late. One may come back after the next one was sent, for example if that was refused because we had not seen the first.
    sent: VecDeque<Timestamp>,
    /// Where we said that our kubeconfig is, and whether that was seen last. Only then is it news that somebody says something else.
    secret: Option<SecretReference>,
    own_secret: bool,
    strange: u32,
}

/// How many of our own heartbeats are remembered.
const MOST_SENT: usize = 16;

impl HeartbeatWatch {
    /// We send a heartbeat.
    pub fn on_sent(&mut self, status: &ClusterBindingStatus) {
        if let Some(sent) = clock::read(&status.last_heartbeat_time) {
            self.sent.truncate(MOST_SENT - 1);
            self.sent.push_front(sent);
        }
        if self.secret != status.consumer_secret_ref {
            self.secret.clone_from(&status.consumer_secret_ref);
            self.own_secret = false;
        }
    }

    /// The ClusterBinding was seen. True as soon as another konnector is sure to be there.
    pub fn on_seen(&mut self, status: &ClusterBindingStatus) -> bool {
        let seen = clock::read(&status.last_heartbeat_time);
        let ours = seen.is_some_and(|seen| self.sent.contains(&seen));
        // What was there before we came, and what is older than that, is nobody's fault.
        let new = match (self.known, seen) {
            (Some(known), Some(seen)) => seen > known,
            (None, Some(_)) => !self.sent.is_empty(),
            _ => false,
        };
        // Whoever keeps its kubeconfig elsewhere writes that into the same place.
        let own_secret = self.secret.is_some() && status.consumer_secret_ref == self.secret;
        let other_secret = status.consumer_secret_ref.is_some() && !own_secret && self.own_secret;
        if (new && !ours) || other_secret {
            self.strange += 1;
        }
        self.own_secret = own_secret;
        self.known = self.known.max(seen);
        self.strange >= 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + seconds).unwrap()
    }

    fn status(seconds: i64, interval: &str) -> ClusterBindingStatus {
        ClusterBindingStatus {
            last_heartbeat_time: clock::show(at(seconds)),
            heartbeat_interval: interval.to_owned(),
            ..ClusterBindingStatus::default()
        }
    }

    #[test]
    fn a_heartbeat_is_sent_when_half_the_interval_is_over() {
        let mut fresh = ClusterBindingStatus::default();
        assert_eq!(next(&fresh, INTERVAL, at(0)), Beat::Due);
        beat(&mut fresh, INTERVAL, at(0));
        assert_eq!(fresh, status(0, "5m0s"));
        assert_eq!(next(&fresh, INTERVAL, at(0)), Beat::Wait(Duration::from_secs(151)));
        assert_eq!(next(&fresh, INTERVAL, at(150)), Beat::Wait(Duration::from_secs(1)));
        assert_eq!(next(&fresh, INTERVAL, at(151)), Beat::Due);
        // Waiting as long as it says always leads to the next one.
        let Beat::Wait(wait) = next(&fresh, INTERVAL, at(40)) else { panic!("it is not due") };
        assert_eq!(next(&fresh, INTERVAL, at(40) + wait), Beat::Due);
        for (other, case) in [(status(9, "5m0s"), "in the future"), (status(-1, "1m0s"), "another interval")] {
            assert_eq!(next(&other, INTERVAL, at(0)), Beat::Due, "{case}");
        }
    }

    #[test]
    fn a_provider_knows_who_is_there() {
        let reason = |status: &ClusterBindingStatus, now| {
            let health = health(status, at(now));
            (health.condition.reason.clone(), health.look_again.map(|wait| wait.as_secs()))
        };
        assert_eq!(reason(&ClusterBindingStatus::default(), 0), ("FirstHeartbeatPending".to_owned(), None));
        for interval in ["", "0s", "-5m", "soon"] {
            assert_eq!(reason(&status(0, interval), 0), ("HeartbeatIntervalMissing".to_owned(), None), "{interval}");
        }
        assert_eq!(reason(&status(0, "5m0s"), 0), (String::new(), Some(601)));
        assert_eq!(reason(&status(0, "5m0s"), 3), (String::new(), Some(598)));
        assert_eq!(reason(&status(0, "5m0s"), 600), (String::new(), Some(1)));
        assert_eq!(reason(&status(0, "5m0s"), 601), ("HeartbeatTimeout".to_owned(), None));
        assert_eq!(reason(&status(10, "5m0s"), 0), (String::new(), Some(600)));
        assert_eq!(reason(&status(11, "5m0s"), 0), ("HeartbeatTimeDrift".to_owned(), Some(11)));
        let late = health(&status(0, "5m0s"), at(700)).condition.message;
        assert!(late.starts_with("no heartbeat within 10m0s: the last one was at 2027-01-15T08:00:00Z"), "{late}");
    }

    #[test]
    fn a_second_konnector_is_noticed_and_a_predecessor_is_not() {
        let mut watch = HeartbeatWatch::default();
        assert!(!watch.on_seen(&status(0, "5m0s")), "what was there before");
        for beat in 1..5 {
            let ours = status(beat * 150, "5m0s");
            watch.on_sent(&ours);
            assert!(!watch.on_seen(&ours), "our own");
            assert!(!watch.on_seen(&ours), "seen again");
        }
        assert!(!watch.on_seen(&status(700, "5m0s")), "one may come late");
        assert!(!watch.on_seen(&status(700, "5m0s")), "the same one");
        assert!(!watch.on_seen(&status(10, "5m0s")), "a stale read");
        assert!(watch.on_seen(&status(800, "5m0s")), "two are no accident");
        assert!(watch.on_seen(&status(800, "5m0s")), "and that stays known");
    }

    #[test]
    fn two_konnectors_that_overwrite_each_other_are_noticed_before_their_next_heartbeats() {
        let kept_in = |name: &str| {
            let mut status = status(0, "5m0s");
            status.consumer_secret_ref = Some(SecretReference::new("kube-bind", name));
            status
        };
        let (ours, theirs) = (kept_in("ours"), kept_in("theirs"));
        let mut watch = HeartbeatWatch::default();
        assert!(!watch.on_seen(&theirs), "a predecessor that kept it elsewhere");
        watch.on_sent(&ours);
        assert!(!watch.on_seen(&theirs) && !watch.on_seen(&theirs), "a stale read");
        assert!(!watch.on_seen(&ours));
        assert!(!watch.on_seen(&theirs) && !watch.on_seen(&theirs), "it may be the last word of a predecessor");
        assert!(!watch.on_seen(&ours));
        assert!(watch.on_seen(&theirs), "they come again");
    }

    #[test]
    fn our_own_heartbeats_are_never_strange_however_late_they_come_back() {
        let kept = |seconds| {
            let mut status = status(seconds, "5m0s");
            status.consumer_secret_ref = Some(SecretReference::new("kube-bind", "ours"));
            status
        };
        let mut watch = HeartbeatWatch::default();
        let nothing = ClusterBindingStatus::default();
        assert!(!watch.on_seen(&nothing));
        watch.on_sent(&kept(0));
        assert!(!watch.on_seen(&nothing), "it has not come back yet");
        // A second has passed, the next one is refused, and then the first one comes.
        watch.on_sent(&kept(1));
        assert!(!watch.on_seen(&kept(0)) && !watch.on_seen(&kept(0)));
        watch.on_sent(&kept(2));
        assert!(!watch.on_seen(&kept(2)) && !watch.on_seen(&kept(1)));
        assert_eq!(watch.strange, 0);
    }
}
