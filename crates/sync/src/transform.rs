//! Transforms: what becomes of an object on its way to the other side.

use std::convert::Infallible;

use serde_json::Value;

/// What becomes of an object on its way to its copy, and of a status on its way back.
pub trait Transform {
    /// Why an object cannot be transformed.
    type Error;

    /// The source as it is written to its copy.
    fn spec(&self, source: &Value, copy: Option<&Value>) -> Result<Value, Self::Error>;

    /// Whether nothing changes on the way to the copy.
    fn keeps_spec(&self) -> bool;

    /// The copy as it is written to its source.
    fn status(&self, copy: &Value, source: &Value) -> Result<Value, Self::Error>;
}

/// Objects arrive as they are.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unchanged;

impl Transform for Unchanged {
    type Error = Infallible;

    fn spec(&self, source: &Value, _: Option<&Value>) -> Result<Value, Infallible> {
        Ok(source.clone())
    }

    fn keeps_spec(&self) -> bool {
        true
    }

    fn status(&self, copy: &Value, _: &Value) -> Result<Value, Infallible> {
        Ok(copy.clone())
    }
}
