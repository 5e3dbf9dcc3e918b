//! Writes that have to be made, as data.

use std::time::Duration;

use carrick_bind_api::kinds::ApiObject;
use serde_json::{Map, Value, json};

/// One write. Objects carry their apiVersion and kind; those that exist also carry the version or uid they were seen with.
#[derive(Clone, Debug, PartialEq)]
pub enum Write {
    /// Creates an object.
    Create(Value),
    /// Replaces an object, unless it has changed since it was seen.
    Replace(Value),
    /// Replaces the status of an object, unless it has changed since it was seen.
    Status(Value),
    /// Deletes exactly this object.
    Delete(Value),
}

impl Write {
    /// The object that is written.
    pub fn object(&self) -> &Value {
        match self {
            Self::Create(object) | Self::Replace(object) | Self::Status(object) | Self::Delete(object) => object,
        }
    }
}

/// What has to be written, in this order, and when to look again even if nothing changes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// The writes.
    pub writes: Vec<Write>,
    /// When to look again.
    pub look_again: Option<Duration>,
}

impl Plan {
    /// Adds what another part has decided.
    pub fn add(&mut self, other: Self) {
        self.writes.extend(other.writes);
        if let Some(after) = other.look_again {
            self.look_again_after(after);
        }
    }

    /// Looks again after this long at the latest.
    pub fn look_again_after(&mut self, after: Duration) {
        self.look_again = Some(self.look_again.map_or(after, |known| known.min(after)));
    }

    /// Creates a typed object.
    pub fn create<K: ApiObject>(&mut self, object: &K) {
        self.writes.push(Write::Create(value(object)));
    }

    /// Replaces a typed object.
    pub fn replace<K: ApiObject>(&mut self, object: &K) {
        self.writes.push(Write::Replace(value(object)));
    }

    /// Replaces the status of a typed object.
    pub fn status<K: ApiObject>(&mut self, object: &K) {
        self.writes.push(Write::Status(value(object)));
    }

    /// Deletes a typed object.
    pub fn delete<K: ApiObject>(&mut self, object: &K) {
        self.writes.push(Write::Delete(value(object)));
    }

    /// Makes an untyped object what it should be: it is created, or what is wanted of it is written over what is there. Others' labels,
    /// annotations and owners stay. A binding whose role is another one is deleted first, because its role cannot be changed.
    pub fn ensure(&mut self, existing: Option<&Value>, wanted: &Value) {
        let Some(existing) = existing else {
            self.writes.push(Write::Create(wanted.clone()));
            return;
        };
        if is_deleting(existing) || covers(existing, wanted) {
            return;
        }
        if wanted.get("roleRef").is_some_and(|role| !covers(&existing["roleRef"], role)) {
            self.writes.push(Write::Delete(existing.clone()));
            self.writes.push(Write::Create(wanted.clone()));
            return;
        }
        self.writes.push(Write::Replace(merged(existing, wanted)));
    }
}

/// The JSON of a typed object.
pub fn value<K: ApiObject>(object: &K) -> Value {
    let mut value = serde_json::to_value(object).unwrap_or_default();
    // Elements of lists lack both.
    value["apiVersion"] = json!(K::KIND.api_version());
    value["kind"] = json!(K::KIND.kind);
    value
}

/// Whether an object is being deleted.
pub fn is_deleting(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}

/// Whether all that is wanted is there. Fields that a server fills in by itself are no difference; elements of lists are, except owners, which
/// others may add.
pub fn covers(existing: &Value, wanted: &Value) -> bool {
    match (existing, wanted) {
        (Value::Object(existing), Value::Object(wanted)) => wanted.iter().all(|(key, wanted)| {
            let existing = existing.get(key).unwrap_or(&Value::Null);
            if key == "ownerReferences" { owners_covered(existing, wanted) } else { covers(existing, wanted) }
        }),
        (Value::Array(existing), Value::Array(wanted)) => {
            existing.len() == wanted.len() && existing.iter().zip(wanted).all(|(there, wanted)| covers(there, wanted))
        }
        // Servers leave out what is empty.
        (Value::Null, wanted) => is_empty(wanted),
        (existing, wanted) => existing == wanted,
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.values().all(is_empty),
        Value::String(text) => text.is_empty(),
        _ => false,
    }
}

fn owners_covered(existing: &Value, wanted: &Value) -> bool {
    let there = existing.as_array().map_or(&[][..], Vec::as_slice);
    wanted.as_array().into_iter().flatten().all(|wanted| there.iter().any(|owner| owner["uid"] == wanted["uid"]))
}

/// What is there with what is wanted written over it.
fn merged(existing: &Value, wanted: &Value) -> Value {
    let mut object = existing.clone();
    for (key, value) in wanted.as_object().into_iter().flatten() {
        if key != "metadata" {
            object[key] = value.clone();
        }
    }
    for field in ["labels", "annotations"] {
        let wanted = wanted["metadata"][field].as_object().cloned().unwrap_or_default();
        if wanted.is_empty() {
            continue;
        }
        let mut all = object["metadata"][field].as_object().cloned().unwrap_or_else(Map::new);
        all.extend(wanted);
        object["metadata"][field] = Value::Object(all);
    }
    let mut owners = object["metadata"]["ownerReferences"].as_array().cloned().unwrap_or_default();
    for owner in wanted["metadata"]["ownerReferences"].as_array().into_iter().flatten() {
        if !owners.iter().any(|known| known["uid"] == owner["uid"]) {
            owners.push(owner.clone());
        }
    }
    if !owners.is_empty() {
        object["metadata"]["ownerReferences"] = Value::Array(owners);
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    fn role(rules: &Value) -> Value {
        json!({"kind": "ClusterRole", "metadata": {"name": "r", "labels": {"ours": "1"}, "ownerReferences": [{"uid": "u"}]}, "rules": rules})
    }

    fn planned(existing: Option<&Value>, wanted: &Value) -> Vec<Write> {
        let mut plan = Plan::default();
        plan.ensure(existing, wanted);
        plan.writes
    }

    #[test]
    fn what_is_there_is_not_written_again_and_what_others_added_stays() {
        let wanted = role(&json!([{"verbs": ["get"]}]));
        assert_eq!(planned(None, &wanted), [Write::Create(wanted.clone())]);
        let mut there = wanted.clone();
        there["metadata"]["labels"]["theirs"] = json!("2");
        there["metadata"]["ownerReferences"] = json!([{"uid": "v"}, {"uid": "u"}]);
        there["metadata"]["resourceVersion"] = json!("7");
        assert_eq!(planned(Some(&there), &wanted), []);
        there["rules"] = json!([{"verbs": ["get"]}, {"verbs": ["delete"]}]);
        let [Write::Replace(new)] = &planned(Some(&there), &wanted)[..] else { panic!() };
        assert_eq!(new["rules"], wanted["rules"], "a right too many goes");
        assert_eq!(new["metadata"], there["metadata"]);
        assert_eq!(planned(Some(new), &wanted), []);
    }

    #[test]
    fn a_binding_with_another_role_is_made_anew() {
        let binding = |role: &str| json!({"metadata": {"name": "b"}, "roleRef": {"name": role}, "subjects": []});
        let writes = planned(Some(&binding("other")), &binding("ours"));
        assert_eq!(writes, [Write::Delete(binding("other")), Write::Create(binding("ours"))]);
    }

    #[test]
    fn what_goes_is_left_alone_until_it_is_gone() {
        let mut there = role(&json!([]));
        there["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        assert_eq!(planned(Some(&there), &role(&json!([{"verbs": ["get"]}]))), []);
    }
}
