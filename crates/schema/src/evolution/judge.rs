//! What has changed between two definitions of a kind.
//!
//! ```text
//!   diff ─┬─ names, scope, versions, subresources, conversion
//!         └─ for each version: walk   two nodes at a time ─▶ findings ─▶ witness   an example, checked by the validator
//!                               │                                 └─ isolate   each change by itself
//!                               ├─ rules    CEL, and allOf, anyOf, oneOf, not
//!                               └─ values   numbers, texts, sizes
//! ```

mod finding;
mod isolate;
mod rules;
mod values;
mod walk;
mod witness;

use serde_json::Value;

use crate::evolution::class::Class;
use crate::evolution::definition::{Definition, Version};
use crate::evolution::node::{texts_changed, without_texts};
use crate::evolution::report::{Change, Report};
use crate::evolution::step::shown;
use finding::Finding;
use walk::Walk;
use witness::Witness;

/// Everything that has changed between two definitions of a kind.
pub fn diff(old: &Definition, new: &Definition) -> Report {
    let mut changes = Vec::new();
    names(old, new, &mut changes);
    if old.scope != new.scope {
        let reason = format!("the scope changes from {} to {}: every object has another address", old.scope, new.scope);
        changes.push(Change::new("scope", Class::Breaking, reason));
    }
    conversion(old, new, &mut changes);
    for before in &old.versions {
        version(before, old, new, &mut changes);
    }
    for added in new.versions.iter().filter(|version| old.version(&version.name).is_none()) {
        let reason = if added.served { "the version is new" } else { "the version is new, and not served" };
        changes.push(Change::new(&added.name, Class::Compatible, reason));
    }
    storage(old, new, &mut changes);
    changes.into()
}

fn names(old: &Definition, new: &Definition, changes: &mut Vec<Change>) {
    for (path, before, after) in [
        ("group", &old.group, &new.group),
        ("names.kind", &old.kind, &new.kind),
        ("names.plural", &old.plural, &new.plural),
        ("names.listKind", &old.list_kind, &new.list_kind),
        ("names.singular", &old.singular, &new.singular),
    ] {
        if before != after {
            let reason = format!("{before:?} becomes {after:?}: the old name goes away");
            changes.push(Change::new(path, Class::Breaking, reason));
        }
    }
    for (path, before, after) in [
        ("names.shortNames", &old.short_names, &new.short_names),
        ("names.categories", &old.categories, &new.categories),
    ] {
        for gone in before.iter().filter(|name| !after.contains(name)) {
            changes.push(Change::new(path, Class::Breaking, format!("{gone:?} goes away")));
        }
        for added in after.iter().filter(|name| !before.contains(name)) {
            changes.push(Change::new(path, Class::Compatible, format!("{added:?} is new")));
        }
    }
}

fn conversion(old: &Definition, new: &Definition, changes: &mut Vec<Change>) {
    if old.conversion == new.conversion {
        return;
    }
    let several = old.versions.len() > 1 && new.versions.len() > 1;
    let class = if several { Class::Breaking } else { Class::Compatible };
    let effect = if several { ": objects look different in versions other than the stored one" } else { "" };
    let reason = format!("the strategy changes from {} to {}{effect}", old.conversion, new.conversion);
    changes.push(Change::new("conversion", class, reason));
}

/// Stored objects are read in the version that is stored now; without a webhook, nothing but their apiVersion is converted.
fn storage(old: &Definition, new: &Definition, changes: &mut Vec<Change>) {
    let stored = |definition: &Definition| definition.versions.iter().find(|version| version.storage).cloned();
    let (Some(before), Some(after)) = (stored(old), stored(new)) else { return };
    if before.name == after.name {
        return;
    }
    let (from, to) = (&before.name, &after.name);
    let change = |class, effect: &str| {
        Change::new("storage", class, format!("the stored version changes from {from} to {to}{effect}"))
    };
    if new.version(from).is_none() {
        changes.push(change(Class::Breaking, ", and objects that are stored in the former cannot be read any more"));
        return;
    }
    if new.conversion == "Webhook" {
        changes.push(change(Class::Compatible, ", and the webhook converts"));
        return;
    }
    let mut lost = Vec::new();
    schemas(&after.name, (&before.schema, &after.schema), (old, new), &mut lost);
    let worst = Report::from(lost);
    match worst.changes.first().filter(|first| first.class > Class::Compatible) {
        None => changes.push(change(Class::Compatible, ", which keeps every object as it is")),
        Some(first) => {
            let effect = format!(", without conversion: {}: {}", first.path, first.reason);
            changes.push(Change { example: first.example.clone(), ..change(Class::Breaking, &effect) });
        }
    }
}

fn version(before: &Version, old: &Definition, new: &Definition, changes: &mut Vec<Change>) {
    let name = &before.name;
    let Some(after) = new.version(name) else {
        let class = if before.served { Class::Breaking } else { Class::Compatible };
        changes.push(Change::new(name, class, "the version goes away"));
        return;
    };
    match (before.served, after.served) {
        (true, false) => changes.push(Change::new(name, Class::Breaking, "the version is not served any more")),
        (false, true) => changes.push(Change::new(name, Class::Compatible, "the version is served now")),
        _ => {}
    }
    if before.deprecated != after.deprecated {
        let reason =
            if after.deprecated { "the version is deprecated" } else { "the version is not deprecated any more" };
        changes.push(Change::new(name, Class::Compatible, reason));
    }
    subresources(before, after, changes);
    schemas(name, (&before.schema, &after.schema), (old, new), changes);
}

fn subresources(before: &Version, after: &Version, changes: &mut Vec<Change>) {
    let name = &before.name;
    let path = format!("{name}.subresources");
    match (before.status, after.status) {
        (true, false) => changes.push(Change::new(
            format!("{path}.status"),
            Class::Breaking,
            "/status goes away: who writes the status there is refused, and consumers can write it like everything else",
        )),
        (false, true) => changes.push(Change::new(
            format!("{path}.status"),
            Class::Breaking,
            "/status is new: a status in any other write is ignored from now on",
        )),
        _ => {}
    }
    if before.scale != after.scale {
        let (class, reason) = match (&before.scale, &after.scale) {
            (Value::Null, _) => (Class::Compatible, "/scale is new"),
            (_, Value::Null) => (Class::Breaking, "/scale goes away"),
            _ => (Class::Breaking, "/scale reads or writes other fields"),
        };
        changes.push(Change::new(format!("{path}.scale"), class, reason));
    }
    if before.columns != after.columns {
        changes.push(Change::new(format!("{name}.columns"), Class::Compatible, "other columns are printed"));
    }
    for gone in before.selectable.iter().filter(|field| !after.selectable.contains(field)) {
        let reason = format!("{gone} cannot be used in field selectors any more");
        changes.push(Change::new(format!("{name}.selectableFields"), Class::Breaking, reason));
    }
    for added in after.selectable.iter().filter(|field| !before.selectable.contains(field)) {
        let reason = format!("{added} can be used in field selectors");
        changes.push(Change::new(format!("{name}.selectableFields"), Class::Compatible, reason));
    }
}

/// The changes between two schemas.
fn schemas(
    version: &str,
    (before, after): (&Value, &Value),
    (old, new): (&Definition, &Definition),
    changes: &mut Vec<Change>,
) {
    let texts = texts_changed(before, after);
    if texts > 0 {
        let reason = format!("{texts} {} changed", if texts == 1 { "description has" } else { "descriptions have" });
        changes.push(Change::new(version, Class::Compatible, reason));
    }
    let (before, after) = (without_texts(before), without_texts(after));
    if before == after {
        return;
    }
    let mut walk = Walk::default();
    walk.root(&before, &after);
    let api_version = |group: &str| if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    let head = (api_version(&old.group), old.kind.as_str());
    let mut witness = Witness::new(&before, &after, (&head.0, head.1));
    let moved = old.group != new.group || old.kind != new.kind;
    for Finding { at, class, reason, seek, values, change: (place, part) } in walk.findings {
        let mut change = Change::new(shown(version, &at), class, reason);
        let seen =
            (class > Class::Compatible && !moved).then(|| witness.find(&seek, &values, (&place, part))).flatten();
        if let Some(seen) = seen {
            if seen.is_stuck && class == Class::Tightening {
                change.class = Class::Breaking;
                change.reason += "; stored objects that do not fit cannot even be labelled or released, because this is checked at every \
                                  write";
            }
            change.example = Some(seen.object);
        }
        changes.push(change);
    }
}

/// Whether an object of the old definition, as it is stored, would be refused or changed by the new one; says how. `None` if it stays.
pub fn harm(old: &crate::Schema, new: &crate::Schema, stored: &Value) -> Option<String> {
    witness::effect(old, new, stored).map(|effect| effect.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::compile::COMPILED;

    /// A kind with many fields, some of which may be shorter in the new definition.
    fn definition(shorter: usize) -> Definition {
        let field = |at: usize| {
            let mut field = json!({ "type": "string", "x-kubernetes-validations": [{ "rule": "size(self) < 9" }] });
            if at < shorter {
                field["maxLength"] = 1.into();
            }
            (format!("f{at}"), field)
        };
        let fields: serde_json::Map<String, Value> = (0..300).map(field).collect();
        let spec = json!({ "type": "object", "properties": fields });
        let schema = json!({ "openAPIV3Schema": { "type": "object", "properties": { "spec": spec } } });
        let document = json!({
            "kind": "CustomResourceDefinition", "metadata": { "name": "wides.example.com" },
            "spec": {
                "group": "example.com", "names": { "kind": "Wide", "plural": "wides" },
                "versions": [{ "name": "v1", "served": true, "storage": true, "schema": schema }],
            },
        });
        Definition::read(&document).unwrap()
    }

    #[test]
    fn an_example_for_one_change_costs_no_look_at_all_the_rest_of_a_large_kind() {
        let judged = |shorter: usize| {
            let before = COMPILED.get();
            let report = diff(&definition(0), &definition(shorter));
            assert_eq!(report.changes.iter().filter(|change| change.example.is_some()).count(), shorter);
            COMPILED.get() - before
        };
        let (one, many) = (judged(1), judged(100));
        assert!(many - one < 100 * 30, "{} nodes compiled for each change", (many - one) / 99);
    }
}
