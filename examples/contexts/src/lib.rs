//! Tells the teams of many clusters where they are: every namespace with the label `example.com/cluster-info=true` gets a ConfigMap `cluster-info`
//! with the name of its cluster.
//!
//! ```text
//!   kubeconfig                 cluster of context prod-eu           cluster of context prod-us
//!   contexts prod-eu, prod-us  Namespace shop                       Namespace shop
//!                              ConfigMap shop/cluster-info          ConfigMap shop/cluster-info
//!                                cluster: prod-eu                     cluster: prod-us
//! ```

use std::sync::Arc;

use carrick_multicluster::{Action, Context, Error, Fleet, MultiClusterController, Request};
use futures::Stream;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Patch, PatchParams};
use kube::runtime::watcher;
use kube::{Api, Resource, ResourceExt};
use serde_json::json;

/// Namespaces that want to know.
pub const LABEL: &str = "example.com/cluster-info=true";
/// What the ConfigMap is called.
pub const NAME: &str = "cluster-info";

/// What the controller reports: what was reconciled, or what went wrong.
pub type Report = Result<(Request<Namespace>, Action), Error<Namespace, kube::Error>>;

/// The controller, over any fleet of clusters. Must be called inside a tokio runtime. Nothing happens unless the stream is polled.
pub fn controller(fleet: &Fleet) -> impl Stream<Item = Report> + Send + use<> {
    MultiClusterController::<Namespace>::on(fleet, watcher::Config::default().labels(LABEL))
        .owns::<ConfigMap>(watcher::Config::default())
        .shutdown_on_signal()
        .run(reconcile, |_, _, _| Action::backoff(), Arc::new(()))
}

/// Called for every such namespace in every cluster, and again whenever its ConfigMap changes or is deleted.
async fn reconcile(namespace: Arc<Namespace>, context: Context<()>) -> Result<Action, kube::Error> {
    let Some(owner) = namespace.controller_owner_ref(&()) else { return Ok(Action::await_change()) };
    let maps = Api::<ConfigMap>::namespaced(context.cluster.client(), &namespace.name_any());
    let map = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": NAME, "ownerReferences": [owner]},
        "data": {"cluster": context.cluster.name().as_str()},
    });
    maps.patch(NAME, &PatchParams::apply("example-contexts").force(), &Patch::Apply(map)).await?;
    Ok(Action::await_change())
}
