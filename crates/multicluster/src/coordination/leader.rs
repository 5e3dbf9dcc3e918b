//! One of several processes works on all clusters, the others stand by.

use std::sync::Arc;
use std::time::Duration;

use carrick_client::Client;
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::{Mutex, watch};
use tokio_util::sync::CancellationToken;

use super::election::Election;
use super::{Coordinator, Ownership, note_drained};

/// The holder of a Lease works on all clusters. The others watch all of them too, so that they can go on at once.
///
/// ```no_run
/// # use carrick_multicluster::Fleet;
/// # use carrick_multicluster::coordination::Leader;
/// # use carrick_multicluster::providers::KubeconfigFiles;
/// # fn fleet(home: kube::Client) -> Fleet {
/// Fleet::builder(KubeconfigFiles::infer()).coordinator(Leader::new(home, "my-controller")).build()
/// # }
/// ```
///
/// A leader that cannot renew its Lease begins nothing new after two thirds of the Lease's duration; what still runs must end within
/// the last third, because another process may start then.
#[derive(Debug)]
pub struct Leader {
    election: Arc<Mutex<Election>>,
    ownership: watch::Sender<Ownership>,
    drained: watch::Sender<u64>,
    stop: CancellationToken,
}

impl Leader {
    /// A candidate for the Lease of that name in the client's default namespace.
    pub fn new(client: impl Into<Client>, lease: &str) -> Self {
        Self::elect(Election::new(client, lease))
    }

    /// The same for an election with other settings.
    pub fn elect(election: Election) -> Self {
        Self {
            election: Arc::new(Mutex::new(election)),
            ownership: watch::Sender::new(Ownership::none(0).watching_all()),
            drained: watch::Sender::new(0),
            stop: CancellationToken::new(),
        }
    }

    fn publish(&self, ownership: impl FnOnce(u64) -> Ownership) -> u64 {
        let version = self.ownership.borrow().version() + 1;
        self.ownership.send_replace(ownership(version).watching_all());
        version
    }

    async fn lead(&self) {
        let failing = std::sync::atomic::AtomicBool::new(false);
        let report = |state: Result<(), &str>| {
            if let Err(problem) = state
                && !failing.swap(true, std::sync::atomic::Ordering::Relaxed)
            {
                tracing::warn!(problem, "Leader election fails.");
            } else if state.is_ok() && failing.swap(false, std::sync::atomic::Ordering::Relaxed) {
                tracing::info!("Leader election works again.");
            }
        };
        let mut election = self.election.lock().await;
        loop {
            let leadership = election.acquire(&report).await;
            let lasting = leadership.clone();
            self.publish(|version| Ownership::new(version, move |_| lasting.lasts()));
            let lost = election.hold(&leadership, &report).await;
            let version = self.publish(Ownership::none);
            tracing::warn!(reason = %lost, "No longer the leader.");
            // What runs must have ended before this process may lead again.
            if self.drained.subscribe().wait_for(|drained| *drained >= version).await.is_err() {
                return;
            }
        }
    }
}

impl Coordinator for Leader {
    fn ownership(&self) -> watch::Receiver<Ownership> {
        self.ownership.subscribe()
    }

    fn drained(&self, version: u64) {
        note_drained(&self.drained, version);
    }

    fn run(self: Arc<Self>) -> BoxFuture<'static, ()> {
        async move {
            tokio::select! {
                () = self.stop.cancelled() => {}
                () = self.lead() => {}
            }
        }
        .boxed()
    }

    fn release(&self) -> BoxFuture<'static, ()> {
        self.stop.cancel();
        self.publish(Ownership::none);
        let election = self.election.clone();
        async move {
            // Waits for `run` to end, but not for ever: a shutdown must not hang.
            if let Ok(mut election) = tokio::time::timeout(Duration::from_secs(5), election.lock()).await {
                election.release().await;
            }
        }
        .boxed()
    }
}
