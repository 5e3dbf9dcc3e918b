//! Import: orders for objects that exist on the service cluster, without a write to their content.
//!
//! What would be done is found out first, as the agent would decide it, and with kcp's own answer to a dry run; carrying it out decides
//! the same again for each object. Whoever is stopped in between goes on by asking again.

mod report;

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::config::AgentConfig;
use super::explain::{self, ExplainError};
use super::health::Health;
use super::objects::import::run;
use super::{catalog, connect, keeper};
use crate::decide::import::{FieldChange, OnDelete};

/// Which objects are meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selected {
    /// All of the kind.
    All,
    /// Those with these labels.
    Labelled(String),
    /// These, as `namespace/name`, or `name` for kinds without namespaces.
    Named(Vec<String>),
}

/// What is to be imported, and where to.
#[derive(Debug, Clone)]
pub struct Request {
    /// Name of the PublishedResource.
    pub published_resource: String,
    /// Which objects.
    pub selected: Selected,
    /// Path of the consumer's workspace, or its logical cluster: a Go template over the object.
    pub to: String,
    /// Namespace of the order: a Go template over the object.
    pub namespace: String,
    /// Name of the order: a Go template over the object.
    pub name: String,
    /// Fields that may change, by name.
    pub accept: Vec<String>,
    /// Labels and annotations that stay on the object alone.
    pub without: Vec<String>,
    /// What becomes of the object when its order goes.
    pub on_delete: OnDelete,
    /// Look as the agent that keeps the export for this service cluster, if there is one, whatever the configuration calls it.
    pub as_keeper: bool,
    /// How long to wait for servers.
    pub patience: Duration,
    /// How long to wait for the agent, for each object.
    pub wait: Duration,
}

impl Request {
    /// The namespace of orders if none is given.
    pub const NAMESPACE: &'static str = crate::rules::import::NAMESPACE;
    /// The name of orders if none is given: that of the object.
    pub const NAME: &'static str = crate::rules::import::NAME;

    /// All objects of a PublishedResource, into one workspace, under their own names.
    pub fn new(published_resource: &str, to: &str) -> Self {
        Self {
            published_resource: published_resource.to_owned(),
            selected: Selected::All,
            to: to.to_owned(),
            namespace: Self::NAMESPACE.to_owned(),
            name: Self::NAME.to_owned(),
            accept: Vec::new(),
            without: Vec::new(),
            on_delete: OnDelete::Keep,
            as_keeper: false,
            patience: Duration::from_secs(30),
            wait: Duration::from_secs(30),
        }
    }
}

/// What is done about the objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Nothing: it is only shown what would be.
    Show,
    /// They are imported.
    Import,
    /// It is only shown what would be taken back.
    ShowUndo,
    /// Their import is taken back.
    Undo,
}

impl Action {
    /// Whether anything is written.
    pub fn writes(self) -> bool {
        matches!(self, Self::Import | Self::Undo)
    }

    /// Whether an import is taken back.
    pub fn is_undo(self) -> bool {
        matches!(self, Self::ShowUndo | Self::Undo)
    }
}

/// What became of an object, or would.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ImportOutcome {
    /// It can be imported.
    Ready,
    /// It is linked already, by an import that was stopped, and gets its order.
    Resumes,
    /// It has its order, and the agent has taken it.
    Imported,
    /// It has its order, but the agent has not taken it yet.
    Waits,
    /// It was imported before.
    Already,
    /// It is not imported, because something would change or is in the way.
    Refused,
    /// A server refused a write, or did not answer.
    Failed,
    /// Its link can be taken off.
    UndoLink,
    /// Its order can be ended, and it stays.
    UndoOrder,
    /// It is nobody's again.
    Undone,
    /// It is not imported.
    NotImported,
}

impl ImportOutcome {
    /// Whether something is left to do about the object.
    pub fn is_due(self) -> bool {
        matches!(self, Self::Ready | Self::Resumes | Self::UndoLink | Self::UndoOrder)
    }

    /// Whether what was asked for is not so.
    pub fn is_problem(self) -> bool {
        matches!(self, Self::Refused | Self::Failed | Self::Waits)
    }
}

/// One object, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ImportedObject {
    /// Namespace and name on the service cluster.
    pub object: String,
    /// Workspace of its order, as it was asked for, or as it is known.
    pub workspace: Option<String>,
    /// Logical cluster of that workspace.
    pub cluster: Option<String>,
    /// Namespace and name of its order.
    pub order: Option<String>,
    /// What became of it.
    pub outcome: ImportOutcome,
    /// Why, if there is more to say.
    pub reason: Option<String>,
    /// Fields of the object that would change, or that change because they were accepted.
    pub changes: Vec<FieldChange>,
}

/// All objects that were meant.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Imports {
    /// Name of the agent whose copies they become.
    pub agent: String,
    /// Name of the PublishedResource.
    pub published_resource: String,
    /// The objects.
    pub objects: Vec<ImportedObject>,
    /// Why some may be missing.
    pub incomplete: Option<String>,
}

impl Imports {
    /// How many objects have an outcome.
    pub fn count(&self, outcome: ImportOutcome) -> usize {
        self.objects.iter().filter(|object| object.outcome == outcome).count()
    }

    /// How many objects something is left to do about.
    pub fn due(&self) -> usize {
        self.objects.iter().filter(|object| object.outcome.is_due()).count()
    }
}

/// Finds out what would become of objects, or does it; calls back with what is being done.
pub async fn import(
    mut config: AgentConfig,
    request: &Request,
    action: Action,
    progress: &(dyn Fn(String) + Sync),
) -> Result<Imports, ExplainError> {
    let (local, kcp) = if action.writes() {
        (config.local.clone(), config.kcp.clone())
    } else {
        (config.local.read_only(), config.kcp.read_only())
    };
    let health = Arc::new(Health::default());
    let stop = CancellationToken::new();
    let _end = stop.clone().drop_guard();
    let part = health.part("connection to kcp");
    let Some(places) = connect::connect(&kcp, &config.slice, true, &part, &stop).await? else {
        return Err(ExplainError::Catalog { patience: request.patience, problem: "it was stopped".to_owned() });
    };
    if request.as_keeper {
        let export = explain::read_export(&places).await?;
        let cluster = keeper::cluster_id(&local.client()).await.unwrap_or_default();
        config.agent_name = explain::agent_of(&export, &cluster).unwrap_or(config.agent_name);
    }
    let setup = catalog::Setup {
        local: local.client(),
        selector: config.selector.clone(),
        defaults: config.defaults(),
        timing: config.timing,
    };
    let mut catalog = explain::read_catalog(setup, &health, request.patience).await?;
    let name = &request.published_resource;
    explain::check_published(name, &catalog)?;
    catalog.entries.retain(|entry, _| entry == name);
    catalog.resources.retain(|entry, _| entry == name);
    let context = explain::context(&config, local.client(), &places, &health);
    progress("reading both clusters".to_owned());
    let (objects, incomplete) = run(context, &catalog, request, action, progress).await;
    Ok(Imports { agent: config.agent_name, published_resource: name.clone(), objects, incomplete })
}
