//! Public keys of issuers.

use data_encoding::BASE64URL_NOPAD;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_2048_8192_SHA384,
    RSA_PKCS1_2048_8192_SHA512, RsaPublicKeyComponents, UnparsedPublicKey,
};
use serde::Deserialize;

/// One key.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Jwk {
    #[serde(default)]
    kty: String,
    #[serde(default)]
    kid: Option<String>,
    #[serde(default, rename = "use")]
    purpose: Option<String>,
    #[serde(default)]
    alg: Option<String>,
    #[serde(default)]
    crv: String,
    #[serde(default)]
    n: String,
    #[serde(default)]
    e: String,
    #[serde(default)]
    x: String,
    #[serde(default)]
    y: String,
}

/// The keys of an issuer.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct JwkSet {
    keys: Vec<Jwk>,
}

/// What a signature turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Checked {
    /// One of the keys has signed.
    Good,
    /// The key is there and has not signed.
    Forged,
    /// The key is not there; perhaps it is new.
    UnknownKey,
}

impl JwkSet {
    /// Checks a signature by the key of this name, or by any if the token names none.
    pub(super) fn check(&self, alg: &str, kid: Option<&str>, signed: &[u8], signature: &[u8]) -> Checked {
        let fits = |key: &&Jwk| {
            let named = kid.is_none() || key.kid.as_deref() == kid;
            let signs = key.purpose.as_deref().is_none_or(|purpose| purpose == "sig");
            named && signs && key.alg.as_deref().is_none_or(|own| own == alg) && key.is_for(alg)
        };
        let mut known = self.keys.iter().filter(fits).peekable();
        if known.peek().is_none() {
            return Checked::UnknownKey;
        }
        if known.any(|key| key.has_signed(alg, signed, signature)) { Checked::Good } else { Checked::Forged }
    }
}

impl Jwk {
    fn is_for(&self, alg: &str) -> bool {
        match alg {
            "RS256" | "RS384" | "RS512" => self.kty == "RSA",
            "ES256" => self.kty == "EC" && self.crv == "P-256",
            "ES384" => self.kty == "EC" && self.crv == "P-384",
            _ => false,
        }
    }

    fn has_signed(&self, alg: &str, signed: &[u8], signature: &[u8]) -> bool {
        let part = |text: &str| BASE64URL_NOPAD.decode(text.trim_end_matches('=').as_bytes()).unwrap_or_default();
        let rsa = match alg {
            "RS256" => &RSA_PKCS1_2048_8192_SHA256,
            "RS384" => &RSA_PKCS1_2048_8192_SHA384,
            "RS512" => &RSA_PKCS1_2048_8192_SHA512,
            _ => {
                let curve = if alg == "ES256" { &ECDSA_P256_SHA256_FIXED } else { &ECDSA_P384_SHA384_FIXED };
                let point = [vec![4], part(&self.x), part(&self.y)].concat();
                return UnparsedPublicKey::new(curve, point).verify(signed, signature).is_ok();
            }
        };
        let key = RsaPublicKeyComponents { n: part(&self.n), e: part(&self.e) };
        key.verify(rsa, signed, signature).is_ok()
    }
}
