//! Ownership of fields: `metadata.managedFields`.

use serde_json::{Value, json};

use super::fields::{self, Node, Path, Paths};
use super::{Scope, WriteOptions, now, rules};

/// One entry of `managedFields`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Entry {
    pub(super) manager: String,
    pub(super) operation: String,
    pub(super) api_version: String,
    pub(super) subresource: String,
    pub(super) time: String,
    pub(super) paths: Paths,
}

impl Entry {
    pub(super) fn is(&self, manager: &str, operation: &str, api_version: &str, subresource: &str) -> bool {
        // What a manager applies is one set, whichever version it used before.
        let same_version = operation == "Apply" || self.api_version == api_version;
        self.manager == manager && self.operation == operation && same_version && self.subresource == subresource
    }
}

/// The entries of an object.
pub(super) fn entries(object: &Value) -> Vec<Entry> {
    let list = object["metadata"]["managedFields"].as_array().into_iter().flatten();
    list.filter(|entry| entry.as_object().is_some_and(|map| !map.is_empty()))
        .map(|entry| {
            let text = |key: &str| entry[key].as_str().unwrap_or_default().to_owned();
            Entry {
                manager: text("manager"),
                operation: text("operation"),
                api_version: text("apiVersion"),
                subresource: text("subresource"),
                time: text("time"),
                paths: fields::decode(&entry["fieldsV1"]),
            }
        })
        .collect()
}

/// Writes entries into an object; empty ones are dropped.
pub(super) fn set_entries(object: &mut Value, mut entries: Vec<Entry>) {
    entries.retain(|entry| !entry.paths.is_empty());
    // Kubernetes keeps applied entries first, then updates by time.
    entries.sort_by(|a, b| {
        (a.operation != "Apply", &a.time, &a.manager).cmp(&(b.operation != "Apply", &b.time, &b.manager))
    });
    if entries.is_empty() {
        super::create::remove_meta(object, "managedFields");
        return;
    }
    let list: Vec<Value> = entries
        .into_iter()
        .map(|entry| {
            let mut value = json!({
                "manager": entry.manager, "operation": entry.operation, "apiVersion": entry.api_version,
                "fieldsType": "FieldsV1", "fieldsV1": fields::encode(&entry.paths),
            });
            if !entry.time.is_empty() {
                value["time"] = entry.time.into();
            }
            if !entry.subresource.is_empty() {
                value["subresource"] = entry.subresource.into();
            }
            value
        })
        .collect();
    object["metadata"]["managedFields"] = Value::Array(list);
}

/// Whether a client asks to forget all ownership.
fn is_reset(object: &Value) -> bool {
    let list = object["metadata"]["managedFields"].as_array();
    list.is_some_and(|list| list.is_empty() || (list.len() == 1 && list[0] == json!({})))
}

/// Whoever wrote an object whose fields have no owners.
pub(super) fn before_first_apply(scope: &Scope, object: &Value) -> Option<Entry> {
    let schema = scope.resource.version(&scope.version).and_then(|version| version.schema.as_deref());
    let paths: Paths = fields::flatten(object, schema, scope.resource.is_custom()).into_keys().collect();
    let unowned = |path: &Path| path[0] == "f:status" && scope.version().is_ok_and(|version| version.status);
    let paths: Paths = paths.into_iter().filter(|path| !unowned(path)).collect();
    (!paths.is_empty()).then(|| Entry {
        manager: "before-first-apply".into(),
        operation: "Update".into(),
        api_version: scope.api_version(),
        subresource: String::new(),
        time: now(),
        paths,
    })
}

/// Records what an update, patch or create changed: the writer owns it now and nobody else does.
pub(super) fn written(
    scope: &Scope,
    old: Option<&Value>,
    object: &mut Value,
    options: &WriteOptions,
    subresource: &str,
) {
    let schema = scope.resource.version(&scope.version).and_then(|version| version.schema.as_deref());
    let custom = scope.resource.is_custom();
    let untracked = |object: &Value| object["metadata"]["managedFields"].as_array().is_none_or(Vec::is_empty);
    if old.is_some_and(untracked) && untracked(object) {
        // Nobody kept track so far, and only the first apply begins with it.
        super::create::remove_meta(object, "managedFields");
        return;
    }
    let mut known = match old {
        None => Vec::new(),
        Some(_) if is_reset(object) => Vec::new(),
        Some(old) => {
            let sent = entries(object);
            if sent.is_empty() { entries(old) } else { sent }
        }
    };
    let empty = Value::Null;
    let (changed, removed) = {
        let before = fields::flatten(old.unwrap_or(&empty), schema, custom);
        let mut after = fields::flatten(object, schema, custom);
        let unowned = rules::set_by_server(&scope.resource, old.is_none());
        after.retain(|path, _| !unowned.iter().any(|field| path[0].strip_prefix("f:") == Some(field)));
        let differs = |path: &Path, node: &Node<'_>| before.get(path) != Some(node);
        let changed: Paths =
            after.iter().filter(|(path, node)| differs(path, node)).map(|(path, _)| path.clone()).collect();
        let kept: Paths = after.into_keys().collect();
        let removed: Paths = before.into_keys().filter(|path| !kept.contains(path)).collect();
        (changed, removed)
    };
    for entry in &mut known {
        entry.paths.retain(|path| !changed.contains(path) && !removed.contains(path));
    }
    let api_version = scope.api_version();
    let manager = options.manager.as_str();
    if !changed.is_empty() && !manager.is_empty() {
        let own = known.iter_mut().find(|entry| entry.is(manager, "Update", &api_version, subresource));
        if let Some(entry) = own {
            entry.paths.extend(changed);
            entry.time = now();
        } else {
            known.push(Entry {
                manager: manager.to_owned(),
                operation: "Update".into(),
                api_version,
                subresource: subresource.to_owned(),
                time: now(),
                paths: changed,
            });
        }
    }
    set_entries(object, known);
}
