//! The data of a rendering. What a template reads of it is mostly a few strings, so the rest is not converted before it is needed.

use std::{cell::Cell, collections::BTreeMap, rc::Rc};

use serde_json::{Map as Fields, Value as Json};

use crate::{
    gjson::{Found, Get},
    heap::{Heap, Outcome},
    needs::Needs,
    value::{Elem, Map, Value},
};

/// What the data at the root is.
#[derive(Clone, Copy)]
pub(crate) enum Data<'d> {
    /// A struct with these fields.
    Fields(&'d Fields<String, Json>),
    /// Any value.
    Value(&'d Json),
    /// A struct or a map with these fields and `Value`, a gjson result.
    Mutation { value: Option<&'d Json>, get: Get, fields: &'d Fields<String, Json>, is_map: bool },
}

/// The field that what a mutation found takes.
const VALUE: &str = "Value";

/// The value at the root, and where its fields come from until they are filled in.
pub(super) struct Root<'d> {
    pub(super) value: Value,
    needs: &'d Needs,
    fields: Cell<Option<&'d Fields<String, Json>>>,
    found: Option<Value>,
    is_map: bool,
}

impl<'d> Root<'d> {
    pub(super) fn new(heap: &Heap, needs: &'d Needs, data: Data<'d>) -> Outcome<Root<'d>> {
        let (fields, found, is_map) = match data {
            Data::Fields(fields) => (fields, None, false),
            Data::Value(Json::Object(fields)) => (fields, None, true),
            Data::Value(json) => {
                // At the root a null is no value at all.
                let value = concrete(heap.import(json, needs)?);
                return Ok(Root { value, needs, fields: Cell::new(None), found: None, is_map: false });
            }
            Data::Mutation { value, get, fields, is_map } => {
                (fields, Some(Value::Found(Rc::new(Found::new(value.cloned(), get)))), is_map)
            }
        };
        let map = Map::new(Elem::Any, false, BTreeMap::new());
        let value = heap.keep(if is_map { Value::Map(map) } else { Value::Root(map) });
        let root = Root { value, needs, fields: Cell::new(Some(fields)), found, is_map };
        if needs.whole {
            root.fill(heap)?;
        }
        Ok(root)
    }

    /// Whether a value is the root, not filled in yet.
    pub(super) fn is(&self, value: &Value) -> bool {
        match (&self.value, value) {
            (Value::Map(root), Value::Map(map)) | (Value::Root(root), Value::Root(map)) => {
                self.fields.get().is_some() && root.is(map)
            }
            _ => false,
        }
    }

    /// What the path of a mutation led to, if that is the field.
    pub(super) fn found(&self, field: &str) -> Option<Value> {
        self.found.clone().filter(|_| field == VALUE)
    }

    /// The string, number or truth value at the end of a path, if there is one that nothing can have changed.
    pub(super) fn scalar(&self, path: &[String]) -> Option<Value> {
        let (first, rest) = path.split_first()?;
        if first == VALUE && self.found.is_some() {
            return None;
        }
        let mut json = self.fields.get()?.get(first)?;
        let mut needs = self.needs.fields.get(first)?;
        for name in rest {
            // What is passed on as a whole may be changed by `set` and similar functions.
            if needs.whole {
                return None;
            }
            json = json.get(name)?;
            needs = needs.fields.get(name)?;
        }
        match json {
            Json::Array(_) | Json::Object(_) => None,
            scalar => Some(Heap::scalar(scalar)),
        }
    }

    /// Puts the fields that are needed into the value.
    pub(super) fn fill(&self, heap: &Heap) -> Outcome<()> {
        let Some(fields) = self.fields.take() else { return Ok(()) };
        let entries = heap.import_fields(fields, self.needs, self.is_map, self.found.clone())?;
        if let Value::Map(map) | Value::Root(map) = &self.value {
            map.fill(entries);
        }
        Ok(())
    }
}

/// What a pipeline makes of a value: a nil interface becomes no value.
pub(super) fn concrete(value: Value) -> Value {
    match value {
        Value::Nil => Value::Missing,
        other => other,
    }
}
