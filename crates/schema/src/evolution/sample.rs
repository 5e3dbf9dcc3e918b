//! Values that a schema allows: few, small and different from each other. Whether an object is really valid is for the validator to say.

mod number;
mod pattern;
mod text;

use crate::Schema;
use serde_json::{Map, Value, json};

use crate::evolution::node::{self, Kind};

/// How many values are made for one node.
const MOST: usize = 24;
/// How deep optional fields are filled in.
const DEPTH: usize = 5;
/// Lists and maps grow to this size if a schema asks for it.
const SIZE: u64 = 70;

/// Values that a schema allows, small ones first: each has passed the validator. None if the schema is not one that API servers take.
pub fn examples(schema: &Value) -> Vec<Value> {
    let Ok(compiled) = Schema::part(schema) else { return Vec::new() };
    samples(schema).into_iter().filter(|value| compiled.validate(value, None).is_empty()).collect()
}

/// Values for a node, simple ones first.
pub(crate) fn samples(schema: &Value) -> Vec<Value> {
    near(schema, schema)
}

/// The same, with values at the borders of another schema too.
pub(crate) fn near(schema: &Value, other: &Value) -> Vec<Value> {
    let rules = other.get("x-kubernetes-validations").map(ToString::to_string).unwrap_or_default();
    Sampler { depth: DEPTH, rules: &rules }.values(schema, other)
}

/// The smallest value for a node.
pub(crate) fn smallest(schema: &Value) -> Option<Value> {
    Sampler { depth: 0, rules: "" }.values(schema, schema).into_iter().next()
}

#[derive(Clone, Copy)]
struct Sampler<'a> {
    depth: usize,
    /// Rules to be broken: the fields that they name vary first.
    rules: &'a str,
}

impl Sampler<'_> {
    fn values(self, schema: &Value, other: &Value) -> Vec<Value> {
        if let Some(values) = schema["enum"].as_array().filter(|values| !values.is_empty()) {
            return values.iter().filter(|value| !value.is_null()).take(MOST).cloned().collect();
        }
        let mut values = match Kind::of(schema) {
            Kind::Object => self.objects(schema, other),
            Kind::Array => self.lists(schema, other),
            Kind::String => fitting(schema, text::candidates(schema, other)),
            Kind::Integer | Kind::Number => fitting(schema, number::candidates(schema, other)),
            Kind::Boolean => vec![json!(false), json!(true)],
            Kind::IntOrString => {
                let texts = text::candidates(schema, other).into_iter().take(MOST / 2);
                fitting(schema, number::candidates(schema, other).into_iter().chain(texts).collect())
            }
            Kind::Any => {
                let mut any =
                    vec![json!("text"), json!(7), json!({"any": {"thing": 1}}), json!([{"any": 1}]), json!(true)];
                any.extend(
                    other.as_object().filter(|_| schema != other).map(|_| smallest(other)).into_iter().flatten(),
                );
                any
            }
        };
        values.truncate(self.most(schema));
        values
    }

    /// How many values are made: more of whole objects, because rules may look at any of their fields.
    fn most(self, schema: &Value) -> usize {
        match (Kind::of(schema), DEPTH - self.depth.min(DEPTH)) {
            (Kind::Object, 0) => 10 * MOST,
            (Kind::Object, 1) => 4 * MOST,
            _ => MOST,
        }
    }

    fn below(self) -> Self {
        Self { depth: self.depth.saturating_sub(1), ..self }
    }

    fn objects(self, schema: &Value, other: &Value) -> Vec<Value> {
        let none = Map::new();
        let fields = schema["properties"].as_object().unwrap_or(&none);
        let required = node::required(schema);
        let mut least = Map::new();
        for name in &required {
            let known = node::child(schema, name).unwrap_or_default();
            // A default fills it in.
            if known.get("default").is_some_and(|default| !default.is_null()) {
                continue;
            }
            if let Some(value) = (Self { depth: 0, ..self }).values(&known, &known).into_iter().next() {
                least.insert(name.clone(), value);
            }
        }
        if schema["x-kubernetes-embedded-resource"] == true {
            for (name, value) in [("apiVersion", "v1"), ("kind", "Secret")] {
                least.entry(name).or_insert_with(|| value.into());
            }
        }
        let wanted =
            [schema, other].into_iter().flat_map(|it| [it["minProperties"].as_u64(), it["maxProperties"].as_u64()]);
        let wanted: Vec<u64> = wanted.flatten().flat_map(|count| [count.saturating_sub(1), count, count + 1]).collect();
        // Alternatives commonly ask for one of several fields.
        let mut all = Vec::new();
        for branch in ["anyOf", "oneOf"].iter().filter_map(|key| schema[key].as_array()).flatten() {
            let mut map = least.clone();
            for name in node::required(branch) {
                let known = node::child(schema, &name).unwrap_or_default();
                if let Some(value) = (Self { depth: 0, ..self }).values(&known, &known).into_iter().next() {
                    map.entry(name).or_insert(value);
                }
            }
            all.push(Value::Object(map));
        }
        if let Some(Value::Object(first)) = all.first() {
            least.clone_from(first);
        }
        all.push(Value::Object(least.clone()));
        if self.depth > 0 {
            self.fuller(fields, other, &least, &mut all, self.most(schema) / fields.len().clamp(1, 4));
        }
        for count in wanted.into_iter().filter(|count| *count <= SIZE) {
            all.push(Value::Object(self.filled(schema, fields, least.clone(), count)));
        }
        if schema["minProperties"]
            .as_u64()
            .is_some_and(|count| least.len() < usize::try_from(count).unwrap_or(usize::MAX))
        {
            all.rotate_right(1);
            let count = schema["minProperties"].as_u64().unwrap_or_default().min(SIZE);
            all.insert(0, Value::Object(self.filled(schema, fields, least, count)));
        } else if let (Some(rest), true) = (node::rest(schema), self.depth > 0) {
            for value in self.below().values(&rest, &rest).into_iter().take(4) {
                let mut map = least.clone();
                map.insert("key".to_owned(), value);
                all.push(Value::Object(map));
            }
        }
        all
    }

    /// All fields at once, and single fields with several values.
    fn fuller(
        self,
        fields: &Map<String, Value>,
        other: &Value,
        least: &Map<String, Value>,
        all: &mut Vec<Value>,
        each: usize,
    ) {
        let mut full = least.clone();
        let mut singles = Vec::new();
        for (name, field) in fields.iter().take(40) {
            let theirs = other["properties"].get(name).unwrap_or(field);
            let values = self.below().values(field, theirs);
            if let Some(value) = values.first() {
                full.entry(name.clone()).or_insert_with(|| value.clone());
            }
            for (turn, value) in values.into_iter().take(each).enumerate() {
                singles.push((turn, name.clone(), value));
            }
        }
        all.push(Value::Object(full.clone()));
        singles.sort_by_key(|(turn, name, _)| (!self.rules.contains(name.as_str()), *turn));
        for (_, name, value) in singles {
            // By itself, and among all others: rules may compare it with them.
            for base in [least, &full] {
                let mut map = base.clone();
                map.insert(name.clone(), value.clone());
                all.push(Value::Object(map));
            }
        }
    }

    /// An object with that many fields, as far as there are names for them.
    fn filled(
        self,
        schema: &Value,
        fields: &Map<String, Value>,
        mut map: Map<String, Value>,
        count: u64,
    ) -> Map<String, Value> {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let below = self.below();
        for (name, field) in fields {
            if map.len() < count && !map.contains_key(name) {
                map.extend(below.values(field, field).into_iter().next().map(|value| (name.clone(), value)));
            }
        }
        if let Some(rest) = node::rest(schema)
            && let Some(value) = below.values(&rest, &rest).into_iter().next()
        {
            let mut number = 0;
            while map.len() < count {
                map.insert(format!("key{number}"), value.clone());
                number += 1;
            }
        }
        map
    }

    fn lists(self, schema: &Value, other: &Value) -> Vec<Value> {
        let (items, theirs) = (node::item(schema), node::item(other));
        let pool = self.below().values(&items, &theirs);
        let least = schema["minItems"].as_u64().unwrap_or(0);
        let wanted = [schema, other].into_iter().flat_map(|it| [it["minItems"].as_u64(), it["maxItems"].as_u64()]);
        let wanted = wanted.flatten().flat_map(|count| [count.saturating_sub(1), count, count + 1]);
        let mut all = Vec::new();
        for count in [least].into_iter().chain([1, 0, 2]).chain(wanted).filter(|count| (least..=SIZE).contains(count)) {
            all.push(Value::Array(distinct(&items, &pool, count)));
        }
        // Every item by itself, and one twice.
        for item in pool.iter().take(8).filter(|_| least <= 1) {
            all.push(json!([item]));
        }
        if let Some(first) = pool.first().filter(|_| least <= 2) {
            all.push(json!([first, first]));
        }
        all
    }
}

/// That many items, all different as far as that is possible.
fn distinct(items: &Value, pool: &[Value], count: u64) -> Vec<Value> {
    let count = usize::try_from(count).unwrap_or_default();
    let mut list: Vec<Value> = Vec::new();
    for value in pool {
        if list.len() < count && !list.contains(value) {
            list.push(value.clone());
        }
    }
    let mut number = 0;
    while list.len() < count {
        let Some(first) = pool.first() else { break };
        number += 1;
        let made = match Kind::of(items) {
            Kind::String => fitting(items, vec![json!(format!("a{number}"))]).pop(),
            Kind::Integer | Kind::Number | Kind::IntOrString => fitting(items, vec![json!(1000 + number)]).pop(),
            _ => None,
        };
        list.push(made.unwrap_or_else(|| first.clone()));
    }
    list
}

/// Those of the values that a node without nodes below allows.
fn fitting(schema: &Value, values: Vec<Value>) -> Vec<Value> {
    let mut plain = schema.clone();
    if let Some(map) = plain.as_object_mut() {
        map.remove("default");
    }
    let Ok(compiled) = Schema::part(&plain) else { return Vec::new() };
    let mut kept: Vec<Value> = Vec::new();
    for value in values {
        if kept.len() < MOST && !kept.contains(&value) && compiled.validate(&value, None).is_empty() {
            kept.push(value);
        }
    }
    kept
}
