//! Semantic versions.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::eval::{Outcome, overload};
use crate::expression::EvalError;
use crate::functions::failed;
use crate::signature::Row;
use crate::value::Value;

pub(crate) const ROWS: &[Row] = &[
    ("semver(string): Semver\nsemver(string, bool): Semver", |arguments, _| {
        let found = parsed("semver", arguments)?;
        found.map(|found| Value::Semver(Arc::new(found))).ok_or_else(|| failed("semver"))
    }),
    ("isSemver(string): bool\nisSemver(string, bool): bool", |arguments, _| {
        parsed("isSemver", arguments).map(|found| Value::Bool(found.is_some()))
    }),
    ("Semver.isGreaterThan(Semver): bool", |arguments, _| {
        compare("isGreaterThan", arguments, |order| Value::Bool(order.is_gt()))
    }),
    ("Semver.isLessThan(Semver): bool", |arguments, _| {
        compare("isLessThan", arguments, |order| Value::Bool(order.is_lt()))
    }),
    ("Semver.compareTo(Semver): int", |arguments, _| compare("compareTo", arguments, |order| Value::Int(order as i64))),
    ("Semver.major(): int", |arguments, _| part("major", arguments, 0)),
    ("Semver.minor(): int", |arguments, _| part("minor", arguments, 1)),
    ("Semver.patch(): int", |arguments, _| part("patch", arguments, 2)),
];

/// A version; build metadata plays no part in comparing.
#[derive(Debug)]
pub(crate) struct Semver {
    numbers: [u64; 3],
    pre: Vec<Identifier>,
}

/// A part of a pre-release; numbers come before names.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Identifier {
    Number(u64),
    Name(String),
}

impl Semver {
    pub fn cmp(&self, other: &Self) -> Ordering {
        // a version without pre-release is the later one
        let released = self.pre.is_empty().cmp(&other.pre.is_empty());
        self.numbers.cmp(&other.numbers).then(released).then_with(|| self.pre.cmp(&other.pre))
    }

    fn parse(text: &str) -> Option<Self> {
        let (text, build) = match text.split_once('+') {
            Some((text, build)) => (text, Some(build)),
            None => (text, None),
        };
        let (core, pre) = match text.split_once('-') {
            Some((core, pre)) => (core, Some(pre)),
            None => (text, None),
        };
        if build.is_some_and(|build| !build.split('.').all(is_name)) {
            return None;
        }
        let numbers: Vec<u64> = core.split('.').map(number).collect::<Option<_>>()?;
        let pre = match pre {
            Some(pre) => pre.split('.').map(identifier).collect::<Option<_>>()?,
            None => Vec::new(),
        };
        Some(Self { numbers: numbers.try_into().ok()?, pre })
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'-')
}

fn number(text: &str) -> Option<u64> {
    let plain = text == "0" || text.starts_with(|c: char| ('1'..='9').contains(&c));
    text.parse().ok().filter(|_| plain)
}

fn identifier(text: &str) -> Option<Identifier> {
    if !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit()) {
        return number(text).map(Identifier::Number);
    }
    is_name(text).then(|| Identifier::Name(text.to_owned()))
}

/// Drops a leading `v` and zeros, and fills up missing numbers.
fn normalize(text: &str) -> Option<String> {
    let text = text.strip_prefix('v').unwrap_or(text);
    let mut parts: Vec<String> = text
        .splitn(3, '.')
        .map(|part| {
            let stripped = part.trim_start_matches('0');
            match stripped.chars().next() {
                _ if part.len() < 2 => part.to_owned(),
                Some(c) if c.is_ascii_digit() => stripped.to_owned(),
                _ => format!("0{stripped}"),
            }
        })
        .collect();
    if parts.len() < 3 && parts.last().is_some_and(|last| last.contains(['+', '-'])) {
        return None;
    }
    parts.resize(3, "0".to_owned());
    Some(parts.join("."))
}

fn parsed(name: &str, arguments: &[Value]) -> Result<Option<Semver>, EvalError> {
    match arguments {
        [Value::String(text)] | [Value::String(text), Value::Bool(false)] => Ok(Semver::parse(text)),
        [Value::String(text), Value::Bool(true)] => Ok(normalize(text).and_then(|text| Semver::parse(&text))),
        _ => Err(overload(name, arguments)),
    }
}

fn compare(name: &str, arguments: &[Value], result: impl Fn(Ordering) -> Value) -> Outcome {
    match arguments {
        [Value::Semver(a), Value::Semver(b)] => Ok(result(a.cmp(b))),
        _ => Err(overload(name, arguments)),
    }
}

#[allow(clippy::cast_possible_wrap)] // the API server wraps as well
fn part(name: &str, arguments: &[Value], at: usize) -> Outcome {
    match arguments {
        [Value::Semver(version)] => Ok(Value::Int(version.numbers[at] as i64)),
        _ => Err(overload(name, arguments)),
    }
}
