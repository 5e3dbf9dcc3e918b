//! One of the two places: finds, creates, changes and deletes objects there.

use std::fmt;
use std::time::Duration;

use anyhow::Context;
use carrick_client::discovery::find_kind;
use carrick_client::{Client, DeleteOptions, Resource};
use carrick_json::merge;
use serde_json::{Value, json};

use super::plan::{self, Wanted};
use crate::mesh;
use crate::ui::Observed;

const PAUSE: Duration = Duration::from_millis(100);

/// What happens to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// It is not there yet.
    Create,
    /// It differs.
    Update,
    /// It is there as it should be.
    None,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Create => "create   ",
            Self::Update => "change   ",
            Self::None => "unchanged",
        })
    }
}

/// A cluster or a workspace.
pub struct Target {
    /// Its client.
    pub client: Client,
    /// For people.
    pub name: String,
}

impl Target {
    /// A place with its name for people.
    pub fn new(client: Client, name: String) -> Self {
        Self { client, name }
    }

    /// Where objects of that kind are; `None` if the kind is not served.
    async fn resource(&self, wanted: &Wanted) -> anyhow::Result<Option<Resource>> {
        let ((group, version), kind) = (wanted.api(), wanted.text("/kind"));
        let found = find_kind(&self.client, group, kind)
            .await
            .with_context(|| format!("cannot ask {} for {kind}", self.name))?;
        Ok(found.and_then(|found| found.resource(version)))
    }

    /// The object as it is now.
    pub async fn get(&self, wanted: &Wanted) -> anyhow::Result<Option<Value>> {
        let Some(resource) = self.resource(wanted).await? else { return Ok(None) };
        let found = self.client.get(&resource, namespace(wanted), wanted.text("/metadata/name")).await;
        found.with_context(|| format!("cannot read {} in {}", wanted.shown(), self.name))
    }

    /// What would happen to an object.
    pub async fn compare(&self, wanted: &Wanted) -> anyhow::Result<Change> {
        Ok(match self.get(wanted).await? {
            None => Change::Create,
            Some(now) if wanted.is_draft() || difference(&now, &wanted.object).is_none() => Change::None,
            Some(_) => Change::Update,
        })
    }

    /// Creates an object, or changes what differs. A kind that was made a moment ago may take another one to be served.
    pub async fn ensure(&self, wanted: &Wanted, seen: &Observed) -> anyhow::Result<Change> {
        let resource = loop {
            match self.resource(wanted).await? {
                Some(resource) => break resource,
                None => seen.note(format_args!(
                    "{} does not serve {} of {}{}",
                    self.name,
                    wanted.text("/kind"),
                    wanted.text("/apiVersion"),
                    mesh::hint(wanted.api().0)
                )),
            }
            tokio::time::sleep(PAUSE).await;
        };
        let what = |verb: &str| format!("cannot {verb} {} in {}", wanted.shown(), self.name);
        let name = wanted.text("/metadata/name");
        let now = self.client.get(&resource, namespace(wanted), name).await.with_context(|| what("read"))?;
        let Some(now) = now else {
            let mut object = wanted.object.clone();
            let (label, value) = plan::mark();
            object["metadata"]["labels"][label] = json!(value);
            self.client.create(&resource, namespace(wanted), &object).await.with_context(|| what("create"))?;
            return Ok(Change::Create);
        };
        let patch = if wanted.is_draft() { None } else { difference(&now, &wanted.object) };
        let Some(patch) = patch else { return Ok(Change::None) };
        self.client.merge_patch(&resource, namespace(wanted), name, &patch).await.with_context(|| what("change"))?;
        Ok(Change::Update)
    }

    /// Deletes an object that this command has made, and waits until it is gone. False if it is not there, or somebody else's.
    pub async fn remove(&self, wanted: &Wanted, seen: &Observed) -> anyhow::Result<bool> {
        let Some(now) = self.get(wanted).await? else { return Ok(false) };
        let Some(resource) = self.resource(wanted).await? else { return Ok(false) };
        if !plan::is_marked(&now) {
            return Ok(false);
        }
        let name = wanted.text("/metadata/name");
        let deleted = self.client.delete(&resource, namespace(wanted), name, &DeleteOptions::default()).await;
        match deleted {
            Err(error) if !error.is_not_found() => {
                return Err(error).with_context(|| format!("cannot delete {} in {}", wanted.shown(), self.name));
            }
            _ => {}
        }
        while self.get(wanted).await?.is_some() {
            seen.note(format_args!("{} is still being deleted", wanted.shown()));
            tokio::time::sleep(PAUSE).await;
        }
        Ok(true)
    }
}

fn namespace(wanted: &Wanted) -> Option<&str> {
    Some(wanted.text("/metadata/namespace")).filter(|namespace| !namespace.is_empty())
}

/// The patch that makes an object as it is wanted; whatever else it has stays.
fn difference(now: &Value, wanted: &Value) -> Option<Value> {
    let mut then = now.clone();
    overlay(&mut then, wanted);
    let patch = merge::diff(now, &then);
    patch.as_object().is_some_and(|patch| !patch.is_empty()).then_some(patch)
}

fn overlay(now: &mut Value, wanted: &Value) {
    match (now, wanted) {
        (Value::Object(now), Value::Object(wanted)) => {
            for (key, value) in wanted {
                match now.get_mut(key) {
                    Some(known) => overlay(known, value),
                    // Servers leave out what is empty.
                    None if is_empty(value) => {}
                    None => drop(now.insert(key.clone(), value.clone())),
                }
            }
        }
        (now, wanted) if is_alike(now, wanted) => {}
        (now, wanted) => now.clone_from(wanted),
    }
}

/// Whether a list has all that is wanted, in this order, and what servers have added to its items.
fn is_alike(now: &Value, wanted: &Value) -> bool {
    match (now, wanted) {
        (Value::Array(now), Value::Array(wanted)) => {
            now.len() == wanted.len() && now.iter().zip(wanted).all(|(now, wanted)| is_alike(now, wanted))
        }
        (Value::Object(now), Value::Object(wanted)) => wanted
            .iter()
            .all(|(key, value)| now.get(key).map_or_else(|| is_empty(value), |known| is_alike(known, value))),
        _ => now == wanted,
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(map) => map.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::String(text) => text.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_differs_is_changed() {
        let now = json!({ "spec": { "a": 1, "more": true, "list": [{ "x": 1, "set": "by server" }] }, "status": {} });
        for (wanted, patch) in [
            (json!({ "spec": {} }), None),
            (json!({ "spec": { "a": 1, "empty": {}, "text": "" }, "rules": [] }), None),
            (json!({ "spec": { "list": [{ "x": 1 }] } }), None),
            (json!({ "spec": { "a": 2 } }), Some(json!({ "spec": { "a": 2 } }))),
            (json!({ "spec": { "list": [{ "x": 2 }] } }), Some(json!({ "spec": { "list": [{ "x": 2 }] } }))),
            (json!({ "spec": { "list": [] } }), Some(json!({ "spec": { "list": [] } }))),
        ] {
            assert_eq!(difference(&now, &wanted), patch, "{wanted}");
        }
    }
}
