//! Objects of v2: the same names on both sides, `spec` goes to the provider, `status` comes back.
//!
//! Whose an object on the provider is stands in two annotations, the uids of the consumer's cluster and object: with other ones it is neither written nor
//! deleted, and without any it becomes a copy only if the binding says Adopt. A copy without a source is left alone: whoever deleted its source with
//! [`ORPHAN`] wants to keep it, and nothing tells the two apart.

use std::convert::Infallible;
use std::sync::Arc;

use carrick_bind_api::core::conditions::{FOREIGN_OBJECT_EXISTS, OWNED_BY_ANOTHER};
use carrick_bind_api::core::names::{
    APPLIED_STATE_ANNOTATION, CONFLICT_ANNOTATION, CONSUMER_CLUSTER_UID, CONSUMER_OBJECT_UID_ANNOTATION,
    DELETION_POLICY_ANNOTATION, FIELD_MANAGER, MANAGED_LABEL, ORPHAN, SYNCER_FINALIZER,
};
use carrick_bind_api::mapping::ObjectKey;
use carrick_sync::content::remembered;
use carrick_sync::holders::{is_held_by, release};
use carrick_sync::memory::{Applied, BY_APPLY, StateEntry, sum};
use carrick_sync::object::{annotation, is_deleting, set};
use carrick_sync::{
    ApiKind, Mark, ObjectAddress, Pair, PairError, PairProgress, Side, StatusFlow, Step, Transform, Vocabulary, draft,
};
use serde_json::{Value, json};

use crate::decide::objects::{CONSUMER, Noted, ObjectPlan, PROVIDER, address, content_sum, is_altered};

/// The name by which sources are held. Nobody sees it, because the list of holders is not written.
const HOLDER: &str = "konnector";
/// What is not content.
const SUBRESOURCES: [&str; 1] = ["status"];

/// The words of v2. What crosses is decided by `CoreLink`.
pub static WORDS: Vocabulary = Vocabulary {
    consumer: CONSUMER,
    provider: PROVIDER,
    finalizer: SYNCER_FINALIZER,
    held_by: "",
    agent_name: "",
    applied_state: APPLIED_STATE_ANNOTATION,
    adoption: "",
    acquired: "",
    manager: FIELD_MANAGER,
    of_copies: &[],
    deletion_propagation: "",
    on_delete: "",
    source_resource: "",
    source_uid: CONSUMER_OBJECT_UID_ANNOTATION,
    prefix: "core.kbind.io/",
    source_of: |_| None,
    label_crosses: |_| true,
    annotation_crosses: |_| true,
};

/// Whose an object in the place of a copy is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyOwner {
    /// The copy of this source.
    Ours,
    /// Nobody has marked it.
    Unmarked,
    /// The copy of another object, here or elsewhere.
    Other,
}

/// The two annotations that say whose a copy is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marks<'a> {
    /// The uid of the consumer's cluster.
    pub cluster: &'a str,
    /// The other annotation.
    pub key: &'static str,
    /// Its value.
    pub value: &'a str,
}

impl Marks<'_> {
    /// Whose an object in the place of a copy is.
    pub fn owner(&self, copy: &Value) -> CopyOwner {
        match [CONSUMER_CLUSTER_UID, self.key].map(|mark| annotation(copy, mark)) {
            [None, None] => CopyOwner::Unmarked,
            [Some(cluster), Some(object)] if cluster == self.cluster && object == self.value => CopyOwner::Ours,
            _ => CopyOwner::Other,
        }
    }

    fn annotations(&self) -> Value {
        json!({CONSUMER_CLUSTER_UID: self.cluster, self.key: self.value})
    }
}

/// What bindings want of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coverage {
    /// It is synced; objects that nobody has marked become copies or not.
    Keep {
        /// Whether they do.
        adopt: bool,
    },
    /// Its copy is deleted, then its finalizer is taken off.
    Drain,
    /// Its finalizer is taken off; the copy stays.
    Release,
    /// No binding covers it: it is left as it is until somebody deletes it.
    Nothing,
}

/// What an object is decided on.
#[derive(Clone, Debug)]
pub struct CoreView<'a> {
    /// Its kind, on both sides.
    pub kind: &'a Arc<ApiKind>,
    /// Its key, on both sides.
    pub key: &'a ObjectKey,
    /// Whether there is a status to be carried back.
    pub has_status: bool,
    /// The uid of the consumer's cluster.
    pub cluster_uid: &'a str,
    /// The consumer's object.
    pub source: Option<&'a Value>,
    /// What is in the place of its copy.
    pub copy: Option<&'a Value>,
    /// What bindings want.
    pub coverage: Coverage,
    /// What is remembered.
    pub noted: &'a Noted,
}

/// An object that is not synced because the provider has another one of its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// Why, in one word.
    pub reason: &'static str,
    /// Why, in a sentence.
    pub message: String,
}

/// What to do about an object.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CorePlan {
    /// Writes.
    pub plan: ObjectPlan,
    /// Why it is not synced.
    pub conflict: Option<Conflict>,
}

impl CoreView<'_> {
    /// Where the object is on a side.
    pub fn at(&self, side: Side) -> ObjectAddress {
        address(side, self.kind, self.key)
    }

    /// What says on a copy that it is that of the consumer's object.
    pub fn marks(&self) -> Marks<'_> {
        Marks {
            cluster: self.cluster_uid,
            key: CONSUMER_OBJECT_UID_ANNOTATION,
            value: self.source.map(uid).unwrap_or_default(),
        }
    }

    fn link(&self) -> CoreLink<'_> {
        CoreLink {
            source_at: self.at(CONSUMER),
            copy_at: self.at(PROVIDER),
            marks: self.marks(),
            fields: &["spec"],
            held: true,
        }
    }
}

/// Decides about an object.
pub fn decide(view: &CoreView<'_>) -> CorePlan {
    let Some(source) = view.source else { return CorePlan::default() };
    let owner = view.copy.map(|copy| view.marks().owner(copy));
    let ours = view.copy.filter(|_| owner == Some(CopyOwner::Ours));
    if view.coverage == Coverage::Release {
        return steps(released(view, source));
    }
    if view.coverage == Coverage::Drain || is_deleting(source) {
        let keeps = annotation(source, DELETION_POLICY_ANNOTATION) == Some(ORPHAN);
        return steps(if keeps { released(view, source) } else { removed(view, source, ours) });
    }
    let Coverage::Keep { adopt } = view.coverage else { return CorePlan::default() };
    match (owner, view.copy) {
        (Some(CopyOwner::Unmarked), Some(copy)) if adopt && !is_deleting(copy) => steps(adopted(view, copy)),
        (Some(CopyOwner::Unmarked), _) => conflict(view, source, FOREIGN_OBJECT_EXISTS, "foreign-unmanaged", adopt),
        (Some(CopyOwner::Other), _) => conflict(view, source, OWNED_BY_ANOTHER, "owned-by-another", adopt),
        _ if annotation(source, CONFLICT_ANNOTATION).is_some() => {
            steps(vec![mark_conflict(view, source, &Value::Null)])
        }
        _ => CorePlan { plan: kept(view, source, ours), conflict: None },
    }
}

fn steps(steps: Vec<Step>) -> CorePlan {
    CorePlan { plan: ObjectPlan { confirm: None, steps }, conflict: None }
}

fn uid(object: &Value) -> &str {
    object["metadata"]["uid"].as_str().unwrap_or_default()
}

fn mark_conflict(view: &CoreView<'_>, source: &Value, reason: &Value) -> Step {
    // The uid makes sure that it is not written to an object that has taken the place of this one.
    let patch = json!({"metadata": {"uid": uid(source), "annotations": {CONFLICT_ANNOTATION: reason}}});
    Step::Patch { at: view.at(CONSUMER), patch }
}

fn conflict(view: &CoreView<'_>, source: &Value, reason: &'static str, whose: &str, adopt: bool) -> CorePlan {
    let policy = if adopt { "Adopt" } else { "Fail" };
    let message = format!(
        "provider object {} already exists and is {whose}; not overwriting (conflictPolicy: {policy})",
        view.key
    );
    let is_marked = annotation(source, CONFLICT_ANNOTATION) == Some(reason);
    let marks = (!is_marked).then(|| mark_conflict(view, source, &json!(reason)));
    CorePlan {
        plan: ObjectPlan { confirm: None, steps: marks.into_iter().collect() },
        conflict: Some(Conflict { reason, message }),
    }
}

fn released(view: &CoreView<'_>, source: &Value) -> Vec<Step> {
    let held = is_held_by(&WORDS, source, HOLDER);
    held.then(|| release(&WORDS, &view.at(CONSUMER), source, HOLDER)).into_iter().collect()
}

fn removed(view: &CoreView<'_>, source: &Value, ours: Option<&Value>) -> Vec<Step> {
    let mut steps = Vec::new();
    view.link().pair(source, ours, StatusFlow::None, None).remove(&mut steps);
    finished(steps)
}

/// The step that makes a copy of an object that nobody has marked. Its content follows.
fn adopted(view: &CoreView<'_>, copy: &Value) -> Vec<Step> {
    let version = &copy["metadata"]["resourceVersion"];
    let patch = json!({"metadata": {"uid": uid(copy), "resourceVersion": version, "annotations": view.marks().annotations(),
        "labels": {MANAGED_LABEL: "true"}}});
    vec![Step::Patch { at: view.at(PROVIDER), patch }]
}

fn kept(view: &CoreView<'_>, source: &Value, copy: Option<&Value>) -> ObjectPlan {
    let status = if view.has_status { StatusFlow::Back } else { StatusFlow::None };
    view.link().kept(source, copy, status, view.noted)
}

/// The steps that servers get to see: nothing is remembered elsewhere, namespaces carry marks and are made by the executor's owner.
fn finished(mut steps: Vec<Step>) -> Vec<Step> {
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
    steps
}

/// The way from a source to its copy: some fields, name, namespace and our marks, and nothing else.
pub(super) struct CoreLink<'a> {
    pub source_at: ObjectAddress,
    pub copy_at: ObjectAddress,
    pub marks: Marks<'a>,
    /// What travels.
    pub fields: &'static [&'static str],
    /// Whether the source waits for its copy.
    pub held: bool,
}

impl Transform for CoreLink<'_> {
    type Error = Infallible;

    fn spec(&self, source: &Value, _: Option<&Value>) -> Result<Value, Infallible> {
        let metadata = json!({"labels": {MANAGED_LABEL: "true"}, "annotations": self.marks.annotations()});
        let mut copy = draft(&json!({ "metadata": metadata }), &self.copy_at);
        for field in self.fields {
            if let Some(value) = source.get(field) {
                copy[field] = value.clone();
            }
        }
        Ok(copy)
    }

    fn keeps_spec(&self) -> bool {
        true
    }

    fn status(&self, copy: &Value, _: &Value) -> Result<Value, Infallible> {
        Ok(copy.clone())
    }
}

impl CoreLink<'_> {
    /// Steps that keep the copy in line, and then carry the status.
    pub fn kept(&self, source: &Value, copy: Option<&Value>, status: StatusFlow, noted: &Noted) -> ObjectPlan {
        let (mut steps, mut last) = (Vec::new(), Vec::new());
        let entry = copy.map(|_| StateEntry {
            last: Some(Applied::Sum(BY_APPLY.to_owned())),
            status: noted.status.clone(),
            ..StateEntry::default()
        });
        let progress = match self.pair(source, copy, status, entry.as_ref()).keep(&mut steps, &mut last) {
            Ok(progress) => progress,
            // Nothing can go wrong on the way, and whose the copy is was decided before.
            Err(PairError::Taken(_) | PairError::Immutable(_) | PairError::Transform(_)) => PairProgress::Waiting,
        };
        if progress == PairProgress::Settled
            && let Some(copy) = copy
            && let Some(step) = self.restored(source, copy, noted)
        {
            steps.push(step);
        } else {
            steps.append(&mut last);
        }
        ObjectPlan { confirm: None, steps: finished(steps) }
    }

    /// The step that brings back what somebody has changed of a copy on its own side.
    fn restored(&self, source: &Value, copy: &Value, noted: &Noted) -> Option<Step> {
        let Ok(desired) = self.spec(source, Some(copy));
        if !is_altered(&desired, copy) || noted.altered.as_deref() == Some(content_sum(copy).as_str()) {
            return None;
        }
        let state = remembered(&WORDS, &desired, &SUBRESOURCES);
        let mark = annotation(copy, APPLIED_STATE_ANNOTATION);
        let first = !mark.is_some_and(|mark| Mark::read(mark).applied);
        let mut object = state.clone();
        let next = Mark::after(mark, sum(&state), true).to_string();
        set(&mut object, "annotations", APPLIED_STATE_ANNOTATION, &next);
        for field in ["uid", "resourceVersion"] {
            object["metadata"][field] = copy["metadata"][field].clone();
        }
        Some(Step::Apply { at: self.copy_at.clone(), object, primary: true, first })
    }

    fn pair<'p>(
        &'p self,
        source: &'p Value,
        copy: Option<&'p Value>,
        status: StatusFlow,
        entry: Option<&'p StateEntry>,
    ) -> Pair<'p, Self> {
        Pair {
            vocabulary: &WORDS,
            source,
            source_at: self.source_at.clone(),
            copy,
            copy_at: self.copy_at.clone(),
            entry: String::new(),
            remembered: entry,
            partial: false,
            copy_uid: None,
            how: None,
            proof: None,
            shared: false,
            vouched: false,
            ordered: false,
            circular: false,
            holder: self.held.then(|| HOLDER.into()),
            // Whose the copy is was decided before.
            primary: true,
            link: None,
            subresources: &SUBRESOURCES,
            status,
            transform: self,
            offered: false,
            schema: "",
            apply: true,
        }
    }
}

#[cfg(test)]
mod tests;
