//! What the agent would do right now, without doing it.
//!
//! The catalog, the fleets and the decisions are those of a running agent; only the steps are recorded instead of sent, and the clients
//! refuse to write.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use carrick_client::{Error, Server};
use carrick_kcp::apis::v1alpha1::ApiExport;
use carrick_kcp::kinds::API_RESOURCE_SCHEMA;
use serde::Serialize;
use thiserror::Error;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::catalog::{self, Catalog};
use super::config::AgentConfig;
use super::connect::{self, ConnectError, Places};
use super::events::Recorder;
use super::export::{owner, published};
use super::health::Health;
use super::metrics::Metrics;
use super::objects::Released;
use super::objects::explain::{Plans, plan_all};
use super::schemas::Chosen;
use super::timing::Timing;
use super::{keeper, objects};
use crate::api::{AGENT_NAME, KEEPER};
use crate::decide::Explanation;
use crate::rules::AgentDefaults;
use crate::rules::export::apply;
use crate::rules::keeper::{Keeper, Keeping, decide};

/// What to explain.
#[derive(Debug, Clone)]
pub struct Question {
    /// Only this PublishedResource.
    pub published_resource: Option<String>,
    /// Only objects in this workspace, by path or by logical cluster.
    pub workspace: Option<String>,
    /// Only this object: `namespace/name`, or `name`.
    pub object: Option<String>,
    /// How long to wait for servers.
    pub patience: Duration,
}

impl Default for Question {
    fn default() -> Self {
        Self { published_resource: None, workspace: None, object: None, patience: Duration::from_secs(30) }
    }
}

/// Why nothing can be explained.
#[derive(Debug, Error)]
pub enum ExplainError {
    /// The slice or the export cannot be found.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// PublishedResources or CRDs cannot be read.
    #[error("cannot read what is published within {} s: {problem}", .patience.as_secs())]
    Catalog {
        /// How long it was tried.
        patience: Duration,
        /// What does not work.
        problem: String,
    },
    /// Something in the export's workspace cannot be read.
    #[error("cannot read {what} in the workspace of the APIExport: {source}")]
    Read {
        /// What was to be read.
        what: String,
        /// What the server said.
        source: Box<Error>,
    },
    /// There is no such PublishedResource.
    #[error("there is no PublishedResource {name:?} here{}", there_are(.known))]
    Unknown {
        /// The name asked for.
        name: String,
        /// Those that are there.
        known: Vec<String>,
    },
    /// There is no such object.
    #[error("no object {object} is offered{}; see what is there with `carrick explain` and no object", place(.workspace.as_deref()))]
    NoObject {
        /// The object asked for.
        object: String,
        /// The workspace asked for.
        workspace: Option<String>,
    },
}

fn there_are(names: &[String]) -> String {
    if names.is_empty() { "; there is none at all".to_owned() } else { format!("; there are {}", names.join(", ")) }
}

fn place(workspace: Option<&str>) -> String {
    workspace.map(|workspace| format!(" in workspace {workspace}")).unwrap_or_default()
}

/// What would be done.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Name of the APIExport.
    pub export: String,
    /// What would be written into it, in words.
    pub export_changes: Vec<String>,
    /// One for each PublishedResource.
    pub published_resources: Vec<Published>,
    /// Why something may be missing.
    pub incomplete: Option<String>,
}

/// What would be done for one PublishedResource.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Published {
    /// Its name.
    pub name: String,
    /// What is wrong with it.
    pub problem: Option<String>,
    /// What is doubtful about its rules although they are valid.
    pub doubts: Vec<String>,
    /// Name of its schema.
    pub schema: Option<String>,
    /// Whether the schema exists in kcp.
    pub schema_exists: bool,
    /// Why its objects are left alone, if they are.
    pub idle: Option<String>,
    /// Consumers' objects.
    pub objects: Vec<Explained>,
}

/// What would be done for one object.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explained {
    /// Logical cluster.
    pub cluster: String,
    /// Path of the workspace, if it is known.
    pub workspace: Option<String>,
    /// Namespace and name.
    pub object: String,
    /// What is wrong.
    pub error: Option<String>,
    /// What would be done.
    #[serde(flatten)]
    pub plan: Option<Explanation>,
}

/// Decides once for everything and returns what the agent would do.
pub async fn explain(config: AgentConfig, question: &Question) -> Result<Report, ExplainError> {
    let local = config.local.read_only();
    let kcp = config.kcp.read_only();
    let health = Arc::new(Health::default());
    let stop = CancellationToken::new();
    let _end = stop.clone().drop_guard();
    let part = health.part("connection to kcp");
    let Some(places) = connect::connect(&kcp, &config.slice, true, &part, &stop).await? else {
        return Err(ExplainError::Catalog { patience: question.patience, problem: "told to stop".to_owned() });
    };
    let setup = catalog::Setup {
        local: local.client(),
        selector: config.selector.clone(),
        defaults: config.defaults(),
        timing: config.timing,
    };
    let mut catalog = read_catalog(setup, &health, question.patience).await?;
    if let Some(name) = &question.published_resource
        && !catalog.resources.contains_key(name)
        && !catalog.problems.contains_key(name)
    {
        let known = catalog.resources.keys().cloned().collect();
        return Err(ExplainError::Unknown { name: name.clone(), known });
    }
    let export = read_export(&places).await?;
    let keeping = keeping(&config, &local, &export, &catalog).await;
    catalog.others = keeping.others;
    let mut served = Catalog { others: catalog.others.clone(), ..copied(&catalog) };
    let blocked: BTreeMap<String, String> = keeper::blocked(&catalog, &keeping.blocked, &config.agent_name).collect();
    for name in blocked.keys() {
        served.entries.remove(name);
        served.resources.remove(name);
    }
    let (export_changes, doubts) = export_changes(&export, &config.agent_name, &served);
    if let Some(name) = &question.published_resource {
        catalog.entries.retain(|entry, _| entry == name);
        catalog.resources.retain(|entry, _| entry == name);
        catalog.problems.retain(|entry, _| entry == name);
        served.entries.retain(|entry, _| entry == name);
        served.resources.retain(|entry, _| entry == name);
    }
    let pace = objects::pace();
    let (recorder, _writers) = Recorder::start("syncagent", &pace);
    let context = objects::Context {
        local: local.client(),
        slice_workspace: places.slice.client.clone(),
        slice: places.slice_name.clone(),
        export_workspace: places.export.client.clone(),
        export: places.export_name.clone(),
        agent_name: config.agent_name.clone(),
        namespace: config.namespace.clone(),
        timing: config.timing,
        recorder,
        pace,
        metrics: Arc::new(Metrics::default()),
        health: Arc::clone(&health),
        orders: Arc::default(),
        troubles: watch::Sender::default(),
        refused: mpsc::unbounded_channel().0,
        released: watch::Sender::default(),
        granted: watch::Sender::default().subscribe(),
    };
    let plans = plan_all(context, &served, question.patience).await;
    let mut published_resources = Vec::new();
    for name in catalog.resources.keys().chain(catalog.problems.keys()) {
        if published_resources.iter().any(|it: &Published| it.name == *name) {
            continue;
        }
        let mut described = describe(name, &catalog, &places, &plans, question).await?;
        described.doubts.extend(doubts.get(name).into_iter().flatten().cloned());
        described.idle = blocked.get(name).cloned().or(described.idle);
        published_resources.push(described);
    }
    if let (Some(object), true) = (&question.object, published_resources.iter().all(|it| it.objects.is_empty())) {
        return Err(ExplainError::NoObject { object: object.clone(), workspace: question.workspace.clone() });
    }
    Ok(Report { export: places.export_name, export_changes, published_resources, incomplete: plans.problem })
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
async fn read_catalog(
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
        conditions: catalog.conditions,
        ..Catalog::default()
    }
}

async fn read_export(places: &Places) -> Result<ApiExport, ExplainError> {
    let export = places.export.client.get_kcp(&places.export_name).await;
    let what = || format!("APIExport {}", places.export_name);
    let export = export.map_err(|source| ExplainError::Read { what: what(), source: Box::new(source) })?;
    Ok(export.unwrap_or_default())
}

/// Who keeps what of the export, as an agent with this configuration would see it.
async fn keeping(config: &AgentConfig, local: &Server, export: &ApiExport, catalog: &Catalog) -> Keeping {
    let cluster = keeper::cluster_id(&local.client()).await.unwrap_or_default();
    let me = Keeper { agent: config.agent_name.clone(), cluster, ..Keeper::default() };
    let now = jiff::Timestamp::now().as_millisecond();
    let recorded = crate::rules::keeper::read(export.metadata.annotation(KEEPER));
    decide(&recorded, &me, &keeper::wants(catalog), (now, config.timing.into(), config.take_over))
}

/// What would be written into the APIExport, and what is doubtful about related resources.
fn export_changes(
    export: &ApiExport,
    agent_name: &str,
    catalog: &Catalog,
) -> (Vec<String>, BTreeMap<String, Vec<String>>) {
    let change = {
        let (chosen, released) = (Chosen::new(), Released::new());
        let published = published(catalog, &chosen, &released);
        apply(export, owner(export, agent_name, catalog), &published, !catalog.others.is_empty())
    };
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
    (changes, change.doubts)
}

async fn describe(
    name: &str,
    catalog: &Catalog,
    places: &Places,
    plans: &Plans,
    question: &Question,
) -> Result<Published, ExplainError> {
    let entry = catalog.entries.get(name);
    let problem = catalog.problems.get(name).map(|problem| problem.message.clone());
    let resource = catalog.resources.get(name);
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
        workspace: plans.paths.get(&*key.cluster).cloned(),
        object: if key.namespace.is_empty() { key.name.to_string() } else { format!("{}/{}", key.namespace, key.name) },
        error: outcome.as_ref().err().cloned(),
        plan: outcome.as_ref().ok().cloned(),
    });
    let objects = objects.filter(|object| question.concerns(object)).collect();
    let doubts = entry.map(|entry| entry.doubts.clone()).unwrap_or_default();
    let (name, idle) = (name.to_owned(), idle.map(str::to_owned));
    Ok(Published { name, problem, doubts, schema, schema_exists, idle, objects })
}

impl Question {
    fn concerns(&self, object: &Explained) -> bool {
        let here = |workspace: &String| object.workspace.as_ref() == Some(workspace) || object.cluster == *workspace;
        self.workspace.as_ref().is_none_or(here) && self.object.as_ref().is_none_or(|wanted| object.object == *wanted)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "APIExport {}", self.export)?;
        match self.export_changes.as_slice() {
            [] => writeln!(f, "  is up to date")?,
            changes => changes.iter().try_for_each(|change| writeln!(f, "  would {change}"))?,
        }
        for published in &self.published_resources {
            write!(f, "\n{published}")?;
        }
        if self.published_resources.is_empty() {
            writeln!(f, "\nThere is no PublishedResource.")?;
        }
        if let Some(problem) = &self.incomplete {
            writeln!(f, "\nIncomplete: {problem}")?;
        }
        writeln!(f, "\nNothing was written.")
    }
}

impl fmt::Display for Published {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "PublishedResource {}", self.name)?;
        if let Some(problem) = &self.problem {
            writeln!(f, "  problem: {problem}")?;
        }
        self.doubts.iter().try_for_each(|doubt| writeln!(f, "  doubtful: {doubt}"))?;
        match &self.schema {
            Some(schema) if self.schema_exists => writeln!(f, "  schema {schema} exists")?,
            Some(schema) => writeln!(f, "  schema {schema} would be created")?,
            None => {}
        }
        if let Some(idle) = &self.idle {
            return writeln!(f, "  objects are left alone: {idle}");
        }
        let steps = |object: &&Explained| object.plan.as_ref().is_none_or(|plan| !plan.steps.is_empty());
        let busy = self.objects.iter().filter(steps).count();
        let noun = if self.objects.len() == 1 { "object" } else { "objects" };
        writeln!(f, "  {} {noun}, {busy} with something to do", self.objects.len())?;
        self.objects.iter().try_for_each(|object| write!(f, "{object}"))
    }
}

impl fmt::Display for Explained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = self.workspace.as_deref().unwrap_or(&self.cluster);
        write!(f, "  {place} {}: ", self.object)?;
        if let Some(error) = &self.error {
            writeln!(f, "error: {error}")?;
        }
        let Some(plan) = &self.plan else { return Ok(()) };
        writeln!(f, "{}", plan.why)?;
        plan.steps.iter().enumerate().try_for_each(|(number, step)| writeln!(f, "    {}. {step}", number + 1))
    }
}
