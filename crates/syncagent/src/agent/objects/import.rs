//! Import, carried out: objects of the service cluster are planned one by one, linked, ordered and waited for.

mod act;
mod plan;
pub(super) mod policy;
mod report;
mod select;
mod taking_back;

use std::collections::HashMap;
use std::sync::Arc;

use carrick_client::Resource;
use futures::StreamExt;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::context::Context;
use super::explain::see_all;
use super::related::kinds;
use super::shared::Shared;
use crate::agent::catalog::Catalog;
use crate::agent::import::{Action, ImportOutcome, ImportedObject, Request};
use crate::rules::import::OrderTemplates;
use crate::rules::metadata::SourceKey;
use crate::rules::{Duty, Rules};
pub(super) use report::ImportedObjects;
pub(crate) use report::ImportsReport;

/// How many objects are worked on at once.
const AT_ONCE: usize = 16;
/// The field manager of links.
const MANAGER: &str = "carrick-import";

/// Everything that an import needs.
struct Importer<'a> {
    shared: &'a Shared,
    rules: Arc<Rules>,
    request: &'a Request,
    action: Action,
    places: OrderTemplates,
    /// Whether a PublishedResource has asked for it, and nobody waits.
    by_policy: bool,
    local: Resource,
    remote: Resource,
}

/// Plans all objects that were selected and, if that is asked for, does it. Returns why some may be missing, too.
pub(crate) async fn run(
    context: Context,
    catalog: &Catalog,
    request: &Request,
    action: Action,
    progress: &(dyn Fn(String) + Sync),
) -> (Vec<ImportedObject>, Option<String>) {
    let stop = CancellationToken::new();
    let _end = stop.clone().drop_guard();
    let (plans, manager) = see_all(context, catalog, request.patience, &stop).await;
    let Some(manager) = manager else { return (Vec::new(), plans.problem) };
    let done = match manager.syncers().get(&request.published_resource).map(super::syncer::Syncer::shared) {
        Some(shared) if shared.rules().duty == Duty::Sync && plans.problem.is_none() => {
            match Importer::new(shared, request, action) {
                Ok(importer) => (importer.all(progress).await, None),
                Err(problem) => (Vec::new(), Some(problem)),
            }
        }
        _ => {
            let idle = format!(
                "PublishedResource {} is not synchronized; see why with: carrick explain {0}",
                request.published_resource
            );
            (Vec::new(), Some(plans.problem.unwrap_or(idle)))
        }
    };
    manager.stop().await;
    done
}

impl<'a> Importer<'a> {
    fn new(shared: &'a Shared, request: &'a Request, action: Action) -> Result<Self, String> {
        let rules = shared.rules();
        let (local, remote) = (kinds::resource(&rules.local), kinds::resource(&rules.remote));
        let places = OrderTemplates::compile(OrderTemplates::FLAGS, [&request.to, &request.namespace, &request.name]);
        let places = places.map_err(|error| error.to_string())?;
        Ok(Self { shared, rules, request, action, places, by_policy: false, local, remote })
    }

    /// All objects that are meant, with what became of them.
    async fn all(&self, progress: &(dyn Fn(String) + Sync)) -> Vec<ImportedObject> {
        let selected = self.select().await;
        let (found, mut reports) = (selected.found, selected.missing);
        let (total, repeated) = (found.len(), self.repeated(&found));
        let mut done = 0;
        let found = found.into_iter().enumerate().map(|(at, object)| (object, repeated.get(&at)));
        let each = futures::stream::iter(found).map(|(object, first)| self.one(object, first)).buffered(AT_ONCE);
        let mut each = std::pin::pin!(each);
        while let Some(report) = each.next().await {
            done += 1;
            progress(format!("{done} of {total} objects"));
            reports.extend(report);
        }
        reports.sort_by(|a, b| a.object.cmp(&b.object));
        reports
    }

    /// Objects that would have the order of another one. An import that is taken back knows its orders by their links.
    fn repeated(&self, found: &[Value]) -> HashMap<usize, String> {
        if self.action.is_undo() { HashMap::new() } else { plan::repeated(&self.places, found) }
    }

    async fn one(&self, object: Value, first: Option<&String>) -> Option<ImportedObject> {
        let report = match (self.action.is_undo(), first) {
            (true, _) => self.undo(object).await,
            (false, None) => self.import(object).await,
            (false, Some(first)) => {
                let why = format!(
                    "{first} would have the same order; keep them apart with --order-name, --order-namespace or --to"
                );
                ImportedObject { reason: Some(why), ..report_on(&object) }
            }
        };
        // Whoever takes everything back asks for what was imported.
        let is_asked = self.is_named() || !matches!(report.outcome, ImportOutcome::NotImported);
        is_asked.then_some(report)
    }
}

/// What is known of an object before anything is.
fn report_on(object: &Value) -> ImportedObject {
    ImportedObject {
        object: full_name(object),
        workspace: None,
        cluster: None,
        order: None,
        outcome: ImportOutcome::Refused,
        reason: None,
        changes: Vec::new(),
    }
}

fn full_name(object: &Value) -> String {
    let text = |key: &str| object["metadata"][key].as_str().unwrap_or_default();
    match text("namespace") {
        "" => text("name").to_owned(),
        namespace => format!("{namespace}/{}", text("name")),
    }
}

fn order_name(key: &SourceKey) -> String {
    if key.namespace.is_empty() { key.name.to_string() } else { format!("{}/{}", key.namespace, key.name) }
}

/// Namespace and name of an object, as they are asked for.
fn place(object: &Value) -> (Option<&str>, &str) {
    let text = |key: &str| object["metadata"][key].as_str();
    (text("namespace"), text("name").unwrap_or_default())
}
