//! What an executor needs to know of this agent: its memory, its events, and what it may take over.
#![allow(clippy::result_large_err)] // failures are rare, and reported at once

use std::sync::Arc;

use carrick_client::{Client, Error, ListOptions, Object};
use carrick_execute::{Advice, Agent, StepError};
use carrick_sync::Vocabulary;
use serde_json::{Value, json};

use crate::agent::events::{Recorder, Type};
use crate::agent::objects::kinds::resource;
use crate::agent::objects::states::States;
use crate::api::{AGENT_NAME, FIELD_MANAGER, REMOTE_NAMESPACE_HASH, REMOTE_UID};
use crate::decide::adopt::{Adoption, adopt};
use crate::decide::events::{refused_status, texts};
use crate::decide::state::PrimaryState;
use crate::decide::{Claim, Event, ObjectAddress, Side, claim};
use crate::rules::metadata::{KCP_SIDE, SourceKey, WORDS, annotation, label, link_to};
use crate::rules::{ApiKind, Rules};

/// What to do about an object in the place of a copy.
static ADVICE: Advice = Advice {
    foreign: "change spec.naming of the PublishedResource, remove that object, or give it away by its annotation syncagent.kcp.io/adoption: TakeOver",
    refused: "remove or rename it, change spec.naming of the PublishedResource, or let it be taken over: by its annotation syncagent.kcp.io/adoption: TakeOver, or by spec.adoption: TakeOver in the PublishedResource",
};

/// The agent at work on one order.
pub(super) struct OrderAgent<'a> {
    pub kcp: &'a Client,
    pub local: &'a Client,
    pub states: &'a States,
    pub recorder: &'a Recorder,
    pub rules: &'a Rules,
    /// Whether another object had the name of the copy at the last reconcile.
    pub was_taken: bool,
    pub key: &'a SourceKey,
    /// The primary.
    pub source: &'a Value,
    /// Other sources of the same name whose copies are of the same kind.
    pub rivals: &'a [(Arc<Rules>, Value)],
}

impl Agent for OrderAgent<'_> {
    fn vocabulary(&self) -> &'static Vocabulary {
        &WORDS
    }

    fn field_manager(&self, primary: bool) -> String {
        self.rules.field_manager(primary)
    }

    fn writers(&self) -> &[&str] {
        &[FIELD_MANAGER]
    }

    fn is_confidential(&self, kind: &ApiKind) -> bool {
        self.rules.is_confidential(kind)
    }

    fn was_taken(&self) -> bool {
        self.was_taken
    }

    fn adopt(&self, existing: &Value, wanted: &Value) -> Adoption {
        adopt(existing, wanted, self.rules.adoption, &self.rules.subresources)
    }

    fn advice(&self) -> &'static Advice {
        &ADVICE
    }

    fn has_namespace(&self, side: Side, name: &str) -> bool {
        // A primary is in its namespace, so that exists.
        side == KCP_SIDE && name == &*self.key.namespace
    }

    /// The cache is behind the server now and then; before a source is released, the server itself is asked.
    async fn confirm_no_copy(&self) -> Result<(), StepError> {
        if self.rules.blind {
            return Ok(());
        }
        let link = link_to(self.key, None).labels;
        let mut labels: Vec<String> = link.iter().map(|(k, v)| format!("{k}={v}")).collect();
        // A source without a namespace has nothing to do with one of the same name in some namespace.
        if self.key.namespace.is_empty() {
            labels.push(format!("!{REMOTE_NAMESPACE_HASH}"));
        }
        let kind = resource(&self.rules.local);
        let options = ListOptions::labels(labels.join(","));
        let left = self.local.list_compact(&kind, None, &options).await.map_err(|source| StepError::Write {
            verb: "list",
            at: format!("copies of {}/{}", self.key.namespace, self.key.name),
            source,
        })?;
        // Metadata will do, so that one that nests too deep is found as well.
        let left: Vec<Value> = left.iter().map(Object::value).collect();
        // The copy of another agent is that agent's business, that of another source is that source's, and so is that of an earlier object of
        // the same name.
        let uid = self.source["metadata"]["uid"].as_str();
        let ours = |copy: &&Value| {
            label(copy, AGENT_NAME).is_none_or(|agent| agent == self.rules.agent_name)
                && annotation(copy, REMOTE_UID).is_none_or(|theirs| Some(theirs) == uid)
                && !matches!(claim(self.rules, self.key, self.source, self.rivals, copy), Ok(Claim::Theirs))
        };
        let Some(copy) = left.iter().find(ours) else { return Ok(()) };
        let text = |key: &str| copy["metadata"][key].as_str();
        let (namespace, name) = (text("namespace"), text("name").unwrap_or_default());
        let at = format!("{} {}/{name}", kind.kind, namespace.unwrap_or_default());
        if label(copy, AGENT_NAME).is_none() {
            // Without the label no watch shows it.
            let resource_version = &copy["metadata"]["resourceVersion"];
            let labels = json!({AGENT_NAME: self.rules.agent_name});
            let patch = json!({"metadata": {"labels": labels, "resourceVersion": resource_version}});
            let patched = self.local.merge_patch(&kind, namespace, name, &patch).await;
            patched.map_err(|source| StepError::Write { verb: "label", at: at.clone(), source })?;
        }
        Err(StepError::CopyLeft(at))
    }

    fn memory(&self) -> PrimaryState {
        self.states.get(&self.rules.remote, self.key)
    }

    async fn remember(&self, change: impl FnOnce(&mut PrimaryState) + Send) -> Result<(), Error> {
        self.states.update(&self.rules.remote, self.key, change).await
    }

    async fn forget(&self) -> Result<(), Error> {
        self.states.forget(&self.rules.remote, self.key).await
    }

    fn memory_at(&self) -> String {
        format!("state Secret of {}/{} in logical cluster {}", self.key.namespace, self.key.name, self.key.cluster)
    }

    fn report(&self, object: &Value, event: Event, detail: Option<&str>) {
        let (reason, message) = texts(event);
        let kind = if event.is_warning() { Type::Warning } else { Type::Normal };
        match detail {
            Some(detail) => self.recorder.event(self.kcp, object, kind, reason, &format!("{message} {detail}")),
            None => self.recorder.event(self.kcp, object, kind, reason, message),
        }
    }

    fn refused_status(&self, at: &ObjectAddress) -> String {
        refused_status(at)
    }
}
