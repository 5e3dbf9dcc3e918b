//! The backend's own tokens. Only backends with the same key read them, so there is no store of sessions: whatever a session is, stands in its token.

use ring::hmac;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::jose::{self, Parts};

const ALGORITHM: &str = "HS256";

/// Who has logged in, where, and until when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Claims {
    /// Subject of the ID token.
    pub(super) sub: String,
    /// Issuer of the ID token.
    pub(super) iss: String,
    /// The session, as whoever began the login has named it.
    pub(super) sid: String,
    /// The cluster; empty if there is only one.
    #[serde(default)]
    pub(super) cid: String,
    /// Groups of the ID token.
    #[serde(default)]
    pub(super) groups: Vec<String>,
    pub(super) iat: i64,
    pub(super) nbf: i64,
    pub(super) exp: i64,
}

/// Why a token is not accepted. No message holds a word of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum TokenError {
    #[error("the token cannot be read; log in again")]
    Malformed,
    #[error("the token is not one of this backend; log in again")]
    Foreign,
    #[error("the token has expired; log in again")]
    Expired,
    #[error("the token is not valid yet; check the clocks of the backends")]
    TooEarly,
    #[error("the token names no subject, issuer or session; log in again")]
    Incomplete,
}

impl Claims {
    /// Whether these claims hold at a time.
    pub(super) fn check(&self, now: i64) -> Result<(), TokenError> {
        if [&self.sub, &self.iss, &self.sid].into_iter().any(String::is_empty) {
            return Err(TokenError::Incomplete);
        }
        if now >= self.exp {
            return Err(TokenError::Expired);
        }
        // Clocks of replicas differ a little.
        if now + 60 < self.nbf { Err(TokenError::TooEarly) } else { Ok(()) }
    }

    /// Issuer and subject, by which contracts know their author.
    pub(super) fn author(&self) -> String {
        format!("{}/{}", self.iss, self.sub)
    }
}

/// A token with these claims.
pub(super) fn mint(key: &hmac::Key, claims: &Claims) -> Option<String> {
    let unsigned = jose::unsigned(&json!({"alg": ALGORITHM, "typ": "JWT"}), claims)?;
    let tag = hmac::sign(key, unsigned.as_bytes());
    Some(jose::joined(&unsigned, tag.as_ref()))
}

/// The claims of a token, if it is ours and holds now.
pub(super) fn verify(key: &hmac::Key, token: &str, now: i64) -> Result<Claims, TokenError> {
    let parts = Parts::of(token).ok_or(TokenError::Malformed)?;
    if parts.header.alg != ALGORITHM {
        return Err(TokenError::Foreign);
    }
    hmac::verify(key, parts.signed.as_bytes(), &parts.signature).map_err(|_| TokenError::Foreign)?;
    let claims: Claims = parts.content().ok_or(TokenError::Malformed)?;
    claims.check(now)?;
    Ok(claims)
}

#[cfg(test)]
mod tests {
    use data_encoding::BASE64URL_NOPAD;

    use super::*;

    fn claims() -> Claims {
        let text = |text: &str| text.to_owned();
        Claims {
            sub: text("ann"),
            iss: text("https://issuer"),
            sid: text("s"),
            cid: text("c"),
            groups: vec![text("g")],
            iat: 100,
            nbf: 100,
            exp: 200,
        }
    }

    #[test]
    fn a_token_holds_from_its_first_to_its_last_second_and_for_its_own_key_only() {
        let (key, other) = (hmac::Key::new(hmac::HMAC_SHA256, &[1; 32]), hmac::Key::new(hmac::HMAC_SHA256, &[2; 32]));
        let token = mint(&key, &claims()).unwrap();
        assert_eq!(verify(&key, &token, 100), Ok(claims()));
        assert_eq!(verify(&key, &token, 199), Ok(claims()));
        assert_eq!(verify(&key, &token, 200), Err(TokenError::Expired));
        assert_eq!(verify(&key, &token, 39), Err(TokenError::TooEarly));
        assert_eq!(verify(&other, &token, 150), Err(TokenError::Foreign));
        assert_eq!(verify(&key, &token[..token.len() - 2], 150), Err(TokenError::Malformed));
        for text in ["", "a.b", "a.b.c", "..", &token.replace('.', "")] {
            assert_eq!(verify(&key, text, 150), Err(TokenError::Malformed), "{text}");
        }
    }

    #[test]
    fn another_algorithm_or_other_claims_under_the_same_signature_are_refused() {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &[1; 32]);
        let token = mint(&key, &claims()).unwrap();
        let parts: Vec<&str> = token.split('.').collect();
        let none = BASE64URL_NOPAD.encode(br#"{"alg":"none"}"#);
        assert_eq!(verify(&key, &format!("{none}.{}.", parts[1]), 150), Err(TokenError::Foreign));
        let more = jose::unsigned(&json!({"alg": ALGORITHM}), &Claims { exp: 999, ..claims() }).unwrap();
        assert_eq!(verify(&key, &format!("{more}.{}", parts[2]), 150), Err(TokenError::Foreign));
        let nobody = mint(&key, &Claims { sub: String::new(), ..claims() }).unwrap();
        assert_eq!(verify(&key, &nobody, 150), Err(TokenError::Incomplete));
    }
}
