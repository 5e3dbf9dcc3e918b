//! The work an expression may do before it is stopped.

use std::cell::Cell;

use crate::error::EvalError;
use crate::limits::STEPS;

/// How many bytes of text are handled in one step.
const BYTES_PER_STEP: u64 = 10;

/// What is left of the steps of one evaluation.
pub(crate) struct Budget {
    left: Cell<u64>,
}

impl Budget {
    /// The budget of one evaluation.
    pub fn new() -> Self {
        Self::of(STEPS)
    }

    /// A budget of this many steps.
    pub fn of(steps: u64) -> Self {
        Self { left: Cell::new(steps) }
    }

    /// What has not been taken; nothing once something was refused.
    pub fn left(&self) -> u64 {
        self.left.get()
    }

    /// Takes this many steps.
    pub fn charge(&self, steps: u64) -> Result<(), EvalError> {
        let left = self.left.get().checked_sub(steps);
        self.left.set(left.unwrap_or_default());
        if left.is_some() { Ok(()) } else { Err(EvalError::TooManySteps) }
    }

    /// Takes one step.
    pub fn step(&self) -> Result<(), EvalError> {
        self.charge(1)
    }

    /// Takes the steps for reading or writing this many bytes.
    pub fn bytes(&self, bytes: usize) -> Result<(), EvalError> {
        self.charge(bytes as u64 / BYTES_PER_STEP)
    }
}
