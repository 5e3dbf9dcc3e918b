//! Functions, their signatures and their arguments.

use crate::{
    heap::{Heap, Outcome},
    time::Time,
    value::{List, Map, Str, Value},
};

/// Type of a parameter; a value of another type is refused, as in Go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    /// `interface {}`
    Any,
    /// `reflect.Value`: also sees that there is no value at all.
    Reflect,
    Str,
    Int,
    /// `uint32`, which only constants can be.
    Uint32,
    Float,
    Bool,
    /// `map[string]interface {}`
    Map,
    Time,
}

impl Type {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Type::Any => "interface {}",
            Type::Reflect => "reflect.Value",
            Type::Str => "string",
            Type::Int => "int",
            Type::Uint32 => "uint32",
            Type::Float => "float64",
            Type::Bool => "bool",
            Type::Map => "map[string]interface {}",
            Type::Time => "time.Time",
        }
    }
}

/// What a function does.
pub(crate) type Body = fn(&Heap, Args<'_>) -> Outcome<Value>;

/// A function that templates can call.
pub(crate) struct Function {
    pub(crate) name: &'static str,
    pub(crate) params: &'static [Type],
    /// Type of any number of further arguments.
    pub(crate) rest: Option<Type>,
    pub(crate) run: Run,
}

/// How a function is evaluated.
#[derive(Clone, Copy)]
pub(crate) enum Run {
    Body(Body),
    /// Stops at the first argument that is false.
    And,
    /// Stops at the first argument that is true.
    Or,
}

impl Function {
    pub(crate) const fn new(name: &'static str, params: &'static [Type], body: Body) -> Function {
        Function { name, params, rest: None, run: Run::Body(body) }
    }

    pub(crate) const fn variadic(name: &'static str, params: &'static [Type], rest: Type, body: Body) -> Function {
        Function { name, params, rest: Some(rest), run: Run::Body(body) }
    }
}

impl std::fmt::Debug for Function {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// Arguments of a call; the evaluator has checked their types.
#[derive(Clone, Copy)]
pub(crate) struct Args<'a>(pub(crate) &'a [Value]);

impl<'a> Args<'a> {
    pub(crate) fn all(self) -> &'a [Value] {
        self.0
    }

    /// The arguments from one on.
    pub(crate) fn from(self, index: usize) -> &'a [Value] {
        self.0.get(index..).unwrap_or_default()
    }

    pub(crate) fn any(self, index: usize) -> Outcome<&'a Value> {
        self.0.get(index).ok_or_else(|| format!("argument {} is missing", index + 1).into())
    }

    fn wrong<T>(self, index: usize, expected: Type) -> Outcome<T> {
        let found = self.any(index)?.type_name();
        Err(format!("wrong type for value; expected {}; got {found}", expected.name()).into())
    }

    pub(crate) fn str(self, index: usize) -> Outcome<&'a Str> {
        match self.any(index)? {
            Value::Str(text) => Ok(text),
            _ => self.wrong(index, Type::Str),
        }
    }

    pub(crate) fn bytes(self, index: usize) -> Outcome<&'a [u8]> {
        Ok(self.str(index)?.as_bytes())
    }

    pub(crate) fn int(self, index: usize) -> Outcome<i64> {
        match self.any(index)? {
            Value::Int(i) => Ok(*i),
            _ => self.wrong(index, Type::Int),
        }
    }

    pub(crate) fn float(self, index: usize) -> Outcome<f64> {
        match self.any(index)? {
            Value::Float(f) => Ok(*f),
            _ => self.wrong(index, Type::Float),
        }
    }

    pub(crate) fn bool(self, index: usize) -> Outcome<bool> {
        match self.any(index)? {
            Value::Bool(b) => Ok(*b),
            _ => self.wrong(index, Type::Bool),
        }
    }

    pub(crate) fn map(self, index: usize) -> Outcome<&'a Map> {
        match self.any(index)? {
            Value::Map(map) => Ok(map),
            _ => self.wrong(index, Type::Map),
        }
    }

    pub(crate) fn time(self, index: usize) -> Outcome<&'a Time> {
        match self.any(index)? {
            Value::Time(time) => Ok(time),
            _ => self.wrong(index, Type::Time),
        }
    }

    /// A list where Go's signature says `interface {}`.
    pub(crate) fn list(self, index: usize, verb: &str) -> Outcome<&'a List> {
        match self.any(index)? {
            Value::List(list) => Ok(list),
            other => Err(format!("cannot {verb} on type {}", other.kind_name()).into()),
        }
    }
}
