//! Traces for OpenTelemetry: every reconcile and its steps, sent as OTLP over HTTP in JSON.
//!
//! ```text
//!   tracing spans ──▶ Layer: on close, a Span ──▶ bounded queue ──▶ sender: batches ──▶ <endpoint>/v1/traces
//! ```
//!
//! Off unless `OTEL_EXPORTER_OTLP_ENDPOINT` or `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` is set. Spans hold names of clusters and
//! objects and what was done, never content. When the collector is slow or gone, spans are dropped, never anything else.

mod send;
mod span;

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use thiserror::Error;
use tokio::sync::mpsc;
use tracing::Subscriber;
use tracing::span::{Attributes, Id, Record};
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::LookupSpan;

pub use send::{Unsent, send_all};
use span::{Fields, Span};

/// How many finished spans may wait to be sent.
const QUEUE: usize = 4096;

/// Why traces cannot be sent.
#[derive(Debug, Error)]
pub enum TracesError {
    /// A variable asks for a protocol that is not supported.
    #[error("{variable}={value} is not supported; set it to http/json, or leave it out")]
    Protocol {
        /// The variable.
        variable: &'static str,
        /// Its value.
        value: String,
    },
    /// The endpoint is not a URL.
    #[error("{variable} is not a URL: {problem}")]
    Endpoint {
        /// The variable.
        variable: &'static str,
        /// What is wrong with it.
        problem: String,
    },
}

/// Where traces are sent, and the identity of the sender.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// The whole URL.
    pub url: String,
    /// More headers, such as credentials.
    pub headers: Vec<(String, String)>,
    /// The name of the service.
    pub service: String,
    /// More attributes of this process.
    pub resource: BTreeMap<String, String>,
}

impl Config {
    /// The configuration from the environment; `None` if it does not ask for traces.
    pub fn from_environment(variable: impl Fn(&str) -> Option<String>) -> Result<Option<Self>, TracesError> {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        if set("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true"))
            || set("OTEL_TRACES_EXPORTER").is_some_and(|value| value == "none")
        {
            return Ok(None);
        }
        let (url, origin) = match (set("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"), set("OTEL_EXPORTER_OTLP_ENDPOINT")) {
            (Some(url), _) => (url, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"),
            (None, Some(base)) => (format!("{}/v1/traces", base.trim_end_matches('/')), "OTEL_EXPORTER_OTLP_ENDPOINT"),
            (None, None) => return Ok(None),
        };
        for name in ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"] {
            if let Some(value) = set(name).filter(|value| value != "http/json") {
                return Err(TracesError::Protocol { variable: name, value });
            }
        }
        let parsed: Result<http::Uri, _> = url.parse();
        match parsed {
            Ok(uri) if uri.scheme().is_some() && uri.host().is_some() => {}
            Ok(_) => {
                return Err(TracesError::Endpoint { variable: origin, problem: "scheme or host is missing".into() });
            }
            Err(error) => return Err(TracesError::Endpoint { variable: origin, problem: error.to_string() }),
        }
        let headers = set("OTEL_EXPORTER_OTLP_TRACES_HEADERS").or_else(|| set("OTEL_EXPORTER_OTLP_HEADERS"));
        let mut resource: BTreeMap<_, _> =
            pairs(&set("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default()).into_iter().collect();
        let named = resource.remove("service.name");
        let service = set("OTEL_SERVICE_NAME").or(named).unwrap_or_else(|| "api-syncagent".to_owned());
        Ok(Some(Self { url, headers: pairs(&headers.unwrap_or_default()), service, resource }))
    }
}

/// `a=b,c=d`.
fn pairs(text: &str) -> Vec<(String, String)> {
    let pair = |part: &str| part.split_once('=').map(|(key, value)| (key.trim().to_owned(), value.trim().to_owned()));
    text.split(',').filter_map(pair).collect()
}

/// A layer that hands finished spans to [`send_all`].
pub fn layer() -> (Traces, Unsent) {
    let (finished, unsent) = mpsc::channel(QUEUE);
    (Traces { finished }, unsent)
}

/// The layer.
pub struct Traces {
    finished: mpsc::Sender<Span>,
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Traces {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(here) = context.span(id) else { return };
        let parent = here.parent().and_then(|parent| parent.extensions().get::<Span>().map(Span::identity));
        let mut span = Span::begin(attributes.metadata().name(), parent);
        attributes.record(&mut Fields(&mut span));
        here.extensions_mut().insert(span);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(span) = span.extensions_mut().get_mut::<Span>()
        {
            values.record(&mut Fields(span));
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let Some(span) = context.span(&id) else { return };
        if let Some(mut span) = span.extensions_mut().remove::<Span>() {
            span.end = since_1970();
            // Full when the collector is slow, closed when the agent ends: both are no reason to wait.
            let _ = self.finished.try_send(span);
        }
    }
}

fn since_1970() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(variables: &[(&str, &str)]) -> Result<Option<Config>, String> {
        let find = |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
        Config::from_environment(find).map_err(|error| error.to_string())
    }

    #[test]
    fn nothing_is_sent_unless_the_environment_asks_for_it() {
        let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318/");
        for (variables, url) in [
            (&[][..], None),
            (&[("OTEL_EXPORTER_OTLP_ENDPOINT", "")], None),
            (&[endpoint, ("OTEL_SDK_DISABLED", "true")], None),
            (&[endpoint, ("OTEL_TRACES_EXPORTER", "none")], None),
            (&[endpoint], Some("http://c:4318/v1/traces")),
            (&[endpoint, ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://d/x")], Some("https://d/x")),
        ] {
            assert_eq!(config(variables).unwrap().map(|config| config.url).as_deref(), url, "{variables:?}");
        }
    }

    #[test]
    fn what_is_not_understood_is_refused_with_the_way_out() {
        let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318");
        let refused = config(&[endpoint, ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")]).unwrap_err();
        assert_eq!(refused, "OTEL_EXPORTER_OTLP_PROTOCOL=grpc is not supported; set it to http/json, or leave it out");
        let refused = config(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "collector")]).unwrap_err();
        assert!(refused.starts_with("OTEL_EXPORTER_OTLP_ENDPOINT is not a URL"), "{refused}");
    }

    #[test]
    fn names_headers_and_attributes_come_from_the_environment() {
        let config = config(&[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer x, a=b"),
            ("OTEL_RESOURCE_ATTRIBUTES", "service.name=mine,region=eu"),
        ]);
        let config = config.unwrap().unwrap();
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        assert_eq!(config.headers, [pair("authorization", "Bearer x"), pair("a", "b")]);
        assert_eq!((config.service.as_str(), config.resource["region"].as_str()), ("mine", "eu"));
    }
}
