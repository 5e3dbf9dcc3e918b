//! Controllers over many logical clusters: fleet, store and fair queue.
//!
//! ```text
//!   ApiExport (provider) ──▶ FleetEvent: endpoints up and down, clusters engaged and disengaged
//!                                 │ one watch per kind and endpoint, at <endpoint>/clusters/*
//!                                 ▼
//!   watch events ──▶ FleetStore ──▶ Change ──▶ Request ──▶ Queue ──▶ Lease ──▶ reconcile
//!                    (cluster, namespace, name)            fair over clusters
//! ```
//!
//! Cost follows the number of endpoints (connections) and objects (memory), never the number of workspaces.

mod apiexport;
mod fleet;
mod queue;
mod request;
mod store;

pub use apiexport::ApiExport;
pub use fleet::FleetEvent;
pub use queue::{Lease, Queue, QueueConfig, QueueStats};
pub use request::{HasCluster, Request};
pub use store::{Change, ClusterKey, FleetStore};
