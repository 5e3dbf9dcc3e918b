//! The first line is a constraint, the second a version: nothing panics, and a version reads as itself.
#![no_main]

use carrick_go::semver::{Constraints, Version};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &str| {
    let (constraint, text) = input.split_once('\n').unwrap_or(("*", input));
    let Ok(version) = Version::parse(text) else {
        assert!(Version::parse_strict(text).is_err());
        return;
    };
    let printed = Version::parse(&version.to_string()).expect("what is printed is a version");
    assert!(printed.compare(&version).is_eq());
    if let Ok(strict) = Version::parse_strict(text) {
        assert_eq!(strict, version);
        assert!(Version::parse_normalized(text).is_ok_and(|same| same.compare(&version).is_eq()));
    }
    if let Ok(constraints) = Constraints::parse(constraint) {
        constraints.allow(&version);
    }
});
