//! What the objects of a consumer name, kept up to date with every change of them: nobody has to list them to answer a question.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::named_object::NamedObject;
use super::reference::CompiledReference;
use crate::mapping::ObjectKey;

/// All that is named by the objects that one claim's references look at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamedObjects {
    /// What each object names, by the reference's place in its claim and the object's key.
    by_source: BTreeMap<(usize, ObjectKey), BTreeSet<NamedObject>>,
    /// How often each object is named.
    counts: BTreeMap<NamedObject, usize>,
}

impl NamedObjects {
    /// An object that the reference at this place looks at has come, changed or, without an object, gone. Returns what is named now and was not
    /// before, or the other way round: those have to be looked at again.
    pub fn update(
        &mut self,
        place: usize,
        reference: &CompiledReference,
        key: &ObjectKey,
        object: Option<&Value>,
    ) -> Vec<NamedObject> {
        let now = object.map(|object| reference.named_by(object)).unwrap_or_default();
        let source = (place, key.clone());
        let before =
            if now.is_empty() { self.by_source.remove(&source) } else { self.by_source.insert(source, now.clone()) };
        let before = before.unwrap_or_default();
        let mut changed = Vec::new();
        for named in before.difference(&now) {
            if let Some(count) = self.counts.get_mut(named) {
                *count -= 1;
                if *count == 0 {
                    self.counts.remove(named);
                    changed.push(named.clone());
                }
            }
        }
        for named in now.difference(&before) {
            let count = self.counts.entry(named.clone()).or_default();
            *count += 1;
            if *count == 1 {
                changed.push(named.clone());
            }
        }
        changed
    }

    /// Whether an object is named.
    pub fn contains(&self, key: &ObjectKey) -> bool {
        let named = |namespace: Option<String>| NamedObject { namespace, name: key.name.clone() };
        self.counts.contains_key(&named(None))
            || key.namespace.is_some() && self.counts.contains_key(&named(key.namespace.clone()))
    }

    /// Whether an object is named together with its namespace.
    pub fn contains_exactly(&self, key: &ObjectKey) -> bool {
        let named = NamedObject { namespace: key.namespace.clone(), name: key.name.clone() };
        named.namespace.is_some() && self.counts.contains_key(&named)
    }

    /// All that is named.
    pub fn iter(&self) -> impl Iterator<Item = &NamedObject> {
        self.counts.keys()
    }
}
