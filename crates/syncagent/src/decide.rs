//! Decide: source + copy + remembered state + rules → steps. Pure: no client, no clock, no randomness.
//!
//! ```text
//!  Seen (what the caches hold) ──▶ primary ──▶ pair (finalizer, create, content, status, delete)
//!                                     │
//!                                     └──▶ related ──▶ pair, once for each related object
//!                                               ▼
//!                                     Plan { steps, strands, next }  ──▶ executed elsewhere, in one place
//! ```
//!
//! Executing all steps of a plan and deciding again yields no steps: that is what the tests check.

pub mod adopt;
mod content;
mod pair;
mod primary;
mod record;
mod related;
pub mod state;
mod step;
mod why;

pub use pair::has_finalizer;
pub use primary::{Copies, Seen, decide};
pub use record::Record;
pub use related::{DroppedSeen, Other, RelatedSeen, RelatedView, Stray, is_stray, unnamed};
pub use step::{Dependents, Event, Next, Place, Plan, Side, Step};
pub use why::{Explanation, explain};

use thiserror::Error;

use crate::rules::mutation::MutationError;
use crate::rules::naming::NamingError;

/// Why nothing can be decided for an object. The message names the object or the rule.
#[derive(Debug, Error)]
pub enum DecideError {
    /// Several copies claim to belong to one source.
    #[error("several copies of one object exist on the service cluster: {}; delete all but one", .0.join(", "))]
    Ambiguous(Vec<String>),
    /// The copy cannot be named.
    #[error(transparent)]
    Naming(#[from] NamingError),
    /// A mutation failed.
    #[error(transparent)]
    Mutation(#[from] MutationError),
}
