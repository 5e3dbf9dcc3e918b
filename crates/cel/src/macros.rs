//! The macros: calls that bind variables or test for fields, and therefore cannot be functions.

use cel::common::ast::{CallExpr, Expr, IdedExpr};

use crate::check::{Checker, Typed};
use crate::error::CompileError;
use crate::node::{Access, Fold, FoldKind, Node};
use crate::types::Type;

/// A macro call: what it does, how many variables it binds, and whether it filters.
pub(crate) struct MacroShape {
    pub name: &'static str,
    pub kind: FoldKind,
    pub variables: usize,
    pub filtered: bool,
    /// Whether only rules have it.
    pub rules: bool,
}

const fn shape(name: &'static str, kind: FoldKind, variables: usize, filtered: bool, rules: bool) -> MacroShape {
    MacroShape { name, kind, variables, filtered, rules }
}

/// All macros but `has`, which binds nothing.
pub(crate) const MACROS: &[MacroShape] = &[
    shape("all", FoldKind::All, 1, false, false),
    shape("exists", FoldKind::Exists, 1, false, false),
    shape("exists_one", FoldKind::ExistsOne, 1, false, false),
    shape("map", FoldKind::Map, 1, false, false),
    shape("map", FoldKind::Map, 1, true, false),
    shape("filter", FoldKind::Filter, 1, false, false),
    shape("sortBy", FoldKind::SortBy, 1, false, false),
    shape("all", FoldKind::All, 2, false, true),
    shape("exists", FoldKind::Exists, 2, false, true),
    shape("exists_one", FoldKind::ExistsOne, 2, false, true),
    shape("existsOne", FoldKind::ExistsOne, 2, false, true),
    shape("transformList", FoldKind::Map, 2, false, true),
    shape("transformList", FoldKind::Map, 2, true, true),
    shape("transformMap", FoldKind::Values, 2, false, true),
    shape("transformMap", FoldKind::Values, 2, true, true),
    shape("transformMapEntry", FoldKind::Entries, 2, false, true),
    shape("transformMapEntry", FoldKind::Entries, 2, true, true),
    shape("optMap", FoldKind::OptMap, 1, false, true),
    shape("optFlatMap", FoldKind::OptFlatMap, 1, false, true),
];

impl MacroShape {
    /// How many arguments the call has.
    pub fn arguments(&self) -> usize {
        self.variables + 1 + usize::from(self.filtered)
    }
}

/// The macro of this name with this many arguments.
fn known(name: &str, arguments: usize, kubernetes: bool) -> Option<&'static MacroShape> {
    MACROS.iter().find(|shape| shape.name == name && shape.arguments() == arguments && (kubernetes || !shape.rules))
}

impl Checker<'_> {
    /// Compiles the call if it is a macro.
    pub fn expand(&mut self, call: &CallExpr, id: u64, depth: usize) -> Result<Option<Typed>, CompileError> {
        let Some(target) = call.target.as_deref() else {
            return match (call.func_name.as_str(), call.args.as_slice()) {
                ("has", [argument]) => self.has(argument, id, depth).map(Some),
                _ => Ok(None),
            };
        };
        let Some(shape) = known(&call.func_name, call.args.len(), self.environment.kubernetes) else {
            return Ok(None);
        };
        let (range, range_type) = self.visit(target, depth + 1)?;
        let types = match self.bound_types(shape, &range_type, target.id) {
            Ok(types) => types,
            Err(fault) => self.note(fault).map(|()| vec![Type::Dyn; shape.variables])?,
        };
        let mut names: Vec<String> = Vec::new();
        for argument in &call.args[..shape.variables] {
            match &argument.expr {
                Expr::Ident(name) if !names.contains(name) => names.push(name.clone()),
                Expr::Ident(name) => return Err(self.mismatch(format!("duplicate variable name: {name}"), id)),
                _ => return Err(self.mismatch("argument must be a simple name".to_owned(), argument.id)),
            }
        }
        self.crossing = true;
        let outer = self.scope.len();
        self.scope.extend(names.into_iter().zip(types));
        let parts = self.parts(shape, &call.args[shape.variables..], id, depth);
        self.scope.truncate(outer);
        let (filter, (body, body_type)) = parts?;
        let result = self.result(shape, &range_type, body_type, id)?;
        let fold = Fold { kind: shape.kind, range, pairs: shape.variables == 2, filter, body };
        Ok(Some((Node::Fold(Box::new(fold)), result)))
    }

    fn has(&mut self, argument: &IdedExpr, id: u64, depth: usize) -> Result<Typed, CompileError> {
        match &argument.expr {
            Expr::Select(select) => self.field(&select.operand, &select.field, Access::Test, id, depth),
            _ => Err(self.mismatch("invalid argument to has() macro".to_owned(), id)),
        }
    }

    /// The types of the variables.
    fn bound_types(&self, shape: &MacroShape, range: &Type, id: u64) -> Result<Vec<Type>, CompileError> {
        let optional = matches!(shape.kind, FoldKind::OptMap | FoldKind::OptFlatMap);
        let types = match range {
            Type::Optional(value) if optional => vec![(**value).clone()],
            Type::Dyn | Type::Free => vec![Type::Dyn; shape.variables],
            Type::List(item) if !optional && shape.variables == 2 => vec![Type::Int, (**item).clone()],
            Type::List(item) if !optional => vec![(**item).clone()],
            Type::Map(key, value) if !optional && shape.variables == 2 => vec![(**key).clone(), (**value).clone()],
            Type::Map(key, _) if !optional && shape.kind != FoldKind::SortBy => vec![(**key).clone()],
            other => {
                let reason = format!(
                    "expression of type '{other}' cannot be range of a comprehension (must be list, map, or dynamic)"
                );
                return Err(self.mismatch(reason, id));
            }
        };
        Ok(types)
    }

    fn parts(
        &mut self,
        shape: &MacroShape,
        rest: &[IdedExpr],
        id: u64,
        depth: usize,
    ) -> Result<(Option<Node>, Typed), CompileError> {
        let (filter, body) = match rest {
            [filter, body] if shape.filtered => {
                let (node, found) = self.visit(filter, depth + 1)?;
                self.must_be_bool(&found, filter.id)?;
                (Some(node), body)
            }
            [body, ..] => (None, body),
            [] => return Err(self.mismatch("a macro lacks arguments".to_owned(), id)),
        };
        let (node, found) = self.visit(body, depth + 1)?;
        if matches!(shape.kind, FoldKind::All | FoldKind::Exists | FoldKind::ExistsOne | FoldKind::Filter) {
            self.must_be_bool(&found, body.id)?;
        }
        Ok((filter, (node, found)))
    }

    pub fn must_be_bool(&self, found: &Type, id: u64) -> Result<(), CompileError> {
        if found.fits(&Type::Bool) {
            return Ok(());
        }
        Err(self.mismatch(format!("expected type 'bool' but found '{found}'"), id))
    }

    fn result(&self, shape: &MacroShape, range: &Type, body: Type, id: u64) -> Result<Type, CompileError> {
        Ok(match (shape.kind, range, body) {
            (FoldKind::All | FoldKind::Exists | FoldKind::ExistsOne, ..) => Type::Bool,
            (FoldKind::Map, _, body) => Type::list(body),
            (FoldKind::SortBy, _, body) if !body.has_order() => {
                return Err(self.mismatch(format!("values of type '{body}' cannot be sorted"), id));
            }
            (FoldKind::Filter | FoldKind::SortBy, Type::List(_), _) => range.clone(),
            (FoldKind::Filter, Type::Map(key, _), _) => Type::List(key.clone()),
            // the type of the keys decides which function is meant; each of them gives a list
            (FoldKind::SortBy, _, Type::Dyn | Type::Free) => Type::Dyn,
            (FoldKind::Filter | FoldKind::SortBy, ..) => Type::list(Type::Dyn),
            (FoldKind::Values, Type::Map(key, _), body) => Type::map((**key).clone(), body),
            (FoldKind::Values, Type::List(_), body) => Type::map(Type::Int, body),
            (FoldKind::Values, _, body) => Type::map(Type::Dyn, body),
            (FoldKind::Entries, _, Type::Dyn | Type::Free) => Type::map(Type::Dyn, Type::Dyn),
            (FoldKind::OptMap, _, body) => Type::optional(body),
            (FoldKind::Entries, _, body @ Type::Map(..))
            | (FoldKind::OptFlatMap, _, body @ (Type::Optional(_) | Type::Dyn | Type::Free)) => body,
            (kind, _, other) => {
                let wanted = if kind == FoldKind::Entries { "map" } else { "optional_type" };
                return Err(self.mismatch(format!("expected type '{wanted}' but found '{other}'"), id));
            }
        })
    }
}
