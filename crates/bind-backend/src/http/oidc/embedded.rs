//! An issuer inside the backend that lets everybody in: for development.

use std::collections::HashMap;

use data_encoding::BASE64URL_NOPAD;
use parking_lot::Mutex;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::ask::{Ask, OidcError, challenge};
use super::id_token::{self, Expected, Identity};
use super::jwk::JwkSet;
use crate::http::jose;
use crate::http::secrecy::{CryptoError, Seal, random_text};

pub(super) const CLIENT_ID: &str = "kube-bind-backend";
const USER: &str = "kube-bind-embedded-user";
const GROUPS: [&str; 2] = ["engineering", "devops"];
const KEY_NAME: &str = "embedded";
/// How long a code can be redeemed.
const CODE_SECONDS: i64 = 60;
/// How many redeemed codes are remembered until they expire. Nobody logs in this often while developing.
const MOST_CODES: usize = 10_000;

/// An issuer inside the backend.
pub struct Embedded {
    url: String,
    client_secret: String,
    key: EcdsaKeyPair,
    /// Codes that were redeemed, and when they expire.
    redeemed: Mutex<HashMap<String, i64>>,
}

/// What a code stands for.
#[derive(Serialize, Deserialize)]
struct Grant {
    id: String,
    nonce: String,
    challenge: String,
    callback: String,
    exp: i64,
}

impl Embedded {
    pub fn new(url: &str, key: &[u8], client_secret: &str) -> Result<Self, CryptoError> {
        let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, key, &SystemRandom::new());
        let (url, client_secret) = (url.trim_end_matches('/').to_owned(), client_secret.to_owned());
        Ok(Self { url, client_secret, key: key.map_err(|_| CryptoError)?, redeemed: Mutex::default() })
    }

    pub(super) fn authorization_endpoint(&self) -> String {
        format!("{}/authorize", self.url)
    }

    /// What clients want to know.
    pub fn discovery(&self) -> Value {
        let url = &self.url;
        json!({
            "issuer": url, "authorization_endpoint": format!("{url}/authorize"), "token_endpoint": format!("{url}/token"),
            "userinfo_endpoint": format!("{url}/userinfo"), "jwks_uri": format!("{url}/.well-known/jwks.json"),
            "response_types_supported": ["code"], "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["ES256"], "scopes_supported": ["openid", "groups"],
            "token_endpoint_auth_methods_supported": ["client_secret_post"], "code_challenge_methods_supported": ["S256"],
        })
    }

    /// The key by which ID tokens are checked.
    pub fn jwks(&self) -> Value {
        // A byte that says how the rest is written, and two coordinates.
        let point = self.key.public_key().as_ref();
        let (x, y) = point[1..].split_at((point.len() - 1) / 2);
        json!({"keys": [{"kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig", "kid": KEY_NAME,
            "x": BASE64URL_NOPAD.encode(x), "y": BASE64URL_NOPAD.encode(y)}]})
    }

    /// A code for whoever comes, or what is wrong with the question.
    pub fn grant(
        seal: &Seal,
        callback: &str,
        get: impl Fn(&str) -> Option<String>,
        now: i64,
    ) -> Result<String, String> {
        let given = |name: &str| get(name).unwrap_or_default();
        if given("client_id") != CLIENT_ID {
            return Err("client_id is not known".to_owned());
        }
        if given("redirect_uri") != callback {
            return Err("redirect_uri is not the callback of this backend".to_owned());
        }
        if given("response_type") != "code" || given("code_challenge_method") != "S256" {
            return Err("response_type must be code, and code_challenge_method S256".to_owned());
        }
        let id = random_text().map_err(|error| error.to_string())?;
        let (nonce, challenge) = (given("nonce"), given("code_challenge"));
        let grant = Grant { id, nonce, challenge, callback: callback.to_owned(), exp: now + CODE_SECONDS };
        seal.close("code", &grant).map_err(|error| error.to_string())
    }

    /// The answer of the token endpoint, or its error.
    pub fn exchange(&self, seal: &Seal, get: impl Fn(&str) -> Option<String>, now: i64) -> Result<Value, &'static str> {
        let given = |name: &str| get(name).unwrap_or_default();
        let secret = given("client_secret");
        let same = challenge(&secret) == challenge(&self.client_secret);
        if given("client_id") != CLIENT_ID || !same {
            return Err("invalid_client");
        }
        if given("grant_type") != "authorization_code" {
            return Err("unsupported_grant_type");
        }
        let redeemed = self.redeem(seal, &given("code"), &given("code_verifier"), &given("redirect_uri"), now);
        let token = redeemed.ok_or("invalid_grant")?;
        let access = seal.close("userinfo", &(now + 3600)).map_err(|_| "server_error")?;
        Ok(json!({"access_token": access, "token_type": "Bearer", "expires_in": 3600, "id_token": token}))
    }

    /// Who the bearer of an access token is.
    pub fn userinfo(seal: &Seal, token: &str, now: i64) -> Option<Value> {
        let expires: i64 = seal.open("userinfo", token)?;
        (now < expires).then(|| json!({"sub": USER, "name": USER, "groups": GROUPS}))
    }

    /// The ID token for a code, once.
    pub(super) fn redeem(&self, seal: &Seal, code: &str, verifier: &str, callback: &str, now: i64) -> Option<String> {
        let grant: Grant = seal.open("code", code)?;
        if now >= grant.exp || grant.callback != callback || grant.challenge != challenge(verifier) {
            return None;
        }
        let mut redeemed = self.redeemed.lock();
        redeemed.retain(|_, expires| now < *expires);
        if redeemed.len() >= MOST_CODES || redeemed.insert(grant.id, grant.exp).is_some() {
            return None;
        }
        drop(redeemed);
        let content = json!({"iss": self.url, "sub": USER, "aud": CLIENT_ID, "exp": now + 3600, "iat": now,
            "nonce": grant.nonce, "groups": GROUPS});
        let unsigned = jose::unsigned(&json!({"alg": "ES256", "typ": "JWT", "kid": KEY_NAME}), &content)?;
        let signature = self.key.sign(&SystemRandom::new(), unsigned.as_bytes()).ok()?;
        Some(jose::joined(&unsigned, signature.as_ref()))
    }

    /// The identity behind a code. It is checked as another issuer's would be.
    pub(super) fn identity(&self, seal: &Seal, code: &str, ask: &Ask<'_>, now: i64) -> Result<Identity, OidcError> {
        let token = self.redeem(seal, code, ask.verifier, ask.callback, now);
        let token = token.ok_or_else(|| OidcError::Refused("it is not valid, expired, or was used".to_owned()))?;
        let keys: JwkSet = serde_json::from_value(self.jwks()).unwrap_or_default();
        let expected = Expected { issuer: &self.url, audience: CLIENT_ID, nonce: ask.nonce, now };
        id_token::check(&keys, &token, &expected).map_err(|error| OidcError::Token(error.to_string()))
    }
}
