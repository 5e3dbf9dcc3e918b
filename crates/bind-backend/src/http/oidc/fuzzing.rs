//! What the fuzz targets call.

use super::id_token::{self, Expected};
use super::jwk::JwkSet;
use crate::http::jose::Parts;

/// The time of every check.
pub(in crate::http) const NOW: i64 = 1_300_000_000;

const EXPECTED: Expected<'static> = Expected { issuer: "joe", audience: "a", nonce: "n", now: NOW };

/// Whether a token is believed that these keys, as JSON, are said to have signed.
pub(in crate::http) fn believes(keys: &str, token: &str) -> bool {
    let Ok(keys) = serde_json::from_str::<JwkSet>(keys) else { return false };
    id_token::check(&keys, token, &EXPECTED).is_ok()
}

/// Whether the claims of a token are those of a login, whoever has signed them.
pub(in crate::http) fn claims(token: &str) -> bool {
    Parts::of(token).is_some_and(|parts| id_token::believed(&parts, &EXPECTED).is_ok())
}
