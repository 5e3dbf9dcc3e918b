//! What agents share that keep copies of objects in another cluster. All but [`executor`] is pure: no client, no runtime, no clock, no randomness.
//!
//! ```text
//!  source + copy + what is remembered ──▶ Pair ──▶ steps: finalizer, create, edit or apply, status, delete, remember
//!                                          │
//!            holders  who needs the finalizer of a source
//!            content  what changes on a copy: by remembered state, or by server-side apply
//!            adopt    what happens to an object that was there before
//!            acquired how the agent came to a copy, and so what becomes of it in the end
//!            drift    what others have changed of a copy since it was written
//!            memory   what was written last, in one Secret for each source
//!                                          ▼
//!                         Plan { steps, strands, next } ──▶ executor ──▶ both clusters
//! ```
//!
//! Executing all steps of a plan and deciding again must yield no steps, and so must deciding again after a crash between any two steps;
//! the tests check both for either memory. Names of labels, annotations and finalizers belong to the agent: see [`Vocabulary`].

pub mod acquired;
pub mod address;
pub mod adopt;
mod checksum;
pub mod content;
pub mod drift;
pub mod edit;
mod error;
pub mod executor;
pub mod holders;
mod key;
mod kind;
mod link;
mod mark;
pub mod memory;
pub mod object;
pub mod ownership;
mod pair;
mod record;
mod step;
mod transform;
mod vocabulary;

pub use acquired::Acquired;
pub use address::{ObjectAddress, Role, Side};
pub use adopt::{Adoption, AdoptionPolicy};
pub use error::PairError;
pub use key::SourceKey;
pub use kind::ApiKind;
pub use link::Link;
pub use mark::Mark;
pub use pair::{CopyEnd, Pair, StatusFlow, delete, delete_unchanged, draft, release_copy};
pub use record::Record;
pub use step::{Dependents, Event, Next, PairProgress, Plan, Step};
pub use transform::{Transform, Unchanged};
pub use vocabulary::Vocabulary;

/// Runs the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
