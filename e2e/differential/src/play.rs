//! A sequence played on one server.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::Context;
use hyper::body::Bytes;
use serde_json::{Value, json};

use super::dice::Dice;
use super::kinds;
use super::normal::Normal;
use super::peer::Peer;
use super::request::{Body, Request, When};

/// How long an answer has to stay the same to be the last one, how often it is looked at, and how long in all.
const STILL: Duration = Duration::from_secs(3);
const PAUSE: Duration = Duration::from_millis(100);
const PATIENCE: Duration = Duration::from_secs(20);

/// The object whose appearance ends a watch.
const LAST: &str = "zz-last";

/// The answers to each request, and then what watches that began before the first one have seen.
pub async fn play(peer: &Peer, sequence: &[Request], namespace: &str) -> anyhow::Result<Vec<Value>> {
    let object = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace } });
    let home = peer.must("POST", "/api/v1/namespaces", &object).await?;
    let left = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": format!("{namespace}-left") } });
    peer.must("POST", "/api/v1/namespaces", &left).await?;
    let mut since = Vec::new();
    for kind in kinds::watched() {
        let list = peer.must("GET", &kind.path.replace("{ns}", namespace), &Value::Null).await?;
        since.push(list["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned());
    }
    let normal = Normal::new(peer, namespace);
    let mut desk = Desk { peer, namespace, normal, since: since[0].clone(), seen: BTreeMap::new() };
    desk.seen.insert("namespaces/{ns}".to_owned(), vec![home]);
    let mut answers = Vec::new();
    for request in sequence {
        answers.push(desk.ask(request).await.with_context(|| request.to_string())?);
    }
    for kind in kinds::watched() {
        let mut last = json!({
            "apiVersion": kind.api_version, "kind": kind.kind, "metadata": { "name": LAST, "labels": { "tier": "a" } },
        });
        if kind.custom {
            last["spec"] = json!({});
        }
        peer.must("POST", &kind.path.replace("{ns}", namespace), &last).await?;
    }
    for (kind, since) in kinds::watched().iter().zip(since) {
        for (what, query) in WATCHES {
            let path = kind.path.replace("{ns}", namespace);
            let path = format!("{path}?watch=true&{}", query.replace("{rv}", &since));
            let events = peer.watch(&path, LAST).await?;
            answers.push(json!({ "watch": format!("{}, {what}", kind.plural), "events": desk.events(events) }));
        }
    }
    Ok(answers)
}

/// Ways to watch.
const WATCHES: [(&str, &str); 4] = [
    ("all since the first request", "resourceVersion={rv}"),
    ("with a label, since the first request", "resourceVersion={rv}&labelSelector=tier%3Da"),
    ("all but one, since the first request", "resourceVersion={rv}&fieldSelector=metadata.name!%3Da"),
    (
        "what there is",
        "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&labelSelector=tier",
    ),
];

struct Desk<'a> {
    peer: &'a Peer,
    namespace: &'a str,
    normal: Normal,
    /// A revision from before the first request, for objects that were never seen.
    since: String,
    /// All that was answered about an object.
    seen: BTreeMap<String, Vec<Value>>,
}

impl Desk<'_> {
    /// Sends a request until its answer counts.
    async fn ask(&mut self, request: &Request) -> anyhow::Result<Value> {
        // What collectors do is compared on request only: it takes its time.
        let collected = !self.peer.cluster.is_empty() && Dice::is_wide();
        match request.when {
            When::Now => self.send(request).await,
            When::Settled | When::Gone if !collected => Ok(Value::Null),
            When::Never => self.send(request).await.map(|_| Value::Null),
            When::Refused => {
                // How often it was accepted before, each time with another UID, tells nothing.
                let (began, before) = (Instant::now(), self.normal.clone());
                while self.send(request).await?["code"].as_u64().is_some_and(|code| code < 300)
                    && began.elapsed() < PATIENCE
                {
                    tokio::time::sleep(PAUSE).await;
                }
                self.normal = before;
                Ok(Value::Null)
            }
            When::Gone => {
                let began = Instant::now();
                loop {
                    let answer = self.send(request).await?;
                    if answer["code"] == 404 || began.elapsed() > PATIENCE {
                        return Ok(answer);
                    }
                    tokio::time::sleep(PAUSE).await;
                }
            }
            When::Settled => {
                let (began, mut since, mut last) = (Instant::now(), Instant::now(), Value::Null);
                while since.elapsed() < STILL && began.elapsed() < PATIENCE {
                    let answer = collected_only(self.send(request).await?);
                    if answer != last {
                        (since, last) = (Instant::now(), answer);
                    }
                    tokio::time::sleep(PAUSE).await;
                }
                Ok(last)
            }
        }
    }

    async fn send(&mut self, request: &Request) -> anyhow::Result<Value> {
        let mut answers = Vec::new();
        let mut token = String::new();
        loop {
            let mut query: Vec<String> = request
                .query
                .iter()
                .map(|(name, value)| format!("{name}={}", encoded(&self.resolved(value))))
                .collect();
            if !token.is_empty() {
                query.push(format!("continue={}", encoded(&token)));
            }
            let path = self.resolved(&request.path);
            let path = if query.is_empty() { path } else { format!("{path}?{}", query.join("&")) };
            let body = self.body(request);
            let answer = self.peer.ask(request.method, &path, [request.media, request.accept], body).await?;
            let value: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
            if answer.code < 300 {
                self.remember(request, &value);
            }
            answers.push(self.normal.answer(&answer));
            if let (1, Some(between)) = (answers.len(), &request.between) {
                answers.push(Box::pin(self.send(between)).await?);
            }
            value["metadata"]["continue"].as_str().unwrap_or_default().clone_into(&mut token);
            if !request.pages || token.is_empty() || answers.len() > 20 {
                break;
            }
        }
        Ok(if request.pages { answers.into() } else { answers.remove(0) })
    }

    fn remember(&mut self, request: &Request, value: &Value) {
        let dry = request.query.iter().any(|(name, _)| *name == "dryRun");
        let name = value["metadata"]["name"].as_str().unwrap_or_default().replace(self.namespace, "{ns}");
        let path = request.path.replace("{ns}-left", "{ns}");
        let kind = kinds::of_path(&path).filter(|_| !path.ends_with("/scale"));
        if let (Some(kind), false, false) = (kind, name.is_empty(), dry) {
            self.seen.entry(format!("{}/{name}", kind.plural)).or_default().push(value.clone());
        }
    }

    /// A text with what it refers to.
    fn resolved(&self, text: &str) -> String {
        let known = |key: &str, place: &str, first: bool, otherwise: &str| {
            let all = self.seen.get(key).map_or(&[][..], Vec::as_slice);
            let object = if first { all.first() } else { all.last() };
            object.and_then(|object| object["metadata"][place].as_str()).unwrap_or(otherwise).to_owned()
        };
        if let Some(key) = text.strip_prefix("$uid:") {
            known(key, "uid", false, "00000000-0000-4000-8000-000000000000")
        } else if let Some(key) = text.strip_prefix("$rv:") {
            known(key, "resourceVersion", false, &self.since)
        } else if text.starts_with("$first:") && !self.peer.cluster.is_empty() {
            // In kcp the first one may not be the present one for another reason than on the plane.
            self.since.clone()
        } else if let Some(key) = text.strip_prefix("$first:") {
            known(key, "resourceVersion", true, &self.since)
        } else {
            text.replace("{ns}", self.namespace)
        }
    }

    fn value(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => self.resolved(text).into(),
            Value::Array(list) => list.iter().map(|item| self.value(item)).collect(),
            Value::Object(map) => {
                Value::Object(map.iter().map(|(key, value)| (self.resolved(key), self.value(value))).collect())
            }
            other => other.clone(),
        }
    }

    fn body(&self, request: &Request) -> Bytes {
        match &request.body {
            Body::None => Bytes::new(),
            Body::Json(value) => self.value(value).to_string().into(),
            Body::Text(text) => self.resolved(text).into(),
            Body::Long(length) => {
                format!(r#"{{"metadata":{{"name":"a"}},"data":{{"a":"{}"}}}}"#, "x".repeat(*length)).into()
            }
            Body::Last(key, changes) => {
                let mut object = self.seen.get(key).and_then(|all| all.last()).cloned().unwrap_or_else(|| {
                    let name = key.split_once('/').map_or("", |(_, name)| name);
                    let kind = kinds::of_path(&request.path);
                    let (kind, api_version) = kind.map_or(("", ""), |kind| (kind.kind, &*kind.api_version));
                    json!({ "apiVersion": api_version, "kind": kind, "metadata": { "name": self.resolved(name) } })
                });
                merge(&mut object, &self.value(changes));
                object.to_string().into()
            }
        }
    }

    /// Events in normal form, without what others do to objects that wait for them.
    fn events(&mut self, events: Vec<Value>) -> Value {
        let own = |event: &Value| {
            let name = event["object"]["metadata"]["name"].as_str().unwrap_or_default();
            !name.starts_with("left-") && name != "kube-root-ca.crt"
        };
        let mut told: BTreeMap<String, Value> = BTreeMap::new();
        let mut shown = Vec::new();
        for event in events.into_iter().filter(own) {
            let event = self.normal.value(event);
            let name = event["object"]["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            // An object that was written anew as it was, as kcp does, tells nothing.
            if told.get(&name) != Some(&event["object"]) || event["type"] == "DELETED" {
                told.insert(name, event["object"].clone());
                shown.push(event);
            }
        }
        shown.into()
    }
}

/// A list without what depends on how often collectors wrote.
fn collected_only(mut list: Value) -> Value {
    for item in list["body"]["items"].as_array_mut().into_iter().flatten() {
        for key in ["managedFields", "resourceVersion"] {
            item["metadata"].as_object_mut().map(|metadata| metadata.remove(key));
        }
    }
    list
}

/// RFC 7386.
pub fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(changes) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    let Some(map) = target.as_object_mut() else { return };
    for (key, value) in changes {
        if value.is_null() {
            map.remove(key);
        } else {
            merge(map.entry(key.clone()).or_insert(Value::Null), value);
        }
    }
}

/// Percent encoding of a parameter.
pub fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}
