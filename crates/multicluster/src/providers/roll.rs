//! Which objects of a watch exist.

use std::collections::HashMap;
use std::sync::Arc;

use carrick_client::Object;
use carrick_client::watch::Event;

/// Namespace and name.
pub(super) type Id = (Arc<str>, Arc<str>);

/// A change among the objects of a watch.
#[derive(Clone, Debug)]
pub(super) enum Entry {
    /// The object appeared, changed, or is still there.
    Present(Object),
    /// The object is gone.
    Gone(Id),
    /// A list is complete.
    Complete,
}

/// The objects of a watch, so that a list finds what went unseen.
#[derive(Debug, Default)]
pub(super) struct Roll {
    /// Each with the list that last held it.
    known: HashMap<Id, u64>,
    generation: u64,
}

impl Roll {
    pub(super) fn take_in(&mut self, event: Event) -> Vec<Entry> {
        match event {
            Event::Begin => {
                self.generation += 1;
                Vec::new()
            }
            Event::Listed(object) | Event::Applied(object) => {
                self.known.insert(id(&object), self.generation);
                vec![Entry::Present(object)]
            }
            Event::Deleted(object) => {
                let id = id(&object);
                self.known.remove(&id).map(|_| Entry::Gone(id)).into_iter().collect()
            }
            Event::Synced => {
                let generation = self.generation;
                let gone = self.known.extract_if(|_, last| *last < generation).map(|(id, _)| Entry::Gone(id));
                gone.chain([Entry::Complete]).collect()
            }
            Event::Failing(_) | Event::Recovered => Vec::new(),
        }
    }
}

/// Namespace and name of an object.
pub(super) fn id(object: &Object) -> Id {
    (object.namespace.clone(), object.name.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_list_finds_what_went_unseen() {
        let object = |name: &str| Object::from_value(&json!({"metadata": {"name": name}})).unwrap();
        let mut roll = Roll::default();
        let script = [
            Event::Begin,
            Event::Listed(object("a")),
            Event::Listed(object("b")),
            Event::Synced,
            Event::Applied(object("c")),
            Event::Deleted(object("b")),
            Event::Deleted(object("never-seen")),
            Event::Begin,
            Event::Listed(object("c")),
            Event::Synced,
        ];
        let told = script.into_iter().flat_map(|event| roll.take_in(event)).map(|entry| match entry {
            Entry::Present(object) => format!("+{}", object.name),
            Entry::Gone((_, name)) => format!("-{name}"),
            Entry::Complete => "complete".to_owned(),
        });
        assert_eq!(told.collect::<Vec<_>>(), ["+a", "+b", "complete", "+c", "-b", "+c", "-a", "complete"]);
    }
}
