//! What two servers may answer differently, made equal: UIDs, times, revisions, generated names, addresses, and orders that mean nothing.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde_json::{Map, Value, json};

use super::peer::{Answer, Peer};

/// Normal forms of one server's answers to one sequence. UIDs and revisions are numbered as they appear, so that two answers that have the same
/// one on one server must have the same one on the other.
#[derive(Clone)]
pub struct Normal {
    namespace: String,
    cluster: String,
    address: String,
    /// Further texts, and what they stand for.
    names: Vec<(String, String)>,
    identities: BTreeMap<String, usize>,
    uids: BTreeMap<String, usize>,
    revisions: BTreeMap<String, usize>,
}

impl Normal {
    /// For a sequence in a namespace.
    pub fn new(peer: &Peer, namespace: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            cluster: peer.cluster.clone(),
            address: peer.address().to_owned(),
            names: Vec::new(),
            identities: BTreeMap::new(),
            uids: BTreeMap::new(),
            revisions: BTreeMap::new(),
        }
    }

    /// The same with further texts and what they stand for.
    pub fn naming(mut self, names: Vec<(String, String)>) -> Self {
        self.names = names;
        self
    }

    /// From now on a text stands for something else.
    pub fn name(&mut self, text: String, by: &str) {
        if !self.names.iter().any(|(known, _)| *known == text) {
            self.names.push((text, by.to_owned()));
        }
    }

    /// An answer.
    pub fn answer(&mut self, answer: &Answer) -> Value {
        let body = match serde_json::from_slice::<Value>(&answer.body) {
            Ok(body) => self.value(body),
            Err(_) => Value::String(self.text(&String::from_utf8_lossy(&answer.body))),
        };
        let warnings: Vec<String> = answer.warnings.iter().map(|warning| self.text(warning)).collect();
        json!({ "code": answer.code, "type": answer.content, "warnings": warnings, "body": body })
    }

    /// A document.
    pub fn value(&mut self, value: Value) -> Value {
        match value {
            Value::Object(map) => self.object(map),
            Value::Array(list) => list.into_iter().map(|item| self.value(item)).collect(),
            Value::String(text) => Value::String(self.text(&text)),
            other => other,
        }
    }

    fn object(&mut self, mut map: Map<String, Value>) -> Value {
        let is_list = map.contains_key("items") || map.contains_key("rows");
        if is_list {
            // Made by a controller that runs beside one of the two only.
            if let Some(Value::Array(items)) = map.get_mut("items") {
                items.retain(|item| item["metadata"]["name"] != "kube-root-ca.crt");
            }
            if let Some(Value::Array(rows)) = map.get_mut("rows") {
                rows.retain(|row| row["object"]["metadata"]["name"] != "kube-root-ca.crt");
            }
            if let Some(Value::Object(metadata)) = map.get_mut("metadata") {
                metadata.insert("resourceVersion".to_owned(), "LIST".into());
                if metadata.get("continue").is_some_and(|token| *token != "") {
                    metadata.insert("continue".to_owned(), "MORE".into());
                }
            }
        }
        // The words about columns are those of Kubernetes' documentation, or our own.
        if map.contains_key("priority") && map.contains_key("format") {
            map.remove("description");
        }
        if map.get("kind").is_some_and(|kind| kind == "Status") {
            unordered(&mut map);
        }
        // In kcp there are annotations before the first one is set.
        if let Some(Value::Object(owned)) = map.get_mut("f:annotations")
            && self.is_kcp()
        {
            owned.remove(".");
        }
        self.forget_controllers(&mut map);
        let entries = map.into_iter().map(|(key, value)| {
            let value = match (key.as_str(), value) {
                ("resourceVersion", Value::String(text)) if text.parse::<u64>().is_ok() => self.revision(&text),
                ("managedFields", Value::Array(entries)) => self.managed(entries),
                // All sequences of a workspace have their bindings here.
                ("internal.apis.kcp.io/resource-bindings", _) => "BINDINGS".into(),
                (_, value) => self.value(value),
            };
            // Owners are listed by their UIDs.
            let random = key.starts_with("k:") || key.contains("claimed.internal.apis.kcp.io");
            let key = if random { self.text(&key) } else { key };
            (key, value)
        });
        // A hash that nobody knows is that of an export of another sequence.
        Value::Object(entries.filter(|(key, _)| !FOREIGN.as_ref().is_some_and(|rule| rule.is_match(key))).collect())
    }

    fn is_kcp(&self) -> bool {
        !self.cluster.is_empty() || !self.names.is_empty()
    }

    /// How often controllers have written an object tells nothing.
    fn forget_controllers(&self, map: &mut Map<String, Value>) {
        let controlled = ["APIBinding", "APIExport", "APIExportEndpointSlice", "LogicalCluster"];
        let known = map.get("kind").and_then(Value::as_str).is_some_and(|kind| controlled.contains(&kind));
        if let Some(Value::Object(metadata)) = map.get_mut("metadata")
            && !self.names.is_empty()
            && (known || metadata.get("annotations").is_some_and(|all| all.get("kcp.io/path").is_some()))
        {
            metadata.remove("managedFields");
            metadata.remove("generation");
        }
    }

    fn revision(&mut self, text: &str) -> Value {
        // kcp writes anew what the first patch does not change, the plane never does.
        if self.is_kcp() {
            return "revision".into();
        }
        let next = self.revisions.len() + 1;
        let number = *self.revisions.entry(text.to_owned()).or_insert(next);
        format!("revision {number}").into()
    }

    /// Entries of the same second may come in any order.
    fn managed(&mut self, entries: Vec<Value>) -> Value {
        let mut entries: Vec<Value> = entries.into_iter().map(|entry| self.value(entry)).collect();
        entries.sort_by_key(ToString::to_string);
        entries.into()
    }

    fn text(&mut self, text: &str) -> String {
        let text = numbered(UID.as_ref(), "UID", &mut self.uids, text);
        let text = numbered(IDENTITY.as_ref(), "IDENTITY", &mut self.identities, &text);
        let text = self.names.iter().fold(text, |text, (name, by)| text.replace(name, by));
        let mut text = text.replace(&self.namespace, "{ns}").replace(&self.address, "SERVER");
        if !self.cluster.is_empty() {
            text = text.replace(&self.cluster, "CLUSTER");
        }
        let text = RULES.iter().fold(text, |text, (rule, by)| rule.replace_all(&text, *by).into_owned());
        unordered_text(text)
    }
}

/// A text in which everything random of a kind is numbered as it appears.
fn numbered(rule: Option<&Regex>, word: &str, known: &mut BTreeMap<String, usize>, text: &str) -> String {
    let number = |found: &Captures<'_>| {
        let next = known.len() + 1;
        format!("{word}-{}", known.entry(found[0].to_owned()).or_insert(next))
    };
    rule.map_or_else(|| text.to_owned(), |rule| rule.replace_all(text, number).into_owned())
}

/// A refusal that shows a whole object shows its fields in some order, and of several fields that nobody knows one is told.
fn unordered_text(text: String) -> String {
    const SHOWN: &str = "Invalid value: \"{";
    if let Some((before, _)) = text.split_once("): ").filter(|_| text.contains("field not declared in schema")) {
        return format!("{before}): field not declared in schema");
    }
    // kcp tells claims that do not fit in the order of a Go map.
    if let Some((before, list)) = text.split_once("): ").filter(|_| text.contains("mismatched verbs or selectors")) {
        let mut claims: Vec<&str> = list.trim_end_matches(')').split("), ").collect();
        claims.sort_unstable();
        return format!("{before}): {})", claims.join("), "));
    }
    let Some(start) = text.find(SHOWN).map(|start| start + SHOWN.len() - 2) else { return text };
    let mut shown = serde_json::Deserializer::from_str(&text[start..]).into_iter::<String>();
    let Some(Ok(object)) = shown.next() else { return text };
    let end = start + shown.byte_offset();
    match serde_json::from_str::<Value>(&object) {
        Ok(object) => format!("{}{object}{}", &text[..start], &text[end..]),
        Err(_) => text,
    }
}

static FOREIGN: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"claimed\.internal\.apis\.kcp\.io/[0-9A-Za-z]{30,}$").ok());
static IDENTITY: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\b[0-9a-f]{64}\b").ok());
static UID: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}").ok());

static RULES: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    let rules = [
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "TIME"),
        (r"(?i)(resource ?version[^0-9\n]{1,40})\d+", "${1}RV"),
        (r"\b(gen\d+-|Bad_|x-)[a-z0-9]{5}\b", "${1}SUFFIX"),
        (r"^\d+[smh]$", "AGE"),
        (r"scheme\.go:\d+", "scheme.go:LINE"),
        (r"https://[0-9.]+:\d+", "SERVER"),
        // The type of `self` has a new name every time.
        (r"\bselfType\d+", "object"),
    ];
    rules.into_iter().filter_map(|(rule, by)| Some((Regex::new(rule).ok()?, by))).collect()
});

/// Several causes come in any order, and the message lists them once more.
fn unordered(status: &mut Map<String, Value>) {
    let causes = status.get_mut("details").and_then(|details| details.get_mut("causes")).and_then(Value::as_array_mut);
    let Some(causes) = causes.filter(|causes| causes.len() > 1) else { return };
    causes.sort_by_key(ToString::to_string);
    if let Some(Value::String(message)) = status.get_mut("message")
        && let Some(list) = message.find(": [")
    {
        message.truncate(list);
    }
}

/// Where two documents differ, one line each: the path, the real server's value, the plane's.
pub fn differences(real: &Value, plane: &Value) -> Vec<String> {
    let mut found = Vec::new();
    compare("", real, plane, &mut found);
    found
}

fn compare(path: &str, real: &Value, plane: &Value, found: &mut Vec<String>) {
    match (real, plane) {
        (Value::Object(a), Value::Object(b)) => {
            let keys: std::collections::BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for key in keys {
                match (a.get(key), b.get(key)) {
                    (Some(a), Some(b)) => compare(&format!("{path}.{key}"), a, b, found),
                    (a, b) => found.push(told(&format!("{path}.{key}"), a, b)),
                }
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (index, (a, b)) in a.iter().zip(b).enumerate() {
                compare(&format!("{path}[{index}]"), a, b, found);
            }
        }
        (a, b) if a != b => found.push(told(path, Some(a), Some(b))),
        _ => {}
    }
}

fn told(path: &str, real: Option<&Value>, plane: Option<&Value>) -> String {
    let text = |value: Option<&Value>| value.map_or_else(|| "(absent)".to_owned(), ToString::to_string);
    format!("{path}\n      real:  {}\n      plane: {}", text(real), text(plane))
}
