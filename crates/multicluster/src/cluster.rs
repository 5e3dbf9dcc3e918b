//! One cluster of a fleet.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use carrick_client::Client;
use kube::runtime::events::{Recorder, Reporter};
use parking_lot::{Mutex, RwLock};
use tokio_util::sync::CancellationToken;

use crate::name::{ClusterName, EndpointId};

/// One engagement of a cluster: everything needed to work inside it. Cloning shares it.
///
/// A cluster that moves to another endpoint, or leaves and comes back, is engaged again: same name, higher epoch.
///
/// ```no_run
/// # use carrick_multicluster::{Cluster, Context};
/// # use k8s_openapi::api::core::v1::Node;
/// # use kube::{Api, api::ListParams};
/// # async fn reconcile(context: Context<()>) -> Result<(), kube::Error> {
/// let cluster: &Cluster = &context.cluster;
/// let (nodes, everything) = (Api::<Node>::all(cluster.client()), ListParams::default());
/// tokio::select! {
///     nodes = nodes.list(&everything) => println!("{} has {} nodes", cluster.name(), nodes?.items.len()),
///     () = cluster.gone().cancelled_owned() => println!("{} has left", cluster.name()),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Cluster(Arc<Inner>);

struct Inner {
    name: ClusterName,
    epoch: u64,
    endpoint: EndpointId,
    client: Client,
    path: RwLock<Option<Arc<str>>>,
    recorders: Mutex<HashMap<Reporter, Recorder>>,
    gone: CancellationToken,
}

/// Epochs grow over the whole process, so nobody has to remember the last one of a name.
static EPOCH: AtomicU64 = AtomicU64::new(1);

impl Cluster {
    /// A new engagement of a cluster, served by an endpoint and reached with a client.
    ///
    /// Clients that share a server are best scoped from one: [`Client::at_url`], [`Client::below`].
    pub fn new(name: ClusterName, endpoint: EndpointId, client: impl Into<Client>) -> Self {
        Self(Arc::new(Inner {
            name,
            epoch: EPOCH.fetch_add(1, Ordering::Relaxed),
            endpoint,
            client: client.into(),
            path: RwLock::default(),
            recorders: Mutex::default(),
            gone: CancellationToken::new(),
        }))
    }

    /// The same, with a path known from the start.
    #[must_use]
    pub fn with_path(self, path: impl Into<Arc<str>>) -> Self {
        self.set_path(path.into());
        self
    }

    /// The name.
    pub fn name(&self) -> &ClusterName {
        &self.0.name
    }

    /// Distinguishes engagements of one name; later ones have higher numbers.
    pub fn epoch(&self) -> u64 {
        self.0.epoch
    }

    /// A kube client for this cluster. It is built on first use, dropped when it was not used for a while, and shares the
    /// connections of the endpoint.
    pub fn client(&self) -> kube::Client {
        self.0.client.kube()
    }

    /// The light client below [`Cluster::client`], for untyped JSON.
    pub fn json_client(&self) -> &Client {
        &self.0.client
    }

    /// The workspace path, such as `root:org:team`, where the provider knows one. It may become known later.
    pub fn path(&self) -> Option<Arc<str>> {
        self.0.path.read().clone()
    }

    /// The endpoint that serves the cluster.
    pub fn endpoint(&self) -> &EndpointId {
        &self.0.endpoint
    }

    /// A recorder of events in this cluster, kept per reporter so that repeated events are counted instead of written again.
    pub fn recorder(&self, reporter: &Reporter) -> Recorder {
        let (client, mut recorders) = (self.client(), self.0.recorders.lock());
        recorders.entry(reporter.clone()).or_insert_with(|| Recorder::new(client, reporter.clone())).clone()
    }

    /// Cancelled when the cluster leaves the fleet or is engaged again. Long reconciles may stop then.
    pub fn gone(&self) -> CancellationToken {
        self.0.gone.clone()
    }

    /// Drops the kube client and the recorders, if they were not used for this long.
    pub(crate) fn drop_idle(&self, idle: Duration) {
        if self.0.client.drop_idle_kube(idle) {
            self.0.recorders.lock().clear();
        }
    }

    pub(crate) fn set_path(&self, path: Arc<str>) {
        *self.0.path.write() = Some(path);
    }
}

impl PartialEq for Cluster {
    /// Whether both are the same engagement.
    fn eq(&self, other: &Self) -> bool {
        self.epoch() == other.epoch()
    }
}

impl Eq for Cluster {}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster")
            .field("name", self.name())
            .field("epoch", &self.epoch())
            .field("endpoint", self.endpoint())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::unreachable_client;

    #[tokio::test]
    async fn clients_that_nobody_asks_for_are_let_go() {
        let reporter = Reporter::from("test");
        let cluster = Cluster::new(ClusterName::new("c").unwrap(), "e".into(), unreachable_client());
        drop((cluster.client(), cluster.recorder(&reporter)));
        cluster.drop_idle(Duration::from_mins(1));
        assert_eq!(cluster.0.recorders.lock().len(), 1, "still in use");
        cluster.drop_idle(Duration::ZERO);
        assert!(cluster.0.recorders.lock().is_empty());
        assert!(!cluster.0.client.drop_idle_kube(Duration::ZERO), "there is none any more");
        drop(cluster.client());
        assert!(cluster.0.client.drop_idle_kube(Duration::ZERO), "there is another one");
    }
}
