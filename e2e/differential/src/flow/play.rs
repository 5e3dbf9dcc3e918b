//! A sequence played on one server.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::{Duration, Instant};

use anyhow::Context;
use carrick_e2e_stage::world::ADMIN_AGENT;
use carrick_kcp::hash::{Claim, claim_hash, export_hash};
use futures::future::try_join_all;
use hyper::body::Bytes;
use serde_json::{Value, json};

use super::rights::SETS;
use super::things::{CLAIMABLE, PARTS, Thing, WIDGETS};
use super::{EXPORT, OTHER, Sequence, Step, Until, Who, claims, get, inside, view};
use crate::normal::Normal;
use crate::peer::Peer;
use crate::play::{encoded, merge};
use crate::request::Body;

const PAUSE: Duration = Duration::from_millis(100);
/// How long controllers may take at most.
const PATIENCE: Duration = Duration::from_mins(1);
/// The object whose appearance ends a watch.
const LAST: &str = "zz-last";

/// A server, and the users who ask it.
pub struct Party<'a> {
    /// The server, where workspaces are made.
    pub peer: &'a Peer,
    /// The agent's token.
    pub agent: &'a str,
    /// How long an answer has to stay the same to be the last one.
    pub still: Duration,
    /// The workspaces.
    pub stage: &'a Stage,
}

/// Workspaces: names and logical clusters of two consumers, and of a provider for each set of rights.
pub struct Stage {
    consumers: Vec<(String, String)>,
    providers: BTreeMap<usize, (String, String)>,
}

impl Stage {
    /// Makes the workspaces for all sequences.
    pub async fn set(peer: &Peer, id: &str) -> anyhow::Result<Self> {
        Self::of(peer, id, 0..SETS).await
    }

    /// Makes those for one sequence alone.
    pub async fn alone(peer: &Peer, id: &str, sequence: &Sequence) -> anyhow::Result<Self> {
        Self::of(peer, id, sequence.rights..sequence.rights + 1).await
    }

    async fn of(peer: &Peer, id: &str, sets: Range<usize>) -> anyhow::Result<Self> {
        let make = async |name: String| anyhow::Ok((name.clone(), peer.new_workspace(&name).await?));
        let consumers = ["a", "b"].map(|letter| make(format!("flow-{id}-{letter}")));
        let providers = sets.map(async |set| anyhow::Ok((set, make(format!("flow-{id}-p{set}")).await?)));
        let (consumers, providers) = futures::try_join!(try_join_all(consumers), try_join_all(providers))?;
        Ok(Self { consumers, providers: providers.into_iter().collect() })
    }
}

/// The answers to each request, and then what a watch over all workspaces has seen.
pub async fn play(party: &Party<'_>, sequence: &Sequence, token: &str) -> anyhow::Result<Vec<Value>> {
    let (peer, stage) = (party.peer, party.stage);
    let mut names = BTreeMap::from([("{ns}".to_owned(), token.to_owned())]);
    let consumers = ["A", "B"].into_iter().zip(&stage.consumers);
    for (letter, (name, cluster)) in consumers.chain([("P", &stage.providers[&sequence.rights])]) {
        names.insert(format!("{{{letter}-path}}"), format!("{}:{name}", peer.path()));
        names.insert(format!("{{{letter}}}"), cluster.clone());
    }
    let mut shown: Vec<(String, String)> = names.iter().map(|(key, text)| (text.clone(), key.clone())).collect();
    for (export, name) in [(EXPORT, "own"), (OTHER, "other")] {
        let export = export.replace("{ns}", token);
        shown.push((export_hash(&names["{P}"], &export), format!("{{{name}-hash}}")));
    }
    shown.extend(["kcp-admin", ADMIN_AGENT].map(|name| (name.to_owned(), "ADMIN".to_owned())));
    // A path holds a token that would be taken for something else.
    shown.sort_by_key(|(text, _)| std::cmp::Reverse(text.len()));
    let normal = Normal::new(peer, token).naming(shown);
    let users = [peer.user(None), peer.user(Some(party.agent)), peer.user(Some(""))];
    let mut desk = Desk { party, users, names, normal, seen: BTreeMap::new(), since: String::new() };
    let mut answers = Vec::new();
    for step in &sequence.steps {
        answers.push(desk.ask(step).await.with_context(|| step.to_string())?);
    }
    answers.extend(desk.last_look().await?);
    Ok(answers)
}

struct Desk<'a> {
    party: &'a Party<'a>,
    users: [Peer; 3],
    /// What placeholders stand for.
    names: BTreeMap<String, String>,
    normal: Normal,
    /// What was answered last about an object.
    seen: BTreeMap<String, Value>,
    /// A revision from before the first object.
    since: String,
}

impl Desk<'_> {
    fn user(&self, who: Who) -> &Peer {
        match who {
            Who::Admin => &self.users[0],
            Who::Agent => &self.users[1],
            Who::Nobody => &self.users[2],
        }
    }

    async fn ask(&mut self, step: &Step) -> anyhow::Result<Value> {
        if step.until == Until::Initial {
            return self.watch(step).await;
        }
        if step.until == Until::Now {
            return Ok(self.send(step).await?.1);
        }
        let (began, mut since, mut last) = (Instant::now(), Instant::now(), Value::Null);
        let before = self.normal.clone();
        loop {
            // What was there for a moment only has no number.
            self.normal = before.clone();
            let (raw, answer) = self.send(step).await?;
            if answer != last {
                (since, last) = (Instant::now(), answer);
            }
            if step.until == Until::Found
                && let Some(revision) = raw["metadata"]["resourceVersion"].as_str()
            {
                revision.clone_into(&mut self.since);
            }
            let late = began.elapsed() > PATIENCE;
            if late || (is_reached(step.until, &last, &raw) && since.elapsed() >= self.party.still) {
                return Ok(last);
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Writes every object that is claimed. Once a binding is gone, objects keep its labels until somebody writes them, and the controllers
    /// of kcp do so whenever another sequence binds in the same workspace.
    async fn touch_claimed(&self) -> anyhow::Result<()> {
        for thing in CLAIMABLE.iter().filter(|thing| !matches!(thing.plural, "apibindings" | "logicalclusters")) {
            let all = self.resolved(&view("*", &thing.collection(None)));
            let Ok(list) = self.users[0].must("GET", &all, &Value::Null).await else { continue };
            for object in list["items"].as_array().into_iter().flatten().filter(|object| self.is_own(object)) {
                let metadata = &object["metadata"];
                let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                let namespace = metadata["namespace"].as_str();
                let one = format!("{}/{}", thing.collection(namespace), text(&metadata["name"]));
                self.touch(&inside(&text(&metadata["annotations"]["kcp.io/cluster"]), &one)).await?;
            }
        }
        Ok(())
    }

    /// An object gets an annotation and loses it, which leaves no trace.
    async fn touch(&self, path: &str) -> anyhow::Result<()> {
        let path = self.resolved(&format!("{path}?fieldManager=touch"));
        for note in [json!("look"), Value::Null] {
            let body = json!({ "metadata": { "annotations": { "example.com/touched": note } } });
            let types = ["application/merge-patch+json", "application/json"];
            self.users[0].ask("PATCH", &path, types, body.to_string().into()).await?;
        }
        Ok(())
    }

    /// The body as it came, and the answer in normal form.
    async fn send(&mut self, step: &Step) -> anyhow::Result<(Value, Value)> {
        let request = &step.request;
        let body = self.body(&request.body);
        let types = [request.media, request.accept];
        let path = self.path(step);
        let user = self.user(step.who);
        let began = Instant::now();
        let mut answer = loop {
            match user.ask(request.method, &path, types, body.clone()).await {
                // A server may end a connection whenever it likes, and ask for a moment while it starts to serve a kind.
                Err(_) if request.method == "GET" && began.elapsed() < PATIENCE => {}
                Ok(answer) if answer.code == 429 && began.elapsed() < PATIENCE => {}
                answer => break answer?,
            }
            tokio::time::sleep(PAUSE).await;
        };
        let mut raw: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        if self.retain_own(&mut raw) {
            answer.body = raw.to_string().into();
        }
        if answer.code < 300 {
            self.remember(step, &raw);
        }
        let normal = self.normal.answer(&answer);
        Ok((raw, normal))
    }

    /// Whether something has to do with this sequence.
    fn is_own(&self, object: &Value) -> bool {
        object.to_string().contains(&self.names["{ns}"])
    }

    /// Leaves out of a list what has to do with other sequences; tells whether it is a list. Over all workspaces, lists are in the order of
    /// logical clusters, whose names are random.
    fn retain_own(&self, body: &mut Value) -> bool {
        let mut is_list = false;
        for key in ["items", "rows"] {
            if let Some(Value::Array(list)) = body.get_mut(key) {
                list.retain(|item| self.is_own(item));
                list.sort_by_cached_key(|item| self.place(item.get("object").unwrap_or(item)));
                is_list = true;
            }
        }
        is_list
    }

    /// Workspace, namespace and name of an object.
    fn place(&self, object: &Value) -> [String; 3] {
        let metadata = &object["metadata"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let cluster = text(&metadata["annotations"]["kcp.io/cluster"]);
        let letter = self.names.iter().find(|(_, name)| **name == cluster).map(|(letter, _)| letter.clone());
        [letter.unwrap_or(cluster), text(&metadata["namespace"]), text(&metadata["name"])]
    }

    async fn watch(&mut self, step: &Step) -> anyhow::Result<Value> {
        let path = self.path(step);
        let began = Instant::now();
        let mut events = loop {
            match self.user(step.who).initial(&path).await {
                // As for other requests.
                Err(_) if began.elapsed() < PATIENCE => {}
                Ok(events) if events.iter().any(|event| event["code"] == 429) && began.elapsed() < PATIENCE => {}
                events => break events?,
            }
            tokio::time::sleep(PAUSE).await;
        };
        events.retain(|event| event["type"].is_null() || self.is_own(event));
        // Workspaces come in the order of their logical clusters, which are random.
        events.sort_by_cached_key(|event| self.place(&event["object"]));
        Ok(events.into_iter().map(|event| self.normal.value(event)).collect())
    }

    fn path(&self, step: &Step) -> String {
        let query: Vec<String> = step
            .request
            .query
            .iter()
            .map(|(name, value)| format!("{name}={}", encoded(&self.resolved(value))))
            .collect();
        let path = self.resolved(&step.request.path);
        if query.is_empty() { path } else { format!("{path}?{}", query.join("&")) }
    }

    fn remember(&mut self, step: &Step, value: &Value) {
        let request = &step.request;
        let name = value["metadata"]["name"].as_str().unwrap_or_default();
        if name.is_empty() || request.query.iter().any(|(name, _)| *name == "dryRun") || value["kind"] == "Status" {
            return;
        }
        let key = key(&request.path);
        let key = if request.method == "POST" { format!("{key}/{name}") } else { key };
        for (export, short) in [(EXPORT, "own"), (OTHER, "other")] {
            if let (true, Some(identity)) = (
                value["kind"] == "APIExport" && name == self.resolved(export),
                value["status"]["identityHash"].as_str().filter(|hash| !hash.is_empty()),
            ) {
                self.names.insert(format!("{{{short}-id}}"), identity.to_owned());
                let group = self.resolved(PARTS.group);
                let claim = Claim { group: &group, resource: PARTS.plural, identity_hash: identity };
                self.normal.name(claim_hash(claim), &format!("{{{short}-claim}}"));
            }
        }
        if value["apiVersion"] == "meta.k8s.io/v1" {
            return;
        }
        self.seen.insert(key, value.clone());
    }

    fn resolved(&self, text: &str) -> String {
        self.names.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
    }

    fn value(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => self.resolved(text).into(),
            Value::Array(list) => list.iter().map(|item| self.value(item)).collect(),
            Value::Object(map) => map.iter().map(|(key, value)| (key.clone(), self.value(value))).collect(),
            other => other.clone(),
        }
    }

    fn body(&self, body: &Body) -> Bytes {
        match body {
            Body::Json(value) => self.value(value).to_string().into(),
            Body::Last(path, changes) => {
                let key = key(path);
                let name = key.rsplit('/').next().unwrap_or_default();
                let mut object =
                    self.seen.get(&key).cloned().unwrap_or_else(|| json!({ "metadata": { "name": name } }));
                merge(&mut object, &self.value(changes));
                object.to_string().into()
            }
            Body::Text(text) => self.resolved(text).into(),
            Body::None | Body::Long(_) => Bytes::new(),
        }
    }

    /// All objects of a kind that the virtual workspace shows.
    async fn all(&mut self, thing: Thing) -> anyhow::Result<Value> {
        let list = Step::admin(get(view("*", &thing.collection(None))));
        let (_, answer) = self.send(&list).await?;
        Ok(json!({ "what": format!("all {} at the end", thing.plural), "answer": answer }))
    }

    /// What is left: everything that can be claimed, and what a watch has seen of the exported kind since the first object.
    async fn last_look(&mut self) -> anyhow::Result<Vec<Value>> {
        self.touch_claimed().await?;
        let (began, mut since, mut answers) = (Instant::now(), Instant::now(), Vec::new());
        let before = self.normal.clone();
        while since.elapsed() < self.party.still && began.elapsed() < PATIENCE {
            self.normal = before.clone();
            let mut seen = Vec::new();
            for thing in CLAIMABLE {
                seen.push(self.all(thing).await?);
            }
            if seen != answers {
                (since, answers) = (Instant::now(), seen);
            }
            tokio::time::sleep(PAUSE).await;
        }
        let mut last = json!({ "apiVersion": self.resolved(&WIDGETS.api_version()), "kind": WIDGETS.kind, "metadata": { "name": LAST }, "spec": {} });
        last["metadata"]["labels"] = json!({ "tier": "a" });
        let path = self.resolved(&inside("{A}", &WIDGETS.collection(Some("{ns}"))));
        let created = self.users[0].ask("POST", &path, ["application/json"; 2], last.to_string().into()).await?;
        answers.push(json!({ "what": "the last object", "answer": self.normal.answer(&created) }));
        let all = self.resolved(&view("*", &WIDGETS.collection(None)));
        if created.code == 201 && self.users[0].must("GET", &all, &Value::Null).await.is_ok() {
            let path = format!("{all}?watch=true&resourceVersion={}", self.since);
            let events = self.users[0].watch(&path, LAST).await?;
            let events: Vec<Value> = events.into_iter().map(|event| self.normal.value(event)).collect();
            answers.push(json!({ "what": "all events of the exported kind", "events": events }));
        }
        Ok(answers)
    }
}

/// What an object is known by, whichever way it is reached.
fn key(path: &str) -> String {
    let path = path.rsplit_once("/clusters/").map_or(path, |(_, rest)| rest);
    path.trim_end_matches("/status").to_owned()
}

fn is_reached(until: Until, answer: &Value, raw: &Value) -> bool {
    let found = answer["code"] == 200;
    match until {
        Until::Now | Until::Initial => true,
        Until::Still => {
            claims::are_seen(raw)
                && claims::are_applied(raw)
                && claims::may_stay(raw)
                && claims::are_found(raw)
                && !claims::are_awaited(raw)
        }
        Until::Identity => raw["status"]["identityHash"].as_str().is_some_and(|hash| !hash.is_empty()),
        Until::Bound => {
            let known = carrick_e2e_stage::stage::condition(raw, "PermissionClaimsApplied");
            raw["status"]["phase"] == "Bound" && !known["status"].is_null() && claims::are_applied(raw)
        }
        Until::Endpoint => raw["status"]["endpoints"].as_array().is_some_and(|all| !all.is_empty()),
        Until::Found => found,
        Until::Gone => answer["code"] == 404,
        Until::Withdrawn => !found || carrick_e2e_stage::stage::condition(raw, "APIExportValid")["status"] == "False",
        Until::Failed => answer["code"].as_u64().is_some_and(|code| code >= 500),
    }
}
