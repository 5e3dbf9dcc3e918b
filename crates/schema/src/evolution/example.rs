//! An object that a schema allows, as near to a given one as can be found.
//!
//! ```text
//!   seed ─▶ validate ─▶ the first complaint ─▶ other values there, or around it ─▶ fewer complaints? ─▶ again
//! ```

mod path;

use std::collections::HashSet;

use crate::{Cause, Schema};
use serde_json::Value;
use thiserror::Error;

use self::path::Place;
use crate::evolution::node;
use crate::evolution::sample::samples;

/// How many times an object is changed.
const CHANGES: usize = 60;
/// How many objects are validated in all, so that no schema takes minutes.
const TRIES: usize = 12_000;
/// How many complaints are considered before a change.
const COMPLAINTS: usize = 8;

/// No object was found that the schema allows.
#[derive(Debug, Error)]
#[error("{}", problems.join("; "))]
pub struct NoExample {
    /// The nearest one.
    pub nearest: Value,
    /// What is wrong with it, or with the schema.
    pub problems: Vec<String>,
}

/// An object that a schema allows, and that differs from a given one no more than needed, as far as a search can tell.
pub fn example(schema: &Value, seed: Value) -> Result<Value, NoExample> {
    let compiled = match Schema::compile(schema) {
        Ok(compiled) => compiled,
        Err(error) => return Err(NoExample { nearest: seed, problems: vec![error.to_string()] }),
    };
    let mut search = Search { root: node::whole(schema), compiled, tries: 0, seen: HashSet::new() };
    let start = search.attempt(seed);
    let mut best = start.clone();
    for _ in 0..CHANGES {
        if best.causes.is_empty() {
            return Ok(best.object);
        }
        match search.better(&best) {
            Some(next) => best = next,
            None => break,
        }
    }
    if best.causes.is_empty() {
        return Ok(best.object);
    }
    // Whole objects, with nothing of the seed but its head.
    for mut object in samples(schema).into_iter().filter(Value::is_object) {
        for key in ["apiVersion", "kind", "metadata"] {
            object[key] = start.object[key].clone();
        }
        let attempt = search.attempt(object);
        if attempt.causes.is_empty() {
            return Ok(attempt.object);
        }
    }
    let fewest = if start.causes.len() <= best.causes.len() { start } else { best };
    Err(NoExample { nearest: fewest.object, problems: fewest.causes.iter().map(Cause::text).collect() })
}

/// An object, and what is wrong with it.
#[derive(Clone)]
struct Attempt {
    object: Value,
    causes: Vec<Cause>,
}

impl Attempt {
    /// What is wrong, whatever the values: two objects with the same complaints are alike.
    fn complaints(&self) -> String {
        let reported = self.causes.iter().map(|cause| format!("{} {}", cause.field, cause.reason));
        reported.collect::<Vec<_>>().join("\n")
    }
}

struct Search {
    root: Value,
    compiled: Schema,
    tries: usize,
    /// Complaints that were met before, so that no two changes undo each other.
    seen: HashSet<String>,
}

impl Search {
    fn attempt(&mut self, object: Value) -> Attempt {
        self.tries += 1;
        let causes = self.compiled.validate(&self.compiled.stored(object.clone()), None);
        Attempt { object, causes }
    }

    /// A change after which there are fewer complaints, or at least others.
    fn better(&mut self, now: &Attempt) -> Option<Attempt> {
        self.seen.insert(now.complaints());
        let mut aside = None;
        for cause in now.causes.iter().take(COMPLAINTS) {
            let mut place = Place::parse(&cause.field);
            loop {
                for object in self.changes(&now.object, &place) {
                    if self.tries >= TRIES {
                        return aside;
                    }
                    let next = self.attempt(object);
                    if next.causes.len() < now.causes.len() {
                        return Some(next);
                    }
                    let elsewhere = next.causes.len() == now.causes.len() && !self.seen.contains(&next.complaints());
                    if elsewhere && aside.is_none() {
                        aside = Some(next);
                    }
                }
                // The fault may be in what is around it.
                if !place.up() {
                    break;
                }
            }
        }
        aside
    }

    /// The object with other values at a place.
    fn changes(&self, object: &Value, place: &Place) -> Vec<Value> {
        if place.is_root() {
            return Vec::new();
        }
        let Some(schema) = place.schema(&self.root) else { return Vec::new() };
        let known = place.value(object);
        let mut all = Vec::new();
        for value in samples(&schema) {
            // What is there already stays, if that is possible.
            if let (Some(Value::Object(known)), Value::Object(new)) = (known, &value) {
                let mut both = new.clone();
                both.extend(known.clone());
                all.extend(place.with(object, Value::Object(both)));
            }
            all.extend(place.with(object, value));
        }
        all.extend(place.without(object));
        all
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The spec of the example for a schema of specs, starting with an empty one.
    fn spec(schema: &Value) -> Result<Value, NoExample> {
        let whole = json!({ "type": "object", "required": ["spec"], "properties": { "spec": schema } });
        let seed = json!({ "apiVersion": "a/v1", "kind": "A", "metadata": { "name": "my-a" }, "spec": {} });
        let found = example(&whole, seed)?;
        assert_eq!(found["metadata"]["name"], "my-a");
        let compiled = Schema::compile(&whole).unwrap();
        assert_eq!(compiled.validate(&compiled.stored(found.clone()), None), [], "{found}");
        Ok(found["spec"].clone())
    }

    #[test]
    fn what_a_schema_asks_for_is_found() {
        let text = json!({ "type": "string" });
        let cases = [
            (json!({ "type": "object" }), json!({})),
            (
                json!({ "type": "object", "required": ["a"], "properties": { "a": { "type": "string", "pattern": "^[0-9]{3}x$" } } }),
                json!({ "a": "111x" }),
            ),
            (
                json!({ "type": "object", "minProperties": 1, "additionalProperties": { "type": "string" } }),
                json!({ "key0": "a" }),
            ),
            (
                json!({ "type": "object", "properties": { "a": text, "b": text }, "oneOf": [{ "required": ["a"] }, { "required": ["b"] }] }),
                json!({ "a": "a" }),
            ),
            (
                json!({ "type": "object", "properties": { "a": text, "b": text },
                    "x-kubernetes-validations": [{ "rule": "has(self.a) != has(self.b)" }] }),
                json!({ "a": "a" }),
            ),
        ];
        for (schema, wanted) in cases {
            assert_eq!(spec(&schema).unwrap(), wanted, "{schema}");
        }
    }

    #[test]
    fn what_the_seed_says_is_kept_where_it_can_be() {
        let schema = json!({ "type": "object", "properties": { "spec": { "type": "object", "required": ["kept", "code"], "properties": {
            "kept": { "type": "string" },
            "code": { "type": "string", "pattern": "^[A-Z]+$" },
        } } } });
        let seed = json!({ "apiVersion": "a/v1", "kind": "A", "metadata": { "name": "my-a" },
            "spec": { "kept": "changeme", "code": "changeme" } });
        let found = example(&schema, seed).unwrap();
        assert_eq!(found["spec"]["kept"], "changeme");
        assert_ne!(found["spec"]["code"], "changeme");
    }

    #[test]
    fn a_schema_that_allows_nothing_is_told_in_the_words_of_the_validation() {
        let rules = json!([{ "rule": "false", "message": "never" }]);
        let error = spec(&json!({ "type": "object", "required": [], "x-kubernetes-validations": rules })).unwrap_err();
        assert!(error.to_string().contains("spec: Invalid value: \"object\": never"), "{error}");
        assert_eq!(error.nearest["kind"], "A");
        let rules = json!([{ "rule": "self.nothing" }]);
        let error = spec(&json!({ "type": "object", "x-kubernetes-validations": rules })).unwrap_err();
        assert!(error.to_string().contains("undefined field 'nothing'"), "{error}");
    }
}
