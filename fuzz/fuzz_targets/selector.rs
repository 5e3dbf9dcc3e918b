//! The first line is a label selector, the others are labels: nothing panics, and what is refused is refused in some words.
#![no_main]

use carrick_go::labels::Selector;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &str| {
    let (text, labels) = input.split_once('\n').unwrap_or((input, ""));
    match Selector::parse(text) {
        Ok(selector) => {
            let pairs: Vec<(&str, &str)> = labels.lines().filter_map(|line| line.split_once('=')).collect();
            selector.matches(|key| pairs.iter().find(|(known, _)| *known == key).map(|(_, value)| *value));
            assert!(!selector.is_empty() || selector.matches(|_| None));
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
