//! The audit: what agents wrote, and whether they were allowed to.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::ensure;
use carrick_plane::faults::Ask;
use carrick_plane::{Change, Mode, Plane};
use carrick_syncagent::api;
use futures::StreamExt;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::lab::Lab;
use super::switch::described;
use crate::world::{ADMIN_AGENT, AGENT, EmbeddedWorld};

/// One write of an agent.
#[derive(Debug, Clone)]
pub struct Write {
    /// What it was sent to.
    pub server: Mode,
    /// What was asked.
    pub ask: Ask,
    /// What was answered; zero if nothing was.
    pub code: u16,
}

/// All writes of agents, and all changes of objects, since a lab was opened.
#[derive(Clone, Default)]
pub struct Audit {
    writes: Arc<Mutex<Vec<Write>>>,
    changes: Arc<Mutex<Changes>>,
}

/// Changes of both stores, each in its order.
#[derive(Default)]
struct Changes {
    kcp: Vec<Arc<Change>>,
    service: Vec<Arc<Change>>,
}

impl Audit {
    /// Begins to listen on both planes.
    pub fn begin(world: &EmbeddedWorld) -> Self {
        let audit = Self::default();
        for plane in [world.kcp_plane(), world.service_plane()] {
            audit.listen(plane);
        }
        audit
    }

    fn listen(&self, plane: &Plane) {
        let (server, writes) = (plane.api().mode, self.writes.clone());
        plane.faults().observe(move |record| {
            let ask = &record.ask;
            if [ADMIN_AGENT, AGENT].contains(&ask.user.as_str()) && ask.is_write() {
                writes.lock().push(Write { server, ask: ask.clone(), code: record.code });
            }
        });
        let store = plane.api().store.clone();
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

    /// Nothing but its own was written by the agent, and no older spec over a newer one.
    pub fn check(&self, lab: &Lab) -> anyhow::Result<()> {
        for write in self.writes.lock().iter() {
            let fine = match write.server {
                Mode::Kcp => allowed_in_kcp(lab, &write.ask),
                Mode::Kube => allowed_on_service(lab, &write.ask),
            };
            ensure!(fine, "the agent wrote what it must not: {} {}", write.ask.method, write.ask.path);
        }
        if lab.flow.verbatim { self.in_order(lab) } else { Ok(()) }
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
            let text = |field: &str, key: &str| object["metadata"][field][key].as_str().unwrap_or_default().to_owned();
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

fn without_owner(mut spec: Value) -> Value {
    if let Some(fields) = spec.as_object_mut() {
        fields.remove("owner");
    }
    spec
}

fn allowed_in_kcp(lab: &Lab, ask: &Ask) -> bool {
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
    is_team && ask.is_virtual && (of_source || lab.flow.related.contains(&resource))
}

fn allowed_on_service(lab: &Lab, ask: &Ask) -> bool {
    let of_state =
        ask.namespace == lab.stage.agent_namespace() && (ask.name.is_empty() || ask.name.starts_with("obj-state-"));
    match ask.resource.as_str() {
        "events" | "leases" => true,
        "publishedresources" => ask.subresource == "status",
        "namespaces" => ask.verb == "create",
        "secrets" if of_state => true,
        resource => *lab.copy_kind().plural == *resource || lab.flow.related.contains(&resource),
    }
}
