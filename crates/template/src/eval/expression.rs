//! Pipelines, operands, fields and calls.

use super::{At, Evaluated, Evaluator, Fault, fail, root::concrete};
use crate::{
    functions::{Args, Function, Run, Type},
    heap::{Failure, Heap, Outcome},
    lex::Span,
    methods,
    tree::{Command, Number, Operand, Pipe, Term},
    value::{Elem, Uint, Value},
};

/// The rest of a command after its first operand.
struct Call<'t> {
    span: Span,
    arguments: &'t [Operand],
    last: Option<Value>,
}

impl Call<'_> {
    fn bare(span: Span) -> Self {
        Call { span, arguments: &[], last: None }
    }

    fn has_arguments(&self) -> bool {
        !self.arguments.is_empty() || self.last.is_some()
    }
}

impl<'t> Evaluator<'t, '_> {
    pub(super) fn pipe(&mut self, dot: &Value, pipe: &'t Pipe) -> Evaluated<Value> {
        let heap = self.heap;
        let _level = heap.enter().at(pipe.span)?;
        let mut value = None;
        for command in &pipe.commands {
            value = Some(concrete(self.command(dot, command, value)?));
        }
        let value = value.unwrap_or(Value::Missing);
        for name in &pipe.variables {
            if pipe.assigns {
                self.assign(name, value.clone(), pipe.span)?;
            } else {
                self.heap.step(1).at(pipe.span)?;
                self.variables.push((name, value.clone()));
            }
        }
        Ok(value)
    }

    /// Evaluates a command; `last` is the result of the command before it in the pipeline.
    fn command(&mut self, dot: &Value, command: &'t Command, last: Option<Value>) -> Evaluated<Value> {
        self.heap.step(1).at(command.span)?;
        let first = &command.first;
        let call = Call { span: command.span, arguments: &command.arguments, last };
        match &first.term {
            Term::Field(path) => self.path(dot, dot.clone(), path, call),
            Term::Chain(operand, path) => {
                let receiver = self.receiver(dot, operand)?;
                self.path(dot, receiver, path, call)
            }
            Term::Function(function) => self.call(dot, function, None, call),
            Term::Variable(name, path) if !path.is_empty() => {
                let receiver = self.variable(name, first.span)?;
                self.path(dot, receiver, path, call)
            }
            _ if call.has_arguments() => {
                let message = "can't give arguments to something that is not a function".to_owned();
                fail(first.span, message)
            }
            Term::Nil => fail(first.span, "nil is not a command"),
            _ => self.operand(dot, first),
        }
    }

    /// The value of an operand where its type does not matter.
    fn operand(&mut self, dot: &Value, operand: &'t Operand) -> Evaluated<Value> {
        self.heap.step(1).at(operand.span)?;
        match &operand.term {
            Term::Dot => Ok(dot.clone()),
            Term::Nil => Ok(Value::Nil),
            Term::Bool(b) => Ok(Value::Bool(*b)),
            Term::Number(number) => constant(number).at(operand.span),
            Term::Str(text) => Ok(Value::Str(text.clone())),
            Term::Field(path) => self.path(dot, dot.clone(), path, Call::bare(operand.span)),
            Term::Variable(name, path) => {
                let receiver = self.variable(name, operand.span)?;
                self.path(dot, receiver, path, Call::bare(operand.span))
            }
            Term::Function(function) => self.call(dot, function, None, Call::bare(operand.span)),
            Term::Pipe(pipe) => self.pipe(dot, pipe),
            Term::Chain(inner, path) => {
                let receiver = self.receiver(dot, inner)?;
                self.path(dot, receiver, path, Call::bare(operand.span))
            }
        }
    }

    /// What comes before the fields of a chain.
    fn receiver(&mut self, dot: &Value, operand: &'t Operand) -> Evaluated<Value> {
        match operand.term {
            Term::Nil => fail(operand.span, "indirection through explicit nil"),
            _ => self.operand(dot, operand),
        }
    }

    fn variable(&self, name: &str, span: Span) -> Evaluated<Value> {
        match self.variables.iter().rev().find(|(known, _)| *known == name) {
            Some((_, value)) => Ok(value.clone()),
            None => fail(span, format!("undefined variable: {name}")),
        }
    }

    /// Follows fields; the last one gets the arguments.
    fn path(&mut self, dot: &Value, receiver: Value, path: &'t [String], call: Call<'t>) -> Evaluated<Value> {
        let Some((last, mut inner)) = path.split_last() else { return Ok(receiver) };
        let mut receiver = receiver;
        if self.root.is(&receiver) {
            self.heap.step(path.len()).at(call.span)?;
            if let Some((first, rest)) = inner.split_first()
                && let Some(found) = self.root.found(first)
            {
                (receiver, inner) = (found, rest);
            } else if let Some(value) = self.root.scalar(path).filter(|_| !call.has_arguments()) {
                return Ok(value);
            } else {
                self.root.fill(self.heap).at(call.span)?;
            }
        }
        for name in inner {
            receiver = self.field(dot, receiver, name, Call::bare(call.span))?;
        }
        self.field(dot, receiver, last, call)
    }

    fn field(&mut self, dot: &Value, receiver: Value, name: &'t str, call: Call<'t>) -> Evaluated<Value> {
        let span = call.span;
        self.heap.step(1).at(span)?;
        if let Some(method) = methods::lookup(&receiver, name) {
            return self.call(dot, method, Some(receiver), call);
        }
        match &receiver {
            Value::Missing => Ok(Value::Missing),
            Value::Nil => fail(span, format!("nil pointer evaluating interface {{}}.{name}")),
            Value::Map(_) if call.has_arguments() => fail(span, format!("{name} is not a method but has arguments")),
            Value::Map(map) => Ok(map.field(name).unwrap_or(Value::Missing)),
            Value::Root(_) if call.has_arguments() => {
                fail(span, format!("{name} has arguments but cannot be invoked as function"))
            }
            Value::Root(fields) => {
                if let Some(value) = fields.field(name) {
                    return Ok(value);
                }
                let known: Vec<_> = fields.entries().keys().map(|k| k.text().into_owned()).collect();
                fail(span, format!("no field {name}; there are {}", known.join(", ")))
            }
            other => fail(span, format!("can't evaluate field {name} in type {}", other.type_name())),
        }
    }

    fn call(
        &mut self,
        dot: &Value,
        function: &'static Function,
        receiver: Option<Value>,
        call: Call<'t>,
    ) -> Evaluated<Value> {
        let Call { span, arguments, last } = call;
        let name = function.name;
        let given = arguments.len() + usize::from(last.is_some());
        let wanted = function.params.len();
        if function.rest.is_some() && given < wanted {
            return fail(span, format!("wrong number of args for {name}: want at least {wanted} got {given}"));
        }
        if function.rest.is_none() && given != wanted {
            return fail(span, format!("wrong number of args for {name}: want {wanted} got {given}"));
        }
        let body = match function.run {
            Run::Body(body) => body,
            Run::And => return self.short_circuit(dot, arguments, last, false),
            Run::Or => return self.short_circuit(dot, arguments, last, true),
        };
        let type_of = |index: usize| function.params.get(index).copied().or(function.rest).unwrap_or(Type::Any);
        let before = self.stack.len();
        self.stack.extend(receiver);
        for (index, argument) in arguments.iter().enumerate() {
            let value = self.argument(dot, argument, type_of(index))?;
            self.stack.push(value);
        }
        if let Some(last) = last {
            self.stack.push(fit(self.heap, last, type_of(given - 1)).at(span)?);
        }
        let values = &self.stack[before..];
        // Most functions read their strings; those that do more with them count that themselves.
        let bytes: usize = values.iter().map(|value| if let Value::Str(text) = value { text.len() } else { 0 }).sum();
        self.heap.step(1 + bytes / 256).at(span)?;
        let result = body(self.heap, Args(values)).map_err(|failure| match failure {
            Failure::Message(message) => {
                Fault { span, failure: Failure::Message(format!("error calling {name}: {message}")) }
            }
            limit @ Failure::Limit { .. } => Fault { span, failure: limit },
        })?;
        self.stack.truncate(before);
        Ok(result)
    }

    fn short_circuit(
        &mut self,
        dot: &Value,
        arguments: &'t [Operand],
        last: Option<Value>,
        stop: bool,
    ) -> Evaluated<Value> {
        let mut value = Value::Missing;
        for argument in arguments {
            value = self.argument(dot, argument, Type::Reflect)?;
            if value.truth() == stop {
                return Ok(value);
            }
        }
        Ok(last.unwrap_or(value))
    }

    /// Evaluates an argument for a parameter of a type.
    fn argument(&mut self, dot: &Value, argument: &'t Operand, wanted: Type) -> Evaluated<Value> {
        let span = argument.span;
        let mismatch = |what: &str| fail(span, format!("expected {what}"));
        match (&argument.term, wanted) {
            (Term::Nil, Type::Any | Type::Reflect) => Ok(Value::Nil),
            (Term::Nil, Type::Map) => Ok(self.heap.nil_map(Elem::Any)),
            (Term::Nil, other) => fail(span, format!("cannot assign nil to {}", other.name())),
            (Term::Bool(_) | Term::Number(_) | Term::Str(_), Type::Any | Type::Reflect)
            | (Term::Str(_), Type::Str)
            | (Term::Bool(_), Type::Bool) => self.operand(dot, argument),
            (Term::Number(number), Type::Int) => match number.int {
                Some(int) => Ok(Value::Int(int)),
                None => mismatch("integer"),
            },
            (Term::Number(number), Type::Uint32) => match number.uint {
                // Go truncates as well.
                Some(uint) => Ok(Value::Uint(Uint::U64, uint & u64::from(u32::MAX))),
                None => mismatch("unsigned integer"),
            },
            (Term::Number(number), Type::Float) => match number.float {
                Some(float) => Ok(Value::Float(float)),
                None => mismatch("float"),
            },
            (Term::Bool(_) | Term::Str(_), Type::Int) => mismatch("integer"),
            (Term::Bool(_) | Term::Number(_) | Term::Str(_), _) => mismatch(wanted.name()),
            _ => {
                let value = self.operand(dot, argument)?;
                fit(self.heap, value, wanted).at(span)
            }
        }
    }
}

/// A constant where the type is open.
fn constant(number: &Number) -> Outcome<Value> {
    match number {
        Number { complex: Some((real, imaginary)), .. } => Ok(Value::Complex(*real, *imaginary)),
        Number { float: Some(float), written_as_float: true, .. } => Ok(Value::Float(*float)),
        Number { int: Some(int), .. } => Ok(Value::Int(*int)),
        _ => Err("constant overflows int".into()),
    }
}

/// Checks a value against a parameter's type. There are no conversions: an `int64` is not an `int`.
fn fit(heap: &Heap, value: Value, wanted: Type) -> Outcome<Value> {
    if wanted == Type::Reflect {
        return Ok(value);
    }
    match (value, wanted) {
        (Value::Missing | Value::Nil, Type::Any) => Ok(Value::Nil),
        (Value::Missing, Type::Map) => Ok(heap.nil_map(Elem::Any)),
        (Value::Missing, wanted) => Err(format!("invalid value; expected {}", wanted.name()).into()),
        (Value::Nil, wanted) => {
            Err(format!("wrong type for value; expected {}; got interface {{}}", wanted.name()).into())
        }
        (value, Type::Any)
        | (value @ Value::Str(_), Type::Str)
        | (value @ Value::Int(_), Type::Int)
        | (value @ Value::Float(_), Type::Float)
        | (value @ Value::Bool(_), Type::Bool)
        | (value @ Value::Time(_), Type::Time) => Ok(value),
        (Value::Map(map), Type::Map) if map.elem() == Elem::Any => Ok(Value::Map(map)),
        (value, wanted) => {
            let (wanted, found) = (wanted.name(), value.type_name());
            Err(format!("wrong type for value; expected {wanted}; got {found}").into())
        }
    }
}
