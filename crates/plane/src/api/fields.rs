//! Sets of field paths, as `managedFields` keeps them.
//!
//! A path is a list of elements: `f:<name>` a field, `k:{...}` an item of a keyed list, `v:<value>` an item of a set.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use crate::schema::{ListType, Schema};

pub(super) type Path = Vec<String>;
pub(super) type Paths = BTreeSet<Path>;

/// Fields of metadata that nobody owns.
const UNOWNED: [&str; 10] = [
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "name",
    "namespace",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// Maps of built-in kinds that are owned as a field themselves; for other objects only their members are owned.
const BUILTIN_MAPS: [&str; 6] = ["annotations", "binaryData", "data", "labels", "matchLabels", "stringData"];

/// Structs of Kubernetes' own types that are owned as a whole.
const BUILTIN_ATOMS: [&str; 4] = ["involvedObject", "regarding", "related", "roleRef"];

/// The changes that a write makes to fields that can be owned.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Changes {
    /// Fields that are new or have another value.
    pub(super) set: Paths,
    /// Fields that are gone.
    pub(super) removed: Paths,
}

/// How a list of this field is identified.
pub(super) fn list_type(schema: Option<&Schema>, custom: bool, field: &str) -> ListType {
    match schema {
        Some(schema) => schema.list.clone(),
        None => match field {
            "finalizers" => ListType::Set,
            "ownerReferences" => ListType::Map(vec!["uid".into()]),
            _ if custom => ListType::Atomic,
            "containers" | "initContainers" | "volumes" | "env" | "imagePullSecrets" | "secrets" => {
                ListType::Map(vec!["name".into()])
            }
            "conditions" => ListType::Map(vec!["type".into()]),
            _ => ListType::Atomic,
        },
    }
}

/// The values of the key fields of an item, with defaults for keys that are left out.
pub(super) fn keys_of(keys: &[String], items: Option<&Schema>, item: &Value) -> Map<String, Value> {
    let default =
        |key: &String| items.and_then(|items| items.properties.get(key)).and_then(|child| child.default.clone());
    keys.iter().filter_map(|key| Some((key.clone(), item.get(key).cloned().or_else(|| default(key))?))).collect()
}

/// The element of an item in a keyed list or a set.
pub(super) fn item_element(list: &ListType, items: Option<&Schema>, item: &Value) -> Option<String> {
    match list {
        ListType::Atomic => None,
        ListType::Set => Some(format!("v:{item}")),
        ListType::Map(keys) => Some(format!("k:{}", Value::Object(keys_of(keys, items, item)))),
    }
}

/// The paths that a configuration claims: its leaves, the items of its keyed lists and sets, the entries of its maps, and empty values.
pub(super) fn claimed(config: &Value, schema: Option<&Schema>, custom: bool) -> Paths {
    let mut paths = Paths::new();
    for (key, value) in config.as_object().into_iter().flatten() {
        let path = vec![format!("f:{key}")];
        match key.as_str() {
            "apiVersion" | "kind" => {}
            "metadata" => {
                for (name, value) in value.as_object().into_iter().flatten() {
                    if !UNOWNED.contains(&name.as_str()) {
                        claim(value, None, false, name, vec![path[0].clone(), format!("f:{name}")], &mut paths);
                    }
                }
            }
            _ => claim(value, below(schema, key), custom, key, path, &mut paths),
        }
    }
    paths
}

fn below<'a>(schema: Option<&'a Schema>, key: &str) -> Option<&'a Schema> {
    schema.and_then(|schema| schema.properties.get(key).or(schema.additional.as_deref()))
}

/// Whether a map is owned as a whole.
fn is_atomic(schema: Option<&Schema>, custom: bool, field: &str) -> bool {
    schema.is_some_and(|schema| schema.atomic) || (!custom && BUILTIN_ATOMS.contains(&field))
}

/// Whether a field of an object is declared by its type.
fn is_declared(schema: Option<&Schema>, custom: bool, field: &str, key: &str) -> bool {
    let own = matches!(key, "apiVersion" | "kind" | "metadata");
    match schema {
        Some(schema) => schema.properties.contains_key(key) || (schema.embedded && own),
        None => !custom && !BUILTIN_MAPS.contains(&field),
    }
}

/// A set of paths with all declared fields that lead to them.
pub(super) fn with_parents(paths: &Paths, schema: Option<&Schema>, custom: bool) -> Paths {
    let mut all = paths.clone();
    for path in paths {
        let (mut schema, mut custom, mut field) = (schema, custom, "");
        for (depth, element) in path.iter().enumerate() {
            let Some(key) = element.strip_prefix("f:") else {
                schema = schema.and_then(|schema| schema.items.as_deref());
                continue;
            };
            let declared = depth == 0 || is_declared(schema, custom, field, key);
            if declared && depth + 1 < path.len() {
                all.insert(path[..=depth].to_vec());
            }
            if depth == 0 && key == "metadata" {
                (schema, custom, field) = (None, false, "metadata");
            } else {
                (schema, field) = (below(schema, key), key);
            }
        }
    }
    all
}

fn claim(value: &Value, schema: Option<&Schema>, custom: bool, field: &str, path: Path, paths: &mut Paths) {
    match value {
        Value::Object(map) if !map.is_empty() && !is_atomic(schema, custom, field) => {
            for (key, child) in map {
                let mut deeper = path.clone();
                deeper.push(format!("f:{key}"));
                let own = matches!(key.as_str(), "apiVersion" | "kind" | "metadata");
                if !is_declared(schema, custom, field, key) {
                    paths.insert(deeper.clone());
                }
                let inner = custom && !(own && schema.is_some_and(|schema| schema.embedded));
                claim(child, below(schema, key), inner, key, deeper, paths);
            }
        }
        Value::Array(list) => {
            let kind = list_type(schema, custom, field);
            let items = schema.and_then(|schema| schema.items.as_deref());
            for item in list {
                let Some(element) = item_element(&kind, items, item) else { continue };
                let mut deeper = path.clone();
                deeper.push(element);
                if item.is_object() && field != "ownerReferences" {
                    claim(item, items, custom, field, deeper.clone(), paths);
                }
                paths.insert(deeper);
            }
            if kind == ListType::Atomic {
                paths.insert(path);
            }
        }
        _ => {
            paths.insert(path);
        }
    }
}

/// How two states of an object differ in what can be owned.
pub(super) fn compare(old: &Value, new: &Value, schema: Option<&Schema>, custom: bool) -> Changes {
    let mut changes = Changes::default();
    for key in keys(Some(old), Some(new)) {
        let (before, after) = (old.get(key), new.get(key));
        match key.as_str() {
            "apiVersion" | "kind" => {}
            // Most of an object stays the same at a write, and paths to it would be made for nothing.
            _ if before == after => {}
            "metadata" => {
                for name in keys(before, after).into_iter().filter(|name| !UNOWNED.contains(&name.as_str())) {
                    let (before, after) = (before.and_then(|map| map.get(name)), after.and_then(|map| map.get(name)));
                    if before == after {
                        continue;
                    }
                    let path = vec!["f:metadata".to_owned(), format!("f:{name}")];
                    let spot = FieldPosition { schema: None, custom: false, field: name, path };
                    spot.compare(before, after, &mut changes);
                }
            }
            _ => {
                let spot =
                    FieldPosition { schema: below(schema, key), custom, field: key, path: vec![format!("f:{key}")] };
                spot.compare(before, after, &mut changes);
            }
        }
    }
    changes
}

/// The keys of two objects, each once.
fn keys<'a>(old: Option<&'a Value>, new: Option<&'a Value>) -> BTreeSet<&'a String> {
    [old, new].into_iter().flatten().filter_map(Value::as_object).flat_map(Map::keys).collect()
}

fn is_empty(value: &Value) -> bool {
    value.as_object().is_some_and(Map::is_empty) || value.as_array().is_some_and(Vec::is_empty)
}

/// A place in an object.
struct FieldPosition<'a> {
    schema: Option<&'a Schema>,
    custom: bool,
    field: &'a str,
    path: Path,
}

impl<'a> FieldPosition<'a> {
    fn down(&self, element: String, schema: Option<&'a Schema>, field: &'a str) -> Self {
        let mut path = self.path.clone();
        path.push(element);
        FieldPosition { schema, custom: self.custom, field, path }
    }

    fn compare(&self, old: Option<&'a Value>, new: Option<&'a Value>, changes: &mut Changes) {
        // Kubernetes' own types treat empty values as absent.
        let (old, new) =
            (old.filter(|old| self.custom || !is_empty(old)), new.filter(|new| self.custom || !is_empty(new)));
        if old.is_none() && new.is_none() {
            return;
        }
        let has = |value: Option<&Value>| match value {
            Some(Value::Object(map)) => !map.is_empty(),
            Some(Value::Array(list)) => !list.is_empty(),
            _ => false,
        };
        let is_map = |value: Option<&Value>| value.is_none_or(|value| value.is_object() || value.is_null());
        let is_list = |value: Option<&Value>| value.is_none_or(|value| value.is_array() || value.is_null());
        let kind = list_type(self.schema, self.custom, self.field);
        let atomic = is_atomic(self.schema, self.custom, self.field);
        // Empty before and after counts as unchanged.
        if !has(old) && !has(new) {
            self.compare_whole(old, new, changes);
        } else if !atomic && is_map(old) && is_map(new) {
            for key in keys(old, new) {
                let (before, after) = (old.and_then(|map| map.get(key)), new.and_then(|map| map.get(key)));
                if before != after {
                    self.down(format!("f:{key}"), below(self.schema, key), key).compare(before, after, changes);
                }
            }
            // Of the structs in Kubernetes' own types, only those that may be absent are owned as a whole.
            let optional = self.path.get(1).is_some_and(|above| above == "f:conversion");
            if self.custom || BUILTIN_MAPS.contains(&self.field) || optional {
                self.compare_container(old, new, changes);
            }
        } else if kind != ListType::Atomic && is_list(old) && is_list(new) {
            self.compare_items(&kind, old, new, changes);
            if self.custom || matches!(self.field, "finalizers" | "ownerReferences") {
                self.compare_container(old, new, changes);
            }
        } else {
            self.compare_whole(old, new, changes);
        }
    }

    fn compare_items(&self, kind: &ListType, old: Option<&'a Value>, new: Option<&'a Value>, changes: &mut Changes) {
        let items = self.schema.and_then(|schema| schema.items.as_deref());
        let named = |list: Option<&'a Value>| -> BTreeMap<String, &'a Value> {
            let list = list.and_then(Value::as_array).into_iter().flatten();
            list.filter_map(|item| Some((item_element(kind, items, item)?, item))).collect()
        };
        let (old, new) = (named(old), named(new));
        for element in old.keys().chain(new.keys()).collect::<BTreeSet<_>>() {
            let spot = self.down(element.clone(), items, "");
            let (before, after) = (old.get(element).copied(), new.get(element).copied());
            // An owner reference is identified by its UID, and the rest of it is owned as a whole.
            let whole = self.field == "ownerReferences" || items.is_some_and(|items| items.atomic);
            if whole || !matches!(kind, ListType::Map(_)) {
                spot.compare_whole(before, after, changes);
                continue;
            }
            for key in keys(before, after) {
                let (before, after) = (before.and_then(|map| map.get(key)), after.and_then(|map| map.get(key)));
                if before != after {
                    spot.down(format!("f:{key}"), below(items, key), key).compare(before, after, changes);
                }
            }
            spot.compare_container(before, after, changes);
        }
    }

    /// A value that is owned as a whole.
    fn compare_whole(&self, old: Option<&Value>, new: Option<&Value>, changes: &mut Changes) {
        if new.is_none() {
            changes.removed.insert(self.path.clone());
        } else if old != new {
            changes.set.insert(self.path.clone());
        }
    }

    /// A map or an item of a keyed list counts as changed only when it is added or removed.
    fn compare_container(&self, old: Option<&Value>, new: Option<&Value>, changes: &mut Changes) {
        if old.is_none() {
            changes.set.insert(self.path.clone());
        } else if new.is_none() {
            changes.removed.insert(self.path.clone());
        }
    }
}

#[derive(Default)]
struct Trie {
    member: bool,
    below: BTreeMap<String, Trie>,
}

impl Trie {
    fn insert(&mut self, path: &[String]) {
        match path.split_first() {
            Some((first, rest)) => self.below.entry(first.clone()).or_default().insert(rest),
            None => self.member = true,
        }
    }

    fn value(&self) -> Value {
        let mut map: Map<String, Value> = self.below.iter().map(|(key, trie)| (key.clone(), trie.value())).collect();
        // A path that is a member and has members below it is marked with a dot.
        if self.member && !map.is_empty() {
            map.insert(".".into(), json!({}));
        }
        Value::Object(map)
    }
}

/// The `fieldsV1` form of a set.
pub(super) fn encode(paths: &Paths) -> Value {
    let mut root = Trie::default();
    for path in paths {
        root.insert(path);
    }
    root.value()
}

/// The set a `fieldsV1` describes.
pub(super) fn decode(fields: &Value) -> Paths {
    let mut paths = Paths::new();
    collect(fields, &mut Vec::new(), &mut paths);
    paths
}

/// Whether a path is in the set that a `fieldsV1` describes.
pub(super) fn contains(fields: &Value, path: &Path) -> bool {
    let found = path.iter().try_fold(fields, |fields, element| fields.get(element));
    found.and_then(Value::as_object).is_some_and(|map| map.is_empty() || map.contains_key("."))
}

fn collect(fields: &Value, path: &mut Path, paths: &mut Paths) {
    let Some(map) = fields.as_object() else { return };
    if map.is_empty() && !path.is_empty() {
        paths.insert(path.clone());
    }
    for (element, below) in map {
        if element == "." {
            paths.insert(path.clone());
        } else {
            path.push(element.clone());
            collect(below, path, paths);
            path.pop();
        }
    }
}

/// `.spec.list[name="a"].size`, as conflicts are reported.
pub(super) fn display(path: &Path) -> String {
    let mut text = String::new();
    for element in path {
        if let Some(name) = element.strip_prefix("f:") {
            text.push('.');
            text.push_str(name);
        } else if let Some(keys) = element.strip_prefix("k:") {
            let keys: Value = serde_json::from_str(keys).unwrap_or(Value::Null);
            let pairs: Vec<String> =
                keys.as_object().into_iter().flatten().map(|(key, value)| format!("{key}={value}")).collect();
            text = format!("{text}[{}]", pairs.join(","));
        } else if let Some(value) = element.strip_prefix("v:") {
            text = format!("{text}[={value}]");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_survive_encoding() {
        let schema = Schema::compile(&json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
            "size": {"type": "integer"},
            "ports": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                      "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}, "port": {"type": "integer"}}}},
            "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
            "args": {"type": "array", "items": {"type": "string"}},
        }}}}))
        .unwrap();
        let object = json!({
            "apiVersion": "x.io/v1", "kind": "W", "metadata": {"name": "a", "labels": {"l": "1"}},
            "spec": {"size": 1, "ports": [{"name": "a", "port": 1}], "tags": ["t"], "args": ["x", "y"]},
        });
        let paths = compare(&json!({}), &object, Some(&schema), true).set;
        let encoded = encode(&paths);
        assert_eq!(
            encoded,
            json!({
                "f:metadata": {"f:labels": {".": {}, "f:l": {}}},
                "f:spec": {".": {}, "f:args": {}, "f:size": {}, "f:tags": {".": {}, "v:\"t\"": {}},
                    "f:ports": {".": {}, "k:{\"name\":\"a\"}": {".": {}, "f:name": {}, "f:port": {}}}},
            })
        );
        assert_eq!(decode(&encoded), paths);
        let shown: Vec<String> = paths.iter().map(display).collect();
        assert!(shown.contains(&".spec.ports[name=\"a\"].port".to_owned()), "{shown:?}");
    }

    #[test]
    fn containers_change_only_by_coming_and_going() {
        let schema = Schema::compile(&json!({"type": "object", "properties": {
            "limits": {"type": "object", "additionalProperties": {"type": "integer"}},
        }}))
        .unwrap();
        let changes = |old: Value, new: Value| {
            let Changes { set, removed } = compare(&old, &new, Some(&schema), true);
            (encode(&set), encode(&removed))
        };
        let (none, empty) = (json!({}), json!({"limits": {}}));
        let full = json!({"limits": {"cpu": 1}});
        assert_eq!(changes(none.clone(), full.clone()), (json!({"f:limits": {".": {}, "f:cpu": {}}}), json!({})));
        assert_eq!(changes(empty.clone(), full.clone()), (json!({"f:limits": {"f:cpu": {}}}), json!({})));
        assert_eq!(changes(full.clone(), empty.clone()), (json!({}), json!({"f:limits": {"f:cpu": {}}})));
        assert_eq!(changes(none, empty.clone()), (json!({"f:limits": {}}), json!({})));
        assert_eq!(changes(full, json!({})), (json!({}), json!({"f:limits": {".": {}, "f:cpu": {}}})));
    }
}
