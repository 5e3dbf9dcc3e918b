//! How far each order has come, for the dashboard: names, times and counts, never content.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use carrick_client::Object;
use carrick_multicluster::{Fleet, FleetStore};
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::agent::metrics::fix;
use crate::agent::objects::copies;
use crate::agent::objects::deletion::orphans::Orphans;
use crate::agent::objects::feedback::drifted::DriftedOrders;
use crate::agent::objects::feedback::failing::{Failing, Failure, Station, Warned};
use crate::agent::objects::feedback::overwritten::OverwrittenCopies;
use crate::agent::objects::feedback::paused::PausedOrders;
use crate::agent::objects::source::source_key;
use crate::agent::platform_mesh::consumer::{CONSUMER_CLUSTER, Consumer, StagingRoot};
use crate::api::{FINALIZER, RELATED_PREFIX};
use crate::decide::OverwrittenCopy;
use crate::decide::compare::{Comparison, changed, compare};
use crate::rules::metadata::SourceKey;
use crate::rules::{Rules, Selection};

/// Why an order is not placed although nothing fails.
const NOT_PLACED: &str = "NotPlaced";
const NOT_SELECTED: &str = "NotSelected";

/// The orders of all PublishedResources, by name of the PublishedResource.
#[derive(Default)]
pub(crate) struct AllOrders(Mutex<BTreeMap<String, Orders>>);

impl AllOrders {
    /// Adds the orders of a PublishedResource, in place of those that were added before.
    pub fn add(&self, name: &str, orders: Orders) {
        self.0.lock().insert(name.to_owned(), orders);
    }

    /// Removes them.
    pub fn remove(&self, name: &str) {
        self.0.lock().remove(name);
    }

    /// All of them, as they are now.
    pub fn all(&self) -> BTreeMap<String, Orders> {
        self.0.lock().clone()
    }
}

/// The orders of one PublishedResource.
#[derive(Clone)]
pub(crate) struct Orders {
    pub(in crate::agent::objects) sources: FleetStore<Object>,
    pub(in crate::agent::objects) copies: FleetStore<Object>,
    /// Namespaces in consumers' workspaces, if the rules filter by them.
    pub(in crate::agent::objects) namespaces: Option<FleetStore<Object>>,
    /// The consumers' workspaces.
    pub(in crate::agent::objects) consumers: Fleet,
    /// Where a broker has its staging workspaces, if orders come from one.
    pub(in crate::agent::objects) staging_root: Option<StagingRoot>,
    /// The rules of this moment.
    pub(in crate::agent::objects) rules: watch::Receiver<Arc<Rules>>,
    /// Orders whose last reconcile failed.
    pub(in crate::agent::objects) failing: Arc<Failing>,
    /// What consumers were warned of.
    pub(in crate::agent::objects) warned: Arc<Mutex<HashMap<SourceKey, Warned>>>,
    /// Copies whose orders do not exist.
    pub(in crate::agent::objects) orphans: Arc<Orphans>,
    /// Orders that are paused.
    pub(in crate::agent::objects) paused: Arc<PausedOrders>,
    /// Orders whose copies others have changed.
    pub(in crate::agent::objects) drifted: Arc<DriftedOrders>,
    /// Orders with related objects whose copies others have changed.
    pub(in crate::agent::objects) overwritten: Arc<OverwrittenCopies>,
}

/// Which orders are looked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// A part of their workspace, namespace or name.
    pub text: String,
    /// Whether only those that have stopped on their way.
    pub stopped: bool,
    /// Only those that have stopped for this reason, if it is not empty.
    pub reason: String,
}

impl Orders {
    /// The consumers' objects, each with its logical cluster, once all endpoints were listed or the time is up.
    pub async fn listed(&self, patience: Duration) -> Vec<(String, Arc<Object>)> {
        // Without an answer, what is known has to do.
        let _ = tokio::time::timeout(patience, self.sources.wait_until(FleetStore::is_listed)).await;
        self.sources.list_all().into_iter().map(|(key, object)| (key.cluster.to_string(), object)).collect()
    }
}

/// How far one order has come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OrderProgress {
    /// Logical cluster of the consumer's workspace.
    pub cluster: String,
    /// Path of that workspace, if it is known.
    pub workspace: Option<String>,
    /// Logical cluster of the consumer, if a broker stands between her and that workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consumer: Option<String>,
    /// Namespace and name in the workspace.
    pub object: String,
    /// The consumer's object.
    pub source: ObjectSummary,
    /// Whether the finalizer holds it.
    pub held: bool,
    /// Whether a status has come back.
    pub has_status: bool,
    /// Its copy, if there is one.
    pub copy: Option<ObjectSummary>,
    /// Fields of the copy that are not as ordered: somebody else has changed them, or a write is due.
    pub changed: Vec<String>,
    /// Objects that came along from the service.
    pub related: Vec<String>,
    /// Copies of related objects that are not as their originals, because somebody else has changed them.
    pub overwritten: Vec<OverwrittenCopy>,
    /// What is paused of it, if anything is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused: Option<String>,
    /// Where and why it stopped, if it did.
    pub stopped: Option<Failure>,
}

/// What is shown of one object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ObjectSummary {
    /// Namespace and name.
    pub place: String,
    /// When it was created.
    pub created: String,
    /// Generation of its spec.
    pub generation: i64,
    /// Whether it is being deleted.
    pub deleting: bool,
}

impl Orders {
    /// How many objects there are in each workspace.
    pub fn workspaces(&self) -> BTreeMap<String, usize> {
        let clusters = self.sources.clusters().into_iter();
        clusters.map(|cluster| (cluster.to_string(), self.sources.list(&cluster).len())).collect()
    }

    /// Path of a workspace, if it is known.
    pub fn path(&self, cluster: &str) -> Option<String> {
        self.consumers.cluster(cluster).ok()?.path().map(|path| path.to_string())
    }

    /// Logical cluster of the consumer whose orders are in a workspace, if a broker stands between her and that. It is the same for all of them.
    pub fn consumer(&self, cluster: &str) -> Option<String> {
        let (root, path) = (self.staging_root.as_ref()?, self.path(cluster));
        if root.consumer(path.as_deref(), None) == Consumer::Owner {
            return None;
        }
        let of = |order: &Arc<Object>| order.annotation(CONSUMER_CLUSTER);
        self.sources
            .list(cluster)
            .iter()
            .find_map(|order| root.consumer(path.as_deref(), of(order).as_deref()).behind())
    }

    /// How many consumers have orders: whoever orders through a broker counts as herself.
    pub fn consumers(&self) -> usize {
        let each = self.sources.clusters().into_iter();
        each.map(|cluster| self.consumer(&cluster).unwrap_or_else(|| cluster.to_string()))
            .collect::<BTreeSet<_>>()
            .len()
    }

    /// How many orders are wanted, and the first `most` of them.
    pub fn find(&self, wanted: &Wanted, most: usize) -> (usize, Vec<(SourceKey, OrderProgress)>) {
        let stopped = wanted.stopped || !wanted.reason.is_empty();
        let keys: BTreeSet<SourceKey> = if stopped {
            let warned = self.warned.lock().keys().cloned().collect::<Vec<_>>();
            self.failing.keys().into_iter().chain(warned).collect()
        } else {
            self.sources.list_all().iter().map(|(key, _)| source_key(key)).collect()
        };
        let is_wanted = |key: &SourceKey| {
            let why = || self.failing.get(key).map_or(NOT_PLACED.to_owned(), |failure| failure.reason);
            (wanted.reason.is_empty() || wanted.reason == why()) && self.is_about(key, &wanted.text)
        };
        let mut found: Vec<SourceKey> = keys.into_iter().filter(is_wanted).collect();
        // Whoever names an order wants no other one whose name begins the same.
        if let Some(exact) = found.iter().find(|key| self.names(key).contains(&wanted.text)).cloned() {
            found = vec![exact];
        }
        let first = found.iter().take(most).filter_map(|key| {
            let source = self.sources.get(&key.cluster, &key.namespace, &key.name)?;
            Some((key.clone(), self.progress(key, &source)))
        });
        (found.len(), first.collect())
    }

    fn is_about(&self, key: &SourceKey, text: &str) -> bool {
        text.is_empty() || self.names(key).iter().any(|name| name.contains(text))
    }

    /// An order with the logical cluster of its workspace, with that of the consumer behind a broker, and with the path of the workspace, if it
    /// is known.
    fn names(&self, key: &SourceKey) -> Vec<String> {
        let below = |workspace: &str| format!("{workspace}/{}/{}", key.namespace, key.name);
        let behind = self.consumer(&key.cluster).map(|consumer| below(&consumer));
        let path = self.path(&key.cluster).map(|path| below(&path));
        [Some(below(&key.cluster)), behind, path].into_iter().flatten().collect()
    }

    /// How an order and its copy differ; nothing if one of them does not exist.
    pub fn compare(&self, key: &SourceKey) -> Option<Comparison> {
        let source = self.sources.get(&key.cluster, &key.namespace, &key.name)?.value();
        let rules = self.rules.borrow().clone();
        let copy = copies::of(&self.copies, key, &rules.remote.resource()).first()?.value();
        Some(compare(&rules, &source, &copy, &self.drifted.fields(key, &rules.local.resource())))
    }

    /// An order as people know it: by the path of its workspace, if that is known.
    pub fn shown(&self, key: &SourceKey) -> String {
        self.names(key).pop().unwrap_or_default()
    }

    /// The first copies whose orders do not exist: whose they were, and how to delete each.
    pub fn orphans(&self, most: usize) -> Vec<Value> {
        let resource = self.rules.borrow().local.resource();
        let each = self.orphans.first(most).into_iter().map(|(key, copy)| {
            json!({ "copy": copy, "resource": resource, "order": self.shown(&key), "fix": copy.deletion(&resource) })
        });
        each.collect()
    }

    /// How many orders fail.
    pub fn failing(&self) -> usize {
        self.failing.len()
    }

    /// Why orders have stopped, reason by reason: one order each, and how many there are.
    pub fn reasons(&self) -> Vec<(SourceKey, Failure, usize)> {
        let mut reasons = self.failing.reasons();
        let warned = self.warned.lock();
        let mut refused: Vec<_> = warned.iter().filter(|(key, _)| self.failing.get(key).is_none()).collect();
        refused.sort_unstable_by_key(|(key, _)| *key);
        if let Some((key, warned)) = refused.first() {
            reasons.push(((*key).clone(), not_placed(NOT_PLACED, &warned.message), refused.len()));
        }
        reasons.sort_unstable_by(|(_, a, _), (_, b, _)| a.reason.cmp(&b.reason));
        reasons
    }

    /// Where and why an order has stopped, if it has.
    fn stopped(&self, key: &SourceKey, source: &Value, rules: &Rules) -> Option<Failure> {
        if let Some(failure) = self.failing.get(key) {
            return Some(failure);
        }
        if let Some(warned) = self.warned.lock().get(key) {
            return Some(not_placed(NOT_PLACED, &warned.message));
        }
        let namespace = self.namespaces.as_ref().and_then(|known| known.get(&key.cluster, "", &key.namespace));
        let selected = rules.selects(source, namespace.map(|namespace| namespace.value()).as_ref());
        let out = || not_placed(NOT_SELECTED, "spec.filter of the PublishedResource does not select it");
        (selected == Selection::Out).then(out)
    }

    pub(super) fn progress(&self, key: &SourceKey, source: &Arc<Object>) -> OrderProgress {
        let (value, rules) = (source.value(), self.rules.borrow().clone());
        let metadata = &value["metadata"];
        let annotations = metadata["annotations"].as_object();
        let related = annotations.into_iter().flatten().filter_map(|(name, text)| {
            let identifier = name.strip_prefix(RELATED_PREFIX)?;
            let about: Value = serde_json::from_str(text.as_str()?).ok()?;
            Some(format!("{identifier}: {}", full_name(about["namespace"].as_str(), about["name"].as_str()?)))
        });
        let copies = copies::of(&self.copies, key, &rules.remote.resource());
        let copy = copies.first();
        OrderProgress {
            cluster: key.cluster.to_string(),
            workspace: self.path(&key.cluster),
            consumer: self.consumer(&key.cluster),
            object: full_name(Some(&key.namespace), &key.name),
            source: summary(source, &value),
            held: metadata["finalizers"].as_array().is_some_and(|all| all.iter().any(|one| one == FINALIZER)),
            has_status: value["status"].as_object().is_some_and(|status| !status.is_empty()),
            changed: copy.and_then(|copy| differing(&rules, &value, &copy.value())).unwrap_or_default(),
            copy: copy.map(|copy| summary(copy, &copy.value())),
            related: related.collect(),
            overwritten: self.overwritten.of(key),
            paused: self.paused.words(key),
            stopped: self.stopped(key, &value, &rules),
        }
    }
}

/// Fields of a copy that are not as ordered, as far as the rules tell what is ordered.
fn differing(rules: &Rules, source: &Value, copy: &Value) -> Option<Vec<String>> {
    Some(changed(&rules.mutation.spec(source, Some(copy)).ok()?, copy))
}

/// An order that is not placed although nothing fails. Since when is not known.
fn not_placed(reason: &str, message: &str) -> Failure {
    Failure {
        station: Station::Copy,
        reason: reason.to_owned(),
        message: message.to_owned(),
        lasts: true,
        since: String::new(),
        at: String::new(),
        times: 0,
        fix: fix(reason),
    }
}

fn summary(object: &Object, value: &Value) -> ObjectSummary {
    ObjectSummary {
        place: full_name(Some(&object.namespace), &object.name),
        created: value["metadata"]["creationTimestamp"].as_str().unwrap_or_default().to_owned(),
        generation: object.generation,
        deleting: object.is_deleting(),
    }
}

fn full_name(namespace: Option<&str>, name: &str) -> String {
    match namespace {
        None | Some("") => name.to_owned(),
        Some(namespace) => format!("{namespace}/{name}"),
    }
}
