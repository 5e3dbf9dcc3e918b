//! The page on this machine that the browser comes back to.

use std::time::Duration;

use carrick_process::{Page, serve};
use data_encoding::{BASE32_NOPAD, BASE64URL_NOPAD};
use http::StatusCode;
use serde_json::Value;
use sha2::{Digest, Sha256};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::backend::{Backend, BackendError, shown};

/// Why nobody came back.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallbackError {
    /// No port is free, or there is no randomness.
    #[error("cannot listen for the browser on 127.0.0.1: {0}")]
    Listen(String),
    /// It took too long.
    #[error("the browser did not come back within {0} s; try again, with a longer --timeout if need be")]
    Late(u64),
    /// The backend has sent it back with an error.
    #[error("the backend refuses: {0}")]
    Refused(String),
}

/// Names and values that the browser brings.
pub type Brought = Vec<(String, String)>;

/// A value that the browser has brought.
pub fn value<'a>(brought: &'a Brought, name: &str) -> Option<&'a str> {
    brought.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
}

/// Waits for the browser.
pub struct Callback {
    /// Where the browser has to go.
    pub url: String,
    /// The session's name, which only those know who were told by us.
    pub session: String,
    /// What goes with a request so that the browser brings a code, and not what nobody else may read. Backends of kube-bind do not know it.
    pub challenge: String,
    verifier: String,
    receiver: mpsc::Receiver<Brought>,
    _stop: DropGuard,
}

impl Callback {
    /// Listens on a free port. Of all visitors one is heard: the one that knows the secret in the URL.
    pub async fn listen() -> Result<Self, CallbackError> {
        let failed = |problem: &dyn std::fmt::Display| CallbackError::Listen(problem.to_string());
        let (session, nonce) = (random().map_err(|error| failed(&error))?, random().map_err(|error| failed(&error))?);
        let verifier =
            format!("{}{}", random().map_err(|error| failed(&error))?, random().map_err(|error| failed(&error))?);
        let challenge = BASE64URL_NOPAD.encode(&Sha256::digest(verifier.as_bytes()));
        let listener = TcpListener::bind("127.0.0.1:0").await.map_err(|error| failed(&error))?;
        let port = listener.local_addr().map_err(|error| failed(&error))?.port();
        let url = format!("http://127.0.0.1:{port}/callback?nonce={nonce}");
        let (sender, receiver) = mpsc::channel(1);
        let answer = move |target: &str| {
            let (path, query) = target.split_once('?').unwrap_or((target, ""));
            if path != "/callback" {
                return Page::missing(path);
            }
            let pairs = form_urlencoded::parse(query.as_bytes());
            let brought: Brought = pairs.map(|(name, value)| (name.into_owned(), value.into_owned())).collect();
            if value(&brought, "nonce") != Some(&nonce) {
                return Page::text(StatusCode::UNAUTHORIZED, "This is not what kubectl is waiting for.\n");
            }
            // The first one counts; whoever reloads the page is told the same.
            let _ = sender.try_send(brought);
            Page::text(StatusCode::OK, "Done: kubectl goes on. You can close this page.\n")
        };
        let stop = CancellationToken::new();
        tokio::spawn(serve(listener, answer, stop.clone()));
        Ok(Self { url, session, challenge, verifier, receiver, _stop: stop.drop_guard() })
    }

    /// What the code stands for that the browser has brought; none if it has brought everything itself.
    pub async fn exchange(&self, backend: &Backend, brought: &Brought) -> Result<Option<Value>, BackendError> {
        match value(brought, "code") {
            Some(code) => backend.exchange(code, &self.verifier).await.map(Some),
            None => Ok(None),
        }
    }

    /// What the browser brings.
    pub async fn wait(&mut self, longest: Duration) -> Result<Brought, CallbackError> {
        let brought = tokio::time::timeout(longest, self.receiver.recv()).await;
        let brought = brought.ok().flatten().ok_or(CallbackError::Late(longest.as_secs()))?;
        match value(&brought, "error") {
            Some(error) => Err(CallbackError::Refused(shown(error))),
            None => Ok(brought),
        }
    }
}

fn random() -> Result<String, getrandom::Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)?;
    Ok(BASE32_NOPAD.encode(&bytes).to_lowercase())
}

/// A URL with more values in its query.
pub fn with(url: &str, values: &[(&str, &str)]) -> String {
    let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(values).finish();
    let joint = if url.contains('?') { '&' } else { '?' };
    format!("{url}{joint}{query}")
}

/// Opens a browser, or says where to go. People read it, so it goes where results do not.
pub fn open(url: &str, skip_browser: bool) {
    if skip_browser || !start_browser(url) {
        eprintln!("Open this address in a browser:\n\n  {url}\n");
    } else {
        eprintln!("A browser is opened. If it is not, open this address yourself:\n\n  {url}\n");
    }
}

fn start_browser(url: &str) -> bool {
    use std::process::{Command, Stdio};
    let mut command = if cfg!(target_os = "macos") {
        Command::new("open")
    } else if cfg!(windows) {
        let mut command = Command::new("rundll32");
        command.arg("url.dll,FileProtocolHandler");
        command
    } else {
        Command::new("xdg-open")
    };
    command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().is_ok()
}
