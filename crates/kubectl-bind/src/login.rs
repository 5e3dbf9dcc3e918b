//! Logging in.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::backend::{Backend, BackendError, Place, shown};
use crate::callback::{self, Brought, Callback, CallbackError};
use crate::config::{ConfigError, ConfigFile, ServerEntry};
use crate::options;

/// Why nobody is logged in.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoginError {
    /// The backend does not help.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// The browser did not come back.
    #[error(transparent)]
    Callback(#[from] CallbackError),
    /// The browser brought no token.
    #[error("the browser came back without a token; try again")]
    NoToken,
    /// The token is one for another cluster.
    #[error("the backend has logged in to cluster {0:?} instead")]
    OtherCluster(String),
    /// The login cannot be kept.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

/// Logs in; returns what to print.
pub async fn run(request: &options::Login, flags: &options::Backend) -> Result<String, LoginError> {
    let file = ConfigFile::at(flags.config_file.as_deref())?;
    // A file that cannot be used is better known before somebody types a password.
    file.read()?;
    let place = Place::parse(&request.server_url, flags.cluster_id.as_deref())?;
    if !place.is_private() {
        eprintln!("warning: {} is not https: whoever listens on the way can use your login", place.url);
    }
    let backend = Backend::new(place.clone(), None, flags)?;
    let login = backend.login_url().await?;
    let mut back = Callback::listen().await?;
    // The backend has put our own cluster_id into the URL already, if it is one of ours.
    let mut values = vec![
        ("redirect_url", back.url.as_str()),
        ("session_id", &back.session),
        ("client_type", "cli"),
        ("code_challenge", &back.challenge),
    ];
    if !place.cluster.is_empty() && !login.contains("cluster_id=") {
        values.push(("cluster_id", &place.cluster));
    }
    callback::open(&callback::with(&login, &values), request.skip_browser);
    let brought = back.wait(request.timeout).await?;
    let Granted { token, cluster, seconds } = match back.exchange(&backend, &brought).await? {
        Some(granted) => Granted::of_code(&granted),
        None => Granted::of_url(&brought),
    }
    .ok_or(LoginError::NoToken)?;
    if cluster != place.cluster {
        return Err(LoginError::OtherCluster(shown(&cluster)));
    }
    let token = token.as_str();
    let expires = Timestamp::now().saturating_add(SignedDuration::from_secs(seconds)).unwrap_or(Timestamp::MAX);
    let username = username(token);
    // Whether the backend takes its own token, and lets this user in, is known now and not with the first order.
    Backend::new(place.clone(), Some(token), flags)?.list("templates").await?;
    let entry = ServerEntry::new(&place.url, &place.cluster, token, expires, &username);
    file.change(|config| {
        config.current = entry.key();
        config.servers.insert(entry.key(), entry);
    })?;
    let whom = if username.is_empty() { String::new() } else { format!(" as {username}") };
    let shown = if request.show_token { format!("{token}\n") } else { String::new() };
    Ok(format!("Logged in to {}{whom}.\n{shown}", place.url))
}

/// What a login has brought.
struct Granted {
    token: String,
    cluster: String,
    seconds: i64,
}

/// How long a login lasts if nobody says so.
const USUAL_SECONDS: i64 = 3600;

impl Granted {
    /// As a code was exchanged for it.
    fn of_code(granted: &Value) -> Option<Self> {
        let text = |name: &str| granted[name].as_str().map(str::to_owned);
        let token = text("access_token").filter(|token| !token.is_empty())?;
        let seconds = granted["expires_in"].as_i64().unwrap_or(USUAL_SECONDS);
        Some(Self { token, cluster: text("cluster_id").unwrap_or_default(), seconds })
    }

    /// As backends of kube-bind put it into the URL.
    fn of_url(brought: &Brought) -> Option<Self> {
        let token = callback::value(brought, "access_token")?.to_owned();
        let cluster = callback::value(brought, "cluster_id").unwrap_or_default().to_owned();
        let seconds = callback::value(brought, "expires_in").and_then(|text| text.parse().ok());
        Some(Self { token, cluster, seconds: seconds.unwrap_or(USUAL_SECONDS) })
    }
}

/// Whom a token is for. Nobody relies on it: it is shown to people.
fn username(token: &str) -> String {
    let payload = token.split('.').nth(1).and_then(carrick_bind_api::response::decode);
    let claims: Option<Value> = payload.and_then(|bytes| serde_json::from_slice(&bytes).ok());
    claims.and_then(|claims| claims["sub"].as_str().map(shown)).unwrap_or_default()
}
