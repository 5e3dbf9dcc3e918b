//! Bounds on what an expression may cost.

/// The longest expression that is accepted; longer ones nest too deep to be parsed safely.
pub(crate) const MAX_LENGTH: usize = 16 * 1024;

/// The deepest that an expression may nest.
pub(crate) const MAX_DEPTH: usize = 200;

/// Steps that one evaluation may take: the limit the API server has for a rule, and a few milliseconds of work.
pub(crate) const STEPS: u64 = 1_000_000;
