//! Whose the object in the place of a related copy is.

use carrick_sync::acquired::{self, is_proven};
use carrick_sync::ownership::is_written_by;
use carrick_sync::{Acquired, CopyEnd};
use serde_json::Value;

use super::{DroppedSeen, KnownRelated, RelatedContext};
use crate::api::{ADOPTION, REMOTE_RESOURCE};
use crate::decide::{ObjectAddress, Record, address_of_new_copy};
use crate::rules::metadata::{KCP_SIDE, SourceKey, WORDS, annotation, source_of};
use crate::rules::naming::Workspace;
use crate::rules::{Adoption, Duty, Rules, Selection};

/// Whether an object is the copy of an order, whoever made it.
pub(super) fn is_of_order(object: &Value) -> bool {
    source_of(object).is_some()
}

/// Whether an original in kcp is an order by some rules, and those put its copy where a record has it.
pub fn is_placed(theirs: &Rules, cluster: &str, path: Option<&str>, record: &Record, origin: &Value) -> bool {
    let (at, local) = (&record.copy, &theirs.local);
    let is_kind = local.group == at.kind.group && local.plural == at.kind.plural;
    if record.origin.side != KCP_SIDE
        || !is_kind
        || theirs.duty != Duty::Sync
        || theirs.selects(origin, None) == Selection::Out
    {
        return false;
    }
    let namespace = record.origin.namespace.as_deref().unwrap_or_default();
    let key =
        SourceKey { cluster: cluster.into(), namespace: namespace.into(), name: record.origin.name.as_str().into() };
    address_of_new_copy(theirs, &key, Workspace { path, consumer: None }, origin)
        .is_ok_and(|place| place.is_same_object(at))
}

/// Why an entry that leads back to where another one comes from is not carried out.
pub(super) fn circle(known: &KnownRelated<'_>, back: &str) -> String {
    let (identifier, record) = (&known.rules.identifier, &known.record);
    format!(
        "related resource {identifier:?}: it leads in a circle with {back:?}: {} would become {}, from which it is made itself; remove one of the two entries, or let them name different objects",
        record.origin, record.copy
    )
}

/// Whether one leads from the copy of the other back to its original.
fn is_way_back(there: &Record, back: &Record) -> bool {
    there.copy.is_same_object(&back.origin) && there.origin.is_same_object(&back.copy)
}

impl KnownRelated<'_> {
    /// Whether the original is an order whose own copy is in the place of this one, or will be: nothing else is needed.
    pub(super) fn is_ordered(&self) -> bool {
        let Some(copy) = &self.seen.destination else { return self.seen.ordered };
        let at = &self.record.origin;
        let is_source = |copy: &Value| {
            let source = source_of(copy);
            annotation(copy, REMOTE_RESOURCE) == Some(at.kind.resource().as_str())
                && source.is_some_and(|source| {
                    *source.name == *at.name && *source.namespace == *at.namespace.as_deref().unwrap_or_default()
                })
        };
        at.side == KCP_SIDE && is_of_order(copy) && (self.seen.ordered || is_source(copy))
    }
}

impl RelatedContext<'_> {
    /// What a copy carries if it was given to this agent for this consumer. It names the place, so that a clone elsewhere proves nothing. All
    /// primaries and entries that share a copy share this, and so do originals that follow each other.
    pub(super) fn proof(&self, record: &Record) -> String {
        self.proof_of(&record.copy)
    }

    /// The same for the place of a copy.
    pub(super) fn proof_of(&self, at: &ObjectAddress) -> String {
        let namespace = at.namespace.as_deref().unwrap_or_default();
        let parts = [self.agent_name, &self.source.cluster, at.side.name, &at.kind.resource(), namespace, &at.name];
        acquired::proof(&parts)
    }

    /// Whether somebody who may has offered the object in the place of a copy: its owner by an annotation, or the provider for all objects
    /// on the own side. Neither can offer what another agent has, nor the original of something else.
    pub(super) fn is_offered(&self, known: &KnownRelated<'_>) -> bool {
        let Some(copy) = &known.seen.destination else { return false };
        let marks = self.provenance(known.rules);
        let is_said = annotation(copy, ADOPTION) == Some(Adoption::TAKE_OVER);
        let is_policy = self.adoption == Adoption::TakeOver
            && !known.record.copy.side.is_consumer()
            && !marks.is_of_another_primary(copy);
        (is_said || is_policy) && !known.wanted && !marks.is_of_another_agent(copy)
    }

    /// The record that says which object the copy is: that of the object itself, or else another one of this primary, from before an entry
    /// was renamed or its original was replaced.
    pub(super) fn recorded(&self, known: &KnownRelated<'_>) -> Option<&Record> {
        let (own, copy) = (self.state.record(&known.key), &known.record.copy);
        let has_uid = |record: &&Record| record.uid.is_some();
        let mut others =
            self.state.records().map(|(_, record)| record).filter(|record| record.copy.is_same_object(copy));
        own.filter(has_uid).or_else(|| others.find(has_uid)).or(own)
    }

    /// What the rules select and this primary uses the copy of: a different original does so only once it is recorded with it.
    pub(super) fn users<'b>(&self, named: &[&'b Record], record: &Record) -> Vec<&'b Record> {
        let is_recorded = |named: &Record| self.state.records().any(|(_, it)| it.is_same(named) && it.uid.is_some());
        let uses = |named: &&&Record| named.origin.is_same_object(&record.origin) || is_recorded(named);
        named.iter().filter(uses).copied().collect()
    }

    /// Finds the entries that lead in circles, and the copies that are originals of others.
    pub(super) fn find_circles(&self, all: &mut [KnownRelated<'_>]) {
        let mut records: Vec<Record> = all.iter().map(|known| known.record.clone()).collect();
        records.extend(self.state.records().map(|(_, record)| record.clone()));
        for known in all {
            let back = records.iter().find(|record| is_way_back(&known.record, record));
            known.back = back.map(|back| back.identifier.clone());
            known.wanted |= records.iter().any(|other| other.origin.is_same_object(&known.record.copy));
        }
    }

    /// What becomes of the copy of an object that the rules no longer select. It is identified by its UID, or by what it says of itself; if
    /// no UID is recorded, the reference agent wrote it, or the agent died.
    pub(super) fn end_of_dropped(&self, dropped: &DroppedSeen) -> CopyEnd {
        let Some(copy) = dropped.copy.as_ref().filter(|copy| !is_of_order(copy)) else { return CopyEnd::Leave };
        let record = &dropped.record;
        let is_same = record.uid.as_deref().map(|uid| copy["metadata"]["uid"] == uid);
        let is_written = self.state.entry(&dropped.key).is_some_and(|entry| entry.last.is_some());
        let is_ours = match is_same {
            Some(true) => true,
            None if is_written => true,
            // The agent died after it had created the copy, unless somebody else was faster.
            None if is_written_by(copy, WORDS.manager) => true,
            _ => is_proven(&WORDS, copy, &self.proof(record)),
        };
        let known = record.how.filter(|_| is_same == Some(true));
        let how = known.filter(|how| how.is_let_go()).or(Acquired::of(&WORDS, copy)).or(known);
        let is_circular = self.state.records().any(|(_, other)| is_way_back(record, other));
        match (is_ours, how.map_or(is_circular, Acquired::is_let_go)) {
            (false, _) => CopyEnd::Leave,
            (true, true) => CopyEnd::LetGo,
            (true, false) => CopyEnd::Delete,
        }
    }
}
