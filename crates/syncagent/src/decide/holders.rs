//! Who holds consumers' objects with the finalizer.

use std::collections::BTreeSet;

use carrick_sync::holders;
use serde_json::Value;

use super::{ObjectAddress, Step};
use crate::rules::metadata::WORDS;

pub use carrick_sync::holders::Holder;
pub(super) use carrick_sync::holders::of_related;

/// No names.
pub static NOBODY: BTreeSet<String> = BTreeSet::new();

/// Whether the object carries the finalizer.
pub fn has_finalizer(object: &Value) -> bool {
    holders::has_finalizer(&WORDS, object)
}

/// Whether the finalizer is there on behalf of a holder.
pub fn is_held_by<'a>(object: &Value, holder: impl Into<Holder<'a>>) -> bool {
    holders::is_held_by(&WORDS, object, holder)
}

/// Whether the list names a holder.
pub fn names<'a>(object: &Value, holder: impl Into<Holder<'a>>) -> bool {
    holders::names(&WORDS, object, holder)
}

/// All who hold an object.
pub(super) fn of(object: &Value) -> Vec<String> {
    holders::of(&WORDS, object)
}

/// The step by which a holder releases an object; the last holder removes the finalizer.
pub(super) fn release<'a>(at: &ObjectAddress, object: &Value, holder: impl Into<Holder<'a>>) -> Step {
    holders::release(&WORDS, at, object, holder)
}
