//! Walks a tree and writes the output.

use serde_json::Value as Json;

use crate::{
    error::RenderError,
    fmt,
    functions::{Args, Function, Run, Type},
    heap::{Failure, Heap, Outcome},
    lex::Span,
    limits, methods,
    place::{Place, excerpt},
    tree::{Branch, Command, Node, Number, Operand, Pipe, Term, Tree},
    value::{Str, Value},
};

/// What the data at the root is.
#[derive(Clone, Copy)]
pub(crate) enum Data<'d> {
    /// A struct with these fields.
    Fields(&'d serde_json::Map<String, Json>),
    /// Any value.
    Value(&'d Json),
}

/// Renders a tree.
pub(crate) fn render(text: &str, tree: &Tree, data: Data<'_>) -> Result<String, RenderError> {
    let heap = Heap::default();
    let mut evaluator = Evaluator { tree, heap: &heap, variables: Vec::new(), output: Vec::new() };
    let outcome = evaluator.run(data);
    match outcome {
        Ok(()) => {
            let bytes = std::mem::take(&mut evaluator.output);
            Ok(String::from_utf8(bytes).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned()))
        }
        Err(Fault { span, failure }) => Err(match failure {
            Failure::Limit { what, limit } => RenderError::Limit { what, limit },
            Failure::Message(message) => {
                let Place { line, column } = Place::of(text, span.start);
                let action = excerpt(text.get(span.start..span.end).unwrap_or_default());
                RenderError::Action { line, column, action, message }
            }
        }),
    }
}

/// A failure and where it happened.
struct Fault {
    span: Span,
    failure: Failure,
}

type Step<T> = Result<T, Fault>;

/// Adds the place to a failure.
trait At<T> {
    fn at(self, span: Span) -> Step<T>;
}

impl<T> At<T> for Outcome<T> {
    fn at(self, span: Span) -> Step<T> {
        self.map_err(|failure| Fault { span, failure })
    }
}

fn fail<T>(span: Span, message: impl Into<String>) -> Step<T> {
    Err(Fault { span, failure: Failure::Message(message.into()) })
}

/// What to do after a node.
#[derive(PartialEq, Eq)]
enum Flow {
    Next,
    Break,
    Continue,
}

struct Evaluator<'t, 'h> {
    tree: &'t Tree,
    heap: &'h Heap,
    /// Variables in scope, innermost last.
    variables: Vec<(&'t str, Value)>,
    output: Vec<u8>,
}

impl<'t> Evaluator<'t, '_> {
    fn run(&mut self, data: Data<'_>) -> Step<()> {
        let root = match data {
            Data::Fields(fields) => self.heap.import_root(fields),
            // At the root a null is no value at all.
            Data::Value(json) => self.heap.import(json).map(concrete),
        };
        let root = root.at(Span::default())?;
        self.variables.push(("$", root.clone()));
        let tree = self.tree;
        self.walk(&root, &tree.body)?;
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> Outcome<()> {
        if self.output.len() + bytes.len() > limits::MAX_OUTPUT {
            return Err(Failure::Limit { what: "bytes of output", limit: limits::MAX_OUTPUT });
        }
        self.output.extend_from_slice(bytes);
        Ok(())
    }

    fn walk(&mut self, dot: &Value, nodes: &'t [Node]) -> Step<Flow> {
        let heap = self.heap;
        let _level = heap.enter().at(Span::default())?;
        for node in nodes {
            heap.step(1).at(Span::default())?;
            let flow = match node {
                Node::Text(text) => {
                    self.write(text.as_bytes()).at(Span::default())?;
                    Flow::Next
                }
                Node::Action(pipe) => {
                    let value = self.pipe(dot, pipe)?;
                    if pipe.variables.is_empty() {
                        self.print(&value).at(pipe.span)?;
                    }
                    Flow::Next
                }
                Node::If(branch) => self.branch(dot, branch, false)?,
                Node::With(branch) => self.branch(dot, branch, true)?,
                Node::Range(branch) => self.range(dot, branch)?,
                Node::Template { span, name, pipe } => self.template(dot, *span, name, pipe.as_ref())?,
                Node::Break => Flow::Break,
                Node::Continue => Flow::Continue,
            };
            if flow != Flow::Next {
                return Ok(flow);
            }
        }
        Ok(Flow::Next)
    }

    fn print(&mut self, value: &Value) -> Outcome<()> {
        match value {
            Value::Missing | Value::Nil => self.write(b"<no value>"),
            Value::Str(text) => self.write(text.as_bytes()),
            _ => {
                let text = fmt::sprint(self.heap, std::slice::from_ref(value))?;
                self.write(text.as_bytes())
            }
        }
    }

    fn branch(&mut self, dot: &Value, branch: &'t Branch, moves_dot: bool) -> Step<Flow> {
        let scope = self.variables.len();
        let value = self.pipe(dot, &branch.pipe)?;
        let flow = if value.truth() {
            self.walk(if moves_dot { &value } else { dot }, &branch.body)?
        } else {
            self.walk(dot, &branch.otherwise)?
        };
        self.variables.truncate(scope);
        Ok(flow)
    }

    fn range(&mut self, dot: &Value, branch: &'t Branch) -> Step<Flow> {
        let scope = self.variables.len();
        let span = branch.pipe.span;
        let value = self.pipe(dot, &branch.pipe)?;
        let turns = match &value {
            Value::Int(count) => self.range_count(branch, *count, Value::Int)?,
            Value::Int64(count) => self.range_count(branch, *count, Value::Int64)?,
            Value::Uint(kind, count) => {
                let count = i64::try_from(*count).unwrap_or(i64::MAX);
                self.range_count(branch, count, |i| Value::Uint(*kind, i.unsigned_abs()))?
            }
            Value::List(list) => {
                let items = list.items();
                for (index, item) in (0..).zip(items.iter()) {
                    if self.turn(branch, Value::Int(index), item.clone())? == Flow::Break {
                        break;
                    }
                }
                items.len()
            }
            Value::Map(map) => {
                // The body may change the map; the loop goes over what was there.
                let entries: Vec<_> = map.entries().iter().map(|(k, v)| (k.clone(), v.clone())).collect();
                self.heap.take(entries.len()).at(span)?;
                let count = entries.len();
                for (key, item) in entries {
                    if self.turn(branch, Value::Str(key), item)? == Flow::Break {
                        break;
                    }
                }
                count
            }
            Value::Missing | Value::Nil => 0,
            other => return fail(span, format!("range can't iterate over a value of type {}", other.type_name())),
        };
        let flow = if turns == 0 { self.walk(dot, &branch.otherwise)? } else { Flow::Next };
        self.variables.truncate(scope);
        Ok(flow)
    }

    fn range_count(&mut self, branch: &'t Branch, count: i64, make: impl Fn(i64) -> Value) -> Step<usize> {
        if branch.pipe.variables.len() > 1 {
            let message = format!("can't use {count} to iterate over more than one variable");
            return fail(branch.pipe.span, message);
        }
        for i in 0..count {
            if self.turn(branch, Value::Missing, make(i))? == Flow::Break {
                break;
            }
        }
        Ok(usize::from(count > 0))
    }

    /// One turn of a loop.
    fn turn(&mut self, branch: &'t Branch, index: Value, item: Value) -> Step<Flow> {
        self.heap.step(1).at(branch.pipe.span)?;
        let scope = self.variables.len();
        let values = match branch.pipe.variables.len() {
            0 => vec![],
            1 => vec![item.clone()],
            _ => vec![index, item.clone()],
        };
        for (name, value) in branch.pipe.variables.iter().zip(values) {
            self.assign(name, value, branch.pipe.span)?;
        }
        let flow = self.walk(&item, &branch.body)?;
        self.variables.truncate(scope);
        Ok(flow)
    }

    fn template(&mut self, dot: &Value, span: Span, name: &[u8], pipe: Option<&'t Pipe>) -> Step<Flow> {
        let Some(body) = self.tree.templates.get(name) else {
            return fail(span, format!("template {:?} is not defined", String::from_utf8_lossy(name)));
        };
        let dot = match pipe {
            Some(pipe) => self.pipe(dot, pipe)?,
            None => Value::Missing,
        };
        let outer = std::mem::replace(&mut self.variables, vec![("$", dot.clone())]);
        self.walk(&dot, body)?;
        self.variables = outer;
        Ok(Flow::Next)
    }

    fn assign(&mut self, name: &str, value: Value, span: Span) -> Step<()> {
        match self.variables.iter_mut().rev().find(|(known, _)| *known == name) {
            Some((_, slot)) => {
                *slot = value;
                Ok(())
            }
            None => fail(span, format!("undefined variable: {name}")),
        }
    }

    fn pipe(&mut self, dot: &Value, pipe: &'t Pipe) -> Step<Value> {
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
    fn command(&mut self, dot: &Value, command: &'t Command, last: Option<Value>) -> Step<Value> {
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
    fn operand(&mut self, dot: &Value, operand: &'t Operand) -> Step<Value> {
        self.heap.step(1).at(operand.span)?;
        match &operand.term {
            Term::Dot => Ok(dot.clone()),
            Term::Nil => Ok(Value::Nil),
            Term::Bool(b) => Ok(Value::Bool(*b)),
            Term::Number(number) => constant(number).at(operand.span),
            Term::Str(bytes) => Ok(Value::Str(bytes.as_slice().into())),
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

    /// What stands before the fields of a chain.
    fn receiver(&mut self, dot: &Value, operand: &'t Operand) -> Step<Value> {
        match operand.term {
            Term::Nil => fail(operand.span, "indirection through explicit nil"),
            _ => self.operand(dot, operand),
        }
    }

    fn variable(&self, name: &str, span: Span) -> Step<Value> {
        match self.variables.iter().rev().find(|(known, _)| *known == name) {
            Some((_, value)) => Ok(value.clone()),
            None => fail(span, format!("undefined variable: {name}")),
        }
    }

    /// Follows fields; the last one gets the arguments.
    fn path(&mut self, dot: &Value, receiver: Value, path: &'t [String], call: Call<'t>) -> Step<Value> {
        let Some((last, inner)) = path.split_last() else { return Ok(receiver) };
        let mut receiver = receiver;
        for name in inner {
            receiver = self.field(dot, receiver, name, Call::bare(call.span))?;
        }
        self.field(dot, receiver, last, call)
    }

    fn field(&mut self, dot: &Value, receiver: Value, name: &'t str, call: Call<'t>) -> Step<Value> {
        let span = call.span;
        self.heap.step(1).at(span)?;
        if let Some(method) = methods::lookup(&receiver, name) {
            return self.call(dot, method, Some(receiver), call);
        }
        match &receiver {
            Value::Missing => Ok(Value::Missing),
            Value::Nil => fail(span, format!("nil pointer evaluating interface {{}}.{name}")),
            Value::Map(_) if call.has_arguments() => fail(span, format!("{name} is not a method but has arguments")),
            Value::Map(map) => Ok(map.get(&Str::from(name)).unwrap_or(Value::Missing)),
            Value::Root(_) if call.has_arguments() => {
                fail(span, format!("{name} has arguments but cannot be invoked as function"))
            }
            Value::Root(fields) => match fields.get(&Str::from(name)) {
                Some(value) => Ok(value),
                None => {
                    let known: Vec<_> = fields.entries().keys().map(|k| k.text().into_owned()).collect();
                    fail(span, format!("no field {name}; there are {}", known.join(", ")))
                }
            },
            other => fail(span, format!("can't evaluate field {name} in type {}", other.type_name())),
        }
    }

    fn call(
        &mut self,
        dot: &Value,
        function: &'static Function,
        receiver: Option<Value>,
        call: Call<'t>,
    ) -> Step<Value> {
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
        let mut values = Vec::with_capacity(given + 1);
        values.extend(receiver);
        for (index, argument) in arguments.iter().enumerate() {
            values.push(self.argument(dot, argument, type_of(index))?);
        }
        if let Some(last) = last {
            values.push(fit(self.heap, last, type_of(given - 1)).at(span)?);
        }
        self.heap.step(1).at(span)?;
        body(self.heap, Args(&values)).map_err(|failure| match failure {
            Failure::Message(message) => {
                Fault { span, failure: Failure::Message(format!("error calling {name}: {message}")) }
            }
            limit @ Failure::Limit { .. } => Fault { span, failure: limit },
        })
    }

    fn short_circuit(&mut self, dot: &Value, arguments: &'t [Operand], last: Option<Value>, stop: bool) -> Step<Value> {
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
    fn argument(&mut self, dot: &Value, argument: &'t Operand, wanted: Type) -> Step<Value> {
        let span = argument.span;
        let mismatch = |what: &str| fail(span, format!("expected {what}"));
        match (&argument.term, wanted) {
            (Term::Nil, Type::Any | Type::Reflect) => Ok(Value::Nil),
            (Term::Nil, Type::Map) => Ok(self.heap.nil_map()),
            (Term::Nil, other) => fail(span, format!("cannot assign nil to {}", other.name())),
            (Term::Bool(_) | Term::Number(_) | Term::Str(_), Type::Any | Type::Reflect) => self.operand(dot, argument),
            (Term::Str(_), Type::Str) | (Term::Bool(_), Type::Bool) => self.operand(dot, argument),
            (Term::Number(number), Type::Int) => match number.int {
                Some(int) => Ok(Value::Int(int)),
                None => mismatch("integer"),
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

/// The rest of a command behind its first operand.
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

/// What a pipeline makes of a value: a nil interface becomes no value.
fn concrete(value: Value) -> Value {
    match value {
        Value::Nil => Value::Missing,
        other => other,
    }
}

/// A constant where the type is open.
fn constant(number: &Number) -> Outcome<Value> {
    match number {
        Number { float: Some(float), written_as_float: true, .. } => Ok(Value::Float(*float)),
        Number { int: Some(int), .. } => Ok(Value::Int(*int)),
        _ => Err("constant overflows int".into()),
    }
}

/// Checks a value against a parameter's type. There are no conversions: an `int64` is no `int`.
fn fit(heap: &Heap, value: Value, wanted: Type) -> Outcome<Value> {
    match (value, wanted) {
        (value, Type::Reflect) => Ok(value),
        (Value::Missing | Value::Nil, Type::Any) => Ok(Value::Nil),
        (Value::Missing, Type::Map) => Ok(heap.nil_map()),
        (Value::Missing, wanted) => Err(format!("invalid value; expected {}", wanted.name()).into()),
        (Value::Nil, wanted) => {
            Err(format!("wrong type for value; expected {}; got interface {{}}", wanted.name()).into())
        }
        (value, Type::Any) => Ok(value),
        (value @ Value::Str(_), Type::Str)
        | (value @ Value::Int(_), Type::Int)
        | (value @ Value::Float(_), Type::Float)
        | (value @ Value::Bool(_), Type::Bool)
        | (value @ Value::Time(_), Type::Time) => Ok(value),
        (Value::Map(map), Type::Map) if map.elem() == crate::value::Elem::Any => Ok(Value::Map(map)),
        (value, wanted) => {
            let (wanted, found) = (wanted.name(), value.type_name());
            Err(format!("wrong type for value; expected {wanted}; got {found}").into())
        }
    }
}
