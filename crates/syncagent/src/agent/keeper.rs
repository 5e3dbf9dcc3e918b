//! The keeper: lets this agent work only on resources that no other agent keeps in the same APIExport.
//!
//! ```text
//!  catalog (all that the selector matches) ──▶ keeper ──▶ catalog without what another agent keeps ──▶ all controllers
//!  watch of the APIExport ──────────────────────┘ └──▶ an entry in the APIExport, renewed now and then
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use carrick_client::watch::{Event, WatchOptions, watch};
use carrick_client::{Client, Error, Resource};
use carrick_kcp::apis::v1alpha2::ApiExport;
use carrick_kcp::kinds::VersionedObject;
use futures::StreamExt;
use serde_json::{Value, json};
use tokio::sync::watch::{Receiver, Sender};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::catalog::{Catalog, Refused};
use super::export::newest_kind;
use super::health::{Health, Part};
use super::retry::Retry;
use crate::api::{AGENT_NAME, FORMER_AGENTS, KEEPER, LAST_SEEN};
use crate::rules::abandoned::resource_of;
use crate::rules::keeper::{
    Beat, Keeper, Keeping, Unwritten, decide, former, lapses_in, read, read_former, rivalry, without_entry,
    write_former,
};

/// What the keeper works with.
pub(crate) struct Setup {
    /// The service cluster.
    pub(crate) local: Client,
    /// The workspace of the APIExport.
    pub(crate) export: Client,
    /// Name of the APIExport.
    pub(crate) name: String,
    /// Name of the agent.
    pub(crate) agent_name: String,
    /// Whether to take over what another agent keeps. Once.
    pub(crate) take_over: bool,
    /// How often to renew.
    pub(crate) beat: Beat,
    /// Where to tell whether somebody else keeps it.
    pub(crate) health: Arc<Health>,
}

/// Hands the catalog on, without what another agent keeps, until told to stop.
pub(crate) async fn run(
    setup: Setup,
    mut catalog: Receiver<Arc<Catalog>>,
    filtered: Sender<Arc<Catalog>>,
    stop: CancellationToken,
) {
    let part = setup.health.part(format!("keeping of APIExport {}", setup.name));
    let options = WatchOptions::fields(format!("metadata.name={}", setup.name));
    let Some(kind) = newest_kind(&setup.export, &part, &stop).await else { return };
    let mut events = pin!(watch(setup.export.clone(), kind.into(), options));
    let mut state = State { take_over: setup.take_over, ..State::default() };
    let mut retry = Retry::for_objects();
    let mut known = false;
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            changed = catalog.changed() => {
                if changed.is_err() {
                    return;
                }
                known = true;
            }
            Some(event) = events.next() => match event {
                // The controller of the export reports one that cannot be read.
                Event::Listed(export) | Event::Applied(export) => {
                    let read = export.decode().and_then(|export| ApiExport::from_version(kind.version, export));
                    state.export = read.ok();
                }
                Event::Deleted(_) => state.export = None,
                // The controller of the export tells of its watch.
                Event::Begin | Event::Synced | Event::Failing(_) | Event::Recovered | Event::WentBack { .. } => continue,
            },
            () = retry.due() => {}
        }
        let (true, Some(export)) = (known, state.export.clone()) else { continue };
        if state.me.is_none() {
            let identified = tokio::select! {
                () = stop.cancelled() => return,
                identified = identify(&setup) => identified,
            };
            match identified {
                Ok(me) => state.me = Some(me),
                Err(error) => {
                    part.fails(&format!("cannot tell which service cluster this is: {error}"));
                    retry.failed();
                    continue;
                }
            }
        }
        let current = Arc::clone(&catalog.borrow_and_update());
        // A stop does not break off a write.
        match state.look(&setup, &export, &current, &part).await {
            Ok((keeping, next)) => {
                retry.succeeded();
                state.send(&current, &keeping, &filtered);
                retry.set(next.map(|next| Instant::now() + next));
            }
            Err(error) => {
                // The watch brings the newer export any moment.
                if !error.is_conflict() {
                    part.fails(&format!("cannot note in APIExport {} who keeps it: {error}", setup.name));
                }
                state.lapse(&setup, &export, &current, &filtered);
                retry.failed();
            }
        }
    }
}

/// What is known.
#[derive(Default)]
struct State {
    export: Option<ApiExport>,
    me: Option<Keeper>,
    kept: BTreeSet<String>,
    take_over: bool,
    /// Whether it was told that nothing can be noted.
    told: bool,
    /// Names of agents that are no more.
    former: BTreeSet<String>,
    /// What was handed on last: the catalog, and what was taken out of it.
    sent: Option<(Arc<Catalog>, Filtered)>,
}

/// All that may differ between what comes in and what is handed on.
#[derive(PartialEq, Eq)]
struct Filtered {
    kept: BTreeSet<String>,
    blocked: BTreeMap<String, String>,
    awaited: BTreeMap<String, String>,
    elsewhere: BTreeSet<String>,
    others: BTreeSet<String>,
    former: BTreeSet<String>,
}

impl State {
    /// Looks who keeps the export and writes that down if it is time to; returns when to look again.
    async fn look(
        &mut self,
        setup: &Setup,
        export: &ApiExport,
        catalog: &Catalog,
        part: &Part,
    ) -> Result<(Keeping, Option<Duration>), Error> {
        let me = self.me.clone().unwrap_or_default();
        let wants = wants(catalog);
        let now = jiff::Timestamp::now().as_millisecond();
        let recorded = read(export.metadata.annotation(KEEPER));
        let mut keeping = decide(&recorded, &me, &wants, (now, setup.beat, self.take_over));
        let noted = read_former(export.metadata.annotation(FORMER_AGENTS));
        let known = (&noted, export.metadata.annotation(AGENT_NAME));
        self.former = former(&recorded, known, &me, &wants, (now, setup.beat, self.take_over));
        if let Some(text) = keeping.write.take() {
            // Whoever only waits is nobody's heir, and serves nobody.
            let serves = keeping.blocked.len() < wants.len();
            let names = if serves { &self.former } else { &noted };
            let mut patch = json!({ "metadata": {
                // Nobody else may have written in between.
                "resourceVersion": export.metadata.resource_version,
                "annotations": { KEEPER: text, FORMER_AGENTS: write_former(names) },
            }});
            if serves {
                patch["metadata"]["annotations"][LAST_SEEN] = moment(now).into();
            }
            match note(setup, &patch).await {
                Ok(written) => {
                    keeping = decide(&read(written.metadata.annotation(KEEPER)), &me, &wants, (now, setup.beat, false));
                    self.export = Some(written);
                }
                // An agent that may only look can still see who is there. Whatever else is refused, kcp refuses the controller of the export
                // as well, which reports it where people look.
                Err(error) if is_refusal(&error) => {
                    if !std::mem::replace(&mut self.told, true) {
                        tracing::warn!(%error, "Cannot note in the APIExport who keeps it: other agents will not notice this one.");
                    }
                    let known = (&wants, &self.kept);
                    keeping.kept = without_entry(&recorded, &me, known, (now, setup.beat), Unwritten::Refused);
                    self.kept.retain(|resource| keeping.kept.contains(resource));
                    // In time to let go of what somebody waits for.
                    let lapse = lapses_in(&recorded, &me, (now, setup.beat)).unwrap_or(setup.beat.renew);
                    keeping.next = Some(lapse.min(setup.beat.renew));
                }
                Err(error) => return Err(error),
            }
            self.take_over = false;
        }
        // Only what is recorded is kept; but an export that was made anew takes nothing away.
        self.kept.extend(keeping.kept.iter().cloned());
        self.kept.retain(|resource| wants.contains(resource) && !keeping.blocked.contains_key(resource));
        let blocked: Vec<String> =
            keeping.blocked.iter().map(|(resource, keeper)| rivalry(resource, keeper, &me)).collect();
        if blocked.is_empty() {
            part.works();
        } else {
            part.fails(&blocked.join("; "));
        }
        let next = keeping.next.map(|next| Duration::from_millis(u64::try_from(next).unwrap_or_default()));
        Ok((keeping, next))
    }

    /// The entry could not be written: what others may take over soon is not served any more.
    fn lapse(&mut self, setup: &Setup, export: &ApiExport, catalog: &Arc<Catalog>, filtered: &Sender<Arc<Catalog>>) {
        let (me, wants) = (self.me.clone().unwrap_or_default(), wants(catalog));
        let (recorded, now) = (read(export.metadata.annotation(KEEPER)), jiff::Timestamp::now().as_millisecond());
        let served = without_entry(&recorded, &me, (&wants, &self.kept), (now, setup.beat), Unwritten::Failed);
        if served == self.kept {
            return;
        }
        tracing::warn!(
            "Nothing is synchronized until the APIExport can be written again: other agents may take this one for dead."
        );
        self.kept = served;
        self.send(catalog, &decide(&recorded, &me, &wants, (now, setup.beat, false)), filtered);
    }

    /// Hands the catalog on unless everything is as it was.
    fn send(&mut self, catalog: &Arc<Catalog>, keeping: &Keeping, filtered: &Sender<Arc<Catalog>>) {
        let me = self.me.clone().unwrap_or_default();
        let verdict = Filtered {
            kept: self.kept.clone(),
            blocked: keeping.blocked.iter().map(|(it, keeper)| (it.clone(), rivalry(it, keeper, &me))).collect(),
            awaited: keeping.awaited.iter().map(|(it, waiter)| (it.clone(), rivalry(it, &me, waiter))).collect(),
            elsewhere: keeping.elsewhere.clone(),
            others: keeping.others.clone(),
            former: self.former.clone(),
        };
        if self.sent.as_ref().is_some_and(|(before, same)| Arc::ptr_eq(before, catalog) && *same == verdict) {
            return;
        }
        filtered.send_replace(Arc::new(verdict.filter(catalog)));
        self.sent = Some((Arc::clone(catalog), verdict));
    }
}

impl Filtered {
    /// The catalog without what another agent keeps, or what is not noted yet.
    fn filter(&self, catalog: &Catalog) -> Catalog {
        let mut filtered = Catalog {
            entries: catalog.entries.clone(),
            resources: catalog.resources.clone(),
            problems: catalog.problems.clone(),
            kept: catalog.kept,
            refused: BTreeMap::new(),
            awaited: BTreeMap::new(),
            elsewhere: self.elsewhere.clone(),
            others: self.others.clone(),
            former: self.former.clone(),
        };
        for (name, pr) in &catalog.resources {
            let Some(resource) = resource_of_pr(catalog, name) else { continue };
            if let Some(why) = self.awaited.get(&resource) {
                filtered.awaited.insert(name.clone(), why.clone());
            }
            if self.kept.contains(&resource) {
                continue;
            }
            filtered.entries.remove(name);
            filtered.resources.remove(name);
            filtered.problems.remove(name);
            if let Some(why) = self.blocked.get(&resource) {
                filtered.refused.insert(name.clone(), Refused { pr: Arc::clone(pr), why: why.clone() });
            }
        }
        filtered
    }
}

/// PublishedResources that another agent serves, with what is said about that.
pub(crate) fn blocked<'a>(
    catalog: &'a Catalog,
    blocked: &'a BTreeMap<String, Keeper>,
    agent_name: &'a str,
) -> impl Iterator<Item = (String, String)> + 'a {
    let me = Keeper { agent: agent_name.to_owned(), ..Keeper::default() };
    catalog.resources.keys().filter_map(move |name| {
        let resource = resource_of_pr(catalog, name)?;
        Some((name.clone(), rivalry(&resource, blocked.get(&resource)?, &me)))
    })
}

/// The resources that a catalog would serve.
pub(crate) fn wants(catalog: &Catalog) -> BTreeSet<String> {
    catalog.resources.keys().filter_map(|name| resource_of_pr(catalog, name)).collect()
}

/// The resource in kcp of a PublishedResource; that of earlier times if there is none now.
pub(crate) fn resource_of_pr(catalog: &Catalog, name: &str) -> Option<String> {
    let entry = catalog.entries.get(name).map(|entry| entry.schema_name.as_str());
    let before = catalog.resources.get(name).map(|pr| pr.status.resource_schema_name.as_str());
    entry.or(before).filter(|schema| !schema.is_empty()).map(resource_of)
}

/// Notes in the APIExport who keeps what, and returns what the server made of it.
async fn note(setup: &Setup, patch: &Value) -> Result<ApiExport, Error> {
    setup.export.patch_newest(&setup.name, patch).await
}

/// Whether a server has decided that a write is not to be, rather than that it comes too early or too late.
fn is_refusal(error: &Error) -> bool {
    error.status().is_some_and(|status| matches!(status.code, 400 | 403 | 422))
}

async fn identify(setup: &Setup) -> Result<Keeper, Error> {
    let cluster = cluster_id(&setup.local).await?;
    Ok(Keeper { agent: setup.agent_name.clone(), cluster, identity: host(), ..Keeper::default() })
}

/// What tells a cluster apart from all others; empty if that may not be seen.
pub async fn cluster_id(local: &Client) -> Result<String, Error> {
    let namespaces = Resource::cluster_wide("", "v1", "Namespace", "namespaces");
    match local.get(&namespaces, None, "kube-system").await {
        Ok(namespace) => {
            Ok(namespace.and_then(|it| it["metadata"]["uid"].as_str().map(str::to_owned)).unwrap_or_default())
        }
        Err(error) if error.is_forbidden() => Ok(String::new()),
        Err(error) => Err(error),
    }
}

/// The host name, which is that of the pod in a cluster.
fn host() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    host.trim().to_owned()
}

/// A moment for people, to the second.
fn moment(millis: i64) -> String {
    let moment = jiff::Timestamp::from_millisecond(millis).unwrap_or_default();
    moment.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

impl From<super::timing::Timing> for Beat {
    fn from(timing: super::timing::Timing) -> Self {
        let millis = |duration: Duration| i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        Self { renew: millis(timing.heartbeat), old: millis(timing.heartbeat_old) }
    }
}
