//! A brake for writes that are undone again and again.
//!
//! Something else may delete what an agent creates, or set back what it writes, as soon as it is there. Both sides are right in their own
//! eyes, and each answers the other at once, for ever. The first few times a write is simply repeated; after that it waits, longer every time.
//! What differs from write to write is nobody's contest; that is only bounded by how many writes an object may have in a minute.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::checksum::checksum;
use crate::executor::rate::{Allowance, Rate};
use crate::{ObjectAddress, Step, Vocabulary};

/// How often the same may be written to one object without a pause.
const FREE: u32 = 5;
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_mins(5);
/// What stayed for so long was not undone by somebody who is at odds with us.
const HELD: Duration = Duration::from_mins(1);
/// With more objects than this, those that were written long ago are forgotten.
const ENOUGH: usize = 256;

/// What was written last to each object, and how often it was undone.
#[derive(Debug, Default)]
pub struct Brake {
    hasher: RandomState,
    written: Mutex<Written>,
    rate: Option<Rate>,
}

#[derive(Debug, Default)]
struct Written {
    objects: HashMap<u64, Undone>,
    /// How many were left when old ones were forgotten.
    left: usize,
}

#[derive(Debug, Clone, Copy)]
struct Undone {
    content: u64,
    times: u32,
    last: Instant,
    /// When somebody wanted to write the same once more.
    missed: Option<Instant>,
}

/// Hashes of an object, of how it is written and of what is written to it.
#[derive(Debug, Clone, Copy)]
pub struct Write {
    /// Whatever is written; nothing if the write does not count, so that an order can end however often it has changed.
    counted: Option<u64>,
    object: u64,
    content: u64,
}

/// A write that has to wait, because the same was undone before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Contest {
    /// How often the same was written.
    pub times: u32,
    /// How long to wait.
    pub wait: Duration,
}

/// Why a write has to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// The same was undone before.
    Contested(Contest),
    /// The object had as many writes as it may have in a minute, and how long that minute lasts.
    TooOften(Allowance, Duration),
}

impl Undone {
    fn stayed(&self, now: Instant) -> bool {
        self.missed.unwrap_or(now).duration_since(self.last) > HELD
    }

    fn until(&self) -> Instant {
        let Some(doublings) = self.times.checked_sub(FREE) else { return self.last };
        self.last + FIRST_PAUSE.saturating_mul(1 << doublings.min(16)).min(LONGEST_PAUSE)
    }
}

impl Brake {
    /// A brake that also allows one object no more than so many writes in a minute.
    pub fn allowing(allowed: Allowance) -> Self {
        Self { rate: Some(Rate::new(allowed)), ..Self::default() }
    }

    /// What a step writes to which object; nothing if it writes no content. Computed once, because it reads all of the content.
    pub fn write_of(&self, owner: &impl std::hash::Hash, step: &Step, words: &Vocabulary) -> Option<Write> {
        let (at, content) = content(step, words)?;
        let is_end = matches!(step, Step::SetFinalizers { .. });
        Some(Write {
            counted: (!is_end).then(|| self.hasher.hash_one((owner, at))),
            object: self.hasher.hash_one((owner, at, step.verb())),
            content: self.hasher.hash_one(content),
        })
    }

    /// Whether something may be written now.
    pub fn check(&self, write: Write) -> Result<(), Wait> {
        let now = Instant::now();
        self.may(write.object, write.content, now).map_err(Wait::Contested)?;
        let exceeded = self.rate.as_ref().zip(write.counted).and_then(|(rate, object)| rate.exceeded(object, now));
        exceeded.map_or(Ok(()), |(allowed, wait)| Err(Wait::TooOften(allowed, wait)))
    }

    /// It is sent now.
    pub fn sends(&self, write: Write) {
        if let (Some(rate), Some(object)) = (&self.rate, write.counted) {
            rate.count(object, Instant::now());
        }
    }

    /// It was written.
    pub fn wrote(&self, write: Write) {
        self.count(write.object, write.content, Instant::now());
    }

    fn may(&self, object: u64, content: u64, now: Instant) -> Result<(), Contest> {
        let mut written = self.written.lock();
        let Some(undone) = written.objects.get_mut(&object).filter(|undone| undone.content == content) else {
            return Ok(());
        };
        undone.missed.get_or_insert(now);
        if undone.stayed(now) || now >= undone.until() {
            return Ok(());
        }
        Err(Contest { times: undone.times, wait: undone.until() - now })
    }

    fn count(&self, object: u64, content: u64, now: Instant) {
        let mut written = self.written.lock();
        let before = written.objects.get(&object).filter(|undone| undone.content == content && !undone.stayed(now));
        let times = before.map_or(0, |undone| undone.times) + 1;
        written.objects.insert(object, Undone { content, times, last: now, missed: None });
        if written.objects.len() > ENOUGH.max(2 * written.left) {
            written.objects.retain(|_, undone| now < undone.until() + HELD);
            written.left = written.objects.len();
        }
    }
}

/// What a step writes, in a form that is the same whenever the same is written again; nothing if it writes no content.
fn content<'a>(step: &'a Step, words: &Vocabulary) -> Option<(&'a ObjectAddress, String)> {
    let mark = words.applied_state;
    let without = |object: &Value| {
        let mut object = object.clone();
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.remove("resourceVersion");
            metadata.remove("managedFields");
            if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
                annotations.remove(mark);
            }
        }
        object
    };
    let is_mark = |path: &[String]| path.last().is_some_and(|last| last == mark);
    let (at, content) = match step {
        Step::SetFinalizers { at, finalizers, held_by, .. } => (at, json!([finalizers, held_by])),
        Step::Create { at, object } | Step::Apply { at, object, .. } | Step::Replace { at, object } => {
            (at, without(object))
        }
        Step::Patch { at, patch } => (at, without(patch)),
        Step::WriteStatus { at, object, .. } => (at, object["status"].clone()),
        Step::Edit { at, edits, .. } => {
            let edits = edits.iter().filter(|edit| !is_mark(&edit.path));
            (at, edits.map(|edit| json!([edit.path, edit.value])).collect())
        }
        _ => return None,
    };
    Some((at, checksum(&content)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pass(brake: &Brake, content: u64) -> bool {
        let now = Instant::now();
        let may = brake.may(1, content, now).is_ok();
        if may {
            brake.count(1, content, now);
        }
        may
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_undone_again_and_again_is_written_ever_more_rarely() {
        let brake = Brake::default();
        let mut writes = 0;
        // Somebody else undoes each write at once, for an hour.
        for _ in 0..360_000 {
            writes += usize::from(pass(&brake, 7));
            tokio::time::advance(Duration::from_millis(10)).await;
        }
        assert!((15..=30).contains(&writes), "{writes}");
        let contest = brake.may(1, 7, Instant::now()).unwrap_err();
        assert!(contest.times > 5 && contest.wait <= LONGEST_PAUSE, "{contest:?}");
        assert!(brake.may(1, 8, Instant::now()).is_ok(), "something else is written at once");
        assert!(brake.may(2, 7, Instant::now()).is_ok(), "and so is another object");
    }

    #[tokio::test(start_paused = true)]
    async fn what_has_stayed_for_a_while_is_no_contest() {
        let brake = Brake::default();
        for _ in 0..100 {
            assert!(pass(&brake, 7));
            tokio::time::advance(HELD + Duration::from_secs(1)).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn changes_are_not_braked_and_old_ones_are_forgotten() {
        let brake = Brake::default();
        assert!((0..1000).all(|number| pass(&brake, number)), "each is another change");
        let now = Instant::now();
        (0..10_000).for_each(|object| brake.count(object, 1, now));
        tokio::time::advance(HELD * 2).await;
        (0..20_000).for_each(|object| brake.count(object + 20_000, 1, Instant::now()));
        assert!(brake.written.lock().objects.len() <= 20_000);
    }
}
