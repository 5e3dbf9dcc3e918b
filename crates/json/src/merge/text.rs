//! Merge patches on JSON text: numbers stay as they are written, and keys keep their order.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// Documents that nest deeper are refused.
const MAX_DEPTH: usize = 200;

/// Why documents cannot be merged.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// One of them is no JSON.
    #[error("not JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// One of them nests too deeply.
    #[error("the document nests deeper than {MAX_DEPTH} levels")]
    TooDeep,
}

/// The merge patch that turns `from` into `to`; `{}` when they are equal.
///
/// Like [`super::diff`], with numbers compared as they are written. Keys come in the order of `to`, behind those that
/// vanished.
pub fn diff(from: &str, to: &str) -> Result<String, MergeError> {
    let (from, to): (&RawValue, &RawValue) = (serde_json::from_str(from)?, serde_json::from_str(to)?);
    if is_object(from) && is_object(to) {
        return Ok(diff_objects(from, to, 0)?.unwrap_or_else(|| "{}".to_owned()));
    }
    Ok(if equal(from, to, 0)? { "{}".to_owned() } else { to.get().to_owned() })
}

/// A document with a merge patch applied. Keys keep their places, new ones follow.
pub fn apply(target: &str, patch: &str) -> Result<String, MergeError> {
    let (target, patch): (&RawValue, &RawValue) = (serde_json::from_str(target)?, serde_json::from_str(patch)?);
    merged(Some(target), patch, 0)
}

fn is_object(json: &RawValue) -> bool {
    json.get().starts_with('{')
}

/// The patch between objects; none when they are equal.
fn diff_objects(from: &RawValue, to: &RawValue, depth: usize) -> Result<Option<String>, MergeError> {
    let (from, to) = (Members::of(from, depth)?, Members::of(to, depth)?);
    let mut patch = Writer::new();
    for (key, _) in from.list.iter().filter(|(key, _)| to.get(key).is_none()) {
        patch.member(key, "null");
    }
    for (key, new) in &to.list {
        match from.get(key) {
            Some(old) if is_object(old) && is_object(new) => {
                if let Some(inner) = diff_objects(old, new, depth + 1)? {
                    patch.member(key, &inner);
                }
            }
            Some(old) if equal(old, new, depth + 1)? => {}
            _ => patch.member(key, new.get()),
        }
    }
    Ok(patch.finish())
}

/// Whether two values are the same, whatever their whitespace, the order of their keys and the escapes in their strings.
fn equal(a: &RawValue, b: &RawValue, depth: usize) -> Result<bool, MergeError> {
    let (left, right) = (a.get(), b.get());
    if left == right {
        return Ok(true);
    }
    match (left.as_bytes().first(), right.as_bytes().first()) {
        (Some(b'{'), Some(b'{')) => {
            let (a, b) = (Members::of(a, depth)?, Members::of(b, depth)?);
            if a.list.len() != b.list.len() {
                return Ok(false);
            }
            for (key, value) in &a.list {
                match b.get(key) {
                    Some(other) if equal(value, other, depth + 1)? => {}
                    _ => return Ok(false),
                }
            }
            Ok(true)
        }
        (Some(b'['), Some(b'[')) => {
            if depth > MAX_DEPTH {
                return Err(MergeError::TooDeep);
            }
            let (a, b): (Vec<&RawValue>, Vec<&RawValue>) = (serde_json::from_str(left)?, serde_json::from_str(right)?);
            for (a, b) in a.iter().zip(&b) {
                if !equal(a, b, depth + 1)? {
                    return Ok(false);
                }
            }
            Ok(a.len() == b.len())
        }
        (Some(b'"'), Some(b'"')) => Ok(serde_json::from_str::<String>(left)? == serde_json::from_str::<String>(right)?),
        _ => Ok(false),
    }
}

fn merged(target: Option<&RawValue>, patch: &RawValue, depth: usize) -> Result<String, MergeError> {
    if !is_object(patch) {
        return Ok(patch.get().to_owned());
    }
    let target = match target.filter(|target| is_object(target)) {
        Some(target) => Members::of(target, depth)?,
        None => Members::default(),
    };
    let patch = Members::of(patch, depth)?;
    let mut out = Writer::new();
    for (key, old) in &target.list {
        match patch.get(key) {
            None => out.member(key, old.get()),
            Some(change) if change.get() == "null" => {}
            Some(change) => out.member(key, &merged(Some(old), change, depth + 1)?),
        }
    }
    for (key, change) in patch.list.iter().filter(|(key, change)| target.get(key).is_none() && change.get() != "null") {
        out.member(key, &merged(None, change, depth + 1)?);
    }
    Ok(out.finish().unwrap_or_else(|| "{}".to_owned()))
}

/// The members of an object in order; of duplicates only the last one.
#[derive(Default)]
struct Members<'a> {
    list: Vec<(Cow<'a, str>, &'a RawValue)>,
    /// Where in the list a key is.
    places: HashMap<Cow<'a, str>, usize>,
}

impl<'a> Members<'a> {
    fn of(object: &'a RawValue, depth: usize) -> Result<Self, MergeError> {
        if depth > MAX_DEPTH {
            return Err(MergeError::TooDeep);
        }
        Ok(serde_json::from_str(object.get())?)
    }

    fn get(&self, wanted: &str) -> Option<&'a RawValue> {
        self.places.get(wanted).map(|place| self.list[*place].1)
    }

    fn add(&mut self, key: Cow<'a, str>, value: &'a RawValue) {
        let place = *self.places.entry(key.clone()).or_insert(self.list.len());
        match self.list.get_mut(place) {
            Some(member) => member.1 = value,
            None => self.list.push((key, value)),
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Members::default();
                while let Some((key, value)) = map.next_entry::<Key<'de>, &RawValue>()? {
                    members.add(key.0, value);
                }
                Ok(members)
            }
        }
        deserializer.deserialize_map(Collect)
    }
}

/// A key, borrowed unless it has escapes.
#[derive(serde::Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

/// An object being written.
struct Writer(String);

impl Writer {
    fn new() -> Self {
        Self("{".to_owned())
    }

    fn member(&mut self, key: &str, raw: &str) {
        if self.0.len() > 1 {
            self.0.push(',');
        }
        // text always encodes
        self.0.push_str(&serde_json::to_string(key).unwrap_or_default());
        self.0.push(':');
        self.0.push_str(raw);
    }

    /// The object; none if nothing was written.
    fn finish(mut self) -> Option<String> {
        self.0.push('}');
        (self.0.len() > 2).then_some(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patches_keep_numbers_and_order() {
        for (from, to, patch) in [
            (r#"{"a":1}"#, r#"{ "a" : 1 }"#, "{}"),
            (r#"{"a":1}"#, r#"{"a":1.0}"#, r#"{"a":1.0}"#),
            (r#"{"a":"\u0041"}"#, r#"{"a":"A"}"#, "{}"),
            (r#"{"a":{"x":[1,{"y":2,"z":3}]}}"#, r#"{"a":{"x":[1, {"z":3,"y":2}]}}"#, "{}"),
            (
                r#"{"b":9007199254740993,"a":1}"#,
                r#"{"b":9007199254740992,"c":0.1234567890123456789}"#,
                r#"{"a":null,"b":9007199254740992,"c":0.1234567890123456789}"#,
            ),
            (r#"{"a":{"b":1,"c":2}}"#, r#"{"a":{"b":1,"c":3}}"#, r#"{"a":{"c":3}}"#),
            ("[1]", "[1]", "{}"),
            ("[1]", "[1.0]", "[1.0]"),
            ("{}", "5", "5"),
        ] {
            assert_eq!(diff(from, to).unwrap(), patch, "{from} -> {to}");
            if from.starts_with('{') {
                let got = apply(from, patch).unwrap();
                assert_eq!(diff(&got, to).unwrap(), "{}", "{from} + {patch}");
            }
        }
    }

    #[test]
    fn apply_keeps_what_the_patch_does_not_name() {
        for (target, patch, want) in [
            (
                r#"{"z":1.50,"a":{"q":12345678901234567890,"b":1},"l":[ 1 ]}"#,
                r#"{"a":{"b":null,"c":2.0}}"#,
                r#"{"z":1.50,"a":{"q":12345678901234567890,"c":2.0},"l":[ 1 ]}"#,
            ),
            (r#"{"a":"b"}"#, r#"["c"]"#, r#"["c"]"#),
            (r#"{"a":"foo"}"#, "null", "null"),
            (r#"{"e":null}"#, r#"{"a":1}"#, r#"{"e":null,"a":1}"#),
            ("[1,2]", r#"{"a":"b","c":null}"#, r#"{"a":"b"}"#),
            ("{}", r#"{"a":{"bb":{"ccc":null}}}"#, r#"{"a":{"bb":{}}}"#),
        ] {
            assert_eq!(apply(target, patch).unwrap(), want, "{target} + {patch}");
        }
    }

    #[test]
    fn broken_and_bottomless_documents_are_refused() {
        assert!(matches!(diff("{", "{}"), Err(MergeError::Json(_))));
        let deep = format!("{}1{}", r#"{"a":"#.repeat(5000), "}".repeat(5000));
        let other = deep.replace('1', "2");
        assert!(matches!(diff(&deep, &other), Err(MergeError::TooDeep)));
        assert!(matches!(apply(&deep, &other), Err(MergeError::TooDeep)));
        let lists = format!("[{}1{}]", "[".repeat(5000), "]".repeat(5000));
        assert!(matches!(diff(&lists, &lists.replace('1', "2")), Err(MergeError::TooDeep)));
    }
}
