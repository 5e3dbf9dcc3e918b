#![doc = include_str!("../README.md")]
//!
//! ```text
//!   two documents ─▶ definition ─▶ judge (diff) ─▶ report   text, JSON, Markdown
//!                                  ├─ node     what a node of a schema says
//!                                  ├─ sample   values that a schema allows
//!                                  └─ class, step
//! ```

#![forbid(unsafe_code)]

mod class;
mod definition;
mod judge;
mod node;
mod report;
mod sample;
mod step;
mod trial;

pub use class::Class;
pub use definition::{Definition, DefinitionError};
pub use judge::{diff, harm};
pub use report::{Change, Report};
pub use trial::{Harmed, Trial};
