//! Admission: webhooks and policies that users configure.
//!
//! ```text
//!   write ─▶ mutate ─▶ (schema) ─▶ validate
//!              │                     ├─ policy: ValidatingAdmissionPolicies, their bindings and parameters (params)
//!              └──────── hook ───────┘        admission webhooks: asked over HTTPS (crate::webhook)
//!                          ├─ rule        which requests it is about
//!                          ├─ expression  match conditions and validations in CEL
//!                          └─ review      the question, the answer, the patch
//!   check, defaults: the configuration kinds themselves
//! ```
//!
//! Everything but the call itself is pure. Configurations are compiled once per change (`configured`); as long as nobody has ever stored one, a
//! write costs a look at one flag.

mod check;
mod configured;
mod defaults;
mod expression;
mod hook;
mod params;
mod policy;
mod request;
mod review;
mod rule;
#[cfg(test)]
mod tests;

pub(crate) use check::faults;
pub(crate) use configured::{Around, Configurations, Configured};
pub(crate) use defaults::complete;
pub(crate) use request::AdmissionRequest;
