//! Copies whose order does not exist: which ones, and since when that is known.

use std::collections::BTreeMap;

use carrick_client::Object;
use parking_lot::Mutex;
use serde::Serialize;

use crate::rules::metadata::SourceKey;

/// A copy whose order does not exist.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OrphanedCopy {
    /// Its namespace; empty for kinds without namespaces.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// When it was noticed. When the order went, nobody saw.
    pub since: String,
}

/// Those of one PublishedResource, by the order that they were made for.
#[derive(Default)]
pub(crate) struct Orphans(Mutex<BTreeMap<SourceKey, OrphanedCopy>>);

impl Orphans {
    /// Notes that an order does not exist although it has a copy, or that this is no longer so. Says whether that is news.
    pub fn note(&self, key: &SourceKey, copy: Option<&Object>, now: jiff::Timestamp) -> bool {
        let mut all = self.0.lock();
        let Some(copy) = copy else { return all.remove(key).is_some() };
        if all.get(key).is_some_and(|known| *known.name == *copy.name && *known.namespace == *copy.namespace) {
            return false;
        }
        let (namespace, name) = (copy.namespace.to_string(), copy.name.to_string());
        let since = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        all.insert(key.clone(), OrphanedCopy { namespace, name, since });
        true
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.lock().len()
    }

    /// The first ones.
    pub fn first(&self, most: usize) -> Vec<(SourceKey, OrphanedCopy)> {
        self.0.lock().iter().take(most).map(|(key, copy)| (key.clone(), copy.clone())).collect()
    }
}

impl OrphanedCopy {
    /// The command that deletes it, for whoever is sure that nobody needs it.
    pub fn deletion(&self, resource: &str) -> String {
        let resource = resource.trim_end_matches('.');
        let inside = if self.namespace.is_empty() { String::new() } else { format!(" -n {}", self.namespace) };
        format!("kubectl delete {resource} {}{inside}", self.name)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_copy_is_known_from_when_it_was_first_seen_until_it_is_gone() {
        let key = SourceKey { cluster: "c".into(), namespace: "ns".into(), name: "n".into() };
        let object =
            |name: &str| Object::from_value(&json!({ "metadata": { "namespace": "place", "name": name } })).unwrap();
        let at = |second: i64| jiff::Timestamp::from_second(second).unwrap();
        let orphans = Orphans::default();
        assert!(orphans.note(&key, Some(&object("a")), at(0)));
        assert!(!orphans.note(&key, Some(&object("a")), at(60)));
        let (_, copy) = orphans.first(1).remove(0);
        assert_eq!(copy.since, "1970-01-01T00:00:00Z");
        assert_eq!(copy.deletion("buckets.example.com"), "kubectl delete buckets.example.com a -n place");
        assert_eq!(copy.deletion("secrets."), "kubectl delete secrets a -n place");
        assert!(orphans.note(&key, Some(&object("b")), at(120)));
        assert_eq!((orphans.len(), orphans.first(1)[0].1.since.as_str()), (1, "1970-01-01T00:02:00Z"));
        assert!(orphans.note(&key, None, at(180)) && !orphans.note(&key, None, at(180)));
        assert_eq!(orphans.first(9), Vec::new());
    }
}
