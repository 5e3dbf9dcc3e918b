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

/// What Go says about a text that is no URI of a request, which needs a scheme or a leading slash.
pub(crate) fn request_fault(text: &str) -> Option<String> {
    parse(text, true).err().map(|reason| format!("parse {text:?}: {reason}"))
}

fn parsed(name: &str, arguments: &[Value], budget: &Budget) -> Result<Option<Url>, EvalError> {
    let [Value::String(text)] = arguments else { return Err(overload(name, arguments)) };
    budget.bytes(text.len())?;
    let Ok(url) = parse(text, true) else { return Ok(None) };
    if name == "isURL" {
        return Ok(Some(url));
    }
    // only this way of parsing knows fragments
    let (before, fragment) = text.split_once('#').unwrap_or((text, ""));
    if unescape(fragment, false).is_err() {
        return Ok(None);
    }
    Ok(parse(before, false).ok().map(|url| Url { text: text.to_string(), ..url }))
}

/// The parts, or why there are none.
fn parse(text: &str, request: bool) -> Result<Url, String> {
    if text.bytes().any(|c| c < 0x20 || c == 0x7f) {
        return Err("net/url: invalid control character in URL".to_owned());
    }
    if request && text.is_empty() {
        return Err("empty url".to_owned());
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
        return Ok(url);
    }
    let mut path = rest;
    if !rest.starts_with('/') {
        if !scheme.is_empty() {
            return Ok(url);
        }
        if request {
            return Err("invalid URI for request".to_owned());
        }
        if rest.split('/').next().is_some_and(|first| first.contains(':')) {
            return Err("first path segment in URL cannot contain colon".to_owned());
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
    Ok(url)
}

/// The scheme, which may be empty, and what follows its colon.
fn split_scheme(text: &str) -> Result<(&str, &str), String> {
    for (at, c) in text.char_indices() {
        match c {
            'a'..='z' | 'A'..='Z' => {}
            '0'..='9' | '+' | '-' | '.' if at > 0 => {}
            ':' if at == 0 => return Err("missing protocol scheme".to_owned()),
            ':' => return Ok((&text[..at], &text[at + 1..])),
            _ => break,
        }
    }
    Ok(("", text))
}

/// The host and port of an authority.
fn host(authority: &str) -> Result<String, String> {
    let host = match authority.rsplit_once('@') {
        Some((user, host)) => {
            let fits = |c: char| c.is_ascii_alphanumeric() || "-._:~!$&'()*+,;=%@".contains(c);
            if !user.chars().all(fits) {
                return Err("net/url: invalid userinfo".to_owned());
            }
            unescape(user, false)?;
            host
        }
        None => authority,
    };
    let port = if host.starts_with('[') {
        let end = host.rfind(']').ok_or("missing ']' in host")?;
        let address = host[1..end].split('%').next().unwrap_or_default();
        address.parse::<std::net::Ipv6Addr>().map_err(|_| format!("invalid host: {address:?}"))?;
        &host[end + 1..]
    } else {
        if let Some(bracket) = host.chars().find(|c| "[]".contains(*c)) {
            return Err(format!("invalid character {bracket:?} in host name"));
        }
        let (name, port) = host.split_at(host.find(':').unwrap_or(host.len()));
        if name.is_empty() && port.is_empty() && authority.is_empty() {
            return Ok(String::new());
        }
        port
    };
    if !valid_port(port) {
        return Err(format!("invalid port {port:?} after host"));
    }
    unescape(host, true)
}

/// Nothing, or a colon and digits.
fn valid_port(port: &str) -> bool {
    port.is_empty() || port.strip_prefix(':').is_some_and(|digits| digits.bytes().all(|c| c.is_ascii_digit()))
}

/// Decodes `%20`; why not, when an escape is broken or a host has what no host may have.
fn unescape(text: &str, host: bool) -> Result<String, String> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] != b'%' {
            let plain = bytes[at].is_ascii_alphanumeric() || b"-_.~!$&'()*+,;=:[]<>\"".contains(&bytes[at]);
            if host && bytes[at] < 0x80 && !plain {
                return Err(format!("invalid character {:?} in host name", char::from(bytes[at]).to_string()));
            }
            out.push(bytes[at]);
            at += 1;
            continue;
        }
        let written = &bytes[at..bytes.len().min(at + 3)];
        let byte = match written {
            [_, high, low] => char::from(*high).to_digit(16).zip(char::from(*low).to_digit(16)),
            _ => None,
        };
        let byte = byte.and_then(|(high, low)| u8::try_from(high * 16 + low).ok());
        match byte {
            Some(byte) if !host || byte >= 0x80 || byte == b'%' => out.push(byte),
            _ => return Err(format!("invalid URL escape {:?}", String::from_utf8_lossy(written))),
        }
        at += 3;
    }
    Ok(String::from_utf8_lossy(&out).into_owned())
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
        let decode = |text: &str| unescape(&text.replace('+', " "), false).ok();
        if let (Some(key), Some(value)) = (decode(key), decode(value)) {
            found.entry(key).or_default().push(Value::string(value));
        }
    }
    let entries = found.into_iter().map(|(key, values)| (Key::String(key.into()), Value::list(values)));
    Ok(Value::map(entries.collect::<Map>()))
}
