//! A plain HTTP GET, as a consumer would do it.

use anyhow::Context;
use bytes::Bytes;
use http::Request;
use http::header::{ACCEPT, AUTHORIZATION, USER_AGENT};
use http_body_util::{BodyExt, Empty};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;

use super::endpoint::{self, Credentials};

/// The status and the JSON of a response; `null` if it has none.
pub async fn get(url: &str, login: Option<&Credentials>) -> anyhow::Result<(u16, Value)> {
    let mut request = Request::get(url)
        .header(USER_AGENT, concat!("carrick/", env!("CARGO_PKG_VERSION")))
        .header(ACCEPT, "application/json");
    if let Some(credentials) = login {
        request = request.header(AUTHORIZATION, endpoint::basic(credentials));
    }
    let request = request.body(Empty::<Bytes>::new()).with_context(|| format!("{url} is not a URL"))?;
    // A new connection each time: a stopped endpoint must not look alive.
    let client = Client::builder(TokioExecutor::new()).build_http();
    let answer = client.request(request).await.with_context(|| format!("GET {url}: no answer"))?;
    let status = answer.status().as_u16();
    let body = answer.into_body().collect().await.with_context(|| format!("GET {url}: the response was cut off"))?;
    Ok((status, serde_json::from_slice(&body.to_bytes()).unwrap_or_default()))
}
