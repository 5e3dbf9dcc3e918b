//! Which objects of one kind are marked as related copies, and whose: known from the watch alone. An owner is an entry of a primary.

use std::collections::{BTreeSet, HashMap};

use super::cache::Origin;
use super::keys::ClusterNamespace;

/// Namespace and name.
pub(super) type Name = (String, String);

/// A marked object.
struct MarkedObject {
    owner: Box<str>,
    /// Who reported it last.
    origin: Origin,
    /// In which round the watch reported it last.
    round: u64,
}

/// All marked objects of one kind.
#[derive(Default)]
pub(super) struct MarkedObjects {
    marks: HashMap<ClusterNamespace, HashMap<String, MarkedObject>>,
    /// By cluster and owner.
    places: HashMap<(String, Box<str>), BTreeSet<Name>>,
}

impl MarkedObjects {
    /// Takes in what the watch reports of one object: whose marks it has, if any.
    pub fn set(&mut self, scope: &ClusterNamespace, name: &str, owner: Option<&str>, origin: Origin, round: u64) {
        let known = self.marks.get_mut(scope).and_then(|marks| marks.get_mut(name));
        if let (Some(mark), Some(owner)) = (known, owner)
            && *mark.owner == *owner
        {
            (mark.origin, mark.round) = (origin, round);
            return;
        }
        self.remove(scope, name);
        if let Some(owner) = owner {
            let mark = MarkedObject { owner: owner.into(), origin, round };
            let places = self.places.entry((scope.0.clone(), mark.owner.clone())).or_default();
            places.insert((scope.1.clone(), name.to_owned()));
            self.marks.entry(scope.clone()).or_default().insert(name.to_owned(), mark);
        }
    }

    /// An object no longer exists.
    pub fn remove(&mut self, scope: &ClusterNamespace, name: &str) {
        let Some(marks) = self.marks.get_mut(scope) else { return };
        let Some(mark) = marks.remove(name) else { return };
        if marks.is_empty() {
            self.marks.remove(scope);
        }
        let key = (scope.0.clone(), mark.owner);
        if let Some(places) = self.places.get_mut(&key) {
            places.remove(&(scope.1.clone(), name.to_owned()));
            if places.is_empty() {
                self.places.remove(&key);
            }
        }
    }

    /// A list is complete: what was not reported since it began no longer exists.
    pub fn finish(&mut self, begun: u64, serves: impl Fn(&str) -> bool) {
        let scopes = self.marks.iter().filter(|(scope, _)| serves(&scope.0));
        let gone: Vec<(ClusterNamespace, String)> = scopes
            .flat_map(|(scope, marks)| {
                let old = marks.iter().filter(|(_, mark)| mark.round < begun);
                old.map(|(name, _)| (scope.clone(), name.clone()))
            })
            .collect();
        for (scope, name) in gone {
            self.remove(&scope, &name);
        }
    }

    /// A cluster is served from now on by another server, or in another life of it. Returns whether it was not before.
    pub fn settle(&mut self, cluster: &str, origin: Origin) -> bool {
        let scopes = self.marks.iter().filter(|(scope, _)| scope.0 == cluster);
        scopes.flat_map(|(_, marks)| marks.values()).any(|mark| mark.origin != origin)
    }

    /// Namespaces and names of the objects in a cluster that have the marks of an owner.
    pub fn of(&self, cluster: &str, owner: &str) -> Vec<Name> {
        let places = self.places.get(&(cluster.to_owned(), owner.into()));
        places.into_iter().flatten().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(cluster: &str, namespace: &str) -> ClusterNamespace {
        (cluster.into(), namespace.into())
    }

    #[test]
    fn objects_are_found_by_the_primary_they_are_marked_with() {
        let mut marked = MarkedObjects::default();
        marked.set(&scope("c", "n"), "a", Some("o"), Origin::default(), 1);
        marked.set(&scope("c", "m"), "a", Some("o"), Origin::default(), 1);
        marked.set(&scope("d", "n"), "a", Some("o"), Origin::default(), 1);
        marked.set(&scope("c", "n"), "b", Some("p"), Origin::default(), 1);
        marked.set(&scope("c", "n"), "c", None, Origin::default(), 1);
        let place = |namespace: &str, name: &str| (namespace.to_owned(), name.to_owned());
        assert_eq!(marked.of("c", "o"), [place("m", "a"), place("n", "a")]);
        assert_eq!(marked.of("c", "p"), [place("n", "b")]);
        marked.set(&scope("c", "n"), "a", Some("p"), Origin::default(), 2);
        assert_eq!((marked.of("c", "o").len(), marked.of("c", "p").len()), (1, 2), "it belongs to another one now");
        marked.set(&scope("c", "n"), "a", None, Origin::default(), 2);
        marked.remove(&scope("c", "n"), "b");
        assert!(marked.of("c", "p").is_empty());
    }

    #[test]
    fn what_a_new_list_lacks_is_gone() {
        let mut marked = MarkedObjects::default();
        for (cluster, name) in [("c", "a"), ("c", "b"), ("d", "a")] {
            marked.set(&scope(cluster, "n"), name, Some("o"), Origin::default(), 1);
        }
        marked.set(&scope("c", "n"), "a", Some("o"), Origin::default(), 2);
        marked.finish(2, |cluster| cluster == "c");
        assert_eq!((marked.of("c", "o").len(), marked.of("d", "o").len()), (1, 1));
        marked.finish(3, |_| true);
        assert!(marked.marks.is_empty() && marked.places.is_empty());
    }
}
