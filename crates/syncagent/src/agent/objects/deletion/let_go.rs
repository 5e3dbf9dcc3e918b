//! Originals that were let go for orders that end: once nobody holds them they may be gone, and are not missed.

use std::collections::{HashMap, HashSet};

use parking_lot::Mutex;

use crate::decide::ObjectAddress;
use crate::rules::metadata::SourceKey;

/// What was let go, by order.
#[derive(Default)]
pub(in crate::agent::objects) struct LetGo(Mutex<HashMap<SourceKey, HashSet<ObjectAddress>>>);

impl LetGo {
    /// An order that ends does not hold this any more.
    pub fn note(&self, key: &SourceKey, at: ObjectAddress) {
        self.0.lock().entry(key.clone()).or_default().insert(at);
    }

    /// Whether an order has let this go.
    pub fn has(&self, key: &SourceKey, at: &ObjectAddress) -> bool {
        self.0.lock().get(key).is_some_and(|all| all.iter().any(|known| known.is_same_object(at)))
    }

    /// An order is gone.
    pub fn forget(&self, key: &SourceKey) {
        self.0.lock().remove(key);
    }
}
