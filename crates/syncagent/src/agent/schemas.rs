//! The schemas controller: one APIResourceSchema per PublishedResource, and the PublishedResource's status.
//!
//! Every PublishedResource has a task of its own, so that none waits for another. A task looks again when the catalog changes, and
//! after a growing pause when something failed.

mod gate;
mod status;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;
use std::time::Duration;

use carrick_client::{Client, Error, Server};
use carrick_kcp::apis::v1alpha1::ApiResourceSchema;
use carrick_kcp::kinds::API_RESOURCE_SCHEMA;
use serde_json::{Value, json};
use thiserror::Error;
use tokio::sync::Semaphore;
use tokio::sync::watch::Receiver;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::catalog::{self, Catalog, KeptStatus, Problem, published_resources};
use super::events::{Recorder, Type};
use super::export::Exported;
use super::health::Health;
use super::metrics::{Metrics, Outcome, reason};
use super::objects::{ObjectsReport, Troubles};
use super::platform_mesh::{AcceptReport, Reports};
use super::retry::{Retry, wait_until};
use super::rights::Granted;
use crate::api::{
    AGENT_NAME, APPROVED_MAPPING, APPROVED_SCHEMA, GROUP, PublishedResource, REJECTED_SCHEMA, SOURCE_KIND, ServedFor,
    VERSION, WITHDRAW_AT,
};
use crate::rules::keeper::Beat;
use crate::rules::projection::project;
use crate::rules::schema::{ResourceSchema, SchemaError};
use crate::rules::serving::{self, Serving};
use crate::rules::withdrawal::Withdrawal;
use gate::GateError;
use status::{MappingChoice, Syncing, Withdrawing};

pub(crate) use gate::{Chosen, Gate};

/// Name of this controller in events and metrics.
pub(crate) const CONTROLLER: &str = "syncagent-apiresourceschema";
const WORKERS: usize = 4;
/// When it is decided again about what rests on orders that are not known yet.
const UNDECIDED: Duration = Duration::from_secs(5);
/// For how long it is told that a server has gone back in time.
const TOLD: Duration = Duration::from_hours(1);

/// Why a schema is not published or a status not written.
#[derive(Debug, Error)]
enum SchemasError {
    /// The PublishedResource itself is at fault.
    #[error("{0}")]
    Invalid(String),
    /// The CRD cannot become an APIResourceSchema.
    #[error(transparent)]
    Schema(#[from] SchemaError),
    /// kcp refuses or cannot be reached.
    #[error("cannot {action} APIResourceSchema {name}: {source}")]
    Kcp {
        /// What was tried.
        action: &'static str,
        /// Name of the schema.
        name: String,
        /// What went wrong.
        source: Error,
    },
    /// The CRD cannot be read.
    #[error("cannot read CustomResourceDefinition {name}: {source}")]
    Local {
        /// Name of the CRD.
        name: String,
        /// What went wrong.
        source: Error,
    },
    /// The PublishedResource or its CRD changed in between; the watch is about to bring the newer one.
    #[error("PublishedResource {0} has changed")]
    Stale(String),
    /// The status of the PublishedResource cannot be written.
    #[error("cannot write the status of PublishedResource {name}: {source}")]
    Status {
        /// Name of the PublishedResource.
        name: String,
        /// What went wrong.
        source: Error,
    },
}

impl SchemasError {
    /// Whether this is about servers and rights; the agent is not ready then. What is wrong with one PublishedResource is told
    /// on that PublishedResource alone.
    fn is_outage(&self) -> bool {
        match self {
            Self::Kcp { source, .. } | Self::Local { source, .. } | Self::Status { source, .. } => {
                source.is_transient() || source.missing_right().is_some()
            }
            Self::Invalid(_) | Self::Schema(_) | Self::Stale(_) => false,
        }
    }
}

/// What the controller works with.
#[derive(Clone)]
pub(crate) struct Schemas {
    /// The service cluster.
    pub(crate) local: Client,
    /// The workspace of the APIExport.
    pub(crate) export: Client,
    /// Name of the agent.
    pub(crate) agent_name: String,
    /// Where to tell about problems.
    pub(crate) recorder: Recorder,
    /// Where to count.
    pub(crate) metrics: Arc<Metrics>,
    /// Where to tell what does not work.
    pub(crate) health: Arc<Health>,
    /// What the export lists; nobody tells if its controller does not run.
    pub(crate) exported: Receiver<Exported>,
    /// Objects that fail; nobody tells if their controller does not run.
    pub(crate) troubles: Receiver<Troubles>,
    /// What the service cluster grants and serves.
    pub(crate) granted: Receiver<Granted>,
    /// How AcceptAPIs are doing; nobody tells if their controller does not run.
    pub(crate) accepted: Receiver<Reports>,
    /// Both servers, which may have gone back in time.
    pub(crate) servers: [(&'static str, Server); 2],
    /// Whether this agent synchronises objects at all.
    pub(crate) syncs: bool,
    /// Holds schemas back.
    pub(crate) gate: Gate,
    /// How often to say for which export a PublishedResource is served, while it is for several.
    pub(crate) beat: Beat,
}

impl Schemas {
    /// Runs until told to stop.
    pub(crate) async fn run(self, mut catalog: Receiver<Arc<Catalog>>, stop: CancellationToken) {
        let workers = Arc::new(Semaphore::new(WORKERS));
        let mut running = BTreeMap::new();
        let mut tasks = JoinSet::new();
        loop {
            let names: Vec<String> = {
                let catalog = catalog.borrow_and_update();
                catalog.resources.keys().chain(catalog.refused.keys()).cloned().collect()
            };
            for name in names {
                if let Entry::Vacant(place) = running.entry(name) {
                    let (this, catalog, workers) = (self.clone(), catalog.clone(), Arc::clone(&workers));
                    let (name, stop) = (place.key().clone(), stop.clone());
                    let task = tasks.spawn(async move { this.take_care_of(&name, catalog, &workers, &stop).await });
                    place.insert(task.id());
                }
            }
            tokio::select! {
                () = stop.cancelled() => break,
                changed = catalog.changed() => if changed.is_err() { break },
                Some(ended) = tasks.join_next_with_id() => {
                    let id = match ended {
                        Ok((id, ())) => id,
                        // A defect in one reconcile must not end the others, nor this one for good.
                        Err(error) => {
                            tracing::error!(logger = CONTROLLER, %error, "A task has failed.");
                            error.id()
                        }
                    };
                    running.retain(|_, task| *task != id);
                }
            }
        }
        // They end by themselves, when what they are writing is written.
        while tasks.join_next().await.is_some() {}
    }

    /// Keeps one PublishedResource's schema and status right until it is gone or the agent stops.
    async fn take_care_of(
        &self,
        name: &str,
        mut catalog: Receiver<Arc<Catalog>>,
        workers: &Semaphore,
        stop: &CancellationToken,
    ) {
        let mut exported = self.exported.clone();
        let mut troubles = self.troubles.clone();
        let mut granted = self.granted.clone();
        let mut accepted = self.accepted.clone();
        let part = self.health.part(format!("schema and status of PublishedResource {name}"));
        let about = format!("PublishedResource {name}");
        let mut retry = Retry::for_objects();
        let mut done: Option<Case> = None;
        let mut told = None;
        let mut again: Option<Instant> = None;
        loop {
            let now = Arc::clone(&catalog.borrow_and_update());
            let case = {
                let (exported, troubles) = (exported.borrow_and_update(), troubles.borrow_and_update());
                let accept = accepted.borrow_and_update().get(name).cloned();
                Case::of(&now, (&exported, &troubles, &granted.borrow_and_update(), accept), name)
            };
            let Some(case) = case else {
                self.gate.forget(name);
                self.metrics.recent.healed(&about);
                return;
            };
            retry.set(None);
            let mut outage = None;
            let settled = case.pr.metadata.deletion_timestamp.is_some() || case.is_pending();
            if settled {
                self.metrics.recent.healed(&about);
            } else if done.as_ref() != Some(&case) || again.is_some_and(|at| at <= Instant::now()) {
                let Ok(_permit) = workers.acquire().await else { return };
                if stop.is_cancelled() {
                    return;
                }
                again = None;
                match self.reconcile(&case, &mut again).await {
                    Ok(()) => {
                        self.metrics.reconciled(CONTROLLER, Outcome::Success);
                        retry.succeeded();
                        self.metrics.recent.healed(&about);
                        told = None;
                        done = Some(case);
                    }
                    Err(SchemasError::Stale(_)) => {}
                    Err(error) => {
                        self.metrics.reconciled(CONTROLLER, Outcome::Error);
                        let text = error.to_string();
                        let word = reason(&error).unwrap_or_else(|| "Rules".to_owned());
                        self.metrics.failed(CONTROLLER, &word, &about, &text);
                        outage = error.is_outage().then(|| text.clone());
                        if told.as_ref() != Some(&text) {
                            tracing::error!(
                                logger = CONTROLLER,
                                publishedresource = name,
                                error = text,
                                "Reconciler error"
                            );
                            let involved = involved(&case.pr);
                            self.recorder.event(&self.local, &involved, Type::Warning, "ReconcilingError", &text);
                            told = Some(text);
                        }
                        // What is wrong with the PublishedResource itself changes only when it, or its CRD, changes.
                        if matches!(error, SchemasError::Invalid(_) | SchemasError::Schema(_)) {
                            done = Some(case);
                        } else {
                            retry.failed();
                        }
                    }
                }
            }
            match outage {
                Some(problem) => part.fails(&problem),
                None => part.works(),
            }
            tokio::select! {
                () = stop.cancelled() => return,
                changed = catalog.changed() => if changed.is_err() { return },
                () = changes(&mut exported) => {}
                () = changes(&mut troubles) => {}
                () = changes(&mut granted) => {}
                () = changes(&mut accepted) => {}
                () = retry.due() => {}
                () = wait_until(again.filter(|_| !settled)) => {}
            }
        }
    }

    /// Sets when to reconcile again although nothing has changed, whether it fails or not.
    async fn reconcile(&self, case: &Case, again: &mut Option<Instant>) -> Result<(), SchemasError> {
        // All the rest is told by the agent that serves it.
        if case.refused {
            return self.write_status(case, &status::Report::of_refused(case.rivalry.as_deref())).await;
        }
        let withdrawal = case.withdrawing();
        let is_leaving = case.is_leaving();
        let offered = case.entry.as_ref().filter(|entry| entry.is_publishable(&case.pr) && !is_leaving);
        let published = match offered {
            Some(entry) => match self.publish(entry).await {
                Ok(()) => self.choose(case, entry).await.map(Some),
                Err(error) => Err(error),
            },
            None => Ok(None),
        };
        // An outage of kcp says nothing about the schema; the log and the probes tell of it.
        if let Err(SchemasError::Kcp { source, .. } | SchemasError::Local { source, .. }) = &published
            && source.is_transient()
        {
            return published.map(drop);
        }
        let mapping = self.mapping(case).await;
        let serving = self.serving(case);
        let next = serving.as_ref().and_then(|serving| serving.next);
        let later = next.map(|next| Instant::now() + Duration::from_millis(u64::try_from(next).unwrap_or_default()));
        *again = later.into_iter().chain(mapping.is_open.then(|| Instant::now() + UNDECIDED)).min();
        let rewound = rewound(&self.servers);
        let report = status::Report {
            rewound: rewound.as_deref(),
            schema_name: match published.as_ref().ok().and_then(Option::as_ref) {
                Some(choice) => Some(choice.name.as_str()),
                // What was published stays so.
                None => {
                    Some(case.pr.status.resource_schema_name.as_str()).filter(|name| is_leaving && !name.is_empty())
                }
            },
            held: published.as_ref().ok().and_then(Option::as_ref).and_then(|choice| choice.held.as_deref()),
            mapping,
            ignored: case.entry.as_ref().and_then(|entry| entry.ignored.as_deref()),
            failure: published.as_ref().err().map(ToString::to_string),
            problem: case.problem.as_ref(),
            exported: case.exported.clone(),
            syncing: self.syncing(case),
            objects: case.objects.as_ref(),
            rights: case.rights.clone(),
            doubts: case.doubts.as_deref(),
            accept: case.accept.as_ref(),
            rivalry: case.rivalry.as_deref(),
            refused: false,
            serving,
            withdrawal,
        };
        // The status is written even when publishing failed: that is where people look.
        let written = self.write_status(case, &report).await;
        published?;
        written?;
        match &case.problem {
            Some(problem) => Err(SchemasError::Invalid(problem.message.clone())),
            None => Ok(()),
        }
    }

    /// For which exports it is served; nothing while the own one is not known.
    fn serving(&self, case: &Case) -> Option<Serving> {
        let workspace = carrick_kcp::url::workspace(self.export.url()).ok()?;
        let me = ServedFor {
            export: format!("{workspace}|{}", self.gate.export_name),
            uid: case.export.clone(),
            agent: self.agent_name.clone(),
            renewed: String::new(),
        };
        let now = jiff::Timestamp::now().as_millisecond();
        (!me.uid.is_empty()).then(|| serving::decide(&case.pr.status.served_for, &me, (now, self.beat)))
    }

    /// The schema that represents the PublishedResource: the one that was just published, unless that is held back.
    async fn choose(&self, case: &Case, entry: &catalog::CatalogEntry) -> Result<gate::Choice, SchemasError> {
        let text = async || self.schema_of(entry).await;
        let choice = self.gate.choose(&case.pr, &entry.schema_name, text).await.map_err(|error| match error {
            GateError::Kcp(name, source) => SchemasError::Kcp { action: "get", name, source },
            GateError::Unclear(why) => SchemasError::Invalid(why),
            GateError::Text(error) => error,
        })?;
        if let Some(held) = choice.held.as_ref().filter(|_| choice.fresh) {
            tracing::warn!(
                logger = CONTROLLER,
                publishedresource = case.pr.metadata.name,
                held,
                "A schema is held back."
            );
            self.recorder.event(&self.local, &involved(&case.pr), Type::Warning, "SchemaHeld", held);
        }
        Ok(choice)
    }

    /// Which steps of `spec.implements` are to be at work.
    async fn mapping(&self, case: &Case) -> MappingChoice {
        // Steps that are not valid are never at work.
        let Some(entry) = case.entry.as_ref().filter(|entry| case.problem.is_none() && entry.rules.is_ok()) else {
            return MappingChoice::default();
        };
        let choice = self.gate.choose_mapping(&case.pr, &entry.crd).await;
        if let Some(held) = choice.held.as_ref().filter(|_| choice.fresh) {
            let name = &case.pr.metadata.name;
            tracing::warn!(logger = CONTROLLER, publishedresource = name, held, "A mapping is held back.");
            self.recorder.event(&self.local, &involved(&case.pr), Type::Warning, "MappingHeld", held);
        }
        choice
    }

    fn syncing(&self, case: &Case) -> Syncing {
        let entry = case.entry.as_ref().filter(|entry| entry.rules.is_ok());
        match entry {
            _ if !self.syncs => Syncing::SwitchedOff,
            _ if !case.pr.is_synchronized() => Syncing::Disabled,
            None => Syncing::NoRules,
            Some(entry) if entry.pr.metadata.generation == case.pr.metadata.generation => Syncing::Current,
            Some(entry) => Syncing::Earlier(entry.pr.metadata.generation),
        }
    }

    /// Makes sure that the schema exists and names its owner. Its spec never changes: another spec has another name.
    async fn publish(&self, entry: &catalog::CatalogEntry) -> Result<(), SchemasError> {
        let name = &entry.schema_name;
        let failed = |action, source| SchemasError::Kcp { action, name: name.clone(), source };
        // Only who made it is of interest; the schema itself may take megabytes.
        let existing = self.export.metadata_only().get_kcp(name).await.map_err(|e| failed("get", e))?;
        let Some(ApiResourceSchema { metadata: existing, .. }) = existing else {
            let text = self.schema_of(entry).await?;
            tracing::info!(logger = CONTROLLER, name, "Creating APIResourceSchema…");
            self.export.create_text(&API_RESOURCE_SCHEMA.into(), None, text).await.map_err(|e| failed("create", e))?;
            return Ok(());
        };
        let owner = Some(self.agent_name.as_str());
        if existing.label(AGENT_NAME) != owner || existing.annotation(AGENT_NAME) != owner {
            tracing::info!(logger = CONTROLLER, name, "Fixing incorrect agent metadata…");
            let existing: Option<ApiResourceSchema> = self.export.get_kcp(name).await.map_err(|e| failed("get", e))?;
            let Some(mut existing) = existing else { return Err(SchemasError::Stale(entry.pr.metadata.name.clone())) };
            existing.metadata.set_label(AGENT_NAME, &self.agent_name);
            existing.metadata.annotate(AGENT_NAME, &self.agent_name);
            match self.export.replace_kcp(&existing).await {
                // The documented role of agents does not allow it, and the schema serves its purpose without.
                Err(error) if error.is_forbidden() => {
                    tracing::warn!(logger = CONTROLLER, name, %error, "Cannot take over APIResourceSchema.");
                }
                updated => drop(updated.map_err(|e| failed("update", e))?),
            }
        }
        Ok(())
    }

    /// The JSON of the schema. Its CRD is read anew, and nothing but the text is left of it.
    async fn schema_of(&self, entry: &catalog::CatalogEntry) -> Result<Vec<u8>, SchemasError> {
        let (pr, stale) = (&entry.pr, || SchemasError::Stale(entry.pr.metadata.name.clone()));
        let crd = entry.definition.read(&self.local).await;
        let crd = crd.map_err(|source| SchemasError::Local { name: entry.crd.name.clone(), source })?;
        // Whatever has changed since the catalog was made, a newer one is on its way.
        let Some(Ok(crd)) = crd else { return Err(stale()) };
        let projected = project(pr, &crd).map_err(|_| stale())?;
        drop(crd);
        let mut object = ResourceSchema::of(&projected, &self.agent_name)?;
        if object.metadata.name != entry.schema_name {
            return Err(stale());
        }
        // Whoever finds the schema without its PublishedResource can still find the copies of its objects.
        let source = &entry.crd.spec;
        object.metadata.annotate(SOURCE_KIND, format!("{}.{}", source.names.kind, source.group));
        Ok(serde_json::to_vec(&object).map_err(SchemaError::Encode)?)
    }

    async fn write_status(&self, case: &Case, report: &status::Report<'_>) -> Result<(), SchemasError> {
        let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let Some(patch) = status::patch(&case.pr, report, case.kept, &now) else { return Ok(()) };
        let name = &case.pr.metadata.name;
        match self.local.merge_patch_status(&published_resources(), None, name, &patch).await {
            Ok(_) => Ok(()),
            // Deleted in between.
            Err(error) if error.is_not_found() => Ok(()),
            Err(error) if error.is_conflict() => Err(SchemasError::Stale(name.clone())),
            Err(source) => Err(SchemasError::Status { name: name.clone(), source }),
        }
    }
}

/// One PublishedResource with what the catalog says about it. Equal cases need no second look.
struct Case {
    pr: Arc<PublishedResource>,
    entry: Option<catalog::CatalogEntry>,
    problem: Option<Problem>,
    exported: Option<Result<(), String>>,
    /// Whether the export lists the schema that represents it.
    listed: bool,
    export: String,
    objects: Option<ObjectsReport>,
    rights: Option<Result<(), String>>,
    doubts: Option<Vec<String>>,
    accept: Option<AcceptReport>,
    /// What is said about another agent that would serve it too, and whether that one does.
    rivalry: Option<String>,
    refused: bool,
    kept: KeptStatus,
}

impl Case {
    fn of(
        catalog: &Catalog,
        (exported, troubles, granted, accept): (&Exported, &Troubles, &Granted, Option<AcceptReport>),
        name: &str,
    ) -> Option<Self> {
        let entry = catalog.entries.get(name).cloned();
        let refused = catalog.refused.get(name);
        let pr = Arc::clone(catalog.resources.get(name).or(refused.map(|refused| &refused.pr))?);
        let rights = granted.to(name);
        let told = [entry.as_ref().map(|entry| &entry.doubts), granted.unserved.get(name), exported.doubts.get(name)];
        let doubts = told.into_iter().flatten().flatten().cloned().collect();
        // Whether related resources can be had, both servers tell; until then nothing is said, rather than something and then its contrary.
        let names_any = !pr.spec.related.is_empty() || !pr.spec.reads.is_empty();
        let known = !names_any || !pr.is_synchronized() || (rights.is_some() && exported.is_known());
        Some(Self {
            exported: entry.as_ref().and_then(|entry| {
                // Behind a gate, the status says which schema is to be exported.
                let named = pr.status.resource_schema_name.as_str();
                let gated = pr.is_gated() && !named.is_empty();
                exported.serves(name, if gated { named } else { &entry.schema_name })
            }),
            // As long as nobody knows, it counts as listed.
            listed: !exported.is_known() || exported.lists(&pr.status.resource_schema_name),
            pr,
            export: exported.uid.clone(),
            entry,
            problem: catalog.problems.get(name).cloned(),
            objects: troubles.get(name).cloned(),
            rights,
            doubts: known.then_some(doubts),
            accept,
            rivalry: refused.map(|refused| refused.why.clone()).or_else(|| catalog.awaited.get(name).cloned()),
            refused: refused.is_some(),
            kept: catalog.kept,
        })
    }

    /// How far its withdrawal has come.
    fn withdrawing(&self) -> Option<Withdrawing> {
        Some(match Withdrawal::of(&self.pr) {
            Withdrawal::None => return None,
            Withdrawal::Unclear(date) => Withdrawing::Unclear(date.to_owned()),
            Withdrawal::Announced(at) => Withdrawing::Announced(at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()),
            Withdrawal::Done if self.listed => Withdrawing::Releasing,
            Withdrawal::Done => Withdrawing::Gone,
        })
    }

    /// Whether it is withdrawn, or its date has come: nobody needs another schema then, not even the one that warns of the withdrawal.
    fn is_leaving(&self) -> bool {
        match Withdrawal::of(&self.pr) {
            Withdrawal::Done => true,
            Withdrawal::Announced(at) => {
                at <= jiff::Timestamp::now() && !self.pr.status.resource_schema_name.is_empty()
            }
            Withdrawal::None | Withdrawal::Unclear(_) => false,
        }
    }

    fn is_pending(&self) -> bool {
        self.problem.as_ref().is_some_and(Problem::is_pending)
    }
}

/// What is said about servers that have gone back in time not long ago.
fn rewound(servers: &[(&'static str, Server)]) -> Option<String> {
    let told = servers.iter().flat_map(|(name, server)| {
        server.rewinds().into_iter().filter(|(_, rewind)| rewind.at.elapsed().is_ok_and(|time| time < TOLD)).map(
            move |(host, rewind)| {
                let at = jiff::Timestamp::try_from(rewind.at).unwrap_or_default().strftime("%Y-%m-%dT%H:%M:%SZ");
                format!("{name} ({host}) at {at}, from version {} to {}", rewind.known, rewind.found)
            },
        )
    });
    let told: Vec<String> = told.collect();
    let what = "it was restored from a backup or replaced; compare orders and copies: carrick restore status";
    (!told.is_empty()).then(|| format!("Gone back in time: {}; {what}.", told.join("; ")))
}

impl PartialEq for Case {
    fn eq(&self, other: &Self) -> bool {
        let schema = |case: &Self| case.entry.as_ref().map(|entry| entry.schema_name.clone());
        self.pr.metadata.uid == other.pr.metadata.uid
            && self.pr.metadata.generation == other.pr.metadata.generation
            && self.pr.metadata.deletion_timestamp == other.pr.metadata.deletion_timestamp
            && self.pr.status == other.pr.status
            && approvals(&self.pr) == approvals(&other.pr)
            && schema(self) == schema(other)
            && self.problem == other.problem
            && self.exported == other.exported
            && self.listed == other.listed
            && self.export == other.export
            && self.objects == other.objects
            && self.rights == other.rights
            && self.doubts == other.doubts
            && self.accept == other.accept
            && self.rivalry == other.rivalry
            && self.refused == other.refused
            && self.kept == other.kept
    }
}

/// What somebody has decided about schemas, and about their end.
fn approvals(pr: &PublishedResource) -> [Option<&String>; 4] {
    [APPROVED_SCHEMA, REJECTED_SCHEMA, APPROVED_MAPPING, WITHDRAW_AT]
        .map(|annotation| pr.metadata.annotations.get(annotation))
}

/// Waits for a change; for ever if nobody tells any more.
async fn changes<T>(receiver: &mut Receiver<T>) {
    if receiver.changed().await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// A PublishedResource as events refer to it.
fn involved(pr: &PublishedResource) -> Value {
    json!({
        "apiVersion": format!("{GROUP}/{VERSION}"),
        "kind": "PublishedResource",
        "metadata": {
            "name": pr.metadata.name,
            "uid": pr.metadata.uid,
            "resourceVersion": pr.metadata.resource_version,
        },
    })
}
