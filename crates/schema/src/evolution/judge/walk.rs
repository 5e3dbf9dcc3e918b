//! Two schemas, node by node. Whatever cannot be shown to be compatible counts as a change for the worse.

use serde_json::Value;

use super::finding::Finding;
use super::{rules, values};
use crate::evolution::class::Class::{self, Breaking, Compatible, Tightening};
use crate::evolution::definition::texts;
use crate::evolution::node::{self, Kind, flag};
use crate::evolution::sample::samples;
use crate::evolution::step::{Step, below};

/// Keywords about fields that are not named.
const REST: [&str; 2] = ["x-kubernetes-preserve-unknown-fields", "additionalProperties"];
/// Keywords about whole objects inside others.
const EMBEDDED: [&str; 1] = ["x-kubernetes-embedded-resource"];
/// Keywords about the identity of items.
const LIST: [&str; 2] = ["x-kubernetes-list-type", "x-kubernetes-list-map-keys"];

/// Collects findings.
#[derive(Debug, Default)]
pub(super) struct Walk {
    pub(super) findings: Vec<Finding>,
}

impl Walk {
    /// Compares two whole schemas.
    pub(super) fn root(&mut self, old: &Value, new: &Value) {
        self.node(&node::whole(old), &node::whole(new), &[]);
    }

    fn report(&mut self, at: &[Step], class: Class, reason: impl Into<String>) {
        self.findings.push(Finding::new(at, class, reason));
    }

    fn node(&mut self, old: &Value, new: &Value, at: &[Step]) {
        if old == new {
            return;
        }
        if !self.types(old, new, at) {
            return;
        }
        if flag(old, "nullable") && !flag(new, "nullable") {
            let reason = "null is not allowed any more: where it is stored, it is dropped or refused";
            self.findings.push(Finding::new(at, Breaking, reason).with([Value::Null]).of(&["nullable"]));
        } else if !flag(old, "nullable") && flag(new, "nullable") {
            self.report(at, Compatible, "null is allowed now");
        }
        self.findings.extend(values::compare(old, new, at));
        let kinds = [Kind::of(old), Kind::of(new)];
        let may_be = |kind| kinds.iter().any(|it| matches!(*it, Kind::Any) || *it == kind);
        if may_be(Kind::Object) {
            self.object(old, new, at);
        }
        if may_be(Kind::Array) {
            self.list(old, new, at);
        }
        self.findings.extend(rules::compare(old, new, at));
    }

    /// False if there is nothing left to compare.
    fn types(&mut self, old: &Value, new: &Value, at: &[Step]) -> bool {
        let (before, after) = (Kind::of(old), Kind::of(new));
        let reason = || format!("the type changes from {} to {}", before.name(), after.name());
        match (before, after) {
            (before, after) if before == after => true,
            (Kind::Integer, Kind::Number) | (Kind::Integer | Kind::String, Kind::IntOrString) | (_, Kind::Any) => {
                self.report(at, Compatible, reason());
                true
            }
            (Kind::Number, Kind::Integer) => {
                self.findings
                    .push(Finding::new(at, Tightening, reason()).with([0.5, 1.5, 2.25].map(Value::from)).of(&["type"]));
                true
            }
            (Kind::IntOrString, Kind::Integer | Kind::String) => {
                self.findings.push(Finding::new(at, Tightening, reason()).with(["a".into(), 1.into()]));
                true
            }
            _ => {
                self.report(at, Breaking, reason());
                false
            }
        }
    }

    fn object(&mut self, old: &Value, new: &Value, at: &[Step]) {
        let (was_required, is_required) = (node::required(old), node::required(new));
        for name in node::fields(old, new) {
            let here = below(at, Step::Field(name.clone()));
            match (node::child(old, &name), node::child(new, &name)) {
                (None, None) => {}
                (None, Some(added)) => {
                    let default = added.get("default").filter(|value| !value.is_null());
                    let tail = default.map_or_else(String::new, |value| format!(", with the default {value}"));
                    let counted = default.is_some() && new.get("maxProperties").is_some();
                    let class = if counted { Tightening } else { Compatible };
                    self.findings.push(Finding::new(&here, class, format!("the field is new{tail}")).above());
                }
                (Some(_), None) => self.report(&here, Breaking, "the field goes away: its values are dropped"),
                (Some(before), Some(after)) => {
                    self.default(&before, &after, was_required.contains(&name), &here);
                    self.node(&before, &after, &here);
                }
            }
        }
        self.rest(old, new, at);
        for name in is_required.difference(&was_required) {
            let here = below(at, Step::Field(name.clone()));
            let filled =
                node::child(new, name).is_some_and(|child| child.get("default").is_some_and(|it| !it.is_null()));
            if filled {
                self.report(&here, Compatible, "the field is required now, and its default fills it in");
            } else {
                self.findings.push(
                    Finding::new(&here, Tightening, "the field is required now").above().of_parent(&["required"]),
                );
            }
        }
        for name in was_required.difference(&is_required).filter(|name| node::child(new, name).is_some()) {
            self.report(&below(at, Step::Field(name.clone())), Compatible, "the field is optional now");
        }
        self.embedded(old, new, at);
        match (old["x-kubernetes-map-type"] == "atomic", new["x-kubernetes-map-type"] == "atomic") {
            (false, true) => {
                let reason = "the object is one value for server-side apply now: whoever applies one field takes away those of others";
                self.findings.push(Finding::new(at, Breaking, reason).of(&["x-kubernetes-map-type"]));
            }
            (true, false) => self.report(at, Compatible, "server-side apply merges the object field by field now"),
            _ => {}
        }
    }

    /// Fields that a schema does not name.
    fn rest(&mut self, old: &Value, new: &Value, at: &[Step]) {
        let extra = || {
            let known = samples(old).into_iter().find(Value::is_object).unwrap_or_else(|| serde_json::json!({}));
            let mut with = known.clone();
            with["extra"] = serde_json::json!({"any": "thing"});
            [with]
        };
        let is_map = |schema: &Value| schema.get("additionalProperties").is_some_and(Value::is_object);
        match (node::rest(old), node::rest(new)) {
            (None, None) => {}
            (None, Some(_)) => self.report(at, Compatible, "fields that the schema does not name are kept now"),
            (Some(_), None) if is_map(old) => {
                self.report(&below(at, Step::Value), Breaking, "the values of the map go away: they are dropped");
            }
            (Some(_), None) => {
                let reason = "fields that the schema does not name are dropped now";
                self.findings.push(Finding::new(at, Breaking, reason).with(extra()).of(&REST));
            }
            (Some(before), Some(after)) => self.node(&before, &after, &below(at, Step::Value)),
        }
    }

    fn default(&mut self, old: &Value, new: &Value, required: bool, at: &[Step]) {
        let default = |schema: &Value| schema.get("default").filter(|value| !value.is_null()).cloned();
        let (class, reason) = match (default(old), default(new)) {
            (None, None) => return,
            (Some(before), Some(after)) if before == after => return,
            (None, Some(after)) if required => {
                (Compatible, format!("the default {after} is new; the field was always there"))
            }
            (None, Some(after)) => (Breaking, format!("the default {after} is new: objects without the field change")),
            (Some(before), None) => (
                Breaking,
                format!("the default {before} goes away: new objects without the field are not what they were"),
            ),
            (Some(before), Some(after)) => {
                (Breaking, format!("the default changes from {before} to {after}: so do new objects without the field"))
            }
        };
        self.findings.push(Finding::new(at, class, reason).above().of(&["default"]));
    }

    fn embedded(&mut self, old: &Value, new: &Value, at: &[Step]) {
        let name = "x-kubernetes-embedded-resource";
        match (flag(old, name), flag(new, name)) {
            (false, true) => self
                .findings
                .push(Finding::new(at, Tightening, "the value must be a whole Kubernetes object now").of(&EMBEDDED)),
            (true, false) if node::keeps_unknown(new) => {
                self.report(at, Compatible, "the value need not be a whole Kubernetes object any more");
            }
            (true, false) => {
                let reason =
                    "the value is no Kubernetes object any more: its apiVersion, kind and metadata may be dropped";
                self.findings.push(Finding::new(at, Breaking, reason).of(&EMBEDDED));
            }
            _ => {}
        }
    }

    fn list(&mut self, old: &Value, new: &Value, at: &[Step]) {
        if old.get("items").is_some() || new.get("items").is_some() {
            self.node(&node::item(old), &node::item(new), &below(at, Step::Item));
        }
        let kind = |schema: &Value| schema["x-kubernetes-list-type"].as_str().unwrap_or("atomic").to_owned();
        let (before, after) = (kind(old), kind(new));
        let twice = || {
            let item = samples(&node::item(old)).into_iter().next();
            item.map(|item| Value::Array(vec![item.clone(), item]))
        };
        match (before.as_str(), after.as_str()) {
            (a, b) if a == b => {
                let keys = |schema: &Value| texts(&schema["x-kubernetes-list-map-keys"]);
                if a == "map" && keys(old) != keys(new) {
                    let reason = format!(
                        "the keys of the list change from {} to {}: other items are the same",
                        keys(old).join(", "),
                        keys(new).join(", ")
                    );
                    let twins = twins(&node::item(old), &keys(old), &keys(new));
                    self.findings.push(Finding::new(at, Breaking, reason).with(twins).of(&LIST));
                }
            }
            ("atomic", _) => {
                let reason = format!("the list is a {after} now: no two items may be the same");
                self.findings.push(Finding::new(at, Tightening, reason).with(twice()).of(&LIST));
            }
            (_, "atomic") => {
                let reason =
                    format!("the list is no {before} any more: whoever applies one item takes away those of others");
                self.findings.push(Finding::new(at, Breaking, reason).of(&LIST));
            }
            _ => {
                let reason = format!("the list changes from a {before} to a {after}: other items are the same");
                self.findings.push(Finding::new(at, Breaking, reason).of(&LIST));
            }
        }
    }
}

/// Two items with different old keys and the same new ones.
fn twins(item: &Value, old: &[String], new: &[String]) -> Option<Value> {
    let value = |key: &String, turn: usize| {
        let child = node::child(item, key)?;
        samples(&child).into_iter().nth(turn)
    };
    let base = samples(item).into_iter().find(Value::is_object)?;
    let one = |turn: usize| {
        let mut item = base.clone();
        for key in new {
            item[key] = value(key, 0)?;
        }
        for key in old.iter().filter(|key| !new.contains(key)) {
            item[key] = value(key, turn)?;
        }
        Some(item)
    };
    Some(Value::Array(vec![one(0)?, one(1)?]))
}
