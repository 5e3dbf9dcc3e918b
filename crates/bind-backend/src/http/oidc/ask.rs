//! What is asked of an issuer, and what can go wrong.

use data_encoding::BASE64URL_NOPAD;
use ring::digest::{SHA256, digest};

/// Why a login fails. No message holds a code or a token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OidcError {
    /// The code, or what belongs to it, is not accepted.
    #[error("the issuer refuses the code: {0}; log in again")]
    Refused(String),
    /// The ID token does not prove who somebody is.
    #[error("the issuer's ID token is not accepted: {0}")]
    Token(String),
    /// The issuer does not answer, or not as it should.
    #[error("the issuer does not answer as it should: {0}")]
    Issuer(String),
}

/// What a browser takes along to the issuer.
pub struct Ask<'a> {
    pub state: &'a str,
    pub nonce: &'a str,
    pub verifier: &'a str,
    pub callback: &'a str,
}

/// The challenge of PKCE.
pub fn challenge(verifier: &str) -> String {
    BASE64URL_NOPAD.encode(digest(&SHA256, verifier.as_bytes()).as_ref())
}
