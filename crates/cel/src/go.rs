//! Comparison with the API server's own CEL, whose answers are recorded in `tests/go.json` and `tests/answers.jsonl`.
//!
//! `CARRICK_CEL_ANSWERS=<file>` compares with another recording of the second form instead.

use serde_json::Value as Json;

use crate::convert::Integers;
use crate::environment;
use crate::expression::Expression;
use crate::input::Input;
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
        Value::Timestamp(time) => format!("timestamp {}", time.text()),
        Value::Optional(None) => "optional none".to_owned(),
        Value::Optional(Some(value)) => format!("optional {}", show(value)),
        Value::List(list) => format!("[{}]", list.items.iter().map(show).collect::<Vec<_>>().join(", ")),
        Value::Map(map) => {
            let mut parts: Vec<String> =
                map.iter().map(|(key, value)| format!("{}: {}", show(&key.into()), show(value))).collect();
            parts.sort();
            format!("{{{}}}", parts.join(", "))
        }
        Value::Type(name) => format!("type {name}"),
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
    let this = &recorded["self"];
    let mut wrong = Vec::new();
    for case in recorded["cases"].as_array().unwrap() {
        let expression = case["expression"].as_str().unwrap();
        let got = match Expression::compile(expression, environment::rule(), &[Type::Dyn]) {
            Err(error) => Err(format!("compile: {error}")),
            Ok(compiled) => {
                compiled.eval(|_| Ok(Input::Json(this, Integers::Kept))).map_err(|error| format!("eval: {error}"))
            }
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

/// What ours says to one recorded question, in the notation of the recording.
fn answer(question: &Json, this: &Json) -> String {
    let expression = question["expression"].as_str().unwrap_or_default();
    let (environment, types): (_, &[Type]) = match question["mode"].as_str() {
        Some("mut") => (environment::mutation(), &[]),
        _ => (environment::rule(), &[Type::Dyn]),
    };
    let compiled = match Expression::compile(expression, environment, types) {
        Err(error) => return format!("compile: ERROR: <input>:{error}"),
        Ok(compiled) => compiled,
    };
    let value = compiled.eval(|name| {
        let integers = if name == "value" { Integers::Doubles } else { Integers::Kept };
        Ok(Input::Json(question.get(name).unwrap_or(this), integers))
    });
    value.map_or_else(|error| format!("eval: {error}"), |value| show(&value))
}

/// What ours says about one value of a schema.
fn judge(question: &Json) -> String {
    let schema = &question["schema"];
    let schema = if question["root"] == true { Schema::root(schema) } else { Schema::node(schema) };
    match Rule::compile_typed(&question["rule"], &schema) {
        Err(error) => format!("compile: {error}"),
        Ok(rule) => match rule.eval(&question["self"], question.get("old")) {
            Ok(Verdict::Pass | Verdict::Skipped) => "pass".to_owned(),
            Ok(Verdict::Fail { message }) => format!("fail: {message}"),
            Err(error) => format!("eval: {error}"),
        },
    }
}

/// Whether both are the same result, or the same kind of error.
fn agree(question: &Json, got: &str) -> bool {
    let kind = |text: &str| text.split(": ").next().unwrap_or_default().to_owned();
    match (question["result"].as_str(), question["error"].as_str()) {
        (Some(want), _) if question["mode"] == "typed" => match kind(got).as_str() {
            "compile" => want.contains("compil"),
            "fail" => want.ends_with(got.trim_start_matches("fail: ")),
            "eval" => want.contains("evaluating rule") || want.contains("no such overload"),
            _ => want == got,
        },
        (Some(want), _) => same(got, want),
        // mutations have libraries that the reference does not have
        (_, Some(want)) if question["mode"] == "mut" && want.contains("undeclared reference") => true,
        (_, Some(want)) => {
            // rules are refused when a literal cannot be converted, whenever that is found out
            let late = want.starts_with("compile: program") && kind(got) == "eval";
            kind(want) == kind(got) || late || want.starts_with("panic") && kind(got) == "eval"
        }
        _ => false,
    }
}

#[test]
fn recorded_questions_get_the_recorded_answers() {
    let file = std::env::var("CARRICK_CEL_ANSWERS").map(|path| std::fs::read_to_string(path).unwrap());
    let recorded = file.unwrap_or_else(|_| include_str!("../tests/answers.jsonl").to_owned());
    let this = recording()["self"].take();
    let mut wrong = Vec::new();
    for line in recorded.lines() {
        let question: Json = serde_json::from_str(line).unwrap();
        let got = if question["mode"] == "typed" { judge(&question) } else { answer(&question, &this) };
        if !agree(&question, &got) {
            let asked = question.get("rule").unwrap_or(&question["expression"]);
            let want = question.get("result").unwrap_or(&question["error"]);
            wrong.push(format!("{} {asked}\n    got  {got}\n    want {want}", question["mode"]));
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}
