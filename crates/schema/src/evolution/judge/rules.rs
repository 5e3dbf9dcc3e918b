//! CEL rules, and conditions: allOf, anyOf, oneOf, not.

use carrick_cel::{Rule, Schema};
use serde_json::Value;

use super::finding::Finding;
use crate::evolution::class::Class::{Compatible, Tightening};
use crate::evolution::node::{self, Kind};
use crate::evolution::step::Step;

const RULES: &[&str] = &["x-kubernetes-validations"];
const CONDITIONS: [&[&str]; 3] = [&["allOf"], &["anyOf"], &["oneOf"]];

/// Compares the rules and conditions of two nodes.
pub(super) fn compare(old: &Value, new: &Value, at: &[Step]) -> Vec<Finding> {
    let mut findings = Vec::new();
    rules(old, new, at, &mut findings);
    conditions(old, new, at, &mut findings);
    findings
}

/// Between a rule and what lets pass an update that leaves alone everything that the rule reads, as schemas of APIExports have it.
const GUARD: &str = ") || (oldSelf.hasValue() && ";

/// What a rule asks for, and whether it lets pass what stays as it is.
fn said(rule: &Value) -> (&str, bool) {
    let text = rule["rule"].as_str().unwrap_or_default().trim();
    let guarded = if rule["optionalOldSelf"] == true { text.split_once(GUARD) } else { None };
    // Which fields are compared depends on those that the schema has, and is nothing that the rule asks for.
    let bare = guarded.and_then(|(bare, rest)| Some((bare.strip_prefix('(')?.trim(), rest.strip_suffix(')')?)));
    bare.map_or((text, false), |(bare, _)| (bare, true))
}

/// The rules of a node: what is checked, and the whole entry.
fn entries(schema: &Value) -> Vec<((&str, bool), &Value)> {
    let list = schema["x-kubernetes-validations"].as_array().into_iter().flatten();
    list.map(|rule| {
        let (text, guarded) = said(rule);
        ((text, !guarded && rule["optionalOldSelf"] == true), rule)
    })
    .collect()
}

fn rules(old: &Value, new: &Value, at: &[Step], findings: &mut Vec<Finding>) {
    let (before, after) = (entries(old), entries(new));
    for (key, rule) in &after {
        let words = || rule["message"].as_str().unwrap_or(key.0).to_owned();
        match before.iter().find(|(known, _)| known == key) {
            None => {
                let reason = if key.0.contains("oldSelf") {
                    format!("a rule about changes is new: {}", words())
                } else {
                    format!("a rule is new: {}", words())
                };
                findings.push(Finding::new(at, Tightening, reason).of(RULES));
            }
            Some(_) if reads_changed(rule, (old, new), at) => {
                let reason = format!("a rule reads values whose type or format changes: {}", words());
                findings.push(Finding::new(at, Tightening, reason));
            }
            Some((_, known)) if said(known).1 && !said(rule).1 => {
                let reason = format!("a rule lets pass no more what was there before: {}", words());
                findings.push(Finding::new(at, Tightening, reason).of(RULES));
            }
            Some((_, known)) if known["rule"] != rule["rule"] => {
                let reason = format!("a rule lets pass what was there before in another way: {}", words());
                findings.push(Finding::new(at, Compatible, reason));
            }
            Some((_, known)) if known != rule => {
                findings.push(Finding::new(at, Compatible, format!("a rule is refused in other words: {}", words())));
            }
            Some(_) => {}
        }
    }
    for (key, rule) in before.iter().filter(|(key, _)| !after.iter().any(|(known, _)| known == key)) {
        let words = rule["message"].as_str().unwrap_or(key.0);
        findings.push(Finding::new(at, Compatible, format!("a rule goes away: {words}")));
    }
}

/// Whether a rule sees values of the old schema with another type under the new one. What it does not read does not matter to it.
fn reads_changed(rule: &Value, (old, new): (&Value, &Value), at: &[Step]) -> bool {
    if !types_changed(old, new) {
        return false;
    }
    let schema = if at.is_empty() { Schema::root(old) } else { Schema::node(old) };
    let Ok(rule) = Rule::compile_typed(rule, &schema) else { return true };
    rule.reads().iter().any(|read| {
        let (mut before, mut after) = (old, new);
        for name in &read.path {
            // Only what can have fields has fields to look into.
            if node_type(before) != node_type(after) {
                return true;
            }
            match (before["properties"].get(&**name), after["properties"].get(&**name)) {
                (Some(old), Some(new)) => (before, after) = (old, new),
                (None, None) => return types_changed(before, after),
                _ => return true,
            }
        }
        !read.presence_only && types_changed(before, after)
    })
}

/// What CEL makes of a node itself, whatever is below it.
fn node_type(schema: &Value) -> (Kind, String, Value, bool, bool) {
    // The formats that are types of their own in CEL.
    let format = match schema["format"].as_str() {
        Some(format @ ("date" | "date-time" | "datetime" | "duration" | "byte")) => format.to_owned(),
        _ => String::new(),
    };
    let list = schema["x-kubernetes-list-type"].clone();
    (Kind::of(schema), format, list, node::keeps_unknown(schema), node::flag(schema, "nullable"))
}

/// Whether values of the old schema have another type under the new one.
fn types_changed(old: &Value, new: &Value) -> bool {
    if old == new {
        return false;
    }
    if node_type(old) != node_type(new) {
        return true;
    }
    let properties = old["properties"].as_object().into_iter().flatten();
    let field = |(name, before): (&String, &Value)| {
        new["properties"].get(name).is_none_or(|after| types_changed(before, after))
    };
    let below = |key: &str| match (old.get(key), new.get(key)) {
        (Some(before), Some(after)) => before != after && (!before.is_object() || types_changed(before, after)),
        (before, after) => before != after,
    };
    properties.into_iter().any(field) || below("items") || below("additionalProperties")
}

/// Whether a condition asks for nothing but fields that every object has.
fn is_given(condition: &Value, old: &Value, new: &Value) -> bool {
    let only = condition.as_object().is_some_and(|map| map.keys().all(|key| key == "required"));
    let filled = |schema: &Value, name: &str| schema["properties"][name].get("default").is_some_and(|it| !it.is_null());
    let required = node::required(old);
    // A default that goes away would leave it out.
    let given = |name: &String| {
        let was_filled = filled(old, name);
        if was_filled { filled(new, name) } else { required.contains(name) }
    };
    only && node::required(condition).iter().all(given)
}

fn conditions(old: &Value, new: &Value, at: &[Step], findings: &mut Vec<Finding>) {
    let list = |schema: &Value, key: &str| schema[key].as_array().cloned().unwrap_or_default();
    for keys in CONDITIONS {
        let key = keys[0];
        let (before, after) = (list(old, key), list(new, key));
        if before == after {
            continue;
        }
        let (class, reason) = match key {
            _ if after.is_empty() => (Compatible, format!("{key} goes away")),
            "allOf" if after.iter().all(|branch| before.contains(branch) || is_given(branch, old, new)) => {
                (Compatible, "allOf asks for less".to_owned())
            }
            "anyOf" if !before.is_empty() && before.iter().all(|branch| after.contains(branch)) => {
                (Compatible, "anyOf has more alternatives".to_owned())
            }
            "anyOf" if after.iter().any(|branch| is_given(branch, old, new)) => {
                (Compatible, "anyOf asks for what is always there".to_owned())
            }
            _ if before.is_empty() => (Tightening, format!("{key} is new")),
            _ => (Tightening, format!("{key} asks for something else")),
        };
        findings.push(Finding::new(at, class, reason).of(keys));
    }
    match (old.get("not"), new.get("not")) {
        (before, after) if before == after => {}
        (_, None) => findings.push(Finding::new(at, Compatible, "not goes away")),
        (None, Some(_)) => findings.push(Finding::new(at, Tightening, "not is new").of(&["not"])),
        _ => findings.push(Finding::new(at, Tightening, "not excludes something else").of(&["not"])),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_rule_is_concerned_by_the_types_of_what_it_reads_only() {
        let schema = |size: Value, other: Value, rule: &str| {
            json!({
                "type": "object",
                "x-kubernetes-validations": [{ "rule": rule, "optionalOldSelf": true, "message": "m" }],
                "properties": { "spec": { "type": "object", "properties": { "size": size, "other": other } } },
            })
        };
        let (integer, text) = (json!({ "type": "integer" }), json!({ "type": "string" }));
        let loose = json!({ "x-kubernetes-int-or-string": true });
        let guarded = "(self.spec.size > 1) || (oldSelf.hasValue() && self.spec.size == oldSelf.value().spec.size)";
        let found = |rule: &str, size: &Value, other: &Value| {
            let before = schema(integer.clone(), text.clone(), rule);
            rules_of(&before, &schema(size.clone(), other.clone(), rule))
        };
        assert_eq!(found(guarded, &integer, &loose), Vec::<String>::new());
        assert_eq!(found("has(self.spec.other)", &integer, &loose), Vec::<String>::new());
        let reported = "a rule reads values whose type or format changes: m";
        assert_eq!(found(guarded, &loose, &text), [reported]);
        assert_eq!(found("self.spec == self.spec", &integer, &loose), [reported]);
    }

    #[test]
    fn a_rule_is_the_same_whatever_it_compares_to_let_pass_what_was_there_before() {
        let schema = |entry: Value, fields: &[&str]| {
            let fields: serde_json::Map<String, Value> =
                fields.iter().map(|name| ((*name).to_owned(), json!({ "type": "string" }))).collect();
            json!({ "type": "object", "x-kubernetes-validations": [entry], "properties": fields })
        };
        let plain = || json!({ "rule": "self == self", "message": "m" });
        let guarded = |fields: &[&str]| {
            let same: Vec<String> =
                fields.iter().map(|name| format!("self.{name} == oldSelf.value().{name}")).collect();
            let rule = format!("(self == self) || (oldSelf.hasValue() && {})", same.join(" && "));
            json!({ "rule": rule, "message": "m", "optionalOldSelf": true })
        };
        let found = |old: Value, new: Value| {
            let mut findings = Vec::new();
            rules(&schema(old, &["a"]), &schema(new, &["a", "b"]), &[], &mut findings);
            findings.into_iter().map(|one| (one.class, one.reason)).collect::<Vec<_>>()
        };
        let other_way = "a rule lets pass what was there before in another way: m".to_owned();
        assert_eq!(found(guarded(&["a"]), guarded(&["a", "b"])), [(Compatible, other_way.clone())]);
        assert_eq!(found(plain(), guarded(&["a", "b"])), [(Compatible, other_way)]);
        let no_more = "a rule lets pass no more what was there before: m".to_owned();
        assert_eq!(found(guarded(&["a"]), plain()), [(Tightening, no_more)]);
        let other = json!({ "rule": "self != self", "message": "m" });
        let changed = found(plain(), other);
        assert_eq!((changed[0].0, changed[1].0), (Tightening, Compatible), "{changed:?}");
    }

    fn rules_of(old: &Value, new: &Value) -> Vec<String> {
        let mut findings = Vec::new();
        rules(old, new, &[], &mut findings);
        findings.into_iter().map(|finding| finding.reason).collect()
    }
}
