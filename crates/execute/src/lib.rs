//! Carries out the steps that `carrick-sync` decides on: the one place of an agent that writes.
//!
//! ```text
//!  carrick-sync: Plan { steps } ──▶ Executor ──▶ consumer's and provider's cluster
//!                                      │
//!             Agent     what it remembers, whom it tells, what it may take over
//!             Observer  counts, traces and learns how long servers take
//!             Brake     what is undone again and again is written ever more rarely, and nothing too often
//!             Namespaces known to exist, so that nobody asks twice
//!             refusal   what follows when a server says no
//! ```
//!
//! Steps are executed in order, and the first failure ends them: see [`StepError`]. Whoever decides again afterwards heals what was left.

mod agent;
mod brake;
mod error;
mod executor;
mod namespaces;
mod rate;
pub mod refusal;
mod resource;

pub use agent::{Advice, Agent, Observer};
pub use brake::{Brake, Contest, Wait};
pub use error::{StepError, Target, Verb, asks_to_wait};
pub use executor::{Deferred, Executor, link_patch};
pub use namespaces::Namespaces;
pub use rate::Allowance;
pub use resource::resource;
