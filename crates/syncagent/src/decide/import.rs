//! Import: an object that exists on the service cluster gets an order in a consumer's workspace.
//!
//! ```text
//!  object ──▶ order    what its order would be: the rules, backwards
//!               │
//!               ▼
//!             proof    what the agent would change on the object if it had that order: nothing, or it is refused
//!               │
//!               ▼
//!             link     labels and annotations that make it the copy of that order; no content
//! ```
//!
//! The object is linked first and ordered second: a linked object without an order is left alone by the agent, and an order whose
//! object is linked finds it in line and writes nothing to it.

mod link;
mod order;
mod policy;
mod proof;
mod undo;

pub use crate::rules::import::OnDelete;
pub use link::{ImportStanding, link_patch, standing, unlink_patch};
pub use order::{OrderError, order};
pub use policy::{ImportPolicy, policy};
pub use proof::{FieldChange, Proof, ProofError, prove};
pub use undo::{Undo, undo};
