//! A request, read as far as everybody needs it.

use std::fmt::Write as _;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_LENGTH, COOKIE, HOST};
use http::{HeaderMap, Method, Request};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;

use super::answer::Fault;

/// The largest body.
pub(super) const LARGEST_BODY: usize = 1 << 20;

/// Names and values of a query or a form.
#[derive(Clone, Debug, Default)]
pub(super) struct Values(Vec<(String, String)>);

impl Values {
    /// Reads a query or a form.
    pub(super) fn parse(text: &[u8]) -> Self {
        Self(form_urlencoded::parse(text).map(|(name, value)| (name.into_owned(), value.into_owned())).collect())
    }

    /// A value; empty if there is none.
    pub(super) fn get(&self, name: &str) -> &str {
        self.0.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str()).unwrap_or_default()
    }
}

/// A request.
pub(super) struct Asked {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) query: Values,
    pub(super) raw_query: String,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    /// Scheme and host by which the client knows this server.
    pub(super) origin: String,
}

impl Asked {
    /// Reads a request; bodies only of those that may have one.
    pub(super) async fn read(request: Request<Incoming>, is_tls: bool) -> Result<Self, Fault> {
        let (parts, body) = request.into_parts();
        let origin = origin(&parts.headers, is_tls);
        let body = if parts.method == Method::POST { read_body(&parts.headers, body).await? } else { Bytes::new() };
        let raw_query = parts.uri.query().unwrap_or_default().to_owned();
        Ok(Self {
            method: parts.method,
            path: parts.uri.path().to_owned(),
            query: Values::parse(raw_query.as_bytes()),
            raw_query,
            headers: parts.headers,
            body,
            origin,
        })
    }

    /// Whether the client speaks TLS, to this server or to a proxy before it.
    pub(super) fn is_secure(&self) -> bool {
        self.origin.starts_with("https://")
    }

    /// The bearer token, if there is one.
    pub(super) fn bearer(&self) -> Option<&str> {
        let value = self.header(AUTHORIZATION)?;
        let (scheme, token) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
    }

    /// The text of a header.
    pub(super) fn header(&self, name: impl http::header::AsHeaderName) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// A cookie.
    pub(super) fn cookie(&self, name: &str) -> Option<&str> {
        let all = self.headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut pairs = all.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
        pairs.find(|(other, _)| *other == name).map(|(_, value)| value)
    }

    /// The cluster that the request is about; empty if there is only one.
    pub(super) fn cluster(&self) -> Result<&str, Fault> {
        let cluster = self.query.get("cluster_id");
        if is_cluster(cluster) { Ok(cluster) } else { Err(Fault::bad("cluster_id is not the name of a cluster")) }
    }

    /// Whether a person with a browser asks.
    pub(super) fn wants_page(&self) -> bool {
        self.header(ACCEPT).is_some_and(|kinds| kinds.contains("text/html"))
    }

    /// Whether a page of another server has made the browser send this.
    pub(super) fn is_cross_site(&self) -> bool {
        match self.header("sec-fetch-site") {
            // No page can choose this header, so it counts more than the origin, which browsers hide from time to time.
            Some(site) => !matches!(site, "same-origin" | "none"),
            None => self.header(http::header::ORIGIN).is_some_and(|origin| origin != self.origin),
        }
    }
}

async fn read_body(headers: &HeaderMap, body: Incoming) -> Result<Bytes, Fault> {
    let announced = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    if announced.is_some_and(|length| length > LARGEST_BODY) {
        return Err(Fault::TooLarge);
    }
    match Limited::new(body, LARGEST_BODY).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<http_body_util::LengthLimitError>() => Err(Fault::TooLarge),
        Err(_) => Err(Fault::bad("the body broke off")),
    }
}

fn origin(headers: &HeaderMap, is_tls: bool) -> String {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let forwarded = text("x-forwarded-proto").and_then(|list| list.split(',').next()).map(str::trim);
    let is_secure = is_tls || forwarded.is_some_and(|scheme| scheme.eq_ignore_ascii_case("https"));
    let host = text(HOST.as_str()).unwrap_or_default();
    let plain = |c: char| c.is_ascii_alphanumeric() || ".-_:[]".contains(c);
    let host = if !host.is_empty() && host.chars().all(plain) { host } else { "localhost" };
    let mut origin = String::from(if is_secure { "https://" } else { "http://" });
    // Writing to a String cannot fail.
    let _ = write!(origin, "{}", host.to_ascii_lowercase());
    origin
}

/// Whether a text can be the name of a cluster: a logical cluster or a path of kcp, or nothing.
pub(super) fn is_cluster(text: &str) -> bool {
    text.len() <= 253 && text.chars().all(|c| c.is_ascii_alphanumeric() || ":._-".contains(c))
}
