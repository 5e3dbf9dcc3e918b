//! What the agent would do for every object right now: the same syncers, with an executor that records plans.

pub(in crate::agent) mod restore;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::act::{Executor, PlanRecorder, Recorded};
use super::context::Context;
use super::feedback::progress::Orders;
use super::manager::Manager;
use super::related::Patience;
use super::states::States;
use crate::agent::catalog::Catalog;
use crate::decide::Explanation;
use crate::rules::metadata::SourceKey;

/// How often to check whether everything was seen while nothing is recorded.
const CHECK: Duration = Duration::from_millis(50);

/// All plans that were recorded.
#[derive(Debug, Default)]
pub(crate) struct Plans {
    /// By PublishedResource and object; an error where there is no plan.
    pub(crate) by_object: BTreeMap<(String, SourceKey), Result<Explanation, String>>,
    /// Workspaces of consumers: their paths, as far as these are known, by logical cluster.
    pub(crate) workspaces: BTreeMap<String, Option<String>>,
    /// Consumers behind a broker, by logical cluster of the staging workspace.
    pub(crate) consumers: BTreeMap<String, String>,
    /// Why some objects may be missing.
    pub(crate) problem: Option<String>,
}

impl Plans {
    fn add(&mut self, Recorded { published, key, outcome }: Recorded) {
        self.by_object.insert((published, key), outcome);
    }
}

/// Decides for every object once, as the agent would right now, and does nothing about it.
pub(crate) async fn plan_all(context: Context, catalog: &Catalog, patience: Duration) -> Plans {
    let stop = CancellationToken::new();
    let _end = stop.clone().drop_guard();
    let (plans, manager) = see_all(context, catalog, patience, &stop).await;
    if let Some(manager) = manager {
        manager.stop().await;
    }
    plans
}

/// Looks at every object once, and returns what would be done and who has seen them; nobody, if what is remembered cannot be read.
pub(super) async fn see_all(
    context: Context,
    catalog: &Catalog,
    patience: Duration,
    stop: &CancellationToken,
) -> (Plans, Option<Manager>) {
    let deadline = Instant::now() + patience;
    let context = Arc::new(context);
    let all = Arc::clone(&context.orders);
    let mut plans = Plans::default();

    let states = Arc::new(States::new(context.local.clone(), &context.namespace, &context.agent_name));
    let part = context.health.part("state Secrets");
    if tokio::time::timeout_at(deadline, states.load(&part, stop)).await.is_err() {
        plans.problem = Some(context.health.problems().join("; "));
        return (plans, None);
    }
    let (recorder, mut recorded) = PlanRecorder::new();
    // Whoever asks what would be done does not ask twice.
    let mut manager = Manager::new(context, states, Executor::Record(recorder), Patience::none(), stop.clone());
    manager.adjust(catalog).await;
    loop {
        while let Ok(one) = recorded.try_recv() {
            plans.add(one);
        }
        let missing = missing(&manager, &plans);
        if missing.is_none() {
            break;
        }
        if Instant::now() >= deadline {
            plans.problem = missing;
            break;
        }
        if let Ok(Some(one)) = tokio::time::timeout(CHECK, recorded.recv()).await {
            plans.add(one);
        }
    }
    let orders: Vec<Orders> = all.all().into_values().collect();
    for cluster in manager.fleets().consumers.clusters() {
        let consumer = orders.iter().find_map(|orders| orders.consumer(cluster.name().as_str()));
        plans.consumers.extend(consumer.map(|consumer| (cluster.name().to_string(), consumer)));
        plans.workspaces.insert(cluster.name().to_string(), cluster.path().map(|path| path.to_string()));
    }
    (plans, Some(manager))
}

/// What was not seen yet.
fn missing(manager: &Manager, plans: &Plans) -> Option<String> {
    let fleets = manager.fleets();
    for (fleet, side) in [(&fleets.consumers, "consumers' workspaces"), (&fleets.service, "the service cluster")] {
        let health = fleet.health();
        if !health.is_live() {
            return Some(format!("{side}: {health}"));
        }
    }
    let waits = |published: &String, key: &SourceKey| !plans.by_object.contains_key(&(published.clone(), key.clone()));
    let waiting = manager.syncers().iter().flat_map(|(published, syncer)| {
        syncer.keys().into_iter().filter(move |key| waits(published, key)).map(|key| key.to_string())
    });
    let waiting: Vec<String> = waiting.collect();
    let first = waiting.first()?;
    Some(format!("{} objects were not reconciled in time, the first is {first}", waiting.len()))
}
