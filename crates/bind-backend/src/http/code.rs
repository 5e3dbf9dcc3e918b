//! Codes for what must not stand in a URL. A browser carries the code to the command line, which exchanges it by a POST:
//!
//! ```text
//!   command line: verifier ──hash──▶ code_challenge ──browser──▶ login or order ──browser, code──▶ command line
//!   command line: code, verifier ──POST /api/exchange──▶ token or kubeconfig
//! ```
//!
//! URLs end up in histories, logs of proxies and on screens. A code is of no use to whoever reads it there: it is encrypted, it expires soon, and
//! it counts only with the verifier, which has never left the command line. Nothing has to be remembered for that. Command lines that send no
//! challenge, as those of kube-bind, get what they know.

use http::StatusCode;
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::answer::{Answer, Fault, json_answer};
use super::asked::Asked;
use super::front::{Front, now};
use super::oidc::challenge;
use super::secrecy::CryptoError;
use crate::provider::Provider;

/// How long a code may be on its way: a browser carries it at once.
const SECONDS: i64 = 120;
const PURPOSE: &str = "code";
/// A hash of SHA-256 in base64, without padding.
const CHALLENGE_LENGTH: usize = 43;

/// What a code stands for.
#[derive(Serialize, Deserialize)]
struct Sealed {
    challenge: String,
    content: Value,
    exp: i64,
}

/// What is sent to exchange a code.
#[derive(Deserialize)]
struct Exchange {
    code: String,
    code_verifier: String,
}

/// The challenge that somebody has sent, if it is one. Whoever sends none gets no code.
pub(super) fn given(text: &str) -> Result<Option<&str>, &'static str> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    match text.len() {
        0 => Ok(None),
        CHALLENGE_LENGTH if is_plain => Ok(Some(text)),
        _ => Err("code_challenge is not a hash by SHA-256 in base64url"),
    }
}

impl<P: Provider> Front<P> {
    /// A code for something that is handed out to whoever knows the verifier of a challenge.
    pub(super) fn code(&self, challenge: &str, content: Value) -> Result<String, CryptoError> {
        let sealed = Sealed { challenge: challenge.to_owned(), content, exp: now() + SECONDS };
        self.keys.seal.close(PURPOSE, &sealed)
    }

    /// Hands out what a code stands for.
    pub(super) fn redeem_code(&self, asked: &Asked) -> Result<Answer, Fault> {
        let sent: Exchange =
            serde_json::from_slice(&asked.body).map_err(|_| Fault::bad("code and code_verifier are needed"))?;
        let sealed: Option<Sealed> = self.keys.seal.open(PURPOSE, &sent.code);
        let hash = |text: &str| digest(&SHA256, text.as_bytes());
        let fits = |sealed: &Sealed| {
            now() < sealed.exp && hash(&challenge(&sent.code_verifier)).as_ref() == hash(&sealed.challenge).as_ref()
        };
        let refused = || Fault::Unauthenticated("the code has expired, or was made for somebody else".to_owned());
        Ok(json_answer(StatusCode::OK, &sealed.filter(fits).ok_or_else(refused)?.content))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_challenge_is_a_hash_or_nothing() {
        let good = challenge("a verifier");
        assert_eq!(given(&good), Ok(Some(good.as_str())));
        assert_eq!(given(""), Ok(None));
        for bad in ["short", &good[1..], &format!("{good}="), &good.replace(|_: char| true, "%")] {
            assert!(given(bad).is_err(), "{bad}");
        }
    }
}
