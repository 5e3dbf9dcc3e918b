//! A provider's backend, over HTTP.

use bytes::Bytes;
use carrick_bind_api::version;
use carrick_client::{ConnectError, Error, Web, WebTrust};
use carrick_go::url::Url;
use http::{Request, StatusCode, header};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::config::{Config, ServerEntry, key};
use crate::options;

/// Who asks, as backends know it.
const USER_AGENT: &str = "kubectl-bind-cli";

/// Why a backend gave no good answer. No message holds a token.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackendError {
    /// The URL is not one.
    #[error("{0:?} is not the URL of a backend; expected https://HOST[:PORT]")]
    Url(String),
    /// Nobody has logged in.
    #[error("not logged in to {0}; run `kubectl bind login {0}`")]
    NotLoggedIn(String),
    /// The login has ended.
    #[error("the login to {0} has expired; run `kubectl bind login {0}`")]
    Expired(String),
    /// There is no backend to ask.
    #[error("no backend is known; run `kubectl bind login URL`")]
    NoServer,
    /// Certificates cannot be used.
    #[error(transparent)]
    Trust(#[from] ConnectError),
    /// No answer came.
    #[error("the backend does not answer: {0}")]
    Transport(#[from] Error),
    /// It refuses.
    #[error("the backend refuses: {message} ({code})")]
    Refused {
        /// What it says.
        message: String,
        /// Its code, or the status of its answer.
        code: String,
    },
    /// It is too old.
    #[error(
        "the backend {url} is kube-bind {version}, and {} is the oldest that works; ask the provider to update it",
        version::OLDEST
    )]
    TooOld {
        /// Its URL.
        url: String,
        /// Its version.
        version: String,
    },
    /// The answer is not what it should be.
    #[error("{0} answered with something that is not of kube-bind; is it the URL of a backend?")]
    Foreign(String),
}

/// Where a backend is: its URL without a slash at the end, and the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The URL.
    pub url: String,
    /// The cluster; empty if the provider has only one.
    pub cluster: String,
}

impl Place {
    /// `URL` or `URL@CLUSTER`; a cluster that is given by a flag counts more.
    pub fn parse(text: &str, cluster: Option<&str>) -> Result<Self, BackendError> {
        let wrong = || BackendError::Url(text.to_owned());
        let after_scheme = text.find("://").map_or(0, |at| at + 3);
        let (url, in_text) = match text[after_scheme..].rfind('@') {
            Some(at) => (&text[..after_scheme + at], &text[after_scheme + at + 1..]),
            None => (text, ""),
        };
        let parsed = Url::parse(url.as_bytes()).map_err(|_| wrong())?;
        let is_web = matches!(&parsed.scheme[..], b"http" | b"https") && !parsed.host.is_empty();
        if !is_web || parsed.user.is_some() || !parsed.query.is_empty() {
            return Err(wrong());
        }
        // People copy the address of the endpoint, too.
        let url = url.trim_end_matches('/');
        let url = url.strip_suffix("/api/exports").or_else(|| url.strip_suffix("/exports")).unwrap_or(url);
        Ok(Self { url: url.to_owned(), cluster: cluster.unwrap_or(in_text).to_owned() })
    }

    /// Whether nobody listens on the way: it is https, or on this machine.
    pub fn is_private(&self) -> bool {
        let url = Url::parse(self.url.as_bytes()).unwrap_or_default();
        url.scheme == b"https" || matches!(url.host_name(), b"127.0.0.1" | b"::1" | b"localhost")
    }

    /// The place that the command line means: the argument, the flag, or the last login.
    pub fn choose(argument: Option<&str>, flags: &options::Backend, config: &Config) -> Result<Self, BackendError> {
        let cluster = flags.cluster_id.as_deref();
        if let Some(text) = argument.or(flags.server.as_deref()) {
            return Self::parse(text, cluster);
        }
        let current = config.servers.get(&config.current).ok_or(BackendError::NoServer)?;
        Ok(Self { url: current.url.clone(), cluster: cluster.unwrap_or(&current.cluster).to_owned() })
    }

    /// The login there, if it can be used.
    pub fn login<'a>(&self, config: &'a Config, now: Timestamp) -> Result<&'a ServerEntry, BackendError> {
        let shown = if self.cluster.is_empty() { self.url.clone() } else { format!("{}@{}", self.url, self.cluster) };
        let entry = config.servers.get(&key(&self.url, &self.cluster));
        let entry = entry.ok_or_else(|| BackendError::NotLoggedIn(shown.clone()))?;
        if entry.is_valid(now) { Ok(entry) } else { Err(BackendError::Expired(shown)) }
    }
}

/// A provider's backend.
pub struct Backend {
    web: Web,
    place: Place,
    token: Option<String>,
}

impl Backend {
    /// A backend, asked without a login, or with one.
    pub fn new(place: Place, token: Option<&str>, flags: &options::Backend) -> Result<Self, BackendError> {
        let trust = WebTrust { ca_file: flags.certificate_authority.clone(), insecure: flags.insecure_skip_tls_verify };
        Ok(Self { web: Web::new(&trust)?, place, token: token.map(str::to_owned) })
    }

    /// Where to log in.
    pub async fn login_url(&self) -> Result<String, BackendError> {
        let provider = self.send("exports", None).await?;
        let foreign = || BackendError::Foreign(self.place.url.clone());
        if provider["kind"] != "BindingProvider" {
            return Err(foreign());
        }
        // One that does not say its version, or not in these words, may be newer than this program.
        let said = provider["version"].as_str().unwrap_or_default();
        if let Some(old) = version::of_program(said).ok().filter(|it| version::is_too_old(it)) {
            return Err(BackendError::TooOld { url: self.place.url.clone(), version: shown(old) });
        }
        let methods = provider["authenticationMethods"].as_array().map(Vec::as_slice).unwrap_or_default();
        let method = methods.iter().find(|method| method["method"] == "OAuth2CodeGrant").ok_or_else(foreign)?;
        let url = method["oauth2CodeGrant"]["authenticatedURL"].as_str().unwrap_or_default();
        // It is opened by a browser: nothing but a web page may come of it.
        let parsed = Url::parse(url.as_bytes()).map_err(|_| foreign())?;
        if !matches!(&parsed.scheme[..], b"http" | b"https") || url.bytes().any(|byte| !byte.is_ascii_graphic()) {
            return Err(foreign());
        }
        Ok(url.to_owned())
    }

    /// The items of a list: `templates` or `collections`.
    pub async fn list(&self, what: &str) -> Result<Vec<Value>, BackendError> {
        let mut list = self.send(what, None).await?;
        match list["items"].take() {
            Value::Array(items) => Ok(items),
            Value::Null if list.is_object() => Ok(Vec::new()),
            _ => Err(BackendError::Foreign(self.place.url.clone())),
        }
    }

    /// Orders a template for this cluster; returns the answer's text.
    pub async fn bind(&self, name: &str, template: &str, identity: &str) -> Result<String, BackendError> {
        let order = json!({"metadata": {"name": name}, "spec": {"templateRef": {"name": template},
            "clusterIdentity": {"identity": identity}}});
        Ok(self.send("bind", Some(&order)).await?.to_string())
    }

    /// What a code stands for that a browser has brought.
    pub async fn exchange(&self, code: &str, verifier: &str) -> Result<Value, BackendError> {
        self.send("exchange", Some(&json!({"code": code, "code_verifier": verifier}))).await
    }

    async fn send(&self, endpoint: &str, body: Option<&Value>) -> Result<Value, BackendError> {
        let mut url = format!("{}/api/{endpoint}", self.place.url);
        if !self.place.cluster.is_empty() {
            let query =
                form_urlencoded::Serializer::new(String::new()).append_pair("cluster_id", &self.place.cluster).finish();
            url = format!("{url}?{query}");
        }
        let mut request = if body.is_some() { Request::post(url) } else { Request::get(url) };
        request = request.header(header::USER_AGENT, USER_AGENT).header(header::ACCEPT, "application/json");
        if let Some(token) = &self.token {
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        let content = match body {
            Some(body) => {
                request = request.header(header::CONTENT_TYPE, "application/json");
                Bytes::from(body.to_string())
            }
            None => Bytes::new(),
        };
        let request = request.body(content).map_err(|_| BackendError::Url(self.place.url.clone()))?;
        let answer = self.web.send(request).await?;
        let content: Option<Value> = serde_json::from_slice(answer.body()).ok();
        if answer.status() != StatusCode::OK {
            let field = |name: &str| content.as_ref().and_then(|content| content[name].as_str()).map(shown);
            let code = field("code").unwrap_or_else(|| answer.status().to_string());
            let message = field("message").unwrap_or_else(|| "it does not say why".to_owned());
            return Err(BackendError::Refused { message, code });
        }
        content.ok_or_else(|| BackendError::Foreign(self.place.url.clone()))
    }
}

/// A text of a server for a place within a line: nothing in it ends the line, moves the cursor or hides anything.
pub fn shown(text: &str) -> String {
    carrick_process::printable::one_line(text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_in_every_form_and_nothing_else_is_one() {
        let place = |url: &str, cluster: &str| Place { url: url.to_owned(), cluster: cluster.to_owned() };
        let parse = |text: &str| Place::parse(text, None);
        assert_eq!(parse("https://a.io/").unwrap(), place("https://a.io", ""));
        assert_eq!(parse("https://a.io:1/base/api/exports").unwrap(), place("https://a.io:1/base", ""));
        assert_eq!(parse("https://a.io@root:org").unwrap(), place("https://a.io", "root:org"));
        assert_eq!(Place::parse("https://a.io@b", Some("c")).unwrap(), place("https://a.io", "c"));
        for bad in ["", "a.io", "ftp://a.io", "https://", "https://a.io?x=y", "file:///etc/passwd"] {
            assert!(matches!(parse(bad), Err(BackendError::Url(_))), "{bad}");
        }
        let is_private = |text: &str| parse(text).unwrap().is_private();
        assert!(is_private("https://a.io") && is_private("http://127.0.0.1:1") && is_private("http://[::1]:1"));
        assert!(!is_private("http://a.io") && !is_private("http://localhost.a.io"));
        assert_eq!(shown("a\u{1b}[2Jb\n"), "a\\u{1b}[2Jb\\n");
    }
}
