//! One order: observe, decide, act.

use std::sync::Arc;

use carrick_client::Object;
use carrick_multicluster::Cluster;
use tokio::time::Instant;

use super::act::Executor;
use super::copies;
use super::error::ReconcileError;
use super::observe::{Observed, observe};
use super::order::Order;
use super::shared::Shared;
use crate::decide::{Next, Plan, decide};
use crate::rules::Duty;
use crate::rules::metadata::SourceKey;

/// Brings one object in line, and reports what is wrong if that fails.
pub(super) async fn reconcile(
    shared: &Shared,
    executor: &Executor,
    key: &SourceKey,
    source: Option<Arc<Object>>,
    (cluster, since): (&Cluster, Instant),
) -> Result<Next, ReconcileError> {
    let Some(source) = source else {
        shared.forget(key);
        shared.note_orphan(key, orphan(shared, key).as_ref());
        return Ok(Next::OnChange);
    };
    shared.note_orphan(key, None);
    let order = Order::new(shared, key, cluster, &source, since);
    let result = process(executor, &order).await;
    executor.report(&order, result.as_ref().err());
    let Err(error) = result else { return result };
    let told = match error.refusal() {
        Some(why) => executor.tell(&order, &why).await,
        None => Ok(()),
    };
    // What the provider does not want is no failure: it is reconciled again when something changes.
    if error.is_unwanted() { told.map(|()| Next::OnChange) } else { Err(error) }
}

async fn process(executor: &Executor, order: &Order<'_>) -> Result<Next, ReconcileError> {
    let mut observed = observe(order).await?;
    if observed.ahead.is_none() {
        return Ok(Next::Soon);
    }
    let plan = plan(order, &mut observed).await?;
    executor.act(order, observed, plan).await
}

/// Decides what to do. Where a decision needs more than was observed, that is read first: related objects, then all that is remembered.
async fn plan(order: &Order<'_>, observed: &mut Observed) -> Result<Plan, ReconcileError> {
    let mut plan = decide(&order.rules, observed.seen(order))?;
    if observed.lacks_related(order, &plan) {
        observed.read_related(order).await?;
        plan = decide(&order.rules, observed.seen(order))?;
    }
    if plan.needs_memory {
        observed.read_memory(order).await?;
        plan = decide(&order.rules, observed.seen(order))?;
    }
    Ok(plan)
}

/// The copy of a source that does not exist. Copies do not name the kind of their source, but what is remembered does.
fn orphan(shared: &Shared, key: &SourceKey) -> Option<Arc<Object>> {
    let rules = shared.rules();
    let ours = rules.duty == Duty::Sync && !shared.states.get(&rules.remote, key).is_empty();
    copies::of(&shared.copies, key, &rules.remote.resource()).into_iter().next().filter(|_| ours)
}
