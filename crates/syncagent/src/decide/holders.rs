//! Who holds consumers' objects with the finalizer.

use carrick_sync::holders;
use serde_json::Value;

use super::{ObjectAddress, Step};
use crate::rules::metadata::WORDS;

pub(super) use carrick_sync::holders::of_related;

/// Whether the object carries the finalizer.
pub fn has_finalizer(object: &Value) -> bool {
    holders::has_finalizer(&WORDS, object)
}

/// Whether the finalizer is there on behalf of a holder.
pub fn is_held_by(object: &Value, holder: &str) -> bool {
    holders::is_held_by(&WORDS, object, holder)
}

/// Whether the list names a holder.
pub fn names(object: &Value, holder: &str) -> bool {
    holders::names(&WORDS, object, holder)
}

/// The step by which a holder releases an object; the last holder removes the finalizer.
pub(super) fn release(at: &ObjectAddress, object: &Value, holder: &str) -> Step {
    holders::release(&WORDS, at, object, holder)
}
