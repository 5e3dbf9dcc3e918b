//! Controllers over many logical clusters: fleet, store and fair queue.
//!
//! ```text
//!   Provider ──▶ FleetEvent: endpoints up and down, clusters engaged and disengaged
//!                                 │ one watch per kind and endpoint
//!                                 ▼
//!   watch events ──▶ FleetStore ──▶ Change ──▶ Request ──▶ Queue ──▶ Lease ──▶ reconcile
//!                    (cluster, namespace, name)            fair over clusters
//! ```
//!
//! Cost follows the number of endpoints (connections) and objects (memory), never the number of workspaces.

pub mod coordination;
pub mod providers;

mod cluster;
mod endpoint;
mod event;
mod name;
mod priority;
mod provider;
mod queue;
mod request;
mod store;

pub use cluster::Cluster;
pub use coordination::{Coordinator, Ownership};
pub use endpoint::{ClusterKey, Endpoint, KeyFn};
pub use event::{FleetEvent, Gone};
pub use name::{ClusterName, EmptyName, EndpointId};
pub use priority::Priority;
pub use provider::Provider;
pub use queue::{Lease, Queue, QueueConfig, QueueStats, Reason};
pub use request::{HasCluster, Key, Request};
pub use store::{Applied, Change, FleetStore, Undecodable, Update};
