//! What templates read from gjson results, as values of a rendering.

use std::rc::Rc;

use carrick_go::float;
use serde_json::Value as Json;

use crate::{
    gjson::Found,
    heap::{Heap, Outcome},
    named::Named,
    needs::Needs,
    sprig,
    time::Time,
    value::{Elem, Str, Value},
};

impl Found {
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

    /// The time that a text in RFC 3339 stands for, else the year 1.
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
