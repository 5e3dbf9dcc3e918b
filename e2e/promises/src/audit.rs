//! The audit: what agents wrote, and whether they were allowed to.
//!
//! ```text
//!   requests of agents ─▶ writes      only what is theirs, only at places that the undisturbed run wrote to as well
//!                     └─▶ grievances  a related copy that was deleted although it was needed, found in that very moment
//!   both stores ────────▶ changes     no older spec over a newer one, no copy that passes from one source to another
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anyhow::ensure;
use carrick_e2e_stage::stage::{NAMESPACE, Stage};
use carrick_e2e_stage::world::{ADMIN_AGENT, AGENT, EmbeddedWorld};
use carrick_plane::faults::{Effect, Record, RequestInfo};
use carrick_plane::{Change, Key, Kind, Mode, Plane, Store};
use carrick_syncagent::api;
use futures::StreamExt;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::flow::Flow;
use super::lab::Lab;
use super::switch::described;

/// One write of an agent.
#[derive(Debug, Clone)]
pub struct Write {
    /// What it was sent to.
    pub server: Mode,
    /// What was asked.
    pub ask: RequestInfo,
    /// What was answered; zero if nothing was.
    pub code: u16,
}

/// All writes of agents, and all changes of objects, since a lab was opened.
#[derive(Clone)]
pub struct Audit {
    writes: Arc<Mutex<Vec<Write>>>,
    changes: Arc<Mutex<Changes>>,
    scene: Arc<Scene>,
    grievances: Arc<Mutex<Vec<String>>>,
    known: Arc<Mutex<Option<BTreeSet<String>>>>,
}

/// Changes of both stores, each in its order.
#[derive(Default)]
struct Changes {
    kcp: Vec<Arc<Change>>,
    service: Vec<Arc<Change>>,
}

/// What must be known to judge a write in the moment it happens.
struct Scene {
    kcp: Arc<Store>,
    service: Arc<Store>,
    sources: String,
    related: &'static [&'static str],
    drops_related: bool,
}

impl Audit {
    /// Begins to listen on both planes.
    pub fn begin(world: &EmbeddedWorld, stage: &Stage, flow: &Flow) -> Self {
        let store = |plane: &Plane| plane.store().clone();
        let source = (flow.source)(stage);
        let scene = Scene {
            kcp: store(world.kcp_plane()),
            service: store(world.service_plane()),
            sources: source.plural.to_string(),
            related: flow.related,
            drops_related: flow.drops_related,
        };
        let audit = Self {
            writes: Arc::default(),
            changes: Arc::default(),
            scene: Arc::new(scene),
            grievances: Arc::default(),
            known: Arc::default(),
        };
        for plane in [world.kcp_plane(), world.service_plane()] {
            audit.listen(plane);
        }
        audit
    }

    fn listen(&self, plane: &Plane) {
        let (server, writes) = (plane.mode(), self.writes.clone());
        let (scene, grievances) = (self.scene.clone(), self.grievances.clone());
        plane.faults().observe(move |record| {
            let ask = &record.ask;
            if [ADMIN_AGENT, AGENT].contains(&ask.user.as_str()) && ask.is_write() {
                grievances.lock().extend(scene.judge(server, record));
                writes.lock().push(Write { server, ask: ask.clone(), code: record.code });
            }
        });
        let store = plane.store().clone();
        let Ok(mut stream) = store.watch(store.revision()) else { return };
        let changes = self.changes.clone();
        tokio::spawn(async move {
            while let Some(change) = stream.next().await {
                let mut changes = changes.lock();
                if server == Mode::Kcp { changes.kcp.push(change) } else { changes.service.push(change) }
            }
        });
    }

    /// All writes so far.
    pub fn writes(&self) -> Vec<Write> {
        self.writes.lock().clone()
    }

    /// The last writes, in words.
    pub fn last(&self, count: usize) -> Vec<String> {
        let writes = self.writes.lock();
        let last = writes.iter().rev().take(count).rev();
        last.map(|write| format!("{} -> {}", described(&write.ask, &format!("{:?}", write.server)), write.code))
            .collect()
    }

    /// The places written to so far: later writes must not go elsewhere.
    pub fn places(&self, lab: &Lab) -> BTreeSet<String> {
        let writes = self.writes.lock();
        writes.iter().filter(|write| is_placed(&write.ask)).map(|write| place(lab, write)).collect()
    }

    /// Allows no writes but to these places.
    pub fn allow_only(&self, places: BTreeSet<String>) {
        *self.known.lock() = Some(places);
    }

    /// Nothing but its own was written by the agent, at no other place than in the undisturbed run, and no older spec over a newer one.
    pub fn check(&self, lab: &Lab) -> anyhow::Result<()> {
        let known = self.known.lock().clone();
        for write in self.writes.lock().iter() {
            let fine = match write.server {
                Mode::Kcp => allowed_in_kcp(lab, &write.ask),
                Mode::Kube => allowed_on_service(lab, &write.ask),
            };
            ensure!(fine, "the agent wrote what it must not: {} {}", write.ask.method, write.ask.path);
            let Some(known) = known.as_ref().filter(|_| is_placed(&write.ask)) else { continue };
            let place = place(lab, write);
            ensure!(known.contains(&place), "the agent wrote to a strange place: {} {place}", write.ask.verb);
        }
        let grievances = self.grievances.lock();
        ensure!(grievances.is_empty(), "{grievances:#?}");
        self.faithful(lab)?;
        if lab.flow.verbatim { self.in_order(lab) } else { Ok(()) }
    }

    /// Every copy names a source that there was at its place, and never another one.
    fn faithful(&self, lab: &Lab) -> anyhow::Result<()> {
        let changes = self.changes.lock();
        let plural = &*lab.source_kind().plural;
        let mut sources: BTreeMap<(String, String), BTreeSet<String>> = BTreeMap::new();
        for change in changes.kcp.iter().filter(|change| *change.key.kind.resource == *plural) {
            if let Some(object) = change.now() {
                let key = (change.key.cluster.to_string(), change.key.name.to_string());
                sources.entry(key).or_default().insert(text(&object["metadata"]["uid"]));
            }
        }
        let mut owners: BTreeMap<String, String> = BTreeMap::new();
        let plural = &*lab.copy_kind().plural;
        for change in changes.service.iter().filter(|change| *change.key.kind.resource == *plural) {
            let Some(object) = change.now() else { continue };
            let metadata = &object["metadata"];
            let owner = text(&metadata["annotations"][api::REMOTE_UID]);
            if owner.is_empty() {
                continue;
            }
            let key =
                (text(&metadata["labels"][api::REMOTE_CLUSTER]), text(&metadata["annotations"][api::REMOTE_NAME]));
            let named = sources.get(&key).is_some_and(|uids| uids.contains(&owner));
            ensure!(named, "a copy of {key:?} names a source that never was: {metadata}");
            let before = owners.insert(text(&metadata["uid"]), owner.clone());
            let same = before.is_none_or(|before| before == owner);
            ensure!(same || lab.flow.passes_on, "a copy of {key:?} passed from one source to another: {metadata}");
        }
        Ok(())
    }

    /// The specs of every copy are some of those that its source had, in the same order.
    fn in_order(&self, lab: &Lab) -> anyhow::Result<()> {
        let changes = self.changes.lock();
        let plural = &*lab.source_kind().plural;
        let mut sources: BTreeMap<(String, String), Vec<Value>> = BTreeMap::new();
        for change in changes.kcp.iter().filter(|change| *change.key.kind.resource == *plural) {
            if let Some(object) = change.now() {
                let key = (change.key.cluster.to_string(), change.key.name.to_string());
                sources.entry(key).or_default().push(object["spec"].clone());
            }
        }
        let mut reached: BTreeMap<(String, String), usize> = BTreeMap::new();
        let plural = &*lab.copy_kind().plural;
        for change in changes.service.iter().filter(|change| *change.key.kind.resource == *plural) {
            let Some(object) = change.now() else { continue };
            let text = |field: &str, key: &str| text(&object["metadata"][field][key]);
            let key = (text("labels", api::REMOTE_CLUSTER), text("annotations", api::REMOTE_NAME));
            let mut spec = object["spec"].clone();
            if spec["owner"] == "operator" {
                spec = without_owner(spec);
            }
            let specs = sources.get(&key).map(Vec::as_slice).unwrap_or_default();
            let from = reached.get(&key).copied().unwrap_or_default();
            let found = specs.iter().skip(from).position(|source| *source == spec);
            ensure!(
                found.is_some(),
                "an older spec over a newer one: the copy of {key:?} became {spec} after {:?}; its source was {}",
                specs.get(from),
                json!(specs)
            );
            reached.insert(key, from + found.unwrap_or_default());
        }
        Ok(())
    }
}

impl Scene {
    /// Why a request of the agent was wrong, if it was: a related copy is deleted only when its order or its original has come to an end.
    fn judge(&self, server: Mode, record: &Record) -> Option<String> {
        let ask = &record.ask;
        let lost = |effect: &Effect| matches!(effect, Effect::ApplyThenCut | Effect::ApplyThenRefuse { .. });
        let done = record.code == 200 || record.effects.iter().any(lost);
        let is_related = self.related.contains(&ask.resource.as_str()) && !ask.name.starts_with("obj-state-");
        if ask.verb != "delete" || !done || !is_related || self.drops_related {
            return None;
        }
        // Copies of what is in kcp are in namespaces called after clusters.
        let (store, cluster, (there, namespace)) = match server {
            Mode::Kube => (&self.kcp, &ask.namespace, (ask.namespace.as_str(), NAMESPACE)),
            Mode::Kcp => (&self.service, &ask.cluster_name, ("", ask.cluster_name.as_str())),
        };
        let name = ask.name.strip_prefix("my-").unwrap_or(&ask.name);
        let orders = living(&self.kcp, cluster, &self.sources);
        // Some are chosen by a label that names the order they are for.
        let is_meant = |object: &Value| match object["metadata"]["labels"]["for"].as_str() {
            Some(order) => orders.iter().any(|(key, _)| &*key.name == order),
            None => true,
        };
        let original_lives = living(store, there, &ask.resource)
            .iter()
            .any(|(key, object)| &*key.namespace == namespace && &*key.name == name && is_meant(object));
        let order_lives =
            orders.iter().any(|(key, _)| name.starts_with(&format!("{}-", key.name)) || ask.name.starts_with("my-"));
        (original_lives && order_lives).then(|| {
            format!("a related copy was deleted while it was needed: {}", described(ask, &format!("{server:?}")))
        })
    }
}

/// The objects of a cluster that are not on their way out, by the plural of their kind.
fn living(store: &Store, cluster: &str, plural: &str) -> Vec<(Key, Arc<Value>)> {
    let kinds: Vec<Kind> = store.kinds(cluster).into_iter().filter(|kind| &*kind.resource == plural).collect();
    let objects = kinds.iter().flat_map(|kind| store.list(kind, Some(cluster), None).1);
    let lives = |object: &Value| object["metadata"]["deletionTimestamp"].is_null();
    objects.map(|(key, object)| (key, object.value())).filter(|(_, object)| lives(object)).collect()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn without_owner(mut spec: Value) -> Value {
    if let Some(fields) = spec.as_object_mut() {
        fields.remove("owner");
    }
    spec
}

/// Whether the place of a write is compared: events have names by chance, leases are not work, and of a new object that was lost on its way
/// not even the name is known.
fn is_placed(ask: &RequestInfo) -> bool {
    !["events", "leases"].contains(&ask.resource.as_str()) && !is_lost(ask)
}

/// Whether the content of a new object never arrived.
fn is_lost(ask: &RequestInfo) -> bool {
    ask.verb == "create" && ask.name.is_empty()
}

fn place(lab: &Lab, write: &Write) -> String {
    let RequestInfo { resource, cluster_name, namespace, name, .. } = &write.ask;
    // Named after a checksum of the agent's name, which is another one in each run.
    let name = if name.starts_with("ended-orders-") { "ended-orders" } else { name };
    lab.eyes.alias(&format!("{:?} {cluster_name} {resource} {namespace}/{name}", write.server))
}

fn allowed_in_kcp(lab: &Lab, ask: &RequestInfo) -> bool {
    let stage = &lab.stage;
    let verb = ask.verb.as_str();
    let resource = ask.resource.as_str();
    if resource == "events" {
        return true;
    }
    if ask.cluster_name == stage.provider.cluster {
        return match resource {
            "apiexports" => ask.name == stage.export_name() && verb != "delete",
            "apiresourceschemas" => verb != "delete",
            _ => false,
        };
    }
    let is_team = [&stage.team_a, &stage.team_b].iter().any(|team| team.cluster == ask.cluster_name);
    let source = lab.source_kind();
    // Sources belong to consumers: the agent holds and releases them, and writes their status, no more.
    let of_source = *source.plural == *resource && ["patch", "update"].contains(&verb);
    let in_namespace = ask.namespace == NAMESPACE || (ask.namespace.is_empty() && !source.namespaced);
    is_team && ask.is_virtual && in_namespace && (of_source || lab.flow.related.contains(&resource))
}

fn allowed_on_service(lab: &Lab, ask: &RequestInfo) -> bool {
    let is_memory = ["obj-state-", "ended-orders-"].iter().any(|kind| ask.name.starts_with(kind));
    let of_state = ask.namespace == lab.stage.agent_namespace() && (is_memory || is_lost(ask));
    match ask.resource.as_str() {
        "events" | "leases" => true,
        "publishedresources" => ask.subresource == "status",
        "namespaces" => ask.verb == "create",
        "secrets" if of_state => true,
        resource => {
            let elsewhere = ask.namespace != lab.stage.agent_namespace();
            elsewhere && (*lab.copy_kind().plural == *resource || lab.flow.related.contains(&resource))
        }
    }
}
