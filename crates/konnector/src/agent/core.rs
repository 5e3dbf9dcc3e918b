//! kube-bind v2 beside 0.8: Connections, ClusterBindings and Bindings of `core.kbind.io`, as soon as their CRDs are here.
//!
//! ```text
//!  run ─ local ─┬─ connection   one task per Connection: its Secret can be used ─▶ session, or not ─▶ it says so
//!               │    └─ session     whenever something changes: identity, exports, Lease, CRDs, bindings, ends
//!               │         └─ hub       objects of all its APIs: watches on both sides ─▶ queue ─▶ workers
//!               └─ unconnected  bindings that name no Connection
//! ```

mod any_binding;
mod autobind;
mod bindings;
mod connection;
mod execute;
mod follow;
mod hub;
mod identity;
mod lease;
mod local;
mod openapi;
mod related;
mod session;
mod sync;
mod unbinding;

use std::sync::Arc;
use std::time::Duration;

use carrick_bind_api::core::{ALL, GROUP};
use tokio_util::sync::CancellationToken;

use super::config::CoreConfig;
use super::context::Context;
use super::task::{Tasks, restarted};
use local::CoreLocal;

/// After how long to look again at bindings without a Connection that could not be written.
const AFTER_FAILURE: Duration = Duration::from_secs(5);

/// Serves v2 while its CRDs are here, until told to stop.
pub async fn run(context: Arc<Context>, config: &CoreConfig, stop: &CancellationToken) {
    // The workspaces of an APIExport are consumers of 0.8 only.
    if config.off || context.local.export.is_some() {
        return;
    }
    let mut changes = context.local.notifier.subscribe();
    let is_installed = || ALL.iter().all(|kind| context.local.has_crd(&format!("{}.{GROUP}", kind.plural)));
    while !stop.is_cancelled() {
        if is_installed() {
            let end = stop.child_token();
            let local = CoreLocal::start(Arc::clone(&context), config.clone(), &end);
            let _end = end.clone().drop_guard();
            tracing::info!("The kinds of core.kbind.io are here: kube-bind v2 is served as well.");
            let watching = async {
                let mut changes = context.local.notifier.subscribe();
                while is_installed() {
                    changes.changed().await;
                }
            };
            tokio::select! {
                () = serve(&local, &end) => {}
                () = watching => tracing::info!("The kinds of core.kbind.io are gone: only kube-bind 0.8 is served."),
            }
            continue;
        }
        tokio::select! {
            () = stop.cancelled() => {}
            () = changes.changed() => {}
        }
    }
}

/// Runs a task per Connection until told to stop, and waits for all of them.
async fn serve(local: &Arc<CoreLocal>, stop: &CancellationToken) {
    let mut changes = local.notifier.subscribe();
    let mut running = Tasks::default();
    while !stop.is_cancelled() {
        let mut again = Duration::MAX;
        if local.has_synced() {
            let connections = local.connections();
            local.watch_secrets(&connections);
            let wanted = connections.into_iter().map(|it| (it.metadata.name.clone(), it.metadata.name)).collect();
            running.follow(wanted, stop, |name, stop| {
                let (local, shown) = (Arc::clone(local), format!("Connection {name}"));
                restarted(shown, stop, move |stop| connection::run(Arc::clone(&local), name.clone(), stop))
            });
            if unbinding::unconnected(local).await.failed {
                again = AFTER_FAILURE;
            }
        }
        tokio::select! {
            () = stop.cancelled() => {}
            () = changes.changed() => {}
            () = running.one_ended() => {}
            () = tokio::time::sleep(again) => {}
        }
    }
    running.all_ended().await;
}
