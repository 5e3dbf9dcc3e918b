//! Objects: one object of the consumer and its copy on the provider → steps.
//!
//! ```text
//!   source ──▶ finalizer ──▶ copy ──▶ trace on the source ──▶ status comes back
//!   source is deleted, or its binding is ──▶ copy goes ──▶ is it really gone? ──▶ finalizer goes
//!   copy without a source ──▶ is that really gone? ──▶ copy goes
//! ```
//!
//! Objects that the provider had before are left alone, unless somebody wants to see them here: see `existing`.
//!
//! Whose an object on the provider is stands in its contract annotation: without ours it is neither written nor deleted.

mod copy_link;
mod drift;
mod existing;
mod link;
mod plan;
mod replacement;
mod view;
mod words;

use carrick_bind_api::copies::{self, Ownership, uid};
use carrick_bind_api::names::{PROVIDER_NAMESPACE_ANNOTATION, PROVIDER_UID_ANNOTATION};
use carrick_sync::holders::{is_held_by, release};
use carrick_sync::object::{annotation, is_deleting};
use carrick_sync::{Dependents, ObjectAddress, StatusFlow, Step, delete};
use serde_json::{Value, json};

pub(super) use copy_link::CopyLink;
pub use drift::{content_sum, is_altered};
pub use existing::is_mirror;
pub(super) use link::Link;
pub use plan::{Confirm, Noted, ObjectPlan};
pub use replacement::replacement;
pub use view::{ApiKinds, ObjectProblem, ObjectView, SyncMode, address};
pub(super) use words::HOLDER;
pub use words::{APPLIED_STATE, BLANK, CONSUMER, PROVIDER, WORDS};

/// Decides about an object.
pub fn decide(view: &ObjectView<'_>) -> Result<ObjectPlan, ObjectProblem> {
    let ownership =
        view.copy.map(|copy| if view.derived { Ownership::Unmarked } else { copies::ownership(copy, view.contract) });
    let ours = view.copy.filter(|_| ownership == Some(Ownership::Ours));
    let Some(source) = view.source else {
        return Ok(match view.copy.filter(|_| ownership == Some(Ownership::Unmarked)) {
            Some(theirs) => existing::discovered(view, theirs),
            None => orphan(view, ours),
        });
    };
    if existing::is_mirror(source, view.contract) {
        return existing::mirrored(view, source, ownership.as_ref());
    }
    if view.mode == SyncMode::Release {
        return Ok(released(view, source));
    }
    if view.mode == SyncMode::Drain || is_deleting(source) {
        return Ok(removed(view, source, ours));
    }
    let copy = || view.copy_at().to_string();
    match ownership {
        Some(Ownership::Unmarked) => {
            existing::adopted(view, source).ok_or_else(|| ObjectProblem::Foreign { copy: copy() })
        }
        Some(Ownership::OtherContract(contract)) => Err(ObjectProblem::OtherContract { copy: copy(), contract }),
        Some(Ownership::Ours) | None => Ok(kept(view, source, ours)),
    }
}

/// A copy whose source is gone without having waited for it.
fn orphan(view: &ObjectView<'_>, ours: Option<&Value>) -> ObjectPlan {
    let Some(copy) = ours.filter(|copy| !is_deleting(copy) && view.mode != SyncMode::Release) else {
        return ObjectPlan::default();
    };
    ObjectPlan {
        // Of a binding that goes, copies go whether they have a source or not.
        confirm: (view.mode == SyncMode::Keep).then(|| Confirm::Gone(view.source_at())),
        steps: vec![delete(view.copy_at(), copy, Dependents::default())],
    }
}

fn released(view: &ObjectView<'_>, source: &Value) -> ObjectPlan {
    let held = is_held_by(&WORDS, source, HOLDER);
    let steps = held.then(|| release(&WORDS, &view.source_at(), source, HOLDER));
    ObjectPlan { steps: steps.into_iter().collect(), ..ObjectPlan::default() }
}

fn removed(view: &ObjectView<'_>, source: &Value, ours: Option<&Value>) -> ObjectPlan {
    link(view).removed(source, ours)
}

fn kept(view: &ObjectView<'_>, source: &Value, ours: Option<&Value>) -> ObjectPlan {
    let status = if view.has_status { StatusFlow::Back } else { StatusFlow::None };
    let mut plan = link(view).kept(source, ours, status, view.noted);
    if plan.is_settled_but_for_status()
        && let Some(copy) = ours
        && let Some(step) = trace(&view.source_at(), source, copy)
    {
        // It changes the version that the status would be written over.
        plan.steps = vec![step];
    }
    plan
}

/// The way from a source to its copy.
fn link<'a>(view: &'a ObjectView<'a>) -> Link<'a, impl Fn(&Value) -> Value> {
    CopyLink {
        contract: view.contract,
        owner: view.owner,
        source_at: view.source_at(),
        copy_at: view.copy_at(),
        labelled: None,
        held: true,
        shows_status: false,
        tenant: view.cluster,
    }
    .link()
}

/// The step that lets people find the copy of a consumer's object, unless that is noted already.
pub(super) fn trace(at: &ObjectAddress, source: &Value, copy: &Value) -> Option<Step> {
    let namespace = copy["metadata"]["namespace"].as_str().unwrap_or_default();
    let wanted = [(PROVIDER_NAMESPACE_ANNOTATION, namespace), (PROVIDER_UID_ANNOTATION, uid(copy))];
    if wanted.iter().all(|(key, value)| annotation(source, key) == Some(value)) {
        return None;
    }
    let annotations: serde_json::Map<String, Value> =
        wanted.into_iter().map(|(key, value)| (key.to_owned(), json!(value))).collect();
    // The uid makes sure that it is not written to an object that has taken the place of this one.
    let patch = json!({"metadata": {"uid": uid(source), "annotations": annotations}});
    Some(Step::Patch { at: at.clone(), patch })
}

#[cfg(test)]
mod tests;
