//! JSON merge patches (RFC 7386): make one from two documents, apply one to a document.

use serde_json::{Map, Value};

/// The merge patch that turns `from` into `to`; `{}` when they are equal.
///
/// Arrays are replaced whole, keys that vanished become `null`, numbers are compared by their literal, so `1` and
/// `1.0` differ. An explicit `null` in `to` becomes a `null` in the patch, which removes the key when applied: merge
/// patches cannot express it. When either side is not an object, the patch is `to` itself.
pub fn diff(from: &Value, to: &Value) -> Value {
    match (from, to) {
        (Value::Object(from), Value::Object(to)) => Value::Object(diff_maps(from, to)),
        _ if from == to => Value::Object(Map::new()),
        _ => to.clone(),
    }
}

fn diff_maps(from: &Map<String, Value>, to: &Map<String, Value>) -> Map<String, Value> {
    let mut patch = Map::new();
    for key in from.keys().filter(|key| !to.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    for (key, new) in to {
        match (from.get(key), new) {
            (Some(Value::Object(old)), Value::Object(new)) => {
                let inner = diff_maps(old, new);
                if !inner.is_empty() {
                    patch.insert(key.clone(), Value::Object(inner));
                }
            }
            (Some(old), new) if old == new => {}
            _ => {
                patch.insert(key.clone(), new.clone());
            }
        }
    }
    patch
}

/// Applies a merge patch in place.
///
/// ```
/// use carrick_json::merge;
/// use serde_json::json;
///
/// let (old, new) = (json!({"a": 1, "b": {"c": 2}}), json!({"b": {"c": 3}}));
/// let patch = merge::diff(&old, &new);
/// assert_eq!(patch, json!({"a": null, "b": {"c": 3}}));
///
/// let mut document = old;
/// merge::apply(&mut document, &patch);
/// assert_eq!(document, new);
/// ```
pub fn apply(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    if let Value::Object(target) = target {
        for (key, change) in patch {
            if change.is_null() {
                target.remove(key);
            } else {
                apply(target.entry(key.as_str()).or_insert(Value::Null), change);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn diff_yields_the_smallest_merge_patch() {
        for (from, to, want) in [
            (json!({"a": 1}), json!({"a": 1}), json!({})),
            (json!({"a": 1}), json!({"a": 1.0}), json!({"a": 1.0})),
            (json!({"a": 1, "b": 2}), json!({"a": 1}), json!({"b": null})),
            (json!({}), json!({"a": {"b": []}}), json!({"a": {"b": []}})),
            (json!({"a": [1, 2]}), json!({"a": [1]}), json!({"a": [1]})),
            (json!({"a": {"b": 1, "c": 2}}), json!({"a": {"b": 1, "c": 3}}), json!({"a": {"c": 3}})),
            (json!({"a": {"b": 1}}), json!({"a": {}}), json!({"a": {"b": null}})),
            (json!({"a": {"b": 1}}), json!({"a": "x"}), json!({"a": "x"})),
            (json!({"a": "x"}), json!({"a": {"b": 1}}), json!({"a": {"b": 1}})),
            (json!({}), json!({"a": null}), json!({"a": null})),
            (json!({"a": null}), json!({"a": null}), json!({})),
            (json!({"a": null}), json!({}), json!({"a": null})),
            (json!([1]), json!([1]), json!({})),
            (json!([1]), json!([2]), json!([2])),
        ] {
            assert_eq!(diff(&from, &to), want, "{from} -> {to}");
        }
    }

    #[test]
    fn apply_follows_the_examples_of_the_rfc() {
        for (target, patch, want) in [
            (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "b"}), json!({"b": "c"}), json!({"a": "b", "b": "c"})),
            (json!({"a": "b"}), json!({"a": null}), json!({})),
            (json!({"a": "b", "b": "c"}), json!({"a": null}), json!({"b": "c"})),
            (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "c"}), json!({"a": ["b"]}), json!({"a": ["b"]})),
            (json!({"a": {"b": "c"}}), json!({"a": {"b": "d", "c": null}}), json!({"a": {"b": "d"}})),
            (json!({"a": [{"b": "c"}]}), json!({"a": [1]}), json!({"a": [1]})),
            (json!(["a", "b"]), json!(["c", "d"]), json!(["c", "d"])),
            (json!({"a": "b"}), json!(["c"]), json!(["c"])),
            (json!({"a": "foo"}), json!(null), json!(null)),
            (json!({"e": null}), json!({"a": 1}), json!({"e": null, "a": 1})),
            (json!([1, 2]), json!({"a": "b", "c": null}), json!({"a": "b"})),
            (json!({}), json!({"a": {"bb": {"ccc": null}}}), json!({"a": {"bb": {}}})),
        ] {
            let mut got = target.clone();
            apply(&mut got, &patch);
            assert_eq!(got, want, "{target} + {patch}");
        }
    }

    fn without_nulls() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            any::<bool>().prop_map(Value::from),
            (-3i64..3).prop_map(Value::from),
            "[ab]?".prop_map(Value::from)
        ];
        let value = leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                prop::collection::btree_map("[a-d]", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        });
        prop::collection::btree_map("[a-d]", value, 0..5).prop_map(|map| Value::Object(map.into_iter().collect()))
    }

    proptest! {
        #[test]
        fn applying_the_difference_gives_the_goal(from in without_nulls(), to in without_nulls()) {
            let mut got = from.clone();
            apply(&mut got, &diff(&from, &to));
            prop_assert_eq!(got, to);
        }

        #[test]
        fn equal_documents_have_an_empty_difference(document in without_nulls()) {
            prop_assert_eq!(diff(&document, &document), json!({}));
        }

        #[test]
        fn the_difference_is_empty_only_for_equal_documents(from in without_nulls(), to in without_nulls()) {
            prop_assert_eq!(diff(&from, &to) == json!({}), from == to);
        }
    }
}
