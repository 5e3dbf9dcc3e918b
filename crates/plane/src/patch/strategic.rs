//! Strategic merge patch for built-in kinds: maps merge, lists replace unless they have a merge key.

use serde_json::{Map, Value};

use crate::go;
use crate::status::Status;

/// Lists that merge, by field name, and the key field of their items.
const KEYED: &[(&str, &str)] = &[
    ("ownerReferences", "uid"),
    ("secrets", "name"),
    ("imagePullSecrets", "name"),
    ("conditions", "type"),
    ("containers", "name"),
    ("initContainers", "name"),
    ("ephemeralContainers", "name"),
    ("volumes", "name"),
    ("env", "name"),
    ("volumeMounts", "mountPath"),
    ("volumeDevices", "devicePath"),
    ("hostAliases", "ip"),
    ("topologySpreadConstraints", "topologyKey"),
];

#[derive(Clone, Copy)]
enum Merge {
    Replace,
    Set,
    Key(&'static str),
}

fn merge_rule(path: &str, field: &str) -> Merge {
    // Ports merge by a different field in services and in containers.
    if field == "ports" {
        let in_container = path.contains("containers") || path.contains("Containers");
        return Merge::Key(if in_container { "containerPort" } else { "port" });
    }
    // A namespace's own finalizers are replaced.
    if field == "finalizers" {
        return if path == "metadata" { Merge::Set } else { Merge::Replace };
    }
    KEYED.iter().find(|(name, _)| *name == field).map_or(Merge::Replace, |(_, key)| Merge::Key(key))
}

/// Applies a strategic merge patch in place.
pub(super) fn apply(target: &mut Value, patch: &Value) -> Result<(), Status> {
    merge_map(target, patch, "")
}

fn merge_map(target: &mut Value, patch: &Value, place: &str) -> Result<(), Status> {
    let (Value::Object(map), Value::Object(changes)) = (&mut *target, patch) else {
        *target = without_directives(patch);
        return Ok(());
    };
    match changes.get("$patch") {
        None => {}
        Some(Value::String(text)) if text == "replace" => {
            *map = changes.iter().filter(|(key, _)| *key != "$patch").map(|(k, v)| (k.clone(), v.clone())).collect();
            return Ok(());
        }
        Some(Value::String(text)) if text == "delete" => {
            map.clear();
            return Ok(());
        }
        Some(other) => {
            let message = format!("unknown patch type: {} in map: {}", go::plain(other), go::plain(patch));
            return Err(Status::new(500, "", message));
        }
    }
    retain_keys(map, changes)?;
    for (key, value) in changes {
        if let Some(field) = key.strip_prefix("$deleteFromPrimitiveList/") {
            if let (Some(Value::Array(list)), Some(gone)) = (map.get_mut(field), value.as_array()) {
                list.retain(|item| !gone.contains(item));
            }
        } else if key == "$retainKeys" || key.starts_with("$setElementOrder/") {
            // Handled before and after this loop.
        } else if value.is_null() {
            map.remove(key);
        } else if let (Some(below @ Value::Array(_)), Value::Array(items)) = (map.get_mut(key), value) {
            check_order(changes, key, items)?;
            merge_list(below, items, place, key)?;
        } else if let Some(below) = map.get_mut(key) {
            let deeper = if place.is_empty() { key.clone() } else { format!("{place}.{key}") };
            merge_map(below, value, &deeper)?;
        } else {
            if let Value::Array(items) = value {
                check_order(changes, key, items)?;
            }
            // A missing value cannot be replaced or deleted.
            if value.get("$patch").is_none() {
                map.insert(key.clone(), without_directives(value));
            }
        }
    }
    for (key, order) in changes {
        if let Some(field) = key.strip_prefix("$setElementOrder/")
            && let (Some(Value::Array(list)), Some(order)) = (map.get_mut(field), order.as_array())
        {
            sort_by_order(list, order, merge_rule(place, field));
        }
    }
    Ok(())
}

/// Drops keys that `$retainKeys` does not list.
fn retain_keys(map: &mut Map<String, Value>, patch: &Map<String, Value>) -> Result<(), Status> {
    let Some(kept) = patch.get("$retainKeys") else { return Ok(()) };
    let names = |key: &String| kept.as_array().is_some_and(|kept| kept.iter().any(|name| name == key.as_str()));
    let mut sent = patch.iter().filter(|(key, value)| !key.starts_with('$') && !value.is_null());
    if !kept.is_array() || sent.any(|(key, _)| !names(key)) {
        return Err(Status::bad_request("invalid patch format of retainKeys"));
    }
    map.retain(|key, _| names(key));
    Ok(())
}

/// The items of a patch must be in the order that the patch demands.
fn check_order(patch: &Map<String, Value>, field: &str, items: &[Value]) -> Result<(), Status> {
    let Some(Value::Array(order)) = patch.get(&format!("$setElementOrder/{field}")) else { return Ok(()) };
    let mut rest = order.iter();
    let scalars = items.iter().all(|item| !item.is_object());
    if !scalars || items.iter().all(|item| rest.any(|next| next == item)) {
        return Ok(());
    }
    let shown = |list: &[Value]| go::plain(&Value::Array(list.to_vec()));
    let message = format!(
        "The order in patch list:\n{}\n doesn't match $setElementOrder list:\n{}\n",
        shown(items),
        shown(order)
    );
    Err(Status::new(500, "", message))
}

/// What a patch adds where there was no value: directives and nulls have no effect there.
fn without_directives(value: &Value) -> Value {
    let directive = |key: &str| {
        key == "$retainKeys" || key.starts_with("$setElementOrder/") || key.starts_with("$deleteFromPrimitiveList/")
    };
    match value {
        Value::Object(map) if map.contains_key("$patch") => Value::Object(Map::new()),
        Value::Object(map) => {
            let kept = map.iter().filter(|(key, value)| !directive(key) && !value.is_null());
            Value::Object(kept.map(|(key, value)| (key.clone(), without_directives(value))).collect())
        }
        Value::Array(list) => list.iter().filter(|item| item.get("$patch").is_none()).map(without_directives).collect(),
        other => other.clone(),
    }
}

fn merge_list(target: &mut Value, items: &[Value], path: &str, field: &str) -> Result<(), Status> {
    let Value::Array(list) = target else {
        *target = Value::Array(items.to_vec());
        return Ok(());
    };
    match merge_rule(path, field) {
        Merge::Replace => *list = items.iter().filter(|item| item.get("$patch").is_none()).cloned().collect(),
        Merge::Set => {
            for item in items {
                if !list.contains(item) {
                    list.push(item.clone());
                }
            }
        }
        Merge::Key(key) => merge_keyed(list, items, key, &format!("{path}.{field}"))?,
    }
    Ok(())
}

fn merge_keyed(list: &mut Vec<Value>, items: &[Value], key: &str, path: &str) -> Result<(), Status> {
    if items.iter().any(|item| item["$patch"] == "replace") {
        *list = items.iter().filter(|item| item.get("$patch").is_none()).cloned().collect();
        return Ok(());
    }
    let mut fresh = Vec::new();
    for item in items {
        let place = list.iter().position(|found| found[key] == item[key]);
        match (item["$patch"].as_str(), place) {
            (Some("delete"), Some(index)) => {
                list.remove(index);
            }
            (Some("delete"), None) => {}
            (_, Some(index)) => merge_map(&mut list[index], item, path)?,
            (_, None) => fresh.push(item.clone()),
        }
    }
    // New elements go first unless the patch gives an order.
    fresh.append(list);
    *list = fresh;
    Ok(())
}

fn sort_by_order(list: &mut [Value], order: &[Value], rule: Merge) {
    let place = |item: &Value| {
        let same = |wanted: &Value| match rule {
            Merge::Key(key) => wanted[key] == item[key],
            Merge::Set | Merge::Replace => wanted == item,
        };
        order.iter().position(same).unwrap_or(usize::MAX)
    };
    list.sort_by_key(place);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lists_merge_by_key_and_maps_by_name() {
        let cases = [
            (
                json!({"data": {"a": "1", "b": "2"}}),
                json!({"data": {"a": null, "c": "3"}}),
                json!({"data": {"b": "2", "c": "3"}}),
            ),
            (
                json!({"metadata": {"finalizers": ["a"]}}),
                json!({"metadata": {"finalizers": ["b"]}}),
                json!({"metadata": {"finalizers": ["a", "b"]}}),
            ),
            (
                json!({"metadata": {"finalizers": ["a", "b"]}}),
                json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}}),
                json!({"metadata": {"finalizers": ["b"]}}),
            ),
            (
                json!({"metadata": {"ownerReferences": [{"uid": "1", "name": "x"}]}}),
                json!({"metadata": {"ownerReferences": [{"uid": "2"}, {"uid": "1", "name": "y"}]}}),
                json!({"metadata": {"ownerReferences": [{"uid": "2"}, {"uid": "1", "name": "y"}]}}),
            ),
            (
                json!({"metadata": {"ownerReferences": [{"uid": "1"}, {"uid": "2"}]}}),
                json!({"metadata": {"ownerReferences": [{"uid": "1", "$patch": "delete"}]}}),
                json!({"metadata": {"ownerReferences": [{"uid": "2"}]}}),
            ),
            (
                json!({"spec": {"finalizers": ["a"]}}),
                json!({"spec": {"finalizers": []}}),
                json!({"spec": {"finalizers": []}}),
            ),
            (json!({"rules": [1, 2]}), json!({"rules": [3]}), json!({"rules": [3]})),
            (
                json!({"data": {"a": "1"}}),
                json!({"data": {"$patch": "replace", "b": "2"}}),
                json!({"data": {"b": "2"}}),
            ),
        ];
        for (mut object, patch, expected) in cases {
            apply(&mut object, &patch).unwrap();
            assert_eq!(object, expected, "{patch}");
        }
    }

    #[test]
    fn an_unknown_kind_of_patch_is_refused_and_an_unknown_directive_is_a_field_like_any_other() {
        let status = apply(&mut json!({}), &json!({"$patch": "frobnicate"})).unwrap_err();
        assert_eq!((status.code, status.message.contains("unknown patch type: frobnicate")), (500, true));
        let mut object = json!({});
        apply(&mut object, &json!({"$frobnicate": 1})).unwrap();
        assert_eq!(object, json!({"$frobnicate": 1}));
    }
}
