//! html/template: finds out at which place of an HTML document every action stands, and how its value is made safe there.
//!
//! ```text
//!  tree ──▶ html (walks all branches) ──▶ tree with escapers
//!             ├─ literal ─ scan, script, style (how text moves the context), attributes, entities
//!             ├─ action (which escapers)        escaper (runs when rendering)
//!             └─ context
//! ```
//!
//! This happens once, when compiling, so that mistakes (branches that end in different contexts, an unclosed tag) show before any
//! rendering. Leaving the work to a crate that escapes whole templates was tried on paper and dropped: there is one with a single
//! release, it has its own values and no functions, so every rendering would have to be flattened to a template of its own and
//! parsed again; branches that were not taken would go unchecked; and values in scripts would lose their Go types on the way.

mod action;
mod attributes;
mod context;
mod entities;
mod escaper;
mod literal;
mod scan;
mod script;
mod style;

use std::collections::{HashMap, HashSet};

use crate::{
    error::CompileError,
    lex::Span,
    limits,
    position::Position,
    tree::{Branch, Node, Tree},
};
use context::{Context, Place};
pub(crate) use escaper::Escaper;

/// The context behind a node; none behind `break` and `continue`.
type State = Option<Context>;

/// What is wrong, and where.
struct Fault(Span, String);

type Step<T> = Result<T, Fault>;

fn fail<T>(span: Span, message: impl Into<String>) -> Step<T> {
    Err(Fault(span, message.into()))
}

/// Adds the escapers to a tree.
pub(crate) fn escape(text: &str, tree: &Tree) -> Result<Tree, CompileError> {
    let mut pass = Pass {
        source: &tree.templates,
        steps: 0,
        depth: 0,
        bodies: HashMap::new(),
        loops: Vec::new(),
        known: Known::default(),
    };
    let outcome = pass.list(Context::default(), &tree.body).and_then(|(end, body)| match end {
        Some(end) if end.place != Place::Text => {
            let span = Span { start: text.len(), end: text.len() };
            fail(span, format!("the template ends inside {}", end.describe()))
        }
        _ => Ok(body),
    });
    match outcome {
        Ok(body) => Ok(Tree { body, templates: pass.bodies }),
        Err(Fault(span, message)) => Err(CompileError::Html { position: Position::of(text, span), message }),
    }
}

/// What is known about templates, by name and the context they are called in.
#[derive(Clone, Default)]
struct Known {
    /// The context behind them.
    ends: HashMap<Vec<u8>, State>,
    called: HashSet<Vec<u8>>,
}

/// Contexts in which a loop is left or begun anew.
#[derive(Default)]
struct Loop {
    jumps: Vec<(Span, Context)>,
}

struct Pass<'t> {
    source: &'t HashMap<Vec<u8>, Vec<Node>>,
    steps: usize,
    depth: usize,
    /// Loops around the node, innermost last.
    loops: Vec<Loop>,
    known: Known,
    /// Escaped bodies of templates.
    bodies: HashMap<Vec<u8>, Vec<Node>>,
}

impl Pass<'_> {
    fn step(&mut self, span: Span, units: usize) -> Step<()> {
        self.steps += units;
        if self.steps > limits::MAX_STEPS {
            return fail(span, "the template is too large, or calls templates in too many different contexts");
        }
        Ok(())
    }

    fn list(&mut self, context: Context, nodes: &[Node]) -> Step<(State, Vec<Node>)> {
        let mut context = context;
        let mut out = Vec::with_capacity(nodes.len());
        self.depth += 1;
        if self.depth > limits::MAX_DEPTH {
            return fail(
                nodes.first().map(Node::span).unwrap_or_default(),
                format!("templates call each other deeper than {} levels", limits::MAX_DEPTH),
            );
        }
        for node in nodes {
            let (state, node) = self.node(context, node)?;
            out.push(node);
            let Some(next) = state else {
                // What stands behind a jump is never reached, so it goes.
                self.depth -= 1;
                return Ok((None, out));
            };
            context = next;
        }
        self.depth -= 1;
        Ok((Some(context), out))
    }

    fn node(&mut self, context: Context, node: &Node) -> Step<(State, Node)> {
        self.step(node.span(), 1)?;
        match node {
            Node::Text(span, text) => {
                self.step(*span, text.len() / 64)?;
                let (context, text) = literal::escape(context, text).or_else(|message| fail(*span, message))?;
                Ok((Some(context), Node::Text(*span, text)))
            }
            Node::Action(pipe) if pipe.variables.is_empty() => {
                let (next, pipe, escapers) = action::escape(&context, pipe)?;
                Ok((Some(next), Node::Escaped(pipe, escapers)))
            }
            Node::Action(_) | Node::Escaped(..) => Ok((Some(context), node.clone())),
            Node::If(branch) => {
                let (state, branch) = self.branch(context, branch)?;
                Ok((state, Node::If(branch)))
            }
            Node::With(branch) => {
                let (state, branch) = self.branch(context, branch)?;
                Ok((state, Node::With(branch)))
            }
            Node::Range(branch) => {
                let (state, branch) = self.range(context, branch)?;
                Ok((state, Node::Range(branch)))
            }
            Node::Template { span, name, pipe } => {
                let (state, name) = self.template(&context, *span, name)?;
                Ok((state, Node::Template { span: *span, name, pipe: pipe.clone() }))
            }
            Node::Break(span) | Node::Continue(span) => {
                if let Some(inner) = self.loops.last_mut() {
                    inner.jumps.push((*span, context));
                }
                Ok((None, node.clone()))
            }
        }
    }

    fn branch(&mut self, context: Context, branch: &Branch) -> Step<(State, Branch)> {
        let (first, body) = self.list(context.clone(), &branch.body)?;
        let (second, otherwise) = self.list(context, &branch.otherwise)?;
        let state = join(first, second, branch.pipe.span)?;
        Ok((state, Branch { pipe: branch.pipe.clone(), body, otherwise }))
    }

    fn range(&mut self, context: Context, branch: &Branch) -> Step<(State, Branch)> {
        let span = branch.pipe.span;
        let (mut state, body) = self.turn(context.clone(), branch)?;
        // Further turns begin where the first one ended. What began where it ended needs no second look.
        if let Some(again) = state.clone().filter(|state| *state != context) {
            let (second, _) = self.turn(again, branch)?;
            state = join(state, second, span)?;
        }
        let (other, otherwise) = self.list(context, &branch.otherwise)?;
        let state = join(state, other, span)?;
        Ok((state, Branch { pipe: branch.pipe.clone(), body, otherwise }))
    }

    /// One turn of a loop, whichever way it ends.
    fn turn(&mut self, context: Context, branch: &Branch) -> Step<(State, Vec<Node>)> {
        self.loops.push(Loop::default());
        let outcome = self.list(context, &branch.body);
        let jumps = self.loops.pop().unwrap_or_default().jumps;
        let (mut state, body) = outcome?;
        for (span, context) in jumps {
            state = join(state, Some(context), span)?;
        }
        Ok((state, body))
    }

    /// Escapes the body of a called template for the context of the call.
    fn template(&mut self, context: &Context, span: Span, name: &[u8]) -> Step<(State, Vec<u8>)> {
        let Some(body) = self.source.get(name) else {
            return fail(span, format!("template {:?} is not defined", String::from_utf8_lossy(name)));
        };
        let key = key(name, context);
        self.known.called.insert(key.clone());
        if let Some(end) = self.known.ends.get(&key) {
            return Ok((end.clone(), key));
        }
        // A template that calls itself is assumed to end where it began, else where the first attempt ended.
        let (first, done) = self.attempt(context, &key, body, span)?;
        if done {
            return Ok((first, key));
        }
        if let Some(start) = first
            && let (second, true) = self.attempt(&start, &key, body, span)?
        {
            return Ok((second, key));
        }
        let name = String::from_utf8_lossy(name);
        fail(span, format!("template {name:?} calls itself in changing contexts"))
    }

    /// Escapes a body on the assumption that it ends where it begins; the result counts if that is so or does not matter.
    fn attempt(&mut self, start: &Context, key: &[u8], body: &[Node], span: Span) -> Step<(State, bool)> {
        self.step(span, 1 + self.known.ends.len())?;
        let before = self.known.clone();
        let outer_loops = std::mem::take(&mut self.loops);
        self.known.called.clear();
        self.known.ends.insert(key.to_vec(), Some(start.clone()));
        let (end, nodes) = self.list(start.clone(), body)?;
        self.loops = outer_loops;
        if self.known.called.contains(key) && end.as_ref() != Some(start) {
            self.known = before;
            return Ok((end, false));
        }
        self.known.called.extend(before.called);
        self.known.ends.insert(key.to_vec(), end.clone());
        self.bodies.insert(key.to_vec(), nodes);
        Ok((end, true))
    }
}

/// The name of a template as it is called in a context.
fn key(name: &[u8], context: &Context) -> Vec<u8> {
    if context.place == Place::Text {
        return name.to_vec();
    }
    [name, format!("\0{context:?}").as_bytes()].concat()
}

fn join(first: State, second: State, span: Span) -> Step<State> {
    match (first, second) {
        (None, other) | (other, None) => Ok(other),
        (Some(first), Some(second)) => {
            let Some(context) = first.join(&second) else {
                let (first, second) = (first.describe(), second.describe());
                return fail(
                    span,
                    format!("branches end in different contexts: one inside {first}, one inside {second}"),
                );
            };
            Ok(Some(context))
        }
    }
}
