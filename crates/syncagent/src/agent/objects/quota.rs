//! Limits: which orders of a workspace are placed, and which ones wait for others, for room, or because a server asked for it.

pub(super) mod ranking;
pub(super) mod room;
pub(super) mod throttled;
pub(super) mod waiting;
