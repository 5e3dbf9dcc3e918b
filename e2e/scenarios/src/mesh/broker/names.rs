//! The broker's names, filters and what it copies. Pure.

use data_encoding::HEXLOWER;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

/// Group of AcceptAPIs.
pub(crate) const GROUP: &str = "broker.platform-mesh.io";
/// Its finalizers on orders, all at once.
pub(crate) const FINALIZERS: [&str; 3] = [
    "broker.platform-mesh.io/assignment-ref",
    "broker.platform-mesh.io/staging-copy",
    "broker.platform-mesh.io/related-resources",
];

/// What it makes of several words for the name of an object.
pub(crate) fn hash(parts: &[&str]) -> String {
    HEXLOWER.encode(&Sha256::digest(parts.join("\0").as_bytes()))[..16].to_owned()
}

/// Whether an AcceptAPI takes an order: all filters must hold, and a field that is missing passes them.
pub(crate) fn takes(accept: &Value, order: &Value) -> bool {
    accept["spec"]["filters"].as_array().into_iter().flatten().all(|filter| {
        let path = filter["key"].as_str().unwrap_or_default().replace('.', "/");
        let Some(value) = order.pointer(&format!("/spec/{path}")) else { return true };
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let listed = filter["valueIn"].as_array().is_none_or(|values| values.iter().any(|it| *it == text.as_str()));
        listed && filter["suffix"].as_str().is_none_or(|suffix| text.ends_with(suffix))
    })
}

/// What goes down: everything but the status and, of metadata, name and namespace only. Labels and annotations never arrive.
pub(crate) fn down(order: &Value) -> Value {
    let mut copy = order.clone();
    if let Some(fields) = copy.as_object_mut() {
        fields.remove("status");
    }
    let of = |key: &str| order["metadata"].get(key).cloned();
    let metadata: Map<_, _> =
        ["name", "namespace"].into_iter().filter_map(|key| Some((key.to_owned(), of(key)?))).collect();
    copy["metadata"] = Value::Object(metadata);
    copy
}

/// The copy as the order wants it, with its own metadata and status; none if it is so already.
pub(crate) fn updated(copy: &Value, order: &Value) -> Option<Value> {
    let mut wanted = down(order);
    if down(copy) == wanted {
        return None;
    }
    wanted["metadata"] = copy["metadata"].clone();
    if let Some(status) = copy.get("status") {
        wanted["status"] = status.clone();
    }
    Some(wanted)
}

/// A Secret or another object, as it is written elsewhere.
pub(crate) fn moved(object: &Value, name: &str) -> Value {
    let mut moved = down(object);
    moved["metadata"]["name"] = json!(name);
    moved
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_contract() {
        assert_eq!(hash(&[]), "e3b0c44298fc1c14");
        assert_eq!(hash(&["a", "b"]), "59b271ae1bbcb1d3");
        let order = ["consumer", "example.platform-mesh.io", "v1alpha1", "vms", "default", "test-vm"];
        assert_eq!(hash(&order), "b5fc647c46f782a8");
        assert_eq!(hash(&["consumer", "provider", "example.platform-mesh.io"]), "192a34e43faaf521");
    }

    #[test]
    fn all_filters_hold_and_what_is_missing_passes() {
        let accept = json!({ "spec": { "filters": [{ "key": "fqdn", "suffix": ".corp" }, { "key": "a.b", "valueIn": ["true"] }] } });
        let order = |spec: Value| json!({ "spec": spec });
        assert!(takes(&accept, &order(json!({ "fqdn": "x.corp", "a": { "b": true } }))));
        assert!(takes(&accept, &order(json!({}))));
        assert!(!takes(&accept, &order(json!({ "fqdn": "x.com" }))));
        assert!(!takes(&accept, &order(json!({ "a": { "b": false } }))));
    }

    #[test]
    fn copies_follow_orders_and_keep_what_is_theirs() {
        let order = json!({ "kind": "K", "metadata": { "name": "n", "namespace": "d", "labels": { "a": "b" } }, "spec": { "x": 1 }, "status": 1 });
        assert_eq!(
            down(&order),
            json!({ "kind": "K", "metadata": { "name": "n", "namespace": "d" }, "spec": { "x": 1 } })
        );
        let mut copy = down(&order);
        copy["metadata"]["finalizers"] = json!(["f"]);
        copy["status"] = json!(2);
        assert_eq!(updated(&copy, &order), None);
        copy["spec"]["x"] = json!(2);
        let wanted = updated(&copy, &order).unwrap();
        assert_eq!(
            (&wanted["spec"]["x"], &wanted["metadata"]["finalizers"], &wanted["status"]),
            (&json!(1), &json!(["f"]), &json!(2))
        );
    }
}
