//! What single values may be: enums, bounds, sizes, patterns, formats.

use crate::Schema;
use serde_json::Value;

use super::finding::Finding;
use crate::evolution::class::Class::{Compatible, Tightening};
use crate::evolution::node::{self, Kind, flag};
use crate::evolution::step::Step;

/// Formats that the API server checks. All others are comments.
const CHECKED: [&str; 22] = [
    "bsonobjectid",
    "byte",
    "cidr",
    "creditcard",
    "date",
    "date-time",
    "datetime",
    "duration",
    "email",
    "hexcolor",
    "hostname",
    "ipv4",
    "ipv6",
    "isbn",
    "isbn10",
    "isbn13",
    "mac",
    "rgbcolor",
    "ssn",
    "uri",
    "k8s-short-name",
    "k8s-long-name",
];

/// Keywords about sizes, and whether they say how much there may be at most.
const SIZES: [(&[&str], bool); 6] = [
    (&["minLength"], false),
    (&["maxLength"], true),
    (&["minItems"], false),
    (&["maxItems"], true),
    (&["minProperties"], false),
    (&["maxProperties"], true),
];

/// Compares what two nodes say about their value alone.
pub(super) fn compare(old: &Value, new: &Value, at: &[Step]) -> Vec<Finding> {
    if let Some(findings) = listed(old, new, at) {
        return findings;
    }
    let mut findings = Vec::new();
    let mut report = |keys, class, reason: String| findings.push(Finding::new(at, class, reason).of(keys));
    for bound in [LOWEST, HIGHEST] {
        match (bound.of(old), bound.of(new)) {
            (before, after) if before == after => {}
            (Some(before), None) => report(bound.keys, Compatible, format!("{} {before} goes away", bound.name)),
            (None, Some(after)) => report(bound.keys, Tightening, format!("{} {after} is new", bound.name)),
            (Some(before), Some(after)) => {
                let class = if bound.is_within(before, after) { Compatible } else { Tightening };
                report(bound.keys, class, format!("{} changes from {before} to {after}", bound.name));
            }
            (None, None) => {}
        }
    }
    for (keys, is_upper) in SIZES {
        let name = keys[0];
        let count = |schema: &Value| schema[name].as_u64().filter(|count| is_upper || *count > 0);
        match (count(old), count(new)) {
            (before, after) if before == after => {}
            (Some(before), None) => report(keys, Compatible, format!("{name} {before} goes away")),
            (None, Some(after))
                if name == "maxProperties" && most_fields(old, new).is_some_and(|most| most <= after) =>
            {
                report(keys, Compatible, format!("{name} {after} is new, and there are no more fields"));
            }
            (None, Some(after)) => report(keys, Tightening, format!("{name} {after} is new")),
            (Some(before), Some(after)) => {
                let class = if (before < after) == is_upper { Compatible } else { Tightening };
                report(keys, class, format!("{name} changes from {before} to {after}"));
            }
            (None, None) => {}
        }
    }
    match (old["multipleOf"].as_f64(), new["multipleOf"].as_f64()) {
        (before, after) if before == after => {}
        (Some(before), None) => report(&["multipleOf"], Compatible, format!("multipleOf {before} goes away")),
        (None, Some(after)) if after.to_bits() == 1.0_f64.to_bits() && Kind::of(old) == Kind::Integer => {
            report(&["multipleOf"], Compatible, "multipleOf 1 is new, which all whole numbers are".to_owned());
        }
        (None, Some(after)) => report(&["multipleOf"], Tightening, format!("multipleOf {after} is new")),
        (Some(before), Some(after)) => {
            let fits = after > 0.0 && (before / after).fract() == 0.0;
            let class = if fits { Compatible } else { Tightening };
            report(&["multipleOf"], class, format!("multipleOf changes from {before} to {after}"));
        }
        (None, None) => {}
    }
    match (flag(old, "uniqueItems"), flag(new, "uniqueItems")) {
        (false, true) => report(&["uniqueItems"], Tightening, "no two items may be equal now".to_owned()),
        (true, false) => report(&["uniqueItems"], Compatible, "items may be equal now".to_owned()),
        _ => {}
    }
    let pattern = |schema: &Value| schema["pattern"].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    match (pattern(old), pattern(new)) {
        (before, after) if before == after => {}
        (Some(before), None) => report(&["pattern"], Compatible, format!("the pattern {before:?} goes away")),
        (None, Some(after)) => report(&["pattern"], Tightening, format!("the pattern {after:?} is new")),
        (Some(before), Some(after)) => {
            report(&["pattern"], Tightening, format!("the pattern changes from {before:?} to {after:?}"));
        }
        (None, None) => {}
    }
    format(old, new, &mut |class, reason| report(&["format"], class, reason));
    if let Some(values) = new["enum"].as_array().filter(|values| !values.is_empty()) {
        let values: Vec<String> = values.iter().map(ToString::to_string).collect();
        report(
            &["enum"],
            Tightening,
            format!("only {} {} allowed now", values.join(", "), if values.len() == 1 { "is" } else { "are" }),
        );
    }
    findings
}

/// How many fields an object can have at most, where all are named.
fn most_fields(old: &Value, new: &Value) -> Option<u64> {
    let closed = node::rest(old).is_none() && node::rest(new).is_none();
    closed.then(|| node::fields(old, new).len() as u64)
}

fn format(old: &Value, new: &Value, report: &mut impl FnMut(crate::evolution::class::Class, String)) {
    let name = |schema: &Value| schema["format"].as_str().unwrap_or_default().to_owned();
    let (before, after) = (name(old), name(new));
    if before == after {
        return;
    }
    let is_text = matches!(Kind::of(new), Kind::String | Kind::IntOrString | Kind::Any);
    let checked = is_text && (CHECKED.contains(&after.as_str()) || after.starts_with("uuid"));
    // Whole numbers are checked against the range of their format.
    let narrow = after == "int32" && matches!(Kind::of(new), Kind::Integer | Kind::Number | Kind::IntOrString);
    let class = if checked || narrow { Tightening } else { Compatible };
    match (before.as_str(), after.as_str()) {
        ("", after) => report(class, format!("the format {after} is new")),
        (before, "") => report(class, format!("the format {before} goes away")),
        (before, after) => report(class, format!("the format changes from {before} to {after}")),
    }
}

/// Everything that is said about single values.
const SCALAR: &[&str] = &[
    "type",
    "x-kubernetes-int-or-string",
    "enum",
    "minimum",
    "exclusiveMinimum",
    "maximum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "format",
];

/// With a list of allowed values, each is tried; nothing else about the value matters then. `None` without a list.
fn listed(old: &Value, new: &Value, at: &[Step]) -> Option<Vec<Finding>> {
    let before = old["enum"].as_array().filter(|values| !values.is_empty())?;
    if before.iter().any(|value| value.is_object() || value.is_array()) && old != new {
        // What is nested may be changed as well as refused.
        let reason = "the rules for one of a few objects or lists change".to_owned();
        return Some(vec![Finding::new(at, Tightening, reason).with(before.iter().cloned())]);
    }
    // Rules and alternatives are compared elsewhere, null too.
    let plain = |schema: &Value| {
        let mut schema = schema.clone();
        for key in ["x-kubernetes-validations", "allOf", "anyOf", "oneOf", "not", "default"] {
            schema.as_object_mut()?.remove(key);
        }
        Schema::part(&schema).ok()
    };
    let (was, is) = (plain(old)?, plain(new)?);
    let valid = |schema: &Schema, value: &Value| schema.validate(value, None).is_empty();
    let allowed: Vec<&Value> = before.iter().filter(|value| !value.is_null() && valid(&was, value)).collect();
    let gone: Vec<&Value> = allowed.iter().copied().filter(|value| !valid(&is, value)).collect();
    if !gone.is_empty() {
        let words: Vec<String> = gone.iter().map(ToString::to_string).collect();
        let verb = if gone.len() == 1 { "is" } else { "are" };
        let reason = format!("{} {verb} not allowed any more", words.join(", "));
        return Some(vec![Finding::new(at, Tightening, reason).with(gone.into_iter().cloned()).of(SCALAR)]);
    }
    let more: Vec<String> = match new["enum"].as_array() {
        Some(after) => after.iter().filter(|value| !before.contains(value)).map(ToString::to_string).collect(),
        None => return Some(vec![Finding::new(at, Compatible, "every value is allowed now")]),
    };
    let reason = format!("{} {} allowed too", more.join(", "), if more.len() == 1 { "is" } else { "are" });
    let more = (!more.is_empty()).then(|| Finding::new(at, Compatible, reason));
    Some(more.into_iter().collect())
}

/// The lower or the upper end of a range.
struct Bound {
    name: &'static str,
    exclusive: &'static str,
    keys: &'static [&'static str],
    /// -1 for the lower end, whose larger values are stricter.
    sign: f64,
}

const LOWEST: Bound =
    Bound { name: "minimum", exclusive: "exclusiveMinimum", keys: &["minimum", "exclusiveMinimum"], sign: -1.0 };
const HIGHEST: Bound =
    Bound { name: "maximum", exclusive: "exclusiveMaximum", keys: &["maximum", "exclusiveMaximum"], sign: 1.0 };

impl Bound {
    /// The end, and whether it is outside. Whole numbers beyond an excluded end begin with the next one.
    fn of(&self, schema: &Value) -> Option<End> {
        let end = schema[self.name].as_f64()?;
        let excluded = flag(schema, self.exclusive);
        if excluded && Kind::of(schema) == Kind::Integer && end.fract() == 0.0 {
            return Some(End { end: end - self.sign, excluded: false });
        }
        Some(End { end, excluded })
    }

    /// Whether all values within one end are within another.
    fn is_within(&self, before: End, after: End) -> bool {
        let (before_end, after_end) = (before.end * self.sign, after.end * self.sign);
        before_end < after_end || (before.end.to_bits() == after.end.to_bits() && (before.excluded || !after.excluded))
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct End {
    end: f64,
    excluded: bool,
}

impl std::fmt::Display for End {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}", self.end, if self.excluded { " (excluded)" } else { "" })
    }
}
