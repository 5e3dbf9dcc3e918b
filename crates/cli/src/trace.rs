//! `carrick trace`: the way of one order, from the consumer's object to what the operator has made of it and back.
//!
//! ```text
//!  explain  what the agent would do, and why ──┐
//!  both servers: order, copy, related objects ─┼─▶ tree ──▶ lines for people, JSON for programs
//!  owned    what the operator has made ────────┘
//! ```

#![allow(rustdoc::invalid_html_tags, reason = "doc comments of flags are what --help prints")]

mod owned;
mod tree;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use carrick_client::{Client, ListOptions, Resource, Server};
use carrick_kcp::apis::v1alpha1::ApiExportEndpointSlice;
use carrick_syncagent::agent::explain::{self, Explained, Question};
use carrick_syncagent::api::Origin;
use carrick_syncagent::rules::Rules;
use carrick_syncagent::rules::metadata::{SourceKey, link_to};
use carrick_syncagent::rules::provenance::Provenance;
use carrick_syncagent::rules::related::Related;
use carrick_syncagent::trace::{Node, Note};
use serde_json::Value;

use crate::agent_flags::{AgentFlags, Identified};
use crate::kinds::resource;
use crate::logs;
use crate::ui::{Output, colours, print, print_json, telling};

/// Show the way of one order: its copy, what was made of it, status.
///
/// Related objects, times, waits and refusals are part of it.
/// Reads both clusters and writes nothing. What is made of the copy is found by owner references, in the copy's namespace; everywhere if
/// the copy has none.
/// Exit code 1: there is no such order, or something is wrong with it.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The consumer's object: namespace/name, or name for kinds without namespaces
    #[arg(value_name = "ORDER")]
    order: String,
    /// Only in this workspace: a path such as root:orgs:acme, or the name of its logical cluster
    #[arg(long, value_name = "WORKSPACE")]
    workspace: Option<String>,
    /// Only of this PublishedResource
    #[arg(long, value_name = "NAME")]
    published_resource: Option<String>,
    #[command(flatten)]
    agent: AgentFlags,
    /// How long to wait for the servers, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    timeout: u64,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

const EXAMPLES: &str = "\
Examples:
  carrick trace default/my-bucket
      in whichever workspace; the agent is found by its Deployment
  carrick trace default/my-bucket --workspace root:orgs:acme
  carrick trace default/my-bucket -o json | jq '.. | .notes? // empty'";

/// Prints the way of an order.
pub async fn run(args: Args, verbose: bool) -> anyhow::Result<ExitCode> {
    logs::init(logs::Quiet::Silent, verbose);
    let flags = args.agent.resolved().await?;
    let orders = telling("looking for the agent", async |doing| {
        let agent = flags.identify().await?;
        doing.now("reading both clusters");
        trace(&agent, &args).await
    });
    let orders = orders.await?;
    match args.output {
        Output::Text => {
            let width = console::Term::stdout().size_checked().map(|(_, columns)| usize::from(columns));
            let look = tree::Look { colours: colours(), width };
            print(&orders.iter().map(|order| tree::text(order, look)).collect::<Vec<_>>().join("\n"));
        }
        Output::Json => print_json(&orders)?,
    }
    Ok(if orders.iter().any(Node::has_problem) { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

async fn trace(agent: &Identified, args: &Args) -> anyhow::Result<Vec<Node>> {
    let (options, patience) = (&agent.options, Duration::from_secs(args.timeout));
    let question = Question {
        as_keeper: !agent.is_named,
        published_resource: args.published_resource.clone(),
        workspace: args.workspace.clone(),
        object: Some(args.order.clone()),
        patience,
    };
    let config = options.clone().into_config()?;
    let (local, kcp) = (config.local.read_only(), config.kcp.read_only());
    kcp.redirect(options.endpoint_overrides());
    let report = explain::explain(config, &question).await?;
    let catalog = explain::catalog(&local, &options.published_resource_selector, &report.agent, patience).await?;
    let endpoints = endpoints(&kcp, agent.slice()).await?;
    let mut orders = Vec::new();
    for published in &report.published_resources {
        let rules = catalog.entries.get(&published.name).and_then(|entry| entry.rules.as_ref().ok());
        let Some(rules) = rules else { continue };
        for explained in &published.objects {
            let place = Place { rules, local: &local.client(), kcp: &kcp, endpoints: &endpoints, agent: &report.agent };
            orders.push(place.order(explained).await?);
        }
    }
    Ok(orders)
}

async fn endpoints(kcp: &Server, name: &str) -> anyhow::Result<Vec<String>> {
    let slice: Option<ApiExportEndpointSlice> =
        kcp.client().get_kcp(name).await.with_context(|| format!("cannot read APIExportEndpointSlice {name}"))?;
    Ok(slice.unwrap_or_default().status.endpoints.into_iter().map(|endpoint| endpoint.url).collect())
}

/// Where the parts of an order are looked for.
struct Place<'a> {
    rules: &'a Rules,
    local: &'a Client,
    kcp: &'a Server,
    endpoints: &'a [String],
    agent: &'a str,
}

impl Place<'_> {
    async fn order(&self, explained: &Explained) -> anyhow::Result<Node> {
        let key = key(explained);
        let (consumer, order) = self.find(&key).await?;
        let workspace = explained.workspace.as_deref().unwrap_or(&explained.cluster);
        let mut node = Node::of(&self.rules.remote.kind, &order, &format!("in workspace {workspace}"));
        node.notes.extend(report(explained));
        for copy in self.copies(&key).await? {
            let mut copied = Node::of(&self.rules.local.kind, &copy, "on the service cluster");
            copied.notes.extend(drift(explained));
            let owned = owned::by(self.local, &copy).await;
            copied.notes.extend(owned.notes);
            copied.children = owned.nodes;
            node.children.push(copied);
        }
        if node.children.is_empty() {
            node.notes.push(Note::problem("it has no copy"));
        }
        for related in &self.rules.related {
            node.children.extend(self.related(&key, related, consumer.as_ref()).await);
        }
        Ok(node)
    }

    /// The order itself, and a client for its workspace.
    async fn find(&self, key: &SourceKey) -> anyhow::Result<(Option<Client>, Value)> {
        let namespace = Some(&*key.namespace).filter(|namespace| !namespace.is_empty());
        for endpoint in self.endpoints {
            let client = self.kcp.at_published_url(&carrick_kcp::url::in_endpoint(endpoint, &key.cluster))?;
            if let Ok(Some(found)) = client.get(&resource(&self.rules.remote), namespace, &key.name).await {
                return Ok((Some(client), found));
            }
        }
        Ok((None, Value::Null))
    }

    async fn copies(&self, key: &SourceKey) -> anyhow::Result<Vec<Value>> {
        let labels = link_to(key, None).labels;
        let selector: Vec<String> = labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let found = self.local.list(&resource(&self.rules.local), None, &ListOptions::labels(selector.join(","))).await;
        found.with_context(|| format!("cannot list {} on the service cluster", self.rules.local.plural))
    }

    /// Copies of related objects that bear the marks of an order.
    async fn related(&self, key: &SourceKey, related: &Related, consumer: Option<&Client>) -> Vec<Node> {
        let marks = Provenance::of(key, &self.rules.name, &related.identifier, self.agent);
        let (client, place) = match related.origin {
            Origin::Service => (consumer, "in the consumer's workspace"),
            Origin::Kcp => (Some(self.local), "on the service cluster"),
        };
        let gvr = &related.destination;
        let kind = Resource::namespaced(&gvr.group, &gvr.version, &gvr.resource, &gvr.resource);
        let about = format!("{place}, related {:?}", related.identifier);
        let Some(client) = client.filter(|_| related.marks_copies()) else { return Vec::new() };
        match client.list(&kind, None, &ListOptions::labels(marks.selector())).await {
            Ok(found) => found.iter().map(|object| Node::of(&gvr.resource, object, &about)).collect(),
            Err(error) => vec![Node::unknown(&gvr.resource, &about, &error.to_string())],
        }
    }
}

/// What the agent reports about an order.
fn report(explained: &Explained) -> Vec<Note> {
    let mut notes: Vec<Note> = explained.error.iter().map(|error| Note::problem(error)).collect();
    if let Some(plan) = &explained.plan {
        notes.push(Note::plain(&plan.why));
        notes.extend(plan.problems.iter().map(|problem| Note::problem(problem)));
        notes.extend(plan.changed.iter().map(|what| Note::waiting(what)));
        notes.extend(plan.waits.iter().map(|what| Note::waiting(&format!("waits for {what}"))));
    }
    notes
}

/// What the agent would write now: the copy has drifted, or the order has just changed.
fn drift(explained: &Explained) -> Vec<Note> {
    let steps = explained.plan.iter().flat_map(|plan| &plan.steps);
    steps.map(|step| Note::waiting(&format!("not yet done: {step}"))).collect()
}

fn key(explained: &Explained) -> SourceKey {
    let (namespace, name) = explained.object.split_once('/').unwrap_or(("", &explained.object));
    SourceKey { cluster: explained.cluster.as_str().into(), namespace: namespace.into(), name: name.into() }
}
