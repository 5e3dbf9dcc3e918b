//! Scenarios of the api-syncagent, written once and played on every kind of world.
//!
//! ```text
//!  tests/embedded.rs, tests/real.rs ─▶ harness ─▶ scenarios   one sentence each, one file per theme
//!                                                    │ play on
//!                                                    ▼
//!                            agent, binary ◀──── Stage        one scenario's own workspaces, API group and names
//!                                    │               │ in a
//!                                    ▼ by cable      ▼
//!                                                  World      EmbeddedWorld: two planes in this process, one world per scenario
//!                                                             RealWorld: kcp, kube-apiserver and etcd, one world per run
//! ```
//!
//! `differential` sends the same random requests to planes and real servers, `goclients` tries clients written in Go,
//! `docs` runs the tutorials in docs/ as a reader would, and `bench` measures what agents cost on the same worlds.
//!
//! The operator's part, such as writing a status, is played by the scenarios themselves.
#![allow(clippy::large_futures)] // whole flows are one future each, and there are few of them

pub mod agent;
pub mod bench;
pub mod binary;
pub mod cable;
pub mod collector;
pub mod contract;
pub mod corpus;
pub mod differential;
pub mod docs;
pub mod fixtures;
pub mod goclients;
pub mod harness;
pub mod kinds;
pub mod logbook;
pub mod ports;
pub mod promises;
#[cfg(test)]
mod proofs;
pub mod scenarios;
pub mod scratch;
pub mod stage;
pub mod world;
