//! The way from a source to its copy, in either direction.

use std::convert::Infallible;

use carrick_bind_api::carrick_kcp::meta::OwnerReference;
use carrick_bind_api::copies;
use carrick_bind_api::mapping::ObjectKey;
use carrick_bind_api::names::{CONSUMER_CLUSTER_ANNOTATION, CONSUMER_NAME_ANNOTATION, Owner};
use carrick_sync::content::remembered;
use carrick_sync::memory::{Applied, BY_APPLY, StateEntry, sum};
use carrick_sync::object::{annotation, set};
use carrick_sync::{Mark, ObjectAddress, Pair, PairError, PairProgress, Role, StatusFlow, Step, Transform, draft};
use serde_json::{Value, json};

use super::drift::{content_sum, is_altered};
use super::plan::{Noted, ObjectPlan};
use super::words::{APPLIED_STATE, HOLDER, WORDS};

/// What is not content. Where status is no subresource, it is not carried either.
const SUBRESOURCES: [&str; 1] = ["status"];

/// The way from a source to its copy, in either direction.
pub(in crate::decide) struct CopyLink<'a> {
    pub contract: &'a str,
    pub owner: Option<&'a OwnerReference>,
    pub source_at: ObjectAddress,
    pub copy_at: ObjectAddress,
    /// The label that says who owns the source, for claimed objects.
    pub labelled: Option<Owner>,
    /// Whether the source waits for its copy.
    pub held: bool,
    /// Whether the copy has the status of the source.
    pub shows_status: bool,
    /// The logical cluster of the source, if there are many.
    pub tenant: Option<&'a str>,
}

impl Transform for CopyLink<'_> {
    type Error = Infallible;

    fn spec(&self, source: &Value, _: Option<&Value>) -> Result<Value, Infallible> {
        let at = ObjectKey { namespace: self.copy_at.namespace.clone(), name: self.copy_at.name.clone() };
        let mut copy = match self.copy_at.side.role {
            Role::Provider => copies::for_provider(source, &at, self.contract, None),
            Role::Consumer => copies::for_consumer(source, &at, self.contract),
        };
        if let Some(cluster) = self.tenant.filter(|_| self.copy_at.side.role == Role::Provider) {
            set(&mut copy, "annotations", CONSUMER_CLUSTER_ANNOTATION, cluster);
            set(&mut copy, "annotations", CONSUMER_NAME_ANNOTATION, &self.source_at.name);
        }
        if let Some(status) = source.get("status").filter(|_| self.shows_status) {
            copy["status"] = status.clone();
        }
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
    pub(super) fn pair<'p>(
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

    /// Steps that keep the copy in line, and then carry the status.
    pub(in crate::decide) fn kept(
        &self,
        source: &Value,
        copy: Option<&Value>,
        status: StatusFlow,
        noted: &Noted,
    ) -> ObjectPlan {
        let (mut steps, mut last) = (Vec::new(), Vec::new());
        let mut entry = copy.map(|_| StateEntry {
            last: Some(Applied::Sum(BY_APPLY.to_owned())),
            status: noted.status.clone(),
            ..StateEntry::default()
        });
        let progress = match self.pair(source, copy, status, &mut entry).keep(&mut steps, &mut last) {
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
        ObjectPlan { confirm: None, steps: self.finished(steps) }
    }

    /// The step that brings back what somebody has changed of a copy on its own side.
    fn restored(&self, source: &Value, copy: &Value, noted: &Noted) -> Option<Step> {
        let Ok(desired) = self.spec(source, Some(copy));
        if !is_altered(&desired, copy) || noted.altered.as_deref() == Some(content_sum(copy).as_str()) {
            return None;
        }
        let state = remembered(&WORDS, &desired, &SUBRESOURCES);
        let mark = annotation(copy, APPLIED_STATE);
        let first = !mark.is_some_and(|mark| Mark::read(mark).applied);
        let mut object = state.clone();
        set(&mut object, "annotations", APPLIED_STATE, &Mark::after(mark, sum(&state), true).to_string());
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
                    | Step::RememberSeen { .. }
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
