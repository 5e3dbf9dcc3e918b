//! What a kind is: names, versions, schemas, verbs.

pub mod builtin;
mod catalog;
mod events;
pub(crate) mod groups;
mod kind;
mod read;
mod shapes;
mod shared;
mod text;

pub use catalog::Catalog;
pub use kind::{Column, Convert, Origin, Resource, Scale, Version, api_version, version_rank};
