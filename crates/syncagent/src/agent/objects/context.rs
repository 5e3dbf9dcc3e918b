//! What the whole object half works with: servers, names, and where results go.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use carrick_client::Client;
use carrick_multicluster::Pace;
use tokio::sync::{mpsc, watch};

use super::feedback::progress::AllOrders;
use super::fleet::consumers::Consumers;
use super::import::ImportsReport;
use crate::agent::events::Recorder;
use crate::agent::health::Health;
use crate::agent::metrics::Metrics;
use crate::agent::platform_mesh::consumer::StagingRoot;
use crate::agent::rights::Granted;
use crate::agent::timing::Timing;
use crate::rules::access::Budget;

/// Name of this controller in events and metrics.
pub(crate) const CONTROLLER: &str = "syncagent-sync";

/// How objects are doing, by name of the PublishedResource. One whose objects were not all looked at yet is not in it.
pub(crate) type Troubles = BTreeMap<String, ObjectsReport>;

/// How the objects of one PublishedResource are doing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ObjectsReport {
    /// What is wrong with some of them, in words.
    pub failing: Option<String>,
    /// How many have a copy or should have one.
    pub orders: usize,
    /// How many of these fail.
    pub failures: usize,
    /// How many are paused, in words; nothing if none is.
    pub paused: Option<String>,
    /// What others have changed of copies, in words; nothing if nobody asks for that.
    pub drift: Option<Drift>,
    /// What became of the objects that get their orders from the agent; nothing if there are none, or that is not known yet.
    pub imports: Option<ImportsReport>,
}

/// What others have changed of copies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Drift {
    /// Nothing.
    None,
    /// This.
    Some(String),
}

impl ObjectsReport {
    /// How many are in sync, of how many.
    pub fn counts(&self) -> String {
        format!("{}/{}", self.orders.saturating_sub(self.failures), self.orders)
    }
}

/// Names of PublishedResources that are not synchronized any more and hold no object.
pub(crate) type Released = BTreeSet<String>;

/// What the object half works with.
pub(crate) struct Context {
    /// The service cluster.
    pub local: Client,
    /// The workspace of the endpoint slice.
    pub slice_workspace: Client,
    /// Name of the endpoint slice.
    pub slice: String,
    /// The workspace of the export.
    pub export_workspace: Client,
    /// Name of the export.
    pub export: String,
    /// Name of the agent.
    pub agent_name: String,
    /// Namespace of the state Secrets.
    pub namespace: String,
    /// When objects are reconciled again although no watch reported anything.
    pub timing: Timing,
    /// What one workspace may take.
    pub budget: Budget,
    /// Where a broker has its staging workspaces, if orders come from one.
    pub staging_root: Option<StagingRoot>,
    /// Tells consumers what happens to their objects.
    pub recorder: Recorder,
    /// How many objects are worked on at once, of all PublishedResources together.
    pub pace: Pace,
    /// Counts what was done.
    pub metrics: Arc<Metrics>,
    /// The objects of all PublishedResources, for the dashboard.
    pub orders: Arc<AllOrders>,
    /// Who binds the export, if there is a dashboard.
    pub consumers: Option<Arc<Consumers>>,
    /// Knows what does not work.
    pub health: Arc<Health>,
    /// Publishes which objects fail.
    pub troubles: watch::Sender<Troubles>,
    /// Takes the names of PublishedResources whose objects were refused for want of a right.
    pub refused: mpsc::UnboundedSender<String>,
    /// Publishes which PublishedResources hold no object any more.
    pub released: watch::Sender<Released>,
    /// Names of agents that are no more, and whose part this one has.
    pub former: watch::Sender<Arc<BTreeSet<String>>>,
    /// What the service cluster grants.
    pub granted: watch::Receiver<Granted>,
}
