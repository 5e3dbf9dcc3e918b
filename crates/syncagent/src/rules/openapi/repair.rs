//! What kcp refuses in schemas made from OpenAPI is put right.
//!
//! Schemas that kcp takes as they are stay as they are, because their names are known to other agents. The others could never be published, so
//! nothing depends on theirs.

use crate::rules::crd::{Schema, SchemaOrBool, SchemaOrMany};

/// Puts a schema and everything in it right.
pub(super) fn repair(schema: &mut Schema) {
    // Keys belong to lists that are maps; some lists of Kubernetes have them for patches only.
    if schema.x_list_type.as_deref() != Some("map") {
        schema.x_list_map_keys.clear();
    }
    // Whatever OpenAPI says nothing about may be anything, not only an object with metadata.
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
