//! A fleet in memory, for tests of controllers.
//!
//! ```
//! use std::sync::Arc;
//!
//! use carrick_multicluster::testing::FakeFleet;
//! use carrick_multicluster::{Action, Context, MultiClusterController};
//! use futures::StreamExt;
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use kube::api::{Patch, PatchParams};
//! use kube::runtime::watcher;
//! use kube::{Api, ResourceExt};
//! use serde_json::json;
//!
//! async fn label(map: Arc<ConfigMap>, context: Context<()>) -> Result<Action, kube::Error> {
//!     if !map.labels().contains_key("seen") {
//!         let maps = Api::<ConfigMap>::namespaced(context.cluster.client(), "default");
//!         let patch = Patch::Merge(json!({"metadata": {"labels": {"seen": "yes"}}}));
//!         maps.patch(&map.name_any(), &PatchParams::default(), &patch).await?;
//!     }
//!     Ok(Action::await_change())
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let fleet = FakeFleet::new(["a", "b"])?;
//! let map: ConfigMap = serde_json::from_value(json!({"metadata": {"name": "m", "namespace": "default"}}))?;
//! for cluster in ["a", "b"] {
//!     fleet.put(cluster, &map)?;
//! }
//! let controller = MultiClusterController::<ConfigMap>::new(fleet.clone(), watcher::Config::default());
//! let reconciled = controller.run(label, |_, _, _| Action::backoff(), Arc::new(()));
//! // Two objects, each reconciled before and after it has got its label.
//! let results: Vec<_> = reconciled.take(4).collect().await;
//! assert!(results.iter().all(Result::is_ok));
//! for cluster in ["a", "b"] {
//!     let map: ConfigMap = fleet.get(cluster, Some("default"), "m").ok_or("it is gone")?;
//!     assert_eq!(map.labels()["seen"], "yes");
//! }
//! assert_eq!(fleet.endpoint().requests("configmaps").writes, 2);
//! # Ok(())
//! # }
//! ```
//!
//! - [`FakeFleet`] is a provider: clusters come and go as the test says.
//! - [`FakeEndpoint`] is the server behind it: it can be [down](FakeEndpoint::set_down), [forget](FakeEndpoint::expire_watches) what watches
//!   rely on, [forbid](FakeEndpoint::forbid) a cluster, and [go back](FakeEndpoint::restore) in time. It counts [requests](FakeEndpoint::requests), so a test can assert that none is sent.
//! - Time is tokio's: in a `#[tokio::test(start_paused = true)]` (tokio's feature `test-util`) pauses and requeues of hours pass at once.
//! - [`providers::Static`](crate::providers::Static) is the provider for servers of your own, such as a `kind` cluster in CI.
//!
//! The server knows no schemas: it neither validates nor sets defaults, and every kind exists. It understands merge patches and server-side apply
//! (which it treats as merge patches without conflicts), resource versions, finalizers and generations, but no selectors.

mod answer;
mod endpoint;
mod fleet;
mod objects;

pub use endpoint::{FakeEndpoint, FakeSnapshot, RequestCounts};
pub use fleet::FakeFleet;

/// A client whose requests all fail, because nobody listens where it sends them.
#[cfg(test)]
pub(crate) fn unreachable_client() -> carrick_client::Client {
    let config = kube::Config::new(http::Uri::from_static("http://127.0.0.1:1"));
    #[allow(clippy::unwrap_used)] // only tests come here
    carrick_client::Client::try_from(config).unwrap()
}
