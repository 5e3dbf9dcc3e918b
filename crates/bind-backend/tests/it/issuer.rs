//! An issuer whose ID tokens a test can spoil.

#![allow(dead_code, clippy::missing_panics_doc, reason = "every test uses another part")]

use std::sync::Arc;

use bytes::Bytes;
use carrick_bind_backend::http::LoginMethod;
use data_encoding::BASE64URL_NOPAD;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use ring::digest::{SHA256, digest};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::model::{Running, location, value};

pub const CLIENT: &str = "backend";
const SECRET: &str = "client-s3cret";

/// An issuer whose ID tokens a test can spoil.
pub struct Mock {
    pub url: String,
    pub state: Mutex<MockState>,
}

pub struct MockState {
    pub key: EcdsaKeyPair,
    pub key_name: String,
    /// What the JWKS shows: name and key.
    pub shown: (String, Vec<u8>),
    /// Changes the claims of the next ID tokens.
    pub change: Value,
    pub asked_for_keys: usize,
    pub challenge: String,
    pub nonce: String,
}

pub fn new_key() -> EcdsaKeyPair {
    let (algorithm, random) = (&ECDSA_P256_SHA256_FIXED_SIGNING, SystemRandom::new());
    let pkcs8 = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
    EcdsaKeyPair::from_pkcs8(algorithm, pkcs8.as_ref(), &random).unwrap()
}

impl Mock {
    pub async fn start() -> Arc<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let key = new_key();
        let shown = ("k1".to_owned(), key.public_key().as_ref().to_vec());
        let state = MockState {
            key,
            key_name: "k1".to_owned(),
            shown,
            change: json!({}),
            asked_for_keys: 0,
            challenge: String::new(),
            nonce: String::new(),
        };
        let mock = Arc::new(Self { url, state: Mutex::new(state) });
        let served = Arc::clone(&mock);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let mock = Arc::clone(&served);
                let service = service_fn(move |request| {
                    let mock = Arc::clone(&mock);
                    async move { Ok::<_, std::convert::Infallible>(mock.answer(request).await) }
                });
                let connection =
                    hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
                tokio::spawn(connection);
            }
        });
        mock
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let path = request.uri().path().to_owned();
        let form = request.into_body().collect().await.unwrap().to_bytes();
        let content = match path.as_str() {
            "/.well-known/openid-configuration" => {
                json!({"issuer": self.url, "authorization_endpoint": format!("{}/auth", self.url),
                "token_endpoint": format!("{}/token", self.url), "jwks_uri": format!("{}/keys", self.url),
                "scopes_supported": ["openid", "email"], "token_endpoint_auth_methods_supported": ["client_secret_post"]})
            }
            "/keys" => {
                let mut state = self.state.lock();
                state.asked_for_keys += 1;
                let (name, point) = &state.shown;
                json!({"keys": [{"kty": "EC", "crv": "P-256", "kid": name, "use": "sig",
                    "x": BASE64URL_NOPAD.encode(&point[1..33]), "y": BASE64URL_NOPAD.encode(&point[33..])}]})
            }
            _ => return self.token(&form),
        };
        Response::new(Full::new(Bytes::from(content.to_string())))
    }

    fn token(&self, form: &[u8]) -> Response<Full<Bytes>> {
        let get = |name: &str| form_urlencoded::parse(form).find(|(other, _)| other == name).unwrap().1.into_owned();
        let state = self.state.lock();
        let challenge = BASE64URL_NOPAD.encode(digest(&SHA256, get("code_verifier").as_bytes()).as_ref());
        let good = get("code") == "good" && challenge == state.challenge;
        if !good || get("client_id") != CLIENT || get("client_secret") != SECRET {
            let refused =
                json!({"error": "invalid_grant", "error_description": format!("code {} is bad", get("code"))});
            let mut answer = Response::new(Full::new(Bytes::from(refused.to_string())));
            *answer.status_mut() = StatusCode::BAD_REQUEST;
            return answer;
        }
        let now = jiff::Timestamp::now().as_second();
        let mut claims = json!({"iss": self.url, "sub": "ann", "aud": CLIENT, "exp": now + 600, "iat": now, "nonce": state.nonce,
            "groups": ["team", "system:masters"]});
        for (name, value) in state.change.as_object().unwrap() {
            claims[name] = value.clone();
        }
        let header = json!({"alg": "ES256", "kid": state.key_name});
        let encode = |value: &Value| BASE64URL_NOPAD.encode(value.to_string().as_bytes());
        let unsigned = format!("{}.{}", encode(&header), encode(&claims));
        let signature = state.key.sign(&SystemRandom::new(), unsigned.as_bytes()).unwrap();
        let token = format!("{unsigned}.{}", BASE64URL_NOPAD.encode(signature.as_ref()));
        let tokens = json!({"access_token": "a", "token_type": "Bearer", "id_token": token});
        Response::new(Full::new(Bytes::from(tokens.to_string())))
    }

    pub fn login(&self) -> LoginMethod {
        LoginMethod::External {
            issuer: self.url.clone(),
            client_id: CLIENT.to_owned(),
            client_secret: Some(SECRET.to_owned()),
            ca_file: None,
        }
    }

    /// Logs in at a front with a code.
    pub async fn log_in(&self, front: &Running, code: &str) -> Response<Bytes> {
        let begin = "/api/authorize?redirect_url=http%3A%2F%2F127.0.0.1%3A9%2Fc&session_id=s&client_type=cli";
        let url = location(&front.get(begin).await);
        assert!(url.starts_with(&format!("{}/auth?", self.url)));
        assert_eq!(value(&url, "scope").unwrap(), "openid email", "only what the issuer knows");
        {
            let mut state = self.state.lock();
            (state.challenge, state.nonce) = (value(&url, "code_challenge").unwrap(), value(&url, "nonce").unwrap());
        }
        front.get(&format!("/api/callback?code={code}&state={}", value(&url, "state").unwrap())).await
    }
}
