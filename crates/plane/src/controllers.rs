//! The background work of every plane: namespace content, service account tokens, aggregated roles, CRD clean-up, owner references, old events.

mod accounts;
mod aggregation;
mod crds;
mod events;
mod garbage;
mod kubernetes;
mod namespaces;
mod remains;
mod run;

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::api::{Api, WriteOptions};
use crate::auth::policy;
use crate::caller::Caller;
use crate::config::Mode;

pub use namespaces::create_namespace;
pub use run::{Reconcile, run};

/// Stores what a plane starts with and spawns the controllers.
pub(crate) fn start(api: &Arc<Api>, stop: &CancellationToken) {
    let cluster = match api.mode {
        Mode::Kube => "",
        Mode::Kcp => "system:admin",
    };
    if let Err(status) = policy::install(api, cluster) {
        warn!(error = %status, "cannot store the bootstrap policy");
    }
    if api.mode == Mode::Kube {
        for name in ["default", "kube-system", "kube-public", "kube-node-lease"] {
            create_namespace(api, cluster, name);
        }
        kubernetes::publish(api, cluster);
    }
    tokio::spawn(run(api.clone(), namespaces::Namespaces, stop.clone()));
    tokio::spawn(run(api.clone(), crds::Crds, stop.clone()));
    tokio::spawn(run(api.clone(), accounts::Accounts::default(), stop.clone()));
    tokio::spawn(run(api.clone(), aggregation::Aggregation::default(), stop.clone()));
    tokio::spawn(events::run(api.clone(), stop.clone()));
    tokio::spawn(run(api.clone(), garbage::Garbage::default(), stop.clone()));
}

/// Creates an object for the plane itself; an existing one is fine.
fn ensure(api: &Api, cluster: &str, namespace: &str, plural: &str, object: serde_json::Value) {
    let Some(scope) = api.scope(cluster, "", plural) else { return };
    let result = api.create(&Caller::system(), &scope.in_namespace(namespace), object, &WriteOptions::default());
    // A namespace that has just been deleted needs nothing any more.
    if let Err(status) = result
        && !matches!(status.reason.as_str(), "AlreadyExists" | "NotFound")
    {
        warn!(error = %status, cluster, namespace, plural, "cannot create a default object");
    }
}
