//! What the small HTTP servers answer: metrics for Prometheus, probes for the kubelet, the dashboard for people.

use std::sync::Arc;

use carrick_process::Page;
use http::StatusCode;

use super::dashboard::{self, Dashboard};
use super::health::Health;
use super::metrics::Metrics;

/// What a server answers with.
#[derive(Debug, Clone)]
pub enum Pages {
    /// `/metrics`.
    Metrics(Arc<Metrics>),
    /// `/healthz` and `/readyz`.
    Health(Arc<Health>),
    /// `/`, `/state.json` and `/find.json`.
    Dashboard(Arc<Dashboard>),
}

impl Pages {
    /// The flag that names their address.
    pub fn flag(&self) -> &'static str {
        match self {
            Self::Metrics(_) => "--metrics-address",
            Self::Health(_) => "--health-address",
            Self::Dashboard(_) => "--dashboard-address",
        }
    }

    /// The answer to a request for a path and a query.
    pub fn answer(&self, target: &str) -> Page {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let (status, text) = self.text(path, query);
        Page { status, kind: content_type(path), text }
    }

    fn text(&self, path: &str, query: &str) -> (StatusCode, String) {
        match (self, path) {
            (Self::Metrics(metrics), "/metrics") => (StatusCode::OK, metrics.render()),
            (Self::Health(_), "/healthz") => (StatusCode::OK, "ok\n".to_owned()),
            (Self::Health(health), "/readyz") => {
                let problems = health.problems();
                if problems.is_empty() {
                    (StatusCode::OK, "ok\n".to_owned())
                } else {
                    (StatusCode::SERVICE_UNAVAILABLE, format!("{}\n", problems.join("\n")))
                }
            }
            (Self::Dashboard(_), "/") => (StatusCode::OK, dashboard::PAGE.to_owned()),
            (Self::Dashboard(dashboard), "/state.json") => (StatusCode::OK, dashboard.state().to_string()),
            (Self::Dashboard(dashboard), "/find.json") => {
                let asked = query.strip_prefix("q=").unwrap_or_default();
                (StatusCode::OK, dashboard.find(&decoded(asked)).to_string())
            }
            _ => (StatusCode::NOT_FOUND, format!("{path} is not here\n")),
        }
    }
}

/// The content type at a path.
fn content_type(path: &str) -> &'static str {
    match path {
        "/" => "text/html; charset=utf-8",
        "/state.json" | "/find.json" => "application/json",
        _ => Page::TEXT,
    }
}

/// A part of a query with its escapes decoded; invalid escapes stay as they are.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, more @ ..] = rest {
        let escaped = more.get(..2).filter(|_| *first == b'%');
        let escaped = escaped.and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
        bytes.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { &more[2..] } else { more };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_tell_the_truth() {
        let health = Arc::new(Health::default());
        let pages = Pages::Health(Arc::clone(&health));
        let part = health.part("watch of CRDs");
        assert_eq!(pages.answer("/healthz").status, StatusCode::OK);
        let unready = Page::text(StatusCode::SERVICE_UNAVAILABLE, "watch of CRDs: starting\n");
        assert_eq!(pages.answer("/readyz"), unready);
        part.works();
        assert_eq!(pages.answer("/readyz").status, StatusCode::OK);
        assert_eq!(pages.answer("/metrics").status, StatusCode::NOT_FOUND);
    }

    #[test]
    fn queries_are_read_without_their_escapes() {
        for (text, wanted) in [("a%2Fb", "a/b"), ("%C3%A4", "ä"), ("100%", "100%"), ("%zz", "%zz"), ("", "")] {
            assert_eq!(decoded(text), wanted);
        }
        let dashboard = Dashboard::new("a", "s".to_owned(), Arc::default(), Arc::default());
        let pages = Pages::Dashboard(Arc::new(dashboard));
        assert_eq!(pages.answer("/find.json?q=a%20b").text, r#"{"asked":"a b","found":[]}"#);
        assert_eq!(pages.answer("/?x").status, StatusCode::OK);
        assert_eq!(pages.answer("/metrics").status, StatusCode::NOT_FOUND);
    }
}
