//! What a path of a mutation led to: a gjson result, which templates read with its methods.

use std::rc::Rc;

use carrick_go::float;
use serde_json::Value as Json;

use crate::{
    heap::{Heap, Outcome},
    named::Named,
    needs::Needs,
    sprig,
    time::Time,
    value::{Elem, Str, Value},
};

/// Reads a gjson path below a value, for `.Value.Get "path"`; none if nothing is there.
pub type Get = fn(&Json, &str) -> Option<Json>;

/// A gjson `Result`.
pub(crate) struct Found {
    /// None if the path led to nothing.
    json: Option<Json>,
    get: Get,
}

/// A gjson `Type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Null = 0,
    False = 1,
    Number = 2,
    String = 3,
    True = 4,
    Json = 5,
}

impl Kind {
    /// The type with a number.
    pub(crate) fn of(number: i64) -> Option<Kind> {
        use Kind::{False, Json, Null, Number, String, True};
        [Null, False, Number, String, True, Json].into_iter().find(|kind| *kind as i64 == number)
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Null => "Null",
            Kind::False => "False",
            Kind::Number => "Number",
            Kind::String => "String",
            Kind::True => "True",
            Kind::Json => "JSON",
        }
    }
}

impl Found {
    pub(crate) fn new(json: Option<Json>, get: Get) -> Found {
        Found { json, get }
    }

    /// The result of a path that led to nothing.
    pub(crate) fn nothing() -> Found {
        Found { json: None, get: |_, _| None }
    }

    pub(crate) fn kind(&self) -> Kind {
        match &self.json {
            None | Some(Json::Null) => Kind::Null,
            Some(Json::Bool(false)) => Kind::False,
            Some(Json::Bool(true)) => Kind::True,
            Some(Json::Number(_)) => Kind::Number,
            Some(Json::String(_)) => Kind::String,
            Some(Json::Array(_) | Json::Object(_)) => Kind::Json,
        }
    }

    pub(crate) fn exists(&self) -> bool {
        self.json.is_some()
    }

    pub(crate) fn is_object(&self) -> bool {
        matches!(self.json, Some(Json::Object(_)))
    }

    pub(crate) fn is_array(&self) -> bool {
        matches!(self.json, Some(Json::Array(_)))
    }

    /// The JSON, as Go writes it.
    pub(crate) fn raw(&self, heap: &Heap) -> Outcome<Str> {
        match &self.json {
            None => Ok("".into()),
            Some(json) => sprig::json(heap, &heap.import(json, &Needs::all())?),
        }
    }

    /// What printing shows: strings without quotes, numbers without exponent, null as nothing.
    pub(crate) fn text(&self, heap: &Heap) -> Outcome<Str> {
        match &self.json {
            None | Some(Json::Null) => Ok("".into()),
            Some(Json::String(text)) => {
                heap.take(text.len())?;
                Ok(text.as_str().into())
            }
            Some(Json::Number(number)) if number.as_i64().is_none() => {
                Ok(float::format(number.as_f64().unwrap_or_default(), 'f', None).into())
            }
            Some(_) => self.raw(heap),
        }
    }

    /// The string that it is, else nothing.
    pub(crate) fn str(&self, heap: &Heap) -> Outcome<Str> {
        match &self.json {
            Some(Json::String(_)) => self.text(heap),
            _ => Ok("".into()),
        }
    }

    /// The number that it is, else 0.
    pub(crate) fn num(&self) -> f64 {
        match &self.json {
            Some(Json::Number(number)) => number.as_f64().unwrap_or_default(),
            _ => 0.0,
        }
    }

    pub(crate) fn bool(&self) -> bool {
        match &self.json {
            Some(Json::Bool(b)) => *b,
            Some(Json::Number(_)) => self.num() != 0.0,
            Some(Json::String(text)) => matches!(text.to_lowercase().as_str(), "1" | "t" | "true"),
            _ => false,
        }
    }

    pub(crate) fn int(&self) -> i64 {
        match &self.json {
            Some(Json::Bool(b)) => i64::from(*b),
            Some(Json::String(text)) => match text.strip_prefix('-') {
                Some(digits) => digits_of(digits).unwrap_or(0).cast_signed().wrapping_neg(),
                None => digits_of(text).unwrap_or(0).cast_signed(),
            },
            Some(Json::Number(number)) => number.as_i64().unwrap_or_else(|| truncated(self.num())),
            _ => 0,
        }
    }

    pub(crate) fn uint(&self) -> u64 {
        match &self.json {
            Some(Json::String(text)) => digits_of(text).unwrap_or(0),
            _ => self.int().cast_unsigned(),
        }
    }

    pub(crate) fn float(&self) -> f64 {
        match &self.json {
            Some(Json::Bool(b)) => f64::from(u8::from(*b)),
            Some(Json::String(text)) => text.parse().unwrap_or(0.0),
            _ => self.num(),
        }
    }

    /// The time that a text in RFC 3339 tells, else the year 1.
    pub(crate) fn time(&self, heap: &Heap) -> Outcome<Time> {
        let text = self.text(heap)?;
        heap.step(text.len())?;
        Ok(Time::parse(b"2006-01-02T15:04:05Z07:00", text.as_bytes()).unwrap_or_else(|_| Time::zero()))
    }

    /// A value of the usual types; numbers are floats.
    pub(crate) fn value(&self, heap: &Heap) -> Outcome<Value> {
        self.json.as_ref().map_or(Ok(Value::Nil), |json| heap.import_floats(json))
    }

    /// The fields of the struct that it is in Go, for its JSON; the position in the original text is unknown.
    pub(crate) fn fields(&self, heap: &Heap) -> Outcome<[(&'static str, Value); 6]> {
        Ok([
            ("Type", Value::Named(Named::Kind(self.kind()))),
            ("Raw", Value::Str(self.raw(heap)?)),
            ("Str", Value::Str(self.str(heap)?)),
            ("Num", Value::Float(self.num())),
            ("Index", Value::Int(0)),
            ("Indexes", Value::Nil),
        ])
    }

    /// The elements; a single value is a list of one.
    pub(crate) fn array(&self, heap: &Heap) -> Outcome<Value> {
        let items: &[Json] = match &self.json {
            None | Some(Json::Null) => &[],
            Some(Json::Array(items)) => items,
            Some(single) => std::slice::from_ref(single),
        };
        let items = items.iter().map(|item| self.below(heap, item)).collect::<Outcome<_>>()?;
        heap.list(Elem::Found, items)
    }

    /// The entries of an object.
    pub(crate) fn map(&self, heap: &Heap) -> Outcome<Value> {
        if self.is_array() {
            return Ok(heap.nil_map(Elem::Found));
        }
        let mut entries = std::collections::BTreeMap::new();
        if let Some(Json::Object(fields)) = &self.json {
            for (key, item) in fields {
                entries.insert(Str::from(key.as_str()), self.below(heap, item)?);
            }
        }
        Ok(Value::Map(heap.new_map(Elem::Found, entries)?))
    }

    /// What a path below leads to.
    pub(crate) fn get(&self, heap: &Heap, path: &str) -> Outcome<Value> {
        let Some(json) = &self.json else { return Ok(Value::Found(Rc::new(Found::nothing()))) };
        // A path may visit everything below several times.
        count(heap, json, 1 + path.len() / 4)?;
        let found = (self.get)(json, path);
        if let Some(json) = &found {
            count(heap, json, 1)?;
        }
        Ok(Value::Found(Rc::new(Found::new(found, self.get))))
    }

    fn below(&self, heap: &Heap, json: &Json) -> Outcome<Value> {
        count(heap, json, 1)?;
        Ok(Value::Found(Rc::new(Found::new(Some(json.clone()), self.get))))
    }
}

/// Counts the work and the memory of copying a value.
fn count(heap: &Heap, json: &Json, factor: usize) -> Outcome<()> {
    let _level = heap.enter()?;
    heap.step(factor)?;
    heap.take(96)?;
    match json {
        Json::String(text) => heap.take(text.len()),
        Json::Array(items) => items.iter().try_for_each(|item| count(heap, item, factor)),
        Json::Object(fields) => fields.iter().try_for_each(|(key, item)| {
            heap.take(key.len())?;
            count(heap, item, factor)
        }),
        _ => Ok(()),
    }
}

/// A number of decimal digits only; what is too large wraps, as it does in gjson.
fn digits_of(text: &str) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.bytes().try_fold(0_u64, |number, byte| {
        byte.is_ascii_digit().then(|| number.wrapping_mul(10).wrapping_add(u64::from(byte - b'0')))
    })
}

/// A float as integer. Larger ones are written with digits only up to 1e21, and are then read as such.
#[expect(clippy::cast_possible_truncation, reason = "fractions are cut off")]
fn truncated(number: f64) -> i64 {
    const LARGEST_EXACT: f64 = 9_007_199_254_740_991.0;
    if number.abs() <= LARGEST_EXACT {
        return number as i64;
    }
    let text = float::json(number);
    match text.strip_prefix('-') {
        Some(digits) => digits_of(digits).map(|n| n.cast_signed().wrapping_neg()),
        None => digits_of(&text).map(u64::cast_signed),
    }
    .unwrap_or(i64::MIN)
}
