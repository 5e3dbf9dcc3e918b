//! A collector of traces: takes what agents send and keeps it.

use std::convert::Infallible;
use std::sync::Arc;

use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// A running collector; ends when dropped.
pub struct Collector {
    url: String,
    spans: Arc<Mutex<Vec<Value>>>,
    task: JoinHandle<()>,
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Collector {
    /// Starts one on a free loopback port.
    pub async fn start() -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?);
        let spans = Arc::new(Mutex::new(Vec::new()));
        let kept = spans.clone();
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let kept = kept.clone();
                tokio::spawn(async move {
                    let service = service_fn(move |request| keep(kept.clone(), request));
                    // Agents may break connections off when they like.
                    let _ =
                        auto::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        Ok(Self { url, spans, task })
    }

    /// Where agents send traces to.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// All spans so far.
    pub fn spans(&self) -> Vec<Value> {
        self.spans.lock().clone()
    }
}

async fn keep(kept: Arc<Mutex<Vec<Value>>>, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let body = request.into_body().collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    let list = |value: &Value, key: &str| value[key].as_array().cloned().unwrap_or_default();
    for resource in list(&message, "resourceSpans") {
        for scope in list(&resource, "scopeSpans") {
            kept.lock().extend(list(&scope, "spans"));
        }
    }
    Ok(Response::new(Full::from("{}")))
}
