//! A new definition, tried on the objects that there are.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use crate::Schema;
use serde::Serialize;
use serde_json::Value;

use crate::evolution::definition::Definition;
use crate::evolution::judge::harm;

/// What a new definition would do to existing objects.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Trial {
    /// How many objects were tried.
    pub objects: usize,
    /// Those that would be refused or changed.
    pub harmed: Vec<Harmed>,
}

/// An object that would be refused or changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Harmed {
    /// Where it is: a workspace or a cluster.
    pub place: String,
    /// Its namespace and name.
    pub object: String,
    /// Why it would be refused, or that it would be changed.
    pub reason: String,
}

/// The compiled schemas of a version before and after, as far as there are any.
type Pair = Option<(Schema, Schema)>;

impl Trial {
    /// Tries stored objects, each with the place where it is. An object that is not valid already is not harmed by the change.
    pub fn of(old: &Definition, new: &Definition, objects: impl IntoIterator<Item = (String, Value)>) -> Self {
        let compiled = |version: &str| -> Pair {
            let pair = old.schema(version).zip(new.schema(version))?;
            Schema::compile(pair.0).ok().zip(Schema::compile(pair.1).ok())
        };
        let mut schemas: BTreeMap<String, Pair> = BTreeMap::new();
        let mut trial = Self::default();
        for (place, object) in objects {
            trial.objects += 1;
            let api_version = object["apiVersion"].as_str().unwrap_or_default();
            let version = api_version.rsplit('/').next().unwrap_or_default().to_owned();
            let gone = old.schema(&version).is_some() && new.schema(&version).is_none();
            let reason = match schemas.entry(version.clone()).or_insert_with(|| compiled(&version)) {
                Some((before, after)) => harm(before, after, &object),
                None => gone.then(|| format!("version {version} goes away")),
            };
            if let Some(reason) = reason {
                let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                let (namespace, name) = (text(&object["metadata"]["namespace"]), text(&object["metadata"]["name"]));
                let object = if namespace.is_empty() { name } else { format!("{namespace}/{name}") };
                trial.harmed.push(Harmed { place, object, reason });
            }
        }
        trial
    }

    /// A sentence such as `3 of 212 orders in 2 workspaces would be refused or changed: …`, with the names of at most that many.
    pub fn sentence(&self, most: usize) -> String {
        let (count, all) = (self.harmed.len(), self.objects);
        if count == 0 {
            return match all {
                0 => "there are no orders yet".to_owned(),
                1 => "the only order stays valid and as it is".to_owned(),
                _ => format!("all {all} orders stay valid and as they are"),
            };
        }
        let places: BTreeSet<&str> = self.harmed.iter().map(|harmed| harmed.place.as_str()).collect();
        let workspaces = if places.len() == 1 { "workspace" } else { "workspaces" };
        let orders = if all == 1 { "order" } else { "orders" };
        let mut text =
            format!("{count} of {all} {orders} in {} {workspaces} would be refused or changed: ", places.len());
        for (index, Harmed { place, object, reason }) in self.harmed.iter().take(most).enumerate() {
            let separator = if index == 0 { "" } else { "; " };
            // Writing to a String cannot fail.
            let _ = write!(text, "{separator}{object} in {place} ({reason})");
        }
        if count > most {
            let _ = write!(text, "; and {} more", count - most);
        }
        text
    }
}
