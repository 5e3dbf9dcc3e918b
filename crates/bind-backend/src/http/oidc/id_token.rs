//! ID tokens: who signed them, for whom, and for which login.

use serde::Deserialize;
use serde_json::Value;

use super::jwk::{Checked, JwkSet};
use crate::http::jose::Parts;

/// Who has logged in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    pub subject: String,
    pub issuer: String,
    pub groups: Vec<String>,
}

/// What an ID token must say.
pub(super) struct Expected<'a> {
    pub(super) issuer: &'a str,
    pub(super) audience: &'a str,
    pub(super) nonce: &'a str,
    pub(super) now: i64,
}

/// Why an ID token is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum IdTokenError {
    #[error("it cannot be read")]
    Malformed,
    #[error("none of the issuer's keys has its name")]
    UnknownKey,
    #[error("its signature is wrong")]
    Forged,
    #[error("it comes from another issuer")]
    Issuer,
    #[error("it is for another client")]
    Audience,
    #[error("it has expired, or is not valid yet")]
    Time,
    #[error("it belongs to another login")]
    Nonce,
    #[error("it names nobody, or somebody of the system")]
    Subject,
}

#[derive(Deserialize)]
struct Content {
    iss: String,
    #[serde(default)]
    sub: String,
    aud: Value,
    #[serde(default)]
    azp: Option<String>,
    exp: i64,
    #[serde(default)]
    nbf: Option<i64>,
    #[serde(default)]
    nonce: Option<String>,
    #[serde(default)]
    groups: Value,
}

/// By how much clocks may differ.
const LEEWAY: i64 = 60;

/// Checks an ID token.
pub(super) fn check(keys: &JwkSet, token: &str, expected: &Expected<'_>) -> Result<Identity, IdTokenError> {
    let parts = Parts::of(token).ok_or(IdTokenError::Malformed)?;
    let header = &parts.header;
    match keys.check(&header.alg, header.kid.as_deref(), parts.signed.as_bytes(), &parts.signature) {
        Checked::Good => {}
        Checked::Forged => return Err(IdTokenError::Forged),
        Checked::UnknownKey => return Err(IdTokenError::UnknownKey),
    }
    let content: Content = parts.content().ok_or(IdTokenError::Malformed)?;
    if content.iss != expected.issuer {
        return Err(IdTokenError::Issuer);
    }
    if !is_audience(&content, expected.audience) {
        return Err(IdTokenError::Audience);
    }
    if content.exp + LEEWAY <= expected.now || content.nbf.is_some_and(|nbf| nbf > expected.now + LEEWAY) {
        return Err(IdTokenError::Time);
    }
    if content.nonce.as_deref() != Some(expected.nonce) {
        return Err(IdTokenError::Nonce);
    }
    // Names that begin so are Kubernetes' own, whoever the issuer is.
    let of_system = |name: &str| name.starts_with("system:");
    if content.sub.is_empty() || of_system(&content.sub) {
        return Err(IdTokenError::Subject);
    }
    let groups = match content.groups {
        Value::String(group) => vec![group],
        Value::Array(groups) => groups.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    };
    let groups = groups.into_iter().filter(|group| !group.is_empty() && !of_system(group)).collect();
    Ok(Identity { subject: content.sub, issuer: content.iss, groups })
}

fn is_audience(content: &Content, audience: &str) -> bool {
    match &content.aud {
        Value::String(one) => one == audience,
        Value::Array(all) => {
            let among = all.iter().any(|one| one == audience);
            // Of several the token must say which one has asked for it.
            among && (all.len() == 1 || content.azp.as_deref() == Some(audience))
        }
        _ => false,
    }
}
