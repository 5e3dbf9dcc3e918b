//! Evaluates the macros that run through lists and maps.

use std::sync::Arc;

use crate::error::EvalError;
use crate::eval::Evaluator;
use crate::functions::lists::sort_by_keys;
use crate::input::Input;
use crate::node::{Fold, FoldKind};
use crate::value::{Map, Outcome, Value, overload};

/// What a macro has found so far.
#[derive(Default)]
struct Accumulator {
    list: Vec<Value>,
    map: Map,
    keys: Vec<Value>,
    count: usize,
    /// The first error of a quantifier, which a later element may make irrelevant.
    error: Option<EvalError>,
    decided: bool,
}

impl Evaluator<'_> {
    /// Evaluates a macro.
    pub fn fold(&mut self, fold: &Fold) -> Outcome {
        let range = self.eval(&fold.range)?;
        if matches!(fold.kind, FoldKind::OptMap | FoldKind::OptFlatMap) {
            return self.fold_optional(fold, range);
        }
        let mut found = Accumulator::default();
        match &range {
            Value::List(list) => {
                for (index, item) in list.items.iter().enumerate() {
                    let pair = fold.pairs.then(|| Value::count(index));
                    if self.element(fold, pair, item.clone(), &mut found)? {
                        break;
                    }
                }
            }
            Value::Map(map) if fold.kind != FoldKind::SortBy => {
                for (key, value) in map.iter() {
                    let (first, last) =
                        if fold.pairs { (Some(Value::from(key)), value.clone()) } else { (None, Value::from(key)) };
                    if self.element(fold, first, last, &mut found)? {
                        break;
                    }
                }
            }
            other => return Err(overload("comprehension", std::slice::from_ref(other))),
        }
        self.finish(fold.kind, found)
    }

    fn fold_optional(&mut self, fold: &Fold, range: Value) -> Outcome {
        let Value::Optional(value) = range else { return Err(overload("optMap", &[range])) };
        let Some(value) = value else { return Ok(Value::Optional(None)) };
        self.stack.push(Input::Value((*value).clone()));
        let result = self.eval(&fold.body);
        self.stack.pop();
        match (fold.kind, result?) {
            (FoldKind::OptMap, result) => Ok(Value::Optional(Some(Arc::new(result)))),
            (_, result @ Value::Optional(_)) => Ok(result),
            (_, other) => Err(overload("optFlatMap", &[other])),
        }
    }

    /// Handles one element; true when no further one matters.
    fn element(
        &mut self,
        fold: &Fold,
        first: Option<Value>,
        last: Value,
        found: &mut Accumulator,
    ) -> Result<bool, EvalError> {
        self.budget.step()?;
        let height = self.stack.len();
        let key = first.clone();
        self.stack.extend(first.map(Input::Value));
        self.stack.push(Input::Value(last.clone()));
        let result = self.step(fold, key, last, found);
        self.stack.truncate(height);
        result
    }

    fn step(
        &mut self,
        fold: &Fold,
        key: Option<Value>,
        item: Value,
        found: &mut Accumulator,
    ) -> Result<bool, EvalError> {
        if let Some(filter) = &fold.filter
            && !self.truth("_?_:_", filter)?
        {
            return Ok(false);
        }
        match fold.kind {
            FoldKind::All | FoldKind::Exists => {
                let decisive = fold.kind == FoldKind::Exists;
                match self.truth(if decisive { "_||_" } else { "_&&_" }, &fold.body) {
                    Ok(value) => found.decided = value == decisive,
                    Err(EvalError::TooManySteps) => return Err(EvalError::TooManySteps),
                    Err(error) => {
                        found.error.get_or_insert(error);
                    }
                }
                return Ok(found.decided);
            }
            FoldKind::ExistsOne => found.count += usize::from(self.truth("_?_:_", &fold.body)?),
            FoldKind::Filter => {
                if self.truth("_?_:_", &fold.body)? {
                    found.list.push(item);
                }
            }
            FoldKind::SortBy => {
                found.keys.push(self.eval(&fold.body)?);
                found.list.push(item);
            }
            FoldKind::Values => {
                let value = self.eval(&fold.body)?;
                let key = key.and_then(|key| key.key()).ok_or(EvalError::Other("unsupported key type"))?;
                found.map.insert(key, value);
            }
            FoldKind::Entries => match self.eval(&fold.body)? {
                Value::Map(entries) => {
                    for (key, value) in entries.iter() {
                        self.budget.step()?;
                        if key.find(&found.map).is_some() {
                            return Err(EvalError::Other("a map has the same key twice"));
                        }
                        found.map.insert(key.clone(), value.clone());
                    }
                }
                other => return Err(overload("transformMapEntry", &[other])),
            },
            _ => found.list.push(self.eval(&fold.body)?),
        }
        Ok(false)
    }

    fn finish(&self, kind: FoldKind, found: Accumulator) -> Outcome {
        Ok(match kind {
            FoldKind::All | FoldKind::Exists if found.decided => Value::Bool(kind == FoldKind::Exists),
            FoldKind::All | FoldKind::Exists => match found.error {
                Some(error) => return Err(error),
                None => Value::Bool(kind == FoldKind::All),
            },
            FoldKind::ExistsOne => Value::Bool(found.count == 1),
            FoldKind::Values | FoldKind::Entries => Value::map(found.map),
            FoldKind::SortBy => Value::list(sort_by_keys(found.list, found.keys, &self.budget)?),
            _ => Value::list(found.list),
        })
    }
}
