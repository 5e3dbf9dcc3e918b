//! Checksums of what was written, by which it is recognised.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use carrick_json::go;
use serde::Serialize;
use serde_json::Value;
use sha1::{Digest, Sha1};

/// A checksum of a desired state. Kind and apiVersion do not count: a copy has its own.
pub fn sum(state: &Value) -> String {
    let Some(fields) = state.as_object() else { return checksum(state) };
    let content: BTreeMap<_, _> =
        fields.iter().filter(|(key, _)| !["apiVersion", "kind"].contains(&key.as_str())).collect();
    checksum(&content)
}

/// A checksum of anything that can be written as JSON.
pub fn checksum(value: &impl Serialize) -> String {
    sha1_hex(&go::to_string(value).unwrap_or_default())[..20].to_owned()
}

/// Lower-case hexadecimal SHA-1 of a text.
pub fn sha1_hex(text: &str) -> String {
    let digest = Sha1::digest(text.as_bytes());
    digest.iter().fold(String::with_capacity(40), |mut out, byte| {
        // Writing to a String cannot fail.
        let _ = write!(out, "{byte:02x}");
        out
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_checksum_does_not_depend_on_the_names_of_kinds() {
        assert_eq!(sum(&json!({"apiVersion": "a/v1", "kind": "A", "spec": 1})), sum(&json!({"spec": 1})));
        assert_ne!(sum(&json!({"spec": 1})), sum(&json!({"spec": 2})));
        assert_ne!(checksum(&json!({"kind": 1})), checksum(&json!({"kind": 2})));
    }
}
