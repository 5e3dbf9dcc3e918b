//! Go-typed values that a rendering works on.
//!
//! Lists and maps are shared by reference, as in Go: `set $d "k" 1` is seen through every variable that holds the map.
//! Only the [`Heap`](crate::heap::Heap) makes them, which frees them one by one at the end, so that neither cycles nor deep
//! nesting can leak or exhaust the stack.

use std::{
    borrow::{Borrow, Cow},
    cell::{Ref, RefCell},
    collections::BTreeMap,
    rc::Rc,
    sync::Arc,
};

use carrick_go::semver::Version;

use crate::{gjson::Found, named::Named, time::Time};

/// A Go string: bytes that are usually, but not always, UTF-8. Compiled templates hold constants of them, which threads share.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Str(Arc<[u8]>);

impl Str {
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The text, with the replacement character for bytes that are not UTF-8.
    pub(crate) fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.0)
    }
}

/// Lets maps be searched by plain bytes.
impl Borrow<[u8]> for Str {
    fn borrow(&self) -> &[u8] {
        &self.0
    }
}

impl From<&[u8]> for Str {
    fn from(bytes: &[u8]) -> Str {
        Str(bytes.into())
    }
}

impl From<Vec<u8>> for Str {
    fn from(bytes: Vec<u8>) -> Str {
        Str(bytes.into())
    }
}

impl From<&str> for Str {
    fn from(text: &str) -> Str {
        Str(text.as_bytes().into())
    }
}

impl From<String> for Str {
    fn from(text: String) -> Str {
        Str(text.into_bytes().into())
    }
}

/// Element type of a list or map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Elem {
    /// `interface {}`
    Any,
    /// `string`
    Str,
    /// `int`
    Int,
    /// `[]interface {}`
    AnyList,
    /// `gjson.Result`
    Found,
}

impl Elem {
    pub(crate) fn type_name(self) -> &'static str {
        match self {
            Elem::Any => "interface {}",
            Elem::Str => "string",
            Elem::Int => "int",
            Elem::AnyList => "[]interface {}",
            Elem::Found => "gjson.Result",
        }
    }

    /// Go's zero value of the type, which indexing a map yields for a missing key.
    pub(crate) fn zero(self) -> Value {
        match self {
            Elem::Any | Elem::AnyList => Value::Nil,
            Elem::Str => Value::from(""),
            Elem::Int => Value::Int(0),
            Elem::Found => Value::Found(Rc::new(Found::nothing())),
        }
    }
}

/// A Go slice. Its elements never change after it was made.
#[derive(Clone)]
pub(crate) struct List(Rc<ListData>);

struct ListData {
    elem: Elem,
    /// A nil slice prints and behaves like an empty one, except as JSON.
    nil: bool,
    items: RefCell<Vec<Value>>,
}

impl List {
    pub(crate) fn new(elem: Elem, nil: bool, items: Vec<Value>) -> List {
        List(Rc::new(ListData { elem, nil, items: RefCell::new(items) }))
    }

    pub(crate) fn elem(&self) -> Elem {
        self.0.elem
    }

    pub(crate) fn is_nil(&self) -> bool {
        self.0.nil
    }

    pub(crate) fn items(&self) -> Ref<'_, Vec<Value>> {
        self.0.items.borrow()
    }

    pub(crate) fn len(&self) -> usize {
        self.items().len()
    }

    /// Takes the elements out, when the rendering is over.
    pub(crate) fn clear(&self) -> Vec<Value> {
        self.0.items.take()
    }
}

/// A Go map with string keys.
#[derive(Clone)]
pub(crate) struct Map(Rc<MapData>);

struct MapData {
    elem: Elem,
    /// Writing to a nil map fails.
    nil: bool,
    entries: RefCell<BTreeMap<Str, Value>>,
}

impl Map {
    pub(crate) fn new(elem: Elem, nil: bool, entries: BTreeMap<Str, Value>) -> Map {
        Map(Rc::new(MapData { elem, nil, entries: RefCell::new(entries) }))
    }

    pub(crate) fn elem(&self) -> Elem {
        self.0.elem
    }

    pub(crate) fn is_nil(&self) -> bool {
        self.0.nil
    }

    pub(crate) fn entries(&self) -> Ref<'_, BTreeMap<Str, Value>> {
        self.0.entries.borrow()
    }

    pub(crate) fn get(&self, key: &Str) -> Option<Value> {
        self.entries().get(key).cloned()
    }

    /// The value of a key that a template names.
    pub(crate) fn field(&self, name: &str) -> Option<Value> {
        self.entries().get(name.as_bytes()).cloned()
    }

    pub(crate) fn len(&self) -> usize {
        self.entries().len()
    }

    pub(crate) fn insert(&self, key: Str, value: Value) {
        self.0.entries.borrow_mut().insert(key, value);
    }

    pub(crate) fn remove(&self, key: &Str) {
        self.0.entries.borrow_mut().remove(key);
    }

    /// Puts all entries in at once.
    pub(crate) fn fill(&self, entries: BTreeMap<Str, Value>) {
        *self.0.entries.borrow_mut() = entries;
    }

    /// Whether this is the same map, not one that is equal.
    pub(crate) fn is(&self, other: &Map) -> bool {
        Rc::ptr_eq(&self.0, &other.0)
    }

    /// Takes the entries out, when the rendering is over.
    pub(crate) fn clear(&self) -> BTreeMap<Str, Value> {
        self.0.entries.take()
    }
}

/// Unsigned types that a template can meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Uint {
    /// A byte of a string.
    U8,
    /// A part of a version.
    U64,
}

/// A value and its Go type.
#[derive(Clone)]
pub(crate) enum Value {
    /// No value at all, as a missing key yields it (an invalid `reflect.Value`).
    Missing,
    /// A nil of type `interface {}`.
    Nil,
    Bool(bool),
    /// `int`: constants, indices, lengths.
    Int(i64),
    /// `int64`: integers of the data, results of integer arithmetic.
    Int64(i64),
    Uint(Uint, u64),
    Float(f64),
    /// `complex128`, which only constants can be.
    Complex(f64, f64),
    Str(Str),
    List(List),
    Map(Map),
    /// The struct at the root of the data; its fields are the map's entries.
    Root(Map),
    Time(Time),
    Version(Rc<Version>),
    /// What the path of a mutation led to.
    Found(Rc<Found>),
    /// An integer with a name, such as the type of such a result.
    Named(Named),
}

impl Value {
    /// Whether there is no value, or a nil interface.
    pub(crate) fn is_nothing(&self) -> bool {
        matches!(self, Value::Missing | Value::Nil)
    }

    /// Go's name of the type, as `%T` prints it.
    pub(crate) fn type_name(&self) -> Cow<'static, str> {
        match self {
            Value::Missing | Value::Nil => "<nil>".into(),
            Value::Bool(_) => "bool".into(),
            Value::Int(_) => "int".into(),
            Value::Int64(_) => "int64".into(),
            Value::Uint(Uint::U8, _) => "uint8".into(),
            Value::Uint(Uint::U64, _) => "uint64".into(),
            Value::Float(_) => "float64".into(),
            Value::Complex(..) => "complex128".into(),
            Value::Str(_) => "string".into(),
            Value::List(list) => format!("[]{}", list.elem().type_name()).into(),
            Value::Map(map) => format!("map[string]{}", map.elem().type_name()).into(),
            Value::Root(_) => "struct".into(),
            Value::Time(_) => "time.Time".into(),
            Value::Version(_) => "*semver.Version".into(),
            Value::Found(_) => "gjson.Result".into(),
            Value::Named(named) => named.type_name().into(),
        }
    }

    /// Go's name of the kind, as sprig's `kindOf` prints it.
    pub(crate) fn kind_name(&self) -> &'static str {
        match self {
            Value::Missing | Value::Nil => "invalid",
            Value::Bool(_) => "bool",
            Value::Int(_) | Value::Named(_) => "int",
            Value::Int64(_) => "int64",
            Value::Uint(Uint::U8, _) => "uint8",
            Value::Uint(Uint::U64, _) => "uint64",
            Value::Float(_) => "float64",
            Value::Complex(..) => "complex128",
            Value::Str(_) => "string",
            Value::List(_) => "slice",
            Value::Map(_) => "map",
            Value::Root(_) | Value::Time(_) | Value::Found(_) => "struct",
            Value::Version(_) => "ptr",
        }
    }

    /// Whether the value counts as true for `if`, `with`, `and` and `or`.
    pub(crate) fn truth(&self) -> bool {
        match self {
            Value::Missing | Value::Nil => false,
            Value::Bool(b) => *b,
            Value::Int(i) | Value::Int64(i) => *i != 0,
            Value::Uint(_, u) => *u != 0,
            Value::Float(f) => *f != 0.0,
            Value::Complex(real, imaginary) => *real != 0.0 || *imaginary != 0.0,
            Value::Str(s) => s.len() > 0,
            Value::List(list) => list.len() > 0,
            Value::Map(map) => map.len() > 0,
            Value::Named(named) => named.number() != 0,
            Value::Root(_) | Value::Time(_) | Value::Version(_) | Value::Found(_) => true,
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::Str(text.into())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Value {
        Value::Str(text.into())
    }
}

impl From<Vec<u8>> for Value {
    fn from(bytes: Vec<u8>) -> Value {
        Value::Str(bytes.into())
    }
}

impl From<bool> for Value {
    fn from(b: bool) -> Value {
        Value::Bool(b)
    }
}
