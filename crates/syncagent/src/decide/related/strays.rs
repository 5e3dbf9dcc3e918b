//! Strays: copies that carry the marks of an entry of a primary although neither the rules select them nor the state knows them. Another
//! agent made them, or the state was lost. Labels alone say nothing: whoever makes an object from the manifest of a copy copies them, too.

use carrick_sync::acquired::is_proven;
use carrick_sync::ownership::is_written_by;
use carrick_sync::{Acquired, delete_unchanged, release_copy};
use serde_json::Value;

use super::claims::is_of_order;
use super::{OtherUser, RelatedContext, RelatedSeen};
use crate::api::CleanupPolicy;
use crate::decide::state::PrimaryState;
use crate::decide::{Dependents, Event, ObjectAddress, Step};
use crate::rules::metadata::{WORDS, is_deleting};
use crate::rules::related::Related;

/// A copy that carries the marks of an entry but is not known.
#[derive(Debug, Clone)]
pub struct Stray {
    /// Position of the entry in `spec.related`.
    pub entry: usize,
    /// Where it is.
    pub at: ObjectAddress,
    /// The object.
    pub object: Value,
    /// Primaries that use it nevertheless, as a copy or as an original.
    pub others: Vec<OtherUser>,
}

/// Whether a marked object is neither an original nor a copy of anything that is selected or remembered.
pub fn is_stray(at: &ObjectAddress, state: &PrimaryState, rules: &[Related], seen: &[RelatedSeen]) -> bool {
    let mut named = seen.iter().filter_map(|object| Some(object.record(rules.get(object.entry)?)));
    let is_it = |place: &ObjectAddress| place.is_same_object(at);
    !named.any(|record| is_it(&record.copy) || is_it(&record.origin))
        && !state.records().any(|(_, record)| is_it(&record.copy) || is_it(&record.origin))
}

impl RelatedContext<'_> {
    /// Whether a stray must be deleted: it is really ours, nobody needs it, and the policy says so.
    pub(super) fn is_to_be_pruned(&self, stray: &Stray, seen: &[RelatedSeen]) -> bool {
        let Some(rules) = self.related.get(stray.entry) else { return false };
        let now = match rules.policy {
            CleanupPolicy::Orphan => false,
            CleanupPolicy::OnPrimaryDeletion => is_deleting(self.primary),
            CleanupPolicy::MatchOrigin => true,
        };
        now && rules.marks_copies()
            && self.provenance(rules).is_on(&stray.object)
            && self.is_written(stray)
            && !is_of_order(&stray.object)
            && stray.others.is_empty()
            && is_stray(&stray.at, self.state, self.related, seen)
    }

    /// Whether an agent wrote the stray, as its server records it, or took it over in this very place.
    fn is_written(&self, stray: &Stray) -> bool {
        is_written_by(&stray.object, WORDS.manager) || is_proven(&WORDS, &stray.object, &self.proof_of(&stray.at))
    }

    /// Deletes a stray, and reports that on the primary, or lets it go if it was there before. If it is already being deleted, waits for that.
    pub(super) fn prune(&self, stray: &Stray) -> Vec<Step> {
        if is_deleting(&stray.object) {
            return Vec::new();
        }
        if Acquired::of(&WORDS, &stray.object).is_some_and(Acquired::is_let_go) {
            return release_copy(&WORDS, &stray.at, &stray.object).into_iter().collect();
        }
        let told = Step::Report { at: self.primary_at.clone(), event: Event::Pruned };
        vec![delete_unchanged(stray.at.clone(), &stray.object, Dependents::default()), told]
    }
}
