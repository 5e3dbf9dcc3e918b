//! Claimed objects: what a provider and its consumer share beside the exported objects → steps.
//!
//! The verdict says who has the source; here it becomes writes. A consumer's source is labelled before it is copied, because that label, which no
//! provider can write, is the record that it was selected once.

use std::sync::Arc;

use carrick_bind_api::claims::{ClaimConflict, Side, Verdict, verdict};
use carrick_bind_api::copies::{self, Ownership, annotation, labelled_owner, uid};
use carrick_bind_api::mapping::ObjectKey;
use carrick_bind_api::names::{CONSUMER_UID_ANNOTATION, OWNER_LABEL, Owner};
use carrick_sync::object::is_deleting;
use carrick_sync::{ApiKind, Dependents, ObjectAddress, Role, StatusFlow, Step, delete};
use serde_json::{Value, json};

use super::objects::{CONSUMER, Confirm, CopyLink, Noted, ObjectPlan, PROVIDER, SyncMode, address, is_mirror, trace};

/// What a claimed object is decided on.
#[derive(Clone, Debug)]
pub struct ClaimedView<'a> {
    /// Its kind, which is the same on both sides.
    pub kind: &'a Arc<ApiKind>,
    /// The contract.
    pub contract: &'a str,
    /// Its key on the consumer.
    pub key: &'a ObjectKey,
    /// Its logical cluster, if there are many.
    pub cluster: Option<&'a str>,
    /// Its key on the provider; none as long as no namespace is assigned there.
    pub provider_key: Option<&'a ObjectKey>,
    /// The consumer's object.
    pub consumer: Option<Side<'a>>,
    /// The provider's object.
    pub provider: Option<Side<'a>>,
    /// What becomes of it.
    pub mode: SyncMode,
    /// What is remembered.
    pub noted: &'a Noted,
}

/// Why a claimed object is not synced.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClaimedProblem {
    /// Nothing is done, and somebody should know why.
    #[error("{0}")]
    Conflict(ClaimConflict),
    /// The provider has not assigned a namespace yet.
    #[error("the provider has not assigned a namespace to {0} yet")]
    NamespacePending(String),
}

/// Decides about a claimed object.
pub fn decide(view: &ClaimedView<'_>) -> Result<ObjectPlan, ClaimedProblem> {
    match view.mode {
        SyncMode::Keep => {}
        SyncMode::Drain => return Ok(drained(view)),
        SyncMode::Release => return Ok(ObjectPlan::default()),
    }
    let verdict = verdict(view.key, view.contract, view.consumer, view.provider);
    let Some(provider_key) = view.provider_key else {
        // What is not mapped any more is left as it is: its source may be well.
        return match (verdict, &view.key.namespace) {
            (Verdict::CopyToProvider, Some(namespace)) => Err(ClaimedProblem::NamespacePending(namespace.clone())),
            _ => Ok(ObjectPlan::default()),
        };
    };
    let here = address(CONSUMER, view.kind, view.key);
    let there = address(PROVIDER, view.kind, provider_key);
    let (consumer, provider) = (view.consumer.map(|side| side.object), view.provider.map(|side| side.object));
    Ok(match (verdict, consumer, provider) {
        (Verdict::Conflict(conflict), ..) => return Err(ClaimedProblem::Conflict(conflict)),
        (Verdict::CopyToProvider, Some(source), copy) => view.to_provider(here, there, source, copy),
        (Verdict::CopyToConsumer, copy, Some(source)) => view.copied(there, here, Owner::Provider, source, copy),
        (Verdict::DeleteOnProvider, source, Some(copy)) => deleted(there, copy, source.is_none().then_some(here)),
        (Verdict::DeleteOnConsumer, Some(copy), source) => deleted(here, copy, source.is_none().then_some(there)),
        _ => ObjectPlan::default(),
    })
}

/// Whether an object is a copy that this contract has made.
pub fn is_copy(object: &Value, side: Role, contract: &str) -> bool {
    match side {
        Role::Provider => {
            copies::ownership(object, contract) == Ownership::Ours
                && annotation(object, CONSUMER_UID_ANNOTATION).is_some()
        }
        Role::Consumer => is_mirror(object, contract),
    }
}

/// Deletes the copies of this contract on either side; the sources stay.
fn drained(view: &ClaimedView<'_>) -> ObjectPlan {
    let there = view.provider_key.map(|key| address(PROVIDER, view.kind, key));
    let sides = [
        (Role::Provider, there, view.provider),
        (Role::Consumer, Some(address(CONSUMER, view.kind, view.key)), view.consumer),
    ];
    let copies = sides.into_iter().filter_map(|(role, at, side)| Some((role, at?, side?.object)));
    let copies = copies.filter(|(role, _, copy)| is_copy(copy, *role, view.contract) && !is_deleting(copy));
    let steps = copies.map(|(_, at, copy)| delete(at, copy, Dependents::default())).collect();
    ObjectPlan { steps, ..ObjectPlan::default() }
}

fn deleted(at: ObjectAddress, copy: &Value, gone: Option<ObjectAddress>) -> ObjectPlan {
    if is_deleting(copy) {
        return ObjectPlan::default();
    }
    let steps = vec![delete(at, copy, Dependents::default())];
    ObjectPlan { confirm: gone.map(Confirm::Gone), steps }
}

impl ClaimedView<'_> {
    fn to_provider(
        &self,
        here: ObjectAddress,
        there: ObjectAddress,
        source: &Value,
        copy: Option<&Value>,
    ) -> ObjectPlan {
        if labelled_owner(source) != Some(Owner::Consumer) && !is_deleting(source) {
            let labels = json!({OWNER_LABEL: Owner::Consumer.label()});
            let patch = json!({"metadata": {"uid": uid(source), "labels": labels}});
            let steps = vec![Step::Patch { at: here, patch }];
            return ObjectPlan { steps, ..ObjectPlan::default() };
        }
        let mut plan = self.copied(here.clone(), there, Owner::Consumer, source, copy);
        if let Some(copy) = copy.filter(|_| plan.is_settled() && !is_deleting(source)) {
            plan.steps.extend(trace(&here, source, copy));
        }
        plan
    }

    fn copied(
        &self,
        source_at: ObjectAddress,
        copy_at: ObjectAddress,
        owner: Owner,
        source: &Value,
        copy: Option<&Value>,
    ) -> ObjectPlan {
        // It is about to go, and its copy goes with it.
        if is_deleting(source) {
            return ObjectPlan::default();
        }
        if let Some(copy) = copy.filter(|copy| !is_deleting(copy) && is_frozen(source, copy)) {
            return deleted(copy_at, copy, None);
        }
        let labelled = Some(owner);
        let link = CopyLink {
            contract: self.contract,
            owner: None,
            source_at,
            copy_at,
            labelled,
            held: false,
            shows_status: false,
            tenant: self.cluster,
        };
        link.link().kept(source, copy, StatusFlow::None, self.noted)
    }
}

/// Whether a copy can become like its source only by being made anew: the type of a Secret never changes, and immutable content neither.
pub(super) fn is_frozen(source: &Value, copy: &Value) -> bool {
    let differs = |fields: &[&str]| fields.iter().any(|field| source.get(field) != copy.get(field));
    differs(&["type"]) || (copy["immutable"] == true && differs(&["immutable", "data", "binaryData"]))
}

#[cfg(test)]
mod tests;
