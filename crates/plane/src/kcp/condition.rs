//! Conditions as kcp writes them: Ready first, the others by type, times that move only when something else changes.

use super::object::{child, items};
use serde_json::{Value, json};

/// The severity of a condition that is not true.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// Needs the attention of somebody.
    Error,
    /// Works, but not as requested.
    Warning,
    /// Will pass.
    Info,
}

impl Severity {
    fn as_str(self) -> &'static str {
        match self {
            Self::Error => "Error",
            Self::Warning => "Warning",
            Self::Info => "Info",
        }
    }
}

/// One condition, without its time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    kind: String,
    failure: Option<(Severity, String, String)>,
}

impl Condition {
    /// A condition that holds.
    pub fn yes(kind: &str) -> Self {
        Self { kind: kind.to_owned(), failure: None }
    }

    /// A condition that does not hold, with severity, reason and message.
    pub fn no(kind: &str, severity: Severity, reason: &str, message: impl Into<String>) -> Self {
        Self { kind: kind.to_owned(), failure: Some((severity, reason.to_owned(), message.into())) }
    }

    /// The same condition under another type.
    pub fn renamed(&self, kind: &str) -> Self {
        Self { kind: kind.to_owned(), failure: self.failure.clone() }
    }

    fn to_value(&self, now: &str) -> Value {
        match &self.failure {
            None => json!({"type": self.kind, "status": "True", "lastTransitionTime": now}),
            Some((severity, reason, message)) => json!({
                "type": self.kind, "status": "False", "severity": severity.as_str(),
                "reason": reason, "message": message, "lastTransitionTime": now,
            }),
        }
    }
}

/// Writes a condition into `status.conditions`.
pub fn set(object: &mut Value, condition: &Condition, now: &str) {
    let mut all = items(object, "/status/conditions").to_vec();
    let mut new = condition.to_value(now);
    let old = all.iter().position(|c| c["type"] == new["type"]).map(|at| all.remove(at));
    if let Some(old) = old {
        let same = ["status", "severity", "reason", "message"].iter().all(|key| old.get(key) == new.get(key));
        if same {
            new = old;
        }
    }
    all.push(new);
    all.sort_by_cached_key(|c| {
        let kind = c["type"].as_str().unwrap_or_default().to_owned();
        (kind != "Ready", kind)
    });
    child(object, &["status"]).insert("conditions".to_owned(), Value::Array(all));
}

/// A condition by its type.
pub fn find<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    items(object, "/status/conditions").iter().find(|c| c["type"] == kind)
}

/// Whether a condition is there and true.
pub fn holds(object: &Value, kind: &str) -> bool {
    find(object, kind).is_some_and(|c| c["status"] == "True")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ready_comes_first_and_times_move_only_with_content() {
        let mut object = json!({});
        set(&mut object, &Condition::yes("Zeta"), "t1");
        set(&mut object, &Condition::no("Alpha", Severity::Info, "Wait", "soon"), "t1");
        set(&mut object, &Condition::yes("Ready"), "t1");
        let kinds: Vec<_> = items(&object, "/status/conditions").iter().map(|c| c["type"].clone()).collect();
        assert_eq!(kinds, ["Ready", "Alpha", "Zeta"]);

        let before = object.clone();
        set(&mut object, &Condition::no("Alpha", Severity::Info, "Wait", "soon"), "t2");
        assert_eq!(object, before);
        set(&mut object, &Condition::yes("Alpha"), "t2");
        assert_eq!(
            find(&object, "Alpha"),
            Some(&json!({"type": "Alpha", "status": "True", "lastTransitionTime": "t2"}))
        );
        assert!(holds(&object, "Alpha") && !holds(&object, "Beta"));
    }
}
