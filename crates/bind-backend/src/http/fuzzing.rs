//! What the fuzz targets call.

use ring::hmac;

use super::oidc::fuzzing as oidc;
use super::token;

/// Whether an ID token is believed that keys of an issuer, as JSON, are said to have signed.
pub fn believes(keys: &str, token: &str) -> bool {
    oidc::believes(keys, token)
}

/// Whether what an ID token says would be believed of whoever has signed it.
pub fn claims(token: &str) -> bool {
    oidc::claims(token)
}

/// Whether a token is one of this backend.
pub fn own_token(token: &str) -> bool {
    token::verify(&hmac::Key::new(hmac::HMAC_SHA256, &[1; 32]), token, oidc::NOW).is_ok()
}
