//! One contract: everything that goes over one kubeconfig.
//!
//! ```text
//!  run ─┬─ offline     the Secret cannot be used: bindings and bundles say so
//!       └─ Session     it can: until the Secret changes, look at everything whenever something has changed
//!            ├─ heartbeat   ClusterBinding: heartbeat, renewed credentials, who the contract is
//!            ├─ bundles     exports ─▶ bindings
//!            ├─ bindings    export, BoundSchemas ─▶ CRDs, statuses, what is synced
//!            │              (events: what people should notice)
//!            ├─ exports     those without a binding
//!            └─ unbinding   what a deleted binding leaves behind, also offline
//! ```

mod bindings;
pub(in crate::agent) mod bundles;
mod events;
mod exports;
mod heartbeat;
pub(in crate::agent) mod held;
mod offline;
pub(in crate::agent) mod pace;
mod provider;
mod session;
mod unbinding;

use std::sync::Arc;

use carrick_bind_api::v1alpha2::SecretKeyReference;
use tokio_util::sync::CancellationToken;

use super::context::Context;
use super::kubeconfig;
use crate::decide::Seen;
use pace::Pace;
use session::Session;

/// Runs a contract until told to stop.
pub async fn run(context: Arc<Context>, at: SecretKeyReference, stop: CancellationToken) {
    let mut changes = context.local.notifier.subscribe();
    let mut pace = Pace::default();
    while !stop.is_cancelled() {
        let opened = match context.local.secret(&at) {
            Seen::Present(secret) => kubeconfig::of_secret(Some(&secret), &at),
            Seen::Absent => kubeconfig::of_secret(None, &at),
            Seen::Unknown(why) => Err(kubeconfig::invalid(&at, why)),
        };
        let opened = opened.and_then(|found| match found.open() {
            Ok(server) => Ok((found, server)),
            Err(problem) => Err(kubeconfig::invalid(&at, problem)),
        });
        match opened {
            Ok((kubeconfig, server)) => {
                Session::new(Arc::clone(&context), at.clone(), kubeconfig, &server).run(&stop).await;
            }
            // Nothing is known yet: the watch has only just begun.
            Err(_) if context.local.is_secret_pending(&at) => wait(&mut changes, &stop, None).await,
            Err(error) => {
                let again = offline::pass(&context, &at, &error).await;
                let again = pace.next(again);
                wait(&mut changes, &stop, again).await;
            }
        }
    }
}

/// Waits for a change, for a time, or for the end.
pub(in crate::agent) async fn wait(
    changes: &mut super::notifier::Subscription,
    stop: &CancellationToken,
    longest: Option<std::time::Duration>,
) {
    let timer = async {
        match longest {
            Some(longest) => tokio::time::sleep(longest).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = stop.cancelled() => {}
        () = changes.changed() => {}
        () = timer => {}
    }
}
