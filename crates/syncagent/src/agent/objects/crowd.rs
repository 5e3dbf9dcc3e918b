//! The crowd: which objects of a workspace come before one that has no copy. Those with a place stay, the other places go to the oldest.

use std::collections::HashSet;

use carrick_multicluster::Key;
use serde_json::Value;

use super::copies;
use super::order::Order;
use super::source::source_key;
use crate::decide::is_held_by;
use crate::rules::Selection;
use crate::rules::metadata::{SourceKey, is_deleting};

/// How many other objects of the workspace come first, if the rules limit that. `None` while not all of them are known.
pub(super) fn ahead(order: &Order<'_>) -> Option<usize> {
    let Order { shared, rules, key, cluster, .. } = order;
    let Some(most) = rules.limit else { return Some(0) };
    let known = shared.sources.is_synced(cluster.endpoint()) && shared.copies.is_listed();
    known.then(|| shared.places.ask(key, most, |taken| count(order, taken, most)))
}

fn count(order: &Order<'_>, taken: &HashSet<SourceKey>, most: usize) -> usize {
    let Order { shared, rules, key, source, cluster, .. } = order;
    let resource = rules.remote.resource();
    let filters = rules.resource_filter.is_some() || rules.filters_by_namespace();
    let (mut count, mut unread) = (0, Vec::new());
    // Reading an object takes time, so those that need not be read come first.
    for (place, object) in shared.sources.entries(cluster.name()) {
        let other = source_key(&place);
        if other == **key {
            continue;
        }
        let placed = taken.contains(&other) || !copies::of(&shared.copies, &other, &resource).is_empty();
        if placed && !filters {
            count += 1;
        } else {
            unread.push((place, object, placed));
        }
    }
    for (place, object, placed) in unread {
        if count >= most {
            break;
        }
        let other = object.value();
        let counts = placed || is_held_by(&other, &rules.agent_name) || comes_first(&other, source);
        count += usize::from(counts && is_selected(order, &place, &other));
    }
    count
}

/// Whether a living object is older than another one. Those of the same second are ordered by name.
fn comes_first(other: &Value, than: &Value) -> bool {
    fn age(object: &Value) -> [&str; 3] {
        ["creationTimestamp", "namespace", "name"].map(|field| object["metadata"][field].as_str().unwrap_or_default())
    }
    !is_deleting(other) && age(other) < age(than)
}

fn is_selected(order: &Order<'_>, place: &Key, object: &Value) -> bool {
    let namespaces = order.shared.consumer_namespaces.as_ref();
    let namespace = namespaces.and_then(|known| known.get(&place.cluster, "", &place.namespace));
    order.rules.selects(object, namespace.map(|namespace| namespace.value()).as_ref()) != Selection::Out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn older_ones_come_first_and_of_one_second_those_with_the_smaller_name() {
        let object = |created: &str, name: &str| json!({"metadata": {"creationTimestamp": created, "namespace": "n", "name": name}});
        let one = object("2026-01-01T00:00:05Z", "b");
        for (created, name, first) in [
            ("2026-01-01T00:00:04Z", "c", true),
            ("2026-01-01T00:00:05Z", "a", true),
            ("2026-01-01T00:00:05Z", "b", false),
            ("2026-01-01T00:00:05Z", "c", false),
            ("2026-01-01T00:00:06Z", "a", false),
        ] {
            assert_eq!(comes_first(&object(created, name), &one), first, "{created} {name}");
        }
        let mut leaving = object("2026-01-01T00:00:04Z", "a");
        leaving["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:09Z");
        assert!(!comes_first(&leaving, &one));
    }
}
