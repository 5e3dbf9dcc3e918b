//! A server that is asked: plain HTTP, nothing repaired, nothing retried.

use std::time::Duration;

use anyhow::{Context, ensure};
use carrick_e2e_stage::connect::connect;
use futures::StreamExt;
use http::header;
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::{Value, json};

use super::encoding;

/// How long anything may take.
const PATIENCE: Duration = Duration::from_mins(5);

/// One API server, or one workspace.
#[derive(Clone)]
pub struct Peer {
    /// Which it is, for reports.
    pub name: &'static str,
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    server: String,
    base: String,
    token: String,
    /// Name of the logical cluster, in kcp.
    pub cluster: String,
}

/// What came back.
pub struct Answer {
    /// HTTP status.
    pub code: u16,
    /// `Content-Type`.
    pub content: String,
    /// All `Warning` headers.
    pub warnings: Vec<String>,
    /// The body.
    pub body: Bytes,
}

/// The token of a kubeconfig in JSON.
pub fn token(kubeconfig: &str) -> anyhow::Result<String> {
    let config: Value = serde_json::from_str(kubeconfig)?;
    Ok(config["users"][0]["user"]["token"].as_str().context("no token")?.to_owned())
}

impl Peer {
    /// The server of a kubeconfig in JSON.
    pub fn new(name: &'static str, kubeconfig: &str) -> anyhow::Result<Self> {
        let config: Value = serde_json::from_str(kubeconfig)?;
        let url = config["clusters"][0]["cluster"]["server"].as_str().context("no server")?;
        let token = token(kubeconfig)?;
        let (server, base) = match url.split_once("/clusters/") {
            Some((server, path)) => (server, format!("/clusters/{path}")),
            None => (url, String::new()),
        };
        let client = connect(kubeconfig)?;
        Ok(Self { name, client, server: server.to_owned(), base, token, cluster: String::new() })
    }

    /// The same server at its root, asked by the same user, by the one with a token, or, with an empty token, by nobody in particular.
    pub fn user(&self, token: Option<&str>) -> Self {
        let token = token.unwrap_or(&self.token).to_owned();
        let (client, server, cluster) = (self.client.clone(), self.server.clone(), self.cluster.clone());
        Self { name: self.name, client, server, base: String::new(), token, cluster }
    }

    /// The path of the workspace that is asked.
    pub fn path(&self) -> &str {
        self.base.trim_start_matches("/clusters/")
    }

    /// The address, which answers may tell.
    pub fn address(&self) -> &str {
        &self.server
    }

    async fn open(
        &self,
        method: &str,
        path: &str,
        [media, accept]: [&str; 2],
        headers: &[(&str, String)],
        body: Bytes,
    ) -> anyhow::Result<http::Response<hyper::body::Incoming>> {
        let mut request = http::Request::builder()
            .method(method)
            .uri(format!("{}{}{path}", self.server, self.base))
            .header(header::USER_AGENT, "differential/1")
            .header(header::ACCEPT, accept)
            .header(header::CONTENT_TYPE, media);
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        let known = !self.token.is_empty();
        let request =
            if known { request.header(header::AUTHORIZATION, format!("Bearer {}", self.token)) } else { request };
        let request = request.body(Full::new(body))?;
        let asked = self.client.request(request);
        Ok(tokio::time::timeout(PATIENCE, asked).await.with_context(|| format!("{method} {path}"))??)
    }

    /// Asks and waits for the whole answer.
    pub async fn ask(&self, method: &str, path: &str, types: [&str; 2], body: Bytes) -> anyhow::Result<Answer> {
        let (media, body) = encoding::body(types[0], body);
        Self::whole(self.open(method, path, [media, types[1]], &[], body).await?).await
    }

    /// The same in JSON with further headers.
    pub async fn ask_as(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, String)],
        body: Bytes,
    ) -> anyhow::Result<Answer> {
        Self::whole(self.open(method, path, ["application/json"; 2], headers, body).await?).await
    }

    async fn whole(answer: http::Response<hyper::body::Incoming>) -> anyhow::Result<Answer> {
        let (head, body) = answer.into_parts();
        let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let content = head.headers.get(header::CONTENT_TYPE).map(text).unwrap_or_default();
        let warnings = head.headers.get_all(header::WARNING).iter().map(text).collect();
        let body = tokio::time::timeout(PATIENCE, body.collect()).await??.to_bytes();
        let body = encoding::answer(&content, body);
        Ok(Answer { code: head.status.as_u16(), content, warnings, body })
    }

    /// Asks for something that must succeed.
    pub async fn must(&self, method: &str, path: &str, body: &Value) -> anyhow::Result<Value> {
        let json = ["application/json"; 2];
        let body = if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) };
        let answer = self.ask(method, path, json, body).await?;
        let told = String::from_utf8_lossy(&answer.body);
        ensure!(answer.code < 300, "{}: {method} {path}: {} {told}", self.name, answer.code);
        Ok(serde_json::from_slice(&answer.body)?)
    }

    /// The events of a watch up to the one about an object of a name, which is left out.
    pub async fn watch(&self, path: &str, last: &str) -> anyhow::Result<Vec<Value>> {
        self.watch_until(path, |event| event["object"]["metadata"]["name"] == last).await
    }

    /// The events of a watch up to the bookmark behind the objects that there are, or the refusal.
    pub async fn initial(&self, path: &str) -> anyhow::Result<Vec<Value>> {
        let end = "k8s.io/initial-events-end";
        self.watch_until(path, |event| event["object"]["metadata"]["annotations"][end] == "true").await
    }

    async fn watch_until(&self, path: &str, is_last: impl Fn(&Value) -> bool) -> anyhow::Result<Vec<Value>> {
        let answer = self.open("GET", path, ["application/json"; 2], &[], Bytes::new()).await?;
        let mut body = answer.into_body().into_data_stream();
        let (mut text, mut events) = (Vec::new(), Vec::new());
        let read = async {
            while let Some(part) = body.next().await {
                text.extend_from_slice(&part?);
                while let Some(end) = text.iter().position(|byte| *byte == b'\n') {
                    let line: Vec<u8> = text.drain(..=end).collect();
                    // A refusal may be plain text.
                    let event = serde_json::from_slice(&line)
                        .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&line).into_owned()));
                    if is_last(&event) {
                        return Ok(());
                    }
                    events.push(event);
                }
            }
            if !text.is_empty() {
                events.push(Value::String(String::from_utf8_lossy(&text).into_owned()));
            }
            Ok(())
        };
        match tokio::time::timeout(Duration::from_secs(10), read).await {
            Ok(done) => done.map_err(|error: anyhow::Error| error.context(path.to_owned()))?,
            Err(_) => events.push("no further event for 10 s".into()),
        }
        Ok(events)
    }

    /// Makes a workspace below this one and goes there.
    pub async fn enter_workspace(&mut self, name: &str) -> anyhow::Result<()> {
        self.cluster = self.new_workspace(name).await?;
        self.base = format!("{}:{name}", self.base);
        Ok(())
    }

    /// Makes a workspace below this one; tells its logical cluster.
    pub async fn new_workspace(&self, name: &str) -> anyhow::Result<String> {
        let api = "/apis/tenancy.kcp.io/v1alpha1/workspaces";
        let workspace = json!({
            "apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "metadata": { "name": name }, "spec": {},
        });
        self.must("POST", api, &workspace).await?;
        let path = format!("{api}/{name}");
        let workspace =
            self.until(&path, "the workspace is ready", |workspace| workspace["status"]["phase"] == "Ready").await?;
        let cluster = workspace["spec"]["cluster"].as_str().context("the workspace has no cluster")?;
        Ok(cluster.to_owned())
    }

    /// Waits until an object is as wanted.
    pub async fn until(&self, path: &str, what: &str, is: impl Fn(&Value) -> bool) -> anyhow::Result<Value> {
        let look = async {
            loop {
                match self.must("GET", path, &Value::Null).await {
                    Ok(object) if is(&object) => return object,
                    _ => tokio::time::sleep(Duration::from_millis(50)).await,
                }
            }
        };
        tokio::time::timeout(PATIENCE, look).await.with_context(|| format!("{}: not yet: {what}", self.name))
    }
}
