//! Conditions as kcp writes them: `Ready` first, the others by type, times that move only when something else changes.

use crate::object::{object, words};

/// Type of the condition that sums up all others.
pub const READY: &str = "Ready";

words! {
    /// Whether a condition holds.
    ConditionStatus {
        /// It holds.
        True,
        /// It does not.
        False,
        /// That cannot be said.
        Unknown,
    }
}

words! {
    /// Severity of a condition that is not true.
    Severity {
        /// Needs somebody's attention.
        Error,
        /// Works, but not as requested.
        Warning,
        /// Temporary.
        Info,
    }
}

object! {
    /// One condition of an object's status.
    Condition {
        /// What it is about.
        type_: String => "type",
        /// Whether it holds.
        status: ConditionStatus => "status",
        /// How severe it is if it does not.
        severity: Severity => "severity",
        /// Why, in one word.
        reason: String => "reason",
        /// Why, in a sentence.
        message: String => "message",
        /// When any of the above changed, in RFC 3339.
        last_transition_time: String => "lastTransitionTime",
    }
}

impl Condition {
    /// A condition that holds.
    pub fn holds(type_: impl Into<String>) -> Self {
        Self { type_: type_.into(), status: ConditionStatus::True, ..Self::default() }
    }

    /// A condition that does not hold.
    pub fn fails(
        type_: impl Into<String>,
        severity: Severity,
        reason: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            type_: type_.into(),
            status: ConditionStatus::False,
            severity,
            reason: reason.into(),
            message: message.into(),
            ..Self::default()
        }
    }

    /// The same condition under another type.
    #[must_use]
    pub fn renamed(&self, type_: impl Into<String>) -> Self {
        Self { type_: type_.into(), ..self.clone() }
    }

    /// Whether it holds.
    pub fn is_true(&self) -> bool {
        self.status == ConditionStatus::True
    }

    fn says_the_same(&self, other: &Self) -> bool {
        let content = |it: &Self| (it.status.clone(), it.severity.clone(), it.reason.clone(), it.message.clone());
        content(self) == content(other)
    }
}

/// A condition by its type.
pub fn find<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == type_)
}

/// Whether a condition is there and holds.
pub fn is_true(conditions: &[Condition], type_: &str) -> bool {
    find(conditions, type_).is_some_and(Condition::is_true)
}

/// Sets a condition of the same type or adds it, in the order and with the time that kcp would give it.
pub fn set(conditions: &mut Vec<Condition>, condition: Condition, now: &str) {
    let at = conditions.iter().position(|known| known.type_ == condition.type_);
    let old = at.map(|at| conditions.remove(at));
    let new = match old {
        Some(old) if old.says_the_same(&condition) => old,
        _ => Condition { last_transition_time: now.to_owned(), ..condition },
    };
    conditions.push(new);
    conditions.sort_by(|a, b| (a.type_ != READY, &a.type_).cmp(&(b.type_ != READY, &b.type_)));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ready_comes_first_and_times_move_only_with_content() {
        let mut all = Vec::new();
        set(&mut all, Condition::holds("Zeta"), "t1");
        set(&mut all, Condition::fails("Alpha", Severity::Info, "Wait", "soon"), "t1");
        set(&mut all, Condition::holds(READY), "t1");
        let types: Vec<&str> = all.iter().map(|condition| condition.type_.as_str()).collect();
        assert_eq!(types, [READY, "Alpha", "Zeta"]);

        let before = all.clone();
        set(&mut all, Condition::fails("Alpha", Severity::Info, "Wait", "soon"), "t2");
        assert_eq!(all, before);
        set(&mut all, Condition::holds("Alpha"), "t2");
        let alpha = serde_json::to_value(find(&all, "Alpha")).unwrap();
        assert_eq!(alpha, json!({"type": "Alpha", "status": "True", "lastTransitionTime": "t2"}));
        assert!(is_true(&all, "Alpha") && !is_true(&all, "Beta"));
    }

    #[test]
    fn a_condition_can_be_repeated_under_another_type() {
        let condition = Condition::fails("A", Severity::Error, "Why", "because").renamed("B");
        assert_eq!((condition.type_.as_str(), condition.reason.as_str(), condition.is_true()), ("B", "Why", false));
    }
}
