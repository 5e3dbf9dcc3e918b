//! The passage between both sides: conversion to the version of the other side, and mutations, which always see that of the service cluster.

use carrick_sync::Transform;
use serde_json::Value;

use super::route::Route;
use crate::rules::implements::Mapping;
use crate::rules::mutation::{Mutation, MutationError};

/// What becomes of an object on its way.
#[derive(Debug, Clone, Default)]
pub struct Passage {
    mutation: Mutation,
    way: Way,
}

/// How an object gets from one side to the other.
#[derive(Debug, Clone, Default)]
enum Way {
    /// As it is.
    #[default]
    Straight,
    /// To the version of the service cluster, and back to that in kcp.
    Versions { down: Route, up: Route },
    /// To another kind.
    Kinds(Mapping),
}

impl Passage {
    /// By these mutations, and by these ways if they lead anywhere.
    pub fn new(mutation: Mutation, down: Route, up: Route) -> Self {
        let stays = down.is_empty() && up.is_empty();
        Self { mutation, way: if stays { Way::Straight } else { Way::Versions { down, up } } }
    }

    /// By these mutations, and to another kind.
    pub fn mapped(mutation: Mutation, mapping: Mapping) -> Self {
        Self { mutation, way: Way::Kinds(mapping) }
    }

    /// Whether copies are of a kind of their own, so that nothing of them comes back that no rule brings.
    pub fn is_mapped(&self) -> bool {
        matches!(self.way, Way::Kinds(_))
    }

    /// The source as it is written to its copy.
    pub fn spec(&self, source: &Value, copy: Option<&Value>) -> Result<Value, MutationError> {
        match &self.way {
            Way::Straight => self.mutation.spec(source, copy),
            Way::Versions { down, .. } => self.mutation.spec(&down.apply(source)?, copy),
            Way::Kinds(mapping) => self.mutation.spec(&mapping.spec(source, copy)?, copy),
        }
    }

    /// The copy as its source would be in kcp: converted back to that version, with mutations left as they are, because only some have a way back.
    /// `None` if copies are of a kind of their own.
    pub fn reversed(&self, copy: &Value) -> Result<Option<Value>, MutationError> {
        match &self.way {
            Way::Straight => Ok(Some(copy.clone())),
            Way::Versions { up, .. } => up.apply(copy).map(Some),
            Way::Kinds(_) => Ok(None),
        }
    }

    /// Whether nothing changes on the way to the copy.
    pub fn keeps_spec(&self) -> bool {
        matches!(self.way, Way::Straight) && self.mutation.keeps_spec()
    }

    /// The copy as it is written to its source. What the source would be on the service cluster is given, too.
    pub fn status(&self, copy: &Value, source: &Value) -> Result<Value, MutationError> {
        let mutated = self.mutation.status(copy, source)?;
        match &self.way {
            Way::Straight => Ok(mutated),
            Way::Versions { up, .. } => up.apply(&mutated),
            Way::Kinds(mapping) => mapping.status(&mutated, source),
        }
    }
}

impl Transform for Passage {
    type Error = MutationError;

    fn spec(&self, source: &Value, copy: Option<&Value>) -> Result<Value, MutationError> {
        self.spec(source, copy)
    }

    fn keeps_spec(&self) -> bool {
        self.keeps_spec()
    }

    fn status(&self, copy: &Value, source: &Value) -> Result<Value, MutationError> {
        self.status(copy, source)
    }
}
