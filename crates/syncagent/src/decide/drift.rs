//! Drift: notes what servers stored of copies, finds what others have changed since, and sets it back where the rules say so.
//!
//! ```text
//!  a write to the copy      ──▶ with its memory, what the server stored of it
//!  in line, nothing noted   ──▶ note what is there; nothing is reported
//!  in line, fields differ   ──▶ Report: noted and reported once    Revert: noted and set back, at most 3 times in 10 minutes
//! ```
//!
//! A copy that somebody else sets to another value again and again is contested: that is reported, and nothing is written.

use std::collections::BTreeMap;

use carrick_sync::drift::{DriftedCopy, Field, Reverted, Seen, SeenNote, manager_of};
use carrick_sync::edit::Edit;
use carrick_sync::memory::sum;
use carrick_sync::{Pair, PairError, Transform};
use jiff::Timestamp;
use serde_json::Value;

use super::{Plan, Step};
use crate::api::FIELD_MANAGER;
use crate::rules::drift::{DriftPolicy, DriftRules};
use crate::rules::metadata::is_deleting;

/// How often fields of one copy are set back within [`WINDOW`].
pub const MOST_REVERTS: usize = 3;
/// Within how many seconds.
pub const WINDOW: i64 = 600;

/// How many fields are named.
const NAMED: usize = 5;

/// What decisions about drift rest on.
#[derive(Clone, Copy)]
pub(super) struct DriftContext<'a> {
    /// What happens to each field.
    pub rules: &'a DriftRules,
    /// The time.
    pub now: &'a str,
    /// The `managedFields` of the copy; null if nobody knows them, and nothing if nobody has asked yet.
    pub managed: Option<&'a Value>,
    /// Whether nothing may be written to the copy.
    pub paused: bool,
}

/// What was found.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Found {
    /// What others have changed; nothing if there was no reason to look.
    pub drifted: Option<DriftedCopy>,
    /// What is to be remembered, on its own.
    pub notes: Vec<Step>,
    /// What is to be remembered and then written, in this order.
    pub reverts: Vec<Step>,
    /// Whether it must be asked first who has changed the copy.
    pub needs_managers: bool,
    /// Whether all that is remembered must be read first.
    pub needs_memory: bool,
}

/// Completes the steps for a copy by what the server stores of it; or, if there are none, looks for what others have changed of it.
pub(super) fn look<T: Transform>(
    context: DriftContext<'_>,
    pair: &Pair<'_, T>,
    steps: &mut Vec<Step>,
) -> Result<Found, PairError<T::Error>> {
    if context.rules.is_off() {
        return Ok(Found::default());
    }
    if steps.iter().any(|step| writes(pair, step) || remembers(pair, step)) {
        complete(pair, steps);
        return Ok(Found::default());
    }
    let Some(copy) = pair.copy.filter(|copy| !is_deleting(copy) && steps.is_empty()) else {
        return Ok(Found::default());
    };
    let desired = pair.desired()?;
    let noted = pair.remembered.and_then(|entry| entry.seen.as_ref());
    let Some(seen) = noted.filter(|seen| seen.is_of(&desired)) else {
        return match noted.filter(|_| context.paused) {
            Some(seen) => look_at_resting(context, pair, (&desired, copy), seen),
            // What is there is not known to be anybody's doing: the first look records it and reports nothing.
            None if !context.paused => {
                Ok(Found { notes: vec![remember(pair, &desired, Seen::stored(&desired, copy))], ..Found::default() })
            }
            None => Ok(Found::default()),
        };
    };
    let mut drifted = seen.drifted(&desired, copy);
    drifted.retain(|field| !is_as_ordered(&desired, copy, &field.keys));
    compare(context, pair, (&desired, copy), (seen, drifted))
}

/// What others have changed of a copy that rests while its order goes on: measured against what was ordered when it was last written.
fn look_at_resting<T: Transform>(
    context: DriftContext<'_>,
    pair: &Pair<'_, T>,
    (desired, copy): (&Value, &Value),
    seen: &Seen,
) -> Result<Found, PairError<T::Error>> {
    let Some(last) = pair.remembered.and_then(|entry| entry.last.as_ref()) else {
        return Ok(Found::default());
    };
    let Some(last) = last.whole() else {
        return Ok(Found { needs_memory: pair.partial, ..Found::default() });
    };
    if !seen.is_of(last) {
        return Ok(Found::default());
    }
    let mut drifted = seen.drifted(last, copy);
    drifted.retain(|field| !is_as_ordered(last, copy, &field.keys) && !is_as_ordered(desired, copy, &field.keys));
    compare(context, pair, (last, copy), (seen, drifted))
}

impl Found {
    /// Adds what was found to a plan, but for its steps.
    pub fn note_in(self, plan: &mut Plan) {
        plan.needs_managers |= self.needs_managers;
        plan.needs_memory |= self.needs_memory;
        if let Some(drifted) = self.drifted {
            plan.drift.get_or_insert_default().push(drifted);
        }
    }
}

/// Where a status is a field like any other, bringing it back changes what is remembered of the content.
pub(super) fn complete_status<T: Transform>(context: DriftContext<'_>, pair: &Pair<'_, T>, status: &mut Vec<Step>) {
    if !context.rules.is_off() && status.iter().any(|step| remembers(pair, step)) {
        complete(pair, status);
    }
}

/// Decides about the fields that have drifted.
fn compare<T: Transform>(
    context: DriftContext<'_>,
    pair: &Pair<'_, T>,
    (desired, copy): (&Value, &Value),
    (seen, drifted): (&Seen, Vec<Field>),
) -> Result<Found, PairError<T::Error>> {
    let of = |policy: DriftPolicy| drifted.iter().filter(move |field| context.rules.of(&field.keys) == policy);
    let (now, guard) = (context.now.parse::<Timestamp>().map_or(0, Timestamp::as_second), pair.guard_of(copy));
    let recent: Vec<&Reverted> = seen.reverts.iter().filter(|revert| now - revert.at < WINDOW).collect();
    // One that was sent for this very copy, and did not arrive, is sent again.
    let is_counted = recent.iter().any(|revert| revert.guard == guard);
    let wanted: Vec<Field> = of(DriftPolicy::Revert).cloned().collect();
    let contested = !wanted.is_empty() && !is_counted && recent.len() >= MOST_REVERTS;
    let reverted = if contested || context.paused { Vec::new() } else { wanted };
    let stays = |field: &&Field| !reverted.contains(field);
    let reported: Vec<&Field> = of(DriftPolicy::Report).chain(of(DriftPolicy::Revert).filter(stays)).collect();

    let is_changed = seen.drift.len() != reported.len() || reported.iter().any(|it| !seen.drift.contains_key(&it.path));
    let news = is_changed || !reverted.is_empty();
    let manager = |field: &Field| {
        let managed = context.managed.unwrap_or(&Value::Null);
        let known = || seen.drift.get(&field.path).cloned();
        manager_of(managed, &field.keys, is_ours).or_else(known).unwrap_or_default()
    };
    let named = |fields: &[&Field]| -> BTreeMap<String, String> {
        fields.iter().map(|field| (field.path.clone(), manager(field))).collect()
    };
    let fields = if is_changed { named(&reported) } else { seen.drift.clone() };
    let copy_of = DriftedCopy {
        at: pair.copy_at.clone(),
        reverted: named(&reverted.iter().collect::<Vec<_>>()),
        fields: fields.clone(),
        contested,
        news,
    };
    // Where a field is as it should be again, there is nobody to ask about.
    if news && context.managed.is_none() && !(reported.is_empty() && reverted.is_empty()) {
        return Ok(Found { needs_managers: true, drifted: Some(copy_of), ..Found::default() });
    }
    let mut next = Seen { drift: fields, reverts: recent.into_iter().cloned().collect(), ..seen.clone() };
    let counts = !reverted.is_empty() && !is_counted;
    if counts {
        next.reverts.push(Reverted { at: now, guard });
    }
    // An apply writes every field: what somebody had edited before the last note goes back with the others, and counts as it is stored then.
    let renewed = (pair.apply && !seen.altered.is_empty()).then(|| SeenNote::Stored {
        drifted: seen.carried(desired, desired, copy, |keys| is_as_ordered(desired, copy, keys)),
        before: next.clone(),
    });
    let note = (is_changed || counts).then(|| remember(pair, desired, next));
    let mut found = Found { drifted: Some(copy_of), ..Found::default() };
    if reverted.is_empty() {
        found.notes.extend(note);
    } else {
        let others: Vec<Field> = drifted.iter().filter(stays).cloned().collect();
        found.reverts.extend(note);
        found.reverts.push(pair.revert(desired, copy, &reverted, &others)?);
        found.reverts.extend(renewed.map(|seen| {
            let (entry, value, copy) = (pair.entry.clone(), desired.clone(), pair.copy_at.clone());
            Step::RememberSeen { entry, value, copy, seen }
        }));
    }
    Ok(found)
}

/// Lets the steps that write a copy remember what the server stores of it. What had drifted before, and is not written now, stays drift.
fn complete<T: Transform>(pair: &Pair<'_, T>, steps: &mut Vec<Step>) {
    let last = pair.remembered.and_then(|entry| entry.last.as_ref()?.whole());
    let before = pair.remembered.and_then(|entry| entry.seen.as_ref());
    let before = before.filter(|seen| last.is_some_and(|last| seen.is_of(last)));
    let edits = steps.iter().find_map(|step| match step {
        Step::Edit { at, edits, .. } if *at == pair.copy_at => Some(edits.clone()),
        _ => None,
    });
    let is_written = steps.iter().any(|step| writes(pair, step));
    let note = |value: &Value| match (pair.copy, before.zip(last), &edits) {
        // What was remembered has changed, but not the copy.
        (Some(_), Some((before, _)), None) if !is_written => SeenNote::As(Seen { of: sum(value), ..before.clone() }),
        (Some(copy), None, None) if !is_written => SeenNote::As(Seen::stored(value, copy)),
        (Some(copy), Some((before, last)), Some(edits)) => SeenNote::Stored {
            drifted: before.carried(last, value, copy, |keys| is_touched(edits, keys)),
            before: before.clone(),
        },
        (_, before, _) => SeenNote::Stored {
            drifted: BTreeMap::new(),
            before: before.map(|(before, _)| before.clone()).unwrap_or_default(),
        },
    };
    let mut is_noted = false;
    for step in &mut *steps {
        if let Step::Remember { entry, value, seen, .. } = step
            && *entry == pair.entry
        {
            *seen = Some(note(value));
            is_noted = true;
        }
    }
    // The copy of an order that is applied says itself what was applied to it, so nothing else is remembered.
    if let (false, Ok(value)) = (is_noted, pair.desired()) {
        let seen = note(&value);
        steps.push(Step::RememberSeen { entry: pair.entry.clone(), value, copy: pair.copy_at.clone(), seen });
    }
}

fn remember<T>(pair: &Pair<'_, T>, desired: &Value, seen: Seen) -> Step {
    let (entry, copy) = (pair.entry.clone(), pair.copy_at.clone());
    Step::RememberSeen { entry, value: desired.clone(), copy, seen: SeenNote::As(seen) }
}

/// Whether a step writes the copy.
fn writes<T>(pair: &Pair<'_, T>, step: &Step) -> bool {
    let is_content =
        matches!(step, Step::Create { .. } | Step::Edit { .. } | Step::Replace { .. } | Step::Apply { .. });
    is_content && step.address() == Some(&pair.copy_at)
}

fn remembers<T>(pair: &Pair<'_, T>, step: &Step) -> bool {
    matches!(step, Step::Remember { entry, .. } if *entry == pair.entry)
}

/// Whether a field of a copy is exactly what is ordered: that is nobody's drift, whatever was stored of it before.
fn is_as_ordered(desired: &Value, copy: &Value, keys: &[String]) -> bool {
    let there = at(copy, keys);
    there.is_some() && there == at(desired, keys)
}

fn at<'a>(object: &'a Value, keys: &[String]) -> Option<&'a Value> {
    keys.iter().try_fold(object, |object, key| object.get(key))
}

/// Whether edits write a field, or something above or below it.
fn is_touched(edits: &[Edit], keys: &[String]) -> bool {
    edits.iter().any(|edit| edit.path.iter().zip(keys).all(|(one, other)| one == other))
}

/// Fields and who changed them, in words.
pub fn shown(fields: &BTreeMap<String, String>) -> String {
    let each = fields.iter().take(NAMED).map(|(path, manager)| match manager.as_str() {
        "" => path.clone(),
        manager => format!("{path} ({manager})"),
    });
    let more = if fields.len() > NAMED { ", …" } else { "" };
    format!("{}{more}", each.collect::<Vec<_>>().join(", "))
}

/// Whether this agent, or another one like it, has written something under a name.
fn is_ours(manager: &str) -> bool {
    manager.strip_prefix(FIELD_MANAGER).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
