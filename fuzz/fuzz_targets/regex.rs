//! A pattern, a replacement and a text, one per line: nothing panics, and without a match the text stays.
#![no_main]

use carrick_go::regex::GoRegex;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &str| {
    let mut lines = input.splitn(3, '\n');
    let (pattern, replacement, text) =
        (lines.next().unwrap_or(""), lines.next().unwrap_or(""), lines.next().unwrap_or(""));
    match GoRegex::compile(pattern) {
        Ok(regex) => {
            let replaced = regex.replace_all(text, replacement);
            assert!(regex.is_match(text) || replaced == text);
            assert_eq!(regex.replace_all(text, "$0"), text);
        }
        Err(error) => {
            if let Some(position) = error.position {
                assert!(pattern.is_char_boundary(position), "{error} at {position}");
            }
        }
    }
});
