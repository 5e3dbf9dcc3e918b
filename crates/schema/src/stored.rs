//! What the API server makes of an object before it validates and stores it.

use serde_json::Value;

use crate::node::Schema;

impl Schema {
    /// The object without nulls that are not allowed and fields that nobody knows, and with all defaults.
    #[must_use]
    pub fn stored(&self, mut object: Value) -> Value {
        self.drop_nulls(&mut object);
        self.prune(&mut object, &mut Vec::new());
        self.apply_defaults(&mut object);
        object
    }
}
