//! Two documents, one per line: the difference, applied to the first, gives the second.
#![no_main]

use carrick_json::merge::{self, text};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(members) => members.values().any(has_null),
        _ => false,
    }
}

fuzz_target!(|input: &str| {
    let Some((from, to)) = input.split_once('\n') else { return };
    let (patch, applied) = (text::diff(from, to), text::apply(from, to));
    let (Ok(from_value), Ok(to_value)) = (serde_json::from_str::<Value>(from), serde_json::from_str::<Value>(to)) else {
        return;
    };
    let mut target = from_value.clone();
    merge::apply(&mut target, &to_value);
    let applied = applied.expect("JSON merges");
    assert_eq!(serde_json::from_str::<Value>(&applied).expect("it is JSON"), target);
    if has_null(&to_value) || !from_value.is_object() || !to_value.is_object() {
        return;
    }
    let patch = patch.expect("JSON has a difference");
    let got = text::apply(from, &patch).expect("JSON merges");
    assert_eq!(text::diff(&got, to).expect("JSON has a difference"), "{}");
    let mut got = from_value.clone();
    merge::apply(&mut got, &merge::diff(&from_value, &to_value));
    assert_eq!(got, to_value);
});
