//! Related objects: the same decisions as for primaries, in either direction, without links and without status coming back.
//!
//! ```text
//!  seen     selected by the rules   ──▶ keep:    track, then finalizer, copy, content, marks, status, annotation
//!  dropped  remembered, not selected ─▶ release: delete the copy, remove the finalizer, forget it
//!  strays   marked, not remembered  ──▶ prune:   delete the copy
//!  primary being deleted            ──▶ release and prune what the rules say, before the primary is deleted
//! ```
//!
//! An object that several primaries use is released by the last of them. Two originals for one copy are refused.
//!
//! Whose an object is in the place of a copy is recorded, or proven by what only the agent writes to it. Only what the agent made is deleted;
//! what was given to it is let go. Nothing is taken that is the copy of an order, or another entry's original; and on the consumer's side
//! nobody but the consumer gives anything away.

mod annotations;
mod claims;
mod release;
mod strays;
#[cfg(test)]
#[allow(clippy::needless_pass_by_value)] // cases read best as plain literals
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use carrick_sync::{CopyEnd, Pair, PairProgress, StatusFlow};
use serde_json::{Map, Value};

use super::drift::{self, DriftContext};
use super::error::DecideError;
use super::holders::{Holder, is_held_by, names};
use super::pause::Pauses;
use super::state::{PrimaryState, entry_key};
use super::{Event, Next, ObjectAddress, Plan, Record, Step};
use crate::api::{CleanupPolicy, Origin};
use crate::rules::metadata::{KCP_SIDE, SERVICE_SIDE, SourceKey, WORDS, is_deleting, sha1_hex};
use crate::rules::mutation::Informed;
use crate::rules::provenance::Provenance;
use crate::rules::reads;
use crate::rules::related::Related;
use crate::rules::{Adoption, ApiKind};
pub use claims::is_placed;
use release::HeldRelated;
pub use strays::{Stray, is_stray};

/// How many related objects an order may have: what is remembered of them must fit into one Secret.
const MOST: usize = 2_000;
/// With more of them than this, related objects are not announced one by one.
const MANY: usize = 10;

/// One related object, as it is on both sides.
#[derive(Debug, Clone)]
pub struct RelatedSeen {
    /// Position of the entry in `spec.related`.
    pub entry: usize,
    /// Kind on the origin side.
    pub origin_kind: Arc<ApiKind>,
    /// Kind on the destination side.
    pub destination_kind: Arc<ApiKind>,
    /// Whether the kind on the destination side has a status subresource.
    pub destination_status: bool,
    /// The object on the origin side.
    pub origin: Value,
    /// Namespace on the destination side.
    pub destination_namespace: String,
    /// Name on the destination side.
    pub destination_name: String,
    /// The object on the destination side, if it exists; with `managedFields`, if it is not recorded as the copy.
    pub destination: Option<Value>,
    /// Other primaries that use the same original or the same copy.
    pub others: Vec<OtherUser>,
    /// Description of a different original that another primary copies to the same place.
    pub rival: Option<String>,
    /// Whether the original is an order itself, whose own copy goes to the same place.
    pub ordered: bool,
    /// Whether another primary has the object on the destination side for an original.
    pub wanted: bool,
}

/// Another primary that uses the same related object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OtherUser {
    /// Whether it uses the same original.
    pub origin: bool,
    /// Whether it uses the same copy.
    pub copy: bool,
}

/// A related object that was served before and that the rules no longer select.
#[derive(Debug, Clone)]
pub struct DroppedSeen {
    /// Key in the state Secret.
    pub key: String,
    /// What is remembered about it.
    pub record: Record,
    /// The object on the origin side, if it exists.
    pub origin: Option<Value>,
    /// The object on the destination side, if it exists.
    pub copy: Option<Value>,
    /// Other primaries that use the same original or the same copy.
    pub others: Vec<OtherUser>,
}

/// All related objects of one primary.
#[derive(Debug, Clone, Default)]
pub struct RelatedView {
    /// Those that the rules select, sorted by entry and then by namespace and name on the origin side.
    pub seen: Vec<RelatedSeen>,
    /// Those that the rules no longer select. The servers have confirmed that twice.
    pub dropped: Vec<DroppedSeen>,
    /// Copies that carry the marks of an entry but are neither selected nor remembered. The servers have confirmed that twice.
    pub strays: Vec<Stray>,
    /// Positions of entries whose objects are not known, because reading them failed or because some may be absent only for a moment.
    pub unknown: HashSet<usize>,
    /// Those of them whose objects the consumer does not let us read, with the kind for which a claim is to be accepted.
    pub unclaimed: BTreeMap<usize, String>,
    /// What `spec.reads` finds, by identifier: null where there is no such object.
    pub objects: Value,
    /// Identifiers of entries of `spec.reads` that could not be read.
    pub unread: BTreeSet<String>,
}

/// A related object that is in kcp.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrived {
    /// Position of its entry in `spec.related`.
    pub entry: usize,
    /// Where it is in kcp.
    pub at: ObjectAddress,
}

impl RelatedSeen {
    /// The record to remember for this object.
    pub fn record(&self, rules: &Related) -> Record {
        let (origin_side, destination_side) = match rules.origin {
            Origin::Kcp => (KCP_SIDE, SERVICE_SIDE),
            Origin::Service => (SERVICE_SIDE, KCP_SIDE),
        };
        let text = |key: &str| self.origin["metadata"][key].as_str().unwrap_or_default().to_owned();
        let in_namespace = |kind: &ApiKind, namespace: String| kind.namespaced.then_some(namespace);
        Record {
            identifier: rules.identifier.clone(),
            origin: ObjectAddress {
                side: origin_side,
                kind: self.origin_kind.clone(),
                namespace: in_namespace(&self.origin_kind, text("namespace")),
                name: text("name"),
            },
            copy: ObjectAddress {
                side: destination_side,
                kind: self.destination_kind.clone(),
                namespace: in_namespace(&self.destination_kind, self.destination_namespace.clone()),
                name: self.destination_name.clone(),
            },
            uid: None,
            how: None,
        }
    }
}

/// What is remembered but not among the objects that the rules select.
pub fn unnamed(state: &PrimaryState, rules: &[Related], seen: &[RelatedSeen]) -> Vec<(String, Record)> {
    let named: Vec<Record> = seen.iter().filter_map(|o| Some(o.record(rules.get(o.entry)?))).collect();
    let unnamed = state.records().filter(|(_, record)| !named.iter().any(|named| named.is_same(record)));
    unnamed.map(|(key, record)| (key.to_owned(), record.clone())).collect()
}

pub(super) struct RelatedContext<'a> {
    pub source: &'a SourceKey,
    pub primary: &'a Value,
    pub primary_at: &'a ObjectAddress,
    pub related: &'a [Related],
    /// Whether the rules are complete.
    pub complete: bool,
    pub state: &'a PrimaryState,
    /// The name under which we hold originals in kcp.
    pub agent: String,
    /// Names of agents that are no more.
    pub former: &'a BTreeSet<String>,
    pub adoption: Adoption,
    /// Whether copies are written by server-side apply.
    pub apply: bool,
    pub schema: &'a str,
    /// Name of the PublishedResource.
    pub published: &'a str,
    pub agent_name: &'a str,
    /// What `spec.reads` finds, by identifier.
    pub objects: &'a Value,
    /// Whether the order still lists objects that are to be deleted: they wait until it does not.
    pub withholds: bool,
    /// What rests.
    pub paused: Pauses,
    /// The time.
    pub now: &'a str,
}

/// A related object and its state.
struct KnownRelated<'a> {
    rules: &'a Related,
    seen: &'a RelatedSeen,
    record: Record,
    key: String,
    /// The marks its copy should carry; `None` if another primary's marks stay there, or none belong there.
    marks: Option<Provenance>,
    /// What becomes of it on its way.
    transform: Informed<'a>,
    /// What its copy carries if it was given to this agent.
    proof: String,
    /// The entry that leads back from the copy to the original, if there is one.
    back: Option<String>,
    /// Whether another entry, or another primary, has the copy for an original.
    wanted: bool,
}

/// Keeps the copies of all related objects in line, and takes back those that the rules no longer select.
pub(super) fn keep(context: &RelatedContext<'_>, view: &RelatedView, plan: &mut Plan) {
    let all = context.known(&view.seen);
    let staying: Vec<&KnownRelated<'_>> = all.iter().filter(|known| !is_deleting(&known.seen.origin)).collect();
    let refused: HashMap<&str, String> =
        staying.iter().filter_map(|known| Some((known.key.as_str(), context.rival(known, &staying)?))).collect();
    let named: Vec<&Record> = staying.iter().map(|known| &known.record).collect();
    let annotations = annotations::wanted(&all);
    let many = annotations.len() > MANY;
    let (mut served, mut beyond) = (context.state.records().count(), 0);
    let mut announced = Map::new();
    let mut records = Vec::new();
    let mut strands = Vec::new();
    for known in &all {
        if let Some(rival) = refused.get(&*known.key) {
            let (identifier, record) = (&known.rules.identifier, &known.record);
            plan.problems.push(format!(
                "related resource {identifier:?}: {} and {rival} would both become {}; give their copies different names",
                record.origin, record.copy
            ));
            continue;
        }
        let ending = is_deleting(&known.seen.origin);
        if !ending && known.is_ordered() || ending && context.withholds || context.paused.holds(known.rules.origin) {
            continue;
        }
        if let Some(back) = known.back.as_ref().filter(|_| !ending && !context.pair(known).made_copy()) {
            plan.problems.push(claims::circle(known, back));
            continue;
        }
        if !context.state.knows(&known.key) {
            if served >= MOST {
                beyond += 1;
                continue;
            }
            served += 1;
        }
        let mut strand = Vec::new();
        let progress = if ending {
            Ok(context.end(known, &named, &mut strand))
        } else {
            let mut status = Vec::new();
            let pair = context.pair(known);
            let progress = pair.keep(&mut strand, &mut status).and_then(|progress| {
                if progress != PairProgress::Unknown {
                    // Nobody asks who has changed the copy of a related object.
                    let (rules, managed) = (&known.rules.drift, Some(&Value::Null));
                    let drift = DriftContext { rules, now: context.now, managed, paused: false };
                    let mut found = drift::look(drift, &pair, &mut strand)?;
                    strand.append(&mut found.notes);
                    strand.append(&mut found.reverts);
                    found.note_in(plan);
                }
                Ok(progress)
            });
            strand.append(&mut status);
            progress.map_err(DecideError::from)
        };
        match progress {
            Ok(PairProgress::Unknown) => plan.needs_memory = true,
            Ok(progress) => {
                let is_tracked = context.state.record(&known.key).is_some_and(|old| old.is_same(&known.record));
                // The reference agent writes no records. They are added with the next write, whatever that is.
                let is_implied = strand.is_empty() && context.state.entry(&known.key).is_some();
                match (ending || is_tracked, is_implied) {
                    (true, _) => {}
                    (false, true) => plan.implied.push((known.key.clone(), known.record.clone())),
                    (false, false) => records.push((known.key.clone(), known.record.clone(), created(&strand))),
                }
                match annotations.iter().find(|(_, a)| a.key == known.key) {
                    Some((name, value)) if !many => strand.extend(annotations::write(context, name, &value.text)),
                    // Many are announced by one write, once they are all there.
                    Some((name, value)) if strand.is_empty() => {
                        announced.insert(name.clone(), value.text.clone().into());
                    }
                    _ => {}
                }
                strands.push((strand, progress));
            }
            Err(DecideError::Mutation(_)) if context.waits(known) => plan.notices.push(context.waiting(known)),
            Err(error) => plan.problems.push(format!("related resource {:?}: {error}", known.rules.identifier)),
        }
    }
    if beyond > 0 {
        let words = "select fewer of them, or divide them among several orders";
        plan.problems
            .push(format!("{beyond} related objects are not copied, because an order may have {MOST}: {words}"));
    }
    if !records.is_empty() {
        plan.steps.push(Step::Track { records });
    }
    for (strand, progress) in strands {
        plan.add(strand, progress);
    }
    plan.add(annotations::write_all(context, &announced).into_iter().collect(), PairProgress::Settled);
    for dropped in view.dropped.iter().filter(|_| !context.withholds && !context.rests()) {
        let mut strand = Vec::new();
        let progress = context.take_back(dropped, &named, &mut strand);
        plan.add(strand, progress);
    }
    let prunes = |stray: &&Stray| !context.withholds && !context.rests() && context.is_to_be_pruned(stray, &view.seen);
    for stray in view.strays.iter().filter(prunes) {
        plan.add(context.prune(stray), PairProgress::Waiting);
    }
    if !context.rests() {
        let stale = annotations::remove_stale(context, &annotations, &view.unknown);
        plan.add(stale.into_iter().collect(), PairProgress::Settled);
    }
}

/// Takes back what must be deleted before the primary. Returns whether that is complete.
pub(super) fn clean_up(context: &RelatedContext<'_>, view: &RelatedView, plan: &mut Plan) -> bool {
    let goes = Related::goes_with_primary;
    let mut done = true;
    let mut release = |held: &HeldRelated<'_>| {
        let mut strand = Vec::new();
        done &= held.release(&mut strand) == PairProgress::Settled;
        plan.add(strand, PairProgress::Settled);
    };
    for known in context.known(&view.seen).iter().filter(|known| goes(known.rules)) {
        release(&context.seen(known, &[]));
    }
    for dropped in &view.dropped {
        let rules = context.related.iter().find(|rules| rules.identifier == dropped.record.identifier);
        // Without valid rules it is not known whether copies of the service's objects should be deleted, so they stay.
        if rules.map_or(context.complete || dropped.record.origin.side == KCP_SIDE, goes) {
            release(&context.dropped(dropped, &[]));
        }
    }
    for stray in view.strays.iter().filter(|stray| context.is_to_be_pruned(stray, &view.seen)) {
        done = false;
        plan.add(context.prune(stray), PairProgress::Settled);
    }
    if !done {
        // Deletions are usually complete by the next reconcile; slow ones are checked now and then.
        plan.next = if plan.is_settled() { Next::Soon } else { Next::Now };
    }
    done
}

/// The related objects that are in kcp: the consumer's own, and those of the service whose copies are ours and stay.
pub(super) fn arrived(context: &RelatedContext<'_>, view: &RelatedView) -> Vec<Arrived> {
    let all = context.known(&view.seen);
    let stays = |origin: &Value| !is_deleting(origin);
    let staying: Vec<&KnownRelated<'_>> = all.iter().filter(|known| stays(&known.seen.origin)).collect();
    let is_there = |known: &&&KnownRelated<'_>| match known.rules.origin {
        Origin::Kcp => true,
        Origin::Service => {
            known.seen.destination.as_ref().is_some_and(|copy| !is_deleting(copy))
                && context.rival(known, &staying).is_none()
                && context.pair(known).end() != CopyEnd::Leave
        }
    };
    let address = |known: &KnownRelated<'_>| match known.rules.origin {
        Origin::Kcp => known.record.origin.clone(),
        Origin::Service => known.record.copy.clone(),
    };
    let there = staying.iter().filter(is_there);
    there.map(|known| Arrived { entry: known.seen.entry, at: address(known) }).collect()
}

/// The object that a strand creates, in the form in which it is remembered.
fn created(strand: &[Step]) -> Option<Value> {
    let creates = strand.iter().any(|step| matches!(step, Step::Create { .. }));
    let mut values =
        strand.iter().filter_map(|step| if let Step::Remember { value, .. } = step { Some(value) } else { None });
    values.next().filter(|_| creates).cloned()
}

impl RelatedContext<'_> {
    /// Whether related objects of some origin rest. Nothing is taken back then: that can wait for the end of the pause.
    fn rests(&self) -> bool {
        !self.paused.is_empty()
    }

    /// Whether rules for an object refer to something that is not there yet.
    fn waits(&self, known: &KnownRelated<'_>) -> bool {
        !reads::lacking(&known.rules.mutation.objects_read(), self.objects).is_empty()
    }

    fn waiting(&self, known: &KnownRelated<'_>) -> String {
        let lacking = reads::lacking(&known.rules.mutation.objects_read(), self.objects).join(", ");
        format!(
            "related resource {:?} waits for what its rules look at: spec.reads finds no {lacking}",
            known.rules.identifier
        )
    }

    /// Description of another original that would become the same copy. The rules do not say which one is meant, unless one of them was
    /// there first.
    fn rival(&self, known: &KnownRelated<'_>, staying: &[&KnownRelated<'_>]) -> Option<String> {
        if known.seen.rival.is_some() {
            return known.seen.rival.clone();
        }
        let is_first = |known: &KnownRelated<'_>| self.state.record(&known.key).is_some();
        let mut rivals = staying.iter().filter(|other| {
            let (ours, theirs) = (&known.record, &other.record);
            theirs.copy.is_same_object(&ours.copy) && !theirs.origin.is_same_object(&ours.origin)
        });
        let rival = if is_first(known) { rivals.find(|other| is_first(other)) } else { rivals.next() };
        rival.map(|other| other.record.origin.to_string())
    }

    /// Ends an object that the rules no longer select: its copy is deleted, unless the policy says otherwise; our finalizer is removed in
    /// any case.
    fn take_back(&self, dropped: &DroppedSeen, named: &[&Record], strand: &mut Vec<Step>) -> PairProgress {
        let mut held = self.dropped(dropped, named);
        let rules = self.related.iter().find(|rules| rules.identifier == dropped.record.identifier);
        let matches_origin = rules.is_some_and(|rules| rules.policy == CleanupPolicy::MatchOrigin);
        if held.is_out_of_sight() && !matches_origin {
            return PairProgress::Settled;
        }
        let stays = rules.filter(|rules| !rules.goes_with_origin());
        if stays.is_some() {
            held = held.without_copy();
        }
        let progress = held.release(strand);
        if strand.iter().any(|step| matches!(step, Step::Delete { .. })) {
            strand.push(Step::Report { at: self.primary_at.clone(), event: Event::Pruned });
        }
        // The marks are enough to find a copy that will be deleted with the primary. Without marks, it must stay in the state.
        let is_unmarked = |copy: &Value| stays.is_some_and(|rules| !self.provenance(rules).is_on(copy));
        let is_needed = stays.is_some_and(|rules| rules.policy == CleanupPolicy::OnPrimaryDeletion)
            && dropped.copy.as_ref().is_some_and(is_unmarked);
        if progress != PairProgress::Waiting && !is_needed {
            strand.push(Step::Drop { entry: dropped.key.clone() });
        }
        progress
    }

    /// Who holds originals in kcp.
    fn holder(&self) -> Holder<'_> {
        Holder::new(&self.agent, self.former)
    }

    /// The marks for copies of an entry.
    fn provenance(&self, rules: &Related) -> Provenance {
        Provenance::of(self.source, self.published, &rules.identifier, self.agent_name)
    }

    /// The marks that the copy of an object should carry. If several primaries share a copy, it carries the marks of one of them, and the
    /// others leave them alone;
    /// the same is true for several entries.
    fn marks(
        &self,
        rules: &Related,
        seen: &RelatedSeen,
        record: &Record,
        before: &[KnownRelated<'_>],
    ) -> Option<Provenance> {
        let is_same =
            |known: &KnownRelated<'_>| known.marks.is_some() && known.record.copy.is_same_object(&record.copy);
        if !rules.marks_copies() || before.iter().any(is_same) {
            return None;
        }
        let marks = self.provenance(rules);
        let is_shared = seen.others.iter().any(|other| other.copy);
        let is_theirs =
            |copy: &Value| marks.is_of_another_agent(copy) || (is_shared && marks.is_of_another_primary(copy));
        (!seen.destination.as_ref().is_some_and(is_theirs)).then_some(marks)
    }

    /// Ends an original: its copy is deleted, then the finalizer is removed, then the state. An agent that dies before the finalizer is
    /// removed must still know that the finalizer is its own.
    fn end(&self, known: &KnownRelated<'_>, named: &[&Record], strand: &mut Vec<Step>) -> PairProgress {
        let is_known = self.state.knows(&known.key);
        if !is_known {
            // The state is lost, and only our finalizer is left. Another primary whose state has the original ends it.
            let is_ours =
                is_held_by(&known.seen.origin, self.holder()) && !known.seen.others.iter().any(|other| other.origin);
            return if is_ours { self.seen(known, named).release(strand) } else { PairProgress::Settled };
        }
        let progress = self.seen(known, named).ending().release(strand);
        if progress != PairProgress::Waiting {
            strand.push(Step::Drop { entry: known.key.clone() });
        }
        progress
    }

    /// An object that the rules select and that must be released. The object in the place of its copy is deleted only if we made it.
    fn seen<'b>(&'b self, known: &'b KnownRelated<'_>, named: &[&Record]) -> HeldRelated<'b> {
        HeldRelated::seen(known, &self.users(named, &known.record), self.holder()).ends(self.pair(known).end())
    }

    /// The same for an object that the rules no longer select.
    fn dropped<'b>(&'b self, dropped: &'b DroppedSeen, named: &[&Record]) -> HeldRelated<'b> {
        HeldRelated::dropped(dropped, &self.users(named, &dropped.record), self.holder())
            .ends(self.end_of_dropped(dropped))
    }

    fn pair<'b>(&'b self, known: &'b KnownRelated<'_>) -> Pair<'b, Informed<'b>> {
        let (rules, seen) = (known.rules, known.seen);
        let recorded = self.recorded(known);
        Pair {
            vocabulary: &WORDS,
            source_at: known.record.origin.clone(),
            source: &seen.origin,
            copy: seen.destination.as_ref(),
            copy_at: known.record.copy.clone(),
            remembered: self.state.entry(&known.key),
            partial: self.state.partial,
            copy_uid: recorded.and_then(|record| record.uid.as_deref()),
            how: recorded.and_then(|record| record.how),
            proof: Some(&known.proof),
            shared: seen.others.iter().any(|other| other.copy),
            // An original is held, and a copy announced on the primary, only once it is certain that the copy is ours.
            vouched: match rules.origin {
                Origin::Kcp => names(&seen.origin, self.holder()),
                Origin::Service => annotations::announces(self.primary, known),
            },
            ordered: seen.destination.as_ref().is_some_and(claims::is_of_order),
            circular: known.back.is_some(),
            entry: known.key.clone(),
            // Originals on the service cluster belong to the provider's operator and are never held.
            holder: (rules.origin == Origin::Kcp).then(|| self.holder()),
            primary: false,
            link: known.marks.as_ref().map(|marks| (&marks.link, marks.agent_name.as_str())),
            // A status subresource is never part of the content; without one a status is content like everything else.
            subresources: if rules.sync_status || seen.destination_status { &["status"] } else { &[] },
            status: match (rules.sync_status, seen.destination_status) {
                (true, true) => StatusFlow::Forward,
                (true, false) => StatusFlow::Blocked,
                (false, _) => StatusFlow::None,
            },
            transform: &known.transform,
            offered: self.is_offered(known),
            schema: self.schema,
            apply: self.apply,
        }
    }

    /// Finds the key of each object in the state Secret. The reference agent's key does not contain the kind, so objects of the same name
    /// (including the primary) would share one key; a later object gets a key of its own, and keeps it.
    fn known<'b>(&'b self, seen: &'b [RelatedSeen]) -> Vec<KnownRelated<'b>> {
        let mut taken: HashSet<String> = self.state.records().map(|(key, _)| key.to_owned()).collect();
        taken.insert(entry_key(&self.source.cluster, &self.source.namespace, &self.source.name));
        let mut all: Vec<KnownRelated<'_>> = Vec::new();
        for object in seen {
            let Some(rules) = self.related.get(object.entry) else { continue };
            let record = object.record(rules);
            let mut known = self.state.records().filter(|(_, known)| known.is_same(&record));
            let key = known.next().map_or_else(|| self.new_key(&record, &taken), |(key, _)| key.to_owned());
            taken.insert(key.clone());
            let marks = self.marks(rules, object, &record, &all);
            let proof = self.proof(&record);
            all.push(KnownRelated {
                rules,
                seen: object,
                record,
                key,
                marks,
                transform: Informed { mutation: &rules.mutation, objects: self.objects },
                proof,
                back: None,
                wanted: object.wanted,
            });
        }
        self.find_circles(&mut all);
        all
    }

    fn new_key(&self, record: &Record, taken: &HashSet<String>) -> String {
        let at = &record.origin;
        let cluster = if at.side == KCP_SIDE { &*self.source.cluster } else { "" };
        let plain = entry_key(cluster, at.namespace.as_deref().unwrap_or_default(), &at.name);
        let last = self.state.entry(&plain).and_then(|entry| entry.last.as_ref()?.whole());
        let is_other_kind = last.is_some_and(|last| last["kind"] != at.kind.kind.as_str());
        if !is_other_kind && !taken.contains(&plain) {
            return plain;
        }
        let own = sha1_hex(&format!("{plain}/{}", record.identifier));
        if taken.contains(&own) { sha1_hex(&format!("{own}/{}", record.copy)) } else { own }
    }
}
