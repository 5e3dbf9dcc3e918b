//! The way from a source to its copy, in either direction and under either contract: what is made of the source, and under which words.

use std::convert::Infallible;

use carrick_bind_api::carrick_kcp::meta::OwnerReference;
use carrick_sync::content::remembered;
use carrick_sync::memory::{Applied, BY_APPLY, StateEntry, sum};
use carrick_sync::object::{annotation, set};
use carrick_sync::{
    Mark, ObjectAddress, Pair, PairError, PairProgress, StatusFlow, Step, Transform, Vocabulary, draft,
};
use serde_json::{Value, json};

use super::drift::{content_sum, is_altered};
use super::plan::{Noted, ObjectPlan};
use super::words::HOLDER;

/// What is not content. Where status is no subresource, it is not carried either.
const SUBRESOURCES: [&str; 1] = ["status"];

/// The way from a source to its copy.
pub(in crate::decide) struct Link<'a, F> {
    /// The words that are written.
    pub words: &'static Vocabulary,
    pub source_at: ObjectAddress,
    pub copy_at: ObjectAddress,
    /// What is made of the source; kind, name and namespace are those of the copy.
    pub content: F,
    /// Who takes the copy along when it goes.
    pub owner: Option<&'a OwnerReference>,
    /// Whether the source waits for its copy.
    pub held: bool,
}

impl<F: Fn(&Value) -> Value> Transform for Link<'_, F> {
    type Error = Infallible;

    fn spec(&self, source: &Value, _: Option<&Value>) -> Result<Value, Infallible> {
        Ok(draft(&(self.content)(source), &self.copy_at))
    }

    fn keeps_spec(&self) -> bool {
        true
    }

    fn status(&self, copy: &Value, _: &Value) -> Result<Value, Infallible> {
        Ok(copy.clone())
    }
}

impl<F: Fn(&Value) -> Value> Link<'_, F> {
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
        self.finished(steps)
    }

    /// Steps that delete the copy and then let the source go.
    pub fn removed(&self, source: &Value, copy: Option<&Value>) -> ObjectPlan {
        let mut steps = Vec::new();
        self.pair(source, copy, StatusFlow::None, None).remove(&mut steps);
        self.finished(steps)
    }

    /// The step that brings back what somebody has changed of a copy on its own side.
    fn restored(&self, source: &Value, copy: &Value, noted: &Noted) -> Option<Step> {
        let Ok(desired) = self.spec(source, Some(copy));
        if !is_altered(&desired, copy) || noted.altered.as_deref() == Some(content_sum(copy).as_str()) {
            return None;
        }
        let state = remembered(self.words, &desired, &SUBRESOURCES);
        let mark = annotation(copy, self.words.applied_state);
        let first = !mark.is_some_and(|mark| Mark::read(mark).applied);
        let mut object = state.clone();
        let next = Mark::after(mark, sum(&state), true).to_string();
        set(&mut object, "annotations", self.words.applied_state, &next);
        for field in ["uid", "resourceVersion"] {
            object["metadata"][field] = copy["metadata"][field].clone();
        }
        Some(Step::Apply { at: self.copy_at.clone(), object, primary: true, first })
    }

    /// Source and copy. What was applied stands in an annotation of the copy, so that nothing else has to be remembered.
    fn pair<'p>(
        &'p self,
        source: &'p Value,
        copy: Option<&'p Value>,
        status: StatusFlow,
        entry: Option<&'p StateEntry>,
    ) -> Pair<'p, Self> {
        Pair {
            vocabulary: self.words,
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

    /// The steps that servers get to see. Nothing is remembered elsewhere, namespaces are made by others, and nobody reads events.
    fn finished(&self, mut steps: Vec<Step>) -> ObjectPlan {
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
        ObjectPlan { confirm: None, steps }
    }
}
