//! Which contracts there are: one task for each kubeconfig that a binding, a bundle or a label names.

use std::collections::BTreeMap;
use std::sync::Arc;

use carrick_bind_api::v1alpha2::SecretKeyReference;
use tokio_util::sync::CancellationToken;

use super::context::Context;
use super::contract;
use super::task::{Tasks, restarted};

/// Runs a task per kubeconfig until told to stop, and waits for all of them.
pub async fn run(context: Arc<Context>, stop: CancellationToken) {
    let mut changes = context.local.notifier.subscribe();
    let mut running = Tasks::default();
    loop {
        if context.local.has_synced() {
            let wanted = context.local.kubeconfigs();
            context.local.watch_secrets(&wanted);
            let key = |at: SecretKeyReference| ((at.namespace.clone(), at.name.clone(), at.key.clone()), at);
            let wanted: BTreeMap<_, _> = wanted.into_iter().map(key).collect();
            running.follow(wanted, &stop, |at, stop| {
                let (context, secret) = (Arc::clone(&context), format!("{}/{}", at.namespace, at.name));
                restarted(secret, stop, move |stop| contract::run(Arc::clone(&context), at.clone(), stop))
            });
            context.metrics.set_contracts(running.count());
        }
        tokio::select! {
            () = stop.cancelled() => break,
            () = changes.changed() => {}
            () = running.one_ended() => {}
        }
    }
    running.all_ended().await;
}
