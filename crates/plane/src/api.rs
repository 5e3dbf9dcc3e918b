//! The verbs on one resource, used by the HTTP layer and by controllers in the same process.
//!
//! A write runs through: decode checks → prune → defaults → kind rules (`rules`) → extension admission → mutating webhooks (`admit`) →
//! validation → ownership (`managed`) → policies and validating webhooks → store. A read runs through: store → conversion → defaults →
//! extension decoration.

mod admit;
mod apply;
mod base;
mod change;
mod create;
mod decode;
mod delete;
mod etcd;
mod fields;
mod managed;
mod meta;
mod object;
mod patch;
mod read;
mod registry;
mod rules;
mod scope;
mod select;
mod typed;
mod update;
mod versions;
mod watch;
mod write;

pub use base::Api;
pub use delete::DeleteOptions;
pub(crate) use patch::custom_patches;
pub use read::{ListOptions, Listed, RevisionMatch};
pub(crate) use rules::CLEANUP_FINALIZER;
pub use scope::Scope;
pub use select::{FieldSelector, LabelSelector};
pub(crate) use watch::bookmark;
pub use watch::{Event, EventKind, Events, WatchOptions};
pub use write::{FieldValidation, WriteOptions, Written};
