//! Limits: which orders of a workspace are placed, and which ones wait.

pub(super) mod ranking;
pub(super) mod waiting;
