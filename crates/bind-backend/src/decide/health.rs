//! Whether a consumer's konnector is there.

use carrick_bind_api::conditions;
use carrick_bind_api::heartbeat;
use carrick_bind_api::jiff::Timestamp;
use carrick_bind_api::v1alpha2::ClusterBinding;

use super::plan::Plan;

/// What the last heartbeat of a contract says, and when to look again.
pub fn decide(binding: &ClusterBinding, now: Timestamp) -> Plan {
    let mut plan = Plan::default();
    if binding.metadata.is_deleting() {
        return plan;
    }
    let health = heartbeat::health(&binding.status, now);
    plan.look_again = health.look_again;
    let mut after = binding.clone();
    conditions::set(&mut after.status.conditions, health.condition, now);
    conditions::summarize(&mut after.status.conditions, now);
    if after.status != binding.status {
        plan.status(&after);
    }
    plan
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::decide::plan::Write;

    #[test]
    fn a_konnector_that_stays_away_is_noticed_when_its_time_is_over() {
        let at = |seconds: i64| Timestamp::from_second(1_800_000_000 + seconds).unwrap();
        let mut binding = ClusterBinding::new("cluster");
        let mut health = |now: i64, beat: bool| {
            if beat {
                heartbeat::beat(&mut binding.status, heartbeat::INTERVAL, at(now));
            }
            let plan = decide(&binding, at(now));
            if let [Write::Status(object)] = &plan.writes[..] {
                binding = serde_json::from_value(object.clone()).unwrap();
            }
            assert_eq!(decide(&binding, at(now)).writes, [], "said once");
            let healthy = conditions::find(&binding.status.conditions, conditions::HEALTHY).unwrap();
            assert_eq!(conditions::is_true(&binding.status.conditions, "Ready"), healthy.is_true());
            (healthy.reason.clone(), plan.look_again)
        };
        assert_eq!(health(0, false), ("FirstHeartbeatPending".to_owned(), None));
        let (reason, again) = health(0, true);
        assert_eq!((reason.as_str(), again), ("", Some(Duration::from_secs(601))));
        assert_eq!(health(601, false).0, "HeartbeatTimeout");
        assert_eq!(health(650, true).0, "");
    }
}
