//! Objects of v2: the same names on both sides, `spec` goes to the provider, `status` comes back.
//!
//! Whose an object on the provider is stands in two annotations, the uids of the consumer's cluster and object: with other ones it is neither written nor
//! deleted, and without any it becomes a copy only if the binding says Adopt. A copy without a source is left alone: whoever deleted its source with
//! [`ORPHAN`] wants to keep it, and nothing tells the two apart.

use std::sync::Arc;

use carrick_bind_api::core::conditions::{FOREIGN_OBJECT_EXISTS, OWNED_BY_ANOTHER};
use carrick_bind_api::core::names::{
    APPLIED_STATE_ANNOTATION, CONFLICT_ANNOTATION, CONSUMER_CLUSTER_UID, CONSUMER_OBJECT_UID_ANNOTATION,
    DELETION_POLICY_ANNOTATION, FIELD_MANAGER, MANAGED_LABEL, ORPHAN, SYNCER_FINALIZER,
};
use carrick_bind_api::mapping::ObjectKey;
use carrick_sync::holders::{is_held_by, release};
use carrick_sync::object::{annotation, is_deleting};
use carrick_sync::{ApiKind, ObjectAddress, Side, StatusFlow, Step, Vocabulary};
use serde_json::{Value, json};

use crate::decide::objects::{BLANK, CONSUMER, HOLDER, Link, Noted, ObjectPlan, PROVIDER, address};

/// The words of v2. What crosses is decided by `link`.
pub static WORDS: Vocabulary = Vocabulary {
    finalizer: SYNCER_FINALIZER,
    applied_state: APPLIED_STATE_ANNOTATION,
    manager: FIELD_MANAGER,
    source_uid: CONSUMER_OBJECT_UID_ANNOTATION,
    prefix: "core.kbind.io/",
    ..BLANK
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

    fn link(&self) -> Link<'static, impl Fn(&Value) -> Value + use<>> {
        link(self.at(CONSUMER), self.at(PROVIDER), &self.marks(), &["spec"], true)
    }
}

/// Decides about an object.
pub fn decide(view: &CoreView<'_>) -> CorePlan {
    let Some(source) = view.source else { return CorePlan::default() };
    let owner = view.copy.map(|copy| view.marks().owner(copy));
    let ours = view.copy.filter(|_| owner == Some(CopyOwner::Ours));
    let goes = view.coverage == Coverage::Drain || is_deleting(source);
    if view.coverage == Coverage::Release || goes && annotation(source, DELETION_POLICY_ANNOTATION) == Some(ORPHAN) {
        return steps(released(view, source));
    }
    if goes {
        return CorePlan { plan: view.link().removed(source, ours), conflict: None };
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

/// The way from a source to its copy: some fields, our marks, and nothing else.
pub(super) fn link(
    source_at: ObjectAddress,
    copy_at: ObjectAddress,
    marks: &Marks<'_>,
    fields: &'static [&'static str],
    held: bool,
) -> Link<'static, impl Fn(&Value) -> Value + use<>> {
    let metadata = json!({"labels": {MANAGED_LABEL: "true"}, "annotations": marks.annotations()});
    let content = move |source: &Value| {
        let mut copy = json!({ "metadata": metadata });
        for (field, value) in fields.iter().filter_map(|field| Some((field, source.get(field)?))) {
            copy[field] = value.clone();
        }
        copy
    };
    Link { words: &WORDS, source_at, copy_at, content, owner: None, held }
}

#[cfg(test)]
mod tests;
