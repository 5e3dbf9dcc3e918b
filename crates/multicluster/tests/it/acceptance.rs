//! What the runtime promises, on endpoints in memory: lists, watches, outages and refusals on demand.

mod world;

mod clusters;
mod controller;
mod fairness;
#[cfg(feature = "metrics")]
mod metrics;
mod moving;
mod outages;
mod sources;
mod survival;
