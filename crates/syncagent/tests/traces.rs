//! Spans arrive at a collector, as OTLP in JSON.

use carrick_syncagent::traces::{Config, layer, send_all};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tracing_subscriber::layer::SubscriberExt;

/// Takes one request and returns its head and its body.
async fn collect(listener: TcpListener) -> std::io::Result<(String, Value)> {
    let (mut stream, _) = listener.accept().await?;
    let mut request = Vec::new();
    loop {
        stream.read_buf(&mut request).await?;
        let text = String::from_utf8_lossy(&request);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        if let Ok(body) = serde_json::from_str(body) {
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").await?;
            return Ok((head.to_owned(), body));
        }
    }
}

#[tokio::test]
async fn a_collector_gets_spans_with_their_parents_and_fields() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let collected = tokio::spawn(collect(listener));
    let config = Config::from_environment(|name| match name {
        "OTEL_EXPORTER_OTLP_ENDPOINT" => Some(endpoint.clone()),
        "OTEL_EXPORTER_OTLP_HEADERS" => Some("x-team=blue".to_owned()),
        _ => None,
    });
    let (traces, unsent) = layer();
    tracing::subscriber::with_default(tracing_subscriber::registry().with(traces), || {
        let outcome = tracing::field::Empty;
        let span = tracing::info_span!("reconcile", cluster = "abc", object = %"default/my-bin", attempt = 2, outcome);
        span.in_scope(|| drop(tracing::info_span!("step", verb = "create")));
        span.record("outcome", "error");
    });
    let end = CancellationToken::new();
    end.cancel();
    send_all(config.unwrap().unwrap(), unsent, end).await.unwrap();

    let (head, body) = collected.await.unwrap().unwrap();
    assert!(head.starts_with("POST /v1/traces "), "{head}");
    assert!(head.contains("x-team: blue"), "{head}");
    let resource = &body["resourceSpans"][0];
    assert_eq!(resource["resource"]["attributes"][0]["value"]["stringValue"], "api-syncagent");
    let [step, reconcile] = resource["scopeSpans"][0]["spans"].as_array().unwrap().as_slice() else {
        panic!("two spans are expected: {resource}");
    };
    assert_eq!((step["name"].as_str(), reconcile["name"].as_str()), (Some("step"), Some("reconcile")));
    assert_eq!(step["parentSpanId"], reconcile["spanId"]);
    assert_eq!(step["traceId"], reconcile["traceId"]);
    assert_eq!(reconcile["traceId"].as_str().map(str::len), Some(32));
    assert_eq!((&reconcile["status"]["code"], &step["status"]), (&Value::from(2), &Value::Null));
    let attribute = |key: &str| {
        let all = reconcile["attributes"].as_array().unwrap();
        all.iter().find(|attribute| attribute["key"] == key).map(|attribute| attribute["value"].clone()).unwrap()
    };
    assert_eq!(attribute("cluster")["stringValue"], "abc");
    assert_eq!(attribute("object")["stringValue"], "default/my-bin");
    assert_eq!(attribute("attempt")["intValue"], "2");
}
