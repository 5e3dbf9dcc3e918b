//! Releasing a related object.

use carrick_sync::{CopyEnd, PairProgress, delete_unchanged, release_copy};
use serde_json::Value;

use super::{DroppedSeen, KnownRelated, OtherUser};
use crate::decide::holders::{Holder, is_held_by, release};
use crate::decide::{Dependents, Event, Record, Step};
use crate::rules::metadata::{KCP_SIDE, WORDS, is_deleting};

/// A related object that must be released.
pub(super) struct HeldRelated<'a> {
    record: &'a Record,
    origin: Option<&'a Value>,
    copy: Option<&'a Value>,
    /// What becomes of the copy.
    end: CopyEnd,
    /// Who else uses the original or the copy.
    others: Vec<OtherUser>,
    /// The name under which we hold the original.
    holder: Holder<'a>,
}

impl<'a> HeldRelated<'a> {
    /// An object that the rules select, given everything else they select.
    pub fn seen(known: &'a KnownRelated<'_>, named: &[&Record], holder: Holder<'a>) -> Self {
        Self {
            record: &known.record,
            origin: Some(&known.seen.origin),
            copy: known.seen.destination.as_ref(),
            end: CopyEnd::Leave,
            others: others(&known.record, &known.seen.others, named),
            holder,
        }
    }

    /// The same, once it is known what becomes of the copy.
    pub fn ends(mut self, end: CopyEnd) -> Self {
        self.end = end;
        self.copy = self.copy.filter(|_| end != CopyEnd::Leave);
        self
    }

    /// The same without the copy, which stays.
    pub fn without_copy(self) -> Self {
        self.ends(CopyEnd::Leave)
    }

    /// An object that the rules no longer select, given what they select instead.
    pub fn dropped(dropped: &'a DroppedSeen, named: &[&Record], holder: Holder<'a>) -> Self {
        Self {
            record: &dropped.record,
            origin: dropped.origin.as_ref(),
            copy: dropped.copy.as_ref(),
            end: CopyEnd::Leave,
            others: others(&dropped.record, &dropped.others, named),
            holder,
        }
    }

    /// The original itself is being deleted: whoever else uses it loses it too.
    pub fn ending(mut self) -> Self {
        self.others.retain(|other| !other.origin);
        self
    }

    /// Whether the original cannot be seen, although our finalizer must have kept it: it is hidden rather than gone.
    pub fn is_out_of_sight(&self) -> bool {
        self.record.origin.side == KCP_SIDE && self.origin.is_none() && self.copy.is_some()
    }

    /// Steps that delete the copy, and then remove our finalizer; neither while somebody else needs it.
    pub fn release(&self, steps: &mut Vec<Step>) -> PairProgress {
        let copy = self.copy.filter(|_| !self.others.iter().any(|other| other.copy));
        if let Some(copy) = copy.filter(|_| self.end == CopyEnd::Delete) {
            if !is_deleting(copy) {
                let consumer = self.origin.filter(|_| self.record.origin.side == KCP_SIDE);
                let dependents = consumer.map(|consumer| Dependents::of(&WORDS, consumer)).unwrap_or_default();
                steps.push(delete_unchanged(self.record.copy.clone(), copy, dependents));
                self.report(steps, Event::Cleanup);
            }
            return PairProgress::Waiting;
        }
        let before = steps.len();
        if let Some(origin) = self.origin
            && self.record.origin.side == KCP_SIDE
            && is_held_by(origin, self.holder)
            && !self.others.iter().any(|other| other.origin)
        {
            steps.push(release(&self.record.origin, origin, self.holder));
            self.report(steps, Event::Deleted);
        }
        // Last of all: until then, the copy says itself that it must not be deleted, even if nothing is remembered.
        steps.extend(copy.and_then(|copy| release_copy(&WORDS, &self.record.copy, copy)));
        if steps.len() > before { PairProgress::Wrote } else { PairProgress::Settled }
    }

    /// Reports an event on the object in kcp, whichever of the two that is.
    fn report(&self, steps: &mut Vec<Step>, event: Event) {
        let at = if self.record.origin.side == KCP_SIDE { &self.record.origin } else { &self.record.copy };
        steps.push(Step::Report { at: at.clone(), event });
    }
}

/// Other primaries that use the object, and the own one if it uses the object in another way.
fn others(record: &Record, others: &[OtherUser], named: &[&Record]) -> Vec<OtherUser> {
    let own = named.iter().map(|named| OtherUser {
        origin: named.origin.is_same_object(&record.origin),
        copy: named.copy.is_same_object(&record.copy),
    });
    others.iter().copied().chain(own).collect()
}
