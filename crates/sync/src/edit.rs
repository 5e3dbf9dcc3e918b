//! Edits: the fields of a copy that change; everything else on it stays as it is.
//!
//! A merge patch would almost do, but it cannot set a field to null, and it cannot carry a precondition. Edits become a JSON patch that
//! tests a [`Guard`] first.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// One change to one field.
#[derive(Debug, Clone, PartialEq)]
pub struct Edit {
    /// The keys that lead to the field.
    pub path: Vec<String>,
    /// Its new value; `None` if it is removed.
    pub value: Option<Value>,
}

/// A precondition: what must still hold for an object when an edit reaches the server, however late that is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Guard {
    /// The annotation that says what was written last has this value. Changes to other fields, such as the status, do no harm.
    Mark {
        /// Name of the annotation.
        key: &'static str,
        /// Its value.
        value: String,
        /// The UID of the object.
        uid: String,
    },
    /// Nothing at all has changed since this version.
    Version(String),
}

/// What happens to one field on the way from one state to another.
enum Delta {
    Set(Value),
    Remove,
    /// An object whose fields change.
    Inside(BTreeMap<String, Delta>),
}

/// The edits that turn a copy into what is wanted, given the states it may have been written from. Fields that are the same in all of
/// those states and in what is wanted are left alone, whatever their value on the copy.
pub fn edits(before: &[&Value], wanted: &Value, copy: &Value) -> Vec<Edit> {
    let mut edits = Vec::new();
    let maps: Vec<Option<&Map<String, Value>>> = before.iter().map(|state| state.as_object()).collect();
    if let Some(wanted) = wanted.as_object() {
        for (key, delta) in inside(&maps, wanted) {
            render(&mut vec![key.clone()], delta, copy.get(&key), &mut edits);
        }
    }
    edits
}

/// The differences between objects. A state that has no such object counts as an empty one.
fn inside(before: &[Option<&Map<String, Value>>], wanted: &Map<String, Value>) -> BTreeMap<String, Delta> {
    let mut deltas = BTreeMap::new();
    for key in before.iter().flatten().flat_map(|state| state.keys()).filter(|key| !wanted.contains_key(*key)) {
        deltas.insert(key.clone(), Delta::Remove);
    }
    for (key, new) in wanted {
        let old: Vec<Option<&Value>> = before.iter().map(|state| state.and_then(|state| state.get(key))).collect();
        if old.iter().all(|old| *old == Some(new)) {
            continue;
        }
        let delta = match new {
            Value::Object(new) => {
                let maps: Vec<_> = old.iter().map(|old| old.and_then(Value::as_object)).collect();
                Delta::Inside(inside(&maps, new))
            }
            new => Delta::Set(new.clone()),
        };
        deltas.insert(key.clone(), delta);
    }
    deltas
}

/// Turns a difference into edits of the existing object. The path is restored afterwards.
fn render(path: &mut Vec<String>, delta: Delta, there: Option<&Value>, edits: &mut Vec<Edit>) {
    match (delta, there) {
        (Delta::Remove, None) => {}
        (Delta::Remove, Some(_)) => edits.push(Edit { path: path.clone(), value: None }),
        (Delta::Set(value), Some(there)) if value == *there => {}
        (Delta::Set(value), _) => edits.push(Edit { path: path.clone(), value: Some(value) }),
        (Delta::Inside(deltas), Some(Value::Object(there))) => {
            for (key, delta) in deltas {
                let there = there.get(&key);
                path.push(key);
                render(path, delta, there, edits);
                path.pop();
            }
        }
        (delta @ Delta::Inside(_), _) => edits.push(Edit { path: path.clone(), value: build(delta) }),
    }
}

/// The value that a difference creates where there was none.
fn build(delta: Delta) -> Option<Value> {
    match delta {
        Delta::Set(value) => Some(value),
        Delta::Remove => None,
        Delta::Inside(deltas) => {
            Some(Value::Object(deltas.into_iter().filter_map(|(key, delta)| Some((key, build(delta)?))).collect()))
        }
    }
}

/// Sets one field of an object, unless it has that value.
pub fn set(edits: &mut Vec<Edit>, copy: &Value, path: &[&str], value: &str) {
    let mut there = Some(copy);
    for (depth, key) in path.iter().enumerate() {
        there = there.and_then(|there| there.get(key));
        let steps = || path[..=depth].iter().map(|key| (*key).to_owned()).collect::<Vec<_>>();
        let last = depth + 1 == path.len();
        if last && there.is_none_or(|there| there != value) {
            edits.retain(|edit| edit.path != steps());
            edits.push(Edit { path: steps(), value: Some(value.into()) });
        } else if !last && there.is_none_or(|there| !there.is_object()) {
            let inner = path[depth + 1..].iter().rev().fold(json!(value), |inner, key| json!({ *key: inner }));
            // If an edit already sets the parent, the field is added to its value.
            if let Some(edit) = edits.iter_mut().find(|edit| edit.path == steps())
                && let Some(existing) = &mut edit.value
            {
                carrick_json::merge::apply(existing, &inner);
            } else {
                edits.push(Edit { path: steps(), value: Some(inner) });
            }
            return;
        }
    }
}

/// Applies the changes in memory.
pub fn apply(edits: &[Edit], object: &mut Value) {
    for edit in edits {
        let Some((last, parents)) = edit.path.split_last() else { continue };
        let mut at = &mut *object;
        for key in parents {
            if !at[key].is_object() {
                at[key] = Value::Object(Map::new());
            }
            at = &mut at[key];
        }
        match (&edit.value, at.as_object_mut()) {
            (Some(value), Some(fields)) => drop(fields.insert(last.clone(), value.clone())),
            (None, Some(fields)) => drop(fields.remove(last)),
            (_, None) => {}
        }
    }
}

impl Guard {
    /// Whether it holds for an object as it is now.
    pub fn holds(&self, object: &Value) -> bool {
        let metadata = &object["metadata"];
        match self {
            Self::Mark { key, value, uid } => {
                metadata["uid"] == uid.as_str()
                    && metadata["annotations"].get(key).and_then(Value::as_str) == Some(value)
            }
            Self::Version(version) => metadata["resourceVersion"] == version.as_str(),
        }
    }
}

/// The JSON patch that makes the changes if the guard holds.
pub fn json_patch(edits: &[Edit], guard: &Guard) -> Value {
    let mut operations = Vec::new();
    match guard {
        Guard::Mark { key, value, uid } => {
            operations.push(json!({"op": "test", "path": "/metadata/uid", "value": uid}));
            let path = pointer(["metadata", "annotations", key]);
            operations.push(json!({"op": "test", "path": path, "value": value}));
        }
        // Servers treat that as a precondition, and answer with a conflict.
        Guard::Version(version) => {
            operations.push(json!({"op": "add", "path": "/metadata/resourceVersion", "value": version}));
        }
    }
    for edit in edits {
        let path = pointer(edit.path.iter().map(String::as_str));
        operations.push(match &edit.value {
            Some(value) => json!({"op": "add", "path": path, "value": value}),
            None => json!({"op": "remove", "path": path}),
        });
    }
    Value::Array(operations)
}

fn pointer<'a>(path: impl IntoIterator<Item = &'a str>) -> String {
    let mut pointer = String::new();
    for key in path {
        pointer.push('/');
        pointer.push_str(&key.replace('~', "~0").replace('/', "~1"));
    }
    pointer
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn edited(before: &[&Value], wanted: &Value, copy: &Value) -> Value {
        let mut copy = copy.clone();
        apply(&edits(before, wanted, &copy.clone()), &mut copy);
        copy
    }

    #[test]
    fn only_what_changed_is_touched() {
        for (before, wanted, copy, expected) in [
            (
                json!({"a": 1, "b": 2}),
                json!({"a": 1, "b": 3}),
                json!({"a": 9, "b": 2, "c": 4}),
                json!({"a": 9, "b": 3, "c": 4}),
            ),
            (json!({"a": 1}), json!({}), json!({"a": 9, "c": 4}), json!({"c": 4})),
            (json!({"a": 1}), json!({}), json!({"c": 4}), json!({"c": 4})),
            (
                json!({"a": {"x": 1}}),
                json!({"a": {"x": 1, "y": 2}}),
                json!({"a": {"x": 7, "z": 8}}),
                json!({"a": {"x": 7, "y": 2, "z": 8}}),
            ),
            (json!({"a": {"x": 1}}), json!({"a": {"x": 1, "y": 2}}), json!({}), json!({"a": {"y": 2}})),
            (json!({"a": {"x": 1}}), json!({"a": {"x": 1, "y": 2}}), json!({"a": 5}), json!({"a": {"y": 2}})),
            (json!({}), json!({"a": {}}), json!({}), json!({"a": {}})),
            (json!({}), json!({"a": {}}), json!({"a": {"z": 1}}), json!({"a": {"z": 1}})),
            (json!({"a": [1, 2]}), json!({"a": [1]}), json!({"a": [1, 2, 3]}), json!({"a": [1]})),
            (json!({"a": {"x": 1}}), json!({"a": "text"}), json!({"a": {"x": 1}}), json!({"a": "text"})),
        ] {
            assert_eq!(edited(&[&before], &wanted, &copy), expected, "{before} -> {wanted} on {copy}");
        }
    }

    #[test]
    fn nulls_are_carried() {
        let (before, wanted) = (json!({"a": 1, "b": {"c": 2}}), json!({"a": null, "b": {"c": null}}));
        assert_eq!(edited(&[&before], &wanted, &before), wanted);
        assert_eq!(edited(&[&wanted], &json!({}), &wanted), json!({}));
        assert!(edits(&[&wanted], &wanted, &json!({})).is_empty(), "a null that was applied is not applied again");
    }

    #[test]
    fn every_state_that_may_be_there_leads_to_the_wanted_one() {
        let (last, next, wanted) = (json!({"a": 1}), json!({"a": 2, "b": 5}), json!({"a": 1}));
        for copy in [&last, &next] {
            assert_eq!(edited(&[&last, &next], &wanted, copy), wanted);
        }
    }

    #[test]
    fn a_patch_tests_its_guard_first() {
        let edits = [
            Edit { path: vec!["spec".into(), "a/b~c".into()], value: Some(json!(1)) },
            Edit { path: vec!["x".into()], value: None },
        ];
        let guard = Guard::Mark { key: "example.com/mark", value: "m".into(), uid: "u".into() };
        assert_eq!(
            json_patch(&edits, &guard),
            json!([
                {"op": "test", "path": "/metadata/uid", "value": "u"},
                {"op": "test", "path": "/metadata/annotations/example.com~1mark", "value": "m"},
                {"op": "add", "path": "/spec/a~1b~0c", "value": 1},
                {"op": "remove", "path": "/x"},
            ])
        );
        assert!(guard.holds(&json!({"metadata": {"uid": "u", "annotations": {"example.com/mark": "m"}}})));
        assert!(!guard.holds(&json!({"metadata": {"uid": "u"}})));
        let patch = json_patch(&[], &Guard::Version("7".into()));
        assert_eq!(patch, json!([{"op": "add", "path": "/metadata/resourceVersion", "value": "7"}]));
    }

    #[test]
    fn a_field_is_set_whatever_its_parents_are() {
        for (copy, mut before) in [
            (json!({"metadata": {"labels": {"a": "1"}}}), vec![]),
            (json!({"metadata": {}}), vec![]),
            (json!({}), vec![]),
            (
                json!({"metadata": {}}),
                vec![Edit { path: vec!["metadata".into(), "labels".into()], value: Some(json!({"b": "2"})) }],
            ),
        ] {
            let had = !before.is_empty();
            set(&mut before, &copy, &["metadata", "labels", "l"], "v");
            let mut object = copy.clone();
            apply(&before, &mut object);
            assert_eq!(object["metadata"]["labels"]["l"], "v", "{copy}");
            assert_eq!(object["metadata"]["labels"].get("b").is_some(), had);
        }
        let mut edits = Vec::new();
        set(&mut edits, &json!({"metadata": {"labels": {"l": "v"}}}), &["metadata", "labels", "l"], "v");
        assert!(edits.is_empty());
    }

    fn document() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![(0i64..3).prop_map(Value::from), Just(Value::Null), "[ab]".prop_map(Value::from)];
        let value = leaf.prop_recursive(3, 12, 3, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                prop::collection::btree_map("[xyz]", inner, 0..3).prop_map(|map| json!(map)),
            ]
        });
        prop::collection::btree_map("[abc]", value, 0..4).prop_map(|map| json!(map))
    }

    proptest! {
        #[test]
        fn a_copy_that_nobody_else_touched_becomes_exactly_what_is_wanted(last in document(), next in document(), wanted in document()) {
            prop_assert_eq!(&edited(&[&last], &wanted, &last), &wanted);
            prop_assert_eq!(&edited(&[&last, &next], &wanted, &next), &wanted);
            prop_assert!(edits(&[&wanted], &wanted, &last).is_empty());
        }
    }

    #[test]
    fn a_guard_is_about_one_object() {
        let guard = Guard::Mark { key: "example.com/mark", value: "m".into(), uid: "u".into() };
        let object = |uid: &str| json!({"metadata": {"uid": uid, "annotations": {"example.com/mark": "m"}}});
        assert!(guard.holds(&object("u")) && !guard.holds(&object("another")));
    }
}
