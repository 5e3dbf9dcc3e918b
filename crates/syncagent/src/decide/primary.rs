//! The primary object: a consumer's object in kcp and its copy on the service cluster.

use std::sync::Arc;

use serde_json::Value;

use super::DecideError;
use super::pair::{Pair, Progress, StatusFlow, draft, has_finalizer, without_finalizer};
use super::related::{self, Context, RelatedView};
use super::state::{State, entry_key};
use super::step::{Event, Next, Place, Plan, Side, Step};
use crate::rules::metadata::{Link, SourceKey, is_deleting};
use crate::rules::{Duty, Rules, Selection};

/// Copies on the service cluster that carry the link to a source.
#[derive(Debug, Clone, Copy)]
pub enum Copies<'a> {
    /// There is none.
    None,
    /// The one copy.
    One(&'a Value),
    /// More than one, which no agent should have made.
    Many(&'a [String]),
}

/// Everything that is known about one consumer's object.
#[derive(Debug, Clone, Copy)]
pub struct Seen<'a> {
    /// Where the object is in kcp.
    pub key: &'a SourceKey,
    /// Workspace path, if the rules ask for it.
    pub workspace_path: Option<&'a str>,
    /// The object in kcp; none if it does not exist.
    pub source: Option<&'a Value>,
    /// Its namespace in kcp, if the rules filter by it.
    pub namespace: Option<&'a Value>,
    /// Its copies.
    pub copies: Copies<'a>,
    /// What is remembered about it.
    pub state: &'a State,
    /// Its related objects, once they are needed: when the primary is in line, and when it goes.
    pub related: Option<&'a RelatedView>,
    /// Other objects in kcp that are remembered with it. They matter only when it is let go.
    pub others: &'a [(Place, Value)],
    /// Whether it was let go before: a finalizer that is back since then was put there by somebody else.
    pub let_go: bool,
}

impl Seen<'_> {
    /// Whether the object is about to be let go: it does not take part any more, but we still hold it.
    pub fn is_let_go(&self, rules: &Rules) -> bool {
        let Some(source) = self.source else { return false };
        rules.selects(source, self.namespace) == Selection::Out && has_finalizer(source) && self.is_ours()
    }

    /// Whether there are traces of our work. Without them a finalizer may be there for another reason: that the object is a related
    /// object of another primary.
    fn is_ours(&self) -> bool {
        let entry = entry_key(&self.key.cluster, &self.key.namespace, &self.key.name);
        !self.let_go && (!matches!(self.copies, Copies::None) || self.state.entry(&entry).is_some())
    }
}

/// Decides what to do for one consumer's object.
pub fn decide(rules: &Rules, seen: Seen<'_>) -> Result<Plan, DecideError> {
    let mut plan = Plan::default();
    // A source that is not there leaves everything as it is: it may just be out of sight.
    let Some(source) = seen.source else { return Ok(plan) };
    let source_at = Place {
        side: Side::Kcp,
        kind: Arc::new(rules.remote.clone()),
        namespace: rules.remote.namespaced.then(|| seen.key.namespace.clone()),
        name: seen.key.name.clone(),
    };
    let deleting = is_deleting(source);
    let let_go = seen.is_let_go(rules);
    if let_go && (!deleting || rules.related.is_empty()) {
        let held = seen.others.iter().filter(|(_, object)| has_finalizer(object));
        plan.steps.extend(held.map(|(at, object)| without_finalizer(at, object)));
    }
    if let_go && !deleting {
        plan.steps.push(without_finalizer(&source_at, source));
        plan.steps.push(Step::Report { at: source_at, event: Event::Released });
        return Ok(plan);
    }
    let taking_part = rules.selects(source, seen.namespace) == Selection::In;
    // A filter stops new work, never the end of old work: what its consumer wants to be gone goes, with its copy.
    let leaving = deleting && has_finalizer(source) && (taking_part || seen.is_ours());
    if !leaving && (deleting || !taking_part) {
        return Ok(plan);
    }
    let copy = match seen.copies {
        Copies::None => None,
        Copies::One(copy) => Some(copy),
        Copies::Many(names) => return Err(DecideError::Ambiguous(names.to_vec())),
    };

    let context = Context {
        source: seen.key,
        primary: source,
        primary_at: &source_at,
        related: &rules.related,
        complete: rules.duty == Duty::Sync,
        state: seen.state,
        published: &rules.name,
        agent_name: &rules.agent_name,
    };
    if leaving
        && let Some(related) = seen.related
        && !related::clean_up(&context, related, &mut plan)
    {
        return Ok(plan);
    }

    let link = Link::to(seen.key, seen.workspace_path);
    let entry = entry_key(&seen.key.cluster, &seen.key.namespace, &seen.key.name);
    let pair = Pair {
        source,
        copy,
        copy_at: place_of_copy(rules, seen, source, copy)?,
        source_at: source_at.clone(),
        remembered: seen.state.entry(&entry),
        entry,
        blocks: true,
        primary: true,
        link: Some((&link, &rules.agent_name)),
        subresources: &rules.subresources,
        status: if rules.has_status() { StatusFlow::Back } else { StatusFlow::BackAsField },
        mutation: &rules.mutation,
    };
    let progress = if leaving { pair.remove(&mut plan.steps) } else { pair.keep(&mut plan.steps)? };
    if progress != Progress::Settled {
        plan.next = Next::Soon;
    }
    // Names of related objects come from both primaries, which must agree.
    if let Some(related) = seen.related
        && !leaving
        && copy.is_some()
        && plan.steps.is_empty()
    {
        related::keep(&context, related, &mut plan);
    }
    Ok(plan)
}

/// A copy stays where it is; only a new one is named, after mutations.
fn place_of_copy(rules: &Rules, seen: Seen<'_>, source: &Value, copy: Option<&Value>) -> Result<Place, DecideError> {
    let place = |(namespace, name)| Place { side: Side::Service, kind: Arc::new(rules.local.clone()), namespace, name };
    let name = |object: &Value| rules.naming.name_copy(seen.key, seen.workspace_path, object);
    if let Some(copy) = copy {
        let text = |key: &str| copy["metadata"][key].as_str().map(str::to_owned);
        return Ok(place((text("namespace"), text("name").unwrap_or_default())));
    }
    if is_deleting(source) {
        return Ok(place((None, String::new())));
    }
    if rules.mutation.keeps_spec() {
        return Ok(place(name(source)?));
    }
    let unmutated = place(rules.naming.evaluate(seen.key, seen.workspace_path, source)?);
    let mutated = rules.mutation.spec(source, Some(&draft(source, &unmutated)))?;
    Ok(place(name(&mutated)?))
}

#[cfg(test)]
#[allow(clippy::needless_pass_by_value)] // cases read best as plain literals
mod tests;
