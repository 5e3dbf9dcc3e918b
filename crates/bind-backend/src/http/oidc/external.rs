//! An OIDC issuer elsewhere.

use std::time::{Duration, Instant};

use bytes::Bytes;
use carrick_client::{Web, WebTrust};
use data_encoding::BASE64;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{Request, StatusCode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::sync::Mutex;

use super::ask::{Ask, OidcError};
use super::id_token::{self, Expected, IdTokenError, Identity};
use super::jwk::JwkSet;

/// Unknown keys do not make the backend ask for new ones more often than this: whoever comes with a code can name any key.
const REFRESH: Duration = Duration::from_secs(10);
/// Scopes that are asked for, if the issuer knows them. Nothing is done on a user's behalf later, so `offline_access` is not among them.
const SCOPES: [&str; 3] = ["profile", "email", "groups"];

/// An OIDC issuer elsewhere.
pub struct External {
    web: Web,
    client_id: String,
    client_secret: Option<String>,
    discovery: Discovery,
    keys: Mutex<CachedKeys>,
}

#[derive(Default)]
struct CachedKeys {
    keys: JwkSet,
    read: Option<Instant>,
}

#[derive(Deserialize)]
struct Discovery {
    issuer: String,
    authorization_endpoint: String,
    token_endpoint: String,
    jwks_uri: String,
    #[serde(default)]
    scopes_supported: Option<Vec<String>>,
    #[serde(default)]
    token_endpoint_auth_methods_supported: Vec<String>,
}

#[derive(Deserialize)]
struct Tokens {
    id_token: String,
}

#[derive(Deserialize, Default)]
struct Refusal {
    #[serde(default)]
    error: String,
}

impl External {
    /// Asks the issuer how to log in.
    pub async fn discover(
        issuer: &str,
        client_id: &str,
        client_secret: Option<&str>,
        trust: &WebTrust,
    ) -> Result<Self, ExternalError> {
        let web = Web::new(trust).map_err(ExternalError::Trust)?;
        let url = format!("{}/.well-known/openid-configuration", issuer.trim_end_matches('/'));
        let discovery: Discovery = get(&web, &url).await.map_err(ExternalError::Issuer)?;
        if discovery.issuer != issuer {
            let other = format!("it calls itself {:?}; write its URL exactly so", discovery.issuer);
            return Err(ExternalError::Issuer(other));
        }
        let external = Self {
            web,
            client_id: client_id.to_owned(),
            client_secret: client_secret.map(str::to_owned),
            discovery,
            keys: Mutex::default(),
        };
        let mut cached = external.keys.lock().await;
        external.refresh(&mut cached).await.map_err(ExternalError::Issuer)?;
        // Whoever comes first with a new key is served at once.
        cached.read = None;
        drop(cached);
        Ok(external)
    }

    pub(super) fn authorization_endpoint(&self) -> String {
        self.discovery.authorization_endpoint.clone()
    }

    pub(super) fn client_id(&self) -> &str {
        &self.client_id
    }

    pub(super) fn scopes(&self) -> String {
        let known = |scope: &&str| {
            self.discovery.scopes_supported.as_ref().is_none_or(|known| known.iter().any(|one| one == scope))
        };
        ["openid"].into_iter().chain(SCOPES.into_iter().filter(known)).collect::<Vec<_>>().join(" ")
    }

    /// The identity behind a code.
    pub(super) async fn identity(&self, code: &str, ask: &Ask<'_>, now: i64) -> Result<Identity, OidcError> {
        let token = self.exchange(code, ask).await?;
        let expected = Expected { issuer: &self.discovery.issuer, audience: &self.client_id, nonce: ask.nonce, now };
        let mut cached = self.keys.lock().await;
        let mut checked = id_token::check(&cached.keys, &token, &expected);
        let is_old = cached.read.is_none_or(|read| read.elapsed() >= REFRESH);
        if checked == Err(IdTokenError::UnknownKey) && is_old {
            self.refresh(&mut cached).await.map_err(OidcError::Issuer)?;
            checked = id_token::check(&cached.keys, &token, &expected);
        }
        checked.map_err(|error| OidcError::Token(error.to_string()))
    }

    /// The request that redeems a code.
    fn redemption(&self, code: &str, ask: &Ask<'_>) -> Result<Request<Bytes>, OidcError> {
        let mut form = form_urlencoded::Serializer::new(String::new());
        form.append_pair("grant_type", "authorization_code").append_pair("code", code);
        form.append_pair("redirect_uri", ask.callback).append_pair("code_verifier", ask.verifier);
        let mut request = Request::post(&self.discovery.token_endpoint)
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .header(ACCEPT, "application/json");
        let by_form = |method: &String| method == "client_secret_post";
        match &self.client_secret {
            Some(secret) if !self.discovery.token_endpoint_auth_methods_supported.iter().any(by_form) => {
                let encode = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
                let pair = format!("{}:{}", encode(&self.client_id), encode(secret));
                request = request.header(AUTHORIZATION, format!("Basic {}", BASE64.encode(pair.as_bytes())));
            }
            Some(secret) => {
                form.append_pair("client_id", &self.client_id).append_pair("client_secret", secret);
            }
            None => {
                form.append_pair("client_id", &self.client_id);
            }
        }
        let body = Bytes::from(form.finish());
        request.body(body).map_err(|error| OidcError::Issuer(error.to_string()))
    }

    async fn exchange(&self, code: &str, ask: &Ask<'_>) -> Result<String, OidcError> {
        let failed = |error: String| OidcError::Issuer(error);
        let request = self.redemption(code, ask)?;
        let answer = self.web.send(request).await.map_err(|error| failed(error.to_string()))?;
        let status = answer.status();
        if status.is_client_error() {
            let refusal: Refusal = serde_json::from_slice(answer.body()).unwrap_or_default();
            // Its description may repeat what was sent.
            let error = if refusal.error.is_empty() { status.to_string() } else { refusal.error };
            return Err(OidcError::Refused(error));
        }
        if status != StatusCode::OK {
            return Err(failed(format!("its token endpoint answered with {status}")));
        }
        let tokens: Result<Tokens, _> = serde_json::from_slice(answer.body());
        tokens.map(|tokens| tokens.id_token).map_err(|_| failed("it gave no ID token".to_owned()))
    }

    async fn refresh(&self, cached: &mut CachedKeys) -> Result<(), String> {
        cached.read = Some(Instant::now());
        cached.keys = get(&self.web, &self.discovery.jwks_uri).await?;
        Ok(())
    }
}

/// Why an issuer cannot be used.
pub enum ExternalError {
    Trust(carrick_client::ConnectError),
    Issuer(String),
}

/// The JSON at a URL.
async fn get<T: DeserializeOwned>(web: &Web, url: &str) -> Result<T, String> {
    let request = Request::get(url).header(ACCEPT, "application/json").body(Bytes::new());
    let answer = web.send(request.map_err(|error| format!("{url:?}: {error}"))?).await;
    let answer = answer.map_err(|error| error.to_string())?;
    if answer.status() != StatusCode::OK {
        return Err(format!("{url} answered with {}", answer.status()));
    }
    serde_json::from_slice(answer.body()).map_err(|error| format!("{url} is not what it should be: {error}"))
}
