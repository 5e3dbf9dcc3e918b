//! The primary object: a consumer's object in kcp and its copy on the service cluster.

use std::sync::Arc;

use carrick_sync::{Pair, PairProgress, StatusFlow, draft};
use serde_json::Value;

use super::error::DecideError;
use super::events::refused_status;
use super::feedback::{self, Fate};
use super::holders::{is_held_by, names, of_related, release};
use super::refusal::{Refusal, places};
use super::related::{self, RelatedContext, RelatedView};
use super::state::{PrimaryState, entry_key};
use super::{Event, Next, ObjectAddress, Plan, Step};
use crate::api::{ADOPTION, REMOTE_UID};
use crate::rules::metadata::{KCP_SIDE, SERVICE_SIDE, SourceKey, WORDS, annotation, is_deleting, link_to_object};
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
    /// Workspace path, if the rules ask for it.
    pub workspace_path: Option<&'a str>,
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
}

impl PrimaryView<'_> {
    /// Whether the object must be released: it is no longer selected, but we still hold it.
    pub fn must_release(&self, rules: &Rules) -> bool {
        let Some(source) = self.source else { return false };
        rules.selects(source, self.namespace) == Selection::Out
            && is_held_by(source, &rules.agent_name)
            && self.is_ours(source, &rules.agent_name)
    }

    /// Whether there are traces of our work. Without them, a finalizer may be there because the object is a related object of another
    /// primary.
    fn is_ours(&self, source: &Value, agent: &str) -> bool {
        let entry = entry_key(&self.key.cluster, &self.key.namespace, &self.key.name);
        let is_known = !matches!(self.copies, Copies::None) || self.state.entry(&entry).is_some();
        names(source, agent) || !self.released && is_known
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
        let holder = of_related(&rules.agent_name);
        let held = seen.others.iter().filter(|(_, object)| is_held_by(object, &holder));
        plan.steps.extend(held.map(|(at, object)| release(at, object, &holder)));
    }
    if must_release
        && !deleting
        && let Some(step) = feedback::withdraw(rules, &source_at, source)
    {
        // What is released says why. Its release follows from that change.
        plan.steps = vec![step];
        return Ok(plan);
    }
    if must_release && !deleting {
        plan.steps.push(release(&source_at, source, &rules.agent_name));
        plan.steps.push(Step::Report { at: source_at, event: Event::Released });
        return Ok(plan);
    }
    let taking_part = rules.selects(source, seen.namespace) == Selection::In;
    // A filter stops new work, but never a clean-up: an object that its consumer deletes is deleted, with its copy.
    let held = is_held_by(source, &rules.agent_name);
    let leaving = deleting && held && (taking_part || seen.is_ours(source, &rules.agent_name));
    if !leaving && (deleting || !taking_part) {
        return Ok(plan);
    }
    let copy = match seen.copies {
        Copies::None => None,
        Copies::One(copy) => Some(copy),
        Copies::Many(names) => return Err(DecideError::Ambiguous(names.to_vec())),
    };
    // A source that was deleted by force and created again must not get the data behind the old copy.
    let earlier = copy.is_some_and(|copy| is_of_another(copy, source));
    let copy = copy.filter(|_| !(earlier && leaving));
    if let Some(copy) = copy.filter(|_| earlier)
        && !may_inherit(rules, copy)
    {
        let uid = annotation(copy, REMOTE_UID).unwrap_or_default().to_owned();
        return Err(DecideError::Earlier { copy: address_of_copy(rules, seen, source, Some(copy))?.to_string(), uid });
    }

    let full = rules.limit.filter(|most| copy.is_none() && !leaving && !held && seen.ahead >= *most);
    if let Some(most) = full {
        return Err(Refusal::Limit(most).into());
    }

    let context = RelatedContext {
        source: seen.key,
        primary: source,
        primary_at: &source_at,
        related: &rules.related,
        complete: rules.duty == Duty::Sync,
        state: seen.state,
        agent: of_related(&rules.agent_name),
        adoption: rules.adoption,
        apply: rules.apply,
        schema: &rules.schema,
        published: &rules.name,
        agent_name: &rules.agent_name,
    };
    if leaving
        && let Some(related) = seen.related
        && !related::clean_up(&context, related, &mut plan)
    {
        return Ok(plan);
    }

    let link = link_to_object(seen.key, seen.workspace_path, &rules.remote.resource(), source);
    let entry = entry_key(&seen.key.cluster, &seen.key.namespace, &seen.key.name);
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
        shared: false,
        vouched: true,
        entry,
        holder: Some(&rules.agent_name),
        primary: true,
        link: Some((&link, &rules.agent_name)),
        subresources: &rules.subresources,
        status: if rules.has_status() { StatusFlow::Back } else { StatusFlow::BackAsField },
        transform: &rules.mutation,
        adoption: rules.adoption,
        schema: &rules.schema,
        apply: rules.apply,
    };
    let mut status = Vec::new();
    let progress = if leaving { pair.remove(&mut plan.steps) } else { pair.keep(&mut plan.steps, &mut status)? };
    // What was placed before a rule was made stays as it is; only what is new to the service cluster must keep it.
    if !leaving
        && plan.steps.iter().any(|step| places(step, copy))
        && let Some(why) = rules.admission.refuses(source)
    {
        return Err(Refusal::Rule(why).into());
    }
    plan.needs_memory |= progress == PairProgress::Unknown;
    if progress != PairProgress::Settled {
        plan.next = Next::Soon;
    }
    if !leaving && status.is_empty() {
        plan.notices.extend(pair.refused_status().map(refused_status));
    }
    plan.add(status, PairProgress::Settled);
    if !leaving && copy.is_some() && progress == PairProgress::Settled {
        plan.strands.extend(feedback::tell(rules, &source_at, source, Fate::Placed).map(|step| vec![step]));
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
    let name = |object: &Value| rules.naming.name_copy(seen.key, seen.workspace_path, object);
    if let Some(copy) = copy {
        let text = |key: &str| copy["metadata"][key].as_str().map(str::to_owned);
        return Ok(address((text("namespace"), text("name").unwrap_or_default())));
    }
    if is_deleting(source) {
        return Ok(address((None, String::new())));
    }
    if rules.mutation.keeps_spec() {
        return Ok(address(name(source)?));
    }
    let unmutated = address(rules.naming.evaluate(seen.key, seen.workspace_path, source)?);
    let mutated = rules.mutation.spec(source, Some(&draft(source, &unmutated)))?;
    Ok(address(name(&mutated)?))
}

#[cfg(test)]
#[allow(clippy::needless_pass_by_value)] // cases read best as plain literals
mod tests;
