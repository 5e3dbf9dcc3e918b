//! URLs as Go parses them.

use std::sync::Arc;

use crate::budget::Budget;
use crate::eval::{Outcome, overload};
use crate::expression::EvalError;
use crate::functions::failed;
use crate::key::{Key, Map};
use crate::signature::Row;
use crate::value::Value;

pub(crate) const ROWS: &[Row] = &[
    ("url(string): URL", |arguments, budget| {
        let found = parsed("url", arguments, budget)?;
        found.map(|found| Value::Url(Arc::new(found))).ok_or_else(|| failed("url"))
    }),
    ("isURL(string): bool", |arguments, budget| {
        parsed("isURL", arguments, budget).map(|found| Value::Bool(found.is_some()))
    }),
    ("URL.getScheme(): string", |arguments, _| part("getScheme", arguments, |url| url.scheme.clone())),
    ("URL.getHost(): string", |arguments, _| part("getHost", arguments, |url| url.host.clone())),
    ("URL.getHostname(): string", |arguments, _| part("getHostname", arguments, |url| url.split_host().0.to_owned())),
    ("URL.getPort(): string", |arguments, _| part("getPort", arguments, |url| url.split_host().1.to_owned())),
    ("URL.getEscapedPath(): string", |arguments, _| part("getEscapedPath", arguments, Url::escaped_path)),
    ("URL.getQuery(): map(string, list(string))", query),
];

/// The parts of a URL.
#[derive(Debug, PartialEq)]
pub(crate) struct Url {
    text: String,
    scheme: String,
    host: String,
    /// As it was written.
    path: String,
    query: String,
}

/// Whether Go parses the text as the URI of a request, which needs a scheme or a leading slash.
pub(crate) fn is_request_uri(text: &str) -> bool {
    parse(text, true).is_some()
}

fn parsed(name: &str, arguments: &[Value], budget: &Budget) -> Result<Option<Url>, EvalError> {
    let [Value::String(text)] = arguments else { return Err(overload(name, arguments)) };
    budget.bytes(text.len())?;
    if !is_request_uri(text) {
        return Ok(None);
    }
    if name == "isURL" {
        return Ok(parse(text, true));
    }
    // only this way of parsing knows fragments
    let (before, fragment) = text.split_once('#').unwrap_or((text, ""));
    if unescape(fragment, false).is_none() {
        return Ok(None);
    }
    Ok(parse(before, false).map(|url| Url { text: text.to_string(), ..url }))
}

fn parse(text: &str, request: bool) -> Option<Url> {
    if text.bytes().any(|c| c < 0x20 || c == 0x7f) || request && text.is_empty() {
        return None;
    }
    let (scheme, rest) = split_scheme(text)?;
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let mut url = Url {
        text: text.to_owned(),
        scheme: scheme.to_ascii_lowercase(),
        host: String::new(),
        path: String::new(),
        query: query.to_owned(),
    };
    if text == "*" {
        rest.clone_into(&mut url.path);
        return Some(url);
    }
    let mut path = rest;
    if !rest.starts_with('/') {
        if !scheme.is_empty() {
            return Some(url);
        }
        let first = rest.split('/').next().unwrap_or_default();
        if request || first.contains(':') {
            return None;
        }
    } else if let Some(after) = rest.strip_prefix("//")
        && (!scheme.is_empty() || !request && !rest.starts_with("///"))
    {
        let (authority, after) = after.split_at(after.find('/').unwrap_or(after.len()));
        url.host = host(authority)?;
        path = after;
    }
    unescape(path, false)?;
    path.clone_into(&mut url.path);
    Some(url)
}

/// The scheme, which may be empty, and what follows its colon.
fn split_scheme(text: &str) -> Option<(&str, &str)> {
    for (at, c) in text.char_indices() {
        match c {
            'a'..='z' | 'A'..='Z' => {}
            '0'..='9' | '+' | '-' | '.' if at > 0 => {}
            ':' if at == 0 => return None,
            ':' => return Some((&text[..at], &text[at + 1..])),
            _ => break,
        }
    }
    Some(("", text))
}

/// The host and port of an authority.
fn host(authority: &str) -> Option<String> {
    let host = match authority.rsplit_once('@') {
        Some((user, host)) => {
            let fits = |c: char| c.is_ascii_alphanumeric() || "-._:~!$&'()*+,;=%@".contains(c);
            if !user.chars().all(fits) {
                return None;
            }
            unescape(user, false)?;
            host
        }
        None => authority,
    };
    let port = if host.starts_with('[') {
        let end = host.rfind(']')?;
        let address = &host[1..end];
        address.split('%').next()?.parse::<std::net::Ipv6Addr>().ok()?;
        &host[end + 1..]
    } else {
        if host.contains(['[', ']']) {
            return None;
        }
        let (name, port) = host.split_at(host.find(':').unwrap_or(host.len()));
        if name.is_empty() && port.is_empty() && authority.is_empty() {
            return Some(String::new());
        }
        port
    };
    if !valid_port(port) {
        return None;
    }
    unescape(host, true)
}

/// Nothing, or a colon and digits.
fn valid_port(port: &str) -> bool {
    port.is_empty() || port.strip_prefix(':').is_some_and(|digits| digits.bytes().all(|c| c.is_ascii_digit()))
}

/// Decodes `%20`; none when an escape is broken or a host has what no host may have.
fn unescape(text: &str, host: bool) -> Option<String> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] != b'%' {
            let plain = bytes[at].is_ascii_alphanumeric() || b"-_.~!$&'()*+,;=:[]<>\"".contains(&bytes[at]);
            if host && bytes[at] < 0x80 && !plain {
                return None;
            }
            out.push(bytes[at]);
            at += 1;
            continue;
        }
        let digits = text.get(at + 1..at + 3)?;
        let byte = u8::from_str_radix(digits, 16).ok().filter(|_| !digits.starts_with('+'))?;
        if host && byte < 0x80 && byte != b'%' {
            return None;
        }
        out.push(byte);
        at += 3;
    }
    Some(String::from_utf8_lossy(&out).into_owned())
}

/// Whether a byte stands for itself in a path.
fn plain_in_path(c: u8) -> bool {
    c.is_ascii_alphanumeric() || b"-_.~$&+,/:;=@".contains(&c)
}

impl Url {
    fn split_host(&self) -> (&str, &str) {
        let (name, port) = match self.host.rfind(':').map(|at| self.host.split_at(at)) {
            Some((name, port)) if valid_port(port) => (name, &port[1..]),
            _ => (self.host.as_str(), ""),
        };
        let inner = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
        (inner.unwrap_or(name), port)
    }

    /// The path as written if that is a way to write it, else escaped.
    fn escaped_path(&self) -> String {
        let allowed = |c: u8| plain_in_path(c) || b"!'()*[]%".contains(&c);
        if self.path.bytes().all(allowed) {
            return self.path.clone();
        }
        let decoded = unescape(&self.path, false).unwrap_or_default();
        let mut out = String::new();
        for byte in decoded.bytes() {
            if plain_in_path(byte) {
                out.push(char::from(byte));
            } else {
                out.push('%');
                out.push_str(&data_encoding::HEXUPPER.encode(&[byte]));
            }
        }
        out
    }
}

fn part(name: &str, arguments: &[Value], read: impl Fn(&Url) -> String) -> Outcome {
    match arguments {
        [Value::Url(url)] => Ok(Value::string(read(url))),
        _ => Err(overload(name, arguments)),
    }
}

fn query(arguments: &[Value], budget: &Budget) -> Outcome {
    let [Value::Url(url)] = arguments else { return Err(overload("getQuery", arguments)) };
    budget.bytes(url.query.len())?;
    let mut found: std::collections::BTreeMap<String, Vec<Value>> = std::collections::BTreeMap::new();
    for pair in url.query.split('&').filter(|pair| !pair.is_empty() && !pair.contains(';')) {
        budget.step()?;
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let decode = |text: &str| unescape(&text.replace('+', " "), false);
        if let (Some(key), Some(value)) = (decode(key), decode(value)) {
            found.entry(key).or_default().push(Value::string(value));
        }
    }
    let entries = found.into_iter().map(|(key, values)| (Key::String(key.into()), Value::list(values)));
    Ok(Value::map(entries.collect::<Map>()))
}
