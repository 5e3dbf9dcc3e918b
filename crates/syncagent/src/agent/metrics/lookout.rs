//! The objects of all PublishedResources, lent to whoever shows them.

use std::collections::BTreeMap;

use parking_lot::Mutex;

use crate::agent::objects::Journeys;

/// By name of the PublishedResource.
#[derive(Default)]
pub struct Lookout(Mutex<BTreeMap<String, Journeys>>);

impl Lookout {
    /// Lends the objects of a PublishedResource, in place of what was lent before.
    pub(crate) fn lend(&self, name: &str, journeys: Journeys) {
        self.0.lock().insert(name.to_owned(), journeys);
    }

    /// Takes them back.
    pub(crate) fn take_back(&self, name: &str) {
        self.0.lock().remove(name);
    }

    /// Everything that is lent now.
    pub(crate) fn all(&self) -> BTreeMap<String, Journeys> {
        self.0.lock().clone()
    }
}
