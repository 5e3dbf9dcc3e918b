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
