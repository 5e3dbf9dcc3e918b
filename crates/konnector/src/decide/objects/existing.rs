//! Objects that the provider had before: mirrored here, adopted, or left alone.
//!
//! ```text
//!   Show    provider's object ──▶ mirror here, which has the label owner=provider; content and status follow, nothing goes back
//!   Adopt   provider's object ──▶ object here, with the uid it was made from ──▶ the provider's object gets our marks: from now on it is a copy
//! ```
//!
//! A mirror is told by its label and by the marks of our contract. It has no finalizer: whoever deletes it sees it come back. An adoption is
//! made of two writes, and the annotation on the consumer's object says after a crash that the second one is still due.

use carrick_bind_api::copies::{self, Ownership, labelled_owner, uid};
use carrick_bind_api::existing::{ADOPTED_ANNOTATION, Existing};
use carrick_bind_api::names::{
    CONSUMER_NAMESPACE_ANNOTATION, CONSUMER_UID_ANNOTATION, CONTRACT_ANNOTATION, OWNER_LABEL, Owner,
    PROVIDER_UID_ANNOTATION,
};
use carrick_sync::object::{annotation, is_deleting, set};
use carrick_sync::{Dependents, StatusFlow, Step, delete, draft};
use serde_json::{Value, json};

use super::copy_link::CopyLink;
use super::plan::{Confirm, ObjectPlan};
use super::view::{ObjectProblem, ObjectView, SyncMode};

/// Whether an object of the consumer is a copy that this contract has made of the provider's.
pub fn is_mirror(object: &Value, contract: &str) -> bool {
    labelled_owner(object) == Some(Owner::Provider)
        && annotation(object, PROVIDER_UID_ANNOTATION).is_some_and(|uid| !uid.is_empty())
        && annotation(object, CONTRACT_ANNOTATION) == Some(contract)
}

/// What to do with an object of the provider that nobody here has.
pub(super) fn discovered(view: &ObjectView<'_>, theirs: &Value) -> ObjectPlan {
    if view.mode != SyncMode::Keep || is_deleting(theirs) {
        return ObjectPlan::default();
    }
    match view.existing {
        Existing::Leave => ObjectPlan::default(),
        Existing::Show => shown(view, theirs, None),
        Existing::Adopt => {
            let at = view.source_at();
            let mut object = draft(&copies::for_consumer(theirs, view.key, view.contract), &at);
            if let Some(annotations) = object["metadata"]["annotations"].as_object_mut() {
                annotations.remove(CONTRACT_ANNOTATION);
            }
            set(&mut object, "annotations", ADOPTED_ANNOTATION, uid(theirs));
            ObjectPlan { steps: vec![Step::Create { at, object }], ..ObjectPlan::default() }
        }
    }
}

/// What to do with a mirror.
pub(super) fn mirrored(
    view: &ObjectView<'_>,
    mirror: &Value,
    ownership: Option<&Ownership>,
) -> Result<ObjectPlan, ObjectProblem> {
    if is_deleting(mirror) || view.mode == SyncMode::Release {
        return Ok(ObjectPlan::default());
    }
    let remove = |confirm| ObjectPlan { confirm, steps: vec![delete(view.source_at(), mirror, Dependents::default())] };
    if view.mode == SyncMode::Drain || view.existing == Existing::Leave {
        return Ok(remove(None));
    }
    match (view.copy, ownership) {
        (None, _) | (_, None) => Ok(remove(Some(Confirm::Gone(view.copy_at())))),
        (Some(theirs), Some(Ownership::Unmarked)) if is_deleting(theirs) => Ok(ObjectPlan::default()),
        (Some(theirs), Some(Ownership::Unmarked)) if view.existing == Existing::Adopt => {
            let patch = json!({"metadata": {"uid": uid(mirror), "labels": {OWNER_LABEL: null},
                "annotations": {CONTRACT_ANNOTATION: null, ADOPTED_ANNOTATION: uid(theirs)}}});
            Ok(ObjectPlan { steps: vec![Step::Patch { at: view.source_at(), patch }], ..ObjectPlan::default() })
        }
        (Some(theirs), Some(Ownership::Unmarked)) => Ok(shown(view, theirs, Some(mirror))),
        (_, Some(Ownership::OtherContract(contract))) => {
            Err(ObjectProblem::OtherContract { copy: view.copy_at().to_string(), contract: contract.clone() })
        }
        (_, Some(Ownership::Ours)) => Err(ObjectProblem::Foreign { copy: view.copy_at().to_string() }),
    }
}

/// The step that makes a copy of an object that was adopted and does not say so yet.
pub(super) fn adopted(view: &ObjectView<'_>, source: &Value) -> Option<ObjectPlan> {
    let theirs = view.copy.filter(|_| view.existing == Existing::Adopt)?;
    if annotation(source, ADOPTED_ANNOTATION) != Some(uid(theirs)) || is_deleting(theirs) {
        return None;
    }
    let annotations = json!({
        CONTRACT_ANNOTATION: view.contract,
        CONSUMER_NAMESPACE_ANNOTATION: view.key.namespace.as_deref().unwrap_or_default(),
        CONSUMER_UID_ANNOTATION: uid(source),
    });
    let version = &theirs["metadata"]["resourceVersion"];
    let patch = json!({"metadata": {"uid": uid(theirs), "resourceVersion": version, "annotations": annotations}});
    Some(ObjectPlan { steps: vec![Step::Patch { at: view.copy_at(), patch }], ..ObjectPlan::default() })
}

/// Steps that keep a mirror in line with what it shows.
fn shown(view: &ObjectView<'_>, theirs: &Value, mirror: Option<&Value>) -> ObjectPlan {
    let status = if view.has_status { StatusFlow::Forward } else { StatusFlow::None };
    let link = CopyLink {
        contract: view.contract,
        owner: None,
        source_at: view.copy_at(),
        copy_at: view.source_at(),
        labelled: Some(Owner::Provider),
        held: false,
        shows_status: view.has_status,
        tenant: None,
    };
    let mut plan = link.link().kept(theirs, mirror, status, view.noted);
    for step in &mut plan.steps {
        // A server takes no status along with a new object.
        if let Step::Create { object: Value::Object(fields), .. } = step {
            fields.remove("status");
        }
    }
    plan
}
