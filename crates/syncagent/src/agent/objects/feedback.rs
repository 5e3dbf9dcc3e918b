//! What is reported about orders, and to whom.

pub(super) mod drifted;
pub(super) mod failing;
pub(super) mod known;
pub(super) mod overwritten;
pub(super) mod paused;
pub(super) mod progress;
pub(super) mod races;
pub(super) mod refusals;
pub(super) mod steps;
mod way;
