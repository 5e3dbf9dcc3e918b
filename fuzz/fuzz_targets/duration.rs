//! Any text as a duration: nothing panics, and what is printed reads as the same duration.
#![no_main]

use carrick_go::duration;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let nanos = duration::parse(text);
    if let Some(nanos) = nanos {
        assert_eq!(duration::parse(&duration::format(nanos)), Some(nanos));
        assert_eq!(duration::parse(&duration::format_seconds(nanos)), Some(nanos));
        assert!(duration::round_to_second(nanos).abs_diff(nanos) <= 500_000_000);
    }
    assert!(nanos.is_none() || duration::parse_format(text) == nanos);
});
