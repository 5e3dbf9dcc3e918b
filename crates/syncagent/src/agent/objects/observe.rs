//! Observe: everything that matters for one order, from caches where they know and from servers where they do not.
#![allow(clippy::result_large_err)] // failures are rare, and reported at once

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use carrick_client::{Object, Resource};
use carrick_kcp::kinds::LOGICAL_CLUSTER;
use carrick_kcp::{LOGICAL_CLUSTER_NAME, PATH_ANNOTATION};
use serde_json::Value;

use super::copies;
use super::error::ReconcileError;
use super::order::Order;
use super::quota::ranking;
use super::reader::{RelatedRead, RelatedReader};
use super::related::users::Leaving;
use super::related::{held, kinds};
use crate::agent::connect::resource;
use crate::agent::platform_mesh::consumer::{CONSUMER_CLUSTER, Consumer};
use crate::decide::state::PrimaryState;
use crate::decide::{Claim, Copies, ObjectAddress, Plan, PrimaryView, address_of_new_copy, claim};
use crate::rules::metadata::annotation;
use crate::rules::naming::Workspace;
use crate::rules::{Rules, Selection};

/// Everything that was observed of one order.
pub(super) struct Observed {
    /// Path of the workspace, if the rules ask for it.
    pub path: Option<String>,
    /// Logical cluster of the consumer, if a broker stands between her and the workspace.
    consumer: Option<String>,
    /// The namespace in kcp, if the rules filter by it.
    namespace: Option<Value>,
    /// Other sources of the same name whose copies are of the same kind.
    pub rivals: Vec<(Arc<Rules>, Value)>,
    /// The copies; there should be one at most.
    pub copies: Vec<Value>,
    names: Vec<String>,
    /// Other objects that carry the link of the copy.
    clones: Vec<String>,
    /// What is remembered.
    state: PrimaryState,
    /// Objects in kcp that are held together with the order, if it is released.
    others: Vec<(ObjectAddress, Value)>,
    /// Related objects; nothing as long as they were not needed.
    pub related: RelatedRead,
    was_released: bool,
    /// Names of agents that are no more.
    former: Arc<BTreeSet<String>>,
    /// How many other objects of the workspace come first; nothing while not all of them are known.
    pub ahead: Option<usize>,
    /// When that was.
    now: String,
    /// The `managedFields` of the copy, if they were needed; null if they could not be read.
    managed: Option<Value>,
}

/// Observes one order. Related objects are left for [`Observed::read_related`]: mostly they are not needed.
pub(super) async fn observe(order: &Order<'_>) -> Result<Observed, ReconcileError> {
    let Order { shared, rules, key, source, .. } = order;
    let deleting = order.is_deleting();
    // The end of an order needs neither; what can no longer be read must not hold it up.
    let namespace = unless(deleting, namespace(order).await)?;
    let path = unless(deleting, workspace_path(order).await)?;
    let consumer = order.shared.consumer(order.cluster, || annotation(source, CONSUMER_CLUSTER).map(str::to_owned));
    let rivals = rivals(order).await?;
    let mut found = own_copies(order, &rivals)?;
    if deleting && !found.is_empty() && shared.no_kind.load(Ordering::Relaxed) {
        // What the cache shows went with its kind.
        let gone = kinds::is_gone(&shared.context.local, &rules.local).await;
        if gone.map_err(|source| order.unreadable(rules.local.resource(), source))? {
            found.clear();
        }
    }
    if consumer == Consumer::Unknown && !deleting && found.is_empty() && rules.naming.asks_for_consumer() {
        return Err(ReconcileError::NoConsumer);
    }
    let consumer = consumer.behind();
    let workspace = Workspace { path: path.as_deref(), consumer: consumer.as_deref() };
    let clones = set_clones_aside(order, workspace, &mut found);
    // The end of an order needs no more than metadata.
    if !deleting && rules.selects(source, namespace.as_ref()) != Selection::Out {
        check_whole(order, &found)?;
    }
    let copies: Vec<Value> = found.iter().map(|copy| copy.value()).collect();
    let mut observed = Observed {
        path,
        consumer,
        namespace,
        rivals,
        names: copies.iter().map(full_name).collect(),
        clones,
        copies,
        state: shared.states.get(&rules.remote, key),
        others: Vec::new(),
        related: RelatedRead::default(),
        was_released: shared.was_released(key),
        former: shared.context.former.borrow().clone(),
        ahead: Some(0),
        now: now(),
        managed: None,
    };
    let selected = rules.selects(source, observed.namespace.as_ref());
    if !observed.copies.is_empty() && selected != Selection::Out {
        shared.places.settle(key);
    } else if selected == Selection::Out {
        shared.free_place(key);
    } else if selected == Selection::In && !deleting && !observed.seen(order).has_place(rules) {
        observed.ahead = ranking::ahead(order);
    } else if deleting {
        shared.places.stop_waiting(key);
    }
    let released = observed.seen(order).must_release(rules);
    // Noted before anybody is asked who else uses what it shares: of several that go at once, the last one sees that nobody is left.
    let leaving = match (deleting, released) {
        (true, _) => Some(Leaving::Ends),
        (false, true) => Some(Leaving::Released),
        (false, false) => None,
    };
    shared.states.leave(&rules.remote, key, leaving);
    if observed.state.partial && (deleting || released) {
        observed.read_memory(order).await?;
    }
    if leaving.is_some() {
        let asked = shared.ask_about_others(order.kcp(), rules, key, &observed.state).await;
        asked.map_err(|source| order.unreadable("other orders that share its related objects", source))?;
    }
    if released {
        let is_needed = |at: &ObjectAddress| shared.is_needed(rules, key, at);
        let read = held::read(order.kcp(), &observed.state, key, deleting, is_needed, order.reaching()).await;
        observed.others = read.map_err(|source| order.unreadable("objects that are held together with it", source))?;
    }
    Ok(observed)
}

impl Observed {
    /// What the rules ask for of the workspace.
    pub fn workspace(&self) -> Workspace<'_> {
        Workspace { path: self.path.as_deref(), consumer: self.consumer.as_deref() }
    }

    /// The same for those who decide.
    pub fn seen<'a>(&'a self, order: &'a Order<'_>) -> PrimaryView<'a> {
        PrimaryView {
            key: order.key,
            workspace: self.workspace(),
            source: Some(&order.source),
            namespace: self.namespace.as_ref(),
            copies: match self.copies.as_slice() {
                [] => Copies::None,
                [copy] => Copies::One(copy),
                _ => Copies::Many(&self.names),
            },
            state: &self.state,
            related: (!self.related.is_empty()).then_some(&self.related.view),
            others: &self.others,
            released: self.was_released,
            former: &self.former,
            ahead: self.ahead.unwrap_or_default(),
            now: &self.now,
            managed: self.managed.as_ref(),
            ended: order.source["metadata"]["uid"].as_str().is_some_and(|uid| order.shared.states.has_ended(uid)),
        }
    }

    /// What is said about other objects that carry the link of the copy.
    pub fn notices(&self) -> Option<String> {
        (!self.clones.is_empty()).then(|| {
            format!(
                "its link is also on {}, which nobody made for it and which is left alone; remove the labels syncagent.kcp.io/… there, or delete it",
                self.clones.join(", ")
            )
        })
    }

    /// Whether related objects must be read before a plan is complete.
    pub fn lacks_related(&self, order: &Order<'_>, plan: &Plan) -> bool {
        let Order { rules, .. } = order;
        let looks = (!rules.reads.is_empty() || rules.report.is_some()) && !order.is_deleting();
        let has_related = looks || !rules.related.is_empty() || self.state.records().next().is_some();
        has_related && !plan.needs_memory && (order.is_deleting() || plan.steps.is_empty())
    }

    /// Whether the rules name related objects that were not looked at.
    pub fn lacks_related_so_far(&self, order: &Order<'_>) -> bool {
        let names_any = !order.rules.related.is_empty() || !order.rules.reads.is_empty();
        names_any && self.related.is_empty() && !order.is_deleting()
    }

    /// Reads the related objects.
    pub async fn read_related(&mut self, order: &Order<'_>) -> Result<(), ReconcileError> {
        let reader = RelatedReader {
            kcp: order.kcp(),
            shared: order.shared,
            rules: &order.rules,
            user: order.shared.primary_key(order.key),
            key: order.key,
            state: &self.state,
            source: &order.source,
            copy: self.copies.first(),
            path: self.path.as_deref(),
        };
        self.related = if order.is_deleting() { reader.read_last().await? } else { reader.read().await? };
        Ok(())
    }

    /// Reads who has written which field of the copy. Whoever may not read it reports drift without a name; a server that cannot answer now is asked again.
    pub async fn read_managers(&mut self, order: &Order<'_>) -> Result<(), ReconcileError> {
        let read = match self.copies.first() {
            Some(copy) => {
                let (client, metadata) = (&order.shared.context.local, &copy["metadata"]);
                let (namespace, name) = (metadata["namespace"].as_str(), metadata["name"].as_str());
                client.get(&kinds::resource(&order.rules.local), namespace, name.unwrap_or_default()).await
            }
            None => Ok(None),
        };
        let read = match read {
            Err(source) if source.is_transient() => return Err(order.unreadable("who has changed the copy", source)),
            read => read.ok().flatten(),
        };
        self.managed = Some(read.map_or(Value::Null, |mut copy| copy["metadata"]["managedFields"].take()));
        Ok(())
    }

    /// Reads everything that is remembered, where only checksums are in memory.
    pub async fn read_memory(&mut self, order: &Order<'_>) -> Result<(), ReconcileError> {
        let read = order.shared.states.read(&order.rules.remote, order.key).await;
        self.state = read.map_err(|source| order.unreadable("the state Secret", source))?;
        Ok(())
    }
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

/// The namespace of the object in kcp, if the rules filter by it.
async fn namespace(order: &Order<'_>) -> Result<Option<Value>, ReconcileError> {
    let Order { shared, rules, key, .. } = order;
    let (true, Some(known)) = (rules.filters_by_namespace(), &shared.consumer_namespaces) else { return Ok(None) };
    if let Some(namespace) = known.get(&key.cluster, "", &key.namespace) {
        return Ok(Some(namespace.value()));
    }
    // The watch of objects may be ahead of that of namespaces.
    let namespaces = Resource::cluster_wide("", "v1", "Namespace", "namespaces");
    let read = order.kcp().get(&namespaces, None, &key.namespace).await;
    read.map_err(|source| order.unreadable(format!("namespace {}", key.namespace), source))
}

/// The path of the object's workspace, if the rules ask for it. Where its bindings do not name it, it is read once: it never changes.
async fn workspace_path(order: &Order<'_>) -> Result<Option<String>, ReconcileError> {
    let Order { shared, rules, cluster, .. } = order;
    if !rules.workspace_paths {
        return Ok(None);
    }
    if let Some(path) = cluster.path() {
        return Ok(Some(path.to_string()));
    }
    if let Some(path) = shared.paths.lock().get(cluster.name()) {
        return Ok(Some(path.clone()));
    }
    let logical_cluster = order.kcp().get(&resource(&LOGICAL_CLUSTER), None, LOGICAL_CLUSTER_NAME).await;
    let logical_cluster =
        logical_cluster.map_err(|source| ReconcileError::Path { cluster: cluster.name().to_string(), source })?;
    let path = logical_cluster.as_ref().and_then(|object| annotation(object, PATH_ANNOTATION)).unwrap_or_default();
    shared.paths.lock().insert(cluster.name().clone(), path.to_owned());
    Ok(Some(path.to_owned()))
}

/// Other sources of the same name, of other PublishedResources whose copies are of the same kind.
async fn rivals(order: &Order<'_>) -> Result<Vec<(Arc<Rules>, Value)>, ReconcileError> {
    let Order { shared, rules, key, cluster, .. } = order;
    let mut rivals = Vec::new();
    for (theirs, store) in shared.related.primaries.rivals(rules) {
        let found = if store.is_synced(cluster.endpoint()) {
            store.get(&key.cluster, &key.namespace, &key.name).map(|object| object.value())
        } else {
            let found = order.kcp().get(&kinds::resource(&theirs.remote), Some(&*key.namespace), &key.name).await;
            let what = || format!("{} {}", theirs.remote.resource(), key.name);
            found.map_err(|source| order.unreadable(what(), source))?
        };
        rivals.extend(found.map(|found| (theirs, found)));
    }
    Ok(rivals)
}

/// The copies of a source, without those that belong to a source of another kind.
fn own_copies(order: &Order<'_>, rivals: &[(Arc<Rules>, Value)]) -> Result<Vec<Arc<Object>>, ReconcileError> {
    let Order { shared, rules, key, source, .. } = order;
    let mut own = Vec::new();
    for copy in copies::of(&shared.copies, key, &rules.remote.resource()) {
        if claim(rules, key, source, rivals, &copy.value())? == Claim::Ours {
            own.push(copy);
        }
    }
    Ok(own)
}

/// Leaves out objects that carry the link of a copy and are not the copy: of several, that is where the rules place it. Once it is deleted, whatever is
/// left is not the copy either. Returns their names.
fn set_clones_aside(order: &Order<'_>, workspace: Workspace<'_>, found: &mut Vec<Arc<Object>>) -> Vec<String> {
    let Order { shared, rules, key, source, .. } = order;
    let uid = source["metadata"]["uid"].as_str().unwrap_or_default();
    let deleted = shared.left.deleted_at(key, uid);
    let is_known = deleted.is_some();
    let at = match (deleted, found.len()) {
        (None, 0 | 1) => return Vec::new(),
        (Some(at), _) => Some(at),
        (None, _) => address_of_new_copy(rules, key, workspace, source).ok(),
    };
    let is_at = |copy: &Object, at: &ObjectAddress| {
        *copy.name == *at.name && *copy.namespace == *at.namespace.as_deref().unwrap_or_default()
    };
    let is_copy = |copy: &Arc<Object>| at.as_ref().is_some_and(|at| is_at(copy, at));
    // Where none of them is in that place, nobody knows.
    if !is_known && !found.iter().any(is_copy) {
        return Vec::new();
    }
    let (copy, clones): (Vec<_>, Vec<_>) = found.drain(..).partition(is_copy);
    *found = copy;
    clones.iter().map(|clone| format!("{}/{}", clone.namespace, clone.name)).collect()
}

/// Refuses objects of which there is only metadata.
fn check_whole(order: &Order<'_>, copies: &[Arc<Object>]) -> Result<(), ReconcileError> {
    if let Some(bytes) = order.left_out {
        return Err(ReconcileError::NoRoom { bytes, most: order.shared.context.budget.cached_bytes });
    }
    if let Some(problem) = order.too_deep {
        return Err(ReconcileError::TooDeep { what: "the object".to_owned(), problem });
    }
    let deep = copies.iter().find_map(|copy| Some((copy, copy.too_deep()?)));
    let Some((copy, problem)) = deep else { return Ok(()) };
    Err(ReconcileError::TooDeep { what: format!("its copy {}/{}", copy.namespace, copy.name), problem })
}

/// The time, as conditions have it.
pub(super) fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

fn full_name(object: &Value) -> String {
    let text = |key: &str| object["metadata"][key].as_str().unwrap_or_default();
    format!("{}/{}", text("namespace"), text("name"))
}
