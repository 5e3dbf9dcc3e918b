//! Objects: one object of the consumer and its copy on the provider → steps.
//!
//! ```text
//!   source ──▶ finalizer ──▶ copy ──▶ trace on the source ──▶ status comes back
//!   source is deleted, or its binding is ──▶ copy goes ──▶ is it really gone? ──▶ finalizer goes
//!   copy without a source ──▶ is that really gone? ──▶ copy goes
//! ```
//!
//! Whose an object on the provider is stands in its contract annotation: without ours it is neither written nor deleted.

mod drift;
mod words;

use std::convert::Infallible;
use std::sync::Arc;

use carrick_bind_api::carrick_kcp::meta::OwnerReference;
use carrick_bind_api::copies::{self, Ownership, uid};
use carrick_bind_api::mapping::ObjectKey;
use carrick_bind_api::names::{
    CONSUMER_NAMESPACE_ANNOTATION, CONSUMER_UID_ANNOTATION, Owner, PROVIDER_NAMESPACE_ANNOTATION,
    PROVIDER_UID_ANNOTATION,
};
use carrick_sync::content::remembered;
use carrick_sync::holders::{is_held_by, release};
use carrick_sync::memory::{Applied, BY_APPLY, StateEntry, StatusNote, applied_mark, checksum, read_mark, sum};
use carrick_sync::object::{annotation, is_deleting, set};
use carrick_sync::{
    AdoptionPolicy, ApiKind, Dependents, Next, ObjectAddress, Pair, PairError, PairProgress, Role, Side, StatusFlow,
    Step, Transform, delete, draft,
};
use serde_json::{Value, json};

pub use words::{APPLIED_STATE, CONSUMER, PROVIDER, WORDS};

/// What is not content. Where status is no subresource, it is not carried either.
const SUBRESOURCES: [&str; 1] = ["status"];

/// The name by which sources are held. Nobody sees it, because the list of holders is not written.
const HOLDER: &str = "konnector";

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

/// What is remembered about an object as long as the konnector runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Noted {
    /// A status that the consumer's server did not store as it was sent.
    pub status: Option<StatusNote>,
    /// Checksum of what a server made of content that it did not store as it was sent.
    pub altered: Option<String>,
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
    /// What becomes of it.
    pub mode: SyncMode,
    /// What is remembered.
    pub noted: &'a Noted,
}

/// What has to be asked of a server itself before the steps of a plan, because a cache may be wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Confirm {
    /// This object is gone.
    Gone(ObjectAddress),
}

/// What to do about an object.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ObjectPlan {
    /// What has to be asked first.
    pub confirm: Option<Confirm>,
    /// Writes, in order.
    pub steps: Vec<Step>,
    /// When to decide again.
    pub next: Next,
}

impl ObjectPlan {
    /// Whether there is nothing to write.
    pub fn is_settled(&self) -> bool {
        self.steps.is_empty()
    }
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
    let ownership = view.copy.map(|copy| copies::ownership(copy, view.contract));
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
        next: Next::OnChange,
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
        plan.next = Next::Now;
    }
    plan
}

impl ObjectPlan {
    fn is_settled_but_for_status(&self) -> bool {
        self.steps.iter().all(|step| matches!(step, Step::WriteStatus { .. }))
    }
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

/// The way from a source to its copy, in either direction.
pub(super) struct CopyLink<'a> {
    pub contract: &'a str,
    pub owner: Option<&'a OwnerReference>,
    pub source_at: ObjectAddress,
    pub copy_at: ObjectAddress,
    /// The label that says who owns the source, for claimed objects.
    pub labelled: Option<Owner>,
    /// Whether the source waits for its copy.
    pub held: bool,
}

impl Transform for CopyLink<'_> {
    type Error = Infallible;

    fn spec(&self, source: &Value, _: Option<&Value>) -> Result<Value, Infallible> {
        let at = ObjectKey { namespace: self.copy_at.namespace.clone(), name: self.copy_at.name.clone() };
        let copy = match self.copy_at.side.role {
            Role::Provider => copies::for_provider(source, &at, self.contract, None),
            Role::Consumer => copies::for_consumer(source, &at, self.contract),
        };
        let copy = draft(&copy, &self.copy_at);
        Ok(match self.labelled {
            Some(owner) => copies::labelled(copy, owner),
            None => copy,
        })
    }

    fn keeps_spec(&self) -> bool {
        true
    }

    fn status(&self, copy: &Value, _: &Value) -> Result<Value, Infallible> {
        Ok(copy.clone())
    }
}

impl CopyLink<'_> {
    /// Source and copy. What was applied stands in an annotation of the copy, so that nothing else has to be remembered.
    fn pair<'p>(
        &'p self,
        source: &'p Value,
        copy: Option<&'p Value>,
        status: StatusFlow,
        entry: &'p mut Option<StateEntry>,
    ) -> Pair<'p, Self> {
        Pair {
            vocabulary: &WORDS,
            source,
            source_at: self.source_at.clone(),
            copy,
            copy_at: self.copy_at.clone(),
            entry: String::new(),
            remembered: entry.as_ref(),
            partial: false,
            copy_uid: None,
            shared: false,
            vouched: false,
            holder: self.held.then_some(HOLDER),
            // Whose the copy is was decided before.
            primary: true,
            link: None,
            subresources: &SUBRESOURCES,
            status,
            transform: self,
            adoption: AdoptionPolicy::Refuse,
            schema: "",
            apply: true,
        }
    }

    /// Steps that keep the copy in line, and then carry the status.
    pub(super) fn kept(&self, source: &Value, copy: Option<&Value>, status: StatusFlow, noted: &Noted) -> ObjectPlan {
        let (mut steps, mut last) = (Vec::new(), Vec::new());
        let mut entry = copy.map(|_| StateEntry {
            last: Some(Applied::Sum(BY_APPLY.to_owned())),
            next: Vec::new(),
            status: noted.status.clone(),
        });
        let progress = match self.pair(source, copy, status, &mut entry).keep(&mut steps, &mut last) {
            Ok(progress) => progress,
            // Nothing can go wrong on the way, and whose the copy is was decided before.
            Err(PairError::Taken(_) | PairError::Transform(_)) => PairProgress::Waiting,
        };
        if progress == PairProgress::Settled
            && let Some(copy) = copy
            && let Some(step) = self.restored(source, copy, noted)
        {
            steps.push(step);
        } else {
            steps.append(&mut last);
        }
        ObjectPlan { confirm: None, steps: self.finished(steps), next: Next::OnChange }
    }

    /// The step that brings back what somebody has changed of a copy on its own side.
    fn restored(&self, source: &Value, copy: &Value, noted: &Noted) -> Option<Step> {
        let Ok(desired) = self.spec(source, Some(copy));
        let marks = [
            CONSUMER_NAMESPACE_ANNOTATION,
            CONSUMER_UID_ANNOTATION,
            PROVIDER_NAMESPACE_ANNOTATION,
            PROVIDER_UID_ANNOTATION,
        ];
        let lost =
            marks.iter().any(|mark| annotation(&desired, mark).is_some_and(|it| annotation(copy, mark) != Some(it)));
        let drifted =
            drift::has_drifted(&desired, copy) && noted.altered.as_deref() != Some(content_sum(copy).as_str());
        if !lost && !drifted {
            return None;
        }
        let state = remembered(&WORDS, &desired, &SUBRESOURCES);
        let first = !annotation(copy, APPLIED_STATE).is_some_and(|mark| read_mark(mark).1);
        let mut object = state.clone();
        set(&mut object, "annotations", APPLIED_STATE, &applied_mark(&sum(&state)));
        for field in ["uid", "resourceVersion"] {
            object["metadata"][field] = copy["metadata"][field].clone();
        }
        Some(Step::Apply { at: self.copy_at.clone(), object, primary: true, first })
    }

    /// The steps that servers get to see. Nothing is remembered elsewhere, namespaces are assigned by the provider, and nobody reads events.
    pub(super) fn finished(&self, mut steps: Vec<Step>) -> Vec<Step> {
        steps.retain(|step| {
            !matches!(
                step,
                Step::Remember { .. }
                    | Step::RememberNext { .. }
                    | Step::Forget
                    | Step::Report { .. }
                    | Step::EnsureNamespace { .. }
            )
        });
        if let Some(owner) = self.owner {
            for step in &mut steps {
                if let Step::Create { object, .. } | Step::Apply { object, .. } = step {
                    object["metadata"]["ownerReferences"] = json!([owner]);
                }
            }
        }
        steps
    }
}

/// A checksum of the content of an object, for [`Noted::altered`].
pub fn content_sum(object: &Value) -> String {
    checksum(&drift::content(object).collect::<std::collections::BTreeMap<_, _>>())
}

/// Whether a server did not store content as it was sent.
pub fn is_altered(sent: &Value, stored: &Value) -> bool {
    drift::has_drifted(sent, stored)
}

#[cfg(test)]
mod tests;
