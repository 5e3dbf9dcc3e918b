//! What is to be done about the AcceptAPIs of one PublishedResource. Pure.
//!
//! A broker takes an AcceptAPI that vanishes for the wish to be rid of all orders, and moves them at once. So nothing but the words of the
//! provider deletes one: not an outage, not a limit, not a PublishedResource that is gone.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use crate::api::{AGENT_NAME, AcceptFilter, DRAIN, Implements, KEPT_FOR, PublishedResource, PublishedVersion};

/// API group of brokers.
pub(super) const GROUP: &str = "broker.platform-mesh.io";
/// Its version.
pub(super) const VERSION: &str = "v1alpha1";
/// Label on AcceptAPIs that the agent keeps. Somebody who made one hands it over by setting it.
pub(super) const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// Its value.
pub(super) const MANAGER: &str = "api-syncagent";

/// Whose AcceptAPIs are ours.
#[derive(Clone, Copy)]
pub(super) struct Owner<'a> {
    /// Name of the agent.
    pub(super) agent: &'a str,
    /// Agents that are no more, and whose part this one has.
    pub(super) former: &'a BTreeSet<String>,
    /// UID of the PublishedResource.
    pub(super) uid: &'a str,
}

impl Owner<'_> {
    /// Whether an AcceptAPI is kept by this agent. The UID does not count: a PublishedResource that was deleted and applied again, or came
    /// from a backup, has another one and must not lose its AcceptAPI, which serves one and the same API.
    fn keeps(&self, object: &Value) -> bool {
        let metadata = &object["metadata"];
        let agent = metadata["annotations"][AGENT_NAME].as_str();
        metadata["labels"][MANAGED_BY] == MANAGER
            && agent.is_none_or(|agent| agent == self.agent || self.former.contains(agent))
    }

    /// Whether it is kept for this very PublishedResource.
    pub(super) fn made(&self, object: &Value) -> bool {
        self.keeps(object) && object["metadata"]["annotations"][KEPT_FOR] == self.uid
    }
}

/// What the PublishedResource asks for.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Wish {
    /// There shall be one with this name and spec.
    Offer(String, Value),
    /// There shall be none of this name, if there is a name, and none of this PublishedResource.
    None(Option<String>, Why),
    /// Whatever there is stays, because it is not known what shall be, or nobody would serve the orders.
    Hold(&'static str),
}

/// Why there shall be none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    /// The annotation says so.
    Drained,
    /// The API is withdrawn.
    Withdrawn,
    /// The rules ask for none.
    NotAsked,
}

impl Wish {
    /// By a PublishedResource as it is now, its last valid generation, and whether the export serves that.
    pub(super) fn of(now: &PublishedResource, valid: Option<&PublishedResource>, serves: bool, export: &str) -> Self {
        let name = |pr: &PublishedResource| pr.spec.implements.as_ref().map(|it| it.resource.clone());
        if now.metadata.deletion_timestamp.is_some() {
            return Self::Hold("the PublishedResource is being deleted, which moves no orders");
        }
        if is_drained(now) {
            return Self::None(name(now), Why::Drained);
        }
        if now.is_withdrawn() {
            return Self::None(name(now), Why::Withdrawn);
        }
        let Some(valid) = valid else { return Self::Hold("its rules are not valid; see RulesValid") };
        let Some(implements) = valid.spec.implements.as_ref() else { return Self::None(None, Why::NotAsked) };
        let Some(spec) = spec(implements, export) else { return Self::None(None, Why::NotAsked) };
        if !now.is_synchronized() {
            return Self::Hold("spec.synchronization is switched off, so that nobody serves orders");
        }
        if !serves {
            return Self::Hold("the APIExport does not serve the API yet; see ExportUpdated");
        }
        Self::Offer(implements.resource.clone(), spec)
    }
}

/// Whether orders are to go elsewhere.
fn is_drained(pr: &PublishedResource) -> bool {
    pr.metadata.annotations.get(DRAIN).is_some_and(|value| value == "true")
}

/// The spec of the AcceptAPI; none if none is asked for.
fn spec(implements: &Implements, export: &str) -> Option<Value> {
    let accept = implements.accept.as_ref()?;
    let (plural, group) = implements.resource.split_once('.')?;
    let mut spec = json!({
        "gvr": { "group": group, "version": stored(implements)?, "resource": plural }, "apiExportName": export,
    });
    if !accept.filters.is_empty() {
        spec["filters"] = accept.filters.iter().map(filter).collect();
    }
    Some(spec)
}

/// The version that brokers speak: the one that kcp stores.
fn stored(implements: &Implements) -> Option<&str> {
    let stored = implements.versions.iter().find(|version| version.0["storage"] == true);
    let served = || implements.versions.iter().rfind(|version| version.0["served"] != false);
    stored.or_else(served).map(PublishedVersion::name)
}

/// A filter without what it does not say: brokers heed every field that is there.
fn filter(filter: &AcceptFilter) -> Value {
    let mut fields = Map::from_iter([("key".to_owned(), json!(filter.key))]);
    if !filter.value_in.is_empty() {
        fields.insert("valueIn".to_owned(), json!(filter.value_in));
    }
    if !filter.suffix.is_empty() {
        fields.insert("suffix".to_owned(), json!(filter.suffix));
    }
    if let Some(boundary) = &filter.boundary {
        let bounds = [("min", boundary.min), ("max", boundary.max)].into_iter();
        let bounds = bounds.filter_map(|(end, bound)| Some((end.to_owned(), json!(bound?))));
        fields.insert("boundary".to_owned(), bounds.collect());
    }
    Value::Object(fields)
}

/// One thing to do or to say.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Plan {
    /// It is as it shall be.
    Keep(String),
    /// It is missing.
    Create(Value),
    /// It is ours and not as it shall be.
    Replace(Value),
    /// It is ours and shall not be: name, UID and version.
    Delete(String, String, String),
    /// Somebody else has made the one that has the name.
    Foreign(String),
    /// It is ours and on its way out, which takes until the broker lets it go.
    Ending(String),
}

/// What is to be done, given all AcceptAPIs of the workspace by name.
pub(super) fn plan(wish: &Wish, found: &BTreeMap<String, Value>, owner: Owner<'_>) -> Vec<Plan> {
    let mut plans = Vec::new();
    let (wanted, unwanted) = match wish {
        Wish::Hold(_) => return plans,
        Wish::Offer(name, spec) => (Some((name, spec)), None),
        // Only of its own words: removing a field says something about what the field has made.
        Wish::None(name, why) => (None, name.as_ref().filter(|_| *why != Why::NotAsked)),
    };
    if let Some((name, spec)) = wanted {
        plans.push(match found.get(name) {
            None => Plan::Create(object(name, spec, owner)),
            Some(object) if !owner.keeps(object) => Plan::Foreign(name.clone()),
            Some(object) if is_ending(object) => Plan::Ending(name.clone()),
            Some(object) => match repaired(object, spec, owner) {
                repaired if repaired == *object => Plan::Keep(name.clone()),
                repaired => Plan::Replace(repaired),
            },
        });
    }
    for (name, object) in found {
        let is_named = unwanted == Some(name) && owner.keeps(object);
        let is_left = owner.made(object) && wanted.is_none_or(|(wanted, _)| wanted != name);
        if (is_named || is_left) && is_ending(object) {
            plans.push(Plan::Ending(name.clone()));
        } else if is_named || is_left {
            let text = |key: &str| object["metadata"][key].as_str().unwrap_or_default().to_owned();
            plans.push(Plan::Delete(name.clone(), text("uid"), text("resourceVersion")));
        }
    }
    plans
}

fn is_ending(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}

fn object(name: &str, spec: &Value, owner: Owner<'_>) -> Value {
    let empty =
        json!({ "apiVersion": format!("{GROUP}/{VERSION}"), "kind": "AcceptAPI", "metadata": { "name": name } });
    repaired(&empty, spec, owner)
}

/// The object with our spec and our marks; all else belongs to others, such as the broker's finalizer and status.
fn repaired(object: &Value, spec: &Value, owner: Owner<'_>) -> Value {
    let mut object = object.clone();
    object["spec"] = spec.clone();
    object["metadata"]["labels"][MANAGED_BY] = MANAGER.into();
    object["metadata"]["annotations"][AGENT_NAME] = owner.agent.into();
    object["metadata"]["annotations"][KEPT_FOR] = owner.uid.into();
    object
}

#[cfg(test)]
#[allow(clippy::needless_pass_by_value)] // cases read best as plain literals
mod tests;
