#![doc = include_str!("../EVOLUTION.md")]
//!
//! ```text
//!   two documents ─▶ definition ─▶ judge (diff) ─▶ report   text, JSON, Markdown
//!                                  ├─ node     what a node of a schema says
//!                                  ├─ sample   values that a schema allows
//!                                  └─ class, step
//!   one document + a conversion ─▶ round_trip   there and back again, on objects that the schemas allow
//!   a schema + an object ─▶ example   the nearest object that the schema allows
//! ```

mod class;
mod definition;
mod example;
mod judge;
mod node;
mod report;
mod round_trip;
mod sample;
mod step;
mod trial;

pub use class::Class;
pub use definition::{Definition, DefinitionError};
pub use example::{NoExample, example};
pub use judge::{diff, harm};
pub use report::{Change, Report};
pub use round_trip::{Loss, round_trips, stored_examples};
pub use sample::examples;
pub use trial::{Harmed, Trial};
