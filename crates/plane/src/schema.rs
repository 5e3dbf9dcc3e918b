//! Structural schemas: compiled once, then used to prune, default and validate objects. Whether a schema is structural is checked in
//! `crate::definition`, and only there.

mod admit;
mod alternatives;
mod compile;
mod defaults;
mod error;
mod format;
#[cfg(test)]
mod go;
mod node;
mod pattern;
mod prune;
mod rules;
mod validate;

pub(crate) use admit::{RuleContext, entry_faults, rule_faults};
pub use error::SchemaError;
pub use node::{ListType, Schema, Type};
pub use prune::unknown_metadata;
