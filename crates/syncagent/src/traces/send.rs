//! Sending finished spans, many at a time.

use std::time::Duration;

use carrick_client::Server;
use http::{HeaderName, HeaderValue, Uri};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::span::Span;
use super::{Config, TracesError};

/// Spans that wait to be sent.
pub type Unsent = mpsc::Receiver<Span>;

/// How many spans go together.
const BATCH: usize = 512;
/// How long the first of them waits for others.
const PAUSE: Duration = Duration::from_secs(2);
/// How long the last batch may take when the agent ends.
const FAREWELL: Duration = Duration::from_secs(3);

/// Sends spans until told to stop, and what is left then.
pub async fn send_all(config: Config, mut unsent: Unsent, stop: CancellationToken) -> Result<(), TracesError> {
    let wrong = |problem: String| TracesError::Endpoint { variable: "the endpoint for traces", problem };
    let uri: Uri = config.url.parse().map_err(|error: http::uri::InvalidUri| wrong(error.to_string()))?;
    let path = uri.path().to_owned();
    let mut base = kube::Config::new(uri.clone());
    base.cluster_url = {
        let mut parts = uri.into_parts();
        parts.path_and_query = Some(http::uri::PathAndQuery::from_static("/"));
        Uri::from_parts(parts).map_err(|error| wrong(error.to_string()))?
    };
    for (key, value) in &config.headers {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(key), HeaderValue::try_from(value)) {
            base.headers.push((name, value));
        } else {
            tracing::warn!(header = key, "A header for traces cannot be sent, leaving it out.");
        }
    }
    let server = Server::from_config(base).map_err(|error| wrong(error.to_string()))?;
    let client = server.client();
    let resource = resource(&config);
    let mut failing = false;
    loop {
        let mut batch = Vec::new();
        let ended = tokio::select! {
            () = stop.cancelled() => true,
            count = unsent.recv_many(&mut batch, BATCH) => count == 0,
        };
        if !ended && batch.len() < BATCH {
            tokio::select! {
                () = stop.cancelled() => {}
                () = tokio::time::sleep(PAUSE) => {}
            }
        }
        while batch.len() < BATCH
            && let Ok(span) = unsent.try_recv()
        {
            batch.push(span);
        }
        if !batch.is_empty() {
            let message = message(&resource, &batch);
            let sending = client.raw_post(&path, &message);
            let sent =
                if ended { tokio::time::timeout(FAREWELL, sending).await.unwrap_or(Ok(())) } else { sending.await };
            match sent {
                Ok(()) => failing = false,
                Err(error) if !failing => {
                    failing = true;
                    tracing::warn!(%error, "Traces cannot be sent, dropping them until this works…");
                }
                Err(_) => {}
            }
        }
        if ended {
            return Ok(());
        }
    }
}

fn resource(config: &Config) -> Value {
    let named = [("service.name", config.service.as_str()), ("service.version", crate::VERSION)];
    let more = config.resource.iter().map(|(key, value)| (key.as_str(), value.as_str()));
    let attributes: Vec<Value> = named
        .into_iter()
        .chain(more)
        .map(|(key, value)| json!({ "key": key, "value": { "stringValue": value } }))
        .collect();
    json!({ "attributes": attributes })
}

fn message(resource: &Value, spans: &[Span]) -> Value {
    let spans: Vec<Value> = spans.iter().map(Span::json).collect();
    let scope = json!({ "name": env!("CARGO_PKG_NAME"), "version": crate::VERSION });
    json!({ "resourceSpans": [{ "resource": resource, "scopeSpans": [{ "scope": scope, "spans": spans }] }] })
}
