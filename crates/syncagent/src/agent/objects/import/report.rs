//! Objects that a PublishedResource imports by itself, and why some are not.

use std::collections::{BTreeMap, HashSet};

use parking_lot::Mutex;

/// An object of the service cluster, as people name it.
type Name = String;

/// What became of the objects that `spec.import` selects.
#[derive(Default)]
pub(in crate::agent::objects) struct ImportedObjects(Mutex<State>);

#[derive(Default)]
struct State {
    /// Those that were reconciled.
    seen: HashSet<Name>,
    /// Those that are not imported, with the reason.
    refused: BTreeMap<Name, String>,
    /// Whether all that are there were reconciled once.
    is_known: bool,
}

/// What is said about all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ImportsReport {
    /// Each has its order, or had it.
    Done,
    /// Some have none, in words.
    Refused(String),
}

impl ImportedObjects {
    /// Notes what became of an object, of as many as there are; says whether that is news about the object, and whether it is about all.
    pub fn note(&self, name: &str, refused: Option<&str>, there: Option<usize>) -> (bool, bool) {
        let mut state = self.0.lock();
        state.seen.insert(name.to_owned());
        let is_news = match refused {
            Some(why) => state.refused.insert(name.to_owned(), why.to_owned()).is_none_or(|before| before != why),
            None => state.refused.remove(name).is_some(),
        };
        let is_first = !state.is_known && there.is_some_and(|there| state.seen.len() >= there);
        state.is_known |= is_first;
        (is_news, is_first || is_news)
    }

    /// Forgets an object that is gone, or is not selected any more. Says whether that is news about all.
    pub fn forget(&self, name: &str) -> bool {
        let mut state = self.0.lock();
        state.seen.remove(name);
        state.refused.remove(name).is_some()
    }

    /// Those that are not imported.
    pub fn refused(&self) -> Vec<Name> {
        self.0.lock().refused.keys().cloned().collect()
    }

    /// What is said about all of them; nothing before all were reconciled, so that a restart takes nothing back.
    pub fn report(&self) -> Option<ImportsReport> {
        let state = self.0.lock();
        if !state.is_known {
            return None;
        }
        let Some((first, why)) = state.refused.iter().next() else { return Some(ImportsReport::Done) };
        let count = state.refused.len();
        let objects = if count == 1 { "object is" } else { "objects are" };
        Some(ImportsReport::Refused(format!("{count} {objects} not imported, the first is {first}: {why}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_said_before_all_were_reconciled() {
        let all = ImportedObjects::default();
        assert_eq!(all.note("own/a", None, None), (false, false));
        assert_eq!(all.note("own/b", Some("no workspace"), Some(3)), (true, true));
        assert_eq!(all.report(), None);
        assert_eq!(all.note("own/c", None, Some(3)), (false, true));
        let words = "1 object is not imported, the first is own/b: no workspace";
        assert_eq!(all.report(), Some(ImportsReport::Refused(words.to_owned())));
        assert_eq!(all.note("own/b", Some("no workspace"), Some(3)), (false, false), "the same is no news");
        assert_eq!(all.note("own/a", Some("other"), Some(3)), (true, true));
        assert_eq!(all.refused(), ["own/a", "own/b"]);
        assert!(all.forget("own/a") && !all.forget("own/c"));
        assert_eq!(all.note("own/b", None, Some(1)), (true, true));
        assert_eq!(all.report(), Some(ImportsReport::Done));
    }
}
