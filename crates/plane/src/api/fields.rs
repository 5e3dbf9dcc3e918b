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

/// Maps of built-in kinds that are one field themselves; other objects there are only the sum of their fields.
const BUILTIN_MAPS: [&str; 6] = ["annotations", "binaryData", "data", "labels", "matchLabels", "stringData"];

/// What sits at a path.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Node<'a> {
    /// A value that is owned as a whole.
    Leaf(&'a Value),
    /// A map or an item of a keyed list.
    Container,
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

/// The values of the key fields of an item; a default counts where a key is left out.
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

/// What a configuration claims: its leaves, the items of its keyed lists and sets, the entries of its maps, and what is empty.
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

fn claim(value: &Value, schema: Option<&Schema>, custom: bool, field: &str, path: Path, paths: &mut Paths) {
    match value {
        Value::Object(map) if !map.is_empty() && !schema.is_some_and(|schema| schema.atomic) => {
            for (key, child) in map {
                let mut deeper = path.clone();
                deeper.push(format!("f:{key}"));
                let own = matches!(key.as_str(), "apiVersion" | "kind" | "metadata");
                let declared = match schema {
                    Some(schema) => schema.properties.contains_key(key) || (schema.embedded && own),
                    None => !custom && !BUILTIN_MAPS.contains(&field),
                };
                if !declared {
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
                if item.is_object() {
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

/// Everything that can be owned in an object.
pub(super) fn flatten<'a>(object: &'a Value, schema: Option<&Schema>, custom: bool) -> BTreeMap<Path, Node<'a>> {
    let mut nodes = BTreeMap::new();
    let Some(map) = object.as_object() else { return nodes };
    for (key, value) in map {
        match key.as_str() {
            "apiVersion" | "kind" => {}
            "metadata" => {
                for (name, value) in value.as_object().into_iter().flatten() {
                    if !UNOWNED.contains(&name.as_str()) {
                        let path = vec!["f:metadata".to_owned(), format!("f:{name}")];
                        walk(value, None, false, name, path, &mut nodes);
                    }
                }
            }
            _ => {
                let child = schema.and_then(|schema| schema.properties.get(key).or(schema.additional.as_deref()));
                walk(value, child, custom, key, vec![format!("f:{key}")], &mut nodes);
            }
        }
    }
    nodes
}

fn walk<'a>(
    value: &'a Value,
    schema: Option<&Schema>,
    custom: bool,
    field: &str,
    path: Path,
    nodes: &mut BTreeMap<Path, Node<'a>>,
) {
    match value {
        Value::Object(map) if !map.is_empty() && !schema.is_some_and(|schema| schema.atomic) => {
            for (key, child) in map {
                let below = schema.and_then(|schema| schema.properties.get(key).or(schema.additional.as_deref()));
                let mut deeper = path.clone();
                deeper.push(format!("f:{key}"));
                walk(child, below, custom, key, deeper, nodes);
            }
            // Of the structs of Kubernetes' own types only those that may be absent are owned as a whole.
            let optional = path.get(1).is_some_and(|above| above == "f:conversion");
            if custom || BUILTIN_MAPS.contains(&field) || optional {
                nodes.insert(path, Node::Container);
            }
        }
        Value::Array(list) if !list.is_empty() => {
            let kind = list_type(schema, custom, field);
            if kind == ListType::Atomic {
                nodes.insert(path, Node::Leaf(value));
                return;
            }
            let items = schema.and_then(|schema| schema.items.as_deref());
            for item in list {
                let Some(element) = item_element(&kind, items, item) else { continue };
                let mut deeper = path.clone();
                deeper.push(element);
                if let (Value::Object(map), ListType::Map(_)) = (item, &kind) {
                    for (key, child) in map {
                        let below =
                            items.and_then(|schema| schema.properties.get(key).or(schema.additional.as_deref()));
                        let mut inner = deeper.clone();
                        inner.push(format!("f:{key}"));
                        walk(child, below, custom, key, inner, nodes);
                    }
                    nodes.insert(deeper, Node::Container);
                } else {
                    nodes.insert(deeper, Node::Leaf(item));
                }
            }
            if custom || field == "finalizers" || field == "ownerReferences" {
                nodes.insert(path, Node::Container);
            }
        }
        _ => {
            nodes.insert(path, Node::Leaf(value));
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
        let paths: Paths = flatten(&object, Some(&schema), true).into_keys().collect();
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
}
