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
mod events;
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

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use carrick_bind_api::core::{ALL, GROUP};
use tokio_util::sync::CancellationToken;

use super::config::CoreConfig;
use super::context::Context;
use super::task::Task;
use local::CoreLocal;

/// How long to wait before a Connection that has ended by a defect is started again.
const AFTER_PANIC: Duration = Duration::from_secs(5);

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
    let mut running: BTreeMap<String, (CancellationToken, Task)> = BTreeMap::new();
    while !stop.is_cancelled() {
        let mut again = Duration::MAX;
        if local.has_synced() {
            let connections = local.connections();
            local.watch_secrets(&connections);
            for (name, (stop, _)) in &running {
                if !connections.iter().any(|connection| connection.metadata.name == *name) {
                    stop.cancel();
                }
            }
            // One that was told to stop finishes what it does, and only then may another one of its name begin.
            running.retain(|_, (_, task)| !task.has_ended());
            for connection in connections {
                let name = connection.metadata.name;
                running.entry(name.clone()).or_insert_with(|| {
                    let stop = stop.child_token();
                    (stop.clone(), Task::spawn(watched(Arc::clone(local), name, stop)))
                });
            }
            if unbinding::unconnected(local).await.failed {
                again = AFTER_PANIC;
            }
        }
        let ending = running.values_mut().filter(|(stop, _)| stop.is_cancelled());
        let ended = futures::future::select_all(
            ending
                .map(|(_, task)| futures::FutureExt::boxed(async move { drop(task.ended().await) }))
                .chain([futures::FutureExt::boxed(std::future::pending())]),
        );
        tokio::select! {
            () = stop.cancelled() => {}
            () = changes.changed() => {}
            _ = ended => {}
            () = tokio::time::sleep(again) => {}
        }
    }
    for (_, mut task) in running.into_values() {
        // It has said why, if it did not end well.
        let _ = task.ended().await;
    }
}

/// Runs one Connection; a defect in it does not stop the others, nor it for good.
async fn watched(local: Arc<CoreLocal>, name: String, stop: CancellationToken) {
    while !stop.is_cancelled() {
        let mut task = Task::spawn(connection::run(Arc::clone(&local), name.clone(), stop.clone()));
        let Err(error) = task.ended().await else { return };
        tracing::error!(connection = name, %error, "A Connection has ended unexpectedly and is started again; please report this.");
        tokio::select! {
            () = stop.cancelled() => {}
            () = tokio::time::sleep(AFTER_PANIC) => {}
        }
    }
}
