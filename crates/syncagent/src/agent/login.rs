//! Who may look at the dashboard, where others can reach it: whoever has a token of the service cluster and may get PublishedResources there.
//!
//! ```text
//!  POST /login  token ──▶ TokenReview, for an audience ──▶ SubjectAccessReview ──▶ session, a cookie
//!  every request  cookie or Authorization: Bearer ──▶ asked again once a minute: a right that is withdrawn ends a session
//! ```
//!
//! Tokens are kept in memory only, and appear in no log and no URL. The best ones are for the dashboard alone: whoever gets hold of one can do
//! nothing with it on the service cluster. Those for the service cluster itself are taken, too, unless a flag names an audience.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use carrick_client::{Client, Error, Resource};
use http::header::{AUTHORIZATION, COOKIE};
use http::{HeaderMap, StatusCode};
use parking_lot::Mutex;
use serde_json::{Value, json};
use thiserror::Error;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use super::config::AgentConfig;
use crate::api::GROUP;

/// How long an answer of the service cluster counts.
const FRESH: Duration = Duration::from_mins(1);
/// How many sessions there may be; the one that was used longest ago goes first.
const SESSIONS: usize = 100;
/// How many questions to the service cluster are open at once, whoever asks.
const AT_ONCE: usize = 4;
/// Longest token.
pub(super) const LONGEST: usize = 16 * 1024;

/// The audience of tokens that are for dashboards and nothing else.
const AUDIENCE: &str = "dashboard.syncagent.kcp.io";

/// The right that is needed.
const RESOURCE: &str = "publishedresources";
const VERB: &str = "get";

/// Why somebody may not look.
#[derive(Debug, Error)]
pub enum LoginError {
    /// No token or session came with the request, or the session has ended.
    #[error("log in with a token of the service cluster")]
    Nobody,
    /// The service cluster does not know the token.
    #[error("the service cluster does not accept this token: it is wrong or has expired")]
    Unknown,
    /// The service cluster does not know the token, or knows it as one for somebody else.
    #[error(
        "the service cluster does not accept this token for audience {audience}: it is wrong, has expired or is for somebody else; `kubectl create token --audience {audience}` makes one"
    )]
    OtherAudience {
        /// For whom it must be.
        audience: String,
    },
    /// The token is good, but its owner lacks the right.
    #[error("{user} may not {VERB} {RESOURCE}.{GROUP} on the service cluster, which is the right that is needed here")]
    Forbidden {
        /// Who it is.
        user: String,
    },
    /// The service cluster cannot be asked.
    #[error("the agent cannot ask the service cluster who you are: {0}; {ADVICE}")]
    Unasked(#[from] Error),
}

/// What the agent needs itself.
const ADVICE: &str = "it needs the right to create tokenreviews.authentication.k8s.io and subjectaccessreviews.authorization.k8s.io, as the chart grants with dashboard.enabled";

impl LoginError {
    /// How HTTP says it.
    pub(super) fn status(&self) -> StatusCode {
        match self {
            Self::Nobody | Self::Unknown | Self::OtherAudience { .. } => StatusCode::UNAUTHORIZED,
            Self::Forbidden { .. } => StatusCode::FORBIDDEN,
            Self::Unasked(_) => StatusCode::BAD_GATEWAY,
        }
    }
}

/// Lets people in.
pub struct Login {
    local: Client,
    cookie: String,
    /// For whom tokens must be, if they cannot be for the service cluster itself.
    audience: Option<String>,
    sessions: Mutex<HashMap<String, Session>>,
    questions: Semaphore,
}

/// Somebody who was let in.
#[derive(Clone)]
struct Session {
    token: Arc<str>,
    /// When the service cluster last said yes.
    checked: Instant,
    used: Instant,
}

impl Login {
    /// Nobody has to log in where only this machine can connect.
    pub fn unless_loopback(listener: &TcpListener, config: &AgentConfig) -> Option<Arc<Self>> {
        let loopback = listener.local_addr().is_ok_and(|address| address.ip().is_loopback());
        let login = || Self::new(config.local.client(), &config.agent_name, config.dashboard_audience.clone());
        (!loopback).then(|| Arc::new(login()))
    }

    fn new(local: Client, agent_name: &str, audience: Option<String>) -> Self {
        // Browsers send cookies to all ports of a host; agents must not end each other's sessions.
        let cookie = format!("carrick-{}", agent_name.replace(|c: char| !c.is_ascii_alphanumeric(), "-"));
        Self { local, cookie, audience, sessions: Mutex::default(), questions: Semaphore::new(AT_ONCE) }
    }

    /// Begins a session; returns the cookie to set.
    pub(super) async fn begin(&self, token: &str, headers: &HeaderMap) -> Result<String, LoginError> {
        self.ask(token).await?;
        let id = format!("{}{}", uuid::Uuid::new_v4().simple(), uuid::Uuid::new_v4().simple());
        self.keep(id.clone(), token);
        let secure = headers.get("x-forwarded-proto").is_some_and(|scheme| scheme == "https");
        let secure = if secure { "; Secure" } else { "" };
        Ok(format!("{}={id}; Path=/; HttpOnly; SameSite=Strict{secure}", self.cookie))
    }

    /// Ends a session; returns the cookie that removes it.
    pub(super) fn end(&self, headers: &HeaderMap) -> String {
        if let Some(id) = self.session(headers) {
            self.sessions.lock().remove(&id);
        }
        format!("{}=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0", self.cookie)
    }

    /// Whether whoever sent these headers may look.
    pub(super) async fn check(&self, headers: &HeaderMap) -> Result<(), LoginError> {
        let bearer = bearer(headers);
        let id = bearer.clone().or_else(|| self.session(headers)).ok_or(LoginError::Nobody)?;
        let known = self.sessions.lock().get_mut(&id).map(|session| {
            session.used = Instant::now();
            session.clone()
        });
        let token = match (known, bearer) {
            (Some(session), _) if session.checked.elapsed() < FRESH => return Ok(()),
            (Some(session), _) => session.token,
            (None, Some(token)) => token.into(),
            (None, None) => return Err(LoginError::Nobody),
        };
        match self.ask(&token).await {
            Ok(()) => {
                self.keep(id, &token);
                Ok(())
            }
            Err(error) => {
                // An outage of the service cluster ends no session.
                if !matches!(error, LoginError::Unasked(_)) {
                    self.sessions.lock().remove(&id);
                }
                Err(error)
            }
        }
    }

    fn keep(&self, id: String, token: &str) {
        let mut sessions = self.sessions.lock();
        let now = Instant::now();
        sessions.insert(id, Session { token: token.into(), checked: now, used: now });
        if sessions.len() > SESSIONS {
            let oldest = sessions.iter().min_by_key(|(_, session)| session.used).map(|(id, _)| id.clone());
            oldest.map(|id| sessions.remove(&id));
        }
    }

    /// Asks the service cluster whose token it is, and whether they have the right.
    async fn ask(&self, token: &str) -> Result<(), LoginError> {
        let Ok(_one) = self.questions.acquire().await else { return Err(LoginError::Nobody) };
        let user = self.owner(token).await?;
        let review = access_review(&user);
        let reviews =
            Resource::cluster_wide("authorization.k8s.io", "v1", "SubjectAccessReview", "subjectaccessreviews");
        let answer = self.local.create(&reviews, None, &review).await?;
        if answer["status"]["allowed"] == true {
            Ok(())
        } else {
            Err(LoginError::Forbidden { user: user["username"].as_str().unwrap_or_default().to_owned() })
        }
    }

    /// Whose token it is.
    async fn owner(&self, token: &str) -> Result<Value, LoginError> {
        let own = self.audience.as_deref().unwrap_or(AUDIENCE);
        if let Some(user) = self.review(token, Some(own)).await? {
            return Ok(user);
        }
        match &self.audience {
            Some(audience) => Err(LoginError::OtherAudience { audience: audience.clone() }),
            // Without an audience the service cluster takes tokens that are for itself, and no others.
            None => self.review(token, None).await?.ok_or(LoginError::Unknown),
        }
    }

    /// Asks whose token it is; nobody's if it is not for this audience.
    async fn review(&self, token: &str, audience: Option<&str>) -> Result<Option<Value>, LoginError> {
        let spec = json!({ "token": token, "audiences": audience.into_iter().collect::<Vec<_>>() });
        let review = json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": spec });
        let reviews = Resource::cluster_wide("authentication.k8s.io", "v1", "TokenReview", "tokenreviews");
        // A server may quote what it refuses, and that is the token.
        let answer = self.local.create(&reviews, None, &review).await.map_err(Error::discreet)?;
        Ok(reviewed(&answer["status"], audience))
    }

    /// The session that a cookie names.
    fn session(&self, headers: &HeaderMap) -> Option<String> {
        let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut pairs = cookies.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
        pairs.find(|(name, _)| *name == self.cookie).map(|(_, id)| id.to_owned())
    }
}

/// The token of a program.
fn bearer(headers: &HeaderMap) -> Option<String> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim().to_owned()).filter(|token| token.len() <= LONGEST)
}

/// Whose token it is. A server that does not know of audiences accepts a token for anybody, and does not say for whom it is.
fn reviewed(status: &Value, audience: Option<&str>) -> Option<Value> {
    let is_for =
        |audience: &str| status["audiences"].as_array().is_some_and(|all| all.iter().any(|one| one == audience));
    (status["authenticated"] == true && audience.is_none_or(is_for)).then(|| status["user"].clone())
}

/// Whether somebody has the right, as the service cluster is asked.
fn access_review(user: &Value) -> Value {
    json!({
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {
            "user": user["username"],
            "uid": user["uid"],
            "groups": user["groups"],
            "extra": user["extra"],
            "resourceAttributes": { "group": GROUP, "resource": RESOURCE, "verb": VERB },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_counts_only_for_the_audience_that_the_server_confirms() {
        let user = json!({ "username": "ann" });
        let good = |audiences: Value| json!({ "authenticated": true, "user": user, "audiences": audiences });
        for (status, audience, wanted) in [
            (good(json!(["a", "b"])), Some("b"), true),
            (good(json!(["https://cluster"])), None, true),
            (good(json!(["a"])), Some("b"), false),
            (good(json!([])), Some("b"), false),
            (json!({ "authenticated": true, "user": user }), Some("b"), false),
            (json!({ "authenticated": true, "user": user }), None, true),
            (json!({ "authenticated": false, "user": user, "audiences": ["b"] }), Some("b"), false),
            (json!({}), None, false),
        ] {
            assert_eq!(reviewed(&status, audience), wanted.then(|| user.clone()), "{status} {audience:?}");
        }
    }
}
