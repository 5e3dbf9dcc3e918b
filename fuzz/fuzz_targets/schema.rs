//! A schema and an object, one per line: whatever compiles can be used, and what was stored is stored the same again.
#![no_main]

use carrick_schema::Schema;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|input: &str| {
    let Some((schema, object)) = input.split_once('\n') else { return };
    let (Ok(schema), Ok(object)) = (serde_json::from_str::<Value>(schema), serde_json::from_str::<Value>(object)) else {
        return;
    };
    let Ok(schema) = Schema::compile(&schema) else { return };
    let mut pruned = object.clone();
    schema.prune(&mut pruned, &mut Vec::new());
    let mut unknown = Vec::new();
    schema.prune(&mut pruned, &mut unknown);
    assert!(unknown.is_empty(), "what was pruned is known: {unknown:?}");
    schema.validate(&pruned, Some(&object));
    let stored = schema.stored(object);
    assert_eq!(schema.stored(stored.clone()), stored);
});
