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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::jose::Parts;

    /// The example of RFC 7515, appendix A.2.
    const RSA: &str = r#"{"keys": [{"kty": "RSA", "kid": "rsa", "e": "AQAB", "n": "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ"}]}"#;
    const SIGNED: &str = "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw";

    #[test]
    fn signatures_of_rsa_keys_are_checked() {
        let keys: JwkSet = serde_json::from_str(RSA).unwrap();
        let parts = Parts::of(SIGNED).unwrap();
        let check = |alg: &str, kid, signed: &str| keys.check(alg, kid, signed.as_bytes(), &parts.signature);
        assert_eq!(check("RS256", None, parts.signed), Checked::Good);
        assert_eq!(check("RS256", Some("rsa"), parts.signed), Checked::Good);
        assert_eq!(check("RS256", Some("rsa"), "other"), Checked::Forged);
        assert_eq!(check("RS384", Some("rsa"), parts.signed), Checked::Forged);
        for (alg, kid) in [("RS256", "other"), ("ES256", "rsa"), ("HS256", "rsa"), ("none", "rsa"), ("", "rsa")] {
            assert_eq!(check(alg, Some(kid), parts.signed), Checked::UnknownKey, "{alg} {kid}");
        }
    }
}
