//! What is synced within one contract, between two embedded planes.

mod claims;
mod ends;
mod existing;
mod guards;
mod kills;
mod lives;
mod losses;
mod world;
