//! Decide: source + copy + remembered state + rules → steps. Pure: no client, no clock, no randomness.
//!
//! ```text
//!  PrimaryView (what the caches hold) ──▶ primary ──▶ carrick_sync::Pair (finalizer, create, content, status, delete)
//!                                            │
//!                                            └──▶ related ──▶ Pair, once for each related object
//!                                                      ▼
//!                                            Plan { steps, strands, next }  ──▶ executed elsewhere, in one place
//! ```
//!
//! Executing all steps of a plan and deciding again must yield no steps; the tests check that.

pub mod adopt;
mod claim;
pub mod compare;
pub mod drift;
mod error;
pub mod events;
pub mod feedback;
mod given_up;
mod holders;
pub mod import;
mod narrowed;
pub mod pause;
mod primary;
mod refusal;
mod related;
pub mod report;
mod restored;
pub mod state;
pub mod waits;
mod why;

pub use carrick_sync::{Dependents, Event, Next, ObjectAddress, Plan, Record, Role, Side, Step, edit, ownership};
pub use claim::{Claim, claim};
pub use error::DecideError;
pub use given_up::give_up;
pub use holders::{Holder, NOBODY, has_finalizer, is_held_by};
pub use primary::{Copies, PrimaryView, address_of_new_copy, decide};
pub use refusal::Refusal;
pub use related::{Arrived, DroppedSeen, OtherUser, RelatedSeen, RelatedView, Stray, is_placed, is_stray, unnamed};
pub use restored::{Setback, follows, setback};
pub use why::{DriftState, ExplainedDrift, ExplainedField, Explanation, OverwrittenCopy, explain, overwritten};
