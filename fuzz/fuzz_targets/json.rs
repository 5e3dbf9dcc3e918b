//! Any bytes as JSON: found faulty exactly where serde_json finds them faulty, apart from what only that one minds.
#![no_main]

use carrick_go::json::{MAX_DEPTH, fault};
use libfuzzer_sys::fuzz_target;
use serde::de::IgnoredAny;

fuzz_target!(|text: &[u8]| {
    let told = fault(text, MAX_DEPTH);
    let mut reader = serde_json::Deserializer::from_slice(text);
    reader.disable_recursion_limit();
    let read = <IgnoredAny as serde::Deserialize>::deserialize(&mut reader).and_then(|_| reader.end());
    if read.is_ok() {
        assert!(told.is_none_or(|told| told.ends_with("exceeded max depth")));
    }
});
