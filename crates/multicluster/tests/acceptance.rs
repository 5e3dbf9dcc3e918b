//! What the runtime promises, on endpoints in memory: lists, watches, outages and refusals on demand.

#![allow(clippy::unwrap_used)] // helpers of tests are tests too

#[path = "acceptance/world.rs"]
mod world;

#[path = "acceptance/clusters.rs"]
mod clusters;
#[path = "acceptance/controller.rs"]
mod controller;
#[path = "acceptance/fairness.rs"]
mod fairness;
#[cfg(feature = "metrics")]
#[path = "acceptance/metrics.rs"]
mod metrics;
#[path = "acceptance/moving.rs"]
mod moving;
#[path = "acceptance/outages.rs"]
mod outages;
#[path = "acceptance/sources.rs"]
mod sources;
#[path = "acceptance/survival.rs"]
mod survival;
