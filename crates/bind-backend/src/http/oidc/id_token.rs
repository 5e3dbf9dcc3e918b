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
    believed(&parts, expected)
}

/// Who a token is about, after its signature was checked.
pub(super) fn believed(parts: &Parts<'_>, expected: &Expected<'_>) -> Result<Identity, IdTokenError> {
    let content: Content = parts.content().ok_or(IdTokenError::Malformed)?;
    if content.iss != expected.issuer {
        return Err(IdTokenError::Issuer);
    }
    if !is_audience(&content, expected.audience) {
        return Err(IdTokenError::Audience);
    }
    if content.exp.saturating_add(LEEWAY) <= expected.now || content.nbf.is_some_and(|nbf| nbf > expected.now + LEEWAY)
    {
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::http::jose::{joined, unsigned};

    const EXPECTED: Expected<'static> = Expected { issuer: "i", audience: "a", nonce: "n", now: 1_000 };

    fn told(changes: &Value) -> Result<Identity, IdTokenError> {
        let mut content = json!({"iss": "i", "sub": "ann", "aud": "a", "exp": 2_000, "nonce": "n", "groups": ["g"]});
        for (key, value) in changes.as_object().unwrap() {
            content[key] = value.clone();
        }
        let token = joined(&unsigned(&json!({"alg": "RS256"}), &content).unwrap(), b"");
        believed(&Parts::of(&token).unwrap(), &EXPECTED)
    }

    #[test]
    fn any_time_that_an_issuer_may_write_is_compared() {
        use IdTokenError::Time;
        for (changes, wanted) in [
            (json!({}), None),
            (json!({"exp": 941}), None),
            (json!({"exp": 940}), Some(Time)),
            (json!({"exp": i64::MAX}), None),
            (json!({"exp": i64::MIN}), Some(Time)),
            (json!({"nbf": 1_060}), None),
            (json!({"nbf": 1_061}), Some(Time)),
            (json!({"nbf": i64::MAX}), Some(Time)),
            (json!({"nbf": i64::MIN}), None),
            (json!({"exp": u64::MAX}), Some(IdTokenError::Malformed)),
        ] {
            assert_eq!(told(&changes).err(), wanted, "{changes}");
        }
    }

    #[test]
    fn a_token_for_somebody_else_or_of_the_system_is_refused() {
        for (changes, wanted) in [
            (json!({"iss": "other"}), Some(IdTokenError::Issuer)),
            (json!({"aud": "other"}), Some(IdTokenError::Audience)),
            (json!({"aud": ["a", "other"]}), Some(IdTokenError::Audience)),
            (json!({"aud": ["a", "other"], "azp": "a"}), None),
            (json!({"aud": 1}), Some(IdTokenError::Audience)),
            (json!({"nonce": "other"}), Some(IdTokenError::Nonce)),
            (json!({"nonce": null}), Some(IdTokenError::Nonce)),
            (json!({"sub": ""}), Some(IdTokenError::Subject)),
            (json!({"sub": "system:admin"}), Some(IdTokenError::Subject)),
        ] {
            assert_eq!(told(&changes).err(), wanted, "{changes}");
        }
        let groups = told(&json!({"groups": ["g", "system:masters", "", 1]})).unwrap().groups;
        assert_eq!(groups, ["g"]);
    }
}
