//! A plain HTTP GET, as a consumer would do it.

use anyhow::Context;
use bytes::Bytes;
use http::Request;
use http::header::{ACCEPT, AUTHORIZATION, USER_AGENT};
use http_body_util::{BodyExt, Empty, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;

use super::endpoint::{self, Credentials};

/// What is larger is no answer to us.
const LARGEST: usize = 64 * 1024 * 1024;

/// The status and the JSON of a response; `null` if it has none.
pub async fn get(url: &str, login: Option<&Credentials>) -> anyhow::Result<(u16, Value)> {
    let (status, text) = text(url, login.map(endpoint::basic).as_deref()).await?;
    Ok((status, serde_json::from_str(&text).unwrap_or_default()))
}

/// The status and the text of a response.
pub async fn text(url: &str, authorization: Option<&str>) -> anyhow::Result<(u16, String)> {
    let mut request = Request::get(url)
        .header(USER_AGENT, concat!("carrick/", env!("CARGO_PKG_VERSION")))
        .header(ACCEPT, "application/json");
    if let Some(authorization) = authorization {
        request = request.header(AUTHORIZATION, authorization);
    }
    let request = request.body(Empty::<Bytes>::new()).with_context(|| format!("{url} is not a URL"))?;
    // A new connection each time: a stopped endpoint must not look alive.
    let client = Client::builder(TokioExecutor::new()).build_http();
    let answer = client.request(request).await.with_context(|| format!("GET {url}: no answer"))?;
    let status = answer.status().as_u16();
    let body = Limited::new(answer.into_body(), LARGEST).collect().await;
    let body = body.map_err(|error| anyhow::anyhow!("GET {url}: the response was cut off: {error}"))?;
    Ok((status, String::from_utf8_lossy(&body.to_bytes()).into_owned()))
}
