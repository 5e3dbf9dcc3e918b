//! What is synced within one contract, between two embedded planes.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

#[path = "objects/claims.rs"]
mod claims;
#[path = "objects/ends.rs"]
mod ends;
#[path = "objects/existing.rs"]
mod existing;
#[path = "objects/kills.rs"]
mod kills;
#[path = "objects/lives.rs"]
mod lives;
#[path = "objects/losses.rs"]
mod losses;
#[path = "objects/world.rs"]
mod world;
