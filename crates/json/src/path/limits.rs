//! What one evaluation may cost, so that no path can hold up or exhaust the program.

use std::cell::Cell;

/// Paths and values that nest deeper lead nowhere.
pub(super) const MAX_DEPTH: usize = 200;

/// Bytes that may be read and written for any document; more for larger ones.
const WORK: usize = 4 << 20;

/// Work left for one evaluation.
pub(super) struct Limits {
    left: Cell<usize>,
    exceeded: Cell<bool>,
}

impl Limits {
    /// The limits for a document of this length.
    pub fn for_length(length: usize) -> Self {
        Self { left: Cell::new(WORK.saturating_add(length.saturating_mul(16))), exceeded: Cell::new(false) }
    }

    /// Whether the evaluation ended early, its result being none.
    pub fn exceeded(&self) -> bool {
        self.exceeded.get()
    }
}

/// The limits, seen from some level of nesting.
#[derive(Clone, Copy)]
pub(super) struct Scope<'l> {
    limits: &'l Limits,
    depth: usize,
}

impl<'l> Scope<'l> {
    pub fn new(limits: &'l Limits) -> Self {
        Self { limits, depth: 0 }
    }

    /// One level further down; none when that is too deep.
    pub fn deeper(self) -> Option<Self> {
        if self.depth >= MAX_DEPTH {
            self.limits.exceeded.set(true);
        }
        (self.depth < MAX_DEPTH).then_some(Self { depth: self.depth + 1, ..self })
    }

    /// Counts work on this many bytes; false when there has been too much already.
    pub fn work(self, bytes: usize) -> bool {
        let left = self.limits.left.get().checked_sub(bytes + 1);
        self.limits.left.set(left.unwrap_or_default());
        if left.is_none() {
            self.limits.exceeded.set(true);
        }
        left.is_some()
    }
}
