//! Events have two API groups and one stored form.

use serde_json::{Map, Value};

/// Field names: core group, `events.k8s.io`.
const FIELDS: [(&str, &str); 6] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
];

const CONTROLLER: (&str, &str) = ("reportingComponent", "reportingController");
const INSTANCE: (&str, &str) = ("reportingInstance", "reportingInstance");

/// Converts an event in place; `from` and `to` are full API versions.
pub(super) fn convert(from: &str, to: &str, object: &mut Value) {
    let Value::Object(map) = object else { return };
    let to_core = to == "v1";
    if (from == "v1") == to_core {
        return;
    }
    for (core, other) in FIELDS.into_iter().chain([CONTROLLER, INSTANCE]) {
        let (old, new) = if to_core { (other, core) } else { (core, other) };
        rename(map, old, new);
    }
    // The one group writes these even if they are empty, the other does not.
    for (core, other) in [CONTROLLER, INSTANCE] {
        if to_core {
            map.entry(core).or_insert_with(|| "".into());
        } else if map.get(other).is_some_and(|text| text == "") {
            map.remove(other);
        }
    }
}

fn rename(map: &mut Map<String, Value>, old: &str, new: &str) {
    if let Some(value) = map.remove(old) {
        map.insert(new.to_owned(), value);
    }
}
