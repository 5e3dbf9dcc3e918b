//! Orders with related objects whose copies somebody else has changed.

use std::collections::HashMap;

use parking_lot::Mutex;

use crate::decide::OverwrittenCopy;
use crate::rules::metadata::SourceKey;

/// All orders of one PublishedResource with such copies.
#[derive(Default)]
pub(crate) struct OverwrittenCopies(Mutex<HashMap<SourceKey, Vec<OverwrittenCopy>>>);

impl OverwrittenCopies {
    /// Notes those of an order; none if all are as their originals.
    pub fn note(&self, key: &SourceKey, copies: Vec<OverwrittenCopy>) {
        let mut all = self.0.lock();
        if copies.is_empty() {
            all.remove(key);
        } else {
            all.insert(key.clone(), copies);
        }
    }

    /// Those of an order.
    pub fn of(&self, key: &SourceKey) -> Vec<OverwrittenCopy> {
        self.0.lock().get(key).cloned().unwrap_or_default()
    }

    /// Forgets some of them.
    pub fn forget(&self, which: impl Fn(&SourceKey) -> bool) {
        self.0.lock().retain(|key, _| !which(key));
    }
}
