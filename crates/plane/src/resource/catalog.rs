//! The kinds that are served together: in a cluster, or in a virtual workspace.

use std::collections::HashMap;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;

use super::kind::Resource;

/// How many documents are kept.
const MOST: usize = 4096;

/// Kinds in the order of their precedence, found by group and plural. It never changes, so whatever is made from it stays valid. Cheap to clone.
#[derive(Clone)]
pub struct Catalog(Arc<Inner>);

struct Inner {
    all: Vec<Arc<Resource>>,
    /// Positions by group and plural.
    places: HashMap<Arc<str>, HashMap<Arc<str>, usize>>,
    /// Documents about these kinds that somebody has asked for, such as discovery.
    documents: Mutex<HashMap<String, Bytes>>,
}

impl Catalog {
    /// A served kind.
    pub fn find(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Resource>> {
        self.named(group, plural).filter(|found| found.version(version).is_some_and(|version| version.served))
    }

    /// A kind by group and plural; the first one if several have the same names.
    pub fn named(&self, group: &str, plural: &str) -> Option<&Arc<Resource>> {
        let place = self.0.places.get(group)?.get(plural)?;
        self.0.all.get(*place)
    }

    /// A document about these kinds, made when it is first asked for.
    pub(crate) fn document<E>(&self, name: &str, make: impl FnOnce() -> Result<Bytes, E>) -> Result<Bytes, E> {
        if let Some(known) = self.0.documents.lock().get(name) {
            return Ok(known.clone());
        }
        let made = make()?;
        let mut documents = self.0.documents.lock();
        // Some servers answer for groups that do not exist, too.
        if documents.len() >= MOST {
            documents.clear();
        }
        documents.insert(name.to_owned(), made.clone());
        Ok(made)
    }
}

impl From<Vec<Arc<Resource>>> for Catalog {
    fn from(all: Vec<Arc<Resource>>) -> Self {
        let mut places: HashMap<Arc<str>, HashMap<Arc<str>, usize>> = HashMap::new();
        for (place, resource) in all.iter().enumerate() {
            places.entry(resource.group.clone()).or_default().entry(resource.plural.clone()).or_insert(place);
        }
        Self(Arc::new(Inner { all, places, documents: Mutex::default() }))
    }
}

impl FromIterator<Arc<Resource>> for Catalog {
    fn from_iter<T: IntoIterator<Item = Arc<Resource>>>(all: T) -> Self {
        all.into_iter().collect::<Vec<_>>().into()
    }
}

impl Deref for Catalog {
    type Target = [Arc<Resource>];

    fn deref(&self) -> &Self::Target {
        &self.0.all
    }
}

impl fmt::Debug for Catalog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.0.all).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Mode;
    use crate::resource::builtin::builtins;

    #[test]
    fn kinds_are_found_and_the_first_of_two_with_one_name_wins() {
        let mut all = builtins(Mode::Kcp);
        let mut second = Resource::clone(&all[0]);
        second.kind = "Other".into();
        all.push(Arc::new(second));
        let catalog = Catalog::from(all.clone());
        assert_eq!(catalog.len(), all.len());
        for resource in &all {
            let found = catalog.find(&resource.group, &resource.versions[0].name, &resource.plural).unwrap();
            assert_ne!(&*found.kind, "Other");
        }
        assert!(catalog.find("", "v1", "widgets").is_none());
        assert!(catalog.find("", "v9", "configmaps").is_none());
    }

    #[test]
    fn a_document_is_made_once_and_an_error_is_not_kept() {
        let catalog = Catalog::from(Vec::new());
        assert_eq!(catalog.document("a", || Err("not now")), Err("not now"));
        assert_eq!(catalog.document("a", || Ok::<_, ()>("first".into())), Ok("first".into()));
        assert_eq!(catalog.document("a", || Ok::<_, ()>("second".into())), Ok("first".into()));
    }
}
