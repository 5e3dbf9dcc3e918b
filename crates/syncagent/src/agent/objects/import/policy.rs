//! `spec.import`: objects of the service cluster that get their orders from the agent, because their provider has labelled them.
//!
//! A controller of its own follows the objects that are selected. For each it does what `carrick import` does, accepts no change, and says on the
//! object why that is not possible. One that has its order costs no request.

use std::sync::Arc;
use std::time::Duration;

use carrick_client::watch::WatchOptions;
use carrick_client::{Object, Resource};
use carrick_multicluster::{
    Action as Next, ClusterName, Config, Context as Reconcile, Error, FleetEvent, FleetStore, Key,
    MultiClusterController, Request as ToReconcile,
};
use futures::{Stream, StreamExt};
use thiserror::Error;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::report::ImportedObjects;
use super::{Importer, full_name};
use crate::agent::events::Type;
use crate::agent::import::{Action, ImportOutcome, ImportedObject, Request, Selected};
use crate::agent::objects::copies::SERVICE;
use crate::agent::objects::feedback::known::until_known;
use crate::agent::objects::related::kinds;
use crate::agent::objects::shared::Shared;
use crate::api::IMPORTED;
use crate::decide::import::{ImportPolicy, policy};
use crate::rules::import::ImportRules;
use crate::rules::metadata::{annotation, source_of};
use crate::rules::{Duty, Rules};

/// The name of the controller in logs and metrics.
const CONTROLLER: &str = "syncagent-import";
/// How many objects are imported at once.
const AT_ONCE: usize = 8;
/// When an object that is not imported is tried again, and at most how much later, although nothing about it has changed.
const RETRY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_mins(5));
/// An object is not imported for now.
#[derive(Debug, Error)]
#[error("{0}")]
struct NotImported(String);

/// What each import is given.
struct Policy {
    shared: Arc<Shared>,
    objects: FleetStore<Object>,
    stop: CancellationToken,
}

/// Imports what the rules select, until it is to stop.
pub(in crate::agent::objects) async fn follow(shared: Arc<Shared>, selector: String, stop: CancellationToken) {
    let local = kinds::resource(&shared.rules().local);
    let fleets = &shared.fleets;
    let again = refused_again(shared.clone(), local.clone());
    let controller =
        MultiClusterController::compact(&fleets.service, WatchOptions::labels(selector), local).named(CONTROLLER);
    let objects = controller.store();
    let config = Config::default().concurrency(AT_ONCE).per_cluster(0).backoff(RETRY.0, RETRY.1);
    let ended = stop.clone().cancelled_owned();
    let reports = controller.with_config(config).trigger(again).graceful_shutdown_on(ended).run_keyed(
        one,
        |_, _: &NotImported, _| Next::backoff(),
        Arc::new(Policy { shared, objects, stop }),
    );
    let mut reports = std::pin::pin!(reports);
    while let Some(report) = reports.next().await {
        // What is not imported was reported on its object.
        if let Err(error) = report
            && !matches!(error, Error::Reconcile { .. })
        {
            tracing::error!(%error, "Something went wrong with objects to import.");
        }
    }
}

/// Requests for what is not imported, whenever a workspace comes or the rules change.
fn refused_again(shared: Arc<Shared>, local: Resource) -> impl Stream<Item = ToReconcile<Object>> + Send + 'static {
    let engaged = shared.fleets.consumers.subscribe();
    let engaged = engaged.filter(|event| std::future::ready(matches!(event, FleetEvent::Engage { .. })));
    let changed = futures::stream::unfold(shared.rules_changes(), changed);
    futures::stream::select(engaged.map(drop), changed).flat_map(move |()| {
        let refused = shared.imports.refused();
        let requests: Vec<_> = refused.iter().filter_map(|name| request(name, local.clone())).collect();
        futures::stream::iter(requests)
    })
}

async fn changed(mut rules: watch::Receiver<Arc<Rules>>) -> Option<((), watch::Receiver<Arc<Rules>>)> {
    rules.changed().await.ok()?;
    Some(((), rules))
}

fn request(name: &str, local: Resource) -> Option<ToReconcile<Object>> {
    let (namespace, name) = name.split_once('/').unwrap_or(("", name));
    let cluster = ClusterName::new(SERVICE).ok()?;
    Some(ToReconcile::from_key(&Key::new(cluster, namespace, name), local))
}

/// Imports one object, if that is due.
async fn one(
    request: ToReconcile<Object>,
    object: Option<Arc<Object>>,
    context: Reconcile<Policy>,
) -> Result<Next, NotImported> {
    let Policy { shared, objects, stop } = &*context.data;
    let key = request.key();
    let Some(object) = object else {
        let name =
            if key.namespace.is_empty() { key.name.to_string() } else { format!("{}/{}", key.namespace, key.name) };
        if shared.imports.forget(&name) {
            shared.count_again.notify_one();
        }
        return Ok(Next::await_change());
    };
    let rules = shared.rules();
    let Some(import) = rules.import.as_ref().filter(|_| rules.duty == Duty::Sync) else {
        return Ok(Next::await_change());
    };
    // Whoever does not know all orders would ask for each of them.
    tokio::select! {
        () = stop.cancelled() => return Ok(Next::await_change()),
        () = until_known(&shared.sources, &shared.fleets.consumers) => {}
    }
    let there = objects.is_listed().then(|| objects.len());
    let seen = object.value();
    let is_ordered = source_of(&seen)
        .is_some_and(|source| shared.sources.get(&source.cluster, &source.namespace, &source.name).is_some());
    let refused = if is_ordered { None } else { attempt(shared, &rules, import, seen.clone()).await };
    let (is_news, is_news_of_all) = shared.imports.note(&full_name(&seen), refused.as_deref(), there);
    if is_news_of_all {
        shared.count_again.notify_one();
    }
    let Some(why) = refused else { return Ok(Next::await_change()) };
    if is_news {
        tracing::warn!(object = full_name(&seen), reason = why, "An object is not imported.");
        let message = format!("Not imported by PublishedResource {}: {why}.", rules.name);
        shared.context.recorder.event(&shared.context.local, &seen, Type::Warning, "ImportRefused", &message);
    }
    Err(NotImported(why))
}

/// Imports an object that has no order, or says why not.
async fn attempt(shared: &Shared, rules: &Arc<Rules>, import: &ImportRules, seen: serde_json::Value) -> Option<String> {
    // Most that have had an order say so in the cache already.
    if policy(&seen) == ImportPolicy::Leave {
        return None;
    }
    let wish = wish(rules, import);
    let importer = Importer::by_policy(shared, rules, import, &wish);
    // Who has written its labels is not in the cache.
    let object = match importer.read_again(&seen).await {
        Ok(object) => object,
        Err(why) => return Some(why),
    };
    match policy(&object) {
        ImportPolicy::Leave => None,
        ImportPolicy::Refused(why) => Some(why.to_owned()),
        ImportPolicy::Import => {
            let done = importer.import(object.clone()).await;
            if done.outcome == ImportOutcome::Imported {
                report(shared, rules, &object, &done);
            }
            done.outcome.is_problem().then(|| done.reason.unwrap_or_default())
        }
    }
}

fn report(shared: &Shared, rules: &Rules, object: &serde_json::Value, done: &ImportedObject) {
    let (order, workspace) = (done.order.as_deref().unwrap_or_default(), done.workspace.as_deref().unwrap_or_default());
    tracing::info!(object = done.object, order, workspace, "An object was imported.");
    let message = format!("It got the order {order} in {workspace}, as PublishedResource {} says.", rules.name);
    if annotation(object, IMPORTED).is_none() {
        shared.context.recorder.event(&shared.context.local, object, Type::Normal, "Imported", &message);
    }
}

/// What the rules wish for, as the command would say it.
fn wish(rules: &Rules, import: &ImportRules) -> Request {
    Request {
        selected: Selected::Named(Vec::new()),
        without: import.without.clone(),
        on_delete: import.on_delete,
        wait: Duration::ZERO,
        ..Request::new(&rules.name, "")
    }
}

impl<'a> Importer<'a> {
    /// An importer for the objects that a PublishedResource imports by itself.
    fn by_policy(shared: &'a Shared, rules: &Arc<Rules>, import: &ImportRules, request: &'a Request) -> Self {
        Self {
            shared,
            rules: rules.clone(),
            request,
            action: Action::Import,
            places: import.places.clone(),
            by_policy: true,
            local: kinds::resource(&rules.local),
            remote: kinds::resource(&rules.remote),
        }
    }
}

/// What became of the objects that the rules select; nothing where they select none, or that is not known yet.
pub(in crate::agent::objects) fn report_on(shared: &Shared) -> Option<super::ImportsReport> {
    let imports: &ImportedObjects = &shared.imports;
    shared.rules().import.as_ref().and_then(|_| imports.report())
}
