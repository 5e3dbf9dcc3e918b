//! Orders that have gone back in time, because kcp or the service cluster was restored from a backup: which ones, what each side has, and
//! what lets them go on.
//!
//! They are found as the agent finds them, whether one runs or not. Finding writes nothing; accepting writes one annotation on each order.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use carrick_process::printable::one_line;
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::config::AgentConfig;
use super::explain::{self, ExplainError};
use super::health::Health;
use super::objects::explain::restore::{FoundOrders, find};
use super::{catalog, connect, keeper};

/// What to look at.
#[derive(Debug, Clone)]
pub struct Look {
    /// Only this PublishedResource.
    pub published_resource: Option<String>,
    /// Look as the agent that keeps the export for this service cluster, if there is one, whatever the configuration calls it.
    pub as_keeper: bool,
    /// How long to wait for servers.
    pub patience: Duration,
}

impl Default for Look {
    fn default() -> Self {
        Self { published_resource: None, as_keeper: false, patience: Duration::from_secs(30) }
    }
}

/// Which orders are let go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Chosen {
    /// All that are held.
    All,
    /// All in one workspace, by path or logical cluster.
    Workspace(String),
    /// One.
    Order {
        /// Path or logical cluster of its workspace.
        workspace: String,
        /// Namespace and name.
        object: String,
    },
}

impl Chosen {
    /// Whether an order is one of them.
    pub fn is_meant(&self, order: &RestoredOrder) -> bool {
        let is_in = |wanted: &String| order.workspace.as_ref() == Some(wanted) || order.cluster == *wanted;
        match self {
            Self::All => true,
            Self::Workspace(workspace) => is_in(workspace),
            Self::Order { workspace, object } => is_in(workspace) && order.object == *object,
        }
    }
}

/// What is odd about an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Finding {
    /// It is older than what was carried out.
    Older,
    /// It was deleted, and its copy with it, and is there again.
    Returned,
    /// It is held, and was changed since.
    Held,
    /// Its copy was made for another object of the same name.
    OtherOrder,
    /// It does not exist, but its copy does.
    CopyWithoutOrder,
}

impl Finding {
    /// Whether it waits to be accepted.
    pub fn can_be_accepted(self) -> bool {
        matches!(self, Self::Older | Self::Returned | Self::Held)
    }

    fn words(self) -> &'static str {
        match self {
            Self::Older => "older in kcp than what was carried out; the copy stays as it is",
            Self::Returned => "deleted before, with its copy, and back in kcp; no copy is made",
            Self::Held => "held, and changed since; the copy stays as it is",
            Self::OtherOrder => "its copy was made for another object of the same name; the copy stays as it is",
            Self::CopyWithoutOrder => "there is a copy, but no order in kcp; the copy is never deleted by the agent",
        }
    }

    fn advice(self) -> &'static str {
        match self {
            Self::Older | Self::Held => "go on with what kcp has",
            Self::Returned => "make a copy again",
            Self::OtherOrder => "hand the copy over to the order that is there",
            Self::CopyWithoutOrder => "delete the copy, if nobody needs it",
        }
    }
}

/// An order that somebody has to decide about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RestoredOrder {
    /// Name of the PublishedResource.
    pub published: String,
    /// The resource in kcp, as `<plural>.<group>`.
    pub resource: String,
    /// Logical cluster.
    pub cluster: String,
    /// Path of the workspace, if it is known.
    pub workspace: Option<String>,
    /// Namespace and name.
    pub object: String,
    /// What is odd about it.
    pub finding: Finding,
    /// What kcp has, if it has it.
    pub in_kcp: Option<String>,
    /// What the service cluster has, if it has it.
    pub on_service: Option<String>,
    /// Fields that would change on the service cluster.
    pub differences: Vec<String>,
    /// The command that lets it go on.
    pub command: String,
}

/// All orders that somebody has to decide about.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Restored {
    /// Name of the agent whose orders they are.
    pub agent: String,
    /// The orders.
    pub orders: Vec<RestoredOrder>,
    /// Why some may be missing.
    pub incomplete: Option<String>,
}

/// What was let go on.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Accepted {
    /// How many orders.
    pub let_go: usize,
    /// Which could not be, and why.
    pub failed: Vec<String>,
    /// Why some may be missing.
    pub incomplete: Option<String>,
}

/// Finds all orders that somebody has to decide about. Writes nothing.
pub async fn status(config: AgentConfig, look: &Look) -> Result<Restored, ExplainError> {
    let (agent, found) = search(config, look, None).await?;
    Ok(Restored { agent, orders: found.orders, incomplete: found.problem })
}

/// Lets orders go on as they are in kcp.
pub async fn accept(config: AgentConfig, look: &Look, chosen: &Chosen) -> Result<Accepted, ExplainError> {
    let (_, found) = search(config, look, Some(chosen)).await?;
    let (done, failed): (Vec<_>, Vec<_>) = found.let_go.into_iter().partition(Result::is_ok);
    let failed = failed.into_iter().filter_map(Result::err).collect();
    Ok(Accepted { let_go: done.len(), failed, incomplete: found.problem })
}

async fn search(
    mut config: AgentConfig,
    look: &Look,
    chosen: Option<&Chosen>,
) -> Result<(String, FoundOrders), ExplainError> {
    let local = config.local.read_only();
    let kcp = if chosen.is_some() { config.kcp.clone() } else { config.kcp.read_only() };
    let health = Arc::new(Health::default());
    let stop = CancellationToken::new();
    let _end = stop.clone().drop_guard();
    let part = health.part("connection to kcp");
    let Some(places) = connect::connect(&kcp, &config.slice, true, &part, &stop).await? else {
        return Err(ExplainError::Catalog { patience: look.patience, problem: "it was stopped".to_owned() });
    };
    if look.as_keeper {
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
    let mut catalog = explain::read_catalog(setup, &health, look.patience).await?;
    if let Some(name) = &look.published_resource {
        explain::check_published(name, &catalog)?;
        catalog.entries.retain(|entry, _| entry == name);
        catalog.resources.retain(|entry, _| entry == name);
    }
    let context = explain::context(&config, local.client(), &places, &health);
    let found = find(context, &catalog, look.patience, chosen).await;
    Ok((config.agent_name, found))
}

impl fmt::Display for Restored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Agent {}", self.agent)?;
        for order in &self.orders {
            write!(f, "\n{order}")?;
        }
        let waiting = self.orders.iter().filter(|order| order.finding.can_be_accepted()).count();
        let others = self.orders.len() - waiting;
        match (waiting, others) {
            (0, 0) => writeln!(f, "\nNo order waits for a decision.")?,
            _ => writeln!(f, "\n{waiting} held, {others} to look at.")?,
        }
        if waiting > 0 {
            writeln!(f, "All that are held go on as they are in kcp with: carrick restore accept --all")?;
        }
        if let Some(problem) = &self.incomplete {
            writeln!(f, "Incomplete: {}", one_line(problem))?;
        }
        Ok(())
    }
}

impl fmt::Display for RestoredOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Consumers have written much of it: none of that is a line of its own.
        let mut line = |text: String| writeln!(f, "{}", one_line(&text));
        let place = self.workspace.as_deref().unwrap_or(&self.cluster);
        line(format!("{place} {} {}: {}", self.resource, self.object, self.finding.words()))?;
        line(format!("  kcp:             {}", self.in_kcp.as_deref().unwrap_or("nothing")))?;
        line(format!("  service cluster: {}", self.on_service.as_deref().unwrap_or("nothing")))?;
        self.differences.iter().try_for_each(|difference| line(format!("    {difference}")))?;
        line(format!("  {}: {}", self.finding.advice(), self.command))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(workspace: Option<&str>, object: &str, finding: Finding) -> RestoredOrder {
        RestoredOrder {
            published: "buckets".into(),
            resource: "buckets.example.com".into(),
            cluster: "c1".into(),
            workspace: workspace.map(str::to_owned),
            object: object.into(),
            finding,
            in_kcp: (finding != Finding::CopyWithoutOrder).then(|| "generation 2".into()),
            on_service: (finding != Finding::Returned).then(|| "c1/x, of generation 3".into()),
            differences: vec!["spec.size: 1 in kcp, 2 on the service cluster".into()],
            command: "do it".into(),
        }
    }

    #[test]
    fn orders_are_chosen_by_workspace_and_name() {
        let one = order(Some("root:a"), "default/x", Finding::Older);
        let named =
            |workspace: &str, object: &str| Chosen::Order { workspace: workspace.into(), object: object.into() };
        for (chosen, meant) in [
            (Chosen::All, true),
            (Chosen::Workspace("root:a".into()), true),
            (Chosen::Workspace("c1".into()), true),
            (Chosen::Workspace("root:b".into()), false),
            (named("root:a", "default/x"), true),
            (named("c1", "default/x"), true),
            (named("root:a", "default/y"), false),
            (named("root:b", "default/x"), false),
        ] {
            assert_eq!(chosen.is_meant(&one), meant, "{chosen:?}");
        }
    }

    #[test]
    fn nothing_that_consumers_have_written_forges_a_line() {
        let forged = "x\n  all is \u{1b}[32mwell\u{1b}[2J";
        let mut one = order(Some(forged), forged, Finding::Older);
        (one.in_kcp, one.on_service) = (Some(forged.into()), Some(forged.into()));
        (one.differences, one.command) = (vec![forged.into()], forged.into());
        let text = one.to_string();
        assert!(text.lines().count() == 5 && !text.contains('\u{1b}'), "{text:?}");
        let all = Restored { agent: "a".into(), orders: vec![one], incomplete: Some(forged.into()) }.to_string();
        assert!(!all.contains('\u{1b}') && !all.lines().any(|line| line.starts_with("  all is")), "{all:?}");
    }

    #[test]
    fn both_sides_and_a_command_are_shown() {
        let orders = [Finding::Older, Finding::Returned, Finding::CopyWithoutOrder];
        let orders = orders.map(|finding| order(None, "default/x", finding)).to_vec();
        let text = Restored { agent: "me".into(), orders, incomplete: Some("half".into()) }.to_string();
        for needed in [
            "c1 buckets.example.com default/x: older in kcp",
            "service cluster: nothing",
            "kcp:             nothing",
            "go on with what kcp has: do it",
            "2 held, 1 to look at.",
            "carrick restore accept --all",
            "Incomplete: half",
        ] {
            assert!(text.contains(needed), "{needed}: {text}");
        }
        let none = Restored { agent: "me".into(), orders: Vec::new(), incomplete: None }.to_string();
        assert!(none.contains("No order waits"), "{none}");
    }
}
