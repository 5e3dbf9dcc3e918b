//! Server-side apply.

use std::cmp::Ordering;
use std::collections::HashSet;

use serde_json::{Map, Value};

use super::base::Api;
use super::change::{Change, ChangeSource};
use super::fields::{self, Path, Paths};
use super::managed::{self, ManagedEntry};
use super::object::{remove_meta, strip_cluster, whole_numbers};
use super::scope::Scope;
use super::update::check_name;
use super::write::{WriteOptions, Written};
use super::{meta, typed};
use crate::caller::Caller;
use crate::schema::{ListType, Schema};
use crate::status::{Cause, Status};
use crate::time::now;

/// Annotation in which kubectl records what it applied on the client side.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

impl Api {
    /// Makes an object contain what the manager applies, and removes what the manager applied before but no longer does.
    pub(super) fn apply(
        &self,
        caller: &Caller,
        scope: &Scope,
        name: &str,
        subresource: &str,
        config: &Value,
        options: &WriteOptions,
    ) -> Result<Written, Status> {
        let mut config = config.clone();
        check(scope, &mut config)?;
        let key = scope.key(name)?;
        let absent = !self.store.has(&key);
        if absent && !subresource.is_empty() {
            return Err(scope.not_found(name));
        }
        whole_numbers(&mut config);
        typed::check(scope, &config)?;
        // An object that exists has its name already.
        if absent || !meta::name_of(&config).is_empty() {
            check_name(caller, name, &config)?;
        }
        let has_status = scope.version()?.status;
        limit(&mut config, subresource, has_status);
        if absent {
            if let Some(uid) = config["metadata"]["uid"].as_str().filter(|uid| !uid.is_empty()) {
                let resource = &scope.resource;
                let why =
                    format!("uid mismatch: the provided object specified uid {uid}, and no existing object was found");
                return Err(Status::conflict(&resource.group, &resource.plural, name, &why));
            }
            let mut object = config.clone();
            remove_meta(&mut object, "resourceVersion");
            object["metadata"]["name"] = name.into();
            if scope.is_forwarded() {
                return self.create(caller, scope, object, options).map(|written| Written { code: 200, ..written });
            }
            let entry = new_entry(scope, options, subresource, owned(scope, &config));
            managed::set_entries(&mut object, vec![entry]);
            match self.create_applied(caller, scope, object, options) {
                Err(status) if status.reason == "AlreadyExists" => {}
                other => return other,
            }
        }
        // A virtual workspace works out what becomes of the object, and forwards it as an update by the same manager.
        let source = if scope.is_forwarded() { ChangeSource::Patch } else { ChangeSource::Apply };
        let change = Change { caller, scope, name, subresource, options, source };
        self.modify(&change, |current| merged(scope, current, &config, options, subresource))
    }
}

fn check(scope: &Scope, config: &mut Value) -> Result<(), Status> {
    if !config.is_object() {
        return Err(Status::bad_request("error decoding apply configuration: it must be an object"));
    }
    if config["apiVersion"] != *scope.api_version() || config["kind"] != *scope.resource.kind {
        let version = config["apiVersion"].as_str().unwrap_or_default();
        let version = if version.contains('/') { version.to_owned() } else { format!("/{version}") };
        let kind = config["kind"].as_str().unwrap_or_default();
        return Err(Status::bad_request(format!("invalid object type: {version}, Kind={kind}")));
    }
    if !config["metadata"]["managedFields"].is_null() {
        return Err(Status::bad_request("metadata.managedFields must be nil"));
    }
    strip_cluster(config);
    Ok(())
}

/// Keeps only the parts of a configuration that its endpoint may own.
fn limit(config: &mut Value, subresource: &str, has_status: bool) {
    let Some(map) = config.as_object_mut() else { return };
    if subresource == "status" {
        map.retain(|key, _| matches!(key.as_str(), "apiVersion" | "kind" | "metadata" | "status"));
        if let Some(Value::Object(metadata)) = map.get_mut("metadata") {
            metadata.retain(|key, _| matches!(key.as_str(), "name" | "namespace" | "resourceVersion" | "uid"));
        }
    } else if has_status {
        map.remove("status");
    }
}

fn schema(scope: &Scope) -> Option<&Schema> {
    scope.resource.version(&scope.version).and_then(|version| version.schema.as_deref())
}

/// What a configuration claims.
fn owned(scope: &Scope, config: &Value) -> Paths {
    fields::claimed(config, schema(scope), scope.resource.is_custom())
}

fn new_entry(scope: &Scope, options: &WriteOptions, subresource: &str, paths: Paths) -> ManagedEntry {
    ManagedEntry {
        manager: options.manager.clone(),
        operation: "Apply".into(),
        api_version: scope.api_version(),
        subresource: subresource.to_owned(),
        time: now(),
        paths,
        unread: None,
    }
}

fn merged(
    scope: &Scope,
    current: &Value,
    config: &Value,
    options: &WriteOptions,
    subresource: &str,
) -> Result<Value, Status> {
    let (schema, custom) = (schema(scope), scope.resource.is_custom());
    let claimed = owned(scope, config);
    let mut object = current.clone();
    merge(&mut object, config, schema, custom, "");
    let mut changed = fields::compare(current, &object, schema, custom).set;
    // Kubernetes' own types do not store empty maps: whoever applies one adds it again.
    changed.extend(
        claimed
            .iter()
            .filter(|path| value_at(current, path).is_none() && value_at(config, path).is_some_and(is_empty))
            .cloned(),
    );
    let mut entries = managed::entries(current);
    if entries.is_empty() {
        entries.extend(managed::before_first_apply(scope, current));
    }
    let api_version = scope.api_version();
    let place = entries.iter().position(|entry| entry.is(&options.manager, "Apply", &api_version, subresource));
    let previous = place.map(|index| entries.remove(index));
    let conflicts: Vec<(ManagedEntry, Vec<Path>)> = entries
        .iter()
        .map(|entry| (entry.clone(), entry.paths.intersection(&changed).cloned().collect()))
        .filter(|(_, paths): &(ManagedEntry, Vec<Path>)| !paths.is_empty())
        .collect();
    if !conflicts.is_empty() && !options.force {
        return Err(conflict(&conflicts));
    }
    for (loser, paths) in &conflicts {
        for entry in entries.iter_mut().filter(|entry| *entry == loser) {
            entry.paths.retain(|path| !paths.contains(path));
        }
    }
    // Fields that were applied before and that nobody claims any more are removed, together with their parents, whatever else is in there.
    let all: Paths = entries.iter().flat_map(|entry| &entry.paths).chain(&claimed).cloned().collect();
    let kept = fields::with_parents(&all, schema, custom);
    let last = previous.as_ref().map(|entry| fields::with_parents(&entry.paths, schema, custom)).unwrap_or_default();
    for path in last.difference(&kept) {
        remove(&mut object, path, schema, custom);
    }
    let mut entry = new_entry(scope, options, subresource, claimed);
    if object == *current {
        // Only an entry that changes the object gets a new time.
        entry.time = previous.map(|old| old.time).unwrap_or_default();
    }
    entries.push(entry);
    managed::set_entries(&mut object, entries);
    if options.manager == "kubectl" {
        follow_last_applied(&mut object, config);
    }
    Ok(object)
}

/// The value at a path that leads through maps only.
fn value_at<'a>(object: &'a Value, path: &[String]) -> Option<&'a Value> {
    path.iter().try_fold(object, |value, element| value.get(element.strip_prefix("f:")?))
}

/// kubectl's annotation about client-side apply, if there is one, is updated by its server-side apply.
fn follow_last_applied(object: &mut Value, config: &Value) {
    let Some(note) = object["metadata"].get_mut("annotations").and_then(|all| all.get_mut(LAST_APPLIED)) else {
        return;
    };
    let mut config = config.clone();
    if let Some(Value::Object(annotations)) = config["metadata"].get_mut("annotations") {
        annotations.remove(LAST_APPLIED);
    }
    *note = format!("{config}\n").into();
}

/// The order of conflicts: paths that end at a level come before those that continue below it.
fn members_first(a: &Path, b: &Path) -> Ordering {
    let shared = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let deeper = |path: &Path| path.len() > shared + 1;
    deeper(a).cmp(&deeper(b)).then_with(|| a.cmp(b))
}

fn conflict(conflicts: &[(ManagedEntry, Vec<Path>)]) -> Status {
    let who = |entry: &ManagedEntry| {
        let mut text = format!("{:?}", entry.manager);
        if !entry.subresource.is_empty() {
            text = format!("{text} with subresource {:?}", entry.subresource);
        }
        if entry.operation == "Update" {
            text = format!("{text} using {}", entry.api_version);
        }
        text
    };
    let count: usize = conflicts.iter().map(|(_, paths)| paths.len()).sum();
    let mut texts = Vec::new();
    let mut causes = Vec::new();
    for (entry, paths) in conflicts {
        let mut paths = paths.clone();
        paths.sort_by(members_first);
        let shown: Vec<String> = paths.iter().map(fields::display).collect();
        texts.push(if shown.len() == 1 {
            format!("conflict with {}: {}", who(entry), shown[0])
        } else {
            format!("conflicts with {}:\n- {}", who(entry), shown.join("\n- "))
        });
        for path in &shown {
            causes.push(Cause::new("FieldManagerConflict", path, format!("conflict with {}", who(entry))));
        }
    }
    let noun = if count == 1 { "conflict" } else { "conflicts" };
    let message = format!("Apply failed with {count} {noun}: {}", texts.join("\n"));
    Status::new(409, "Conflict", message).with_causes(&causes)
}

/// Merges a configuration into an object, by the types of its lists and maps.
fn merge(target: &mut Value, config: &Value, schema: Option<&Schema>, custom: bool, field: &str) {
    match (config, &mut *target) {
        (Value::Object(config), Value::Object(map)) if !schema.is_some_and(|schema| schema.atomic) => {
            for (key, value) in config {
                let below = schema.and_then(|schema| schema.properties.get(key).or(schema.additional.as_deref()));
                merge(map.entry(key.clone()).or_insert(Value::Null), value, below, custom, key);
            }
        }
        (Value::Array(config), Value::Array(list)) => {
            let kind = fields::list_type(schema, custom, field);
            if kind == ListType::Atomic {
                *target = Value::Array(config.clone());
                return;
            }
            let items = schema.and_then(|schema| schema.items.as_deref());
            let element = |item: &Value| fields::item_element(&kind, items, item);
            *list = woven(list, config, element, |found, item| merge(found, item, items, custom, field));
        }
        _ => *target = config.clone(),
    }
}

/// The items of a list and of a configuration: those of both in the order of the configuration, and those of the list alone behind the ones that
/// they have been behind so far.
fn woven(
    list: &[Value],
    config: &[Value],
    element: impl Fn(&Value) -> Option<String>,
    merge: impl Fn(&mut Value, &Value),
) -> Vec<Value> {
    let (old, new): (Vec<_>, Vec<_>) = (list.iter().map(&element).collect(), config.iter().map(&element).collect());
    let mut shared = new.iter().filter(|name| old.contains(name)).peekable();
    let (mut woven, mut taken) = (Vec::with_capacity(list.len().max(config.len())), HashSet::new());
    let (mut left, mut right) = (0, 0);
    while left < old.len() || right < new.len() {
        if let Some(name) = old.get(left) {
            if !new.contains(name) {
                woven.push(list[left].clone());
                left += 1;
                continue;
            }
            if taken.contains(name) {
                left += 1;
            } else if right < new.len() && shared.peek().is_some_and(|next| *next != name) {
                // Its turn in the configuration comes later.
                left += 1;
                continue;
            }
        }
        let Some(name) = new.get(right) else { continue };
        let mut item = config[right].clone();
        if let Some(at) = old.iter().position(|found| found == name) {
            item = list[at].clone();
            merge(&mut item, &config[right]);
        }
        woven.push(item);
        taken.insert(name);
        right += 1;
        left += usize::from(old.get(left) == Some(name));
        shared.next_if(|next| *next == name);
    }
    woven
}

/// Removes the value at a path; maps and lists that become empty are removed too.
fn remove(target: &mut Value, path: &[String], schema: Option<&Schema>, custom: bool) {
    remove_in(target, path, schema, custom, "");
}

fn remove_in(target: &mut Value, path: &[String], schema: Option<&Schema>, custom: bool, field: &str) {
    let Some((element, rest)) = path.split_first() else { return };
    match target {
        Value::Object(map) => {
            let Some(key) = element.strip_prefix("f:") else { return };
            if rest.is_empty() {
                map.remove(key);
                return;
            }
            let below = schema.and_then(|schema| schema.properties.get(key).or(schema.additional.as_deref()));
            if let Some(child) = map.get_mut(key) {
                remove_in(child, rest, below, custom, key);
                if is_empty(child) {
                    map.remove(key);
                }
            }
        }
        Value::Array(list) => {
            let kind = fields::list_type(schema, custom, field);
            let items = schema.and_then(|schema| schema.items.as_deref());
            let same = |item: &Value| fields::item_element(&kind, items, item).as_ref() == Some(element);
            let Some(index) = list.iter().position(same) else { return };
            if rest.is_empty() {
                list.remove(index);
            } else {
                remove_in(&mut list[index], rest, items, custom, field);
            }
        }
        _ => {}
    }
}

fn is_empty(value: &Value) -> bool {
    value.as_object().is_some_and(Map::is_empty) || value.as_array().is_some_and(Vec::is_empty)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_follow_the_configuration_and_others_keep_their_place() {
        for (list, config, expected) in [
            ("a", "ba", "ba"),
            ("abc", "cb", "acb"),
            ("abc", "", "abc"),
            ("", "ab", "ab"),
            ("abc", "d", "abcd"),
            ("abc", "db", "adbc"),
            ("xaybz", "ba", "xybza"),
            ("ax", "ac", "axc"),
        ] {
            let items = |text: &str| -> Vec<Value> { text.chars().map(|item| item.to_string().into()).collect() };
            let element = |item: &Value| item.as_str().map(str::to_owned);
            let found = woven(&items(list), &items(config), element, |_, _| {});
            assert_eq!(found, items(expected), "{list} {config}");
        }
    }
}
