//! Walks a tree and writes the output.

mod expression;
mod root;

pub(crate) use root::Data;
use root::Root;

use crate::{
    Template,
    error::RenderError,
    fmt,
    heap::{Failure, Heap, Outcome},
    lex::Span,
    limits,
    position::{Position, excerpt},
    runes,
    tree::{Branch, Node, Pipe, Tree},
    value::Value,
};

/// Renders a tree.
pub(crate) fn render(template: &Template, data: Data<'_>) -> Result<String, RenderError> {
    let (text, tree, needs, absent) = (&*template.text, &*template.tree, &*template.needs, template.absent);
    let heap = Heap::default();
    let outcome = Root::new(&heap, needs, data).at(Span::default()).and_then(|root| {
        let mut evaluator =
            Evaluator { tree, heap: &heap, root, absent, variables: Vec::new(), stack: Vec::new(), output: Vec::new() };
        evaluator.run()?;
        Ok(evaluator.output)
    });
    match outcome {
        // Every byte that is not UTF-8 becomes a replacement character, as it would in Go's JSON.
        Ok(bytes) => Ok(String::from_utf8(bytes).unwrap_or_else(|error| runes::chars(error.as_bytes()).collect())),
        Err(Fault { span, failure }) => Err(match failure {
            Failure::Limit { what, limit } => {
                let position = (span.end > 0).then(|| Position::of(text, span));
                RenderError::Limit { position, what, limit }
            }
            Failure::Message(message) => {
                let action = excerpt(text.get(span.start..span.end).unwrap_or_default());
                RenderError::Action { position: Position::of(text, span), action, message }
            }
        }),
    }
}

/// A failure and where it happened.
struct Fault {
    span: Span,
    failure: Failure,
}

type Evaluated<T> = Result<T, Fault>;

/// Adds the place to a failure.
trait At<T> {
    fn at(self, span: Span) -> Evaluated<T>;
}

impl<T> At<T> for Outcome<T> {
    fn at(self, span: Span) -> Evaluated<T> {
        self.map_err(|failure| Fault { span, failure })
    }
}

fn fail<T>(span: Span, message: impl Into<String>) -> Evaluated<T> {
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
    root: Root<'h>,
    /// What is printed for nothing.
    absent: &'static str,
    /// Variables in scope, innermost last.
    variables: Vec<(&'t str, Value)>,
    /// Arguments of the calls under way, innermost last.
    stack: Vec<Value>,
    output: Vec<u8>,
}

impl<'t> Evaluator<'t, '_> {
    fn run(&mut self) -> Evaluated<()> {
        let root = self.root.value.clone();
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

    fn walk(&mut self, dot: &Value, nodes: &'t [Node]) -> Evaluated<Flow> {
        let heap = self.heap;
        let _level = heap.enter().at(nodes.first().map(Node::span).unwrap_or_default())?;
        for node in nodes {
            heap.step(1).at(node.span())?;
            let flow = match node {
                Node::Text(span, text) => {
                    self.write(text.as_bytes()).at(*span)?;
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
                Node::Break(_) => Flow::Break,
                Node::Continue(_) => Flow::Continue,
            };
            if flow != Flow::Next {
                return Ok(flow);
            }
        }
        Ok(Flow::Next)
    }

    fn print(&mut self, value: &Value) -> Outcome<()> {
        match value {
            Value::Missing | Value::Nil => self.write(self.absent.as_bytes()),
            Value::Str(text) => self.write(text.as_bytes()),
            _ => {
                let text = fmt::sprint(self.heap, std::slice::from_ref(value))?;
                self.write(text.as_bytes())
            }
        }
    }

    fn branch(&mut self, dot: &Value, branch: &'t Branch, moves_dot: bool) -> Evaluated<Flow> {
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

    fn range(&mut self, dot: &Value, branch: &'t Branch) -> Evaluated<Flow> {
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
            Value::Named(named) => {
                self.range_count(branch, named.number(), |i| named.like(i).map_or(Value::Missing, Value::Named))?
            }
            Value::List(list) => {
                let items = list.items();
                for (index, item) in (0..).zip(items.iter()) {
                    if self.turn(branch, Value::Int(index), item)? == Flow::Break {
                        break;
                    }
                }
                items.len()
            }
            Value::Map(map) => {
                // The body may change the map; the loop goes over what was there.
                let entries: Vec<_> = map.entries().iter().map(|(k, v)| (k.clone(), v.clone())).collect();
                self.heap.step(entries.len() / 8).at(span)?;
                let count = entries.len();
                for (key, item) in entries {
                    if self.turn(branch, Value::Str(key), &item)? == Flow::Break {
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

    fn range_count(&mut self, branch: &'t Branch, count: i64, make: impl Fn(i64) -> Value) -> Evaluated<usize> {
        if branch.pipe.variables.len() > 1 {
            let message = format!("can't use {count} to iterate over more than one variable");
            return fail(branch.pipe.span, message);
        }
        for i in 0..count {
            if self.turn(branch, Value::Missing, &make(i))? == Flow::Break {
                break;
            }
        }
        Ok(usize::from(count > 0))
    }

    /// One turn of a loop.
    fn turn(&mut self, branch: &'t Branch, index: Value, item: &Value) -> Evaluated<Flow> {
        self.heap.step(1).at(branch.pipe.span)?;
        let scope = self.variables.len();
        match branch.pipe.variables.as_slice() {
            [] => {}
            [name] => self.assign(name, item.clone(), branch.pipe.span)?,
            [first, second, ..] => {
                self.assign(first, index, branch.pipe.span)?;
                self.assign(second, item.clone(), branch.pipe.span)?;
            }
        }
        let flow = self.walk(item, &branch.body)?;
        self.variables.truncate(scope);
        Ok(flow)
    }

    fn template(&mut self, dot: &Value, span: Span, name: &[u8], pipe: Option<&'t Pipe>) -> Evaluated<Flow> {
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

    fn assign(&mut self, name: &str, value: Value, span: Span) -> Evaluated<()> {
        match self.variables.iter_mut().rev().find(|(known, _)| *known == name) {
            Some((_, slot)) => {
                *slot = value;
                Ok(())
            }
            None => fail(span, format!("undefined variable: {name}")),
        }
    }
}
