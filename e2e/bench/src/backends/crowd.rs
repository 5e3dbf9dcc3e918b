//! People who log in and bind, all at the same moment.

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use carrick_client::{Web, WebTrust};
use futures::future::try_join_all;
use http::{Request, StatusCode, header};
use hyper::body::Bytes;
use serde_json::{Value, json};

/// Where the command line of each of them would listen; nobody goes there.
const CALLBACK: &str = "http://127.0.0.1:1/callback";
/// A login goes from the backend to its issuer and back.
const MOST_REDIRECTS: usize = 8;

/// Lets so many people log in and bind at once; how long each login and each order took.
pub async fn all_at_once(
    url: &str,
    people: usize,
    patience: Duration,
) -> anyhow::Result<(Vec<Duration>, Vec<Duration>)> {
    let everybody = try_join_all((0..people).map(|number| one(url, number)));
    let times = tokio::time::timeout(patience, everybody).await.context("not all have been served")??;
    Ok(times.into_iter().unzip())
}

async fn one(url: &str, number: usize) -> anyhow::Result<(Duration, Duration)> {
    // Each has a connection of its own, as people have.
    let web = Web::new(&WebTrust::default())?;
    let started = Instant::now();
    let token = login(&web, url, number).await.with_context(|| format!("login {number}"))?;
    let login = started.elapsed();
    let started = Instant::now();
    let order = json!({"metadata": {"name": format!("bound-{number}")}, "spec": {"templateRef": {"name": "bench"},
        "clusterIdentity": {"identity": format!("person-{number}")}}});
    let request = Request::post(format!("{url}/api/bind"))
        .header(header::AUTHORIZATION, format!("Bearer {token}"))
        .header(header::CONTENT_TYPE, "application/json")
        .body(Bytes::from(order.to_string()))?;
    let answer = web.send(request).await?;
    let body: Value = serde_json::from_slice(answer.body()).unwrap_or_default();
    ensure!(answer.status() == StatusCode::OK, "order {number}: {} {}", answer.status(), body["message"]);
    ensure!(body["kubeconfig"].is_string(), "order {number}: the answer has no kubeconfig");
    Ok((login, started.elapsed()))
}

/// Follows redirects until the token comes.
async fn login(web: &Web, url: &str, number: usize) -> anyhow::Result<String> {
    let mut at = format!("{url}/api/authorize?redirect_url={CALLBACK}&session_id=session-{number}&client_type=cli");
    for _ in 0..MOST_REDIRECTS {
        let answer = web.send(Request::get(&at).body(Bytes::new())?).await?;
        let next = answer.headers().get(header::LOCATION).and_then(|next| next.to_str().ok());
        let next = next.with_context(|| format!("{} instead of a redirect", answer.status()))?;
        if let Some(query) = next.strip_prefix(CALLBACK) {
            let mut parts = query.trim_start_matches('?').split('&');
            let token = parts.find_map(|part| part.strip_prefix("access_token="));
            return token.map(str::to_owned).context("the login brings no token");
        }
        next.clone_into(&mut at);
    }
    anyhow::bail!("the login goes round in circles")
}
