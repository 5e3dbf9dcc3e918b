//! What every suite of end-to-end tests stands on: worlds to play in, agents to play with, and the programs' common part.
//!
//! ```text
//!   scenarios   one sentence each, played on every kind of world ─┐
//!   promises    kills, storms and meddling, on embedded planes    │ each a crate of its own, and none knows another
//!   differential  the same requests to planes and real servers    │ (but for the program `real`, which plays
//!   bench       what agents and servers cost                      │  scenarios beside comparisons)
//!   docs        the tutorials in docs/, as a reader runs them    ─┘
//!      │ play on
//!      ▼
//!   Stage ────▶ agent, binary     one test's own workspaces, API group and names
//!      │ in a          │
//!      ▼               ▼ by cable
//!   World                         EmbeddedWorld: two planes in this process, one world per test
//!                                 RealWorld: kcp, kube-apiserver and etcd, one world per run
//! ```
//!
//! The operator's part, such as writing a status, is played by the tests themselves.
#![allow(clippy::large_futures)] // whole flows are one future each, and there are few of them

pub mod agent;
pub mod binary;
pub mod cable;
pub mod connect;
pub mod contract;
pub mod corpus;
pub mod fixtures;
pub mod harness;
pub mod kinds;
pub mod logbook;
pub mod ports;
pub mod ran;
pub mod rights;
pub mod scratch;
pub mod seed;
pub mod selection;
pub mod stage;
pub mod two;
pub mod world;
