//! Conditions: their types, how they are set, and how `Ready` sums them up. Why one does not hold is in [`problems`](crate::problems).

use carrick_kcp::condition::{self, READY};
use jiff::Timestamp;

pub use carrick_kcp::condition::{Condition, ConditionStatus, Severity, find, is_true};

use crate::clock;

/// APIServiceBinding, APIServiceBindingBundle, ClusterBinding: the Secret with the kubeconfig can be used.
pub const SECRET_VALID: &str = "SecretValid";
/// APIServiceBinding: objects of both sides have been read.
pub const INFORMERS_SYNCED: &str = "InformersSynced";
/// APIServiceBinding: the provider knows that the konnector is there.
pub const HEARTBEATING: &str = "Heartbeating";
/// APIServiceBinding and APIServiceExport: each has found the other.
pub const CONNECTED: &str = "Connected";
/// APIServiceBinding: the CRDs are those of the export.
pub const SCHEMA_IN_SYNC: &str = "SchemaInSync";
/// APIServiceBindingBundle: there is a binding for every export and none besides.
pub const SYNCED: &str = "Synced";
/// APIServiceExport: its schemas are those of the provider.
pub const PROVIDER_IN_SYNC: &str = "ProviderInSync";
/// APIServiceExport: the consumer's CRDs are those of the export.
pub const CONSUMER_IN_SYNC: &str = "ConsumerInSync";
/// APIServiceExport that is being deleted (ours): the consumer knows, and holds on to nothing of it any more.
pub const CONSUMER_TOLD: &str = "ConsumerTold";
/// APIServiceNamespace (ours): a namespace of the provider is assigned.
pub const ASSIGNED: &str = "Assigned";
/// APIServiceExportRequest: the export exists.
pub const EXPORTS_READY: &str = "ExportsReady";
/// APIServiceExportRequest and APIServiceExport: the claims can be granted. On an APIServiceBinding of ours: all claimed objects are in sync.
pub const PERMISSION_CLAIM: &str = "PermissionClaim";
/// APIServiceBinding that is being deleted (ours): nothing of it is left on either side.
pub const DRAINED: &str = "Drained";
/// APIServiceBinding (ours): every object is in sync. It is there only while one is not, and says nothing about `Ready`.
pub const OBJECTS_SYNCED: &str = "ObjectsSynced";
/// APIServiceBinding (ours): it is known what becomes of objects that the provider had before. It is there only while that is not so.
pub const EXISTING_OBJECTS: &str = "ExistingObjects";
/// ClusterBinding: the konnector's version is known.
pub const VALID_VERSION: &str = "ValidVersion";
/// ClusterBinding: the konnector is there.
pub const HEALTHY: &str = "Healthy";

/// Sets a condition of the same type or adds it. Its time moves only if something else in it changes; `Ready` stands first, the others by type.
pub fn set(conditions: &mut Vec<Condition>, condition: Condition, now: Timestamp) {
    condition::set(conditions, condition, &clock::show(now));
}

/// Removes a condition that has become meaningless.
pub fn remove(conditions: &mut Vec<Condition>, type_: &str) {
    conditions.retain(|condition| condition.type_ != type_);
}

/// Sets `Ready` to what all other conditions say together.
///
/// The worst ones win: false with severity Error, Warning, Info, then true, then unknown. Reason and message are those of the first of them by
/// type. Without any other condition there is no `Ready` either.
pub fn summarize(conditions: &mut Vec<Condition>, now: Timestamp) {
    match summary(conditions) {
        Some(ready) => set(conditions, ready, now),
        None => remove(conditions, READY),
    }
}

/// What all conditions but `Ready` say together, as a condition `Ready`.
pub fn summary(conditions: &[Condition]) -> Option<Condition> {
    let others = conditions.iter().filter(|condition| condition.type_ != READY);
    let worst = others.min_by(|a, b| (rank(a), &a.type_).cmp(&(rank(b), &b.type_)))?;
    // Nothing of it but the content: a time or a field that is not known belongs to the other one.
    let mut ready = Condition::holds(READY);
    ready.status = match &worst.status {
        ConditionStatus::True => ConditionStatus::True,
        ConditionStatus::False => ConditionStatus::False,
        _ => ConditionStatus::Unknown,
    };
    if worst.status != ConditionStatus::True {
        ready.severity = worst.severity.clone();
        ready.reason.clone_from(&worst.reason);
        ready.message.clone_from(&worst.message);
    }
    Some(ready)
}

/// How bad a condition is; the worst is 0.
fn rank(condition: &Condition) -> u8 {
    match (&condition.status, &condition.severity) {
        (ConditionStatus::False, Severity::Warning) => 1,
        (ConditionStatus::False, Severity::Info) => 2,
        // False without a severity is as bad as it can be.
        (ConditionStatus::False, _) => 0,
        (ConditionStatus::True, _) => 3,
        _ => 4,
    }
}

/// Sets a condition of Kubernetes' own kind, as a BindableResourcesRequest has them: without severity, and its time moves with its status only.
pub fn set_standard(conditions: &mut Vec<Condition>, mut condition: Condition, now: Timestamp) {
    condition.severity = Severity::Unset;
    if let Some(known) = conditions.iter_mut().find(|known| known.type_ == condition.type_) {
        let moved = known.status != condition.status;
        condition.last_transition_time = if moved { clock::show(now) } else { known.last_transition_time.clone() };
        *known = condition;
    } else {
        condition.last_transition_time = clock::show(now);
        conditions.push(condition);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    fn fails(type_: &str, severity: Severity) -> Condition {
        Condition::fails(type_, severity, format!("Why{type_}"), format!("because of {type_}"))
    }

    fn unknown(type_: &str) -> Condition {
        let mut condition = Condition::holds(type_);
        condition.status = ConditionStatus::Unknown;
        condition
    }

    #[test]
    fn ready_is_what_the_worst_others_say() {
        let cases: Vec<(Vec<Condition>, &str, &str)> = vec![
            (vec![Condition::holds("A"), unknown("B")], "True", ""),
            (vec![unknown("B")], "Unknown", ""),
            (vec![Condition::holds("A"), fails("Z", Severity::Info)], "False", "WhyZ"),
            (vec![fails("A", Severity::Info), fails("Z", Severity::Warning)], "False", "WhyZ"),
            (vec![fails("A", Severity::Warning), fails("Z", Severity::Error)], "False", "WhyZ"),
            (vec![fails("Z", Severity::Error), fails("B", Severity::Error)], "False", "WhyB"),
            (vec![fails("A", Severity::Warning), fails("Z", Severity::Unset)], "False", "WhyZ"),
        ];
        for (mut conditions, status, reason) in cases {
            // The old Ready counts for nothing.
            conditions.push(fails(READY, Severity::Error));
            summarize(&mut conditions, at(7));
            assert_eq!((conditions[0].type_.as_str(), conditions[0].status.as_str()), (READY, status));
            assert_eq!(conditions[0].reason, reason);
            assert_eq!(conditions[0].last_transition_time, "1970-01-01T00:00:07Z");
        }
    }

    #[test]
    fn without_other_conditions_there_is_no_ready() {
        let mut conditions = vec![Condition::holds(READY)];
        summarize(&mut conditions, at(0));
        assert!(conditions.is_empty());
    }

    #[test]
    fn a_summary_that_says_the_same_keeps_its_time() {
        let mut conditions = Vec::new();
        set(&mut conditions, fails("A", Severity::Error), at(1));
        summarize(&mut conditions, at(1));
        let before = conditions.clone();
        set(&mut conditions, fails("A", Severity::Error), at(2));
        summarize(&mut conditions, at(2));
        assert_eq!(conditions, before);
        set(&mut conditions, Condition::holds("A"), at(3));
        summarize(&mut conditions, at(3));
        assert_eq!(
            serde_json::to_value(&conditions).unwrap(),
            json!([
                {"type": "Ready", "status": "True", "lastTransitionTime": "1970-01-01T00:00:03Z"},
                {"type": "A", "status": "True", "lastTransitionTime": "1970-01-01T00:00:03Z"},
            ])
        );
    }

    #[test]
    fn standard_conditions_keep_their_time_as_long_as_their_status_stays() {
        let mut conditions = Vec::new();
        set_standard(&mut conditions, fails(READY, Severity::Error), at(1));
        let mut other = fails(READY, Severity::Error);
        other.message = "another message".to_owned();
        set_standard(&mut conditions, other, at(2));
        assert_eq!(
            serde_json::to_value(&conditions).unwrap(),
            json!([{"type": "Ready", "status": "False", "reason": "WhyReady", "message": "another message",
                "lastTransitionTime": "1970-01-01T00:00:01Z"}])
        );
        set_standard(&mut conditions, Condition::holds(READY), at(3));
        assert_eq!(conditions[0].last_transition_time, "1970-01-01T00:00:03Z");
    }
}
