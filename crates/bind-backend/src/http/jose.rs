//! Signed tokens in their compact form: three parts in base64, joined by dots.

use data_encoding::BASE64URL_NOPAD;
use serde::{Deserialize, Serialize};

/// The largest token that is looked at.
const LARGEST: usize = 32 << 10;

/// What the first part says.
#[derive(Debug, Deserialize)]
pub(super) struct Header {
    pub(super) alg: String,
    #[serde(default)]
    pub(super) kid: Option<String>,
    /// Extensions that must be understood. None is.
    #[serde(default)]
    crit: Option<serde_json::Value>,
}

/// A token, taken apart. Nothing in it is to be believed before the signature was checked.
pub(super) struct Parts<'a> {
    pub(super) header: Header,
    /// What was signed.
    pub(super) signed: &'a str,
    pub(super) signature: Vec<u8>,
    payload: Vec<u8>,
}

impl<'a> Parts<'a> {
    /// Takes a token apart; none if it is not one.
    pub(super) fn of(token: &'a str) -> Option<Self> {
        if token.len() > LARGEST {
            return None;
        }
        let (signed, signature) = token.rsplit_once('.')?;
        let (header, payload) = signed.split_once('.')?;
        let bytes = |part: &str| BASE64URL_NOPAD.decode(part.as_bytes()).ok();
        let header: Header = serde_json::from_slice(&bytes(header)?).ok()?;
        if header.crit.is_some() {
            return None;
        }
        Some(Self { header, signed, signature: bytes(signature)?, payload: bytes(payload)? })
    }

    /// The content of the second part, after its signature was checked.
    pub(super) fn content<T: serde::de::DeserializeOwned>(&self) -> Option<T> {
        serde_json::from_slice(&self.payload).ok()
    }
}

/// The part of a token that is signed.
pub(super) fn unsigned(header: &serde_json::Value, content: &impl Serialize) -> Option<String> {
    let content = BASE64URL_NOPAD.encode(&serde_json::to_vec(content).ok()?);
    Some(format!("{}.{content}", BASE64URL_NOPAD.encode(header.to_string().as_bytes())))
}

/// A token of what is signed and its signature.
pub(super) fn joined(unsigned: &str, signature: &[u8]) -> String {
    format!("{unsigned}.{}", BASE64URL_NOPAD.encode(signature))
}
