//! The catalog: every PublishedResource with the CRD behind it and its compiled rules.
//!
//! ```text
//!  watch of PublishedResources ──────────────────┐
//!                                                ├─▶ build (pure) ─▶ Catalog ─▶ schemas, export and object controllers
//!  watch of CRDs' metadata ─▶ read one by one ───┤
//!  discovery and OpenAPI ────────────────────────┘   for kinds without a CRD
//! ```
//!
//! Definitions are large, so none stays in memory: each is read when it or a PublishedResource of it changes, and dropped as soon as
//! the name of its schema and the rules are known. Who needs it once more reads it again.
//!
//! Each PublishedResource stands for itself: what is wrong with one is noted beside it and changes nothing for the others. An edit that
//! makes one invalid leaves its last valid entry in place.

mod build;
mod cache;
mod definition;
mod entry;
mod inputs;
mod kinds;
mod watch;

pub use definition::Definition;
pub use entry::{Catalog, CatalogEntry, KeptStatus, Problem, Refused};

pub(crate) use definition::fetch as fetch_crd;
pub(crate) use kinds::describe;
pub(crate) use watch::{Setup, published_resources, run};
