//! Logs on stderr, in the format of kcp's Go agents, so that existing log pipelines keep working.
//!
//! ```text
//! JSON     {"level":"info","time":"2026-01-31T02:30:46.366Z","logger":"…","caller":"agent/connect.rs:87","msg":"…",…fields}
//! Console  2026-01-31T02:30:46.366Z <tab> info <tab> [logger] <tab> agent/connect.rs:87 <tab> message <tab> {fields}
//! ```
//!
//! Two field names are special: `logger` names the logger, `fatal = true` turns an error into a fatal one.

use std::io::Write as _;
use std::str::FromStr;

use jiff::Timestamp;
use serde_json::Value;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::LookupSpan;

use crate::printable;

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// One JSON object per line.
    Json,
    /// Tab separated columns for people.
    Console,
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.eq_ignore_ascii_case("json") {
            Ok(Self::Json)
        } else if text.eq_ignore_ascii_case("console") {
            Ok(Self::Console)
        } else {
            Err(format!("invalid format '{text}'; available: JSON, Console"))
        }
    }
}

/// The layer that writes the lines.
#[derive(Debug, Clone, Copy)]
pub struct Lines {
    /// How they look.
    pub format: Format,
}

/// Fields in the order in which they were given.
type Fields = Vec<(&'static str, Value)>;

/// Fields of a span, kept for the lines written inside it.
struct SpanFields(Fields);

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Lines {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        if let Some(span) = context.span(id) {
            let mut fields = Fields::new();
            attributes.record(&mut Collector(&mut fields));
            span.extensions_mut().insert(SpanFields(fields));
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(fields) = span.extensions_mut().get_mut::<SpanFields>()
        {
            values.record(&mut Collector(&mut fields.0));
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut fields = Fields::new();
        for span in context.event_scope(event).into_iter().flatten().collect::<Vec<_>>().into_iter().rev() {
            if let Some(SpanFields(inherited)) = span.extensions().get::<SpanFields>() {
                fields.extend(inherited.clone());
            }
        }
        event.record(&mut Collector(&mut fields));
        let line = line(self.format, Timestamp::now(), event.metadata(), fields);
        // If stderr is closed, there is nobody to report to.
        let _ = std::io::stderr().lock().write_all(line.as_bytes());
    }
}

fn line(format: Format, now: Timestamp, metadata: &Metadata<'_>, mut fields: Fields) -> String {
    let fatal = take(&mut fields, "fatal") == Some(Value::Bool(true));
    let level = if fatal { "fatal" } else { level_name(*metadata.level()) };
    let time = now.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string();
    let logger = take(&mut fields, "logger").as_ref().and_then(Value::as_str).map(str::to_owned);
    let caller = caller(metadata);
    let message = take(&mut fields, "message").as_ref().and_then(Value::as_str).unwrap_or_default().to_owned();
    // Written by hand because the order of the keys is part of the format.
    let fields: Vec<String> = fields.iter().map(|(key, value)| format!("{}:{value}", Value::from(*key))).collect();
    match format {
        Format::Json => {
            let mut head = vec![("level", level.to_owned()), ("time", time)];
            head.extend(logger.map(|logger| ("logger", logger)));
            head.push(("caller", caller));
            head.push(("msg", message));
            let head = head.into_iter().map(|(key, text)| format!("\"{key}\":{}", Value::String(text)));
            let line = head.chain(fields).collect::<Vec<_>>().join(",");
            format!("{{{}}}\n", printable::json(&line))
        }
        Format::Console => {
            let mut columns = vec![time, level.to_owned()];
            columns.extend(logger);
            columns.extend([caller, message]);
            if !fields.is_empty() {
                columns.push(format!("{{{}}}", fields.join(",")));
            }
            // A message that ends a line or a column would be taken for what comes after it.
            let columns: Vec<_> = columns.iter().map(|column| printable::one_line(column)).collect();
            format!("{}\n", columns.join("\t"))
        }
    }
}

/// Takes a field out.
fn take(fields: &mut Fields, name: &str) -> Option<Value> {
    let at = fields.iter().position(|(key, _)| *key == name)?;
    Some(fields.remove(at).1)
}

fn level_name(level: Level) -> &'static str {
    match level {
        Level::ERROR => "error",
        Level::WARN => "warn",
        Level::INFO => "info",
        Level::DEBUG | Level::TRACE => "debug",
    }
}

/// `folder/file.rs:line`.
fn caller(metadata: &Metadata<'_>) -> String {
    let file = metadata.file().unwrap_or_default();
    let short = file.rmatch_indices(['/', '\\']).nth(1).map_or(file, |(at, _)| &file[at + 1..]);
    format!("{short}:{}", metadata.line().unwrap_or_default())
}

/// Collects fields as JSON.
struct Collector<'a>(&'a mut Fields);

impl Collector<'_> {
    fn set(&mut self, field: &Field, value: impl Into<Value>) {
        // The innermost value wins.
        self.0.retain(|(key, _)| *key != field.name());
        self.0.push((field.name(), value.into()));
    }
}

impl Visit for Collector<'_> {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.set(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.set(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.set(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.set(field, value);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.set(field, value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.set(field, format!("{value:?}"));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use tracing_subscriber::layer::SubscriberExt;

    use super::*;

    /// Formats with a fixed time and keeps the lines.
    struct Kept {
        format: Format,
        lines: Arc<Mutex<Vec<String>>>,
    }

    impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Kept {
        fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
            let mut fields = Fields::new();
            event.record(&mut Collector(&mut fields));
            let now = "2026-01-31T02:30:46.366901Z".parse().unwrap();
            self.lines.lock().unwrap().push(line(self.format, now, event.metadata(), fields));
        }
    }

    fn logged(format: Format, log: impl FnOnce()) -> String {
        let lines = Arc::default();
        let subscriber = tracing_subscriber::registry().with(Kept { format, lines: Arc::clone(&lines) });
        tracing::subscriber::with_default(subscriber, log);
        lines.lock().unwrap().concat()
    }

    #[test]
    fn json_lines_have_their_keys_in_the_usual_order() {
        let got = logged(Format::Json, || tracing::info!(logger = "syncagent-sync", count = 3, "Hello \"you\""));
        let head =
            r#"{"level":"info","time":"2026-01-31T02:30:46.366Z","logger":"syncagent-sync","caller":"src/lines.rs:"#;
        assert!(got.starts_with(head), "{got}");
        assert!(got.ends_with("\"msg\":\"Hello \\\"you\\\"\",\"count\":3}\n"), "{got}");
    }

    #[test]
    fn console_lines_are_tab_separated() {
        let got = logged(Format::Console, || tracing::error!(fatal = true, error = %"no", "Oops"));
        let columns: Vec<_> = got.trim_end().split('\t').collect();
        assert_eq!(columns[..2], ["2026-01-31T02:30:46.366Z", "fatal"]);
        assert_eq!(columns[3..], ["Oops", r#"{"error":"no"}"#]);
    }

    #[test]
    fn nobody_forges_a_line() {
        let forged = "no\n2026-01-31T02:30:46.366Z\terror\tx\u{9b}2J";
        let got = logged(Format::Console, || tracing::error!(error = %forged, "{forged}"));
        assert_eq!((got.lines().count(), got.split('\t').count()), (1, 5), "{got}");
        let got = logged(Format::Json, || tracing::error!(error = %forged, "{forged}"));
        assert_eq!(got.lines().count(), 1, "{got}");
        assert!(!got.contains('\u{9b}'), "{got:?}");
        assert_eq!(serde_json::from_str::<Value>(&got).unwrap()["msg"], forged);
    }

    #[test]
    fn formats_are_matched_without_case() {
        assert_eq!("json".parse(), Ok(Format::Json));
        assert_eq!("CONSOLE".parse(), Ok(Format::Console));
        assert_eq!("xx".parse::<Format>(), Err("invalid format 'xx'; available: JSON, Console".to_owned()));
    }
}
