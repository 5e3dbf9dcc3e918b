//! A small broker, written from what Platform Mesh's resource-broker does: it chooses a provider for each order of a platform's API, copies the
//! order into a staging workspace that is bound to the provider's export, brings status and related objects back, and moves orders when their
//! provider does not take them any more.
//!
//! ```text
//!  team-a: Certificate ──▶ AcceptAPIs of all providers ──▶ staging-<hash>: Certificate ──▶ the provider's agent
//!     status, Secrets  ◀──────────────────────────────────  status.status, status.relatedResources
//!                           compute: from-<name>, to-<name>, what a stage of a migration makes
//! ```
//!
//! With its quirks: it polls, it falls into backoff when a reported object is missing, it mirrors claims once, it asks only for `Available`,
//! and it freezes the consumer's status during a migration. Coordination objects, which no agent sees, are kept in memory.

pub(crate) mod names;
mod order;
mod staging;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use carrick_client::{Client, ListOptions, Resource, Server};
use carrick_e2e_stage::kinds;
use carrick_e2e_stage::stage::{Stage, Workspace, place};
use carrick_kcp::kinds::API_EXPORT_ENDPOINT_SLICE;
use futures::{StreamExt, stream};
use serde_json::Value;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use order::{Assignment, Turn};
use staging::Staging;

/// The shortest and the longest wait after an error, as the real one has them: an agent that lets it fail for long is noticed.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(5), Duration::from_secs(1000));
/// How much longer than a scenario's glances its interval is.
const INTERVAL: u32 = 20;
/// How many orders have their turn at once.
const AT_ONCE: usize = 8;

/// A provider, by its export.
pub(crate) struct Provider {
    /// Its workspace.
    pub(crate) client: Client,
    /// The logical cluster of that.
    pub(crate) cluster: String,
    /// Its export.
    pub(crate) export: String,
}

/// Where an order is served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// Which provider.
    pub(crate) provider: usize,
    /// By which of its AcceptAPIs.
    pub(crate) accept: String,
    /// The staging workspace.
    pub(crate) staging: String,
}

/// What a migration does between two copies, on the compute cluster: one object, and when it has done its work.
#[derive(Clone, Copy)]
pub(crate) struct MigrationStage {
    /// Whether it may begin; asked with both copies.
    pub(crate) precondition: fn(&Value, &Value) -> bool,
    /// The object, without a name.
    pub(crate) template: fn(&Value, &Value) -> Value,
    /// Its resource.
    pub(crate) resource: fn() -> Resource,
    /// Whether it has done its work.
    pub(crate) success: fn(&Value) -> bool,
}

/// What a broker is made of.
pub(crate) struct Setup {
    /// The workspace of the platform's export.
    pub(crate) platform: Workspace,
    /// The workspace above the staging workspaces.
    pub(crate) staging: Workspace,
    /// What plays the compute cluster.
    pub(crate) compute: Workspace,
    /// The providers.
    pub(crate) providers: Vec<Provider>,
    /// What is ordered.
    pub(crate) kind: Resource,
    /// What a migration does.
    pub(crate) migration: Option<MigrationStage>,
}

/// A broker.
pub(crate) struct Broker {
    setup: Setup,
    kcp: Server,
    /// The virtual workspace of the platform's export.
    endpoint: String,
    staging: Staging,
    /// What is known of each order, by its workspace, namespace and name.
    orders: Mutex<BTreeMap<String, Known>>,
    /// What went wrong.
    errors: Mutex<Vec<String>>,
}

/// What is known of an order.
#[derive(Clone)]
struct Known {
    assignment: Assignment,
    due: Instant,
    failures: u32,
}

/// A running broker.
pub(crate) struct Running {
    pub(crate) broker: Arc<Broker>,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Broker {
    /// Starts one, once somebody has bound the platform's export.
    pub(crate) async fn start(stage: &Stage, setup: Setup) -> anyhow::Result<Running> {
        let slices = kinds::kcp(&API_EXPORT_ENDPOINT_SLICE);
        let at = (&setup.platform.client, &slices, None, super::platform::EXPORT);
        let endpoint =
            |slice: &Value| slice.pointer("/status/endpoints/0/url").and_then(Value::as_str).map(str::to_owned);
        let slice =
            stage.object("the platform's export has an endpoint", at, |slice| endpoint(slice).is_some()).await?;
        let kcp = stage.world.kcp().clone();
        let broker = Arc::new(Self {
            endpoint: endpoint(&slice).context("no endpoint")?,
            staging: Staging::new(kcp.clone(), setup.staging.path.clone()),
            kcp,
            setup,
            orders: Mutex::default(),
            errors: Mutex::default(),
        });
        let (stop, interval, running) =
            (CancellationToken::new(), stage.world.pace().glance * INTERVAL, Arc::clone(&broker));
        let stopped = stop.clone();
        let task = tokio::spawn(async move {
            while !stopped.is_cancelled() {
                if let Err(error) = running.round(interval).await {
                    lock(&running.errors).push(format!("{error:#}"));
                }
                tokio::time::sleep(interval).await;
            }
        });
        Ok(Running { broker, stop, task })
    }

    /// Lets every order that is due have its turn.
    async fn round(&self, interval: Duration) -> anyhow::Result<()> {
        let orders = self.consumers("*")?.list(&self.setup.kind, None, &ListOptions::default()).await?;
        let due = orders.iter().filter(|order| {
            let known = lock(&self.orders);
            known.get(&key(order)).is_none_or(|known| known.due <= Instant::now())
        });
        stream::iter(due).for_each_concurrent(AT_ONCE, async |order| self.turn(order, interval).await).await;
        Ok(())
    }

    async fn turn(&self, order: &Value, interval: Duration) {
        let key = key(order);
        let (assignment, failures) =
            lock(&self.orders).get(&key).map(|known| (known.assignment.clone(), known.failures)).unwrap_or_default();
        let mut turn = Turn { broker: self, order, key: &key, assignment };
        let answer = turn.take().await;
        let assignment = turn.assignment;
        let (failures, wait) = match answer {
            Ok(order::Next::Gone) => {
                lock(&self.orders).remove(&key);
                return;
            }
            Ok(order::Next::Poll) => (0, interval),
            Err(error) => {
                lock(&self.errors).push(format!("{key}: {error:#}"));
                (failures + 1, BACKOFF.1.min(BACKOFF.0 * 2_u32.saturating_pow(failures)))
            }
        };
        lock(&self.orders).insert(key, Known { assignment, due: Instant::now() + wait, failures });
    }

    /// Consumers' workspaces, through the platform's export.
    fn consumers(&self, cluster: &str) -> anyhow::Result<Client> {
        Ok(self.kcp.at_published_url(&carrick_kcp::url::in_endpoint(&self.endpoint, cluster))?)
    }

    /// The export that serves an order, and whether it is being moved.
    pub(crate) fn serving(&self, team: &Workspace, name: &str) -> Option<(String, bool)> {
        let known = lock(&self.orders);
        let found = known.get(&format!("{}/default/{name}", team.cluster))?;
        let place = found.assignment.serving.as_ref()?;
        let is_moving = found.assignment.moving.is_some() || found.assignment.leaving.is_some();
        Some((self.setup.providers[place.provider].export.clone(), is_moving))
    }

    /// As administrator of what plays the compute cluster.
    pub(crate) fn compute(&self) -> &Client {
        &self.setup.compute.client
    }

    /// The workspace of the platform's export.
    pub(crate) fn platform(&self) -> &Workspace {
        &self.setup.platform
    }

    /// The workspace above the staging workspaces.
    pub(crate) fn staging_root(&self) -> &Workspace {
        &self.setup.staging
    }

    /// What went wrong so far.
    pub(crate) fn errors(&self) -> Vec<String> {
        lock(&self.errors).clone()
    }

    /// Staging workspaces that orders refer to.
    pub(crate) fn staging_left(&self) -> Vec<String> {
        self.staging.left()
    }
}

impl Running {
    /// Ends it.
    pub(crate) async fn stop(self) -> anyhow::Result<()> {
        self.stop.cancel();
        let ended = tokio::time::timeout(Duration::from_mins(1), self.task).await;
        ensure!(matches!(ended, Ok(Ok(()))), "the broker did not end");
        Ok(())
    }
}

/// Where an order is.
fn key(order: &Value) -> String {
    let (namespace, name) = place(order);
    format!("{}/{namespace}/{name}", cluster_of(order))
}

fn cluster_of(order: &Value) -> &str {
    order["metadata"]["annotations"]["kcp.io/cluster"].as_str().unwrap_or_default()
}

/// What a panic elsewhere has left is as good as before.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
