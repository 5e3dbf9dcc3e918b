//! Whole flows on embedded planes: one consumer, one or more providers as a kube-bind backend leaves them, and a konnector with no more rights than
//! its roles give it.

#![allow(clippy::unwrap_used, reason = "helpers of tests may panic")]

#[path = "scenarios/clusters.rs"]
mod clusters;
#[path = "scenarios/world.rs"]
mod world;

#[path = "scenarios/bind.rs"]
mod bind;
#[path = "scenarios/bundle.rs"]
mod bundle;
#[path = "scenarios/contract.rs"]
mod contract;
#[path = "scenarios/existing.rs"]
mod existing;
#[path = "scenarios/faults.rs"]
mod faults;
#[path = "scenarios/hostile.rs"]
mod hostile;
#[path = "scenarios/input.rs"]
mod input;
#[path = "scenarios/process.rs"]
mod process;
#[path = "scenarios/unbind.rs"]
mod unbind;
