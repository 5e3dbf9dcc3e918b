//! Which objects of a watch exist: a new list shows which were deleted unseen.

use std::collections::HashMap;
use std::sync::Arc;

use carrick_client::Object;
use carrick_client::watch::Event;

/// Namespace and name.
pub(super) type ObjectId = (Arc<str>, Arc<str>);

/// A change among the objects of a watch.
#[derive(Clone, Debug)]
pub(super) enum ObjectChange {
    /// The object appeared, changed, or is still there.
    Present(Object),
    /// The object is gone.
    Gone(ObjectId),
    /// A list is complete.
    Complete,
}

/// The objects of a watch, compared with each new list.
#[derive(Debug, Default)]
pub(super) struct KnownObjects {
    /// Each with the number of the list that last held it.
    known: HashMap<ObjectId, u64>,
    list: u64,
}

impl KnownObjects {
    /// The changes that an event of the watch means.
    pub(super) fn apply(&mut self, event: Event) -> Vec<ObjectChange> {
        match event {
            Event::Begin => {
                self.list += 1;
                Vec::new()
            }
            Event::Listed(object) | Event::Applied(object) => {
                self.known.insert(object_id(&object), self.list);
                vec![ObjectChange::Present(object)]
            }
            Event::Deleted(object) => {
                let id = object_id(&object);
                self.known.remove(&id).map(|_| ObjectChange::Gone(id)).into_iter().collect()
            }
            Event::Synced => {
                let list = self.list;
                let gone = self.known.extract_if(|_, last| *last < list).map(|(id, _)| ObjectChange::Gone(id));
                gone.chain([ObjectChange::Complete]).collect()
            }
            Event::Failing(_) | Event::Recovered | Event::WentBack { .. } => Vec::new(),
        }
    }
}

/// Namespace and name of an object.
pub(super) fn object_id(object: &Object) -> ObjectId {
    (object.namespace.clone(), object.name.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_list_shows_what_was_deleted_unseen() {
        let object = |name: &str| Object::from_value(&json!({"metadata": {"name": name}})).unwrap();
        let mut known = KnownObjects::default();
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
        let changes = script.into_iter().flat_map(|event| known.apply(event)).map(|change| match change {
            ObjectChange::Present(object) => format!("+{}", object.name),
            ObjectChange::Gone((_, name)) => format!("-{name}"),
            ObjectChange::Complete => "complete".to_owned(),
        });
        assert_eq!(changes.collect::<Vec<_>>(), ["+a", "+b", "complete", "+c", "-b", "+c", "-a", "complete"]);
    }
}
