//! The background work of every plane: namespace content, service account tokens, aggregated roles, CRD clean-up, owner references, old events.

mod accounts;
mod aggregation;
mod crds;
mod ensure;
mod events;
mod garbage;
mod kubernetes;
mod namespaces;
mod policy;
mod remains;
mod run;

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::api::Api;
use crate::config::Mode;

pub use namespaces::create_namespace;
use run::run;

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
