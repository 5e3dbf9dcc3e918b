//! Compiled schemas, kept once however many clusters, identities and revisions use the same one.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Weak};

use parking_lot::Mutex;
use serde_json::Value;

use super::text::SchemaText;
use crate::schema::{Schema, SchemaError};

/// What is in use, by the hash of the text.
static IN_USE: LazyLock<Mutex<Known>> = LazyLock::new(Mutex::default);

#[derive(Default)]
struct Known {
    schemas: HashMap<[u8; 32], (Weak<Schema>, Weak<str>)>,
    /// With more entries than this, those that nobody uses any more are removed.
    limit: usize,
}

/// A schema, compiled and as text; both are shared with everybody who has the same one. Whatever is no object is no schema.
pub(super) fn compiled(schema: &Value) -> Result<(Option<Arc<Schema>>, SchemaText), SchemaError> {
    let text = SchemaText::new(schema);
    let Some(written) = text.shared() else { return Ok((None, text)) };
    if let Some((compiled, written)) = IN_USE.lock().schemas.get(text.digest())
        && let (Some(compiled), Some(written)) = (compiled.upgrade(), written.upgrade())
    {
        return Ok((Some(compiled), text.with(written)));
    }
    let compiled = Arc::new(Schema::compile(schema)?);
    let mut known = IN_USE.lock();
    known.schemas.insert(*text.digest(), (Arc::downgrade(&compiled), Arc::downgrade(written)));
    if known.schemas.len() > known.limit {
        known.schemas.retain(|_, (compiled, _)| compiled.strong_count() > 0);
        known.limit = known.schemas.len() * 2 + 64;
    }
    drop(known);
    Ok((Some(compiled), text))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn equal_schemas_are_one_and_others_are_not() {
        let schema = |field: &str| json!({"type": "object", "properties": {field: {"type": "string", "maxLength": 7}}});
        let (first, text) = compiled(&schema("shared-a")).unwrap();
        let (again, same) = compiled(&schema("shared-a")).unwrap();
        assert!(Arc::ptr_eq(first.as_ref().unwrap(), &again.unwrap()));
        assert!(std::ptr::eq(text.get().unwrap(), same.get().unwrap()));
        let (other, text) = compiled(&schema("shared-b")).unwrap();
        assert!(!Arc::ptr_eq(first.as_ref().unwrap(), &other.unwrap()));
        assert_eq!(text.get().unwrap(), schema("shared-b").to_string());
        assert!(compiled(&Value::Null).unwrap().0.is_none());
        assert!(compiled(&json!({"type": "string", "pattern": "("})).is_err());
    }
}
