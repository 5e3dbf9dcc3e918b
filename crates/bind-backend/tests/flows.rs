//! Whole flows on embedded planes: a provider with a backend, and consumers with konnectors.

#![allow(clippy::unwrap_used, reason = "helpers of tests may panic")]

#[path = "flows/world.rs"]
mod world;

#[path = "flows/existing.rs"]
mod existing;
#[path = "flows/input.rs"]
mod input;
#[path = "flows/isolation.rs"]
mod isolation;
#[path = "flows/kills.rs"]
mod kills;
#[path = "flows/portal.rs"]
mod portal;
#[path = "flows/portal_fields.rs"]
mod portal_fields;
#[path = "flows/replicas.rs"]
mod replicas;
#[path = "flows/withdrawal.rs"]
mod withdrawal;
