//! Everything that is synced with one contract: one consumer cluster, one kubeconfig of a provider.
//!
//! ```text
//!   Wanted ──▶ Layout: which APIs and claims, which watches          APIServiceNamespaces ──▶ where objects go
//!                 │                                                          │
//!   watches ──▶ stores ──▶ queue, fair between APIs ──▶ workers: decide ──▶ executor ──▶ both clusters
//!                                                          │
//!                                                        SyncReport: what is synced, what is in conflict, what fails
//! ```
//!
//! Decisions rest on caches, so nothing is read for an object at rest. What a cache says is asked again only before something is deleted because
//! something else is not there.

mod claimed;
pub(in crate::agent) mod consumers;
mod execute;
mod follow;
mod hub;
mod key;
mod layout;
pub(in crate::agent) mod ledger;
mod namespaces;
pub(in crate::agent) mod observer;
pub(in crate::agent) mod outcome;
mod place;
mod report;
mod route;
pub(in crate::agent) mod store;
mod sync;
mod tenant_namespaces;
mod wanted;
pub(in crate::agent) mod watched;
pub(in crate::agent) mod work;
pub(in crate::agent) mod writing;

use std::sync::Arc;

use carrick_bind_api::names::FIELD_MANAGER;
use carrick_client::Client;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::config::Budget;
use hub::Hub;

pub use crate::decide::objects::SyncMode;
pub use consumers::Consumers;
pub use observer::WriteObserver;
pub use wanted::{BindingReport, SyncReport, Wanted, WantedBinding};

/// How many objects are worked on at once, and how many of one API or workspace at most: others have places left.
pub(in crate::agent) const WORKERS: usize = 64;
pub(in crate::agent) const PER_LANE: usize = 32;
const PER_WORKSPACE: usize = 8;

/// Everything that is synced with one contract: one consumer cluster, one provider kubeconfig.
pub struct ContractSync {
    /// The cluster of the konnector, or the workspaces of an APIExport.
    pub consumers: Consumers,
    /// The cluster of the provider.
    pub provider: Client,
    /// The contract: a namespace on the provider.
    pub contract: String,
    /// Who is told about every write.
    pub metrics: Arc<dyn WriteObserver>,
    /// How much one object may have.
    pub budget: Budget,
}

impl ContractSync {
    /// Runs until told to stop. Never deletes anything because a watch is empty, forbidden or gone.
    pub async fn run(
        self,
        mut wanted: watch::Receiver<Arc<Wanted>>,
        told: watch::Sender<Arc<SyncReport>>,
        stop: CancellationToken,
    ) {
        let provider = self.provider.writing_as(FIELD_MANAGER);
        let hub = Arc::new(Hub::new(
            self.consumers.writing(),
            provider,
            self.contract,
            self.metrics,
            self.budget.allowance(),
        ));
        // Whoever drops this future ends all tasks with it.
        let mut tasks = JoinSet::new();
        for _ in 0..WORKERS {
            tasks.spawn(work::work(Arc::clone(&hub)));
        }
        tasks.spawn(report::report(Arc::clone(&hub), told));
        loop {
            let now = wanted.borrow_and_update().clone();
            for watched in hub.lay_out(&now) {
                tasks.spawn(follow::follow_watch(Arc::clone(&hub), watched));
            }
            tokio::select! {
                () = stop.cancelled() => break,
                () = hub.laid_out_anew() => {}
                changed = wanted.changed() => {
                    // Nobody can want anything else any more, but what is wanted stays so.
                    if changed.is_err() {
                        tokio::select! {
                            () = stop.cancelled() => break,
                            () = hub.laid_out_anew() => {}
                        }
                    }
                }
            }
            // Watches that have ended.
            while tasks.try_join_next().is_some() {}
        }
        hub.close();
        tasks.shutdown().await;
    }
}
