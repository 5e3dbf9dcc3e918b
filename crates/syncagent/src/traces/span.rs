//! One span, from its begin to its JSON.

use std::fmt;
use std::time::Duration;

use serde_json::{Value, json};
use tracing::field::{Field, Visit};
use uuid::Uuid;

use super::since_1970;

/// The field that tells how a reconcile ended.
const OUTCOME: &str = "outcome";
/// Longer values are cut: names are short.
const LONGEST: usize = 512;

/// A trace and a span in it.
pub(super) type Identity = (u128, u64);

/// One span.
pub struct Span {
    name: &'static str,
    identity: Identity,
    parent: Option<u64>,
    begin: Duration,
    pub(super) end: Duration,
    attributes: Vec<(&'static str, Value)>,
    failed: bool,
}

impl Span {
    /// A span that begins now, below another one or as a trace of its own.
    pub(super) fn begin(name: &'static str, parent: Option<Identity>) -> Self {
        let (upper, lower) = Uuid::new_v4().as_u64_pair();
        let trace = parent.map_or_else(|| Uuid::new_v4().as_u128(), |(trace, _)| trace);
        let now = since_1970();
        Self {
            name,
            // Some bits of each half are fixed, but not the same ones.
            identity: (trace, upper ^ lower),
            parent: parent.map(|(_, span)| span),
            begin: now,
            end: now,
            attributes: Vec::new(),
            failed: false,
        }
    }

    pub(super) fn identity(&self) -> Identity {
        self.identity
    }

    /// As OTLP writes it.
    pub(super) fn json(&self) -> Value {
        let (trace, span) = self.identity;
        let attributes: Vec<Value> =
            self.attributes.iter().map(|(key, value)| json!({ "key": key, "value": value })).collect();
        let mut json = json!({
            "traceId": format!("{trace:032x}"),
            "spanId": format!("{span:016x}"),
            "name": self.name,
            "kind": 1,
            "startTimeUnixNano": self.begin.as_nanos().to_string(),
            "endTimeUnixNano": self.end.as_nanos().to_string(),
            "attributes": attributes,
        });
        if let Some(parent) = self.parent {
            json["parentSpanId"] = json!(format!("{parent:016x}"));
        }
        if self.failed {
            json["status"] = json!({ "code": 2 });
        }
        json
    }

    fn set(&mut self, field: &Field, value: Value) {
        if field.name() == OUTCOME {
            self.failed = matches!(value["stringValue"].as_str(), Some("error" | "panic"));
        }
        self.attributes.retain(|(key, _)| *key != field.name());
        self.attributes.push((field.name(), value));
    }
}

/// Fields as OTLP writes them.
pub(super) struct Fields<'a>(pub(super) &'a mut Span);

impl Visit for Fields<'_> {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.0.set(field, json!({ "doubleValue": value }));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.0.set(field, json!({ "intValue": value.to_string() }));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.0.set(field, json!({ "intValue": value.to_string() }));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.0.set(field, json!({ "boolValue": value }));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        let short: String = value.chars().take(LONGEST).collect();
        self.0.set(field, json!({ "stringValue": short }));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.record_str(field, &format!("{value:?}"));
    }
}
