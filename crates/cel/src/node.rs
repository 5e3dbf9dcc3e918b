//! What an expression becomes when it is compiled: names resolved, fields unescaped, overloads chosen.

use std::sync::Arc;

use crate::signature::Overload;
use crate::value::Value;

/// A part of an expression.
#[derive(Debug)]
pub(crate) enum Node {
    Constant(Value),
    /// A variable by its place on the stack: those of the environment first, then those of comprehensions.
    Variable(usize),
    Select(Box<Select>),
    Index(Box<Index>),
    And(Box<[Node; 2]>),
    Or(Box<[Node; 2]>),
    Conditional(Box<[Node; 3]>),
    List(Vec<Item>),
    Map(Vec<MapEntry>),
    Call(Box<Call>),
    /// The left one if it has a value, else the right one, which is not evaluated before.
    OrElse(Box<[Node; 2]>),
    /// The value of the left one if it has one, else the right one.
    OrValue(Box<[Node; 2]>),
    Fold(Box<Fold>),
}

/// `operand.field`
#[derive(Debug)]
pub(crate) struct Select {
    pub operand: Node,
    pub field: Arc<str>,
    pub mode: Access,
}

/// `operand[key]`
#[derive(Debug)]
pub(crate) struct Index {
    pub operand: Node,
    pub key: Node,
    pub mode: Access,
}

/// What happens when there is nothing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Access {
    /// An error, unless the operand is optional.
    Plain,
    /// No value, and otherwise an optional value: `.?` and `[?]`.
    Optional,
    /// False, and otherwise true: `has()`.
    Test,
}

/// An element of a list literal.
#[derive(Debug)]
pub(crate) struct Item {
    pub value: Node,
    pub optional: bool,
}

/// An entry of a map literal.
#[derive(Debug)]
pub(crate) struct MapEntry {
    pub key: Node,
    pub value: Node,
    pub optional: bool,
}

/// A function or operator and the overloads that the types leave.
#[derive(Debug)]
pub(crate) struct Call {
    pub name: String,
    pub overloads: Vec<&'static Overload>,
    pub arguments: Vec<Node>,
}

/// A macro that runs through a list, a map or an optional value.
#[derive(Debug)]
pub(crate) struct Fold {
    pub kind: FoldKind,
    pub range: Node,
    /// Whether there are two variables: index and item, or key and value.
    pub pairs: bool,
    pub filter: Option<Node>,
    pub body: Node,
}

/// What a macro makes of its body.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum FoldKind {
    All,
    Exists,
    ExistsOne,
    /// `map`, `transformList`
    Map,
    Filter,
    /// `transformMap`
    Values,
    /// `transformMapEntry`
    Entries,
    SortBy,
    OptMap,
    OptFlatMap,
}
