//! Drift: fields of a copy that somebody else has changed since they were written.
//!
//! What counts is what the server *stored* after the last write, not what was sent: servers fill in defaults and normalise values (`1000m`
//! becomes `1`), and that is nobody's drift. Most fields are stored as they are sent, so only those that are not are noted, by a checksum:
//!
//! ```text
//!  <key>.seen   {"of": checksum of the desired state, "altered": {path: checksum of what was stored}, "drift": {path: manager}, …}
//! ```
//!
//! Fields that only the copy has do not count. Lists are compared as a whole, but inside their elements only what is desired counts.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::address::ObjectAddress;
use crate::checksum::{checksum, sum};

/// Metadata that can drift; everything else in it belongs to the server or to the agent.
const METADATA: [&str; 2] = ["labels", "annotations"];

/// Top-level fields that are no content of an order.
const OUTSIDE: [&str; 4] = ["apiVersion", "kind", "metadata", "status"];

/// What a field without a value on the server is noted as.
const ABSENT: &str = "";

/// What a server stored of a desired state, and what has become of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// Checksum of the desired state.
    pub of: String,
    /// Fields that were stored otherwise than they were sent, by path: checksums of what was stored.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub altered: BTreeMap<String, String>,
    /// Fields that were reported as drifted, and who changed them, as far as that is known.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub drift: BTreeMap<String, String>,
    /// The last times that something was set back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reverts: Vec<Reverted>,
}

/// One time that fields of a copy were set back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reverted {
    /// When, in seconds since 1970.
    pub at: i64,
    /// Which copy it was meant for, by what guards the write. One that is sent again for the same copy counts once.
    pub guard: String,
}

/// What is to be noted about a write.
#[derive(Debug, Clone, PartialEq)]
pub enum SeenNote {
    /// What the server answers, but for fields that had drifted before and were not written: checksums of what they should be.
    Stored {
        /// Those fields.
        drifted: BTreeMap<String, String>,
        /// The rest of what was noted before.
        before: Seen,
    },
    /// This.
    As(Seen),
}

/// A field of the desired state, with the keys that lead to it.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// The keys.
    pub keys: Vec<String>,
    /// The same as people write it: `spec.size`, `metadata.labels[example.com/tier]`.
    pub path: String,
}

/// The copy of one object on which fields have drifted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DriftedCopy {
    /// Where it is.
    #[serde(skip)]
    pub at: ObjectAddress,
    /// Fields that differ and stay so, and who changed them.
    pub fields: BTreeMap<String, String>,
    /// Fields that are set back now, and who changed them.
    pub reverted: BTreeMap<String, String>,
    /// Whether some of them should be set back, and were too often.
    pub contested: bool,
    /// Whether it has changed which fields differ, or something is set back.
    pub news: bool,
}

/// A way through the fields of a desired state that can drift, down to the last value or list.
struct FieldWalk<'a, 'v> {
    /// The keys that lead to where it is.
    keys: Vec<&'a str>,
    /// The same as people write it.
    path: String,
    /// Whether what is on the object as it is desired is left out.
    only_different: bool,
    /// Receives each field.
    visit: &'v mut dyn FnMut(VisitedField<'a, '_>),
}

/// A field on the way.
struct VisitedField<'a, 'f> {
    keys: &'f [&'a str],
    path: &'f str,
    /// What is desired.
    value: &'a Value,
    /// What the object has.
    there: Option<&'f Value>,
}

impl VisitedField<'_, '_> {
    fn to_field(&self) -> Field {
        Field { keys: self.keys.iter().map(ToString::to_string).collect(), path: self.path.to_owned() }
    }
}

impl<'a> FieldWalk<'a, '_> {
    fn through(desired: &'a Value, object: &Value, only_different: bool, visit: &mut dyn FnMut(VisitedField<'a, '_>)) {
        let mut walk = FieldWalk { keys: Vec::new(), path: String::new(), only_different, visit };
        for (key, value) in
            desired.as_object().into_iter().flatten().filter(|(key, _)| !OUTSIDE.contains(&key.as_str()))
        {
            walk.field(key, value, object.get(key));
        }
        let (metadata, there) = (&desired["metadata"], &object["metadata"]);
        for key in METADATA {
            // Labels and annotations are fields one by one, also if there are none.
            for (name, value) in metadata[key].as_object().into_iter().flatten() {
                walk.keys = vec!["metadata", key];
                walk.path = format!("metadata.{key}");
                walk.field(name, value, there.get(key).and_then(|there| there.get(name)));
            }
        }
    }

    fn field(&mut self, key: &'a str, value: &'a Value, there: Option<&Value>) {
        if self.only_different && there == Some(value) {
            return;
        }
        let length = self.path.len();
        extend(&mut self.path, key);
        self.keys.push(key);
        match value {
            Value::Object(map) if !map.is_empty() => {
                for (key, value) in map {
                    self.field(key, value, there.and_then(|there| there.get(key)));
                }
            }
            value => (self.visit)(VisitedField { keys: &self.keys, path: &self.path, value, there }),
        }
        self.keys.pop();
        self.path.truncate(length);
    }
}

/// Makes a path that of a field below. Keys of labels and annotations have dots themselves.
fn extend(path: &mut String, key: &str) {
    let (before, after) = match (path.is_empty(), key.contains('.')) {
        (true, _) => ("", ""),
        (false, true) => ("[", "]"),
        (false, false) => (".", ""),
    };
    path.extend([before, key, after]);
}

/// What an object has of a desired value: nothing that was not asked for.
fn projected(desired: &Value, there: &Value) -> Value {
    match (desired, there) {
        (Value::Object(desired), Value::Object(there)) => {
            let both = desired.iter().filter_map(|(key, value)| Some((key.clone(), projected(value, there.get(key)?))));
            Value::Object(both.collect::<Map<_, _>>())
        }
        (Value::Array(desired), Value::Array(there)) if desired.len() == there.len() => {
            desired.iter().zip(there).map(|(desired, there)| projected(desired, there)).collect()
        }
        (_, there) => there.clone(),
    }
}

/// A checksum of what an object has of a field; [`ABSENT`] if it has nothing, which is what servers make of null.
fn sum_of(desired: &Value, there: Option<&Value>) -> String {
    match there {
        None | Some(Value::Null) => ABSENT.to_owned(),
        Some(there) => checksum(&projected(desired, there)),
    }
}

fn at<'a>(object: &'a Value, keys: &[String]) -> Option<&'a Value> {
    keys.iter().try_fold(object, |object, key| object.get(key))
}

impl Seen {
    /// What a server has stored of a desired state, as its answer shows.
    pub fn stored(desired: &Value, object: &Value) -> Self {
        let mut altered = BTreeMap::new();
        // Most are stored as they are sent.
        FieldWalk::through(desired, object, true, &mut |field| {
            let stored = sum_of(field.value, field.there);
            if stored != sum_of(field.value, Some(field.value)) {
                altered.insert(field.path.to_owned(), stored);
            }
        });
        Self { of: sum(desired), altered, ..Self::default() }
    }

    /// Whether it is about this desired state.
    pub fn is_of(&self, desired: &Value) -> bool {
        self.of == sum(desired)
    }

    /// The fields of the desired state that are not on a copy as they were stored.
    pub fn drifted(&self, desired: &Value, copy: &Value) -> Vec<Field> {
        let mut drifted = Vec::new();
        FieldWalk::through(desired, copy, self.altered.is_empty(), &mut |field| {
            let VisitedField { value, there, .. } = field;
            let has_drifted = match self.altered.get(field.path) {
                None if there == Some(value) => false,
                None => sum_of(value, there) != sum_of(value, Some(value)),
                Some(stored) => sum_of(value, there) != *stored,
            };
            if has_drifted {
                drifted.push(field.to_field());
            }
        });
        drifted
    }

    /// What one field should be on the copy, as a checksum.
    fn expected(&self, desired: &Value, field: &Field) -> Option<String> {
        let value = at(desired, &field.keys)?;
        Some(self.altered.get(&field.path).cloned().unwrap_or_else(|| sum_of(value, Some(value))))
    }

    /// The fields that have drifted from an earlier desired state, that the next one leaves as they are, and that edits do not touch: what
    /// each of them should be. Without this, the answer to such a write would turn drift into what was stored.
    pub fn carried(
        &self,
        last: &Value,
        desired: &Value,
        copy: &Value,
        is_touched: impl Fn(&[String]) -> bool,
    ) -> BTreeMap<String, String> {
        let stays = |field: &Field| at(last, &field.keys) == at(desired, &field.keys) && !is_touched(&field.keys);
        let drifted = self.drifted(last, copy).into_iter().filter(stays);
        drifted.filter_map(|field| Some((field.path.clone(), self.expected(last, &field)?))).collect()
    }
}

impl SeenNote {
    /// What is to be remembered of a write, once a server has answered it.
    pub fn resolve(self, desired: &Value, answer: Option<&Value>) -> Option<Seen> {
        let (drifted, before) = match self {
            Self::As(seen) => return Some(seen),
            Self::Stored { drifted, before } => (drifted, before),
        };
        let stored = Seen::stored(desired, answer?);
        let mut seen = Seen { drift: before.drift, reverts: before.reverts, ..stored };
        FieldWalk::through(desired, &Value::Null, false, &mut |field| {
            let Some(expected) = drifted.get(field.path) else { return };
            if *expected == sum_of(field.value, Some(field.value)) {
                seen.altered.remove(field.path);
            } else {
                seen.altered.insert(field.path.to_owned(), expected.clone());
            }
        });
        Some(seen)
    }
}

/// Who wrote a field of an object last, as the server records it, leaving out whoever a test names.
pub fn manager_of(managed: &Value, keys: &[String], is_ours: impl Fn(&str) -> bool) -> Option<String> {
    let owns = |entry: &&Value| {
        let mut fields = &entry["fieldsV1"];
        for key in keys {
            match fields.get(format!("f:{key}")) {
                Some(below) => fields = below,
                // Whoever has a list or an object as a whole has everything in it.
                None => return fields.get(".").is_some() && fields.as_object().is_some_and(|all| all.len() == 1),
            }
        }
        true
    };
    let entries = managed.as_array().into_iter().flatten().filter(|entry| entry["subresource"].is_null());
    let others = entries.filter(|entry| !entry["manager"].as_str().is_none_or(&is_ours)).filter(owns);
    let last = others.max_by_key(|entry| entry["time"].as_str().unwrap_or_default())?;
    last["manager"].as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn paths(fields: &[Field]) -> Vec<&str> {
        fields.iter().map(|field| field.path.as_str()).collect()
    }

    #[test]
    fn what_differs_from_what_was_stored_has_drifted_and_nothing_else() {
        for (desired, stored, now, wanted) in [
            // As it was sent.
            (json!({"spec": {"a": 1}}), json!({"spec": {"a": 1}}), json!({"spec": {"a": 1}}), vec![]),
            (json!({"spec": {"a": 1}}), json!({"spec": {"a": 1}}), json!({"spec": {"a": 2}}), vec!["spec.a"]),
            (json!({"spec": {"a": 1}}), json!({"spec": {"a": 1}}), json!({"spec": {}}), vec!["spec.a"]),
            (json!({"spec": {"a": 1}}), json!({"spec": {"a": 1}}), json!({}), vec!["spec.a"]),
            // Normalised, and then left alone, set back to what was sent, changed, removed.
            (json!({"spec": {"cpu": "1000m"}}), json!({"spec": {"cpu": "1"}}), json!({"spec": {"cpu": "1"}}), vec![]),
            (
                json!({"spec": {"cpu": "1000m"}}),
                json!({"spec": {"cpu": "1"}}),
                json!({"spec": {"cpu": "1000m"}}),
                vec!["spec.cpu"],
            ),
            (json!({"spec": {"cpu": "1000m"}}), json!({"spec": {"cpu": "1"}}), json!({"spec": {}}), vec!["spec.cpu"]),
            // Defaults, and what operators add, also in the elements of lists.
            (
                json!({"spec": {"a": 1}}),
                json!({"spec": {"a": 1, "b": 2}}),
                json!({"spec": {"a": 1, "b": 3, "c": 4}}),
                vec![],
            ),
            (
                json!({"spec": {"l": [{"n": "x"}]}}),
                json!({"spec": {"l": [{"n": "x", "d": 1}]}}),
                json!({"spec": {"l": [{"n": "x", "d": 2, "e": 3}]}}),
                vec![],
            ),
            (
                json!({"spec": {"l": [{"n": "x"}]}}),
                json!({"spec": {"l": [{"n": "x", "d": 1}]}}),
                json!({"spec": {"l": [{"n": "y", "d": 1}]}}),
                vec!["spec.l"],
            ),
            (
                json!({"spec": {"l": [1, 2]}}),
                json!({"spec": {"l": [1, 2]}}),
                json!({"spec": {"l": [1]}}),
                vec!["spec.l"],
            ),
            (
                json!({"spec": {"l": [{"n": "x"}]}}),
                json!({"spec": {"l": [{"n": "x"}]}}),
                json!({"spec": {"l": [{"n": "x"}, {"n": "injected"}]}}),
                vec!["spec.l"],
            ),
            // What the server prunes, and null, which it does not store.
            (json!({"spec": {"odd": 1, "a": null}}), json!({"spec": {}}), json!({"spec": {}}), vec![]),
            (json!({"spec": {"odd": 1}}), json!({"spec": {}}), json!({"spec": {"odd": 1}}), vec!["spec.odd"]),
            // Empty objects are values.
            (json!({"spec": {"e": {}}}), json!({"spec": {"e": {}}}), json!({"spec": {"e": {"x": 1}}}), vec![]),
            (json!({"spec": {"e": {}}}), json!({"spec": {"e": {}}}), json!({"spec": {}}), vec!["spec.e"]),
            // Labels and annotations that the order has; and neither names, nor the status.
            (
                json!({"metadata": {"name": "n", "labels": {"a.b/c": "1"}, "annotations": {"d": "2"}}, "status": {"x": 1}}),
                json!({"metadata": {"name": "m", "labels": {"a.b/c": "1"}, "annotations": {"d": "2"}}}),
                json!({"metadata": {"name": "m", "labels": {"a.b/c": "9", "other": "1"}}, "status": {"x": 2}}),
                vec!["metadata.labels[a.b/c]", "metadata.annotations.d"],
            ),
        ] {
            let seen = Seen::stored(&desired, &stored);
            assert!(seen.is_of(&desired));
            assert_eq!(seen.drifted(&desired, &stored), [], "just stored: {desired}");
            assert_eq!(paths(&seen.drifted(&desired, &now)), wanted, "{desired} {now}");
        }
    }

    #[test]
    fn a_write_to_one_field_does_not_make_the_drift_of_another_one_what_was_stored() {
        let last = json!({"spec": {"size": 1, "cpu": "1000m", "region": "eu"}});
        let seen = Seen::stored(&last, &json!({"spec": {"size": 1, "cpu": "1", "region": "eu"}}));
        let copy = json!({"spec": {"size": 7, "cpu": "4", "region": "us"}});
        let desired = json!({"spec": {"size": 1, "cpu": "1000m", "region": "asia"}});
        let drifted = seen.carried(&last, &desired, &copy, |keys| keys == ["spec", "region"]);
        assert_eq!(drifted.keys().collect::<Vec<_>>(), ["spec.cpu", "spec.size"]);
        let answer = json!({"spec": {"size": 7, "cpu": "4", "region": "asia"}});
        let seen = SeenNote::Stored { drifted, before: Seen::default() }.resolve(&desired, Some(&answer)).unwrap();
        assert_eq!(paths(&seen.drifted(&desired, &answer)), ["spec.cpu", "spec.size"]);
        assert_eq!(seen.drifted(&desired, &json!({"spec": {"size": 1, "cpu": "1", "region": "asia"}})), []);
    }

    #[test]
    fn what_is_noted_is_small_and_survives_a_restart() {
        let desired = json!({"spec": {"size": 1, "cpu": "1000m"}});
        let plain = Seen::stored(&desired, &desired);
        assert_eq!(serde_json::to_value(&plain).unwrap(), json!({ "of": sum(&desired) }));
        let mut seen = Seen::stored(&desired, &json!({"spec": {"size": 1, "cpu": "1"}}));
        seen.drift.insert("spec.size".to_owned(), "kubectl-edit".to_owned());
        seen.reverts.push(Reverted { at: 7, guard: "0f3c.1".to_owned() });
        let text = serde_json::to_string(&seen).unwrap();
        assert_eq!(serde_json::from_str::<Seen>(&text).unwrap(), seen);
    }

    #[test]
    fn the_manager_is_who_wrote_the_field_last() {
        let entry = |manager: &str, time: &str, fields: Value| json!({"manager": manager, "operation": "Update", "time": time, "fieldsV1": fields});
        let size = json!({"f:spec": {"f:size": {}}});
        let managed = json!([
            entry("agent/x", "2026-01-03T00:00:00Z", size.clone()),
            entry("hpa", "2026-01-01T00:00:00Z", size.clone()),
            entry("kubectl-edit", "2026-01-02T00:00:00Z", json!({"f:spec": {".": {}, "f:size": {}}})),
            {"manager": "operator", "subresource": "status", "time": "2026-01-04T00:00:00Z", "fieldsV1": size},
            entry("other", "2026-01-05T00:00:00Z", json!({"f:spec": {"f:region": {}}})),
        ]);
        let keys = |keys: &[&str]| keys.iter().map(ToString::to_string).collect::<Vec<_>>();
        let ours = |manager: &str| manager.starts_with("agent");
        assert_eq!(manager_of(&managed, &keys(&["spec", "size"]), ours).as_deref(), Some("kubectl-edit"));
        assert_eq!(manager_of(&managed, &keys(&["spec", "owner"]), ours), None);
        assert_eq!(manager_of(&Value::Null, &keys(&["spec"]), ours), None);
    }
}
