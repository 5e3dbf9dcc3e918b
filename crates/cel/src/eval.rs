//! Evaluates compiled expressions, one step of the budget per part.

use std::sync::Arc;

use crate::budget::Budget;
use crate::error::EvalError;
use crate::input::{Converted, Input};
use crate::node::{Access, Call, Index, Item, MapEntry, Node, Select};
use crate::value::key::Key;
use crate::value::{Map, Outcome, Value, overload};

/// The state of one evaluation.
pub(crate) struct Evaluator<'j> {
    pub budget: Budget,
    /// Variables of the environment, then those of the enclosing comprehensions.
    pub stack: Vec<Input<'j>>,
    pub converted: Converted,
}

impl<'j> Evaluator<'j> {
    pub fn eval(&mut self, node: &Node) -> Outcome {
        let found = self.read(node)?;
        Ok(self.converted.value(found))
    }

    /// Evaluates a part, but converts no JSON that is only passed through.
    fn read(&mut self, node: &Node) -> Result<Input<'j>, EvalError> {
        self.budget.step()?;
        let value = match node {
            Node::Variable(at) => return self.variable(*at),
            Node::Select(select) => return self.select(select),
            Node::Index(index) => return self.index(index),
            Node::Constant(value) => Ok(value.clone()),
            Node::And(operands) => self.logical(operands, false),
            Node::Or(operands) => self.logical(operands, true),
            Node::Conditional(parts) => self.conditional(parts),
            Node::List(items) => self.list(items),
            Node::Map(entries) => self.map(entries),
            Node::Call(call) => self.call(call),
            Node::OrElse(operands) => self.or_else(operands),
            Node::OrValue(operands) => self.or_value(operands),
            Node::Fold(fold) => self.fold(fold),
        };
        value.map(Input::Value)
    }

    fn variable(&self, at: usize) -> Result<Input<'j>, EvalError> {
        self.stack.get(at).cloned().ok_or(EvalError::Other("undeclared reference"))
    }

    fn select(&mut self, select: &Select) -> Result<Input<'j>, EvalError> {
        let operand = self.read(&select.operand)?;
        self.access(&operand, &Key::String(Arc::clone(&select.field)), select.mode)
    }

    fn index(&mut self, index: &Index) -> Result<Input<'j>, EvalError> {
        let operand = self.read(&index.operand)?;
        let key = self.eval(&index.key)?;
        let usable = match key {
            Value::Bool(_) | Value::Int(_) | Value::Uint(_) | Value::Double(_) | Value::String(_) => key.key(),
            _ => None,
        };
        let usable = usable.ok_or_else(|| overload("_[_]", &[operand.hollow(), key]))?;
        self.access(&operand, &usable, index.mode).map_err(|error| match error {
            // A key that is part of the expression may be shown; one that was computed may be a secret.
            EvalError::NoSuchKey(_) if !matches!(index.key, Node::Constant(_)) => EvalError::NoComputedKey,
            other => other,
        })
    }

    /// The field or element of an input.
    fn access(&mut self, operand: &Input<'j>, key: &Key, mode: Access) -> Result<Input<'j>, EvalError> {
        if let (Input::Lazy(lookup), Key::String(name)) = (operand, key) {
            let found = lookup.find(name).ok_or_else(|| EvalError::NoSuchKey(key.text()))?;
            return Ok(Input::Value(match mode {
                Access::Plain => found?,
                Access::Optional => Value::optional(Some(found?)),
                Access::Test => Value::Bool(true),
            }));
        }
        let value = match (operand, operand.child(key)) {
            (Input::Value(operand), _) => access(operand, key, mode)?,
            (operand, None) => access(&operand.hollow(), key, mode)?,
            (_, Some(found)) => match mode {
                Access::Plain => return Ok(found),
                Access::Optional => Value::optional(Some(self.converted.value(found))),
                Access::Test => Value::Bool(true),
            },
        };
        Ok(Input::Value(value))
    }

    /// `&&` and `||`: one side that decides wins over an error of the other.
    fn logical(&mut self, [left, right]: &[Node; 2], decisive: bool) -> Outcome {
        let name = if decisive { "_||_" } else { "_&&_" };
        let left = self.truth(name, left);
        match left {
            Ok(value) if value == decisive => return Ok(Value::Bool(decisive)),
            Err(EvalError::TooManySteps) => return Err(EvalError::TooManySteps),
            _ => {}
        }
        match self.truth(name, right) {
            Ok(value) if value == decisive => Ok(Value::Bool(decisive)),
            Err(EvalError::TooManySteps) => Err(EvalError::TooManySteps),
            right => left.and(right).map(Value::Bool),
        }
    }

    /// A part that has to be true or false.
    pub fn truth(&mut self, name: &str, node: &Node) -> Result<bool, EvalError> {
        match self.eval(node)? {
            Value::Bool(value) => Ok(value),
            other => Err(overload(name, &[other])),
        }
    }

    fn conditional(&mut self, [condition, yes, no]: &[Node; 3]) -> Outcome {
        let chosen = if self.truth("_?_:_", condition)? { yes } else { no };
        self.eval(chosen)
    }

    fn list(&mut self, items: &[Item]) -> Outcome {
        let mut list = Vec::with_capacity(items.len());
        for item in items {
            let value = self.eval(&item.value)?;
            list.extend(if item.optional { present(value)? } else { Some(value) });
        }
        Ok(Value::list(list))
    }

    fn map(&mut self, entries: &[MapEntry]) -> Outcome {
        let mut map = Map::new();
        for entry in entries {
            let key = self.eval(&entry.key)?;
            let value = self.eval(&entry.value)?;
            let value = if entry.optional { present(value)? } else { Some(value) };
            let key = key.key().ok_or(EvalError::Other("unsupported key type"))?;
            match value {
                Some(value) => map.insert(key, value),
                None => map.remove(&key),
            };
        }
        Ok(Value::map(map))
    }

    fn call(&mut self, call: &Call) -> Outcome {
        let mut arguments = Vec::with_capacity(call.arguments.len());
        for argument in &call.arguments {
            arguments.push(self.eval(argument)?);
        }
        // operators check the values themselves: types that were unknown before may still fit
        match call.overloads.iter().find(|candidate| candidate.is_operator() || candidate.takes(&arguments)) {
            Some(found) => (found.run)(&arguments, &self.budget),
            None => Err(overload(&call.name, &arguments)),
        }
    }

    fn or_else(&mut self, [left, right]: &[Node; 2]) -> Outcome {
        match self.eval(left)? {
            Value::Optional(None) => match self.eval(right)? {
                right @ Value::Optional(_) => Ok(right),
                other => Err(overload("or", &[other])),
            },
            left @ Value::Optional(_) => Ok(left),
            other => Err(overload("or", &[other])),
        }
    }

    fn or_value(&mut self, [left, right]: &[Node; 2]) -> Outcome {
        match self.eval(left)? {
            Value::Optional(None) => self.eval(right),
            Value::Optional(Some(value)) => Ok((*value).clone()),
            other => Err(overload("orValue", &[other])),
        }
    }
}

/// The value in an optional one.
fn present(value: Value) -> Result<Option<Value>, EvalError> {
    match value {
        Value::Optional(value) => Ok(value.map(|value| (*value).clone())),
        other => {
            Err(EvalError::NoSuchOverload(format!("cannot initialize optional entry from {}", other.kind().name())))
        }
    }
}

/// The field or element of a value.
fn access(operand: &Value, key: &Key, mode: Access) -> Outcome {
    let found = match operand {
        Value::Optional(None) if mode == Access::Test => return Ok(Value::Bool(false)),
        Value::Optional(None) => return Ok(Value::Optional(None)),
        Value::Optional(Some(inner)) => {
            let mode = if mode == Access::Test { Access::Test } else { Access::Optional };
            return access(inner, key, mode);
        }
        Value::Map(map) => key.find(map),
        Value::List(list) => match key {
            Key::Int(_) | Key::Uint(_) => key.position().and_then(|at| list.items.get(at)),
            Key::Double(_) if key.position().is_some() => key.position().and_then(|at| list.items.get(at)),
            _ => return Err(overload("_[_]", &[operand.clone(), key.into()])),
        },
        // whatever has no fields does not have this one
        _ if mode != Access::Plain => None,
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Double(_) | Value::String(_) => {
            return Err(EvalError::NoSuchKey(key.text()));
        }
        _ => return Err(overload("_[_]", &[operand.clone(), key.into()])),
    };
    match (mode, found) {
        (Access::Test, found) => Ok(Value::Bool(found.is_some())),
        (Access::Optional, found) => Ok(Value::optional(found.cloned())),
        (Access::Plain, Some(found)) => Ok(found.clone()),
        (Access::Plain, None) if matches!(operand, Value::List(_)) => Err(EvalError::IndexOutOfBounds),
        (Access::Plain, None) => Err(EvalError::NoSuchKey(key.text())),
    }
}
