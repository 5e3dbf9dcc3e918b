//! Going back in time, as a server does that was restored from a backup.

use super::contents::Contents;

/// The whole store at one moment. Later writes do not change it.
#[derive(Debug, Clone)]
pub struct Snapshot(Contents);

impl Snapshot {
    pub(super) fn of(contents: &Contents) -> Self {
        Self(contents.clone())
    }

    /// The counter at that moment.
    pub fn revision(&self) -> u64 {
        self.0.revision
    }

    /// The contents for a store that has counted this many writes: everything counts as written just now.
    pub(super) fn contents(&self, touches: u64) -> Contents {
        let mut contents = self.0.clone();
        contents.touches = touches + 1;
        let all = contents.touched.values_mut().chain(contents.written.values_mut());
        all.for_each(|last| *last = touches + 1);
        contents
    }
}
