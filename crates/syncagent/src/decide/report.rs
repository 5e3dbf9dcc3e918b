//! What the status of an order says in the agent's name: how it is doing, which related objects are there, and whether it was placed.
//!
//! ```text
//!  placed      what its copy says, the word of spec.report.status, related objects that are there, Placed=True with what it waits for
//!  in deletion what it said before, with Deleting and without related objects
//!  refused     what it said before, with Failed unless a copy is there, and Placed=False
//!  out of reach  what it said before, and Placed=False
//! ```

use carrick_cel::SummaryInput;
use carrick_sync::Transform;
use serde_json::{Map, Value, json};

use super::refusal::Refusal;
use super::related::{Arrived, RelatedView};
use super::waits::Waiting;
use crate::api::Origin;
use crate::rules::conversion::Passage;
use crate::rules::mutation::MutationError;
use crate::rules::reads::lacking_any;
use crate::rules::related::Related;
use crate::rules::report::{AVAILABLE, CONDITIONS, Conditions, DELETING, FAILED, PROVISIONING, RELATED, Report};

/// The condition that says whether an order was placed.
const PLACED: &str = "Placed";

/// Why an order, or its last change, was not placed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unplaced {
    /// One word.
    pub reason: UnplacedReason,
    /// For the consumer.
    pub message: String,
}

/// The same in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnplacedReason {
    /// The workspace has as many objects as it may.
    Limit,
    /// It breaks a rule.
    Rule,
    /// The service cluster, or the agent, refuses it.
    Refused,
    /// The service cluster cannot be reached.
    Unreachable,
}

impl UnplacedReason {
    /// Why a refusal is one.
    pub fn of(refusal: &Refusal) -> Self {
        match refusal {
            Refusal::Limit(_) => Self::Limit,
            Refusal::Rule(_) => Self::Rule,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Limit => "Limit",
            Self::Rule => "Rule",
            Self::Refused => "Refused",
            Self::Unreachable => "Unreachable",
        }
    }
}

/// What becomes of an order on its way, and of its status on the way back, with what is reported.
pub(super) struct Reported<'a> {
    passage: &'a Passage,
    said: Option<Said<'a>>,
    /// What it waits for although it is placed.
    pub waiting: Waiting,
}

/// What is reported of an order that is placed.
struct Said<'a> {
    report: &'a Report,
    source: &'a Value,
    now: &'a str,
    word: Option<String>,
    related: Map<String, Value>,
    /// What the condition says of it.
    waits: String,
    /// Why there is no new word.
    problem: Option<String>,
}

/// What is known of an order that is placed.
#[derive(Clone, Copy)]
pub(super) struct Standing<'a> {
    pub source: &'a Value,
    pub copy: &'a Value,
    pub entries: &'a [Related],
    pub view: &'a RelatedView,
    pub arrived: &'a [Arrived],
}

impl<'a> Reported<'a> {
    /// Nothing is reported.
    pub fn plain(passage: &'a Passage, waiting: Waiting) -> Self {
        Self { passage, said: None, waiting }
    }

    /// What is reported of an order that is placed.
    pub fn of(
        passage: &'a Passage,
        report: &'a Report,
        (source, now): (&'a Value, &'a str),
        standing: Standing<'_>,
        waiting: Waiting,
    ) -> Self {
        let (word, problem) = match word(report, standing) {
            Some(Ok(word)) => (Some(word), None),
            Some(Err(problem)) => (Some(last_word(report, standing.source)), Some(problem)),
            None => (None, None),
        };
        let related = if report.related { listed(standing) } else { Map::new() };
        let waits = in_condition(&waiting, standing);
        Self { passage, said: Some(Said { report, source, now, word, related, waits, problem }), waiting }
    }

    /// Why the word stays what it was.
    pub fn problem(&self) -> Option<String> {
        self.said.as_ref()?.problem.clone()
    }

    /// Whether the order lists related objects that are not to be listed any more. They are taken off the list before they are deleted.
    pub fn strikes_out(&self) -> bool {
        self.said.as_ref().is_some_and(|said| {
            let there = said.source["status"][RELATED].as_object().into_iter().flatten();
            said.report.related && there.into_iter().any(|(_, entry)| !said.related.values().any(|it| it == entry))
        })
    }
}

impl Transform for Reported<'_> {
    type Error = MutationError;

    fn spec(&self, source: &Value, copy: Option<&Value>) -> Result<Value, MutationError> {
        self.passage.spec(source, copy)
    }

    fn keeps_spec(&self) -> bool {
        self.passage.keeps_spec()
    }

    fn status(&self, copy: &Value, source: &Value) -> Result<Value, MutationError> {
        let mut returned = self.passage.status(copy, source)?;
        if let Some(said) = &self.said {
            let mut status = fields_of(returned.get("status"));
            // Where steps make the status, they bring no conditions by themselves.
            if self.passage.is_mapped()
                && said.report.conditions != Conditions::None
                && let Some(conditions @ Value::Array(_)) = copy["status"].get(CONDITIONS)
            {
                status.entry(CONDITIONS).or_insert_with(|| conditions.clone());
            }
            returned["status"] = said.add_to(status, &copy["metadata"]["creationTimestamp"]).into();
        }
        Ok(returned)
    }
}

impl Said<'_> {
    fn add_to(&self, mut status: Map<String, Value>, created: &Value) -> Map<String, Value> {
        if let (Some(path), Some(word)) = (self.report.path(), &self.word) {
            set(&mut status, path, word);
        }
        if self.report.related {
            list(&mut status, self.related.clone());
        }
        if self.report.conditions != Conditions::None
            && let Some(conditions) = status.get_mut(CONDITIONS).and_then(Value::as_array_mut)
        {
            for condition in conditions.iter_mut() {
                complete(condition, created);
            }
        }
        if self.report.conditions == Conditions::Own {
            let placed = condition(self.source, ("True", PLACED, &self.waits), self.now);
            put(&mut status, placed);
        }
        status
    }
}

/// What the condition of an order that is placed says of what it waits for.
fn in_condition(waiting: &Waiting, Standing { source, copy, .. }: Standing<'_>) -> String {
    let before = placed_of(source).filter(|placed| placed["status"] == "True");
    match waiting {
        Waiting::For(what) => format!("waits for {what}"),
        Waiting::Unknown => before.and_then(|placed| placed["message"].as_str()).unwrap_or_default().to_owned(),
        Waiting::No if copy["status"].as_object().is_none_or(Map::is_empty) => {
            "waits for the provider, whose operator has not reported anything yet".to_owned()
        }
        Waiting::No => String::new(),
    }
}

/// The word for an order that is placed; the last one stays while something is not known that matters to it.
fn word(report: &Report, standing: Standing<'_>) -> Option<Result<String, String>> {
    let Standing { source, copy, entries, view, arrived, .. } = standing;
    report.path()?;
    let required = || entries.iter().enumerate().filter(|(_, entry)| entry.required);
    let is_unknown = required().any(|(at, _)| view.unknown.contains(&at));
    if is_unknown || lacking_any(&report.objects_read(), &view.unread) {
        return Some(Ok(last_word(report, source)));
    }
    let related = by_identifier(entries, arrived);
    let input = SummaryInput { this: copy, other: source, objects: &view.objects, related: &related };
    let is_complete = || required().all(|(at, _)| arrived.iter().any(|it| it.entry == at));
    Some(report.word(input)?.map(|word| {
        let word = if word == AVAILABLE && !is_complete() { PROVISIONING } else { word };
        word.to_owned()
    }))
}

/// The word that the order has, or the first one.
fn last_word(report: &Report, source: &Value) -> String {
    let mut at = &source["status"];
    for name in report.path().unwrap_or_default() {
        at = &at[name];
    }
    at.as_str().filter(|word| !word.is_empty()).unwrap_or(PROVISIONING).to_owned()
}

/// Names of the related objects that are in kcp, for expressions.
fn by_identifier(entries: &[Related], arrived: &[Arrived]) -> Value {
    let named = entries.iter().enumerate().map(|(at, entry)| {
        let there = arrived.iter().filter(|it| it.entry == at);
        let names: Vec<Value> = there.map(|it| json!({ "name": it.at.name, "namespace": it.at.namespace })).collect();
        (entry.identifier.clone(), Value::from(names))
    });
    Value::Object(named.collect())
}

/// The list of related objects of the service that are in the consumer's workspace. Of entries that are not known, what was listed stays. The
/// consumer's own objects are not listed: whoever follows the list takes what is on it for the service's.
fn listed(standing: Standing<'_>) -> Map<String, Value> {
    let Standing { source, entries, view, arrived, .. } = standing;
    let mut list = Map::new();
    for (at, entry) in entries.iter().enumerate().filter(|(_, entry)| entry.origin == Origin::Service) {
        if view.unknown.contains(&at) {
            let prefix = format!("{}.", entry.identifier);
            let there = source["status"][RELATED].as_object().into_iter().flatten();
            let of_entry = there.filter(|(key, _)| **key == entry.identifier || key.starts_with(&prefix));
            list.extend(of_entry.map(|(key, value)| (key.clone(), value.clone())));
            continue;
        }
        let there: Vec<&Arrived> = arrived.iter().filter(|it| it.entry == at).collect();
        for it in &there {
            let key = if there.len() == 1 {
                entry.identifier.clone()
            } else {
                format!("{}.{}", entry.identifier, it.at.name)
            };
            list.insert(key, described(it));
        }
    }
    list
}

fn described(arrived: &Arrived) -> Value {
    let kind = &arrived.at.kind;
    let group = if kind.group.is_empty() { "core" } else { &kind.group };
    let mut entry = json!({
        "name": arrived.at.name,
        "gvk": { "group": group, "version": kind.version, "kind": kind.kind },
    });
    if let Some(namespace) = &arrived.at.namespace {
        entry["namespace"] = namespace.as_str().into();
    }
    entry
}

/// The status of an order that is being deleted.
pub(super) fn leaving(report: &Report, source: &Value) -> Value {
    let mut status = fields_of(source.get("status"));
    if let Some(path) = report.path() {
        set(&mut status, path, DELETING);
    }
    if report.related {
        status.remove(RELATED);
    }
    status.into()
}

/// The status of an order that was not placed, or whose last change was not.
pub fn unplaced(report: &Report, source: &Value, has_copy: bool, why: &Unplaced, now: &str) -> Value {
    let mut status = fields_of(source.get("status"));
    if let Some(path) = report.path() {
        // What was placed before is still there, whatever becomes of a change.
        let is_failed = !has_copy && why.reason != UnplacedReason::Unreachable;
        let word = if is_failed { FAILED.to_owned() } else { last_word(report, source) };
        set(&mut status, path, &word);
    }
    if report.conditions == Conditions::Own {
        put(&mut status, condition(source, ("False", why.reason.word(), &why.message), now));
    }
    status.into()
}

/// What the condition Placed of an order says about why it was not placed.
pub fn told(source: &Value) -> Option<&str> {
    let placed = placed_of(source).filter(|condition| condition["status"] == "False")?;
    placed["message"].as_str()
}

fn placed_of(source: &Value) -> Option<&Value> {
    source["status"][CONDITIONS].as_array()?.iter().find(|condition| condition["type"] == PLACED)
}

/// The condition Placed. Its time is that of its last change.
fn condition(source: &Value, (status, reason, message): (&str, &str, &str), now: &str) -> Value {
    let before = placed_of(source).filter(|before| before["status"] == status);
    let since = before.and_then(|before| before["lastTransitionTime"].as_str()).unwrap_or(now);
    json!({ "type": PLACED, "status": status, "reason": reason, "message": message, "lastTransitionTime": since })
}

/// Adds a condition, in the place of one of the same type.
fn put(status: &mut Map<String, Value>, condition: Value) {
    let conditions = status.entry(CONDITIONS).or_insert_with(|| json!([]));
    let Some(conditions) = conditions.as_array_mut() else { return };
    match conditions.iter_mut().find(|it| it["type"] == condition["type"]) {
        Some(it) => *it = condition,
        None => conditions.push(condition),
    }
}

/// Gives a condition what metav1.Condition demands.
fn complete(condition: &mut Value, created: &Value) {
    let Some(fields) = condition.as_object_mut() else { return };
    let lacks = |fields: &Map<String, Value>, name: &str| fields.get(name).is_none_or(Value::is_null);
    if fields.get("reason").and_then(Value::as_str).is_none_or(str::is_empty) {
        fields.insert("reason".to_owned(), "Unknown".into());
    }
    if lacks(fields, "message") {
        fields.insert("message".to_owned(), "".into());
    }
    if lacks(fields, "lastTransitionTime") && created.is_string() {
        fields.insert("lastTransitionTime".to_owned(), created.clone());
    }
}

fn list(status: &mut Map<String, Value>, related: Map<String, Value>) {
    if related.is_empty() {
        status.remove(RELATED);
    } else {
        status.insert(RELATED.to_owned(), related.into());
    }
}

/// Writes a word below the status. What is in its way and no object makes room.
fn set(status: &mut Map<String, Value>, path: &[String], word: &str) {
    let Some((last, above)) = path.split_last() else { return };
    let mut at = status;
    for name in above {
        let below = at.entry(name.clone()).or_insert_with(|| json!({}));
        if !below.is_object() {
            *below = json!({});
        }
        let Value::Object(below) = below else { return };
        at = below;
    }
    at.insert(last.clone(), word.into());
}

fn fields_of(status: Option<&Value>) -> Map<String, Value> {
    status.and_then(Value::as_object).cloned().unwrap_or_default()
}
