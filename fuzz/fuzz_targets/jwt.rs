//! The keys of an issuer, then tokens, one per line: nothing is believed that no key has signed, and whatever it says does no harm.
#![no_main]

use carrick_bind_backend::http::fuzzing::{believes, claims, own_token};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &str| {
    let mut lines = input.lines();
    let keys = lines.next().unwrap_or_default();
    for token in lines {
        let believed = believes(keys, token);
        let claimed = claims(token);
        assert!(!believed || claimed, "a token is believed whose claims are refused");
        own_token(token);
    }
});
