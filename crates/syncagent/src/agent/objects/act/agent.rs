//! What an executor needs to know of this agent: its memory, its events, and what it may take over.
#![allow(clippy::result_large_err)] // failures are rare, and reported at once

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use carrick_client::{Client, Error, ListOptions, Object};
use carrick_sync::acquired::is_kept;
use carrick_sync::executor::{Advice, Agent, Brake, StepError, Target, Verb, link_patch};
use carrick_sync::{Acquired, Vocabulary};
use serde_json::{Value, json};

use crate::agent::events::{Recorder, Type};
use crate::agent::objects::deletion::leftovers::LeftCopies;
use crate::agent::objects::related::kinds::{self, resource};
use crate::agent::objects::states::States;
use crate::api::{AGENT_NAME, FIELD_MANAGER, REMOTE_NAME_HASH, REMOTE_NAMESPACE_HASH, REMOTE_UID};
use crate::decide::adopt::{Adoption, adopt};
use crate::decide::events::{refused_status, texts};
use crate::decide::state::{CopyNote, PrimaryState, entry_key};
use crate::decide::{Claim, Event, ObjectAddress, Side, address_of_new_copy, claim};
use crate::rules::metadata::{
    KCP_SIDE, SERVICE_SIDE, SourceKey, WORDS, annotation, is_deleting, label, link_to, link_to_object, sha1_hex,
    source_of, write_link,
};
use crate::rules::naming::Workspace;
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
    pub left: &'a LeftCopies,
    pub brake: &'a Brake,
    /// Names of agents that are no more.
    pub former: &'a BTreeSet<String>,
    /// What the rules ask for of its workspace.
    pub workspace: Workspace<'a>,
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
        match adopt(&self.inherited(existing), wanted, self.rules.adoption, &self.rules.subresources) {
            Adoption::Take(_) | Adoption::Refused if self.is_known(existing) => Adoption::Ours,
            adoption => adoption,
        }
    }

    fn advice(&self) -> &'static Advice {
        &ADVICE
    }

    fn has_namespace(&self, side: Side, name: &str) -> bool {
        // A primary is in its namespace, so that exists.
        side == KCP_SIDE && name == &*self.key.namespace
    }

    /// The cache is behind the server now and then; before a source is released, the server itself is asked: for the one object where it
    /// is known, or else for everything that leads to the source.
    async fn confirm_no_copy(&self) -> Result<(), StepError> {
        if self.rules.blind {
            return Ok(());
        }
        let deleted = self.left.deleted_at(self.key, self.uid().unwrap_or_default());
        let named = || address_of_new_copy(self.rules, self.key, self.workspace, self.source).ok();
        let is_known = deleted.is_some();
        let expected = deleted.or_else(named);
        // The copy keeps its place, whatever the rules make of its name by now.
        let noted = self.noted_place().filter(|at| !is_known && expected.as_ref() != Some(at));
        for at in expected.iter().chain(&noted) {
            self.confirm_gone(at).await?;
        }
        if is_known { Ok(()) } else { self.confirm_no_link().await }
    }

    fn memory(&self) -> PrimaryState {
        self.states.get(&self.rules.remote, self.key)
    }

    async fn remember(&self, change: impl FnOnce(&mut PrimaryState) + Send) -> Result<(), Error> {
        self.states.update(&self.rules.remote, self.key, change).await
    }

    async fn forget(&self) -> Result<(), Error> {
        let uid = self.source["metadata"]["uid"].as_str().unwrap_or_default();
        self.states.forget(&self.rules.remote, self.key, uid).await
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

    fn brake(&self) -> Option<(&Brake, (&SourceKey, &str))> {
        Some((self.brake, (self.key, self.uid().unwrap_or_default())))
    }

    fn refused_status(&self, at: &ObjectAddress) -> String {
        refused_status(at)
    }
}

impl OrderAgent<'_> {
    fn uid(&self) -> Option<&str> {
        self.source["metadata"]["uid"].as_str()
    }

    /// A copy that bears the name of an agent that is no more, without that name: as if it had lost the label.
    fn inherited<'c>(&self, copy: &'c Value) -> Cow<'c, Value> {
        if !label(copy, AGENT_NAME).is_some_and(|agent| self.former.contains(agent)) {
            return Cow::Borrowed(copy);
        }
        let mut unnamed = copy.clone();
        if let Some(labels) = unnamed["metadata"]["labels"].as_object_mut() {
            labels.remove(AGENT_NAME);
        }
        Cow::Owned(unnamed)
    }

    /// What is remembered of the copy of this very source.
    fn noted(&self) -> Option<CopyNote> {
        let entry = entry_key(&self.key.cluster, &self.key.namespace, &self.key.name);
        let noted = self.memory().entry(&entry).and_then(|entry| entry.copy.clone());
        noted.filter(|noted| noted.source.is_some() && noted.source.as_deref() == self.uid())
    }

    /// Where the copy is, if that is remembered.
    fn noted_place(&self) -> Option<ObjectAddress> {
        let CopyNote { namespace, name, .. } = self.noted()?;
        Some(ObjectAddress { side: SERVICE_SIDE, kind: Arc::new(self.rules.local.clone()), namespace, name })
    }

    /// Whether an object that does not say whose copy it is is the copy by its UID: somebody has removed what it said. One that was let go
    /// at the end of its order, because it was there before or because its provider keeps it, does not say so for a good reason.
    fn is_known(&self, existing: &Value) -> bool {
        let stays = |noted: &CopyNote| noted.how.is_some_and(Acquired::is_let_go) || is_kept(&WORDS, existing);
        let is_over = |noted: &CopyNote| is_deleting(self.source) && stays(noted);
        source_of(existing).is_none()
            && self.noted().is_some_and(|noted| existing["metadata"]["uid"] == *noted.uid && !is_over(&noted))
    }

    /// Asks for one object. It may be a copy that has lost a label, which no list finds.
    async fn confirm_gone(&self, at: &ObjectAddress) -> Result<(), StepError> {
        let kind = resource(&at.kind);
        let found = self.local.get_compact(&kind, at.namespace.as_deref(), &at.name).await;
        let found = found.map_err(|source| StepError::Write { verb: Verb::Get, at: at.into(), source })?;
        let Some(copy) = found.map(|copy| copy.value()) else { return Ok(()) };
        if !matches!(self.adopt(&copy, &self.link()), Adoption::Ours) {
            return Ok(());
        }
        self.relink(&copy, at.clone()).await
    }

    async fn is_kind_gone(&self) -> Result<bool, StepError> {
        let gone = kinds::is_gone(self.local, &self.rules.local).await;
        gone.map_err(|source| StepError::Write {
            verb: Verb::Find,
            at: Target::Objects(self.rules.local.resource()),
            source,
        })
    }

    /// Asks for whatever leads to the source.
    async fn confirm_no_link(&self) -> Result<(), StepError> {
        let kind = resource(&self.rules.local);
        let link = link_to(self.key, None).labels;
        let list = |names: Vec<String>| {
            let selector = format!("{REMOTE_NAME_HASH} in ({})", names.join(","));
            let kind = &kind;
            async move { self.local.list_compact(kind, None, &ListOptions::labels(selector)).await }
        };
        let listed = match self.left.named(&sha1_hex(&self.key.name), list).await {
            // Where there is no such kind, there are no copies.
            Err(error) if error.is_not_found() && self.is_kind_gone().await? => return Ok(()),
            listed => listed,
        };
        let listed = listed.map_err(|source| StepError::Write {
            verb: Verb::List,
            at: Target::Objects(format!("copies of {}/{}", self.key.namespace, self.key.name)),
            source,
        })?;
        // The copy of another agent is that agent's business, that of another source is that source's, and so is that of an earlier object of
        // the same name.
        let ours = |copy: &Value| {
            link.iter().all(|(key, value)| label(copy, key) == Some(value))
                // A source without a namespace has nothing to do with one of the same name in some namespace.
                && (!self.key.namespace.is_empty() || label(copy, REMOTE_NAMESPACE_HASH).is_none())
                && label(copy, AGENT_NAME).is_none_or(|agent| agent == self.rules.agent_name || self.former.contains(agent))
                && annotation(copy, REMOTE_UID).is_none_or(|theirs| Some(theirs) == self.uid())
                && !matches!(claim(self.rules, self.key, self.source, self.rivals, copy), Ok(Claim::Theirs))
        };
        // Metadata will do, so that one that nests too deep is found as well.
        let Some(copy) = listed.iter().map(Object::value).find(ours) else { return Ok(()) };
        self.relink(&copy, ObjectAddress::of_object(SERVICE_SIDE, &self.rules.local, &copy)).await
    }

    /// A copy is left. If it has lost labels, no watch shows it: it gets them back.
    async fn relink(&self, copy: &Value, at: ObjectAddress) -> Result<(), StepError> {
        if let Some(patch) = link_patch(&WORDS, copy, &self.link()) {
            let (namespace, name) = (copy["metadata"]["namespace"].as_str(), copy["metadata"]["name"].as_str());
            let kind = resource(&self.rules.local);
            tracing::info!(object = %at, "A copy has lost labels that lead to its source; it gets them back.");
            let patched = self.local.merge_patch(&kind, namespace, name.unwrap_or_default(), &patch).await;
            patched.map_err(|source| StepError::Write { verb: Verb::Label, at: (&at).into(), source })?;
        }
        Err(StepError::CopyLeft(at))
    }

    /// What leads from a copy to the source, on an object without anything else.
    fn link(&self) -> Value {
        let mut object = json!({"metadata": {}});
        let link = link_to_object(self.key, None, &self.rules.remote.resource(), self.source);
        write_link(&link, &mut object, &self.rules.agent_name);
        object
    }
}
