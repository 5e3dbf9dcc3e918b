//! Two documents, one per line: the difference, applied to the first, gives the second.
#![no_main]

use carrick_json::merge;
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
    let (Ok(from), Ok(to)) = (serde_json::from_str::<Value>(from), serde_json::from_str::<Value>(to)) else { return };
    let mut merged = from.clone();
    merge::apply(&mut merged, &to);
    if has_null(&to) || !from.is_object() || !to.is_object() {
        return;
    }
    let mut got = from.clone();
    merge::apply(&mut got, &merge::diff(&from, &to));
    assert_eq!(got, to);
});
