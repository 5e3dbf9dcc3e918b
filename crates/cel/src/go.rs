//! Comparison with the API server's own CEL, whose answers are recorded in `tests/go.json`.

use serde_json::Value as Json;

use crate::convert::{Integers, to_cel};
use crate::environment;
use crate::expression::Expression;
use crate::functions::time;
use crate::rule::{Rule, Verdict};
use crate::schema::Schema;
use crate::types::Type;
use crate::value::Value;

/// A value with its type, in the notation of the recording.
fn show(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => format!("bool {value}"),
        Value::Int(value) => format!("int {value}"),
        Value::Uint(value) => format!("uint {value}"),
        Value::Double(value) => format!("double {value}"),
        Value::String(text) => format!("string {text}"),
        Value::Bytes(bytes) => format!("bytes {}", data_encoding::HEXLOWER.encode(bytes)),
        Value::Duration(nanos) => format!("duration {nanos}"),
        Value::Timestamp(nanos) => format!("timestamp {}", time::timestamp_text(*nanos)),
        Value::Optional(None) => "optional none".to_owned(),
        Value::Optional(Some(value)) => format!("optional {}", show(value)),
        Value::List(list) => format!("[{}]", list.items.iter().map(show).collect::<Vec<_>>().join(", ")),
        Value::Map(map) => {
            let mut parts: Vec<String> =
                map.iter().map(|(key, value)| format!("{}: {}", show(&key.into()), show(value))).collect();
            parts.sort();
            format!("{{{}}}", parts.join(", "))
        }
        Value::Type(found) => format!("type {}", found.name()),
        other => format!("other {}", other.kind().name()),
    }
}

/// `double 1e+06` and `double 1000000.0` are the same.
fn same(got: &str, want: &str) -> bool {
    let number = |text: &str| text.strip_prefix("double ").and_then(|text| text.parse::<f64>().ok());
    got == want
        || matches!((number(got), number(want)), (Some(a), Some(b)) if a.total_cmp(&b).is_eq() || a.is_nan() && b.is_nan())
}

fn recording() -> Json {
    serde_json::from_str(include_str!("../tests/go.json")).unwrap()
}

#[test]
fn expressions_give_what_the_api_server_gives() {
    let recorded = recording();
    let this = to_cel(&recorded["self"], Integers::Kept);
    let mut wrong = Vec::new();
    for case in recorded["cases"].as_array().unwrap() {
        let expression = case["expression"].as_str().unwrap();
        let got = match Expression::compile(expression, environment::rule(), &[Type::Dyn]) {
            Err(error) => Err(format!("compile: {error}")),
            Ok(compiled) => compiled.eval(|_| Ok(this.clone())).map_err(|error| format!("eval: {error}")),
        };
        let fine = match (&got, case["result"].as_str(), case["error"].as_str()) {
            (Ok(got), Some(want), _) => same(&show(got), want),
            // refused at the same time, in other words
            (Err(got), _, Some(want)) => got.split(':').next() == want.split(':').next(),
            _ => false,
        };
        if !fine {
            let got = got.map_or_else(|error| error, |value| show(&value));
            wrong.push(format!("{expression}\n    got  {got}\n    want {}{}", case["result"], case["error"]));
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn typed_rules_judge_as_the_api_server_does() {
    let recorded = recording();
    let (schema, object) = (Schema::node(&recorded["schema"]), &recorded["object"]);
    let mut wrong = Vec::new();
    for case in recorded["typed"].as_array().unwrap() {
        // an old object is recorded as what differs
        let old = case.get("old").and_then(Json::as_object).map(|changed| {
            let mut old = object.clone();
            changed.iter().for_each(|(name, value)| old[name] = value.clone());
            old
        });
        let got = match Rule::compile_typed(&case["rule"], &schema) {
            Err(error) => format!("compile: {error}"),
            Ok(rule) => match rule.eval(object, old.as_ref()) {
                Ok(Verdict::Pass | Verdict::Skipped) => "pass".to_owned(),
                Ok(Verdict::Fail { message }) => format!("fail: {message}"),
                Err(error) => format!("eval: {error}"),
            },
        };
        let want = case["want"].as_str().unwrap();
        let fine = match got.split_once(": ") {
            Some(("compile", _)) => want.contains("rule compile error") || want.contains("compilation"),
            Some(("fail", message)) => want.ends_with(message),
            Some(_) => want.contains("evaluating rule") || want.contains("no such overload"),
            None => want == got,
        };
        if !fine {
            wrong.push(format!("{} before {}\n    got  {got}\n    want {want}", case["rule"], case["old"]));
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}
