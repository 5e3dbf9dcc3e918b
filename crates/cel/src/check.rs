//! Turns a parsed expression into nodes: resolves names, unescapes fields, checks types, chooses overloads.

use cel::common::ast::{CallExpr, EntryExpr, Expr, IdedExpr, LiteralValue, SelectExpr, SourceInfo, operators};

use crate::budget::Budget;
use crate::environment::Environment;
use crate::error::{CompileError, Position};
use crate::escape;
use crate::functions::{format, regex};
use crate::limits::MAX_DEPTH;
use crate::node::{Access, Call, Index, Item, MapEntry, Node, Select};
use crate::signature::Overload;
use crate::types::{Bindings, Type};
use crate::value::{Value, overload};

/// A node and the type of what it gives.
pub(crate) type Typed = (Node, Type);

/// The state of compiling one expression.
pub(crate) struct Checker<'s> {
    pub environment: &'static Environment,
    pub source: &'s str,
    pub info: &'s SourceInfo,
    /// Variables in scope: those of the environment, then those of the enclosing comprehensions.
    pub scope: Vec<(String, Type)>,
    /// Which variables of the environment were met.
    pub used: Vec<bool>,
    pub deepest: usize,
    /// Whether elements of a list have to be of one type as far as their types say. Without a schema, fields could be
    /// of the type that is wanted.
    pub strict: bool,
    /// Whether numbers of different types can be ordered: always in rules, in mutations once a comprehension was met.
    /// That is how the reference does it.
    pub crossing: bool,
    /// How many enclosing calls take lists of mixed types.
    pub mixed: usize,
    /// The elements of the list literal that was visited last: their types and places.
    pub elements: Vec<(Type, u64)>,
    /// Errors found so far; of a rule, all are reported.
    pub faults: Vec<CompileError>,
    /// Errors that are reported if there are no others.
    pub later: Vec<CompileError>,
}

impl Checker<'_> {
    /// Compiles one part. An error in a rule is noted, and the part then counts as being of any type.
    pub fn visit(&mut self, node: &IdedExpr, depth: usize) -> Result<Typed, CompileError> {
        match self.part(node, depth) {
            Err(fault) => self.note(fault).map(|()| (Node::Constant(Value::Null), Type::Dyn)),
            found => found,
        }
    }

    /// Keeps an error for later, unless it is the only one to be reported.
    pub fn note(&mut self, fault: CompileError) -> Result<(), CompileError> {
        if !self.environment.kubernetes || fault.position().is_none() {
            return Err(fault);
        }
        self.faults.push(fault);
        Ok(())
    }

    fn note_for_later(&mut self, fault: CompileError) -> Result<(), CompileError> {
        if !self.environment.kubernetes {
            return Err(fault);
        }
        self.later.push(fault);
        Ok(())
    }

    fn part(&mut self, node: &IdedExpr, depth: usize) -> Result<Typed, CompileError> {
        if depth > MAX_DEPTH {
            return Err(CompileError::TooComplex);
        }
        self.deepest = self.deepest.max(depth);
        match &node.expr {
            Expr::Literal(literal) => Ok(constant(literal)),
            Expr::Ident(name) => self.variable(name, node.id),
            Expr::Select(select) => self.select(select, node, depth),
            Expr::Call(call) => self.call(call, node.id, depth),
            Expr::List(list) => {
                let (mut items, mut kind, mut elements) = (Vec::new(), None, Vec::new());
                for (at, element) in list.elements.iter().enumerate() {
                    let optional = list.optional_indices.contains(&at);
                    let (value, found) = self.visit(element, depth + 1)?;
                    let found = if optional { self.unwrapped(found, element.id)? } else { found };
                    elements.push((found.clone(), element.id));
                    self.same_as_before(&mut kind, found, element.id).or_else(|fault| self.note_for_later(fault))?;
                    items.push(Item { value, optional });
                }
                self.elements = elements;
                Ok((Node::List(items), Type::list(kind.unwrap_or(Type::Free))))
            }
            Expr::Map(map) => {
                let (mut entries, mut keys, mut values) = (Vec::new(), None, None);
                for entry in &map.entries {
                    let EntryExpr::MapEntry(pair) = &entry.expr else {
                        return Err(self.mismatch("unsupported entry".to_owned(), entry.id));
                    };
                    let (key, key_type) = self.visit(&pair.key, depth + 1)?;
                    self.same_as_before(&mut keys, key_type, pair.key.id)
                        .or_else(|fault| self.note_for_later(fault))?;
                    let (value, found) = self.visit(&pair.value, depth + 1)?;
                    let found = if pair.optional { self.unwrapped(found, pair.value.id)? } else { found };
                    self.same_as_before(&mut values, found, pair.value.id)
                        .or_else(|fault| self.note_for_later(fault))?;
                    entries.push(MapEntry { key, value, optional: pair.optional });
                }
                Ok((Node::Map(entries), Type::map(keys.unwrap_or(Type::Free), values.unwrap_or(Type::Free))))
            }
            Expr::Struct(message) => Err(self.undeclared(message.type_name.clone(), node.id)),
            Expr::Unspecified | Expr::Comprehension(_) => {
                Err(self.mismatch("unsupported expression".to_owned(), node.id))
            }
        }
    }

    /// Joins the type of an element with those before it; rules want all of one type.
    fn same_as_before(&self, before: &mut Option<Type>, found: Type, id: u64) -> Result<(), CompileError> {
        let joined = match before.take() {
            None => found,
            Some(known) if !self.alike(&known, &found) => {
                let fault = self.mismatch(format!("expected type '{known}' but found '{found}'"), id);
                *before = Some(Type::Dyn);
                return Err(fault);
            }
            Some(known) => known.join(&found),
        };
        *before = Some(joined);
        Ok(())
    }

    fn alike(&self, known: &Type, found: &Type) -> bool {
        if !self.environment.kubernetes || self.mixed > 0 {
            return true;
        }
        if self.strict { known.agrees(found) } else { known.fits(found) }
    }

    fn unwrapped(&self, found: Type, id: u64) -> Result<Type, CompileError> {
        match found {
            Type::Optional(value) => Ok((*value).clone()),
            Type::Dyn | Type::Free => Ok(Type::Dyn),
            other => Err(self.mismatch(format!("expected type 'optional_type({other})' but found '{other}'"), id)),
        }
    }

    fn variable(&mut self, name: &str, id: u64) -> Result<Typed, CompileError> {
        // a leading dot leads past the variables of comprehensions
        let (name, seen) = match name.strip_prefix('.') {
            Some(name) => (name, self.used.len()),
            None => (name, self.scope.len()),
        };
        if let Some(at) = self.scope[..seen].iter().rposition(|(known, _)| known == name) {
            if let Some(used) = self.used.get_mut(at) {
                *used = true;
            }
            return Ok((Node::Variable(at), self.scope[at].1.clone()));
        }
        match Type::named(name).filter(|found| self.environment.knows_type(found)) {
            Some(found) => Ok((Node::Constant(Value::Type(found.name().into())), Type::meta(found))),
            None => Err(self.undeclared(name.to_owned(), id)),
        }
    }

    fn select(&mut self, select: &SelectExpr, node: &IdedExpr, depth: usize) -> Result<Typed, CompileError> {
        if let Some(name) = qualified_name(node)
            && !self.scope.iter().any(|(known, _)| name.split('.').next() == Some(known))
            && let Some(found) = Type::named(&name).filter(|found| self.environment.knows_type(found))
        {
            return Ok((Node::Constant(Value::Type(found.name().into())), Type::meta(found)));
        }
        self.field(&select.operand, &select.field, Access::Plain, node.id, depth)
    }

    /// Compiles the access to a field.
    pub fn field(
        &mut self,
        operand: &IdedExpr,
        field: &str,
        mode: Access,
        id: u64,
        depth: usize,
    ) -> Result<Typed, CompileError> {
        let (operand, operand_type) = self.visit(operand, depth + 1)?;
        let inner = match &operand_type {
            Type::Optional(inner) => inner,
            other => other,
        };
        let found = match inner {
            Type::Map(_, value) => (**value).clone(),
            Type::Object(object) => match object.field(field) {
                Some(found) => found.clone(),
                None => return Err(self.mismatch(format!("undefined field '{field}'"), id)),
            },
            Type::Dyn | Type::Free => Type::Dyn,
            other => return Err(self.mismatch(format!("type '{other}' does not support field selection"), id)),
        };
        let escaped = match inner {
            Type::Object(_) => true,
            Type::Map(..) => false,
            // without a schema it could be an object
            _ => self.environment.kubernetes && !self.strict,
        };
        let field = if escaped { escape::unescape(field).into_owned() } else { field.to_owned() };
        let result = match mode {
            Access::Test => Type::Bool,
            Access::Optional => Type::optional(found),
            Access::Plain if matches!(operand_type, Type::Optional(_)) => Type::optional(found),
            Access::Plain => found,
        };
        Ok((Node::Select(Box::new(Select { operand, field: field.into(), mode })), result))
    }

    fn call(&mut self, call: &CallExpr, id: u64, depth: usize) -> Result<Typed, CompileError> {
        if let Some(result) = self.expand(call, id, depth)? {
            return Ok(result);
        }
        if call.func_name == operators::OPT_SELECT
            && let [operand, IdedExpr { expr: Expr::Literal(LiteralValue::String(field)), .. }] = call.args.as_slice()
        {
            return self.field(operand, field.inner(), Access::Optional, id, depth);
        }
        let (name, member) = match self.function(call, id) {
            Ok(found) => found,
            Err(fault) => {
                let all = self.environment.kubernetes;
                for argument in call.target.as_deref().into_iter().chain(&call.args).filter(|_| all) {
                    self.visit(argument, depth + 1)?;
                }
                return Err(fault);
            }
        };
        let mut arguments = Vec::new();
        let target = call.target.as_deref().filter(|_| member);
        let mixed = member && name == "format";
        self.mixed += usize::from(mixed);
        for argument in target.into_iter().chain(&call.args) {
            let mut found = self.visit(argument, depth + 1)?;
            if matches!(name.as_str(), operators::LOGICAL_AND | operators::LOGICAL_OR)
                && let Err(fault) = self.must_be_bool(&found.1, argument.id)
            {
                self.note(fault)?;
                found.1 = Type::Dyn;
            }
            arguments.push(found);
        }
        self.mixed -= usize::from(mixed);
        if mixed && matches!(call.args.as_slice(), [IdedExpr { expr: Expr::List(_), .. }]) {
            self.check_format(&arguments, call.args[0].id)?;
        }
        let literal = call.args.last().map_or(id, |last| last.id);
        self.resolve(&name, member, arguments, [id, literal])
    }

    /// Refuses a literal template that does not fit the list literal it is filled with.
    fn check_format(&self, arguments: &[Typed], id: u64) -> Result<(), CompileError> {
        match arguments.first() {
            Some((Node::Constant(Value::String(template)), _)) => {
                format::check(template, &self.elements, id).map_err(|(reason, at)| self.mismatch(reason, at))
            }
            _ => Ok(()),
        }
    }

    /// The name of the function that is called, and whether it is called on a value.
    fn function(&self, call: &CallExpr, id: u64) -> Result<(String, bool), CompileError> {
        let qualified =
            call.target.as_deref().and_then(qualified_name).map(|prefix| format!("{prefix}.{}", call.func_name));
        let namespaced = qualified.filter(|name| self.environment.overloads(name, false).next().is_some());
        let member = call.target.is_some() && namespaced.is_none();
        let name = namespaced.unwrap_or_else(|| without_dot(&call.func_name).to_owned());
        if self.environment.overloads(&name, member).next().is_none() {
            return Err(self.undeclared(name, id));
        }
        Ok((name, member))
    }

    /// Chooses the overloads that the types of the arguments allow.
    fn resolve(
        &self,
        name: &str,
        member: bool,
        arguments: Vec<Typed>,
        [id, literal]: [u64; 2],
    ) -> Result<Typed, CompileError> {
        let mut overloads: Vec<&'static Overload> = Vec::new();
        let mut result: Option<Type> = None;
        for candidate in self.environment.overloads(name, member) {
            let mut bound = Bindings::default();
            let fits = (self.crossing || !candidate.crosses())
                && candidate.parameters.len() == arguments.len()
                && candidate
                    .parameters
                    .iter()
                    .zip(&arguments)
                    .all(|(want, (_, given))| want.accepts(given, &mut bound));
            if fits {
                let found = bound.apply(&candidate.result);
                result = Some(match result {
                    // what a parameter stands for in one overload has nothing to do with the other
                    Some(before) if before != found || candidate.result.is_open() => Type::Dyn,
                    _ => found,
                });
                overloads.push(candidate);
            }
        }
        let Some(result) = result else {
            let kinds: Vec<String> = arguments.iter().map(|(_, kind)| kind.to_string()).collect();
            let shown = match kinds.split_first() {
                Some((target, rest)) if member => format!("{target}.({})", rest.join(", ")),
                _ => format!("({})", kinds.join(", ")),
            };
            return Err(self.mismatch(format!("found no matching overload for '{name}' applied to '{shown}'"), id));
        };
        let arguments: Vec<Node> = arguments.into_iter().map(|(argument, _)| argument).collect();
        let mut call = Call { name: name.to_owned(), overloads, arguments };
        let known = self.literals(&mut call, literal)?;
        Ok((known.unwrap_or_else(|| special(call, member)), result))
    }

    /// Prepares literal patterns and computes literal conversions once; rules with literals that cannot work are refused.
    fn literals(&self, call: &mut Call, id: u64) -> Result<Option<Node>, CompileError> {
        let prepared = match (call.name.as_str(), call.arguments.as_mut_slice()) {
            ("matches" | "find" | "findAll", [_, Node::Constant(literal @ Value::String(_)), ..]) => {
                regex::literal(literal).map(|()| None)
            }
            (
                "bool" | "bytes" | "double" | "duration" | "int" | "string" | "timestamp" | "uint",
                [Node::Constant(literal)],
            ) => {
                let arguments = std::slice::from_ref(&*literal);
                match call.overloads.iter().find(|known| known.takes(arguments)) {
                    Some(known) => (known.run)(arguments, &Budget::new()).map(|known| Some(Node::Constant(known))),
                    None => Err(overload(&call.name, arguments)),
                }
            }
            _ => Ok(None),
        };
        match prepared {
            Err(_) if self.environment.kubernetes => Err(self.mismatch(format!("invalid {} argument", call.name), id)),
            // mutations fail when they are evaluated
            Err(_) => Ok(None),
            Ok(known) => Ok(known),
        }
    }

    pub fn undeclared(&self, name: String, id: u64) -> CompileError {
        CompileError::Undeclared { name, position: self.position(id) }
    }

    pub fn mismatch(&self, reason: String, id: u64) -> CompileError {
        CompileError::NoOverload { reason, position: self.position(id) }
    }

    fn position(&self, id: u64) -> Position {
        let offset = self.info.offset_for(id).map_or(0, |(start, _)| start as usize);
        let before = self.source.get(..offset).unwrap_or(self.source);
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        Position { line: before.matches('\n').count() + 1, column: before[line_start..].chars().count() + 1 }
    }
}

/// Operators that do not evaluate all their operands have nodes of their own.
fn special(call: Call, member: bool) -> Node {
    let mode = if call.name == operators::OPT_INDEX { Access::Optional } else { Access::Plain };
    let make: fn(Box<[Node; 2]>) -> Node = match call.name.as_str() {
        operators::LOGICAL_AND => Node::And,
        operators::LOGICAL_OR => Node::Or,
        operators::INDEX | operators::OPT_INDEX => {
            return match <[Node; 2]>::try_from(call.arguments) {
                Ok([operand, key]) => Node::Index(Box::new(Index { operand, key, mode })),
                Err(_) => Node::Constant(Value::Null),
            };
        }
        operators::CONDITIONAL => {
            return match <[Node; 3]>::try_from(call.arguments) {
                Ok(parts) => Node::Conditional(Box::new(parts)),
                Err(_) => Node::Constant(Value::Null),
            };
        }
        "or" if member => Node::OrElse,
        "orValue" if member => Node::OrValue,
        _ => return Node::Call(Box::new(call)),
    };
    // the overloads have exactly two parameters
    <[Node; 2]>::try_from(call.arguments).map_or(Node::Constant(Value::Null), |pair| make(Box::new(pair)))
}

fn constant(literal: &LiteralValue) -> Typed {
    let (value, kind) = match literal {
        LiteralValue::Boolean(value) => (Value::Bool(*value.inner()), Type::Bool),
        LiteralValue::Bytes(bytes) => (Value::Bytes(bytes.inner().into()), Type::Bytes),
        LiteralValue::Double(value) => (Value::Double(*value.inner()), Type::Double),
        LiteralValue::Int(value) => (Value::Int(*value.inner()), Type::Int),
        LiteralValue::Null => (Value::Null, Type::Null),
        LiteralValue::String(text) => (Value::string(text.inner()), Type::String),
        LiteralValue::UInt(value) => (Value::Uint(*value.inner()), Type::Uint),
    };
    (Node::Constant(value), kind)
}

/// There are no packages, so a name with a leading dot is just that name.
fn without_dot(name: &str) -> &str {
    name.strip_prefix('.').unwrap_or(name)
}

/// `a.b.c` as text, if the expression is nothing but names.
fn qualified_name(node: &IdedExpr) -> Option<String> {
    match &node.expr {
        Expr::Ident(name) => Some(without_dot(name).to_owned()),
        Expr::Select(select) => qualified_name(&select.operand).map(|operand| format!("{operand}.{}", select.field)),
        _ => None,
    }
}
