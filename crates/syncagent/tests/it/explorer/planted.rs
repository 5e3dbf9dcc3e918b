//! Defects that the models have to find.

use carrick_sync::Mark;
use carrick_sync::edit::Edit;
use carrick_syncagent::api::APPLIED_STATE;
use carrick_syncagent::decide::Step;
use serde_json::{Value, json};

/// A defect that the model has to find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Planted {
    Nothing,
    /// A mark is a checksum and nothing else.
    MarkWithoutNumber,
    /// What was begun is forgotten without a new mark.
    IntentionForgotten,
    /// Whoever begins something forgets what was begun before.
    IntentionReplaced,
    /// A copy is written as a whole without a word before.
    IntentionOmitted,
    /// Annotations of the order are written without a precondition.
    UnguardedPatch,
    /// A related copy is deleted whatever has been written to it since.
    DeletedByUid,
    /// A state Secret that is not known is not looked for.
    SecretOverlooked,
    /// A state Secret is deleted whatever is in it.
    UnguardedForget,
    /// A copy that has lost a label of its link is not taken for one any more.
    LinkOverlooked,
}

impl Planted {
    /// What becomes of the steps of a plan.
    pub fn plant(self, steps: &[Step]) -> Vec<Step> {
        let planted =
            steps.iter().enumerate().filter_map(|(index, step)| self.planted(step.clone(), steps.get(index + 1)));
        planted.collect()
    }

    fn planted(self, mut step: Step, following: Option<&Step>) -> Option<Step> {
        let is_mark = |edit: &Edit| edit.path.last().is_some_and(|key| key == APPLIED_STATE);
        let without_number = |mark: &mut Value| {
            if let Some(text) = mark.as_str() {
                let mark_read = Mark::read(text);
                *mark = json!(Mark { number: 0, ..mark_read }.to_string());
            }
        };
        match (self, &mut step) {
            (Self::MarkWithoutNumber, Step::Edit { edits, .. }) => {
                let marks = edits.iter_mut().filter(|edit| is_mark(edit)).filter_map(|edit| edit.value.as_mut());
                marks.for_each(without_number);
            }
            (Self::MarkWithoutNumber, Step::Replace { object, .. } | Step::Apply { object, .. }) => {
                without_number(&mut object["metadata"]["annotations"][APPLIED_STATE]);
            }
            (Self::IntentionForgotten, Step::Edit { edits, .. }) if edits.iter().all(is_mark) => return None,
            (Self::IntentionOmitted, Step::RememberNext { .. }) if matches!(following, Some(Step::Replace { .. })) => {
                return None;
            }
            (Self::UnguardedPatch, Step::Patch { patch, .. }) => {
                if let Some(metadata) = patch["metadata"].as_object_mut() {
                    metadata.retain(|key, _| !["uid", "resourceVersion"].contains(&key.as_str()));
                }
            }
            (Self::DeletedByUid, Step::Delete { resource_version, .. }) => *resource_version = None,
            _ => {}
        }
        Some(step)
    }
}
