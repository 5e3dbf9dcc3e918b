//! The task that keeps the catalog up to date.

use std::pin::pin;
use std::sync::Arc;

use carrick_client::watch::{WatchOptions, watch};
use carrick_client::{Client, ListOptions, Resource};
use futures::{FutureExt, StreamExt};
use tokio::sync::watch::Sender;
use tokio_util::sync::CancellationToken;

use super::definition::crds;
use super::entry::Catalog;
use super::inputs::{Inputs, local_problem};
use super::kinds::ServedKinds;
use crate::agent::health::Health;
use crate::agent::metrics::Metrics;
use crate::agent::retry::Retry;
use crate::agent::timing::Timing;
use crate::api::{GROUP, VERSION};
use crate::rules::AgentDefaults;

/// PublishedResources as the client knows them.
pub(crate) fn published_resources() -> Resource {
    Resource::cluster_wide(GROUP, VERSION, "PublishedResource", "publishedresources")
}

/// What a catalog is made of.
pub(crate) struct Setup {
    /// The service cluster.
    pub local: Client,
    /// Label selector for PublishedResources; empty means all.
    pub selector: String,
    /// What holds for all PublishedResources.
    pub defaults: AgentDefaults,
    /// How often to check what no watch reports.
    pub timing: Timing,
}

/// Watches PublishedResources and CRDs and sends a new catalog whenever it may have changed.
pub(crate) async fn run(
    Setup { local, selector, defaults, timing }: Setup,
    health: Arc<Health>,
    metrics: Arc<Metrics>,
    catalog: Sender<Arc<Catalog>>,
    stop: CancellationToken,
) {
    let pr_part = health.part("watch of PublishedResources");
    let crd_part = health.part("watch of CustomResourceDefinitions");
    let read_part = health.part("reading of published kinds");
    let select = ListOptions { label_selector: (!selector.is_empty()).then_some(selector), field_selector: None };
    let options = WatchOptions { select, ..WatchOptions::default() };
    let mut pr_events = pin!(watch(local.clone(), published_resources(), options));
    // A cluster may have thousands of CRDs, and most are nobody's business here.
    let mut crd_events = pin!(watch(local.metadata_only(), crds(), WatchOptions::default()));
    let mut kinds = ServedKinds::new(timing);
    let mut inputs = Inputs::new(local.clone(), defaults);
    let mut retry = Retry::for_servers();
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            Some(event) = pr_events.next() => inputs.on_pr(event, &pr_part),
            Some(event) = crd_events.next() => inputs.on_crd(event, &crd_part),
            () = kinds.changed() => {}
            () = retry.due() => {}
        }
        // Whatever has arrived already is handled together, so that a list of a thousand objects makes one catalog.
        while let Some(Some(event)) = pr_events.next().now_or_never() {
            inputs.on_pr(event, &pr_part);
        }
        while let Some(Some(event)) = crd_events.next().now_or_never() {
            inputs.on_crd(event, &crd_part);
        }
        if !inputs.is_complete() {
            continue;
        }
        let read = tokio::select! {
            () = stop.cancelled() => return,
            read = inputs.read_missing() => read,
        };
        match read {
            Ok(()) => {
                read_part.works();
                retry.succeeded();
            }
            Err(error) => {
                read_part.fails(&local_problem(&error));
                retry.failed();
            }
        }
        metrics.set_published_resources(inputs.count());
        kinds.want(&local, &inputs.without_crd());
        let next = inputs.catalog(&catalog.borrow(), &kinds);
        catalog.send_replace(Arc::new(next));
    }
}
