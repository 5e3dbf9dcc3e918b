//! What the agent is doing, for people: a page and the JSON behind it. Nothing can be changed. Everything comes from what the agent knows
//! anyway, at the moment somebody asks; no server is asked for it.
//!
//! ```text
//!   Health ─────────┐
//!   Metrics (text) ─┼─▶ state ─▶ /state.json ─┬─▶ page.html, in a browser
//!   Catalog ────────┤     └ verdict           ├─▶ carrick top, in a terminal
//!   Consumers ──────┤                         └─▶ carrick dashboard, for several agents
//!   AllOrders ──────┼─▶ find ────▶ /find.json      names, times and counts
//!                   ├─▶ trace ───▶ /trace.json     one order as the tree of carrick trace
//!                   └─▶ compare ─▶ /compare.json   content, without what is secret
//! ```

mod numbers;
mod verdict;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::catalog::Catalog;
use super::connect::KcpLocations;
use super::health::Health;
use super::metrics::Metrics;
use super::objects::{AllOrders, Consumers, Orders, Troubles, Wanted};
use crate::rules::metadata::SourceKey;
use numbers::Numbers;
use verdict::{trouble, verdict};

/// How often numbers are recorded, and how many of them are kept: a quarter of an hour.
const EVERY: Duration = Duration::from_secs(5);
const KEPT: usize = 180;
/// How many objects of one PublishedResource a search finds.
const FOUND: usize = 20;
/// How many copies without an order are listed of one PublishedResource.
const ORPHANS: usize = 20;

/// The page.
pub(super) const PAGE: &str = include_str!("dashboard/page.html");

/// The page for those who have to log in first.
pub(super) const LOGIN_PAGE: &str = include_str!("dashboard/login.html");

/// How to get in, for those who read no page.
pub(super) const WAY_IN: &str = "\
To get a token on the service cluster:
  kubectl create clusterrole dashboard-viewer --verb=get --resource=publishedresources.syncagent.kcp.io
  kubectl -n default create serviceaccount dashboard-viewer
  kubectl create clusterrolebinding dashboard-viewer --clusterrole=dashboard-viewer --serviceaccount=default:dashboard-viewer
  kubectl -n default create token dashboard-viewer --audience dashboard.syncagent.kcp.io
Send it as Authorization: Bearer, or log in at / in a browser.
";

/// Everything that can be shown.
pub struct Dashboard {
    agent_name: String,
    slice: String,
    started: Instant,
    health: Arc<Health>,
    metrics: Arc<Metrics>,
    orders: Arc<AllOrders>,
    consumers: Arc<Consumers>,
    places: Mutex<Option<(String, String)>>,
    catalog: Mutex<Option<watch::Receiver<Arc<Catalog>>>>,
    troubles: Mutex<Option<watch::Receiver<Troubles>>>,
    history: Mutex<VecDeque<Sample>>,
}

/// Numbers at one moment.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct Sample {
    /// Seconds since the start.
    at: u64,
    lag_seconds: f64,
    queued: f64,
    steps: f64,
    errors: f64,
}

impl std::fmt::Debug for Dashboard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dashboard").field("agent", &self.agent_name).finish_non_exhaustive()
    }
}

impl Dashboard {
    /// A dashboard that knows only the agent's name yet.
    pub fn new(agent_name: &str, slice: String, health: Arc<Health>, metrics: Arc<Metrics>) -> Self {
        Self {
            agent_name: agent_name.to_owned(),
            slice,
            started: Instant::now(),
            health,
            metrics,
            orders: Arc::default(),
            consumers: Arc::default(),
            places: Mutex::default(),
            catalog: Mutex::default(),
            troubles: Mutex::default(),
            history: Mutex::default(),
        }
    }

    /// The orders that can be searched; the syncers fill them in.
    pub(super) fn orders(&self) -> Arc<AllOrders> {
        Arc::clone(&self.orders)
    }

    /// Who binds the export; the watch of bindings fills it in.
    pub(super) fn consumers(&self) -> Arc<Consumers> {
        Arc::clone(&self.consumers)
    }

    /// Notes where the agent works, and what to follow there.
    pub(super) fn follow(
        &self,
        places: &KcpLocations,
        catalog: watch::Receiver<Arc<Catalog>>,
        troubles: watch::Receiver<Troubles>,
    ) {
        let workspace = if places.export.path.is_empty() { &places.export.cluster } else { &places.export.path };
        *self.places.lock() = Some((places.export_name.clone(), workspace.clone()));
        *self.catalog.lock() = Some(catalog);
        *self.troubles.lock() = Some(troubles);
        // What failed elsewhere, and who was there, matters no more.
        self.metrics.recent.clear();
        self.consumers.clear();
    }

    /// Records numbers regularly, until told to stop.
    pub async fn remember(self: Arc<Self>, stop: CancellationToken) {
        loop {
            self.note();
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(EVERY) => {}
            }
        }
    }

    fn note(&self) {
        let sample = self.sample(&Numbers::read(&self.metrics.render()));
        let mut history = self.history.lock();
        if history.len() == KEPT {
            history.pop_front();
        }
        history.push_back(sample);
    }

    fn sample(&self, numbers: &Numbers) -> Sample {
        Sample {
            at: self.started.elapsed().as_secs(),
            lag_seconds: numbers.sum("sync_agent_lag_seconds"),
            queued: numbers.sum("workqueue_depth"),
            steps: numbers.sum("sync_agent_steps_total"),
            errors: numbers.sum("sync_agent_errors_total"),
        }
    }

    /// Everything that is shown now.
    pub fn state(&self) -> Value {
        let numbers = Numbers::read(&self.metrics.render());
        let problems = self.health.problems();
        let places = self.places.lock().clone();
        let (export, workspace) = places.unwrap_or_default();
        let leading = numbers.find("leader_election_master_status").map(|leads| leads > 0.5);
        let (published, failures) = (self.published(&numbers), self.metrics.recent.all());
        let failing: usize = self.orders.all().values().map(Orders::failing).sum();
        let attention = !failures.is_empty() || published.iter().any(|pr| !pr["trouble"].is_null());
        let verdict = verdict(problems.is_empty(), leading, failing, attention);
        json!({
            "agent": {
                "name": self.agent_name,
                "version": crate::VERSION,
                "slice": self.slice,
                "export": export,
                "workspace": workspace,
                "leading": leading,
                "ready": problems.is_empty(),
                "verdict": verdict.text,
                "level": verdict.level,
                "uptimeSeconds": self.started.elapsed().as_secs(),
            },
            "problems": problems,
            "now": self.sample(&numbers),
            "hops": numbers.means("sync_agent_hop_seconds", "hop"),
            "failures": failures,
            "failing": failing,
            "stopped": self.stopped(),
            "orphans": self.orphans(),
            "errors": numbers.by("sync_agent_errors_total", "reason"),
            "publishedResources": published,
            "workspaces": self.workspaces(),
            "history": &*self.history.lock(),
        })
    }

    /// Every workspace that binds the export or has orders, with what it has decided about claims.
    fn workspaces(&self) -> Vec<Value> {
        let mut bound = self.consumers.all();
        let mut counts: BTreeMap<String, usize> = bound.keys().map(|cluster| (cluster.clone(), 0)).collect();
        let all = self.orders.all();
        for (cluster, count) in all.values().flat_map(Orders::workspaces) {
            *counts.entry(cluster).or_default() += count;
        }
        let each = counts.into_iter().map(|(cluster, objects)| {
            let path = all.values().find_map(|orders| orders.path(&cluster));
            let bindings = bound.remove(&cluster).unwrap_or_default();
            let consumer = all.values().find_map(|orders| orders.consumer(&cluster));
            json!({ "cluster": cluster, "path": path, "consumer": consumer, "objects": objects, "bindings": bindings })
        });
        each.collect()
    }

    /// Why orders have stopped, reason by reason, with one order each.
    fn stopped(&self) -> Vec<Value> {
        let all = self.orders.all();
        let each = all.iter().flat_map(|(name, orders)| {
            orders.reasons().into_iter().map(move |(key, failure, count)| {
                let mut value = json!(failure);
                value["publishedResource"] = json!(name);
                value["orders"] = json!(count);
                value["example"] = json!(orders.shown(&key));
                value
            })
        });
        each.collect()
    }

    /// Copies without an order.
    fn orphans(&self) -> Vec<Value> {
        let all = self.orders.all();
        let each = all.iter().flat_map(|(name, orders)| {
            orders.orphans(ORPHANS).into_iter().map(move |mut orphan| {
                orphan["publishedResource"] = json!(name);
                orphan
            })
        });
        each.collect()
    }

    fn published(&self, numbers: &Numbers) -> Vec<Value> {
        let catalog = self.catalog.lock().as_ref().map(|catalog| catalog.borrow().clone());
        let troubles = self.troubles.lock().as_ref().map(|troubles| troubles.borrow().clone()).unwrap_or_default();
        let Some(catalog) = catalog else { return Vec::new() };
        let count =
            |family: &str, name: &str| numbers.by(family, "publishedresource").get(name).copied().unwrap_or(0.0);
        let each = catalog.resources.iter().map(|(name, pr)| {
            let conditions = pr.status.conditions.iter().map(|condition| {
                let of = |key: &str| condition.0[key].clone();
                json!({ "type": of("type"), "status": of("status"), "reason": of("reason"), "message": of("message") })
            });
            let mut shown = json!({
                "name": name,
                "kind": pr.spec.resource.kind,
                "group": pr.spec.resource.api_group,
                "schema": pr.status.resource_schema_name,
                "conditions": conditions.collect::<Vec<_>>(),
                "problem": catalog.problems.get(name).map(|problem| problem.message.clone()),
                "failing": troubles.get(name).and_then(|report| report.failing.clone()),
                "sources": count("sync_agent_source_objects", name),
                "copies": count("sync_agent_synced_objects", name),
                "orphans": count("sync_agent_orphaned_copies", name),
            });
            shown["trouble"] = json!(trouble(&shown));
            shown
        });
        each.collect()
    }

    /// The orders that are wanted: how many there are, and how far the first ones of each kind have come.
    pub(super) fn find(&self, wanted: &Wanted) -> Value {
        let (mut total, mut all) = (0, Vec::new());
        for (name, orders) in self.orders.all() {
            let (count, found) = orders.find(wanted, FOUND);
            total += count;
            all.extend(found.into_iter().map(|(key, progress)| {
                let mut value = serde_json::to_value(progress).unwrap_or_default();
                value["publishedResource"] = json!(name);
                value["key"] = json!(format!("{}/{}/{}", key.cluster, key.namespace, key.name));
                value["seconds"] = json!(self.metrics.legs.of(&key));
                value
            }));
        }
        json!({ "asked": wanted.text, "total": total, "found": all })
    }

    /// How an order, named `cluster/namespace/name`, differs from its copy; nothing if one of them is not known.
    pub(super) fn compare(&self, published_resource: &str, order: &str) -> Option<Value> {
        let orders = self.orders.all().remove(published_resource)?;
        orders.compare(&key_of(order)?).map(|comparison| json!(comparison))
    }

    /// The way of an order, named `cluster/namespace/name`, as a tree; nothing if there is no such order.
    pub(super) fn trace(&self, published_resource: &str, order: &str) -> Option<Value> {
        let orders = self.orders.all().remove(published_resource)?;
        orders.trace(&key_of(order)?).map(|way| json!(way))
    }
}

fn key_of(order: &str) -> Option<SourceKey> {
    let mut parts = order.splitn(3, '/').map(Arc::from);
    Some(SourceKey { cluster: parts.next()?, namespace: parts.next()?, name: parts.next()? })
}

#[cfg(test)]
mod tests {
    use carrick_process::Page;

    use super::*;

    #[test]
    fn a_dashboard_that_knows_nothing_says_so() {
        let (health, metrics) = (Arc::new(Health::default()), Arc::new(Metrics::default()));
        let _part = health.part("connection to kcp");
        metrics.failed("syncagent-apiexport", "Forbidden", "APIExport a", "no right");
        let dashboard = Dashboard::new("agent", "slice".to_owned(), health, metrics);
        let state = dashboard.state();
        assert_eq!(state["agent"]["ready"], false);
        assert_eq!(state["problems"], json!(["connection to kcp: starting"]));
        assert_eq!(state["errors"], json!({ "Forbidden": 1.0 }));
        assert_eq!(state["publishedResources"], json!([]));
        assert_eq!(
            (&state["failures"][0]["about"], &state["failures"][0]["times"]),
            (&json!("APIExport a"), &json!(1))
        );
        assert_eq!((&state["agent"]["verdict"], &state["agent"]["level"]), (&json!("not ready"), &json!("bad")));
        let wanted = Wanted { text: "x".to_owned(), ..Wanted::default() };
        assert_eq!(dashboard.find(&wanted), json!({ "asked": "x", "total": 0, "found": [] }));
        assert_eq!((dashboard.compare("a", "c/ns/n"), dashboard.compare("a", "c")), (None, None));
        assert_eq!((dashboard.trace("a", "c/ns/n"), dashboard.trace("a", "c")), (None, None));
    }

    #[test]
    fn the_page_needs_nothing_from_elsewhere_and_builds_no_markup_from_data() {
        for page in [PAGE, LOGIN_PAGE].map(|page| Page::html(http::StatusCode::OK, page).text) {
            for bad in ["http://", "https://", "innerHTML", "document.write", "eval(", "/* shared */"] {
                assert!(!page.replace("http://www.w3.org/2000/svg", "").contains(bad), "{bad}");
            }
            assert!(page.contains("--ground:"), "it has no style");
        }
        for good in ["<html lang=\"en\">", "<main", "aria-live=\"polite\"", "<caption>", "scope=\"col\"", "Skip to"] {
            assert!(PAGE.contains(good), "{good}");
        }
    }
}
