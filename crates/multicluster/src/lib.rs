//! Controllers over many clusters for kube-rs: one reconciler that runs in every workspace that binds a kcp APIExport, or in any
//! other fleet of clusters.
//!
//! ```text
//!   Provider ──▶ Fleet: which clusters there are, and where          ApiExport, KubeconfigSecrets, Static, ...
//!                  │ one watch per kind and endpoint, however many clusters an endpoint serves
//!                  ▼
//!              FleetStore: objects by cluster, namespace and name ──▶ requests ──▶ fair queue
//!                  │                                                                  │
//!                  └──────────────▶ reconcile(object, context.cluster) ◀──────────────┘
//! ```
//!
//! Cost follows the number of endpoints (connections) and objects (memory), never the number of workspaces. A workspace with
//! thousands of waiting objects does not delay another one's single object, and an endpoint that is down delays only its own clusters.
//! What is promised beyond that, whatever users' code and servers do, is in [`guarantees`].
//!
//! ```no_run
//! # #[cfg(feature = "kcp")]
//! # mod example {
//! use std::sync::Arc;
//! use std::time::Duration;
//!
//! use carrick_multicluster::providers::kcp::ApiExport;
//! use carrick_multicluster::{Action, Context, MultiClusterController};
//! use futures::StreamExt;
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use kube::runtime::watcher;
//! use kube::{Api, Config, ResourceExt};
//!
//! async fn reconcile(map: Arc<ConfigMap>, context: Context<()>) -> Result<Action, kube::Error> {
//!     println!("{} in workspace {}", map.name_any(), context.cluster.name());
//!     // A client of that workspace; all of them share the connections of their endpoint.
//!     let _maps = Api::<ConfigMap>::namespaced(context.cluster.client(), &map.namespace().unwrap_or_default());
//!     Ok(Action::await_change())
//! }
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     // The kubeconfig of the workspace with the APIExportEndpointSlice, and its name.
//!     let export = ApiExport::from_config(Config::infer().await?, "my-export")?;
//!     MultiClusterController::<ConfigMap>::new(export, watcher::Config::default())
//!         .shutdown_on_signal()
//!         .run(reconcile, |_, _, _| Action::requeue(Duration::from_secs(5)), Arc::new(()))
//!         .for_each(|result| async move {
//!             if let Err(error) = result {
//!                 eprintln!("{error}");
//!             }
//!         })
//!         .await;
//!     Ok(())
//! }
//! # }
//! # fn main() {}
//! ```
//!
//! - [`MultiClusterController`] reconciles: [`run`](MultiClusterController::run) with the cluster at hand,
//!   [`run_keyed`](MultiClusterController::run_keyed) with deletions too, [`run_uniform`](MultiClusterController::run_uniform) with a
//!   reconciler that knows nothing of clusters.
//! - [`Fleet`] knows the clusters; several controllers on one fleet share its watches.
//! - [`providers`] say where clusters come from, [`coordination`] which process works on which.
//! - Coming from elsewhere: [`coming_from_go`], [`coming_from_kube`].
//!
//! # Features
//!
//! - `kcp` (default): the providers of kcp, in [`providers::kcp`].
//! - `metrics`: metrics in Prometheus' text format.
//! - `testing`: a fleet in memory for your tests, in the module of that name; for dev-dependencies.
//!
//! What the API shows of other crates is re-exported: [`kube`], [`futures`], [`client`] and [`CancellationToken`]. TLS is rustls; see the README
//! for the choice of its cryptography.

#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod coordination;
pub mod providers;

mod action;
mod cluster;
mod controller;
mod deadline;
mod endpoint;
mod error;
mod event;
mod fleet;
mod guard;
mod informer;
#[cfg(feature = "metrics")]
pub mod metrics;
mod name;
mod pace;
mod priority;
mod provider;
mod queue;
mod request;
#[cfg_attr(not(feature = "metrics"), allow(dead_code))] // always counted, shown by the feature only
mod stats;
mod store;
#[cfg(feature = "testing")]
pub mod testing;

/// The README's examples.
#[cfg(all(doctest, feature = "testing"))]
#[doc = include_str!("../README.md")]
mod readme {}

#[doc = include_str!("../docs/guarantees.md")]
pub mod guarantees {}
#[cfg(feature = "kcp")] // its examples are of kcp
#[doc = include_str!("../docs/coming-from-go.md")]
pub mod coming_from_go {}
#[cfg(feature = "kcp")]
#[doc = include_str!("../docs/coming-from-kube.md")]
pub mod coming_from_kube {}

pub use action::Action;
pub use cluster::Cluster;
pub use controller::{Config, Context, MultiClusterController};
pub use coordination::{Coordinator, Ownership};
pub use endpoint::{ClusterKey, Endpoint, KeyFn};
pub use error::{ClusterError, Error};
pub use event::{FleetEvent, Gone, Lacks};
pub use fleet::{EndpointHealth, Fleet, FleetBuilder, Health};
pub use guard::{Callback, Panicked};
pub use informer::{Informer, WatchConfig, WatchHealth, WatchState};
pub use name::{ClusterName, EmptyName, EndpointId};
pub use pace::Pace;
pub use priority::Priority;
pub use provider::Provider;
pub use queue::{Lease, Queue, QueueConfig, QueueStats, Reason};
pub use request::{HasCluster, Key, Request};
pub use store::{Applied, Change, FleetStore, Undecodable, Update};

pub use carrick_client as client;
pub use futures;
pub use kube;
pub use tokio_util::sync::CancellationToken;
