//! Orders whose copies others have changed, where somebody wants to know.

use std::collections::HashMap;

use carrick_sync::drift::DriftedCopy;
use parking_lot::Mutex;

use crate::decide::drift::shown;
use crate::rules::metadata::{SERVICE_SIDE, SourceKey};

/// All orders of one PublishedResource with drift.
#[derive(Default)]
pub(crate) struct DriftedOrders(Mutex<HashMap<SourceKey, Vec<DriftedCopy>>>);

impl DriftedOrders {
    /// Notes what others have changed for an order, and says whether that differs from before.
    pub fn note(&self, key: &SourceKey, copies: &[DriftedCopy]) -> bool {
        let copies: Vec<DriftedCopy> = copies.iter().filter(|copy| !copy.fields.is_empty()).cloned().collect();
        let mut all = self.0.lock();
        if copies.is_empty() {
            return all.remove(key).is_some();
        }
        let same = |before: &Vec<DriftedCopy>| {
            before.len() == copies.len()
                && before
                    .iter()
                    .zip(&copies)
                    .all(|(a, b)| (&a.at, &a.fields, a.contested) == (&b.at, &b.fields, b.contested))
        };
        let is_same = all.get(key).is_some_and(same);
        all.insert(key.clone(), copies);
        !is_same
    }

    /// Whether a copy of an order has drifted.
    pub fn contains(&self, key: &SourceKey) -> bool {
        self.0.lock().contains_key(key)
    }

    /// How many copies have drifted.
    pub fn len(&self) -> usize {
        self.0.lock().values().map(Vec::len).sum()
    }

    /// How many copies have drifted, and the first of them, in words.
    pub fn summary(&self, name: impl Fn(&SourceKey) -> String) -> Option<String> {
        let all = self.0.lock();
        let (key, copies) = all.iter().min_by_key(|(key, _)| *key)?;
        let count: usize = all.values().map(Vec::len).sum();
        let contested = all.values().flatten().filter(|copy| copy.contested).count();
        let copy = copies.first()?;
        let objects = if count == 1 { "copy was" } else { "copies were" };
        let fought = match contested {
            0 => String::new(),
            count => format!(". {count} of them contested: set back again and again, and now left alone"),
        };
        let (order, fields) = (name(key), shown(&copy.fields));
        Some(format!(
            "{count} {objects} changed by others, the first is {} of {order}: {fields}{fought}. See all with carrick drift",
            copy.at
        ))
    }

    /// The fields that others have changed on the copy of an order.
    pub fn fields(&self, key: &SourceKey, resource: &str) -> Vec<String> {
        let all = self.0.lock();
        let is_own = |copy: &&DriftedCopy| copy.at.side == SERVICE_SIDE && copy.at.kind.resource() == resource;
        let own = all.get(key).into_iter().flatten().find(is_own);
        own.into_iter().flat_map(|copy| copy.fields.keys().cloned()).collect()
    }

    /// Forgets some of them.
    pub fn forget(&self, which: impl Fn(&SourceKey) -> bool) {
        self.0.lock().retain(|key, _| !which(key));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use super::*;
    use crate::decide::ObjectAddress;
    use crate::rules::ApiKind;

    fn copy(fields: &[(&str, &str)], contested: bool) -> DriftedCopy {
        let kind = ApiKind {
            group: "example.com".to_owned(),
            version: "v1".to_owned(),
            kind: "Bucket".to_owned(),
            plural: "buckets".to_owned(),
            namespaced: true,
        };
        let at = ObjectAddress {
            side: SERVICE_SIDE,
            kind: Arc::new(kind),
            namespace: Some("ns".to_owned()),
            name: "copy".to_owned(),
        };
        let fields = fields.iter().map(|(path, manager)| ((*path).to_owned(), (*manager).to_owned())).collect();
        DriftedCopy { at, fields, reverted: BTreeMap::new(), contested, news: true }
    }

    #[test]
    fn drift_is_counted_and_named() {
        let key = |name: &str| SourceKey { cluster: "c".into(), namespace: "ns".into(), name: name.into() };
        let orders = DriftedOrders::default();
        assert!(!orders.note(&key("b"), &[copy(&[], false)]) && orders.summary(ToString::to_string).is_none());
        let drifted = copy(&[("spec.size", "kubectl-edit"), ("spec.tier", "")], false);
        assert!(orders.note(&key("b"), std::slice::from_ref(&drifted)));
        assert!(!orders.note(&key("b"), &[DriftedCopy { news: false, ..drifted }]), "the same is no news");
        assert_eq!(orders.fields(&key("b"), "buckets.example.com"), ["spec.size", "spec.tier"]);
        let words = orders.summary(|key| key.name.to_string()).unwrap();
        assert_eq!(
            words,
            "1 copy was changed by others, the first is service Bucket ns/copy of b: spec.size (kubectl-edit), spec.tier. See all with carrick drift"
        );
        orders.note(&key("a"), &[copy(&[("spec.size", "hpa")], true)]);
        let words = orders.summary(|key| key.name.to_string()).unwrap();
        assert!(
            words.starts_with("2 copies were changed") && words.contains("of a: spec.size (hpa). 1 of them contested"),
            "{words}"
        );
        assert!(orders.note(&key("b"), &[]) && orders.len() == 1);
        orders.forget(|key| &*key.name == "a");
        assert_eq!(orders.len(), 0);
    }
}
