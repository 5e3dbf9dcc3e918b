//! URLs as Go parses them.

use std::borrow::Cow;
use std::sync::Arc;

use carrick_go::url::Url;

use crate::budget::Budget;
use crate::error::{EvalError, failed};
use crate::signature::Row;
use crate::value::key::Key;
use crate::value::{Map, Outcome, Value, overload};

pub(crate) const ROWS: &[Row] = &[
    ("url(string): URL", |arguments, budget| {
        let found = parsed("url", arguments, budget)?;
        found.map(|found| Value::Url(Arc::new(found))).ok_or_else(|| failed("url"))
    }),
    ("isURL(string): bool", |arguments, budget| {
        parsed("isURL", arguments, budget).map(|found| Value::Bool(found.is_some()))
    }),
    ("URL.getScheme(): string", |arguments, _| part("getScheme", arguments, |url| (&*url.scheme).into())),
    ("URL.getHost(): string", |arguments, _| part("getHost", arguments, |url| (&*url.host).into())),
    ("URL.getHostname(): string", |arguments, _| part("getHostname", arguments, |url| url.host_name().into())),
    ("URL.getPort(): string", |arguments, _| part("getPort", arguments, |url| url.port().into())),
    ("URL.getEscapedPath(): string", |arguments, _| part("getEscapedPath", arguments, |url| url.escaped_path().into())),
    ("URL.getQuery(): map(string, list(string))", query),
];

fn parsed(name: &str, arguments: &[Value], budget: &Budget) -> Result<Option<Url>, EvalError> {
    let [Value::String(text)] = arguments else { return Err(overload(name, arguments)) };
    budget.bytes(text.len())?;
    let request = Url::parse_request(text.as_bytes()).ok();
    // only this way of parsing knows fragments
    Ok(if name == "isURL" { request } else { request.and_then(|_| Url::parse(text.as_bytes()).ok()) })
}

fn part<'a>(name: &str, arguments: &'a [Value], read: impl Fn(&'a Url) -> Cow<'a, [u8]>) -> Outcome {
    match arguments {
        [Value::Url(url)] => Ok(Value::string(String::from_utf8_lossy(&read(url)))),
        _ => Err(overload(name, arguments)),
    }
}

fn query(arguments: &[Value], budget: &Budget) -> Outcome {
    let [Value::Url(url)] = arguments else { return Err(overload("getQuery", arguments)) };
    budget.bytes(url.query.len())?;
    let mut found: std::collections::BTreeMap<String, Vec<Value>> = std::collections::BTreeMap::new();
    for (key, value) in url.query_pairs() {
        budget.step()?;
        let key = String::from_utf8_lossy(&key).into_owned();
        found.entry(key).or_default().push(Value::string(String::from_utf8_lossy(&value)));
    }
    let entries = found.into_iter().map(|(key, values)| (Key::String(key.into()), Value::list(values)));
    Ok(Value::map(entries.collect::<Map>()))
}
