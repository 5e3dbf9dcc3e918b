//! Repairs what kcp refuses in schemas made from OpenAPI.
//!
//! Schemas that kcp accepts stay as they are, because other agents use the same names. The others could never be published, so nothing
//! depends on their names.

use crate::rules::crd::{Schema, SchemaOrBool, SchemaOrMany};

/// Repairs a schema and everything in it.
pub(super) fn repair(schema: &mut Schema) {
    // Only lists of type map may have keys; some lists in Kubernetes have them for patches only.
    if schema.x_list_type.as_deref() != Some("map") {
        schema.x_list_map_keys.clear();
    }
    // Something that OpenAPI does not describe may be anything, not only an object with metadata.
    let says_nothing = schema.type_.is_empty() && !schema.x_int_or_string;
    if says_nothing {
        schema.x_embedded_resource = false;
        schema.x_preserve_unknown_fields = Some(true);
    }
    schema.properties.values_mut().for_each(repair);
    match &mut schema.items {
        Some(SchemaOrMany::One(item)) => repair(item),
        Some(SchemaOrMany::Many(items)) => items.iter_mut().for_each(repair),
        None => {}
    }
    if let Some(SchemaOrBool::Schema(held)) = &mut schema.additional_properties {
        repair(held);
    }
}
