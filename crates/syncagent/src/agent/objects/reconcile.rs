//! One object: see, decide, execute.
#![allow(clippy::result_large_err)] // failures are rare, and told at once

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use carrick_client::{Client, Error, Object, Resource};
use carrick_json::TooDeep;
use carrick_kcp::kinds::LOGICAL_CLUSTER;
use carrick_kcp::{LOGICAL_CLUSTER_NAME, PATH_ANNOTATION};
use carrick_multicluster::{Cluster, ClusterName, FleetStore, Key};
use futures::FutureExt;
use serde_json::Value;
use thiserror::Error;
use tokio::time::Instant;
use tracing::Instrument;

use super::execute::{Executor, StepError};
use super::hop::{Hop, Tally};
use super::reach::Reaching;
use super::related::{Read, ReadError, Reader, Unseen};
use super::syncer::{Shared, Warned};
use super::{copies, kinds, others};
use crate::agent::connect::resource;
use crate::agent::events::Type;
use crate::api::FIELD_MANAGER;
use crate::decide::state::State;
use crate::decide::{
    Claim, Copies, DecideError, Next, Place, Record, RelatedView, Seen, Side, Step, claim, decide, explain,
};
use crate::rules::metadata::{SourceKey, annotation, is_deleting};
use crate::rules::{Duty, Rules, Selection};

/// How long to wait until the caches show what was written. Nothing breaks if they do not: it only saves a needless look.
const CATCH_UP: Duration = Duration::from_secs(2);

/// How much a consumer is told of what is wrong: events have their limits.
const LONGEST_DETAIL: usize = 800;

/// Why an object could not be processed.
#[derive(Debug, Error)]
pub(super) enum ReconcileError {
    /// Something that the rules need cannot be read in the workspace.
    #[error("cannot read {what} in logical cluster {cluster}: {source}")]
    Read {
        /// What was to be read.
        what: String,
        /// In which cluster.
        cluster: ClusterName,
        /// What the server said.
        source: Error,
    },
    /// The workspace path cannot be read.
    #[error(
        "cannot read the path of logical cluster {cluster}: {source}; has its binding accepted the claim for logicalclusters?"
    )]
    Path {
        /// Which cluster.
        cluster: ClusterName,
        /// What the server said.
        source: Error,
    },
    /// An object nests so deep that it cannot be carried.
    #[error("{what}: {problem}")]
    TooDeep {
        /// Which one.
        what: String,
        /// How deep.
        problem: TooDeep,
    },
    /// Related objects cannot be read.
    #[error(transparent)]
    Related(#[from] ReadError),
    /// The rules fail on this object.
    #[error(transparent)]
    Decide(#[from] DecideError),
    /// Something cannot be done for some related objects; everything else was done.
    #[error("{}", .0.join("; "))]
    Problems(Vec<String>, #[source] Option<Box<ReadError>>),
    /// Everything was done, but something is to be known; nothing is tried again until something changes.
    #[error("{}", .0.join("; "))]
    Notices(Vec<String>),
    /// The agent itself is broken.
    #[error("the agent panicked over this object; please report this")]
    Panic,
    /// A write failed.
    #[error(transparent)]
    Step(#[from] StepError),
}

impl ReconcileError {
    /// One word for metrics, if no server is to blame.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Read { .. } | Self::Path { .. } | Self::Related(_) | Self::Problems(..) => "Related",
            Self::Notices(_) => "Status",
            Self::Decide(_) => "Rules",
            Self::TooDeep { .. } => "TooDeep",
            Self::Panic => "Panic",
            Self::Step(_) => "Taken",
        }
    }

    /// What the consumer is told. What a consumer cannot do anything about is the provider's own business, and stays with the provider.
    fn for_consumer(&self) -> String {
        let detail = match self {
            Self::Path { .. } => return "Failed to retrieve workspace path, cannot process object.".to_owned(),
            Self::Decide(
                error @ (DecideError::Taken(_) | DecideError::Earlier { .. } | DecideError::Disputed { .. }),
            ) => error.to_string(),
            Self::Problems(problems, _) => problems.join("; "),
            Self::TooDeep { problem, .. } => format!("{problem}."),
            Self::Step(error) => match error.for_consumer() {
                Some(detail) => detail,
                None => return "Failed to process object: a provider-side issue has occurred.".to_owned(),
            },
            _ => return "Failed to process object: a provider-side issue has occurred.".to_owned(),
        };
        let detail: String = detail.chars().take(LONGEST_DETAIL).collect();
        format!("Failed to process object: {detail}")
    }

    /// Whether something else is in the place of the copy.
    fn is_taken(&self) -> bool {
        matches!(self, Self::Step(error) if error.is_taken())
    }

    /// Whether a server knows us and says no.
    pub fn is_forbidden(&self) -> bool {
        match self {
            Self::Read { source, .. } | Self::Path { source, .. } | Self::Related(ReadError::Server { source, .. }) => {
                source.is_forbidden()
            }
            Self::Step(error) => error.is_forbidden(),
            Self::Related(_)
            | Self::Problems(..)
            | Self::Notices(_)
            | Self::Decide(_)
            | Self::TooDeep { .. }
            | Self::Panic => false,
        }
    }

    /// Whether somebody else was faster, which is no failure.
    pub fn is_race(&self) -> bool {
        matches!(self, Self::Step(error) if error.is_race())
    }

    /// Whether a server is at fault, so that it may work by itself later.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Read { source, .. } | Self::Path { source, .. } | Self::Related(ReadError::Server { source, .. }) => {
                source.is_transient()
            }
            Self::Step(error) => error.is_transient(),
            Self::Related(_)
            | Self::Problems(..)
            | Self::Notices(_)
            | Self::Decide(_)
            | Self::TooDeep { .. }
            | Self::Panic => false,
        }
    }
}

/// Brings one object in line, and tells its owner if that fails.
pub(super) async fn reconcile(
    shared: &Shared,
    request: &Key,
    source: Option<Arc<Object>>,
    cluster: &Cluster,
    since: Instant,
) -> Result<Next, ReconcileError> {
    let Some(source) = source else {
        shared.related.forget(&shared.user(request));
        shared.reach.forget(request);
        shared.note_told(request, None);
        shared.note_orphan(request, orphan(shared, &source_key(request)).as_ref());
        shared.context.metrics.hops.forget(request);
        return Ok(Next::OnChange);
    };
    shared.note_orphan(request, None);
    let too_deep = source.too_deep();
    let source = source.value();
    // A panic is a defect, but one object must not take the others down with it.
    let result = AssertUnwindSafe(process(shared, request, cluster, (&source, too_deep), since)).catch_unwind().await;
    let result = result.unwrap_or(Err(ReconcileError::Panic));
    // What only others can mend is tried again and again, but told once.
    let lasting = result.as_ref().err().filter(|error| error.is_taken() || error.is_transient());
    let told = lasting.map(|error| Warned { message: error.for_consumer(), taken: error.is_taken() });
    let is_news = shared.note_told(request, told) || lasting.is_none();
    if let (Err(error), Some(explained)) = (&result, &shared.context.explained) {
        explained.tell(&shared.rules().name, request, Err(error.to_string()));
    } else if let Err(error) = &result
        && is_news
        && !error.is_race()
        && !matches!(error, ReconcileError::Notices(_))
    {
        let recorder = &shared.context.recorder;
        recorder.event(cluster.json_client(), &source, Type::Warning, "ReconcilingError", &error.for_consumer());
    }
    result
}

async fn process(
    shared: &Shared,
    request: &Key,
    cluster: &Cluster,
    (source, too_deep): (&Value, Option<TooDeep>),
    since: Instant,
) -> Result<Next, ReconcileError> {
    let rules = shared.rules();
    let (kcp, local) = (cluster.json_client(), &shared.context.local);
    let (key, deleting) = (source_key(request), is_deleting(source));
    let reach = Reaching { reach: &shared.reach, kcp, order: request };
    // The end of an order needs neither; what cannot be read any more must not hold it up.
    let namespace = unless(deleting, namespace(shared, &rules, request, kcp).await)?;
    let path = unless(deleting, workspace_path(shared, &rules, cluster).await)?;
    let rivals = rivals(shared, &rules, request, cluster).await?;
    let found = own_copies(shared, &rules, &key, source, &rivals)?;
    // Whatever ends needs no more than metadata.
    if !deleting && rules.selects(source, namespace.as_ref()) != Selection::Out {
        let copy = found.iter().find_map(|copy| Some((copy, copy.too_deep()?)));
        let what = match (too_deep, copy) {
            (Some(problem), _) => Some(("the object".to_owned(), problem)),
            (None, Some((copy, problem))) => Some((format!("its copy {}/{}", copy.namespace, copy.name), problem)),
            (None, None) => None,
        };
        if let Some((what, problem)) = what {
            return Err(ReconcileError::TooDeep { what, problem });
        }
    }
    let found: Vec<Value> = found.iter().map(|copy| copy.value()).collect();
    let names: Vec<String> = found.iter().map(full_name).collect();
    let copies = match found.as_slice() {
        [] => Copies::None,
        [copy] => Copies::One(copy),
        _ => Copies::Many(&names),
    };
    let remembered = async || {
        shared.states.read(&rules.remote, &key).await.map_err(|source| ReconcileError::Read {
            what: "the state Secret".into(),
            cluster: request.cluster.clone(),
            source,
        })
    };
    let mut state = shared.states.get(&rules.remote, &key);
    let mut seen = Seen {
        key: &key,
        workspace_path: path.as_deref(),
        source: Some(source),
        namespace: namespace.as_ref(),
        copies,
        state: &State::default(),
        related: None,
        others: &[],
        let_go: shared.was_let_go(request),
    };
    let let_go = Seen { state: &state, ..seen }.is_let_go(&rules);
    if state.partial && (deleting || let_go) {
        state = remembered().await?;
    }
    let others = if let_go {
        let is_needed = |at: &Place| shared.is_needed(&rules, &key, at);
        let read = others::read(kcp, &state, &key, deleting, is_needed, reach).await;
        read.map_err(|source| ReconcileError::Read {
            what: "objects that are held together with it".into(),
            cluster: request.cluster.clone(),
            source,
        })?
    } else {
        Vec::new()
    };
    seen.others = &others;
    let mut plan = decide(&rules, Seen { state: &state, ..seen })?;
    let mut read = Read::default();
    let has_related = !rules.related.is_empty() || state.records().next().is_some();
    if has_related && !plan.needs_memory && (deleting || plan.steps.is_empty()) {
        let (copy, path) = (found.first(), path.as_deref());
        let user = shared.user(request);
        let reader = Reader { kcp, shared, rules: &rules, user, key: &key, state: &state, source, copy, path };
        read = if deleting { reader.read_last().await? } else { reader.read().await? };
        plan = decide(&rules, Seen { state: &state, related: Some(&read.view), ..seen })?;
    }
    if plan.needs_memory {
        state = remembered().await?;
        let related = (!read.is_empty()).then_some(&read.view);
        plan = decide(&rules, Seen { state: &state, related, ..seen })?;
    }
    let related = (!read.is_empty()).then_some(&read.view);
    if let Some(explained) = &shared.context.explained {
        explained.tell(&rules.name, request, Ok(explain(&rules, Seen { state: &state, related, ..seen }, &plan)));
        return Ok(Next::OnChange);
    }
    if !plan.implied.is_empty() {
        shared.states.imply(&rules.remote, &key, std::mem::take(&mut plan.implied));
    }
    plan.next = match (plan.next, read.unseen) {
        (Next::OnChange, Unseen::Appearance) => Next::Soon,
        (Next::OnChange, Unseen::Changes) => Next::Later,
        (next, _) => next,
    };
    if !read.lost.is_empty() {
        tell_of_loss(shared, request, kcp, source, &read.lost);
    }
    let problems: Vec<String> =
        read.problems.iter().map(ToString::to_string).chain(plan.problems.iter().cloned()).collect();
    // Should a server be to blame, they end when it is not any more.
    let cause =
        std::mem::take(&mut read.problems).into_iter().find(|problem| matches!(problem, ReadError::Server { .. }));
    let blame = Blame { problems, cause };
    if plan.steps.is_empty() && plan.strands.is_empty() {
        return outcome(plan.next, None, blame, plan.notices);
    }

    let source_at = Place {
        side: Side::Kcp,
        kind: Arc::new(rules.remote.clone()),
        namespace: rules.remote.namespaced.then(|| key.namespace.clone()),
        name: key.name.clone(),
    };
    let mut executor = Executor {
        kcp: &kcp.writing_as(FIELD_MANAGER),
        local: &local.writing_as(FIELD_MANAGER),
        states: &shared.states,
        namespaces: &shared.namespaces,
        recorder: &shared.context.recorder,
        rules: &rules,
        was_taken: shared.was_taken(request),
        key: &key,
        source,
        rivals: &rivals,
        objects: HashMap::from([(source_at, source.clone())]),
    };
    let released = plan.releases();
    let tally = Tally { metrics: &shared.context.metrics, pace: &shared.context.pace, object: request, since };
    let mut failed = execute(&mut executor, &tally, plan.steps).await.err();
    if failed.is_none() && !plan.strands.is_empty() {
        executor.objects.extend(related_objects(&rules, &read.view));
        for strand in plan.strands {
            let places: Vec<Place> = strand.iter().filter_map(Step::place).cloned().collect();
            let deletes = strand.iter().any(|step| matches!(step, Step::Delete { .. }));
            let result = execute(&mut executor, &tally, strand).await;
            for at in &places {
                match executor.objects.get(at).filter(|_| result.is_ok() && !deletes) {
                    Some(object) => shared.related.wrote(&key.cluster, at, object),
                    None => shared.related.doubt(&key.cluster, at),
                }
            }
            if let Some(at) = result.as_ref().err().and_then(StepError::refused).filter(|_| deleting) {
                shared.related.refused(&shared.user(request), at);
            }
            match result {
                Err(StepError::StatusRefused(notice)) => plan.notices.push(notice),
                result => failed = result.err().or(failed),
            }
        }
    }
    shared.note_let_go(request, released && failed.is_none());
    let catch_up = async {
        for (at, object) in &executor.objects {
            if *at.kind == rules.remote && at.side == Side::Kcp {
                seen_in(&shared.sources, &request.cluster, at, object, true).await;
            } else if *at.kind == rules.local && at.side == Side::Service {
                seen_in(&shared.copies, copies::SERVICE, at, object, !found.is_empty()).await;
            }
        }
    };
    // A cache that lags is no error: the next event decides anew.
    let _ = tokio::time::timeout(CATCH_UP, catch_up).await;
    outcome(plan.next, failed, blame, plan.notices)
}

/// Whatever was found; nothing where a failure does not matter.
fn unless<T>(irrelevant: bool, found: Result<Option<T>, ReconcileError>) -> Result<Option<T>, ReconcileError> {
    match found {
        Err(error) if irrelevant => {
            tracing::debug!(%error, "Going on without it.");
            Ok(None)
        }
        found => found,
    }
}

/// Other sources of the same place, of other PublishedResources whose copies are of the same kind.
async fn rivals(
    shared: &Shared,
    rules: &Rules,
    request: &Key,
    cluster: &Cluster,
) -> Result<Vec<(Arc<Rules>, Value)>, ReconcileError> {
    let mut rivals = Vec::new();
    for (theirs, store) in shared.related.primaries.rivals(rules) {
        let found = if store.is_synced(cluster.endpoint()) {
            store.get(&request.cluster, &request.namespace, &request.name).map(|object| object.value())
        } else {
            let namespace = Some(&*request.namespace);
            let found = cluster.json_client().get(&kinds::resource(&theirs.remote), namespace, &request.name).await;
            found.map_err(|source| ReconcileError::Read {
                what: format!("{} {}", theirs.remote.resource(), request.name),
                cluster: request.cluster.clone(),
                source,
            })?
        };
        rivals.extend(found.map(|found| (theirs, found)));
    }
    Ok(rivals)
}

/// The copies of a source, without those that belong to a source of another kind.
fn own_copies(
    shared: &Shared,
    rules: &Rules,
    key: &SourceKey,
    source: &Value,
    rivals: &[(Arc<Rules>, Value)],
) -> Result<Vec<Arc<Object>>, ReconcileError> {
    let mut own = Vec::new();
    for copy in copies::of(&shared.copies, key, &rules.remote.resource()) {
        if claim(rules, key, source, rivals, &copy.value())? == Claim::Ours {
            own.push(copy);
        }
    }
    Ok(own)
}

/// Tells the consumer, and the log, what stays behind.
fn tell_of_loss(shared: &Shared, request: &Key, kcp: &Client, source: &Value, lost: &[String]) {
    let message = format!(
        "Cannot clean up in logical cluster {}, because its APIBinding does not accept the claims: {}. Remove by hand what is left, or the finalizer {} where it is left.",
        request.cluster,
        lost.join(", "),
        crate::api::FINALIZER
    );
    tracing::warn!(object = %request, "{message}");
    shared.losses.lock().insert(request.to_string(), message.clone());
    shared.context.recorder.event(kcp, source, Type::Warning, "RelatedOutOfReach", &message);
}

/// Executes steps until one fails.
async fn execute(executor: &mut Executor<'_>, tally: &Tally<'_>, steps: Vec<Step>) -> Result<(), StepError> {
    let mut steps = steps.into_iter().peekable();
    while let Some(step) = steps.next() {
        let (verb, side, hop) = (step.verb(), step.side(), Hop::of(&step, executor.rules));
        tracing::debug!(object = %tally.object, step = verb, "Executing a step.");
        let begun = Instant::now();
        // What is remembered holds the content of the objects it is about.
        let confidential = step.place().map_or(side.is_some(), |at| executor.rules.is_confidential(&at.kind));
        let executed = executor.execute(step).instrument(tracing::info_span!("step", verb)).await;
        let executed = executed.map_err(|error| if confidential { error.discreet() } else { error });
        match (side, &executed) {
            (_, Err(error)) if error.is_overload() => tally.pace.refused(),
            (Some(side), _) => tally.pace.answered(side as usize, begun.elapsed()),
            (None, _) => {}
        }
        if let (Err(error), Some(Step::Remember { entry, value, .. })) = (&executed, steps.peek())
            && !error.is_race()
            && !error.is_transient()
        {
            executor.hold(entry, value).await;
        }
        executed?;
        tally.executed(verb, hop);
    }
    Ok(())
}

/// What cannot be done for some related objects.
struct Blame {
    problems: Vec<String>,
    /// What a server said, if one is to blame.
    cause: Option<ReadError>,
}

/// What came out, after everything that could be done was done.
fn outcome(
    next: Next,
    failed: Option<StepError>,
    Blame { problems, cause }: Blame,
    notices: Vec<String>,
) -> Result<Next, ReconcileError> {
    match failed {
        // A race is told only if nothing is worse: it is tried again at once and without a word.
        Some(error) if problems.is_empty() || !error.is_race() => Err(error.into()),
        _ if !problems.is_empty() => Err(ReconcileError::Problems(problems, cause.map(Box::new))),
        None if next == Next::OnChange && !notices.is_empty() => Err(ReconcileError::Notices(notices)),
        _ => Ok(next),
    }
}

/// Related objects: those in kcp get events, and all are known by their UID.
fn related_objects(rules: &Rules, view: &RelatedView) -> Vec<(Place, Value)> {
    let mut objects = Vec::new();
    let mut add = |record: Record, origin: Option<&Value>, copy: Option<&Value>| {
        objects.extend(origin.map(|origin| (record.origin, origin.clone())));
        objects.extend(copy.map(|copy| (record.copy, copy.clone())));
    };
    for seen in &view.seen {
        if let Some(rules) = rules.related.get(seen.entry) {
            add(seen.record(rules), Some(&seen.origin), seen.destination.as_ref());
        }
    }
    for dropped in &view.dropped {
        add(dropped.record.clone(), dropped.origin.as_ref(), dropped.copy.as_ref());
    }
    objects
}

/// The copy of a source that does not exist. Copies do not tell the kind of their source, but the memory does.
fn orphan(shared: &Shared, key: &SourceKey) -> Option<Arc<Object>> {
    let rules = shared.rules();
    let ours = rules.duty == Duty::Sync && !shared.states.get(&rules.remote, key).is_empty();
    copies::of(&shared.copies, key, &rules.remote.resource()).into_iter().next().filter(|_| ours)
}

/// Waits until a cache shows a version of the object that is at least as new.
async fn seen_in(store: &FleetStore<Object>, cluster: &str, at: &Place, object: &Value, existed: bool) {
    let number = |version: &str| version.parse::<u64>().unwrap_or(u64::MAX);
    let written = number(object["metadata"]["resourceVersion"].as_str().unwrap_or_default());
    let is_seen =
        |store: &FleetStore<Object>| match store.get(cluster, at.namespace.as_deref().unwrap_or_default(), &at.name) {
            Some(cached) => number(&cached.resource_version) >= written,
            // It was there before and is gone: the cache is ahead.
            None => existed,
        };
    store.wait_until(is_seen).await;
}

/// The namespace of the object in kcp, if the rules filter by it.
async fn namespace(
    shared: &Shared,
    rules: &Rules,
    request: &Key,
    kcp: &Client,
) -> Result<Option<Value>, ReconcileError> {
    let (true, Some(known)) = (rules.filters_by_namespace(), &shared.consumer_namespaces) else { return Ok(None) };
    if let Some(namespace) = known.get(&request.cluster, "", &request.namespace) {
        return Ok(Some(namespace.value()));
    }
    // The watch of objects may be ahead of that of namespaces.
    let namespaces = Resource::cluster_wide("", "v1", "Namespace", "namespaces");
    kcp.get(&namespaces, None, &request.namespace).await.map_err(|source| ReconcileError::Read {
        what: format!("namespace {}", request.namespace),
        cluster: request.cluster.clone(),
        source,
    })
}

/// The path of the object's workspace, if the rules ask for it. Where its bindings do not tell, it is read once: it never changes.
async fn workspace_path(shared: &Shared, rules: &Rules, cluster: &Cluster) -> Result<Option<String>, ReconcileError> {
    if !rules.workspace_paths {
        return Ok(None);
    }
    if let Some(path) = cluster.path() {
        return Ok(Some(path.to_string()));
    }
    if let Some(path) = shared.paths.lock().get(cluster.name()) {
        return Ok(Some(path.clone()));
    }
    let logical_cluster = cluster.json_client().get(&resource(&LOGICAL_CLUSTER), None, LOGICAL_CLUSTER_NAME).await;
    let logical_cluster =
        logical_cluster.map_err(|source| ReconcileError::Path { cluster: cluster.name().clone(), source })?;
    let path = logical_cluster.as_ref().and_then(|object| annotation(object, PATH_ANNOTATION)).unwrap_or_default();
    shared.paths.lock().insert(cluster.name().clone(), path.to_owned());
    Ok(Some(path.to_owned()))
}

fn source_key(request: &Key) -> SourceKey {
    SourceKey {
        cluster: request.cluster.to_string(),
        namespace: request.namespace.to_string(),
        name: request.name.to_string(),
    }
}

fn full_name(object: &Value) -> String {
    let text = |key: &str| object["metadata"][key].as_str().unwrap_or_default();
    format!("{}/{}", text("namespace"), text("name"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_went_wrong_is_told_and_a_race_only_if_nothing_is_worse() {
        let blame =
            |problems: &[&str]| Blame { problems: problems.iter().map(ToString::to_string).collect(), cause: None };
        let (race, failure) = (|| Some(StepError::Stale("x".into())), || Some(StepError::Refused("x".into())));
        let out = |next, failed, problems: &[&str], notices: &[&str]| {
            outcome(next, failed, blame(problems), notices.iter().map(ToString::to_string).collect())
        };
        assert!(matches!(out(Next::OnChange, None, &["p"], &[]), Err(ReconcileError::Problems(..))));
        assert!(matches!(out(Next::OnChange, race(), &["p"], &[]), Err(ReconcileError::Problems(..))));
        assert!(matches!(out(Next::OnChange, failure(), &["p"], &[]), Err(ReconcileError::Step(_))));
        assert!(matches!(out(Next::OnChange, race(), &[], &[]), Err(ReconcileError::Step(_))));
        assert!(matches!(out(Next::OnChange, None, &[], &["n"]), Err(ReconcileError::Notices(_))));
        assert!(matches!(out(Next::Soon, None, &[], &["n"]), Ok(Next::Soon)), "it is looked at again anyway");
    }
}
