//! The primary object: a consumer's object in kcp and its copy on the service cluster.

use std::collections::BTreeSet;
use std::sync::Arc;

use carrick_sync::{Pair, PairProgress, StatusFlow, draft};
use serde_json::Value;

use super::drift::{self, DriftContext};
use super::error::DecideError;
use super::events::refused_status;
use super::feedback::{self, Fate};
use super::holders::{self, Holder, is_held_by, names, of_related, release};
use super::narrowed;
use super::pause::{self, Pauses};
use super::refusal::{Refusal, as_placed, changes, places};
use super::related::{self, RelatedContext, RelatedView};
use super::report::{self, Reported, Standing};
use super::restored::{self, Setback};
use super::state::{PrimaryState, entry_key};
use super::waits::Waiting;
use super::{Event, Next, ObjectAddress, Plan, Step};
use crate::api::{ADOPTION, IMPORTED, REMOTE_UID};
use crate::rules::metadata::{KCP_SIDE, SERVICE_SIDE, SourceKey, WORDS, annotation, is_deleting, link_to_object};
use crate::rules::naming::Workspace;
use crate::rules::{Adoption, Duty, Rules, Selection};

/// Copies on the service cluster that carry the link to a source.
#[derive(Debug, Clone, Copy)]
pub enum Copies<'a> {
    /// There is none.
    None,
    /// The one copy.
    One(&'a Value),
    /// More than one, which no agent should have created.
    Many(&'a [String]),
}

/// Everything that is known about one object of a consumer.
#[derive(Debug, Clone, Copy)]
pub struct PrimaryView<'a> {
    /// Where the object is in kcp.
    pub key: &'a SourceKey,
    /// What the rules ask for of its workspace.
    pub workspace: Workspace<'a>,
    /// The object in kcp; `None` if it does not exist.
    pub source: Option<&'a Value>,
    /// Its namespace in kcp, if the rules filter by it.
    pub namespace: Option<&'a Value>,
    /// Its copies.
    pub copies: Copies<'a>,
    /// Its state.
    pub state: &'a PrimaryState,
    /// Its related objects, once they are needed: when the primary is in line, and when it is being deleted.
    pub related: Option<&'a RelatedView>,
    /// Other objects in kcp that its state refers to. They matter only when it is released.
    pub others: &'a [(ObjectAddress, Value)],
    /// Whether it was released before: a finalizer that has appeared since then was set by somebody else.
    pub released: bool,
    /// How many other objects of its workspace have a place on the service cluster or come first, if that matters.
    pub ahead: usize,
    /// Whether the object, by its UID, was carried to its end before: deleted, with its copy.
    pub ended: bool,
    /// Names of agents that are no more, and whose orders are this one's.
    pub former: &'a BTreeSet<String>,
    /// The time, for what is reported to consumers.
    pub now: &'a str,
    /// The `managedFields` of the copy, once they are needed; null if nobody knows them.
    pub managed: Option<&'a Value>,
}

impl PrimaryView<'_> {
    /// Whether the object must be released: it is no longer selected, but we still hold it.
    pub fn must_release(&self, rules: &Rules) -> bool {
        let Some(source) = self.source else { return false };
        rules.selects(source, self.namespace) == Selection::Out
            && is_held_by(source, self.holder(rules))
            && self.is_ours(source, rules)
    }

    /// Whether the object has a place although it may have no copy. A finalizer alone does not say so: consumers can set it themselves.
    pub fn has_place(&self, rules: &Rules) -> bool {
        let entry = entry_key(&self.key.cluster, &self.key.namespace, &self.key.name);
        let is_held = self.source.is_some_and(|source| is_held_by(source, self.holder(rules)));
        is_held && self.state.entry(&entry).is_some()
    }

    /// How the object has gone back in time, if it has and is carried out nevertheless.
    pub fn followed(&self, rules: &Rules) -> Option<Setback> {
        let source = self.source.filter(|source| !is_deleting(source) && restored::follows(rules, source))?;
        let copy = match self.copies {
            Copies::One(copy) => Some(copy),
            Copies::None | Copies::Many(_) => None,
        };
        let entry = entry_key(&self.key.cluster, &self.key.namespace, &self.key.name);
        restored::setback(source, copy, self.state.entry(&entry).is_some(), self.ended)
    }

    /// Whether there are traces of our work. Without them, a finalizer may be there because the object is a related object of another
    /// primary.
    fn is_ours(&self, source: &Value, rules: &Rules) -> bool {
        let entry = entry_key(&self.key.cluster, &self.key.namespace, &self.key.name);
        let is_known = !matches!(self.copies, Copies::None) || self.state.entry(&entry).is_some();
        let is_named = holders::of(source).contains(&rules.agent_name);
        // Whoever holds it under another name since it was released may be the agent that serves its kind now.
        is_named || !self.released && (is_known || names(source, self.holder(rules)))
    }

    /// Who holds the object.
    fn holder<'b>(&'b self, rules: &'b Rules) -> Holder<'b> {
        Holder::new(&rules.agent_name, self.former)
    }
}

/// Decides what to do for one consumer's object.
pub fn decide(rules: &Rules, seen: PrimaryView<'_>) -> Result<Plan, DecideError> {
    let mut plan = Plan::default();
    // If the source is missing, everything stays as it is: it may just be out of sight.
    let Some(source) = seen.source else { return Ok(plan) };
    let source_at = ObjectAddress::of_source(KCP_SIDE, &rules.remote, seen.key);
    let deleting = is_deleting(source);
    let must_release = seen.must_release(rules);
    if must_release && (!deleting || rules.related.is_empty()) {
        let name = of_related(&rules.agent_name);
        let holder = Holder::new(&name, seen.former);
        let held = seen.others.iter().filter(|(_, object)| is_held_by(object, holder));
        plan.steps.extend(held.map(|(at, object)| release(at, object, holder)));
    }
    if must_release && !deleting {
        return Ok(let_go(rules, seen, source, &source_at, plan));
    }
    let taking_part = rules.selects(source, seen.namespace) == Selection::In;
    // A filter stops new work, but never a clean-up: an object that its consumer deletes is deleted, with its copy.
    let held = is_held_by(source, seen.holder(rules));
    let leaving = deleting && held && (taking_part || seen.is_ours(source, rules));
    if !leaving && (deleting || !taking_part) {
        plan.notices.extend(held_elsewhere(rules, source, held));
        return Ok(plan);
    }
    let copy = match seen.copies {
        Copies::None => None,
        Copies::One(copy) => Some(copy),
        Copies::Many(names) => return Err(DecideError::Ambiguous(names.to_vec())),
    };
    let paused = Pauses::of(rules, source, copy, seen.now);
    if leaving && paused.deletion() || copy.is_none() && !leaving && paused.content() {
        return Ok(plan);
    }
    // A source that was deleted by force and created again must not get the data behind the old copy.
    let earlier = copy.is_some_and(|copy| is_of_another(copy, source));
    let copy = copy.filter(|_| !(earlier && leaving));
    if let Some(copy) = copy.filter(|_| earlier)
        && !may_inherit(rules, copy)
    {
        let uid = annotation(copy, REMOTE_UID).unwrap_or_default().to_owned();
        return Err(DecideError::Earlier { copy: address_of_copy(rules, seen, source, Some(copy))?.to_string(), uid });
    }

    let waits = |most: &usize| copy.is_none() && !leaving && !seen.has_place(rules) && seen.ahead >= *most;
    let full = rules.limit.filter(waits);
    if let Some(most) = full {
        return Err(Refusal::Limit(most).into());
    }

    let mut context = related_context(rules, seen, source, &source_at);
    if !leaving {
        context.paused = paused.clone();
    }
    let link = link_to_object(seen.key, seen.workspace.path, &rules.remote.resource(), source);
    let entry = entry_key(&seen.key.cluster, &seen.key.namespace, &seen.key.name);
    let reported = reported(rules, seen, copy.filter(|_| !leaving), &context);
    let pair = Pair {
        vocabulary: &WORDS,
        source,
        copy,
        copy_at: address_of_copy(rules, seen, source, copy)?,
        source_at: source_at.clone(),
        // The state was written for the earlier object.
        remembered: seen.state.entry(&entry).filter(|_| !earlier),
        partial: seen.state.partial,
        copy_uid: None,
        how: None,
        proof: None,
        shared: false,
        vouched: true,
        ordered: false,
        circular: false,
        entry,
        holder: Some(seen.holder(rules)),
        primary: true,
        link: Some((&link, &rules.agent_name)),
        subresources: &rules.subresources,
        status: if rules.has_status() || rules.mutation.is_mapped() {
            StatusFlow::Back
        } else {
            StatusFlow::BackAsField
        },
        transform: &reported,
        offered: false,
        schema: &rules.schema,
        apply: rules.apply,
    };
    if let Some(report) = rules.report.as_ref().filter(|_| leaving && !paused.status())
        && let Some(step) = pair.write_status(&report::leaving(report, source))
    {
        // First it says so, and lists nothing any more; the rest follows from that change.
        plan.steps.push(step);
        return Ok(plan);
    }
    if leaving
        && let Some(related) = seen.related
        && !related::clean_up(&context, related, &mut plan)
    {
        return Ok(plan);
    }

    let mut status = Vec::new();
    let setback = restored::setback(source, copy, seen.state.entry(&pair.entry).is_some(), seen.ended);
    let setback = setback.filter(|_| !leaving);
    let mut progress = if leaving {
        pair.remove(&mut plan.steps)
    } else if paused.content() {
        pause::bring_back(&pair, &mut status)?
    } else {
        pair.keep(&mut plan.steps, &mut status)?
    };
    if annotation(source, IMPORTED).is_some() {
        confirm_no_copy(&mut plan.steps);
    }
    let lost = copy.filter(|_| !leaving).map(|copy| narrowed::lost(rules, source, copy, &plan.steps));
    let lost = lost.filter(|lost| !lost.is_empty());
    let is_narrowed = lost.is_some();
    if let Some(lost) = lost {
        plan.steps.retain(|step| !narrowed::is_content(step));
        plan.notices.push(narrowed::notice(&lost));
        pair.bring_back(&mut status)?;
        progress = PairProgress::Settled;
    }
    if earlier && plan.steps.iter().any(|step| matches!(step, Step::Replace { .. })) {
        let last = seen.state.entry(&pair.entry).and_then(|entry| entry.last.as_ref());
        plan.needs_memory |= seen.state.partial && last.is_some_and(|last| last.whole().is_none());
        let wanted = rules.mutation.spec(source, copy)?;
        plan.steps.iter_mut().for_each(|step| drop_earlier(step, last.and_then(|last| last.whole()), &wanted));
    }
    if let Some(setback) = setback
        && !restored::follows(rules, source)
        && plan.steps.iter().any(|step| places(step, copy))
    {
        // First it says so itself; the rest follows from that change.
        let step = restored::hold(&source_at, source).ok_or(DecideError::Held(setback))?;
        return Ok(Plan { steps: vec![step], ..Plan::default() });
    }
    if let (Some(Setback::Older { .. }), Some(copy), PairProgress::Settled) = (setback, copy, progress)
        && !paused.content()
    {
        plan.steps.push(restored::count_from(&pair.copy_at, source, copy));
    }
    if !leaving {
        admit(rules, source, copy, &plan)?;
    }
    if !leaving && !is_narrowed && progress != PairProgress::Unknown {
        let (rules, paused) = (&rules.drift, paused.content());
        let context = DriftContext { rules, now: seen.now, managed: seen.managed, paused };
        let mut found = drift::look(context, &pair, &mut plan.steps)?;
        drift::complete_status(context, &pair, &mut status);
        plan.steps.append(&mut found.reverts);
        plan.add(std::mem::take(&mut found.notes), PairProgress::Settled);
        found.note_in(&mut plan);
    }
    if let Some(copy) = copy.filter(|_| leaving && plan.steps.is_empty()) {
        plan.steps.extend(feedback::leaving(rules, &source_at, source, copy));
    }
    plan.needs_memory |= progress == PairProgress::Unknown;
    if progress != PairProgress::Settled {
        plan.next = Next::Soon;
    }
    if rules.report.is_some() && seen.related.is_none() || paused.status() && !leaving {
        // What is reported depends on what has not been read yet; or nothing comes back while it is paused.
        status.clear();
    }
    context.withholds = !status.is_empty() && reported.strikes_out();
    if !leaving && status.is_empty() {
        plan.notices.extend(pair.refused_status().map(refused_status));
    }
    plan.notices.extend(reported.problem());
    plan.add(status, PairProgress::Settled);
    if !leaving && copy.is_some() && progress == PairProgress::Settled && !paused.content() {
        let fate = Fate::Placed(&reported.waiting);
        plan.strands.extend(feedback::tell(rules, &source_at, source, fate).map(|step| vec![step]));
    }
    // Names of related objects come from both primaries, which must be in line.
    if let Some(related) = seen.related
        && !leaving
        && copy.is_some()
        && progress == PairProgress::Settled
    {
        related::keep(&context, related, &mut plan);
    }
    Ok(plan)
}

/// Completes the plan for an object that is no longer selected: what is released says why first, and its release follows from that change.
fn let_go(rules: &Rules, seen: PrimaryView<'_>, source: &Value, source_at: &ObjectAddress, mut plan: Plan) -> Plan {
    if let Some(step) = feedback::withdraw(rules, source_at, source) {
        plan.steps = vec![step];
        return plan;
    }
    plan.steps.push(release(source_at, source, seen.holder(rules)));
    plan.steps.push(Step::Report { at: source_at.clone(), event: Event::Released });
    plan
}

/// What decisions on related objects rest on.
fn related_context<'a>(
    rules: &'a Rules,
    seen: PrimaryView<'a>,
    source: &'a Value,
    source_at: &'a ObjectAddress,
) -> RelatedContext<'a> {
    RelatedContext {
        source: seen.key,
        primary: source,
        primary_at: source_at,
        related: &rules.related,
        complete: rules.duty == Duty::Sync,
        state: seen.state,
        agent: of_related(&rules.agent_name),
        former: seen.former,
        adoption: rules.adoption,
        apply: rules.apply,
        schema: &rules.schema,
        published: &rules.name,
        agent_name: &rules.agent_name,
        objects: seen.related.map_or(&Value::Null, |related| &related.objects),
        withholds: false,
        paused: Pauses::default(),
        now: seen.now,
    }
}

/// Refuses what the rules do not admit. What was placed before a rule was made stays as it is; only what is new to the service cluster must keep it.
fn admit(rules: &Rules, source: &Value, copy: Option<&Value>, plan: &Plan) -> Result<(), DecideError> {
    let is_new = plan.steps.iter().any(|step| places(step, copy));
    // Whatever else changes must not be what breaks a rule.
    let breaks = |copy: &Value| rules.admission.refuses(&as_placed(source, copy)).is_none();
    if (is_new || plan.steps.iter().any(changes))
        && let Some(why) = rules
            .admission
            .refuses(source)
            .filter(|_| is_new || copy.is_some_and(breaks))
            .or_else(|| rules.refuses_credential(source).filter(|_| is_new))
    {
        return Err(Refusal::Rule(why).into());
    }
    Ok(())
}

/// What becomes of an order on its way, and what is reported of it on the way back once it is placed.
fn reported<'a>(
    rules: &'a Rules,
    seen: PrimaryView<'a>,
    copy: Option<&'a Value>,
    context: &RelatedContext<'_>,
) -> Reported<'a> {
    let (Some(view), Some(source), Some(copy)) = (seen.related, seen.source, copy) else {
        return Reported::plain(&rules.mutation, Waiting::unread(&rules.related));
    };
    let is_asked = rules.report.is_some() || rules.feedback && rules.related.iter().any(|entry| entry.required);
    let arrived = if is_asked { related::arrived(context, view) } else { Vec::new() };
    let waiting = Waiting::of(&rules.related, view, &arrived);
    let Some(report) = &rules.report else { return Reported::plain(&rules.mutation, waiting) };
    let standing = Standing { source, copy, entries: &rules.related, view, arrived: &arrived };
    Reported::of(&rules.mutation, report, (source, seen.now), standing, waiting)
}

/// What is said about an object that its consumer deletes, that this agent is done with, and that others hold.
fn held_elsewhere(rules: &Rules, source: &Value, held: bool) -> Option<String> {
    let names = holders::of(source);
    (is_deleting(source) && !held && !names.is_empty()).then(|| {
        format!(
            "it is deleted, and {} is done with it, but it is held by {}; if there is no such agent any more, say so: carrick release NAME",
            rules.agent_name,
            names.join(", ")
        )
    })
}

/// An order that was made for an object that exists may be seen before the link on that object is: the server itself is asked before a copy is made.
fn confirm_no_copy(steps: &mut Vec<Step>) {
    let Some(at) = steps.iter().position(|step| matches!(step, Step::Create { .. })) else { return };
    if !steps.contains(&Step::ConfirmNoCopy) {
        steps.insert(at, Step::ConfirmNoCopy);
    }
}

/// Removes from a copy that is handed over what the earlier object had of labels and annotations; what others have added stays.
fn drop_earlier(step: &mut Step, last: Option<&Value>, wanted: &Value) {
    let (Step::Replace { object, .. }, Some(last)) = (step, last) else { return };
    for field in ["labels", "annotations"] {
        let Some(there) = object["metadata"][field].as_object_mut() else { continue };
        let of = |object: &Value, key: &str| object["metadata"][field].get(key).cloned();
        there.retain(|key, value| of(last, key).as_ref() != Some(value) || of(wanted, key).as_ref() == Some(value));
    }
}

/// Whether a copy was made for a different object with the same name.
fn is_of_another(copy: &Value, source: &Value) -> bool {
    let uid = source["metadata"]["uid"].as_str();
    annotation(copy, REMOTE_UID).is_some_and(|theirs| uid.is_some_and(|ours| ours != theirs))
}

fn may_inherit(rules: &Rules, copy: &Value) -> bool {
    rules.adoption == Adoption::TakeOver || annotation(copy, ADOPTION) == Some(Adoption::TAKE_OVER)
}

/// A copy stays where it is; only a new copy is named, after mutations.
fn address_of_copy(
    rules: &Rules,
    seen: PrimaryView<'_>,
    source: &Value,
    copy: Option<&Value>,
) -> Result<ObjectAddress, DecideError> {
    let address =
        |(namespace, name)| ObjectAddress { side: SERVICE_SIDE, kind: Arc::new(rules.local.clone()), namespace, name };
    if let Some(copy) = copy {
        let text = |key: &str| copy["metadata"][key].as_str().map(str::to_owned);
        return Ok(address((text("namespace"), text("name").unwrap_or_default())));
    }
    if is_deleting(source) {
        return Ok(address((None, String::new())));
    }
    address_of_new_copy(rules, seen.key, seen.workspace, source)
}

/// Where the rules place a new copy.
pub fn address_of_new_copy(
    rules: &Rules,
    key: &SourceKey,
    workspace: Workspace<'_>,
    source: &Value,
) -> Result<ObjectAddress, DecideError> {
    let address =
        |(namespace, name)| ObjectAddress { side: SERVICE_SIDE, kind: Arc::new(rules.local.clone()), namespace, name };
    let name = |object: &Value| rules.naming.name_copy(key, workspace, object);
    if rules.mutation.keeps_spec() {
        return Ok(address(name(source)?));
    }
    let unmutated = address(rules.naming.evaluate(key, workspace, source)?);
    let mutated = rules.mutation.spec(source, Some(&draft(source, &unmutated)))?;
    Ok(address(name(&mutated)?))
}

#[cfg(test)]
#[allow(clippy::needless_pass_by_value)] // cases read best as plain literals
mod tests;
