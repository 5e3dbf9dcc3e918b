//! Servers that are not API servers: issuers of tokens, backends of kube-bind. One request, one answer, nothing remembered between them.

use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};

use crate::connect::{self, ConnectError};
use crate::error::{Error, chain};
use crate::route::Dial;
use crate::transport;

/// The largest answer that is read.
const LARGEST: usize = 16 << 20;
/// How long a request may take, its answer included. A backend may wait a minute before it answers.
const LONGEST: Duration = Duration::from_secs(90);
/// How long it may take until a server accepts a connection.
const DIAL_TIMEOUT: Duration = Duration::from_secs(10);

/// Whose certificates are trusted.
#[derive(Clone, Debug, Default)]
pub struct WebTrust {
    /// File with certificate authorities; the system's are trusted without one.
    pub ca_file: Option<PathBuf>,
    /// Trust anybody.
    pub insecure: bool,
}

/// Sends requests to servers that are not API servers. It follows no redirect and sends no credentials but those in the request.
#[derive(Clone)]
pub struct Web {
    client: legacy::Client<hyper_rustls::HttpsConnector<Dial>, Full<Bytes>>,
}

impl Web {
    /// Prepares requests; nothing is connected yet. Proxies are those of the environment.
    pub fn new(trust: &WebTrust) -> Result<Self, ConnectError> {
        // With two providers compiled in, rustls refuses to choose; the first to install one wins, which is fine.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut config = kube::Config::new(http::Uri::from_static("https://localhost"));
        config.root_cert = trust.ca_file.as_deref().map(connect::read_ca).transpose()?;
        config.accept_invalid_certs = trust.insecure;
        let unusable = |source| ConnectError::Credentials {
            origin: "the trusted certificate authorities".to_owned(),
            source: Box::new(source),
        };
        let tls = transport::tls_config(&config).map_err(unusable)?;
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(DIAL_TIMEOUT));
        let dial = Dial::new(tcp, connect::route(None, "")?);
        let connector = hyper_rustls::HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http();
        let connector = connector.enable_http1().wrap_connector(dial);
        let client = legacy::Builder::new(TokioExecutor::new()).pool_timer(TokioTimer::new()).build(connector);
        Ok(Self { client })
    }

    /// Sends a request and reads its answer, whatever its status. An error names the URL without its query, which may hold secrets.
    pub async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, Error> {
        let shown = show(&request);
        let failed = |problem: String| Error::Transport { request: shown.clone(), problem };
        let exchange = async {
            let answer = self.client.request(request.map(Full::new)).await.map_err(|error| failed(chain(&error)))?;
            let (parts, body) = answer.into_parts();
            let body = Limited::new(body, LARGEST).collect().await.map_err(|error| failed(chain(&*error)))?;
            Ok(Response::from_parts(parts, body.to_bytes()))
        };
        let late = || failed(format!("no answer within {} s", LONGEST.as_secs()));
        tokio::time::timeout(LONGEST, exchange).await.unwrap_or_else(|_| Err(late()))
    }
}

impl std::fmt::Debug for Web {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Web").finish_non_exhaustive()
    }
}

fn show(request: &Request<Bytes>) -> String {
    let url = request.uri();
    let authority = url.authority().map(http::uri::Authority::as_str).unwrap_or_default();
    // What stands before an @ is a password.
    let host = authority.rsplit('@').next().unwrap_or_default();
    format!("{} {}://{host}{}", request.method(), url.scheme_str().unwrap_or("http"), url.path())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_error_names_the_url_without_its_secrets() {
        let web = Web::new(&WebTrust::default()).unwrap();
        let request = Request::get("http://me:pw@127.0.0.1:1/a?token=t").body(Bytes::new()).unwrap();
        let error = web.send(request).await.unwrap_err().to_string();
        assert!(error.starts_with("GET http://127.0.0.1:1/a: "), "{error}");
        assert!(!error.contains("token=t") && !error.contains("pw"), "{error}");
    }

    #[test]
    fn a_file_without_certificates_is_refused() {
        let file = std::env::temp_dir().join(format!("carrick-web-{}", std::process::id()));
        std::fs::write(&file, "nothing").unwrap();
        let trust = WebTrust { ca_file: Some(file.clone()), insecure: false };
        let error = Web::new(&trust).unwrap_err().to_string();
        std::fs::remove_file(&file).unwrap();
        assert!(error.contains("must hold PEM certificates"), "{error}");
    }
}
