//! What is there on both sides, in a form in which two runs can be compared.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use carrick_e2e_stage::stage::{NAMESPACE, Stage, Workspace};
use carrick_e2e_stage::world::EmbeddedWorld;
use carrick_plane::{Kind, Plane, Store};
use carrick_syncagent::api;
use carrick_syncagent::rules::metadata::SourceKey;
use carrick_syncagent::rules::provenance::owner;
use data_encoding::BASE64;
use parking_lot::Mutex;
use regex::Regex;
use serde_json::{Map, Value};

/// What differs from one run to the next although nothing is different.
const PASSING: [&str; 6] = ["uid", "resourceVersion", "creationTimestamp", "managedFields", "generation", "selfLink"];
/// The same anywhere in an object.
const TIMES: [&str; 3] = ["lastTransitionTime", "observedGeneration", "identityHash"];
/// Annotations whose values depend on UIDs or the time; whether they are right, the audit tells.
const MARKS: [&str; 4] = [api::REMOTE_UID, api::REMOTE_GENERATION, api::APPLIED_STATE, api::LAST_SEEN];

/// All objects that matter, by place: `team-a buckets default/one`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct State(BTreeMap<String, Arc<Value>>);

impl State {
    /// The object at a place, such as `service secrets x/y`; null if there is none.
    pub fn at(&self, place: &str) -> &Value {
        self.0.get(place).map_or(&Value::Null, |object| object)
    }

    /// The copy of a team's object; null if there is none.
    pub fn copy(&self, team: &str, name: &str) -> &Value {
        let is_copy = |object: &&Arc<Value>| {
            object["metadata"]["labels"][api::REMOTE_CLUSTER] == team
                && object["metadata"]["annotations"][api::REMOTE_NAME] == name
        };
        self.0.values().find(is_copy).map_or(&Value::Null, |object| object)
    }

    /// Whether any place contains this.
    pub fn has(&self, part: &str) -> bool {
        self.0.keys().any(|place| place.contains(part))
    }

    /// Whether an agent has announced a write and not recorded yet that it was done.
    pub fn is_announced(&self) -> bool {
        let announces = |place: &str| {
            let data = self.at(place)["data"].as_object();
            data.is_some_and(|data| data.keys().any(|key| key.strip_suffix(".next").is_some()))
        };
        self.places().any(|place| place.contains("/obj-state-") && announces(place))
    }

    /// All places.
    pub fn places(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Only the places that a function chooses.
    #[must_use]
    pub fn only(&self, wanted: impl Fn(&str) -> bool) -> Self {
        Self(self.0.iter().filter(|(place, _)| wanted(place)).map(|(p, o)| (p.clone(), o.clone())).collect())
    }

    /// The same without what the agent remembers, apart from whether it remembers anything.
    #[must_use]
    pub fn without_memories(&self) -> Self {
        let forget = |(place, object): (&String, &Arc<Value>)| {
            let mut object = object.clone();
            if place.contains("/obj-state-") {
                Arc::make_mut(&mut object)["data"] = Value::Null;
            }
            (place.clone(), object)
        };
        Self(self.0.iter().map(forget).collect())
    }

    /// The same without what depends on how far the agent got before the next step: whether an order that ends was ever remembered, and
    /// whether a namespace that somebody razed was created again for a copy that is gone by now. Nor whether the agent reports a server
    /// that was restored: one whose lists are old twice in a row, as a storm's may be, looks like that.
    #[must_use]
    pub fn after_haste(&self) -> Self {
        let settled = self.without_memories();
        let ends = |team: &str| {
            let orders = settled.0.iter().filter(|(place, _)| place.starts_with(&format!("{team} ")));
            let mut orders =
                orders.filter(|(_, object)| object["metadata"]["finalizers"].to_string().contains(api::FINALIZER));
            orders.any(|(_, object)| !object["metadata"]["deletionTimestamp"].is_null())
        };
        let root = |team: &str| format!("service configmaps {team}/kube-root-ca.crt");
        let is_empty = |team: &str| {
            let inside = |place: &&String| place.contains(&format!(" {team}/")) && **place != root(team);
            !settled.0.keys().any(|place| place.starts_with("service ") && inside(&place))
        };
        let teams = ["team-a", "team-b"];
        let passing = |place: &str| {
            teams.iter().any(|team| {
                place.contains(&format!("/obj-state-{team}-")) && ends(team)
                    || is_empty(team) && (place == format!("service namespaces /{team}") || place == root(team))
            })
        };
        settled.only(|place| !passing(place)).without_condition("ServersInTime")
    }

    /// The same without a condition of PublishedResources.
    fn without_condition(&self, name: &str) -> Self {
        let forget = |(place, object): (&String, &Arc<Value>)| {
            let mut object = object.clone();
            if place.starts_with("service publishedresources ")
                && let Some(conditions) = Arc::make_mut(&mut object)["status"]["conditions"].as_array_mut()
            {
                conditions.retain(|condition| condition["type"] != name);
            }
            (place.clone(), object)
        };
        Self(self.0.iter().map(forget).collect())
    }

    /// The same without the number of objects that each PublishedResource tells.
    pub fn without_counts(&self) -> Self {
        let forget = |(place, object): (&String, &Arc<Value>)| {
            let mut object = object.clone();
            if place.starts_with("service publishedresources ")
                && let Some(status) = Arc::make_mut(&mut object)["status"].as_object_mut()
            {
                status.remove("objects");
            }
            (place.clone(), object)
        };
        Self(self.0.iter().map(forget).collect())
    }

    /// How this state differs from the one that was expected, place by place.
    pub fn difference(&self, expected: &Self) -> Difference {
        let places: BTreeSet<&String> = self.0.keys().chain(expected.0.keys()).collect();
        let differing = places.into_iter().filter(|place| self.0.get(*place) != expected.0.get(*place));
        let mut lines = Vec::new();
        for place in differing {
            let of = |state: &Self| state.0.get(place).map_or(Value::Null, |object| Value::clone(object));
            lines.push(place.clone());
            differ(String::new(), &of(expected), &of(self), &mut lines);
        }
        Difference(lines)
    }
}

/// Adds the fields that differ.
#[allow(clippy::needless_pass_by_value)] // paths are made for it
fn differ(path: String, expected: &Value, found: &Value, lines: &mut Vec<String>) {
    match (expected, found) {
        _ if expected == found => {}
        (Value::Object(wanted), Value::Object(there)) => {
            let keys: BTreeSet<&String> = wanted.keys().chain(there.keys()).collect();
            for key in keys {
                let of = |map: &serde_json::Map<String, Value>| map.get(key).cloned().unwrap_or_default();
                differ(format!("{path}.{key}"), &of(wanted), &of(there), lines);
            }
        }
        _ => {
            let short = |value: &Value| value.to_string().chars().take(1500).collect::<String>();
            lines.push(format!("  {path}\n      expected {}\n      found    {}", short(expected), short(found)));
        }
    }
}

/// What differs between two states, for people.
pub struct Difference(Vec<String>);

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|line| write!(f, "\n    {line}"))
    }
}

/// Reads states straight from the stores of both planes.
pub struct Eyes {
    kcp: Arc<Store>,
    service: Arc<Store>,
    /// Logical clusters and what to call them.
    clusters: Vec<(String, String)>,
    /// The same for orders, as the copies of their related objects know them.
    owners: Vec<(String, String)>,
    id: String,
    group: String,
    uids: Regex,
    known: Mutex<BTreeMap<String, (u64, Arc<Value>)>>,
}

impl Eyes {
    /// Eyes for one stage.
    pub fn new(world: &EmbeddedWorld, stage: &Stage) -> anyhow::Result<Self> {
        let store = |plane: &Plane| plane.store().clone();
        let named = [("provider", &stage.provider), ("team-a", &stage.team_a), ("team-b", &stage.team_b)];
        let owner_of = |(alias, workspace): (&str, &Workspace)| {
            let cluster = workspace.cluster.as_str().into();
            let order = SourceKey { cluster, namespace: NAMESPACE.into(), name: "one".into() };
            (owner(&order, &stage.published_name("Bucket")), format!("owner-one-of-{alias}"))
        };
        Ok(Self {
            kcp: store(world.kcp_plane()),
            service: store(world.service_plane()),
            clusters: named.map(|(name, workspace)| (workspace.cluster.clone(), name.to_owned())).into(),
            owners: named.map(owner_of).into(),
            id: stage.id.clone(),
            group: stage.group.clone(),
            uids: Regex::new("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")?,
            known: Mutex::default(),
        })
    }

    /// The revisions of both stores: as long as they stay, so does the state.
    pub fn revisions(&self) -> (u64, u64) {
        (self.kcp.revision(), self.service.revision())
    }

    /// Waits until either store has moved on from these revisions.
    pub async fn changed(&self, (kcp, service): (u64, u64)) {
        tokio::select! {
            () = self.kcp.reached(kcp + 1) => {}
            () = self.service.reached(service + 1) => {}
        }
    }

    /// What is there now.
    pub fn look(&self) -> State {
        let mut state = BTreeMap::new();
        for (cluster, name) in &self.clusters {
            self.look_at(&self.kcp, cluster, name, &mut state);
        }
        self.look_at(&self.service, "", "service", &mut state);
        State(state)
    }

    /// The UIDs of everything that belongs to orders: sources, copies, and related objects on both sides.
    pub fn inventory(&self) -> BTreeMap<String, String> {
        let teams = self.clusters.iter().filter(|(_, name)| name.starts_with("team-"));
        let sides = teams.map(|(cluster, name)| (&self.kcp, cluster.as_str(), name.as_str()));
        let mut inventory = BTreeMap::new();
        for (store, cluster, name) in sides.chain([(&self.service, "", "service")]) {
            for kind in store.kinds(cluster).iter().filter(|kind| self.matters(kind)) {
                for (key, stored) in store.list(kind, Some(cluster), None).1 {
                    let place = self.alias(&format!("{name} {} {}/{}", kind.resource, key.namespace, key.name));
                    let of_order = name != "service" || place.contains(" team-");
                    if of_order && !place.ends_with("/kube-root-ca.crt") && &*kind.resource != "namespaces" {
                        inventory.insert(place, stored.value()["metadata"]["uid"].to_string());
                    }
                }
            }
        }
        inventory
    }

    fn look_at(&self, store: &Store, cluster: &str, name: &str, state: &mut BTreeMap<String, Arc<Value>>) {
        let mut known = self.known.lock();
        for kind in store.kinds(cluster).iter().filter(|kind| self.matters(kind)) {
            for (key, stored) in store.list(kind, Some(cluster), None).1 {
                let place = self.alias(&format!("{name} {} {}/{}", kind.resource, key.namespace, key.name));
                let remembered = known.get(&place).filter(|(revision, _)| *revision == stored.revision());
                let object = if let Some((_, object)) = remembered {
                    object.clone()
                } else {
                    let mut object = self.normal(&stored.value());
                    if name.starts_with("team-") {
                        // Which version was the one to store when a consumer wrote last is a matter of time, and of kcp.
                        object["apiVersion"] = (&*kind.group).into();
                    }
                    Arc::new(object)
                };
                known.insert(place.clone(), (stored.revision(), object.clone()));
                // One that may not be deleted is emptied.
                let is_empty = place.contains("/obj-state-") && object["data"].as_object().is_none_or(Map::is_empty);
                // Which orders have ended is remembered for ever, by UIDs that are others in every lab.
                if !is_empty && !place.contains("/ended-orders-") {
                    state.insert(place, object);
                }
            }
        }
    }

    /// Whether objects of a kind are compared.
    fn matters(&self, kind: &Kind) -> bool {
        match &*kind.group {
            "" => ["secrets", "configmaps", "namespaces"].contains(&&*kind.resource),
            "apis.kcp.io" => ["apiexports", "apiresourceschemas"].contains(&&*kind.resource),
            api::GROUP => true,
            group => group.ends_with(&self.group),
        }
    }

    /// A text with the names of this stage and its clusters replaced by what they are called in every lab.
    pub fn alias(&self, text: &str) -> String {
        let aliases = self.clusters.iter().chain(&self.owners);
        aliases.fold(text.replace(&self.id, "id"), |text, (word, alias)| text.replace(word, alias))
    }

    fn normal(&self, object: &Value) -> Value {
        let mut object: Value = serde_json::from_str(&self.alias(&object.to_string())).unwrap_or_default();
        if let Some(conditions) = object.pointer_mut("/status/conditions").and_then(Value::as_array_mut) {
            // Servers that give old answers have gone back in time; that this is over is remembered.
            conditions.retain(|condition| condition["type"] != "ServersInTime" || condition["status"] != "True");
            // They come in the order in which they became known.
            conditions.sort_by_key(|condition| condition["type"].to_string());
            for condition in conditions {
                // Texts for people name UIDs.
                if let Some(message) = condition["message"].as_str() {
                    condition["message"] = self.uids.replace_all(message, "uid").into();
                }
            }
        }
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.retain(|key, _| !PASSING.contains(&key.as_str()));
            if let Some(labels) = metadata.get_mut("labels").and_then(Value::as_object_mut) {
                labels.retain(|key, _| !key.starts_with(carrick_kcp::CLAIM_LABEL_PREFIX));
                if labels.is_empty() {
                    metadata.remove("labels");
                }
            }
            if let Some(deletion) = metadata.get_mut("deletionTimestamp") {
                *deletion = "set".into();
            }
        }
        without(&TIMES, &mut object);
        for entry in object.pointer_mut("/status/servedFor").and_then(Value::as_array_mut).into_iter().flatten() {
            without(&["uid", "renewed"], entry);
        }
        if let Some(annotations) = object["metadata"]["annotations"].as_object_mut() {
            for (_, mark) in annotations.iter_mut().filter(|(key, _)| MARKS.contains(&key.as_str())) {
                *mark = "set".into();
            }
        }
        let keepers = object["metadata"]["annotations"][api::KEEPER].as_str();
        if let Some(mut keepers) = keepers.and_then(|text| serde_json::from_str::<Value>(text).ok()) {
            for keeper in keepers.as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
                keeper.retain(|key, _| !["renewed", "cluster", "identity"].contains(&key.as_str()));
            }
            object["metadata"]["annotations"][api::KEEPER] = keepers;
        }
        if object["metadata"]["labels"][api::OBJECT_STATE] == "true" {
            self.open(&mut object["data"]);
        }
        object
    }

    /// What the agent remembers is itself JSON; in a difference it is of no use in base64.
    fn open(&self, data: &mut Value) {
        let Some(data) = data.as_object_mut() else { return };
        for (key, value) in data.iter_mut() {
            let bytes = value.as_str().and_then(|text| BASE64.decode(text.as_bytes()).ok());
            let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default();
            // In which way a state was written does not matter.
            let text = text.strip_prefix("applied-").map_or_else(|| text.clone(), str::to_owned);
            *value = serde_json::from_str(&self.alias(&text)).unwrap_or(Value::String(text));
            // Which object a copy is of, and how often it was written, differs from run to run.
            unless_made(value);
            without(passing_note(key), value);
        }
        // If the agent died right after it made a copy, nothing is noted of that until the next write.
        data.retain(|key, value| !is_copy_note(key) || !value["how"].is_null());
    }
}

/// Whether a key of a state Secret is that of what is noted of a copy.
fn is_copy_note(key: &str) -> bool {
    key.rsplit('.').next() == Some("copy")
}

/// What is noted under a key and differs from run to run: times, and which write of which object it is about.
fn passing_note(key: &str) -> &'static [&'static str] {
    match key.rsplit('.').next() {
        Some("copy") => &["uid", "source", "write"],
        Some("seen") => &["uid", "reverts"],
        _ => &["uid"],
    }
}

/// Of a copy that was made just before the agent died nobody has noted how the agent came to it, and then it counts as made.
fn unless_made(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|key, value| key != "how" || value != "made");
            fields.values_mut().for_each(unless_made);
        }
        Value::Array(items) => items.iter_mut().for_each(unless_made),
        _ => {}
    }
}

fn without(keys: &[&str], value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|key, _| !keys.contains(&key.as_str()));
            fields.values_mut().for_each(|value| without(keys, value));
        }
        Value::Array(items) => items.iter_mut().for_each(|value| without(keys, value)),
        _ => {}
    }
}
