//! Semantic versions.

use std::cmp::Ordering;
use std::sync::Arc;

use carrick_go::semver::Version;

use crate::error::{EvalError, failed};
use crate::signature::Row;
use crate::value::{Outcome, Value, overload};

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
    ("Semver.major(): int", |arguments, _| part("major", arguments, |version| version.major)),
    ("Semver.minor(): int", |arguments, _| part("minor", arguments, |version| version.minor)),
    ("Semver.patch(): int", |arguments, _| part("patch", arguments, |version| version.patch)),
];

fn parsed(name: &str, arguments: &[Value]) -> Result<Option<Version>, EvalError> {
    match arguments {
        [Value::String(text)] | [Value::String(text), Value::Bool(false)] => Ok(Version::parse_strict(text).ok()),
        [Value::String(text), Value::Bool(true)] => Ok(Version::parse_normalized(text).ok()),
        _ => Err(overload(name, arguments)),
    }
}

fn compare(name: &str, arguments: &[Value], result: impl Fn(Ordering) -> Value) -> Outcome {
    match arguments {
        [Value::Semver(a), Value::Semver(b)] => Ok(result(a.compare(b))),
        _ => Err(overload(name, arguments)),
    }
}

#[allow(clippy::cast_possible_wrap)] // the API server wraps as well
fn part(name: &str, arguments: &[Value], number: impl Fn(&Version) -> u64) -> Outcome {
    match arguments {
        [Value::Semver(version)] => Ok(Value::Int(number(version) as i64)),
        _ => Err(overload(name, arguments)),
    }
}
