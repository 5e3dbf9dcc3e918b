//! Any text as YAML: every document becomes JSON that is not too deep, and JSON of it is read as the same again.
#![no_main]

use carrick_json::{DEEPEST, depth, yaml};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Ok(values) = yaml::values(text) else { return };
    for value in values {
        let json = value.to_string();
        assert!(depth(json.as_bytes()) <= DEEPEST);
        assert_eq!(carrick_json::from_str::<serde_json::Value>(&json).ok(), Some(value));
    }
});
