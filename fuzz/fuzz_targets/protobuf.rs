//! Any bytes as an object in protobuf, and as a watch: refused, or JSON that is read as the same again after it was written.
#![no_main]

use carrick_plane::protobuf::{decode, encode, take_event};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let mut stream = input.to_vec();
    while let Ok(Some((_, object))) = take_event(&mut stream) {
        assert!(object.is_object());
    }
    let Ok(object) = decode(input) else { return };
    let written = encode(&object).expect("what was read can be written");
    // What Go's JSON leaves out is not there the second time.
    let read = decode(&written).expect("what was written can be read");
    let again = encode(&read).expect("what was read can be written");
    assert_eq!(decode(&again).ok(), Some(read));
});
