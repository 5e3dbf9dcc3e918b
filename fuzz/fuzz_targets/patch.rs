//! An object and a patch, one per line: every kind of patch is refused or applied, and what it makes is neither too deep nor too large.
#![no_main]

use carrick_json::{DEEPEST, depth};
use carrick_plane::fuzzing::{PATCHES, patched};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

/// The copies of a patch, beside what is sent itself.
const GROWTH: usize = 4 << 20;

fuzz_target!(|input: &str| {
    let Some((object, patch)) = input.split_once('\n') else { return };
    let (Ok(object), Ok(patch)) = (carrick_json::from_str::<Value>(object), carrick_json::from_str::<Value>(patch))
    else {
        return;
    };
    for media in PATCHES {
        let Some(made) = patched(media, &object, &patch) else { continue };
        let made = made.to_string();
        assert!(depth(made.as_bytes()) <= DEEPEST, "{media}");
        assert!(made.len() <= GROWTH + 8 * input.len(), "{media}: {} bytes", made.len());
    }
});
