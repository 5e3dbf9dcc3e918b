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

mod action;
mod cluster;
mod controller;
mod endpoint;
mod error;
mod event;
mod fleet;
mod informer;
#[cfg(feature = "metrics")]
pub mod metrics;
mod name;
mod priority;
mod provider;
mod queue;
mod request;
#[cfg_attr(not(feature = "metrics"), allow(dead_code))] // always counted, shown by the feature only
mod stats;
mod store;
#[cfg(test)]
mod testing;

pub use action::Action;
pub use cluster::Cluster;
pub use controller::{Config, Context, MultiClusterController};
pub use coordination::{Coordinator, Ownership};
pub use endpoint::{ClusterKey, Endpoint, KeyFn};
pub use error::{ClusterError, Error};
pub use event::{FleetEvent, Gone};
pub use fleet::{EndpointHealth, Fleet, FleetBuilder, Health};
pub use informer::{Informer, WatchConfig, WatchHealth, WatchState};
pub use name::{ClusterName, EmptyName, EndpointId};
pub use priority::Priority;
pub use provider::Provider;
pub use queue::{Lease, Queue, QueueConfig, QueueStats, Reason};
pub use request::{HasCluster, Key, Request};
pub use store::{Applied, Change, FleetStore, Undecodable, Update};
