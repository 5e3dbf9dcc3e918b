//! Steps, tried on orders that the API allows: each must be placed, and its copy must be one that the service cluster takes.

use std::collections::BTreeSet;

use carrick_schema::Schema;
use carrick_schema::evolution::{examples, stored_examples};
use serde_json::{Value, json};

use super::{Mapping, force::Steps};
use crate::api::PublishedResource;
use crate::rules::crd::{Crd, Version};
use crate::rules::projection::{exchanged, in_use, project};
use crate::rules::{ApiKind, kind_of};

/// How many doubts are reported for each direction.
const MOST: usize = 6;

/// What is doubtful about the steps, each with the field that can mend it. Invalid steps are reported elsewhere.
pub fn doubts(pr: &PublishedResource, crd: &Crd) -> Vec<String> {
    let Some(trial) = Trial::of(pr, crd) else { return Vec::new() };
    let (mut doubts, copies) = trial.place();
    doubts.extend(trial.bring_back(&copies));
    doubts
}

/// What consumers can write and nobody reads.
pub fn ignored(pr: &PublishedResource, crd: &Crd) -> Option<String> {
    let trial = Trial::of(pr, crd)?;
    let reads = trial.mapping.reads();
    let mut unread = Vec::new();
    let fields = trial.remote_schema["properties"].as_object().into_iter().flatten();
    for (name, schema) in fields.filter(|(name, _)| is_content(name)) {
        collect_unread(schema, &mut vec![name.clone()], &reads, &mut unread);
    }
    let what = "what consumers write there is ignored";
    (!unread.is_empty()).then(|| format!("spec.implements.spec: no step reads {}: {what}", unread.join(", ")))
}

fn is_content(name: &str) -> bool {
    !matches!(name, "apiVersion" | "kind" | "metadata" | "status")
}

/// Collects the outermost fields that no path of `reads` leads to or through.
fn collect_unread(schema: &Value, path: &mut Vec<String>, reads: &[Vec<String>], unread: &mut Vec<String>) {
    if reads.iter().any(|read| path.starts_with(read)) {
        return;
    }
    let fields = schema["properties"].as_object().filter(|fields| !fields.is_empty());
    let leads_on = path.len() == 1 || reads.iter().any(|read| read.starts_with(path));
    let Some(fields) = fields.filter(|_| leads_on) else {
        unread.push(path.join("."));
        return;
    };
    for (name, schema) in fields {
        path.push(name.clone());
        collect_unread(schema, path, reads, unread);
        path.pop();
    }
}

struct Trial {
    mapping: Mapping,
    remote: ApiKind,
    remote_schema: Value,
    local_schema: Value,
}

impl Trial {
    fn of(pr: &PublishedResource, crd: &Crd) -> Option<Self> {
        let steps = Steps::of(pr.spec.implements.as_ref()?);
        let projected = project(pr, crd).ok()?;
        let (local, remote) = (exchanged(pr, crd).ok()?, in_use(&projected.spec.versions)?);
        let (local_schema, remote_schema) = (schema_of(local)?, schema_of(remote)?);
        let (local, remote) = (kind_of(crd, local), kind_of(&projected, remote));
        let mapping = Mapping::compile((&steps.spec, &steps.status), local, remote.clone()).ok()?;
        Some(Self { mapping, remote, remote_schema, local_schema })
    }

    /// Orders that the API allows. Few schemas say that a spec is required, even if fields in it are: those that lack it say nothing.
    fn orders(&self) -> impl Iterator<Item = Value> {
        let demands = self.remote_schema["properties"]["spec"]["required"].as_array().is_some_and(|it| !it.is_empty());
        let schema = without_status(&self.remote_schema);
        let all = stored_examples(&self.remote.api_version(), &self.remote.kind, &schema);
        all.into_iter().filter(move |order| !demands || order["spec"].is_object())
    }

    /// What is wrong with copies, and some that are fine.
    fn place(&self) -> (Vec<String>, Vec<Value>) {
        let mut findings = Findings::new("spec.implements.spec");
        let (mut copies, local) = (Vec::new(), &self.mapping.local().kind);
        // Schemas that cannot be compiled are refused by the servers themselves.
        let Ok(compiled) = Schema::compile(&self.local_schema) else { return (Vec::new(), copies) };
        let draft = json!({ "metadata": { "name": "example", "namespace": "example" } });
        for mut order in self.orders() {
            // What every order has.
            order["metadata"]["namespace"] = "example".into();
            order["metadata"]["uid"] = "6b1f1e0c-7c1b-4f4e-9a53-0d3c2b1a0f00".into();
            let mut copy = match self.mapping.spec(&order, Some(&draft)) {
                Ok(copy) => copy,
                Err(problem) => {
                    findings.add(&problem.to_string(), &format!("an order cannot be placed: {problem}"), &order);
                    continue;
                }
            };
            compiled.drop_nulls(&mut copy);
            let mut unknown = Vec::new();
            compiled.prune(&mut copy.clone(), &mut unknown);
            for path in &unknown {
                findings.add(
                    path,
                    &format!("{path}: {local} has no such field, and what is written there is dropped"),
                    &order,
                );
            }
            let copy = compiled.stored(copy);
            match compiled.validate(&copy, None).first() {
                Some(cause) => {
                    let message = format!("{}: {local} refuses what comes out: {}", cause.field, cause.text());
                    findings.add(&cause.field, &message, &order);
                }
                None if copies.is_empty() && unknown.is_empty() => copies.push(copy),
                None => {}
            }
        }
        (findings.messages, copies)
    }

    /// What is wrong with the status that comes back from copies like these.
    fn bring_back(&self, copies: &[Value]) -> Vec<String> {
        let mut findings = Findings::new("spec.implements.status");
        let status = |schema: &Value| schema["properties"].get("status").cloned().unwrap_or_else(|| json!({}));
        let Ok(wanted) = Schema::part(&status(&self.remote_schema)) else { return Vec::new() };
        let Some(copy) = copies.first().filter(|_| self.mapping.has_status()) else { return Vec::new() };
        // A copy has no status before its operator has seen it.
        let mut all = vec![Value::Null];
        all.extend(examples(&status(&self.local_schema)));
        for status in all {
            let mut copy = copy.clone();
            copy["status"] = status;
            if copy["status"].is_null()
                && let Some(fields) = copy.as_object_mut()
            {
                fields.remove("status");
            }
            let made = match self.mapping.status(&copy, &copy) {
                Ok(mut made) => made["status"].take(),
                Err(problem) => {
                    findings.add(&problem.to_string(), &format!("a status cannot be made: {problem}"), &copy);
                    continue;
                }
            };
            if made.is_null() {
                continue;
            }
            let mut unknown = Vec::new();
            wanted.prune(&mut made.clone(), &mut unknown);
            for path in unknown {
                let kind = &self.remote.kind;
                let message = format!("status.{path}: {kind} has no such field, and what is written there is dropped");
                findings.add(&path, &message, &copy);
            }
            if let Some(cause) = wanted.validate(&wanted.stored(made), None).first() {
                let (kind, field) = (&self.remote.kind, &cause.field);
                let message = format!("status.{field}: {kind} refuses what comes out: {}", cause.text());
                findings.add(field, &message, &copy);
            }
        }
        findings.messages
    }
}

/// What was found, each thing once.
struct Findings {
    at: &'static str,
    known: BTreeSet<String>,
    messages: Vec<String>,
}

impl Findings {
    fn new(at: &'static str) -> Self {
        Self { at, known: BTreeSet::new(), messages: Vec::new() }
    }

    fn add(&mut self, what: &str, message: &str, example: &Value) {
        if self.messages.len() < MOST && self.known.insert(what.to_owned()) {
            self.messages.push(format!("{}: {message}, as in {}", self.at, crate::rules::proof::shortened(example)));
        }
    }
}

fn schema_of(version: &Version) -> Option<Value> {
    let schema = version.schema.as_ref()?.open_api_v3_schema.as_deref()?;
    serde_json::to_value(schema).ok()
}

/// Orders begin without a status, and all variety is to be in what consumers write.
fn without_status(schema: &Value) -> Value {
    let mut schema = schema.clone();
    if let Some(fields) = schema["properties"].as_object_mut() {
        fields.remove("status");
    }
    schema
}
