//! What one rendering may still spend, and the lists and maps it made.

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, HashMap},
    rc::Rc,
};

use carrick_go::regex::GoRegex;
use serde_json::Value as Json;

use crate::{
    limits,
    needs::Needs,
    value::{Elem, List, Map, Str, Value},
};

/// Why a function or printing failed; the evaluator adds the position.
#[derive(Clone, Debug)]
pub(crate) enum Failure {
    /// The values are wrong.
    Message(String),
    /// A limit was reached.
    Limit { what: &'static str, limit: usize },
}

impl From<String> for Failure {
    fn from(message: String) -> Failure {
        Failure::Message(message)
    }
}

impl From<&str> for Failure {
    fn from(message: &str) -> Failure {
        Failure::Message(message.to_owned())
    }
}

pub(crate) type Outcome<T> = Result<T, Failure>;

/// Rough cost of a list element and of a map entry.
const ITEM_BYTES: usize = 32;
const ENTRY_BYTES: usize = 96;

/// Budgets and memory of one rendering.
#[derive(Default)]
pub(crate) struct Heap {
    steps: Cell<usize>,
    memory: Cell<usize>,
    depth: Cell<usize>,
    made: RefCell<Vec<Value>>,
    /// Compiled expressions by Go text; compiling one costs far more than using it.
    pub(crate) regexes: RefCell<HashMap<Vec<u8>, Rc<GoRegex>>>,
}

/// Keeps one level of nesting taken while it lives.
pub(crate) struct Level<'h>(&'h Heap);

impl Drop for Level<'_> {
    fn drop(&mut self) {
        self.0.depth.set(self.0.depth.get() - 1);
    }
}

impl Drop for Heap {
    fn drop(&mut self) {
        // While `made` still holds every container, emptying one never drops another one, so nothing recurses.
        for value in self.made.borrow().iter() {
            match value {
                Value::List(list) => drop(list.clear()),
                Value::Map(map) | Value::Root(map) => drop(map.clear()),
                _ => {}
            }
        }
    }
}

impl Heap {
    /// Counts units of work.
    pub(crate) fn step(&self, units: usize) -> Outcome<()> {
        let steps = self.steps.get().saturating_add(units);
        self.steps.set(steps);
        if steps > limits::MAX_STEPS {
            return Err(Failure::Limit { what: "steps", limit: limits::MAX_STEPS });
        }
        Ok(())
    }

    /// Counts the work of reading this many bytes.
    pub(crate) fn scan(&self, bytes: usize) -> Outcome<()> {
        self.step(1 + bytes / 64)
    }

    /// Counts memory before it is taken.
    pub(crate) fn take(&self, bytes: usize) -> Outcome<()> {
        let memory = self.memory.get().saturating_add(bytes);
        self.memory.set(memory);
        if memory > limits::MAX_MEMORY {
            return Err(Failure::Limit { what: "bytes of memory", limit: limits::MAX_MEMORY });
        }
        Ok(())
    }

    /// Goes one level deeper.
    pub(crate) fn enter(&self) -> Outcome<Level<'_>> {
        if self.depth.get() >= limits::MAX_DEPTH {
            return Err(Failure::Limit { what: "levels of nesting", limit: limits::MAX_DEPTH });
        }
        self.depth.set(self.depth.get() + 1);
        Ok(Level(self))
    }

    /// Remembers a container until the rendering is over.
    pub(crate) fn keep(&self, value: Value) -> Value {
        self.made.borrow_mut().push(value.clone());
        value
    }

    /// Makes a list.
    pub(crate) fn list(&self, elem: Elem, items: Vec<Value>) -> Outcome<Value> {
        self.step(1 + items.len() / 8)?;
        self.take(ITEM_BYTES * (1 + items.len()))?;
        Ok(self.keep(Value::List(List::new(elem, false, items))))
    }

    /// Makes a list of `interface {}`.
    pub(crate) fn any_list(&self, items: Vec<Value>) -> Outcome<Value> {
        self.list(Elem::Any, items)
    }

    /// Makes a list of strings.
    pub(crate) fn str_list(&self, items: Vec<Str>) -> Outcome<Value> {
        self.take(items.iter().map(Str::len).sum())?;
        self.list(Elem::Str, items.into_iter().map(Value::Str).collect())
    }

    /// The nil slice of a type.
    pub(crate) fn nil_list(&self, elem: Elem) -> Value {
        self.keep(Value::List(List::new(elem, true, Vec::new())))
    }

    /// Makes a map and hands it out as such.
    pub(crate) fn new_map(&self, elem: Elem, entries: BTreeMap<Str, Value>) -> Outcome<Map> {
        self.step(1 + entries.len() / 8)?;
        self.take(ENTRY_BYTES * (1 + entries.len()))?;
        let map = Map::new(elem, false, entries);
        self.keep(Value::Map(map.clone()));
        Ok(map)
    }

    /// Makes a map of `interface {}`.
    pub(crate) fn any_map(&self, entries: BTreeMap<Str, Value>) -> Outcome<Value> {
        Ok(Value::Map(self.new_map(Elem::Any, entries)?))
    }

    /// The nil map of a type, which an absent value becomes where a map is expected.
    pub(crate) fn nil_map(&self, elem: Elem) -> Value {
        self.keep(Value::Map(Map::new(elem, true, BTreeMap::new())))
    }

    /// Writes one entry.
    pub(crate) fn insert(&self, map: &Map, key: Str, value: Value) -> Outcome<()> {
        if map.is_nil() {
            return Err("assignment to entry in nil map".into());
        }
        self.take(ENTRY_BYTES + key.len())?;
        map.insert(key, value);
        Ok(())
    }

    /// A string with its bytes counted.
    pub(crate) fn str(&self, bytes: impl Into<Str>) -> Outcome<Value> {
        let text = bytes.into();
        self.scan(text.len())?;
        self.take(text.len())?;
        Ok(Value::Str(text))
    }

    /// Starts a string whose size is watched while it grows.
    pub(crate) fn builder(&self) -> Builder<'_> {
        Builder { heap: self, bytes: Vec::new() }
    }

    /// Turns what is needed of JSON into values: integers become `int64`, other numbers `float64`. The data is the caller's, so
    /// it costs no budget.
    pub(crate) fn import(&self, json: &Json, needs: &Needs) -> Outcome<Value> {
        match json {
            Json::Object(fields) if !needs.whole => {
                let mut entries = BTreeMap::new();
                for (name, needs) in &needs.fields {
                    if let Some(value) = fields.get(name) {
                        entries.insert(Str::from(name.as_str()), self.import(value, needs)?);
                    }
                }
                Ok(self.keep(Value::Map(Map::new(Elem::Any, false, entries))))
            }
            _ => self.import_with(json, Heap::scalar),
        }
    }

    /// Turns JSON into values as Go's decoder does: all numbers become `float64`.
    pub(crate) fn import_floats(&self, json: &Json) -> Outcome<Value> {
        self.import_with(json, |json| match json {
            Json::Number(number) => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
            other => Heap::scalar(other),
        })
    }

    fn import_with(&self, json: &Json, scalar: fn(&Json) -> Value) -> Outcome<Value> {
        Ok(match json {
            Json::Array(items) => {
                let _level = self.enter()?;
                let items = items.iter().map(|item| self.import_with(item, scalar)).collect::<Outcome<_>>()?;
                self.keep(Value::List(List::new(Elem::Any, false, items)))
            }
            Json::Object(fields) => {
                let _level = self.enter()?;
                self.keep(Value::Map(self.import_map(fields, scalar)?))
            }
            _ => scalar(json),
        })
    }

    fn import_map(&self, fields: &serde_json::Map<String, Json>, scalar: fn(&Json) -> Value) -> Outcome<Map> {
        let entries = fields
            .iter()
            .map(|(key, value)| Ok((Str::from(key.as_str()), self.import_with(value, scalar)?)))
            .collect::<Outcome<_>>()?;
        Ok(Map::new(Elem::Any, false, entries))
    }

    /// Turns the fields of the root into values; what a mutation found becomes `Value`.
    pub(crate) fn import_fields(
        &self,
        fields: &serde_json::Map<String, Json>,
        needs: &Needs,
        is_map: bool,
        found: Option<Value>,
    ) -> Outcome<BTreeMap<Str, Value>> {
        let whole = Needs::all();
        let mut entries = BTreeMap::new();
        for (key, value) in fields {
            let value = match needs.fields.get(key) {
                _ if needs.whole => self.import(value, &whole)?,
                Some(needs) => self.import(value, needs)?,
                None if is_map => continue,
                // Nobody reads it, but messages list the names of all fields.
                None => Value::Nil,
            };
            entries.insert(Str::from(key.as_str()), value);
        }
        if let Some(found) = found {
            entries.insert("Value".into(), found);
        }
        Ok(entries)
    }

    /// A string, number or truth value of the data; integers become `int64`.
    pub(crate) fn scalar(json: &Json) -> Value {
        match json {
            Json::Bool(b) => Value::Bool(*b),
            Json::Number(number) => match number.as_i64() {
                Some(int) => Value::Int64(int),
                None => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
            },
            Json::String(text) => Value::Str(text.as_str().into()),
            _ => Value::Nil,
        }
    }
}

/// A growing string that counts its bytes.
pub(crate) struct Builder<'h> {
    heap: &'h Heap,
    bytes: Vec<u8>,
}

impl Builder<'_> {
    /// Makes room for about this many bytes, which already exist in another form.
    pub(crate) fn reserve(&mut self, bytes: usize) {
        self.bytes.reserve(bytes);
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) -> Outcome<()> {
        self.heap.take(bytes.len())?;
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    pub(crate) fn text(&mut self, text: &str) -> Outcome<()> {
        self.push(text.as_bytes())
    }

    pub(crate) fn char(&mut self, c: char) -> Outcome<()> {
        self.push(c.encode_utf8(&mut [0; 4]).as_bytes())
    }

    /// Appends the same byte many times.
    pub(crate) fn fill(&mut self, byte: u8, count: usize) -> Outcome<()> {
        self.heap.take(count)?;
        self.bytes.resize(self.bytes.len() + count, byte);
        Ok(())
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The string, with the work of writing it counted.
    pub(crate) fn finish(self) -> Outcome<Str> {
        self.heap.scan(self.bytes.len())?;
        Ok(self.bytes.into())
    }

    /// The string as a value.
    pub(crate) fn value(self) -> Outcome<Value> {
        Ok(Value::Str(self.finish()?))
    }
}
