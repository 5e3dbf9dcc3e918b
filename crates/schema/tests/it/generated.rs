//! Generated schemas, one change to each, and generated objects: what is called compatible is, and what is not has an example.

use std::sync::atomic::{AtomicU32, Ordering};

use carrick_schema::Schema;
use carrick_schema::evolution::{Class, Definition, diff, harm};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// Throws dice that fall the same for the same seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % most.max(1)
    }

    fn one_in(&mut self, many: u64) -> bool {
        self.below(many) == 0
    }

    fn pick<T: Clone>(&mut self, all: &[T]) -> T {
        all[usize::try_from(self.below(all.len() as u64)).unwrap()].clone()
    }
}

const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];
const PATTERNS: [&str; 4] = ["^[a-z]+$", "^[a-z0-9]{1,3}$", "^(a|b)", "[0-9]$"];
const FORMATS: [&str; 3] = ["ipv4", "date", "k8s-short-name"];

fn schema(dice: &mut Dice, depth: u64) -> Value {
    let kinds = if depth == 0 { 5 } else { 8 };
    let mut node = match dice.below(kinds) {
        0 => string(dice),
        1 => number(dice, "integer"),
        2 => number(dice, "number"),
        3 => json!({"type": "boolean"}),
        4 => json!({"x-kubernetes-int-or-string": true}),
        5 => {
            let mut list = json!({"type": "array", "items": schema(dice, depth - 1)});
            if dice.one_in(3) {
                list["maxItems"] = json!(1 + dice.below(4));
            }
            if dice.one_in(4) {
                list["minItems"] = json!(1);
            }
            list
        }
        6 => json!({"type": "object", "additionalProperties": schema(dice, depth - 1)}),
        _ => object(dice, depth),
    };
    if dice.one_in(6) {
        node["nullable"] = json!(true);
    }
    node
}

fn string(dice: &mut Dice) -> Value {
    let mut node = json!({"type": "string"});
    match dice.below(8) {
        0 => node["enum"] = json!(["x", "y", "z"]),
        1 => node["pattern"] = json!(dice.pick(&PATTERNS)),
        2 => node["format"] = json!(dice.pick(&FORMATS)),
        3 => node["maxLength"] = json!(dice.below(5)),
        4 => node["minLength"] = json!(dice.below(3)),
        5 => node["x-kubernetes-validations"] = json!([{"rule": "self != 'b1'"}]),
        _ => {}
    }
    node
}

fn number(dice: &mut Dice, kind: &str) -> Value {
    let mut node = json!({"type": kind});
    if dice.one_in(3) {
        node["minimum"] = json!(dice.below(5));
        node["exclusiveMinimum"] = json!(dice.one_in(4));
    }
    if dice.one_in(3) {
        node["maximum"] = json!(5 + dice.below(10));
        node["exclusiveMaximum"] = json!(dice.one_in(4));
    }
    if dice.one_in(6) {
        node["multipleOf"] = json!(1 + dice.below(3));
    }
    node
}

fn object(dice: &mut Dice, depth: u64) -> Value {
    let mut fields = Map::new();
    for name in NAMES {
        if dice.one_in(2) {
            let mut field = schema(dice, depth.saturating_sub(1));
            if dice.one_in(5) {
                let default = value(dice, &field);
                if is_valid(&field, &default) {
                    field["default"] = default;
                }
            }
            fields.insert(name.to_owned(), field);
        }
    }
    let required: Vec<&String> = fields.keys().filter(|_| dice.one_in(4)).collect();
    let mut node = json!({"type": "object", "required": required, "properties": fields});
    if dice.one_in(5) {
        node["x-kubernetes-preserve-unknown-fields"] = json!(true);
    }
    if dice.one_in(8) {
        node["anyOf"] = branches(&node);
    }
    if dice.one_in(8) {
        node["maxProperties"] = json!(1 + dice.below(4));
    }
    node
}

/// Whether a default fits: the API server takes no others.
fn is_valid(node: &Value, value: &Value) -> bool {
    !value.is_null() && Schema::part(node).is_ok_and(|schema| schema.validate(value, None).is_empty())
}

/// Conditions about the fields that there are.
fn branches(node: &Value) -> Value {
    let names = node["properties"].as_object().into_iter().flatten().take(2);
    let all: Vec<Value> = names.map(|(name, _)| json!({"required": [name]})).collect();
    if all.is_empty() { json!([{}]) } else { Value::Array(all) }
}

/// A value that is likely to fit.
fn value(dice: &mut Dice, node: &Value) -> Value {
    if node["nullable"] == true && dice.one_in(5) {
        return Value::Null;
    }
    if let Some(values) = node["enum"].as_array() {
        return dice.pick(values);
    }
    if node["x-kubernetes-int-or-string"] == true {
        return if dice.one_in(2) { json!(dice.below(20)) } else { json!(dice.pick(&["a", "5%"])) };
    }
    let texts = ["a", "b", "abc", "", "b1", "z9", "10.0.0.1", "2024-01-01", "Ab", "x", "longer"];
    match node["type"].as_str() {
        Some("string") => json!(dice.pick(&texts)),
        Some("integer") => json!(dice.below(18)),
        Some("number") => json!(f64::from(u32::try_from(dice.below(36)).unwrap()) / 2.0),
        Some("boolean") => json!(dice.one_in(2)),
        Some("array") => {
            let count = dice.below(5);
            (0..count).map(|_| value(dice, &node["items"])).collect()
        }
        Some("object") => {
            let mut map = Map::new();
            let required: Vec<&str> =
                node["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            for (name, field) in node["properties"].as_object().into_iter().flatten() {
                if required.contains(&name.as_str()) || dice.one_in(2) {
                    map.insert(name.clone(), value(dice, field));
                }
            }
            if let Some(values) = node.get("additionalProperties") {
                for key in ["k", "l"] {
                    if dice.one_in(2) {
                        map.insert(key.to_owned(), value(dice, values));
                    }
                }
            }
            if node["x-kubernetes-preserve-unknown-fields"] == true && dice.one_in(2) {
                map.insert(dice.pick(&["a", "b", "u"]).to_owned(), json!({"deep": [1, {"er": "x"}]}));
            }
            Value::Object(map)
        }
        _ => json!(dice.pick(&["free", "x"])),
    }
}

/// Paths of all nodes, as JSON pointers.
fn nodes(node: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    for (name, field) in node["properties"].as_object().into_iter().flatten() {
        nodes(field, &format!("{at}/properties/{name}"), found);
    }
    for key in ["items", "additionalProperties"] {
        if node[key].is_object() {
            nodes(&node[key], &format!("{at}/{key}"), found);
        }
    }
}

/// Changes one thing somewhere.
fn mutate(dice: &mut Dice, root: &mut Value) {
    let mut all = Vec::new();
    nodes(root, "", &mut all);
    let at = dice.pick(&all);
    let fresh = schema(dice, 1);
    let node = root.pointer_mut(&at).unwrap();
    let toggle = |node: &mut Value, key: &str, value: Value| {
        if node.get(key).is_some() {
            node.as_object_mut().unwrap().remove(key);
        } else {
            node[key] = value;
        }
    };
    match node["type"].as_str() {
        Some("object") if node.get("properties").is_some() => match dice.below(9) {
            0 => node["properties"][dice.pick(&NAMES)] = fresh,
            1 | 2 => {
                let name = dice.pick(&NAMES);
                node["properties"].as_object_mut().unwrap().remove(name);
                node["required"].as_array_mut().unwrap().retain(|known| *known != name);
            }
            3 => node["required"] = json!(node["properties"].as_object().unwrap().keys().take(1).collect::<Vec<_>>()),
            4 => toggle(node, "x-kubernetes-preserve-unknown-fields", json!(true)),
            5 => toggle(node, "maxProperties", json!(2)),
            6 => toggle(node, "anyOf", branches(node)),
            7 => toggle(node, "not", branches(node)[0].clone()),
            _ => {
                let name = dice.pick(&NAMES);
                if let Some(field) = node["properties"].get(name).cloned() {
                    let default = value(dice, &field);
                    if is_valid(&field, &default) {
                        node["properties"][name]["default"] = default;
                    }
                }
            }
        },
        Some("object") => *node = json!({"type": "object", "additionalProperties": fresh}),
        Some("array") => match dice.below(4) {
            0 => toggle(node, "maxItems", json!(2)),
            1 => toggle(node, "minItems", json!(1)),
            2 => toggle(node, "nullable", json!(true)),
            _ => node["items"] = fresh,
        },
        Some("string") => match dice.below(5) {
            0 => *node = string(dice),
            1 => toggle(node, "pattern", json!(dice.pick(&PATTERNS))),
            2 => toggle(node, "maxLength", json!(2)),
            3 => toggle(node, "enum", json!(["x", "y"])),
            _ => toggle(node, "x-kubernetes-validations", json!([{"rule": "size(self) < 3"}])),
        },
        Some(kind @ ("integer" | "number")) => {
            let kind = if dice.one_in(5) { "integer" } else { kind }.to_owned();
            *node = number(dice, &kind);
        }
        _ => *node = fresh,
    }
}

fn definition(schema: &Value) -> Definition {
    let version = json!({"name": "v1", "served": true, "storage": true, "schema": schema});
    let names = json!({"kind": "Thing", "plural": "things"});
    let spec = json!({"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]});
    Definition::read(&json!({"kind": "APIResourceSchema", "spec": spec})).unwrap()
}

static HARMFUL: AtomicU32 = AtomicU32::new(0);
static SHOWN: AtomicU32 = AtomicU32::new(0);
static COMPATIBLE: AtomicU32 = AtomicU32::new(0);
static OBJECTS: AtomicU32 = AtomicU32::new(0);

fn one_case(seed: u64) -> Result<(), TestCaseError> {
    let mut dice = Dice(seed);
    let spec = object(&mut dice, 3);
    let old = json!({"type": "object", "properties": {"spec": spec}});
    let mut new = old.clone();
    for _ in 0..=dice.below(2) {
        mutate(&mut dice, &mut new["properties"]["spec"]);
    }
    let (Ok(before), Ok(after)) = (Schema::compile(&old), Schema::compile(&new)) else { return Ok(()) };
    let report = diff(&definition(&old), &definition(&new));
    // What is shown is true.
    for change in report.changes.iter().filter(|change| change.class > Class::Compatible) {
        HARMFUL.fetch_add(1, Ordering::Relaxed);
        if let Some(example) = &change.example {
            SHOWN.fetch_add(1, Ordering::Relaxed);
            prop_assert!(harm(&before, &after, example).is_some(), "{change:?}\n{old}\n{new}");
        }
    }
    if report.class == Class::Compatible {
        COMPATIBLE.fetch_add(1, Ordering::Relaxed);
        for _ in 0..60 {
            let spec = value(&mut dice, &old["properties"]["spec"]);
            let object =
                json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "x"}, "spec": spec});
            let stored = before.stored(object.clone());
            if before.validate(&stored, None).is_empty() {
                OBJECTS.fetch_add(1, Ordering::Relaxed);
            }
            for object in [object, stored] {
                let harmed = harm(&before, &after, &object);
                prop_assert!(harmed.is_none(), "{harmed:?} {object}\n{old}\n{new}\n{}", report.text());
            }
        }
    }
    Ok(())
}

#[test]
fn what_is_compatible_keeps_every_object_and_what_is_not_has_an_example() {
    let mut runner =
        proptest::test_runner::TestRunner::new(ProptestConfig { cases: 1_500, ..ProptestConfig::default() });
    runner.run(&any::<u64>(), one_case).unwrap();
    let [harmful, shown, compatible, objects] =
        [&HARMFUL, &SHOWN, &COMPATIBLE, &OBJECTS].map(|it| it.load(Ordering::Relaxed));
    println!(
        "{harmful} harmful changes, {shown} with an example; {compatible} compatible pairs, {objects} valid objects"
    );
    // Neither side of the promise is kept by never being asked for.
    assert!(compatible > 100 && objects > 1_000, "{compatible} compatible pairs, {objects} valid objects");
    assert!(f64::from(shown) >= 0.9 * f64::from(harmful), "only {shown} of {harmful} harmful changes have an example");
}
