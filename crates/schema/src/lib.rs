#![doc = include_str!("../README.md")]
//!
//! ```text
//!   openAPIV3Schema ─▶ compile ─▶ Schema (node) ─┬─▶ defaults, prune   what is stored
//!                      └ admit, pattern          └─▶ validate ─┬─ format
//!                                                              ├─ alternatives   allOf, anyOf, oneOf, not
//!                                                              └─ rules          x-kubernetes-validations
//!   two schemas ─▶ evolution       what the change does to those who use the API: compatible, tightening or breaking
//! ```

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "tests may"))]

mod admit;
mod alternatives;
mod cause;
mod compile;
mod defaults;
mod error;
pub mod evolution;
mod format;
#[cfg(test)]
mod go;
mod node;
mod pattern;
mod prune;
mod rules;
mod stored;
mod validate;

pub use admit::{RuleContext, entry_faults, rule_faults};
pub use cause::Cause;
pub use error::SchemaError;
pub use node::{Entries, ListType, Properties, Schema, Type};
pub use prune::unknown_metadata;
