//! The passage between both sides: conversion to the version of the other side, and mutations, which always see that of the service cluster.

use carrick_sync::Transform;
use serde_json::Value;

use super::route::Route;
use crate::rules::mutation::{Mutation, MutationError};

/// What becomes of an object on its way.
#[derive(Debug, Clone, Default)]
pub struct Passage {
    mutation: Mutation,
    /// To the version of the service cluster, and back to that in kcp; nothing if both are the same.
    ways: Option<(Route, Route)>,
}

impl Passage {
    /// By these mutations, and by these ways if they lead anywhere.
    pub fn new(mutation: Mutation, down: Route, up: Route) -> Self {
        let stays = down.is_empty() && up.is_empty();
        Self { mutation, ways: (!stays).then_some((down, up)) }
    }

    /// The source as it is written to its copy.
    pub fn spec(&self, source: &Value, copy: Option<&Value>) -> Result<Value, MutationError> {
        match &self.ways {
            Some((down, _)) => self.mutation.spec(&down.apply(source)?, copy),
            None => self.mutation.spec(source, copy),
        }
    }

    /// Whether nothing changes on the way to the copy.
    pub fn keeps_spec(&self) -> bool {
        self.ways.is_none() && self.mutation.keeps_spec()
    }

    /// The copy as it is written to its source. What the source would be on the service cluster is given, too.
    pub fn status(&self, copy: &Value, source: &Value) -> Result<Value, MutationError> {
        let mutated = self.mutation.status(copy, source)?;
        match &self.ways {
            Some((_, up)) => up.apply(&mutated),
            None => Ok(mutated),
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
