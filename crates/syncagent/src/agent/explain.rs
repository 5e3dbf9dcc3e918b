//! What the agent would do right now, without doing it.
//!
//! The catalog, the fleets and the decisions are those of a running agent; only the steps are recorded instead of sent, and the clients
//! refuse to write.

mod error;
mod report;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use carrick_client::{Client, Server};
use carrick_kcp::apis::v1alpha2::{ApiExport, PermissionClaim};
use carrick_kcp::kinds::API_RESOURCE_SCHEMA;
use serde_json::Value;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::catalog::{self, Catalog};
use super::config::AgentConfig;
use super::connect::{self, KcpLocations};
use super::events::Recorder;
use super::export::{owner, published};
use super::health::Health;
use super::metrics::Metrics;
use super::objects::Released;
use super::objects::explain::{Plans, plan_all};
use super::schemas::Chosen;
use super::timing::Timing;
use super::{keeper, objects, rights};
use crate::api::{AGENT_NAME, FORMER_AGENTS, KEEPER, PublishedResource};
use crate::rules::AgentDefaults;
use crate::rules::export::{ExportChange, apply};
use crate::rules::keeper::{Keeper, Keeping, decide, read_former};

pub use error::ExplainError;
pub use report::{Explained, Published, Report};

/// What to explain.
#[derive(Debug, Clone)]
pub struct Question {
    /// Only this PublishedResource.
    pub published_resource: Option<String>,
    /// Only objects in this workspace, by path or by logical cluster.
    pub workspace: Option<String>,
    /// Only this object: `namespace/name`, or `name`.
    pub object: Option<String>,
    /// Ask as the agent that keeps the export for this service cluster, if there is one, whatever the configuration calls it.
    pub as_keeper: bool,
    /// How long to wait for servers.
    pub patience: Duration,
}

impl Default for Question {
    fn default() -> Self {
        let patience = Duration::from_secs(30);
        Self { published_resource: None, workspace: None, object: None, as_keeper: false, patience }
    }
}

/// Decides once for everything and returns what the agent would do.
pub async fn explain(mut config: AgentConfig, question: &Question) -> Result<Report, ExplainError> {
    let local = config.local.read_only();
    let kcp = config.kcp.read_only();
    let health = Arc::new(Health::default());
    let stop = CancellationToken::new();
    let _end = stop.clone().drop_guard();
    let part = health.part("connection to kcp");
    let Some(places) = connect::connect(&kcp, &config.slice, true, &part, &stop).await? else {
        return Err(ExplainError::Catalog { patience: question.patience, problem: "it was stopped".to_owned() });
    };
    let export = read_export(&places).await?;
    let cluster = keeper::cluster_id(&local.client()).await.unwrap_or_default();
    if question.as_keeper {
        config.agent_name = agent_of(&export, &cluster).unwrap_or(config.agent_name);
    }
    let setup = catalog::Setup {
        local: local.client(),
        selector: config.selector.clone(),
        defaults: config.defaults(),
        timing: config.timing,
    };
    let mut catalog = read_catalog(setup, &health, question.patience).await?;
    if let Some(name) = &question.published_resource {
        check_published(name, &catalog)?;
    }
    let keeping = keeping(&config, cluster, &export, &catalog);
    catalog.others = keeping.others;
    let former = read_former(export.metadata.annotation(FORMER_AGENTS));
    let mut served = Catalog { others: catalog.others.clone(), former, ..copied(&catalog) };
    let blocked: BTreeMap<String, String> = keeper::blocked(&catalog, &keeping.blocked, &config.agent_name).collect();
    for name in blocked.keys() {
        served.entries.remove(name);
        served.resources.remove(name);
    }
    let export_changes = export_changes(&export, &config.agent_name, &served);
    let doubts = doubts(&local.client(), &export, &config.agent_name, &served).await;
    if let Some(name) = &question.published_resource {
        catalog.entries.retain(|entry, _| entry == name);
        catalog.resources.retain(|entry, _| entry == name);
        catalog.problems.retain(|entry, _| entry == name);
        served.entries.retain(|entry, _| entry == name);
        served.resources.retain(|entry, _| entry == name);
    }
    let context = context(&config, local.client(), &places, &health);
    let plans = plan_all(context, &served, question.patience).await;
    if let Some(workspace) = &question.workspace
        && plans.problem.is_none()
    {
        check_workspace(workspace, &plans)?;
    }
    let mut published_resources = Vec::new();
    for name in catalog.resources.keys().chain(catalog.problems.keys()) {
        if published_resources.iter().any(|it: &Published| it.name == *name) {
            continue;
        }
        let mut described = describe(name, &catalog, &places, &plans, question).await?;
        described.doubts.extend(doubts.get(name).into_iter().flatten().cloned());
        described.idle = blocked.get(name).cloned().or(described.idle);
        if described.idle.is_none() && !served.entries.contains_key(name) {
            // A running agent may go on by rules that nobody else can read any more.
            if described.reported.iter().any(|told| told.starts_with(SYNCING)) {
                described.unexplained =
                    Some("only the running agent knows their rules until that is put right".to_owned());
            } else {
                described.idle = Some("there are no rules for them until that is put right".to_owned());
            }
        }
        published_resources.push(described);
    }
    if let (Some(object), true) = (&question.object, published_resources.iter().all(|it| it.objects.is_empty())) {
        let idle = published_resources.iter().filter_map(|it| {
            let why = it.problem.as_ref().or(it.idle.as_ref()).or(it.unexplained.as_ref());
            Some(format!("PublishedResource {}: {}", it.name, why?))
        });
        let idle = idle.collect();
        return Err(ExplainError::NoObject { object: object.clone(), workspace: question.workspace.clone(), idle });
    }
    let agent = config.agent_name;
    Ok(Report { agent, export: places.export_name, export_changes, published_resources, incomplete: plans.problem })
}

/// What objects are looked at with: everything is read, and nothing is reported to anybody.
pub(super) fn context(
    config: &AgentConfig,
    local: Client,
    places: &KcpLocations,
    health: &Arc<Health>,
) -> objects::Context {
    let pace = objects::pace(config.budget);
    // Without the other end, no event is ever written.
    let (recorder, _) = Recorder::start("syncagent", &pace);
    objects::Context {
        local,
        slice_workspace: places.slice.client.clone(),
        slice: places.slice_name.clone(),
        export_workspace: places.export.client.clone(),
        export: places.export_name.clone(),
        agent_name: config.agent_name.clone(),
        namespace: config.namespace.clone(),
        timing: config.timing,
        budget: config.budget,
        staging_root: config.staging_root.clone(),
        recorder,
        pace,
        metrics: Arc::new(Metrics::default()),
        health: Arc::clone(health),
        orders: Arc::default(),
        consumers: None,
        troubles: watch::Sender::default(),
        refused: mpsc::unbounded_channel().0,
        released: watch::Sender::default(),
        former: watch::Sender::default(),
        granted: watch::Sender::default().subscribe(),
    }
}

/// Whether there is a PublishedResource of that name.
pub(super) fn check_published(name: &str, catalog: &Catalog) -> Result<(), ExplainError> {
    if catalog.resources.contains_key(name) || catalog.problems.contains_key(name) {
        return Ok(());
    }
    let known = catalog.resources.keys().chain(catalog.problems.keys()).cloned().collect::<BTreeSet<_>>();
    Err(ExplainError::Unknown { name: name.to_owned(), known: known.into_iter().collect() })
}

/// What an agent of that name would find to publish on a service cluster.
pub async fn catalog(
    local: &Server,
    selector: &str,
    agent_name: &str,
    patience: Duration,
) -> Result<Catalog, ExplainError> {
    let setup = catalog::Setup {
        local: local.read_only().client(),
        selector: selector.to_owned(),
        defaults: AgentDefaults { agent_name: agent_name.to_owned(), ..AgentDefaults::default() },
        timing: Timing::default(),
    };
    read_catalog(setup, &Arc::new(Health::default()), patience).await
}

/// The catalog, as soon as everything in it is known.
pub(super) async fn read_catalog(
    setup: catalog::Setup,
    health: &Arc<Health>,
    patience: Duration,
) -> Result<Catalog, ExplainError> {
    let stop = CancellationToken::new();
    let _end = stop.clone().drop_guard();
    let (sender, mut receiver) = watch::channel(Arc::new(Catalog::default()));
    let metrics = Arc::new(Metrics::default());
    let running = tokio::spawn(catalog::run(setup, Arc::clone(health), metrics, sender, stop.clone()));
    let complete = async {
        while receiver.changed().await.is_ok() {
            let catalog = receiver.borrow_and_update().clone();
            if !catalog.problems.values().any(catalog::Problem::is_pending) {
                return Some(catalog);
            }
        }
        None
    };
    let complete = tokio::time::timeout(patience, complete).await;
    running.abort();
    match complete {
        Ok(Some(catalog)) => Ok(copied(&catalog)),
        _ => Err(ExplainError::Catalog { patience, problem: health.problems().join("; ") }),
    }
}

/// What was read.
fn copied(catalog: &Catalog) -> Catalog {
    Catalog {
        entries: catalog.entries.clone(),
        resources: catalog.resources.clone(),
        problems: catalog.problems.clone(),
        kept: catalog.kept,
        ..Catalog::default()
    }
}

pub(super) async fn read_export(places: &KcpLocations) -> Result<ApiExport, ExplainError> {
    let export = places.export.client.get_newest(&places.export_name).await;
    let what = || format!("APIExport {}", places.export_name);
    let export = export.map_err(|source| ExplainError::Read { what: what(), source: Box::new(source) })?;
    Ok(export.unwrap_or_default())
}

/// The agent that keeps an export for a service cluster, as far as the export tells.
pub fn agent_of(export: &ApiExport, cluster: &str) -> Option<String> {
    let recorded = crate::rules::keeper::read(export.metadata.annotation(KEEPER));
    crate::rules::keeper::agent_of(&recorded, export.metadata.annotation(AGENT_NAME), cluster)
}

/// Who keeps what of the export, as an agent with this configuration would see it.
fn keeping(config: &AgentConfig, cluster: String, export: &ApiExport, catalog: &Catalog) -> Keeping {
    let me = Keeper { agent: config.agent_name.clone(), cluster, ..Keeper::default() };
    let now = jiff::Timestamp::now().as_millisecond();
    let recorded = crate::rules::keeper::read(export.metadata.annotation(KEEPER));
    decide(&recorded, &me, &keeper::wants(catalog), (now, config.timing.into(), config.take_over))
}

/// What is doubtful about valid rules, by PublishedResource, before there is any object: what a running agent reports as well.
pub async fn doubts(
    local: &Client,
    export: &ApiExport,
    agent_name: &str,
    catalog: &Catalog,
) -> BTreeMap<String, Vec<String>> {
    let mut doubts: BTreeMap<String, Vec<String>> =
        catalog.entries.iter().map(|(name, entry)| (name.clone(), entry.doubts.clone())).collect();
    let in_kcp = export_change(export, agent_name, catalog).doubts;
    for (name, more) in rights::unserved(local, catalog).await.into_iter().chain(in_kcp) {
        doubts.entry(name).or_default().extend(more);
    }
    doubts.retain(|_, doubts| !doubts.is_empty());
    doubts
}

/// Claims of the export that nothing in the catalog needs.
pub fn unneeded_claims(export: &ApiExport, catalog: &Catalog) -> Vec<PermissionClaim> {
    let (chosen, released) = (Chosen::new(), Released::new());
    crate::rules::export::unneeded_claims(export, &published(catalog, &chosen, &released))
}

fn export_change(export: &ApiExport, agent_name: &str, catalog: &Catalog) -> ExportChange {
    let (chosen, released) = (Chosen::new(), Released::new());
    let published = published(catalog, &chosen, &released);
    apply(export, owner(export, agent_name, catalog), &published, !catalog.others.is_empty())
}

/// What would be written into the APIExport.
fn export_changes(export: &ApiExport, agent_name: &str, catalog: &Catalog) -> Vec<String> {
    let change = export_change(export, agent_name, catalog);
    let mut changes = Vec::new();
    let foreign = |owner: &&str| *owner != agent_name && !catalog.others.contains(*owner);
    if let Some(owner) = export.metadata.annotation(AGENT_NAME).filter(foreign) {
        changes
            .push(format!("take it over from agent {owner}; for what that agent would do, say --agent-name {owner}"));
    }
    let mut say = |what: &str, names: &[String]| {
        if !names.is_empty() {
            changes.push(format!("{what} {}", names.join(", ")));
        }
    };
    say("add schemas", &change.added_schemas);
    say("replace schemas", &change.removed_schemas);
    say("claim", &change.added_claims);
    say("leave claims that are too narrow:", &change.narrow_claims);
    if changes.is_empty() && change.changed {
        changes.push(format!("note that agent {agent_name} keeps it"));
    }
    changes
}

async fn describe(
    name: &str,
    catalog: &Catalog,
    places: &KcpLocations,
    plans: &Plans,
    question: &Question,
) -> Result<Published, ExplainError> {
    let entry = catalog.entries.get(name);
    let resource = catalog.resources.get(name);
    let problem = catalog
        .problems
        .get(name)
        .map(|problem| resource.and_then(|pr| told_problem(pr)).unwrap_or_else(|| problem.message.clone()));
    let offered = entry.filter(|entry| resource.is_none_or(|pr| entry.is_publishable(pr)));
    let schema = offered.map(|entry| entry.schema_name.clone());
    let schema_exists = match &schema {
        None => false,
        Some(schema) => {
            let schemas = API_RESOURCE_SCHEMA.into();
            let found = places.export.client.metadata_only().get(&schemas, None, schema).await;
            let what = || format!("APIResourceSchema {schema}");
            found.map_err(|source| ExplainError::Read { what: what(), source: Box::new(source) })?.is_some()
        }
    };
    let idle = resource.and_then(|pr| {
        if pr.metadata.deletion_timestamp.is_some() {
            Some("it is being deleted")
        } else if pr.is_withdrawn() {
            Some("it is withdrawn")
        } else if !pr.is_synchronized() {
            Some("spec.synchronization.enabled is false")
        } else if pr.status.resource_schema_name.is_empty() {
            Some("its schema is not published yet")
        } else {
            None
        }
    });
    let objects = plans.by_object.iter().filter(|((published, _), _)| published == name);
    let objects = objects.map(|((_, key), outcome)| Explained {
        cluster: key.cluster.to_string(),
        workspace: plans.workspaces.get(&*key.cluster).cloned().flatten(),
        consumer: plans.consumers.get(&*key.cluster).cloned(),
        object: if key.namespace.is_empty() { key.name.to_string() } else { format!("{}/{}", key.namespace, key.name) },
        error: outcome.as_ref().err().cloned(),
        plan: outcome.as_ref().ok().cloned(),
    });
    let objects = objects.filter(|object| question.concerns(object)).collect();
    // Those of all PublishedResources are found out together.
    let doubts = Vec::new();
    let (name, idle) = (name.to_owned(), idle.map(str::to_owned));
    let reported = resource.map(|pr| reported(pr)).unwrap_or_default();
    Ok(Published { name, problem, doubts, schema, schema_exists, idle, unexplained: None, reported, objects })
}

/// The condition that says by which rules objects are synchronized.
const SYNCING: &str = "Syncing";

/// What a running agent has reported about a PublishedResource in its present generation, and nobody else can know: it may have rules that
/// cannot be read any more, and other rights than whoever asks.
fn reported(pr: &PublishedResource) -> Vec<String> {
    let told = pr.status.conditions.iter().map(|condition| &condition.0);
    let told = told.filter(|told| told["observedGeneration"] == pr.metadata.generation);
    let telling = told.filter(|told| match told["type"].as_str() {
        Some(SYNCING) => told["reason"] == "EarlierRules",
        Some("RightsGranted" | "ObjectsSynced") => told["status"] == "False" && told["reason"] != "NotSyncing",
        _ => false,
    });
    telling.map(|told| format!("{}: {}", word(&told["type"]), word(&told["message"]))).collect()
}

/// What is wrong with the rules in the words of a running agent, which knows what it does meanwhile.
fn told_problem(pr: &PublishedResource) -> Option<String> {
    let mut told = pr.status.conditions.iter().map(|condition| &condition.0);
    let valid = told.find(|told| told["type"] == "RulesValid" && told["status"] == "False")?;
    (valid["observedGeneration"] == pr.metadata.generation).then(|| word(&valid["message"]).to_owned())
}

fn word(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Whether a consumer has that workspace.
fn check_workspace(workspace: &String, plans: &Plans) -> Result<(), ExplainError> {
    let is_it = |(cluster, path): (&String, &Option<String>)| cluster == workspace || path.as_ref() == Some(workspace);
    if plans.workspaces.iter().any(is_it) || plans.consumers.values().any(|consumer| consumer == workspace) {
        return Ok(());
    }
    let known = plans.workspaces.iter().map(|(cluster, path)| path.as_ref().unwrap_or(cluster).clone()).collect();
    Err(ExplainError::NoWorkspace { workspace: workspace.clone(), known })
}

impl Question {
    fn concerns(&self, object: &Explained) -> bool {
        let here = |workspace: &String| {
            object.workspace.as_ref() == Some(workspace)
                || object.cluster == *workspace
                || object.consumer.as_ref() == Some(workspace)
        };
        self.workspace.as_ref().is_none_or(here) && self.object.as_ref().is_none_or(|wanted| object.object == *wanted)
    }
}
