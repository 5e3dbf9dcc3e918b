//! Decide: source + copy + remembered state + rules → steps. Pure: no client, no clock, no randomness.
//!
//! ```text
//!  PrimaryView (what the caches hold) ──▶ primary ──▶ pair (finalizer, create, content, status, delete)
//!                                            │
//!                                            └──▶ related ──▶ pair, once for each related object
//!                                                      ▼
//!                                            Plan { steps, strands, next }  ──▶ executed elsewhere, in one place
//! ```
//!
//! Executing all steps of a plan and deciding again must yield no steps; the tests check that.

mod address;
pub mod adopt;
mod claim;
mod content;
pub mod edit;
mod error;
mod holders;
pub mod ownership;
mod pair;
mod primary;
mod record;
mod related;
pub mod state;
mod step;
mod why;

pub use address::{ObjectAddress, Side};
pub use claim::{Claim, claim};
pub use error::DecideError;
pub use holders::has_finalizer;
pub use pair::refused_status;
pub use primary::{Copies, PrimaryView, decide};
pub use record::Record;
pub use related::{DroppedSeen, OtherUser, RelatedSeen, RelatedView, Stray, is_stray, unnamed};
pub use step::{Dependents, Event, Next, Plan, Step};
pub use why::{Explanation, explain};
