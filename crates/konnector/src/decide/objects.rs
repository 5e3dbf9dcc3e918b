//! Objects: one object of the consumer and its copy on the provider → steps.
//!
//! ```text
//!   source ──▶ finalizer ──▶ copy ──▶ trace on the source ──▶ status comes back
//!   source is deleted, or its binding is ──▶ copy goes ──▶ is it really gone? ──▶ finalizer goes
//!   copy without a source ──▶ is that really gone? ──▶ copy goes
//! ```
//!
//! Whose an object on the provider is stands in its contract annotation: without ours it is neither written nor deleted.

mod copy_link;
mod drift;
mod plan;
mod replacement;
mod words;

use std::sync::Arc;

use carrick_bind_api::carrick_kcp::meta::OwnerReference;
use carrick_bind_api::copies::{self, Ownership, uid};
use carrick_bind_api::mapping::ObjectKey;
use carrick_bind_api::names::{PROVIDER_NAMESPACE_ANNOTATION, PROVIDER_UID_ANNOTATION};
use carrick_sync::holders::{is_held_by, release};
use carrick_sync::object::{annotation, is_deleting};
use carrick_sync::{ApiKind, Dependents, ObjectAddress, Side, StatusFlow, Step, delete};
use serde_json::{Value, json};

pub(super) use copy_link::CopyLink;
pub use drift::{content_sum, is_altered};
pub use plan::{Confirm, Noted, ObjectPlan};
pub use replacement::replacement;
pub use words::{APPLIED_STATE, CONSUMER, PROVIDER, WORDS};

use words::HOLDER;

/// What becomes of the objects of a binding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SyncMode {
    /// They are synced.
    #[default]
    Keep,
    /// Copies are deleted, then finalizers are taken off.
    Drain,
    /// Finalizers are taken off; copies stay.
    Release,
}

/// The two kinds of one API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiKinds {
    /// On the consumer.
    pub consumer: Arc<ApiKind>,
    /// On the provider.
    pub provider: Arc<ApiKind>,
}

/// What an object is decided on.
#[derive(Clone, Debug)]
pub struct ObjectView<'a> {
    /// Its kinds.
    pub kinds: &'a ApiKinds,
    /// Whether there is a status to be carried back.
    pub has_status: bool,
    /// The contract.
    pub contract: &'a str,
    /// The owner of copies, if they have one.
    pub owner: Option<&'a OwnerReference>,
    /// Its key on the consumer.
    pub key: &'a ObjectKey,
    /// The key of its copy.
    pub copy_key: &'a ObjectKey,
    /// The object.
    pub source: Option<&'a Value>,
    /// What is in the place of its copy.
    pub copy: Option<&'a Value>,
    /// Whether that is derived from the copy of another object: operators like to copy annotations, ours included.
    pub derived: bool,
    /// What becomes of it.
    pub mode: SyncMode,
    /// What is remembered.
    pub noted: &'a Noted,
}

/// Why an object is not synced.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ObjectProblem {
    /// The provider has an object of its own in the place of the copy.
    #[error(
        "{copy} was there before and is none of this contract's copies; the provider has to delete or rename it, or choose another name here"
    )]
    Foreign {
        /// Where.
        copy: String,
    },
    /// The copy of another contract is in the place of the copy.
    #[error(
        "{copy} belongs to contract {contract}; another consumer has an object of this name, so choose another name here"
    )]
    OtherContract {
        /// Where.
        copy: String,
        /// Whose it is.
        contract: String,
    },
}

/// Decides about an object.
pub fn decide(view: &ObjectView<'_>) -> Result<ObjectPlan, ObjectProblem> {
    let ownership =
        view.copy.map(|copy| if view.derived { Ownership::Unmarked } else { copies::ownership(copy, view.contract) });
    let ours = view.copy.filter(|_| ownership == Some(Ownership::Ours));
    let Some(source) = view.source else { return Ok(orphan(view, ours)) };
    if view.mode == SyncMode::Release {
        return Ok(released(view, source));
    }
    if view.mode == SyncMode::Drain || is_deleting(source) {
        return Ok(removed(view, source, ours));
    }
    let copy = || view.copy_at().to_string();
    match ownership {
        Some(Ownership::Unmarked) => Err(ObjectProblem::Foreign { copy: copy() }),
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
    let link = view.link();
    let mut steps = Vec::new();
    link.pair(source, ours, StatusFlow::None, &mut None).remove(&mut steps);
    ObjectPlan { steps: link.finished(steps), ..ObjectPlan::default() }
}

fn kept(view: &ObjectView<'_>, source: &Value, ours: Option<&Value>) -> ObjectPlan {
    let status = if view.has_status { StatusFlow::Back } else { StatusFlow::None };
    let mut plan = view.link().kept(source, ours, status, view.noted);
    if plan.is_settled_but_for_status()
        && let Some(copy) = ours
        && let Some(step) = trace(&view.source_at(), source, copy)
    {
        // It changes the version that the status would be written over.
        plan.steps = vec![step];
    }
    plan
}

impl ObjectView<'_> {
    fn link(&self) -> CopyLink<'_> {
        CopyLink {
            contract: self.contract,
            owner: self.owner,
            source_at: self.source_at(),
            copy_at: self.copy_at(),
            labelled: None,
            held: true,
        }
    }

    /// Where the source is.
    pub fn source_at(&self) -> ObjectAddress {
        address(CONSUMER, &self.kinds.consumer, self.key)
    }

    /// Where the copy is, or would be.
    pub fn copy_at(&self) -> ObjectAddress {
        address(PROVIDER, &self.kinds.provider, self.copy_key)
    }
}

/// The address of an object.
pub fn address(side: Side, kind: &Arc<ApiKind>, key: &ObjectKey) -> ObjectAddress {
    ObjectAddress { side, kind: Arc::clone(kind), namespace: key.namespace.clone(), name: key.name.clone() }
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
