//! Any text as a mutation and as a rule: refused or evaluated, within the budget, without a panic.
#![no_main]

use std::sync::LazyLock;

use carrick_cel::{Mutation, Rule, Schema};
use serde_json::{Value, json};

static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
    let list = |kind: &str| json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": kind});
    Schema::root(&json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "n": {"type": "integer"},
        "f": {"type": "number"},
        "s": {"type": "string"},
        "t": {"type": "string", "format": "date-time"},
        "d": {"type": "string", "format": "duration"},
        "by": {"type": "string", "format": "byte"},
        "any": {"x-kubernetes-int-or-string": true},
        "l": list("atomic"),
        "set": list("set"),
        "m": {"type": "object", "additionalProperties": {"type": "integer"}},
    }}}}))
});

static OBJECT: LazyLock<Value> = LazyLock::new(|| {
    json!({
        "apiVersion": "v1", "kind": "X", "metadata": {"name": "n", "labels": {"app": "web"}}, "s": "hello", "n": 3,
        "l": [3, 1, 2], "m": {"x": 1, "y": 2}, "objs": [{"name": "a", "v": 1}], "nul": null, "f": 1.5,
        "spec": {
            "n": 3, "f": 2, "s": "héllo", "t": "2024-02-29T12:00:00+01:00", "d": "90m", "by": "aGk=", "any": "x",
            "l": ["b", "a"], "set": ["a", "b"], "m": {"x": 1, "y": 2},
        },
    })
});

libfuzzer_sys::fuzz_target!(|input: &str| {
    if let Ok(mutation) = Mutation::compile(input) {
        let _ = mutation.eval(&OBJECT["n"], &OBJECT, &OBJECT["spec"]);
    }
    // the message is evaluated whenever the rule fails
    for entry in [json!({"rule": input}), json!({"rule": "false", "messageExpression": input})] {
        if let Ok(rule) = Rule::compile_typed(&entry, &SCHEMA) {
            let _ = rule.eval(&OBJECT, Some(&OBJECT));
        }
        if let Ok(rule) = Rule::compile(&entry) {
            let _ = rule.eval(&OBJECT, Some(&OBJECT));
        }
    }
});
