//! What expressions read: JSON, of which only what is read becomes a value.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use crate::convert::{Integers, to_cel};
use crate::value::key::Key;
use crate::value::{Map, Outcome, Value};

/// Copying text up to this length is faster than looking it up.
const SHORT: usize = 64;

/// Values that are computed when they are asked for.
pub(crate) trait Lookup: std::fmt::Debug + Sync {
    /// The value of this name, if there is one.
    fn find(&self, name: &str) -> Option<Outcome>;
}

/// A variable, or a part of one.
#[derive(Debug, Clone)]
pub(crate) enum Input<'j> {
    /// A map whose values are computed when they are read.
    Lazy(&'j dyn Lookup),
    /// JSON that has not been needed as a value so far.
    Json(&'j Json, Integers),
    Value(Value),
}

impl Input<'_> {
    /// The field or element, if it is there and still JSON.
    pub fn child(&self, key: &Key) -> Option<Self> {
        let Self::Json(json, integers) = self else { return None };
        let found = match (*json, key) {
            (Json::Object(map), Key::String(name)) => map.get(&**name),
            (Json::Array(items), key) => key.position().and_then(|at| items.get(at)),
            _ => None,
        };
        found.map(|found| Self::Json(found, *integers))
    }

    /// A value of the same type; lists and maps out of JSON lack their content, where nothing was found anyway.
    pub fn hollow(&self) -> Value {
        match self {
            Self::Value(value) => value.clone(),
            Self::Json(Json::Array(_), _) => Value::list(Vec::new()),
            Self::Lazy(_) | Self::Json(Json::Object(_), _) => Value::map(Map::new()),
            Self::Json(json, integers) => to_cel(json, *integers),
        }
    }
}

/// What was converted in this evaluation: loops that read the same large part again and again pay for it once.
#[derive(Debug, Default)]
pub(crate) struct Converted {
    /// By the address in memory, which does not change while the JSON is borrowed.
    known: BTreeMap<(*const Json, Integers), Value>,
}

impl Converted {
    /// The value of an input.
    pub fn value(&mut self, input: Input<'_>) -> Value {
        let (json, integers) = match input {
            Input::Value(value) => return value,
            Input::Lazy(_) => return input.hollow(),
            Input::Json(json, integers) => (json, integers),
        };
        let small = match json {
            Json::String(text) => text.len() <= SHORT,
            Json::Array(items) => items.is_empty(),
            Json::Object(map) => map.is_empty(),
            _ => true,
        };
        if small {
            return to_cel(json, integers);
        }
        self.known.entry((std::ptr::from_ref(json), integers)).or_insert_with(|| to_cel(json, integers)).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::sync::Arc;

    #[test]
    fn what_is_large_is_converted_once() {
        let json = json!({"list": [1, 2, 3]});
        let list = Input::Json(&json, Integers::Kept).child(&Key::String("list".into())).unwrap();
        let mut converted = Converted::default();
        let (Value::List(first), Value::List(second)) = (converted.value(list.clone()), converted.value(list)) else {
            panic!("a list");
        };
        assert!(Arc::ptr_eq(&first, &second));
    }
}
