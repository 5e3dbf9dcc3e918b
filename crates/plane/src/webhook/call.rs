//! One call: connect, send, read. Errors are worded as Go's HTTP client words them, because users see them.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use carrick_go::json::{MAX_DEPTH, fault};
use http::{Request, StatusCode, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use rustls::{CertificateError, Error as TlsError};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::address::HookAddress;
use super::trust;

/// The largest answer that is read.
const LARGEST: usize = 16 * 1024 * 1024;

/// Posts a document and reads the JSON that comes back.
pub(super) async fn post(address: &HookAddress, url: &str, document: &Value) -> Result<Value, String> {
    let failed = |why: String| format!("Post {url:?}: {why}");
    let config = trust::config(&address.authorities)?;
    let (host, port) = address.endpoint.clone().unwrap_or_else(|| (address.host.clone(), address.port));
    let stream = TcpStream::connect((host.as_str(), port)).await;
    let stream = stream.map_err(|error| failed(unreachable(&host, port, &error)))?;
    let name = ServerName::try_from(address.host.clone()).map_err(|error| failed(error.to_string()))?;
    let secured = TlsConnector::from(Arc::new(config)).connect(name, stream).await;
    let stream = secured.map_err(|error| failed(untrusted(&error, &address.host)))?;
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(|error| failed(error.to_string()))?;
    let driver = tokio::spawn(connection);
    let target = url.find("://").and_then(|at| url[at + 3..].find('/').map(|slash| &url[at + 3 + slash..]));
    let request = Request::post(target.unwrap_or("/"))
        .header(header::HOST, address.authority())
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::ACCEPT, "application/json, */*")
        .header(header::USER_AGENT, "kube-apiserver-admission")
        .body(Full::new(Bytes::from(document.to_string())))
        .map_err(|error| failed(error.to_string()))?;
    let ended = |_| failed("EOF".to_owned());
    let answer = sender.send_request(request).await.map_err(ended)?;
    let (parts, body) = answer.into_parts();
    let content = Limited::new(body, LARGEST).collect().await.map_err(|_| failed("unexpected EOF".to_owned()))?;
    let content = content.to_bytes();
    driver.abort();
    if !parts.status.is_success() {
        let kind = parts.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        return Err(refused(parts.status, kind, &content));
    }
    serde_json::from_slice(&content).map_err(|error| {
        // What does not look like JSON is taken for YAML, where nearly everything is a text.
        let why = match content.trim_ascii_start().first() {
            Some(b'{' | b'[') => fault(&content, MAX_DEPTH).unwrap_or_else(|| error.to_string()),
            _ => format!("json: cannot unmarshal string into Go value of type {TYPE_META}"),
        };
        format!("couldn't get version/kind; json parse error: {why}")
    })
}

/// What client-go reads first of an answer.
const TYPE_META: &str =
    "struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }";

fn unreachable(host: &str, port: u16, error: &io::Error) -> String {
    let place = if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
    match error.kind() {
        io::ErrorKind::ConnectionRefused => format!("dial tcp {place}: connect: connection refused"),
        io::ErrorKind::ConnectionReset => format!("read tcp {place}: connection reset by peer"),
        _ if error.raw_os_error().is_none() => format!("dial tcp: lookup {host}: no such host"),
        _ => format!("dial tcp {place}: connect: {}", plain(error)),
    }
}

/// The system's words without the number that Rust adds.
fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_lowercase()
}

fn untrusted(error: &io::Error, host: &str) -> String {
    let cause = error.get_ref().and_then(|cause| cause.downcast_ref::<TlsError>());
    let verify = |why: &str| format!("tls: failed to verify certificate: x509: {why}");
    match cause {
        Some(TlsError::InvalidCertificate(why)) => match why {
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                verify(&format!("certificate is not valid for {host}"))
            }
            CertificateError::Expired
            | CertificateError::ExpiredContext { .. }
            | CertificateError::NotValidYet
            | CertificateError::NotValidYetContext { .. } => verify("certificate has expired or is not yet valid"),
            _ => verify("certificate signed by unknown authority"),
        },
        Some(TlsError::InvalidMessage(_)) => "http: server gave HTTP response to HTTPS client".to_owned(),
        Some(TlsError::AlertReceived(alert)) => format!("remote error: tls: {alert:?}"),
        _ if error.kind() == io::ErrorKind::UnexpectedEof => "EOF".to_owned(),
        _ => plain(error),
    }
}

/// What client-go says about a response that is none of success.
fn refused(status: StatusCode, kind: Option<&str>, content: &[u8]) -> String {
    let is_text = kind.is_none_or(|kind| kind.starts_with("text/"));
    let said = if is_text { String::from_utf8_lossy(content).trim().to_owned() } else { "unknown".to_owned() };
    match status.as_u16() {
        400 => "the server rejected our request for an unknown reason".to_owned(),
        401 => "the server has asked for the client to provide credentials".to_owned(),
        403 => said,
        404 => "the server could not find the requested resource".to_owned(),
        405 => "the server does not allow this method on the requested resource".to_owned(),
        409 => "the server reported a conflict".to_owned(),
        422 => "the server rejected our request due to an error in our request".to_owned(),
        429 => "the server has received too many requests and has asked us to try again later".to_owned(),
        503 => "the server is currently unable to handle the request".to_owned(),
        504 => "the server was unable to return a response in the time allotted, but may still be processing the \
                request"
            .to_owned(),
        code if code >= 500 => {
            format!("an error on the server ({said:?}) has prevented the request from succeeding")
        }
        code => format!("the server responded with the status code {code} but did not return more information"),
    }
}
