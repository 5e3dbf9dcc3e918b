//! Hashes exactly as kcp computes them.

use data_encoding::HEXLOWER;
use serde::Serialize;
use sha2::{Digest, Sha224, Sha256};

const DIGITS: &[u8; 62] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

/// A permission claim as far as its hash is concerned: selectors are not part of it and verbs are always null.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Claim<'a> {
    /// API group, empty for core.
    pub group: &'a str,
    /// Plural resource name.
    pub resource: &'a str,
    /// Identity of the foreign export, empty for built-in types.
    pub identity_hash: &'a str,
}

/// SHA-224 of the text as a base-62 number.
pub fn b62s224(text: &str) -> String {
    to_base(&Sha224::digest(text.as_bytes()), 62)
}

/// SHA-224 of the text as a base-36 number.
pub fn b36s224(text: &str) -> String {
    to_base(&Sha224::digest(text.as_bytes()), 36)
}

/// Name of the logical cluster that is a user's home workspace.
pub fn home_cluster(user: &str) -> String {
    to_base(&Sha224::digest(user.as_bytes())[..8], 36)
}

/// Hash of an export, used in labels of its bindings and of claimed objects. Takes the logical cluster's name, never its path.
pub fn export_hash(cluster: &str, export: &str) -> String {
    b62s224(&format!("{cluster}:{export}"))
}

/// Hash of a permission claim.
pub fn claim_hash(claim: Claim<'_>) -> String {
    #[derive(Serialize)]
    struct Hashed<'a> {
        #[serde(skip_serializing_if = "str::is_empty")]
        group: &'a str,
        resource: &'a str,
        verbs: Option<()>,
        #[serde(rename = "identityHash", skip_serializing_if = "str::is_empty")]
        identity_hash: &'a str,
    }
    let hashed =
        Hashed { group: claim.group, resource: claim.resource, verbs: None, identity_hash: claim.identity_hash };
    b62s224(&serde_json::to_string(&hashed).unwrap_or_default())
}

/// The claim hash by which every binding is visible to its own export.
pub fn reflexive_claim_hash() -> String {
    let bytes: Vec<u8> = (0..10).chain(0..10).chain(0..8).collect();
    to_base(&bytes, 62)
}

/// Name that kcp gives to a default binding in a new workspace.
pub fn default_binding_name(cluster: &str, export_path: &str, export: &str) -> String {
    let hash = b62s224(&format!("{cluster}|{export_path}|{export}")).to_lowercase();
    format!("{export}-{}", &hash[..5.min(hash.len())])
}

/// Identity hash of an export, from the raw bytes of its secret's `key`.
pub fn identity_hash(key: &[u8]) -> String {
    HEXLOWER.encode(&Sha256::digest(key))
}

/// Big-endian bytes as a number in the given base, without padding.
fn to_base(bytes: &[u8], base: u32) -> String {
    let mut number = bytes.to_vec();
    let mut digits = Vec::new();
    while number.iter().any(|b| *b != 0) {
        let mut rest = 0;
        for byte in &mut number {
            let value = rest * 256 + u32::from(*byte);
            // Both fit: the quotient of a value below base * 256 is below 256, the rest below the base.
            *byte = u8::try_from(value / base).unwrap_or(u8::MAX);
            rest = value % base;
        }
        digits.push(char::from(DIGITS[rest as usize]));
    }
    if digits.is_empty() {
        digits.push('0');
    }
    digits.iter().rev().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_equal_those_of_kcp() {
        assert_eq!(export_hash("root", "tenancy.kcp.io"), "bmCdly9xXiUpEHe3ypvDwvXMTfoVZUE92mqAQf");
        assert_eq!(&b36s224("root")[..8], "1pfxsevk");
        assert_eq!(home_cluster("alice"), "v1u4alow0iv9");
        assert_eq!(home_cluster("kcp-admin"), "kvdk2spgmbix");
        let claim = Claim { group: "", resource: "configmaps", identity_hash: "" };
        assert_eq!(claim_hash(claim), "3QVjs6pfBjMpLEVYYhysJnroYGsQGlWm05E4qe");
        assert_eq!(reflexive_claim_hash(), "LstvmbbzVDDOn90ZbhzSQO5U3DMCf88h1pZ");
        assert_eq!(default_binding_name("33nozhdlp9e3vo7p", "root", "tenancy.kcp.io"), "tenancy.kcp.io-9pl4u");
        assert!(identity_hash(b"abcdef").starts_with("bef57ec7f5"));
    }
}
