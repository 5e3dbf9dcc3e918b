//! Login: to the issuer and back. All that has to be known when the browser returns travels with it, encrypted.

use http::header::SET_COOKIE;
use http::{Method, StatusCode};
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::answer::{Answer, Fault, json_answer, redirect, set, text};
use super::asked::{Asked, is_cluster};
use super::code;
use super::front::{Front, now};
use super::oidc::{Ask, Identity, OidcError};
use super::redirect;
use super::secrecy::random_text;
use super::session::{COOKIE_PURPOSE, cookie_name, cookie_parts};
use super::token::{self, Claims};
use crate::provider::Provider;

/// How long a login may take.
const LOGIN_SECONDS: i64 = 600;
const STATE_PURPOSE: &str = "state";
/// The cookie that ties a login to the browser that began it.
const BROWSER_COOKIE: &str = "kube-bind-browser";

/// A login on its way.
#[derive(Serialize, Deserialize)]
struct LoginState {
    redirect_url: String,
    session_id: String,
    cluster_id: String,
    is_cli: bool,
    /// For a command line that takes a code instead of a token.
    #[serde(default)]
    challenge: Option<String>,
    verifier: String,
    nonce: String,
    /// Hash of the browser's cookie; the command line needs none, because its redirect goes to whoever began.
    browser: Vec<u8>,
    exp: i64,
}

/// A login that fails, for the command line or for people.
struct Failure {
    status: StatusCode,
    message: String,
    is_cli: bool,
}

impl Failure {
    fn answer(&self) -> Answer {
        if self.is_cli {
            return json_answer(self.status, &json!({"success": false, "error": self.message}));
        }
        text(self.status, format!("{}\n", self.message))
    }
}

impl<P: Provider> Front<P> {
    /// Sends a browser to the issuer.
    pub(super) fn authorize(&self, asked: &Asked) -> Answer {
        self.begin(asked).unwrap_or_else(|failure| self.failed(asked, &failure))
    }

    /// Browsers get a page; whoever does not ask for one gets kube-bind's answer.
    fn failed(&self, asked: &Asked, failure: &Failure) -> Answer {
        if !failure.is_cli && asked.wants_page() {
            return self.problem(asked, failure.status, &failure.message);
        }
        failure.answer()
    }

    fn begin(&self, asked: &Asked) -> Result<Answer, Failure> {
        let body: Value = match asked.method {
            Method::POST => serde_json::from_slice(&asked.body).unwrap_or_default(),
            _ => Value::Null,
        };
        let given = |name: &str| {
            let in_body = body[name].as_str().filter(|value| !value.is_empty());
            in_body.unwrap_or_else(|| asked.query.get(name)).to_owned()
        };
        let is_cli = given("client_type") == "cli";
        let bad = |message: &str| Failure { status: StatusCode::BAD_REQUEST, message: message.to_owned(), is_cli };
        let (redirect_url, session_id, cluster_id) = (given("redirect_url"), given("session_id"), given("cluster_id"));
        if redirect_url.is_empty() || session_id.is_empty() {
            return Err(bad("redirect_url and session_id are needed"));
        }
        if session_id.len() > 256 || !session_id.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(bad("session_id has more than 256 characters, or unusual ones"));
        }
        if !is_cluster(&cluster_id) {
            return Err(bad("cluster_id is not the name of a cluster"));
        }
        if is_cli && !redirect::is_loopback(&redirect_url) {
            return Err(bad(
                "redirect_url of a command line must be http://127.0.0.1:PORT/..., for the token goes there",
            ));
        }
        let challenge = given("code_challenge");
        let challenge = code::given(&challenge).map_err(bad)?.map(str::to_owned);
        if !is_cli && !self.is_own(asked, &redirect_url) {
            return Err(bad("redirect_url must be one of this server"));
        }
        let failed = |error: super::secrecy::CryptoError| Failure {
            status: StatusCode::INTERNAL_SERVER_ERROR,
            message: error.to_string(),
            is_cli,
        };
        let (verifier, nonce) = (random_text().map_err(failed)?, random_text().map_err(failed)?);
        // Of several logins at once in one browser none must spoil the others.
        let known = asked.cookie(BROWSER_COOKIE).filter(|value| value.len() == 43).map(str::to_owned);
        let browser = known.map_or_else(random_text, Ok).map_err(failed)?;
        let state = LoginState {
            redirect_url,
            session_id,
            cluster_id,
            is_cli,
            challenge,
            verifier,
            nonce,
            browser: if is_cli { Vec::new() } else { hash(&browser) },
            exp: now() + LOGIN_SECONDS,
        };
        let sealed = self.keys.seal.close(STATE_PURPOSE, &state).map_err(failed)?;
        let ask = self.ask(&sealed, &state);
        let mut answer = redirect(StatusCode::FOUND, &self.issuer.authorization_url(&ask));
        if !is_cli {
            set_cookie(&mut answer, asked, BROWSER_COOKIE, &browser, LOGIN_SECONDS);
        }
        Ok(answer)
    }

    /// Whether a URL leads back to this server, by the name that the browser uses or by the one that the issuer knows.
    pub(super) fn is_own(&self, asked: &Asked, url: &str) -> bool {
        let known = redirect::origin_of(&self.config.callback).unwrap_or_default();
        redirect::is_own(url, &[&asked.origin, &known])
    }

    fn ask<'a>(&'a self, sealed: &'a str, state: &'a LoginState) -> Ask<'a> {
        Ask { state: sealed, nonce: &state.nonce, verifier: &state.verifier, callback: &self.config.callback }
    }

    /// The browser is back from the issuer.
    pub(super) async fn callback(&self, asked: &Asked) -> Answer {
        self.finish(asked).await.unwrap_or_else(|failure| {
            tracing::info!(problem = failure.message, "A login has failed.");
            self.failed(asked, &failure)
        })
    }

    async fn finish(&self, asked: &Asked) -> Result<Answer, Failure> {
        let sealed = asked.query.get("state");
        let state: Option<LoginState> = self.keys.seal.open(STATE_PURPOSE, sealed);
        let bad = |message: &str, is_cli: bool| Failure {
            status: StatusCode::BAD_REQUEST,
            message: message.to_owned(),
            is_cli,
        };
        let state = state.filter(|state| now() < state.exp);
        let state = state.ok_or_else(|| bad("this login has expired, or was not begun here; log in again", false))?;
        let is_cli = state.is_cli;
        if !is_cli && asked.cookie(BROWSER_COOKIE).map(hash).as_ref() != Some(&state.browser) {
            return Err(bad("this login was begun in another browser; log in again", false));
        }
        let problem = asked.query.get("error");
        if !problem.is_empty() {
            let shown: String = problem.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '_').take(64).collect();
            return Err(bad(&format!("the issuer refuses the login: {shown}"), is_cli));
        }
        let code = asked.query.get("code");
        if code.is_empty() {
            return Err(bad("the issuer has sent no code; log in again", is_cli));
        }
        let ask = self.ask(sealed, &state);
        let identity = self.issuer.redeem(&self.keys.seal, code, &ask, now()).await;
        let identity = identity.map_err(|error| {
            let status = match error {
                OidcError::Refused(_) => StatusCode::BAD_REQUEST,
                OidcError::Token(_) => StatusCode::UNAUTHORIZED,
                OidcError::Issuer(_) => StatusCode::BAD_GATEWAY,
            };
            Failure { status, message: error.to_string(), is_cli }
        })?;
        let claims = self.new_claims(&state, identity);
        tracing::info!(subject = claims.sub, cluster = claims.cid, cli = is_cli, "Somebody has logged in.");
        let failed = || Failure {
            status: StatusCode::INTERNAL_SERVER_ERROR,
            message: "no token can be made; try again".to_owned(),
            is_cli,
        };
        self.hand_out(asked, &state, &claims).ok_or_else(failed)
    }

    fn new_claims(&self, state: &LoginState, identity: Identity) -> Claims {
        let lasts = i64::try_from(self.config.token_expiry.as_secs()).unwrap_or(i64::MAX / 2);
        let now = now();
        Claims {
            sub: identity.subject,
            iss: identity.issuer,
            sid: state.session_id.clone(),
            cid: state.cluster_id.clone(),
            groups: identity.groups,
            iat: now,
            nbf: now,
            exp: now.saturating_add(lasts),
        }
    }

    fn hand_out(&self, asked: &Asked, state: &LoginState, claims: &Claims) -> Option<Answer> {
        let (cluster, lasts) = (claims.cid.as_str(), claims.exp - claims.iat);
        let mut values = Vec::new();
        if !cluster.is_empty() {
            values.push(("cluster_id", cluster));
        }
        if let (true, Some(challenge)) = (state.is_cli, &state.challenge) {
            let token = token::mint(&self.keys.signing, claims)?;
            let content =
                json!({"access_token": token, "token_type": "Bearer", "expires_in": lasts, "cluster_id": cluster});
            let code = self.code(challenge, content).ok()?;
            values.push(("code", &code));
            return Some(redirect(StatusCode::FOUND, &redirect::with(&state.redirect_url, &values)));
        }
        if state.is_cli {
            let (token, expires) = (token::mint(&self.keys.signing, claims)?, lasts.to_string());
            values.extend([("access_token", token.as_str()), ("token_type", "Bearer"), ("expires_in", &expires)]);
            return Some(redirect(StatusCode::FOUND, &redirect::with(&state.redirect_url, &values)));
        }
        values.push(("session_id", &claims.sid));
        let mut answer = redirect(StatusCode::FOUND, &redirect::with(&state.redirect_url, &values));
        let cookie = self.keys.seal.close(COOKIE_PURPOSE, claims).ok()?;
        for (name, part) in cookie_parts(&cookie_name(cluster), &cookie)? {
            set_cookie(&mut answer, asked, &name, &part, lasts);
        }
        Some(answer)
    }

    /// Ends the session of a browser.
    pub(super) fn logout(asked: &Asked) -> Result<Answer, Fault> {
        if asked.is_cross_site() {
            return Err(Fault::Forbidden("the request comes from a page of another server".to_owned()));
        }
        let mut answer = json_answer(StatusCode::OK, &json!({"success": true}));
        // Parts without the first one are nothing, and go when their time is over.
        set_cookie(&mut answer, asked, &cookie_name(asked.cluster()?), "", 0);
        Ok(answer)
    }
}

fn hash(text: &str) -> Vec<u8> {
    digest(&SHA256, text.as_bytes()).as_ref().to_vec()
}

/// Sets a cookie that scripts do not see and other sites do not send.
fn set_cookie(answer: &mut Answer, asked: &Asked, name: &str, value: &str, seconds: i64) {
    let secure = if asked.is_secure() { "; Secure" } else { "" };
    let cookie = format!("{name}={value}; Path=/; HttpOnly; SameSite=Lax; Max-Age={seconds}{secure}");
    set(answer, SET_COOKIE, &cookie);
}
