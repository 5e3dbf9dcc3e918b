//! Everything that speaks of brokers of Platform Mesh: the AcceptAPIs that say which orders a broker may bring to this provider.
//!
//! ```text
//!  Catalog (spec.implements.accept) ──┐
//!  what the APIExport serves ─────────┼─▶ plan (pure) ─▶ AcceptAPIs in the workspace of the APIExport
//!  watch of AcceptAPIs ───────────────┘         └─────▶ condition AcceptAPIKept
//! ```
//!
//! `consumer` says whose an order is that a broker has copied into a staging workspace.
//! One is made only once the export serves the API with all its claims: a broker accepts claims once, as they are when the first order comes.

pub mod consumer;
mod plan;
mod report;

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use carrick_client::watch::{Event, WatchOptions, watch};
use carrick_client::{Client, DeleteOptions, Error, Resource};
use carrick_sync::executor::refusal::is_unserved;
use futures::{Stream, StreamExt};
use serde_json::{Value, json};
use tokio::sync::watch::{Receiver, Sender};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::plan::{GROUP as BROKER, Owner, Plan, VERSION as BROKER_VERSION, Wish, plan};
use super::catalog::Catalog;
use super::events::{Recorder, Type};
use super::export::Exported;
use super::retry::{Backoff, Retry};
use crate::api::{GROUP, PublishedResource, VERSION};

pub(crate) use report::{AcceptReport, CONDITION};

/// Name of this controller in events and in the log.
pub(crate) const CONTROLLER: &str = "syncagent-acceptapi";
/// After so long without a repair, nobody disputes an AcceptAPI.
const CALM: Duration = Duration::from_mins(1);

/// How AcceptAPIs are doing, by name of the PublishedResource.
pub(crate) type Reports = BTreeMap<String, AcceptReport>;

/// What the controller works with.
pub(crate) struct AcceptApis {
    /// The service cluster.
    pub(crate) local: Client,
    /// The workspace of the APIExport.
    pub(crate) workspace: Client,
    /// Name of the APIExport.
    pub(crate) export: String,
    /// Name of the agent.
    pub(crate) agent: String,
    /// Where to report those of others.
    pub(crate) recorder: Recorder,
    /// What the export serves.
    pub(crate) exported: Receiver<Exported>,
    /// Where to report how they are doing.
    pub(crate) reports: Sender<Reports>,
}

/// What is known of AcceptAPIs.
#[derive(Default)]
struct Seen {
    /// All of the workspace, by name; nothing while they were not listed.
    found: Option<BTreeMap<String, Value>>,
    /// Those of a list that is not complete.
    listing: BTreeMap<String, Value>,
    /// Why they are not known.
    problem: Option<AcceptReport>,
    /// Version and wanted spec of what came back other than it was written.
    stubborn: BTreeMap<String, (Value, Value)>,
    repairs: BTreeMap<String, Repairs>,
}

/// How often one was repaired: whoever undoes that all the time must not make the agent flood kcp.
struct Repairs {
    backoff: Backoff,
    last: Instant,
    next: Instant,
}

type Events = Pin<Box<dyn Stream<Item = Event> + Send>>;

impl AcceptApis {
    /// Runs until the agent stops.
    pub(crate) async fn run(self, mut catalog: Receiver<Arc<Catalog>>, stop: CancellationToken) {
        let mut exported = self.exported.clone();
        let (mut seen, mut retry) = (Seen::default(), Retry::for_objects());
        let mut events: Option<Events> = None;
        loop {
            let now = Arc::clone(&catalog.borrow_and_update());
            // Nobody who is not behind a broker watches anything.
            if !now.resources.values().any(|pr| report::concerns(pr)) {
                (events, seen) = (None, Seen::default());
            } else if events.is_none() {
                events = Some(Box::pin(watch(self.workspace.clone(), accept_apis(), WatchOptions::default())));
            }
            let serving = exported.borrow_and_update().clone();
            // A stop does not break off a write.
            match self.reconcile(&mut seen, &now, &serving).await {
                Ok(again) => {
                    retry.succeeded();
                    retry.set(again);
                }
                Err(()) => retry.failed(),
            }
            tokio::select! {
                () = stop.cancelled() => return,
                changed = catalog.changed() => if changed.is_err() { return },
                () = changes(&mut exported) => {}
                event = next(&mut events) => self.on(&mut seen, event),
                () = retry.due() => {}
            }
        }
    }

    fn on(&self, seen: &mut Seen, event: Event) {
        let read = |object: &carrick_client::Object| Some((object.name.to_string(), object.read().ok()?));
        match event {
            Event::Begin => seen.listing.clear(),
            Event::Listed(object) => seen.listing.extend(read(&object)),
            Event::Synced => {
                (seen.found, seen.problem) = (Some(std::mem::take(&mut seen.listing)), None);
            }
            Event::Applied(object) => seen.found.get_or_insert_default().extend(read(&object)),
            Event::Deleted(object) => drop(seen.found.get_or_insert_default().remove(&*object.name)),
            Event::Failing(error) if is_unserved(&error) => {
                let workspace = carrick_kcp::url::workspace(self.workspace.url()).unwrap_or_default();
                (seen.found, seen.problem) = (None, Some(AcceptReport::unserved(workspace)));
            }
            // What is known is still the best that is known; writes say what is wrong.
            Event::Failing(error) if seen.found.is_none() => {
                seen.problem = Some(AcceptReport::failed(&format!("cannot watch AcceptAPIs: {error}")));
            }
            Event::Failing(_) | Event::Recovered | Event::WentBack { .. } => {}
        }
    }

    /// Does what is to be done for all PublishedResources, and reports it; returns when to look again although nothing has changed.
    async fn reconcile(&self, seen: &mut Seen, catalog: &Catalog, exported: &Exported) -> Result<Option<Instant>, ()> {
        let mut reports = Reports::new();
        let (mut again, mut failed) = (None, false);
        for (name, pr) in catalog.resources.iter().filter(|(_, pr)| report::concerns(pr)) {
            let report = match (&seen.problem, &seen.found) {
                (Some(problem), None) => problem.clone(),
                (_, None) => continue,
                (_, Some(_)) => {
                    let wish = self.wish(name, pr, catalog, exported);
                    let owner = Owner { agent: &self.agent, former: &catalog.former, uid: &pr.metadata.uid };
                    match self.carry_out(seen, &wish, owner, &mut again).await {
                        Ok(report) => report,
                        Err(error) => {
                            failed = true;
                            // A newer one is on its way.
                            if error.is_conflict() || error.is_already_exists() || error.is_not_found() {
                                continue;
                            }
                            tracing::error!(logger = CONTROLLER, publishedresource = name, %error, "Cannot keep its AcceptAPI.");
                            AcceptReport::failed(&error.to_string())
                        }
                    }
                }
            };
            self.warn(pr, &report);
            reports.insert(name.clone(), report);
        }
        self.reports.send_if_modified(|before| {
            let earlier = before.clone();
            // What is being read again is as it was.
            before.retain(|name, _| catalog.resources.contains_key(name));
            before.extend(reports);
            *before != earlier
        });
        if failed { Err(()) } else { Ok(again) }
    }

    fn wish(&self, name: &str, pr: &PublishedResource, catalog: &Catalog, exported: &Exported) -> Wish {
        // Of two that publish one API only the first one counts.
        let conflict = catalog.problems.get(name).is_some_and(|problem| problem.reason == "Conflict");
        let entry = catalog.entries.get(name).filter(|entry| entry.rules.is_ok() && !conflict);
        let serves = entry.is_some_and(|entry| {
            // Behind a gate, the status says which schema is to be exported.
            let named = pr.status.resource_schema_name.as_str();
            let schema = if pr.is_gated() && !named.is_empty() { named } else { &entry.schema_name };
            exported.serves(name, schema) == Some(Ok(()))
        });
        Wish::of(pr, entry.map(|entry| &*entry.pr), serves, &self.export)
    }

    /// Does what is to be done, and says how things are then.
    async fn carry_out(
        &self,
        seen: &mut Seen,
        wish: &Wish,
        owner: Owner<'_>,
        again: &mut Option<Instant>,
    ) -> Result<AcceptReport, Error> {
        let found = seen.found.get_or_insert_default();
        let plans = plan(wish, found, owner);
        for plan in &plans {
            match plan {
                Plan::Keep(_) | Plan::Foreign(_) | Plan::Ending(_) => {}
                Plan::Create(object) => {
                    let made = self.workspace.create(&accept_apis(), None, object).await?;
                    tracing::info!(
                        logger = CONTROLLER,
                        name = name(object),
                        "Created AcceptAPI: brokers may bring orders."
                    );
                    found.insert(name(object).to_owned(), made);
                }
                Plan::Replace(object) => {
                    let (name, version) = (name(object), &object["metadata"]["resourceVersion"]);
                    let written = seen.stubborn.get(name);
                    if written.is_some_and(|(stored, spec)| stored == version && *spec == object["spec"]) {
                        return Ok(AcceptReport::stubborn(name));
                    }
                    if let Some(next) = disputed(&seen.repairs, name) {
                        *again = again.map_or(Some(next), |other| Some(other.min(next)));
                        continue;
                    }
                    let made = self.workspace.replace(&accept_apis(), None, object).await?;
                    tracing::info!(logger = CONTROLLER, name, "Repaired AcceptAPI.");
                    if made["spec"] != object["spec"] {
                        let version = made["metadata"]["resourceVersion"].clone();
                        seen.stubborn.insert(name.to_owned(), (version, object["spec"].clone()));
                    }
                    repaired(&mut seen.repairs, name);
                    found.insert(name.to_owned(), without_managed_fields(made));
                }
                Plan::Delete(name, uid, version) => {
                    let options = DeleteOptions {
                        uid: Some(uid.clone()),
                        resource_version: Some(version.clone()),
                        ..DeleteOptions::default()
                    };
                    self.workspace.delete(&accept_apis(), None, name, &options).await?;
                    tracing::info!(logger = CONTROLLER, name, "Deleted AcceptAPI: brokers move all orders elsewhere.");
                    // Until the watch says so: brokers hold it by a finalizer.
                    found.remove(name);
                }
            }
        }
        let kept = match wish {
            Wish::Offer(name, _) => found.get(name),
            Wish::Hold(_) => found.values().find(|object| owner.made(object)),
            Wish::None(..) => None,
        };
        Ok(AcceptReport::of(wish, &plans, kept))
    }

    /// Says once that somebody else's is in the way.
    fn warn(&self, pr: &PublishedResource, report: &AcceptReport) {
        let is_known = report::said(pr).is_some_and(|said| said["message"] == report.message.as_str());
        let was_said = self.reports.borrow().get(&pr.metadata.name) == Some(report);
        if report.reason != report::FOREIGN || is_known || was_said {
            return;
        }
        let involved = json!({
            "apiVersion": format!("{GROUP}/{VERSION}"), "kind": "PublishedResource",
            "metadata": { "name": pr.metadata.name, "uid": pr.metadata.uid, "resourceVersion": pr.metadata.resource_version },
        });
        self.recorder.event(&self.local, &involved, Type::Warning, "ForeignAcceptAPI", &report.message);
    }
}

fn accept_apis() -> Resource {
    Resource::cluster_wide(BROKER, BROKER_VERSION, "AcceptAPI", "acceptapis")
}

fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

/// As watches report it.
fn without_managed_fields(mut object: Value) -> Value {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("managedFields");
    }
    object
}

/// When one may be repaired again, if that is not now.
fn disputed(repairs: &BTreeMap<String, Repairs>, name: &str) -> Option<Instant> {
    repairs.get(name).map(|repairs| repairs.next).filter(|next| *next > Instant::now())
}

fn repaired(repairs: &mut BTreeMap<String, Repairs>, name: &str) {
    let now = Instant::now();
    let fresh = || Repairs { backoff: Backoff::for_disputes(), last: now, next: now };
    let repairs = repairs.entry(name.to_owned()).or_insert_with(fresh);
    if now - repairs.last > CALM {
        repairs.backoff.reset();
    }
    (repairs.last, repairs.next) = (now, now + repairs.backoff.pause());
}

/// The next event; never one without a watch.
async fn next(events: &mut Option<Events>) -> Event {
    match events {
        Some(events) => match events.next().await {
            Some(event) => event,
            None => std::future::pending().await,
        },
        None => std::future::pending().await,
    }
}

/// Waits for a change; for ever if nobody reports any more.
async fn changes<T>(receiver: &mut Receiver<T>) {
    if receiver.changed().await.is_err() {
        std::future::pending::<()>().await;
    }
}
