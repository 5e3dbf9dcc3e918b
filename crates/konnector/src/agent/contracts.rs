//! Which contracts there are: one task for each kubeconfig that a binding, a bundle or a label names.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use carrick_bind_api::v1alpha2::SecretKeyReference;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tokio_util::sync::CancellationToken;

use super::context::Context;
use super::contract;
use super::task::Task;

/// How long to wait before a contract that has ended by a defect is started again.
const AFTER_PANIC: Duration = Duration::from_secs(5);

/// Namespace, name and key of a Secret.
type Key = (String, String, String);

/// Runs a task per kubeconfig until told to stop, and waits for all of them.
pub async fn run(context: Arc<Context>, stop: CancellationToken) {
    let mut changes = context.local.notifier.subscribe();
    let mut running: BTreeMap<Key, (CancellationToken, Task)> = BTreeMap::new();
    loop {
        if context.local.has_synced() {
            let wanted = context.local.kubeconfigs();
            context.local.watch_secrets(&wanted);
            let key = |at: &SecretKeyReference| (at.namespace.clone(), at.name.clone(), at.key.clone());
            for (known, (stop, _)) in &running {
                if !wanted.iter().any(|at| key(at) == *known) {
                    stop.cancel();
                }
            }
            // One that was told to stop finishes what it does, and only then may another one begin.
            running.retain(|_, (_, task)| !task.has_ended());
            for at in wanted {
                running.entry(key(&at)).or_insert_with(|| {
                    let stop = stop.child_token();
                    (stop.clone(), Task::spawn(watched(Arc::clone(&context), at, stop)))
                });
            }
            context.metrics.set_contracts(running.len());
        }
        // Those that nobody wants any more; the next round removes whichever has ended.
        let ending = running.values_mut().filter(|(stop, _)| stop.is_cancelled());
        let mut ending: FuturesUnordered<_> = ending.map(|(_, task)| task.ended()).collect();
        tokio::select! {
            () = stop.cancelled() => break,
            () = changes.changed() => {}
            Some(_) = ending.next() => {}
        }
    }
    for (_, mut task) in running.into_values() {
        // It has said why, if it did not end well.
        let _ = task.ended().await;
    }
}

/// Runs one contract; a defect in it does not stop the others, nor it for good.
async fn watched(context: Arc<Context>, at: SecretKeyReference, stop: CancellationToken) {
    while !stop.is_cancelled() {
        let mut task = Task::spawn(contract::run(Arc::clone(&context), at.clone(), stop.clone()));
        let Err(error) = task.ended().await else { return };
        let secret = format!("{}/{}", at.namespace, at.name);
        tracing::error!(secret, %error, "A contract has ended unexpectedly and is started again; please report this.");
        tokio::select! {
            () = stop.cancelled() => {}
            () = tokio::time::sleep(AFTER_PANIC) => {}
        }
    }
}
