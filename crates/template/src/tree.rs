//! A parsed template.

use std::collections::HashMap;

use crate::{functions::Function, lex::Span, value::Str};

/// A whole template text: the main body and the bodies it defines.
#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) body: Vec<Node>,
    pub(crate) templates: HashMap<Vec<u8>, Vec<Node>>,
}

/// One piece of a body.
#[derive(Clone, Debug)]
pub(crate) enum Node {
    Text(Span, String),
    Action(Pipe),
    If(Branch),
    With(Branch),
    Range(Branch),
    Template { span: Span, name: Vec<u8>, pipe: Option<Pipe> },
    Break(Span),
    Continue(Span),
}

impl Node {
    /// Where it is in the text.
    pub(crate) fn span(&self) -> Span {
        match self {
            Node::Text(span, _) | Node::Template { span, .. } | Node::Break(span) | Node::Continue(span) => *span,
            Node::Action(pipe) => pipe.span,
            Node::If(branch) | Node::With(branch) | Node::Range(branch) => branch.pipe.span,
        }
    }
}

/// A condition or a loop.
#[derive(Clone, Debug)]
pub(crate) struct Branch {
    pub(crate) pipe: Pipe,
    pub(crate) body: Vec<Node>,
    pub(crate) otherwise: Vec<Node>,
}

/// Commands joined by `|`, and the variables that get the result.
#[derive(Clone, Debug)]
pub(crate) struct Pipe {
    pub(crate) span: Span,
    pub(crate) variables: Vec<String>,
    /// `=` instead of `:=`.
    pub(crate) assigns: bool,
    pub(crate) commands: Vec<Command>,
}

/// A function, field, variable or constant, and its arguments.
#[derive(Clone, Debug)]
pub(crate) struct Command {
    pub(crate) span: Span,
    pub(crate) first: Operand,
    pub(crate) arguments: Vec<Operand>,
}

#[derive(Clone, Debug)]
pub(crate) struct Operand {
    pub(crate) span: Span,
    pub(crate) term: Term,
}

#[derive(Clone, Debug)]
pub(crate) enum Term {
    Dot,
    Nil,
    Bool(bool),
    Number(Number),
    Str(Str),
    /// `.a.b`
    Field(Vec<String>),
    /// `$x.a.b`
    Variable(String, Vec<String>),
    Function(&'static Function),
    Pipe(Box<Pipe>),
    /// `(...).a.b`
    Chain(Box<Operand>, Vec<String>),
}

/// A numeric constant: every type it can stand for.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Number {
    pub(crate) int: Option<i64>,
    pub(crate) uint: Option<u64>,
    pub(crate) float: Option<f64>,
    pub(crate) complex: Option<(f64, f64)>,
    /// Written like a float, so it is one where the type is open.
    pub(crate) written_as_float: bool,
}
