//! Modifiers (`@keys`, `@flatten:{"deep":true}`) and literals (`!"text"`).

use std::borrow::Cow;
use std::collections::HashMap;

use super::found::Found;
use super::kind::Kind;
use super::limits::Scope;
use super::pretty;
use super::scan;
use crate::go;

/// A modifier at work on some JSON.
type Modifier = for<'a> fn(&'a str, Call<'_>) -> Cow<'a, str>;

/// Finds what is at a path, as raw JSON. Modifiers are given it, because the evaluator of paths uses modifiers itself.
pub(super) type Find = fn(&str, &str, Scope<'_>) -> Option<String>;

/// How a modifier is called.
#[derive(Clone, Copy)]
pub(super) struct Call<'c> {
    argument: &'c str,
    scope: Scope<'c>,
    find: Find,
}

/// All modifiers.
pub(super) const MODIFIERS: [(&str, Modifier); 13] = [
    ("this", |json, _| json.into()),
    ("valid", |json, _| if is_valid(json) { json } else { "" }.into()),
    ("pretty", |json, call| pretty::pretty(json, call.argument, call.scope).into()),
    ("ugly", |json, _| pretty::ugly(json).into()),
    ("reverse", |json, _| reverse(json)),
    ("flatten", |json, call| flatten(json, flag(call.argument, "deep"), call.scope)),
    ("join", |json, call| join(json, flag(call.argument, "preserve"))),
    ("keys", |json, _| keys(json).into()),
    ("values", |json, _| values(json)),
    ("tostr", |json, _| quoted(json).into()),
    ("fromstr", |json, _| from_string(json)),
    ("group", |json, _| group(json).into()),
    ("dig", |json, call| dig(json, call).into()),
];

/// Whether there is a modifier of this name.
pub(super) fn is_known(name: &str) -> bool {
    MODIFIERS.iter().any(|(known, _)| *known == name)
}

/// The name in `@name:argument.rest`.
pub(super) fn name_of(path: &str) -> &str {
    let path = path.strip_prefix('@').unwrap_or(path);
    &path[..path.find(['.', '|', ':']).unwrap_or(path.len())]
}

/// Runs the modifier at the start of `path`; returns its result with what follows. None when there is no such modifier.
pub(super) fn run<'a, 'p>(
    json: &'a str,
    path: &'p str,
    scope: Scope<'_>,
    find: Find,
) -> Option<(Cow<'a, str>, &'p str)> {
    let name = name_of(path);
    let (_, modifier) = MODIFIERS.iter().find(|(known, _)| *known == name)?;
    let rest = &path[1 + name.len()..];
    let (argument, rest) = rest.strip_prefix(':').map_or(("", rest), split_argument);
    let result = modifier(json, Call { argument, scope, find });
    Some((if scope.work(result.len()) { result } else { "".into() }, rest))
}

/// An argument is a JSON value, or text up to the next pipe outside of brackets and strings.
fn split_argument(text: &str) -> (&str, &str) {
    let bytes = text.as_bytes();
    let mut at = 0;
    if matches!(bytes.first(), Some(b'{' | b'[' | b'"')) {
        at = scan::enclosed_end(text);
    } else {
        while at < bytes.len() && bytes[at] != b'|' {
            at += if matches!(bytes[at], b'{' | b'[' | b'"' | b'(') { scan::enclosed_end(&text[at..]) } else { 1 };
        }
    }
    text.split_at(at)
}

/// The literal at the start of `path` (`!true`, `!"text"`, `!{...}`), with what follows.
///
/// Numbers and strings reach to the next closing bracket that was not opened, or to the end.
pub(super) fn literal(path: &str) -> Option<(&str, &str)> {
    let text = path.get(1..)?;
    let end = match text.as_bytes().first()? {
        b'{' | b'[' | b'"' | b'+' | b'-' | b'0'..=b'9' => scan::balanced_end(text.as_bytes(), 0),
        _ => {
            let end = text.find(['.', '|']).unwrap_or(text.len());
            let name = text[..end].to_lowercase();
            matches!(name.as_str(), "true" | "false" | "null" | "nan" | "inf").then_some(end)?
        }
    };
    Some(text.split_at(end))
}

/// Whether text is valid JSON.
pub(super) fn is_valid(json: &str) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(json).is_ok()
}

/// Text as a JSON string.
pub(super) fn quoted(text: &str) -> String {
    go::to_string(text).unwrap_or_default()
}

/// Whether the argument, an object, has this option switched on.
fn flag(argument: &str, name: &str) -> bool {
    let argument = Found::of(argument);
    argument
        .members()
        .filter(|(key, _)| key.as_ref().is_some_and(|key| key.str() == name))
        .last()
        .is_some_and(|(_, value)| value.bool())
}

/// JSON texts with commas between them, inside brackets.
fn enclosed<T: AsRef<str>>(open: char, parts: impl IntoIterator<Item = T>, close: char) -> String {
    let mut out = String::from(open);
    for part in parts {
        if out.len() > 1 {
            out.push(',');
        }
        out.push_str(part.as_ref());
    }
    out.push(close);
    out
}

/// A key, if it has one, and a value as they are written.
fn member(key: Option<&Found<'_>>, value: &Found<'_>) -> String {
    key.map_or_else(|| value.raw().to_owned(), |key| format!("{}:{}", key.raw(), value.raw()))
}

fn reverse(json: &str) -> Cow<'_, str> {
    let found = Found::of(json);
    let (open, close) = match (found.is_array(), found.is_object()) {
        (true, _) => ('[', ']'),
        (_, true) => ('{', '}'),
        _ => return json.into(),
    };
    let mut members: Vec<String> = found.members().map(|(key, value)| member(key.as_ref(), &value)).collect();
    members.reverse();
    enclosed(open, members, close).into()
}

fn flatten<'a>(json: &'a str, deep: bool, scope: Scope<'_>) -> Cow<'a, str> {
    let (found, Some(scope)) = (Found::of(json), scope.deeper()) else { return "".into() };
    if !found.is_array() || !scope.work(json.len()) {
        return json.into();
    }
    let parts = found.members().map(|(_, value)| {
        let inner = match (value.is_array(), deep) {
            (false, _) => return value.raw().trim().to_owned(),
            (true, true) => flatten(value.raw(), true, scope),
            (true, false) => value.raw().into(),
        };
        unwrapped(&inner).trim().to_owned()
    });
    enclosed('[', parts.filter(|part| !part.is_empty()), ']').into()
}

/// Without the outer brackets.
fn unwrapped(json: &str) -> &str {
    let json = json.trim_matches(|c: char| c <= ' ');
    if json.len() >= 2 && json.starts_with(['[', '{']) && json.is_char_boundary(json.len() - 1) {
        &json[1..json.len() - 1]
    } else {
        json
    }
}

fn join(json: &str, preserve: bool) -> Cow<'_, str> {
    let found = Found::of(json);
    if !found.is_array() {
        return json.into();
    }
    let objects = found.members().map(|(_, value)| value).filter(Found::is_object);
    if preserve {
        let objects: Vec<String> = objects.map(|object| unwrapped(object.raw()).to_owned()).collect();
        return format!("{{{}}}", objects.join(",")).into();
    }
    let mut members: Vec<(String, String)> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for object in objects {
        for (key, value) in object.members() {
            let Some(key) = key else { continue };
            let place = *places.entry(key.str().into_owned()).or_insert(members.len());
            if place == members.len() {
                members.push((key.raw().to_owned(), String::new()));
            }
            value.raw().clone_into(&mut members[place].1);
        }
    }
    enclosed('{', members.iter().map(|(key, value)| format!("{key}:{value}")), '}').into()
}

/// The keys of an object; for each element of anything else a null.
fn keys(json: &str) -> String {
    let found = Found::of(json);
    let null = || "null".to_owned();
    match (found.exists(), found.kind()) {
        (false, _) => enclosed('[', [""; 0], ']'),
        (_, Kind::Json) => {
            enclosed('[', found.members().map(|(key, _)| key.map_or_else(null, |key| key.raw().to_owned())), ']')
        }
        _ => enclosed('[', [null()], ']'),
    }
}

fn values(json: &str) -> Cow<'_, str> {
    let found = Found::of(json);
    if found.is_array() {
        json.into()
    } else if found.is_object() {
        enclosed('[', found.members().map(|(_, value)| value.raw().to_owned()), ']').into()
    } else {
        format!("[{}]", found.raw()).into()
    }
}

fn from_string(json: &str) -> Cow<'_, str> {
    if is_valid(json) { Found::of(json).text().into() } else { "".into() }
}

/// `{"a":[1,2],"b":[3]}` becomes `[{"a":1,"b":3},{"a":2}]`.
fn group(json: &str) -> String {
    let found = Found::of(json);
    if !found.is_object() {
        return String::new();
    }
    let mut rows: Vec<Vec<String>> = Vec::new();
    for (key, column) in found.members().filter(|(_, value)| value.is_array()) {
        for (index, (_, value)) in column.members().enumerate() {
            if index == rows.len() {
                rows.push(Vec::new());
            }
            rows[index].push(member(key.as_ref(), &value));
        }
    }
    enclosed('[', rows.into_iter().map(|row| enclosed('{', row, '}')), ']')
}

/// What is at the path in this value and in everything below it.
fn dig(json: &str, call: Call<'_>) -> String {
    let mut all = Vec::new();
    descend(&Found::of(json), call, &mut all);
    enclosed('[', all, ']')
}

fn descend(value: &Found<'_>, call: Call<'_>, all: &mut Vec<String>) {
    let Some(scope) = call.scope.deeper() else { return };
    all.extend((call.find)(value.raw(), call.argument, scope));
    for (_, inner) in value.members() {
        descend(&inner, Call { scope, ..call }, all);
    }
}
