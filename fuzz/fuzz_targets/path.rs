//! The first line is a path, the rest a document: nothing panics, and what is written into JSON leaves it JSON.
#![no_main]

use carrick_json::path::text;
use libfuzzer_sys::fuzz_target;

fn is_json(text: &str) -> bool {
    serde_json::from_str::<&serde_json::value::RawValue>(text).is_ok()
}

fuzz_target!(|input: &str| {
    let (path, document) = input.split_once('\n').unwrap_or((input, "{}"));
    let found = text::get(document, path);
    assert!(found.exists() || found.raw().is_empty());
    if found.index() > 0 {
        assert!(document[found.index()..].starts_with(found.raw()));
    }
    found.text();
    found.array().for_each(|item| {
        item.int();
    });
    if !is_json(document) {
        let _ = text::set(document, path, "1");
        let _ = text::delete(document, path);
        return;
    }
    if let Ok(changed) = text::set(document, path, r#"{"new":[1]}"#) {
        assert!(is_json(&changed), "set makes {changed}");
    }
    if let Ok(changed) = text::delete(document, path) {
        assert!(is_json(&changed), "delete makes {changed}");
    }
});
