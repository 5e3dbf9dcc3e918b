//! Any float in any format: nothing panics, and the shortest forms read back as the same float.
#![no_main]

use carrick_go::float;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (f64, u8, Option<u16>)| {
    let (value, format, precision) = input;
    let verb = char::from(b"eEfFgGbxX"[usize::from(format) % 9]);
    let text = float::format(value, verb, precision.map(usize::from));
    assert!(!text.is_empty());
    if value.is_finite() {
        for text in [float::json(value), float::format(value, 'e', None), float::format(value, 'f', None)] {
            assert_eq!(text.parse::<f64>().map(f64::to_bits), Ok(value.to_bits()), "{text}");
        }
    }
});
