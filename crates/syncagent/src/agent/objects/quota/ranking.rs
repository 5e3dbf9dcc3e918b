//! The crowd: which objects of a workspace come before one that has no copy. Those with a place stay, the other places go to the oldest.

use std::sync::Arc;

use carrick_multicluster::Key;
use serde_json::Value;

use crate::agent::objects::copies;
use crate::agent::objects::order::Order;
use crate::agent::objects::quota::waiting::{Limit, Survey, age};
use crate::agent::objects::source::source_key;
use crate::decide::is_held_by;
use crate::rules::Selection;
use crate::rules::metadata::is_deleting;

/// How many other objects of the workspace come first, if the rules limit that: as many as there are places, if it has none. `None` while not all of
/// them are known.
pub(in crate::agent::objects) fn ahead(order: &Order<'_>) -> Option<usize> {
    let Order { shared, rules, key, cluster, .. } = order;
    let Some(most) = rules.limit else { return Some(0) };
    let known = shared.sources.is_synced(cluster.endpoint()) && shared.copies.is_listed();
    let limit = Limit { most, rules: Arc::as_ptr(rules).addr() };
    let ask = || shared.places.ask((key, age(&order.source)), limit, || survey(order));
    known.then(|| if ask() { 0 } else { most })
}

/// Who is there: those with a place, and living ones that would like to have one.
fn survey(order: &Order<'_>) -> Survey {
    let Order { shared, rules, cluster, .. } = order;
    let resource = rules.remote.resource();
    let filters = rules.resource_filter.is_some() || rules.filters_by_namespace();
    let mut crowd = Survey::default();
    for (place, object) in shared.sources.entries(cluster.name()) {
        let key = source_key(&place);
        let has_copy = !copies::of(&shared.copies, &key, &resource).is_empty();
        if has_copy && !filters {
            // Reading an object takes time.
            crowd.placed.push(key);
            continue;
        }
        let object = object.value();
        if !is_selected(order, &place, &object) {
            continue;
        }
        // A finalizer alone does not mean that it was placed: consumers can set it themselves.
        let held =
            || is_held_by(&object, rules.agent_name.as_str()) && !shared.states.get(&rules.remote, &key).is_empty();
        if has_copy || held() {
            crowd.placed.push(key);
        } else if !is_deleting(&object) {
            crowd.others.push((age(&object), key));
        }
    }
    crowd
}

fn is_selected(order: &Order<'_>, place: &Key, object: &Value) -> bool {
    let namespaces = order.shared.consumer_namespaces.as_ref();
    let namespace = namespaces.and_then(|known| known.get(&place.cluster, "", &place.namespace));
    order.rules.selects(object, namespace.map(|namespace| namespace.value()).as_ref()) != Selection::Out
}
