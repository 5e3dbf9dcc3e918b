//! What the fuzz targets call.

use serde_json::Value;

use crate::patch::Patch;

/// The media types of patches other than server-side apply.
pub const PATCHES: [&str; 3] =
    ["application/merge-patch+json", "application/json-patch+json", "application/strategic-merge-patch+json"];

/// What a patch of one of [`PATCHES`] makes of an object; none if it is refused.
pub fn patched(media: &str, object: &Value, patch: &Value) -> Option<Value> {
    let patch = patch.clone();
    let patch = match media {
        "application/json-patch+json" => Patch::Json(patch),
        "application/strategic-merge-patch+json" => Patch::Strategic(patch),
        _ => Patch::Merge(patch),
    };
    patch.apply_to(object).ok()
}
