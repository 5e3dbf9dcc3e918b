//! Objects of custom kinds in another version than the one they are stored in, and objects that are older than their CRD.

use serde_json::Value;

use super::read::{convert, to_storage};
use crate::resource::{Origin, Resource};
use crate::schema::Schema;
use crate::store::revision_of;

/// A stored object as it is shown in a version: completed by the defaults of the version it is stored in, and without the fields that
/// the version it is shown in does not know. That version's defaults are not added, as on the real server.
pub(super) fn show(resource: &Resource, wanted: &str, object: &mut Value) {
    let schema = |version: &str| resource.version(version).and_then(|version| version.schema.as_deref());
    if !matches!(resource.origin, Origin::Crd | Origin::Bound) {
        convert(resource, wanted, object);
        if let Some(schema) = schema(wanted) {
            schema.apply_defaults(object);
        }
        return;
    }
    let text = object["apiVersion"].as_str().unwrap_or_default();
    let stored = text.rsplit_once('/').map_or(text, |(_, version)| version).to_owned();
    if let Some(schema) = schema(&stored) {
        // What was written since the CRD changed is known to fit.
        if revision_of(object) < resource.revision {
            fit(schema, object);
        }
        schema.apply_defaults(object);
    }
    if stored != wanted {
        convert(resource, wanted, object);
        if let Some(schema) = schema(wanted) {
            fit(schema, object);
        }
    }
}

/// An object that was sent in a version, as it is stored.
pub(super) fn store(resource: &Resource, sent: &str, object: &mut Value) {
    to_storage(resource, object);
    let Some(storage) = resource.storage_version() else { return };
    match &storage.schema {
        Some(schema) if *storage.name == *sent => schema.prune(object, &mut Vec::new()),
        Some(schema) => fit(schema, object),
        None => {}
    }
}

/// Drops what a schema does not know, and null where it is not allowed.
fn fit(schema: &Schema, object: &mut Value) {
    schema.prune(object, &mut Vec::new());
    schema.drop_nulls(object);
}
