//! The withdrawals controller: marks PublishedResources as withdrawn when their date comes. Everything else follows from that mark.

use std::sync::Arc;
use std::time::Duration;

use carrick_client::Client;
use carrick_sync::executor::refusal::{Access, is_race};
use jiff::Timestamp;
use serde_json::json;
use tokio::sync::watch::Receiver;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::catalog::{Catalog, published_resources};
use super::retry::{Retry, wait_until};
use crate::api::{PublishedResource, WITHDRAW_AT};
use crate::rules::withdrawal::Withdrawal;

/// Name of this controller in the log.
const CONTROLLER: &str = "syncagent-withdrawals";
/// Clocks are set now and then, so the date is looked at again after this time.
const LONGEST_SLEEP: Duration = Duration::from_mins(1);

/// Runs until told to stop.
pub(crate) async fn run(local: Client, mut catalog: Receiver<Arc<Catalog>>, stop: CancellationToken) {
    let mut retry = Retry::for_objects();
    loop {
        let now = Arc::clone(&catalog.borrow_and_update());
        let mut sleep: Option<Duration> = None;
        let mut failed = false;
        // What another agent serves is that agent's to withdraw.
        for pr in now.resources.values().filter(|pr| pr.metadata.deletion_timestamp.is_none()) {
            let Withdrawal::Announced(at) = Withdrawal::of(pr) else { continue };
            let left = at.duration_since(Timestamp::now());
            match Duration::try_from(left).ok().filter(|left| !left.is_zero()) {
                Some(left) => sleep = Some(sleep.map_or(left, |other| other.min(left))),
                None => failed |= !mark(&local, pr).await,
            }
        }
        if failed {
            retry.failed();
        } else {
            retry.succeeded();
        }
        let due = sleep.map(|sleep| Instant::now() + sleep.min(LONGEST_SLEEP));
        tokio::select! {
            () = stop.cancelled() => return,
            changed = catalog.changed() => if changed.is_err() { return },
            () = wait_until(due) => {}
            () = retry.due() => {}
        }
    }
}

/// Marks a PublishedResource as withdrawn, unless it has changed: somebody may have taken the withdrawal back.
async fn mark(local: &Client, pr: &PublishedResource) -> bool {
    let (name, date) = (&pr.metadata.name, pr.metadata.annotations.get(WITHDRAW_AT));
    let metadata = json!({ "resourceVersion": pr.metadata.resource_version });
    let patch = json!({ "metadata": metadata, "status": { "withdrawnAt": date } });
    match local.merge_patch_status(&published_resources(), None, name, &patch).await {
        Ok(marked) if marked["status"]["withdrawnAt"].is_string() => {
            tracing::info!(logger = CONTROLLER, publishedresource = name, "Withdrawing it: its date has come.");
            true
        }
        Ok(_) => {
            tracing::error!(
                logger = CONTROLLER,
                publishedresource = name,
                "It cannot be withdrawn, because its CRD has no field for that; apply the current CRD of PublishedResources."
            );
            true
        }
        // A newer one is on its way.
        Err(error) if is_race(&error, Access::Status) => true,
        Err(error) => {
            tracing::error!(logger = CONTROLLER, publishedresource = name, %error, "It cannot be marked as withdrawn.");
            false
        }
    }
}
