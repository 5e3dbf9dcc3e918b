//! Ownership of fields: `metadata.managedFields`.

use serde_json::{Value, json};

use super::fields::{self, Changes, Path, Paths};
use super::object::remove_meta;
use super::scope::Scope;
use super::write::WriteOptions;
use crate::schema::Schema;
use crate::time::now;

/// One entry of `managedFields`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ManagedEntry {
    pub(super) manager: String,
    pub(super) operation: String,
    pub(super) api_version: String,
    pub(super) subresource: String,
    pub(super) time: String,
    pub(super) paths: Paths,
    /// The `fieldsV1` of an entry whose paths stay as they are; they have not been read then.
    pub(super) unread: Option<Value>,
}

impl ManagedEntry {
    pub(super) fn is(&self, manager: &str, operation: &str, api_version: &str, subresource: &str) -> bool {
        // Everything that a manager applies is one entry, whichever version it used before.
        let same_version = operation == "Apply" || self.api_version == api_version;
        self.manager == manager && self.operation == operation && same_version && self.subresource == subresource
    }

    fn order(&self) -> [&str; 5] {
        [&self.operation, &self.time, &self.manager, &self.api_version, &self.subresource]
    }
}

/// The entries of an object; none at all if one of them is invalid.
pub(super) fn entries(object: &Value) -> Vec<ManagedEntry> {
    let list = object["metadata"]["managedFields"].as_array().into_iter().flatten();
    let read: Option<Vec<ManagedEntry>> = list.map(entry).collect();
    read.unwrap_or_default()
}

fn is_valid(value: &Value) -> bool {
    matches!(value["operation"].as_str(), Some("Apply" | "Update"))
        && value["fieldsType"] == "FieldsV1"
        && value["apiVersion"].as_str().is_some_and(|version| !version.is_empty())
}

fn entry(value: &Value) -> Option<ManagedEntry> {
    let text = |key: &str| value[key].as_str().unwrap_or_default().to_owned();
    is_valid(value).then(|| ManagedEntry {
        manager: text("manager"),
        operation: text("operation"),
        api_version: text("apiVersion"),
        subresource: text("subresource"),
        time: text("time"),
        paths: fields::decode(&value["fieldsV1"]),
        unread: None,
    })
}

/// Writes entries into an object; empty ones are dropped.
pub(super) fn set_entries(object: &mut Value, mut entries: Vec<ManagedEntry>) {
    entries.retain(|entry| entry.unread.is_some() || !entry.paths.is_empty());
    // Kubernetes keeps applied entries first, then updates by time.
    entries.sort_by(|a, b| a.order().cmp(&b.order()));
    if entries.is_empty() {
        remove_meta(object, "managedFields");
        return;
    }
    let list: Vec<Value> = entries
        .into_iter()
        .map(|entry| {
            let mut value = json!({
                "manager": entry.manager, "operation": entry.operation, "apiVersion": entry.api_version,
                "fieldsType": "FieldsV1",
            });
            value["fieldsV1"] = entry.unread.unwrap_or_else(|| fields::encode(&entry.paths));
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

fn schema(scope: &Scope) -> Option<&Schema> {
    scope.resource.version(&scope.version).and_then(|version| version.schema.as_deref())
}

/// How two states differ in what can be owned through an endpoint.
fn changes(scope: &Scope, old: &Value, new: &Value, subresource: &str) -> Changes {
    let has_status = scope.version().is_ok_and(|version| version.status);
    let mut changes = fields::compare(old, new, schema(scope), scope.resource.is_custom());
    let counts = |path: &Path| match subresource {
        "status" => matches!(path[0].as_str(), "f:status" | "f:metadata"),
        _ => !(has_status && path[0] == "f:status"),
    };
    changes.set.retain(counts);
    changes.removed.retain(counts);
    changes
}

/// The entry for the unknown writers of an object whose fields have no owners.
pub(super) fn before_first_apply(scope: &Scope, object: &Value) -> Option<ManagedEntry> {
    let paths = changes(scope, &json!({}), object, "").set;
    (!paths.is_empty()).then(|| ManagedEntry {
        manager: "before-first-apply".into(),
        operation: "Update".into(),
        api_version: scope.api_version(),
        subresource: String::new(),
        time: now(),
        paths,
        unread: None,
    })
}

/// Who owns what after an update, patch or create: the writer owns what it changed, and nobody else does. The object is compared as it
/// was sent, before the server completes it or restores what an endpoint cannot change.
pub(super) fn written(
    scope: &Scope,
    old: Option<&Value>,
    sent: &Value,
    options: &WriteOptions,
    subresource: &str,
) -> Vec<ManagedEntry> {
    if let Some(known) = old.and_then(|old| unmoved(scope, old, sent, options, subresource)) {
        return known;
    }
    let reported = if subresource.is_empty() && !is_reset(sent) { entries(sent) } else { Vec::new() };
    let mut known = match old {
        Some(old) if reported.is_empty() && (!subresource.is_empty() || !is_reset(sent)) => entries(old),
        _ => reported,
    };
    if old.is_some() && known.is_empty() {
        // Nobody kept track so far, and only the first apply begins with it.
        return known;
    }
    let Changes { set, removed } = changes(scope, old.unwrap_or(&json!({})), sent, subresource);
    take(&mut known, &set, &removed);
    let manager = options.manager.as_str();
    if manager.is_empty() {
        return known;
    }
    // A virtual workspace treats all kinds as custom ones; what only it believes to be a field stays with whom it has seen.
    if let Some(first) = options.forwarded.as_deref().filter(|_| scope.is_forwarded() && !scope.resource.is_custom()) {
        let seen = fields::compare(old.unwrap_or(&json!({})), sent, schema(scope), true).set;
        // What belongs to somebody as a whole has no parts.
        let is_part = |path: &Path| (1..path.len()).any(|end| set.contains(&path[..end]));
        let left: Paths =
            seen.difference(&set).filter(|path| path[0] != "f:metadata" && !is_part(path)).cloned().collect();
        own(&mut known, scope, first, subresource, left);
    }
    own(&mut known, scope, manager, subresource, set);
    known
}

/// Gives paths to a manager.
fn own(known: &mut Vec<ManagedEntry>, scope: &Scope, manager: &str, subresource: &str, paths: Paths) {
    let api_version = scope.api_version();
    if paths.is_empty() {
        return;
    }
    if let Some(own) = known.iter_mut().find(|entry| entry.is(manager, "Update", &api_version, subresource)) {
        own.paths.extend(paths);
        own.time = now();
        return;
    }
    known.push(ManagedEntry {
        manager: manager.to_owned(),
        operation: "Update".into(),
        api_version,
        subresource: subresource.to_owned(),
        time: now(),
        paths,
        unread: None,
    });
}

/// The entries after a write that changes only what its writer owns already, which most writes do: then no set of paths has to be read.
fn unmoved(
    scope: &Scope,
    old: &Value,
    sent: &Value,
    options: &WriteOptions,
    subresource: &str,
) -> Option<Vec<ManagedEntry>> {
    let list = old["metadata"]["managedFields"].as_array().filter(|list| list.iter().all(is_valid))?;
    let api_version = scope.api_version();
    let is_own = |entry: &Value| {
        entry["manager"] == *options.manager
            && entry["operation"] == "Update"
            && entry["apiVersion"] == *api_version
            && entry["subresource"].as_str().unwrap_or_default() == subresource
    };
    if options.manager.is_empty()
        || sent["metadata"]["managedFields"] != old["metadata"]["managedFields"]
        || list.iter().filter(|entry| is_own(entry)).count() != 1
    {
        return None;
    }
    let Changes { set, removed } = changes(scope, old, sent, subresource);
    let stays = |entry: &Value| {
        let owns = |path: &Path| fields::contains(&entry["fieldsV1"], path);
        let as_now = |path: &Path| owns(path) == is_own(entry);
        set.iter().all(as_now) && !removed.iter().any(owns)
    };
    list.iter().all(stays).then(|| {
        let text = |entry: &Value, key: &str| entry[key].as_str().unwrap_or_default().to_owned();
        let kept = |entry: &Value| ManagedEntry {
            manager: text(entry, "manager"),
            operation: text(entry, "operation"),
            api_version: text(entry, "apiVersion"),
            subresource: text(entry, "subresource"),
            time: if is_own(entry) && !set.is_empty() { now() } else { text(entry, "time") },
            paths: Paths::new(),
            unread: Some(entry["fieldsV1"].clone()),
        };
        list.iter().map(kept).collect()
    })
}

/// Who owns what after a write to the scale of an object, of which only the replica count can be owned. Zero counts as absent there.
pub(super) fn scaled(
    scope: &Scope,
    old: &Value,
    new: &Value,
    options: &WriteOptions,
    replicas: &str,
) -> Vec<ManagedEntry> {
    let mut known = entries(old);
    let path: Path = replicas.split('.').filter(|part| !part.is_empty()).map(|part| format!("f:{part}")).collect();
    let number = |object: &Value| object.pointer(&replicas.replace('.', "/")).and_then(Value::as_i64).unwrap_or(0);
    if number(old) == number(new) || !known.iter().any(|entry| entry.paths.contains(&path)) {
        return known;
    }
    let path = Paths::from([path]);
    take(&mut known, &path, &Paths::new());
    if number(new) != 0 {
        known.push(ManagedEntry {
            manager: options.manager.clone(),
            operation: "Update".into(),
            api_version: scope.api_version(),
            subresource: "scale".into(),
            time: String::new(),
            paths: path,
            unread: None,
        });
    }
    known
}

fn take(entries: &mut Vec<ManagedEntry>, set: &Paths, removed: &Paths) {
    for entry in &mut *entries {
        entry.paths.retain(|path| !set.contains(path) && !removed.contains(path));
    }
    entries.retain(|entry| !entry.paths.is_empty());
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::config::Mode;
    use crate::resource::builtin::builtins;

    fn owned(manager: &str, time: &str, fields: &Value) -> Value {
        json!({"manager": manager, "operation": "Update", "apiVersion": "v1", "time": time,
            "fieldsType": "FieldsV1", "fieldsV1": fields})
    }

    /// What an object's `managedFields` becomes after a write.
    fn after(old: &Value, sent: &Value, manager: &str) -> Value {
        let resource = builtins(Mode::Kube).into_iter().find(|found| &*found.plural == "configmaps").unwrap();
        let scope = Scope::new("", Arc::clone(&resource), "v1");
        let options = WriteOptions { manager: manager.to_owned(), ..WriteOptions::default() };
        let mut object = sent.clone();
        set_entries(&mut object, written(&scope, Some(old), sent, &options, ""));
        object["metadata"]["managedFields"].take()
    }

    fn object(a: &str, b: &str, owners: &Value) -> Value {
        let data: serde_json::Map<String, Value> = [("a", a), ("b", b)]
            .into_iter()
            .filter(|(_, v)| !v.is_empty())
            .map(|(k, v)| (k.to_owned(), v.into()))
            .collect();
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m", "managedFields": owners}, "data": data})
    }

    #[test]
    fn a_writer_that_changes_its_own_fields_keeps_them_and_the_time_is_that_of_the_write() {
        let (mine, theirs) = (json!({"f:data": {".": {}, "f:a": {}}}), json!({"f:data": {"f:b": {}}}));
        let then = "2020-01-01T00:00:00Z";
        let old = object("1", "1", &json!([owned("me", then, &mine), owned("other", "2021-01-01T00:00:00Z", &theirs)]));
        let sent = object("2", "1", &old["metadata"]["managedFields"]);
        let got = after(&old, &sent, "me");
        // The latest write comes last.
        assert_eq!((&got[0]["manager"], &got[0]["fieldsV1"]), (&json!("other"), &theirs));
        assert_eq!((&got[1]["manager"], &got[1]["fieldsV1"]), (&json!("me"), &mine));
        assert!(got[1]["time"].as_str().unwrap() > then && got[0]["time"] == "2021-01-01T00:00:00Z");
        // Nothing changes, not even the time.
        assert_eq!(after(&old, &old, "me"), old["metadata"]["managedFields"]);
    }

    #[test]
    fn a_writer_that_changes_the_fields_of_others_takes_them_and_what_is_gone_is_owned_by_nobody() {
        let (mine, theirs) = (json!({"f:data": {".": {}, "f:a": {}}}), json!({"f:data": {"f:b": {}}}));
        let then = "2020-01-01T00:00:00Z";
        let old = object("1", "1", &json!([owned("me", then, &mine), owned("other", then, &theirs)]));
        let owners = &old["metadata"]["managedFields"];
        let got = after(&old, &object("1", "2", owners), "me");
        assert_eq!(got.as_array().unwrap().len(), 1);
        assert_eq!(got[0]["fieldsV1"], json!({"f:data": {".": {}, "f:a": {}, "f:b": {}}}));
        let got = after(&old, &object("", "1", owners), "me");
        assert_eq!((&got[0]["manager"], &got[0]["fieldsV1"]), (&json!("me"), &json!({"f:data": {}})));
        let got = after(&old, &object("2", "1", owners), "third");
        let shown: Vec<(&Value, &Value)> =
            got.as_array().unwrap().iter().map(|entry| (&entry["manager"], &entry["fieldsV1"])).collect();
        assert_eq!(
            shown,
            [
                (&json!("me"), &json!({"f:data": {}})),
                (&json!("other"), &theirs),
                (&json!("third"), &json!({"f:data": {"f:a": {}}})),
            ]
        );
    }
}
