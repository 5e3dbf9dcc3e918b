//! What stands on copies, objects and CRDs under either contract → the patch that makes it the other one's.

use carrick_bind_api::core::names::{
    APPLIED_STATE_ANNOTATION, CONNECTION_ANNOTATION, CONSUMER_CLUSTER_UID, CONSUMER_OBJECT_UID_ANNOTATION,
    FIELD_MANAGER, MANAGED_LABEL, SCHEMA_HASH_ANNOTATION, SYNCER_FINALIZER,
};
use carrick_bind_api::core::schema;
use carrick_bind_api::kinds::{API_SERVICE_BINDING, GROUP};
use carrick_bind_api::names;
use serde_json::{Map, Value, json};

/// Annotation of a CRD (ours): the APIServiceBinding that it had, for the way back.
pub(super) const UPGRADED_FROM_ANNOTATION: &str = "core.kbind.io/upgraded-from";

/// The patch that makes a copy of 0.8 one of v2; none if it is one.
pub(super) fn taken_over(copy: &Value, source_uid: &str, cluster_uid: &str) -> Option<Value> {
    let annotations = json!({CONSUMER_CLUSTER_UID: cluster_uid, CONSUMER_OBJECT_UID_ANNOTATION: source_uid});
    let metadata = json!({"labels": {MANAGED_LABEL: "true"}, "annotations": annotations});
    // The contract's namespace owns copies without a namespace, and would take them along.
    let is_contract = |owner: &Value| owner["apiVersion"] == "v1" && owner["kind"] == "Namespace";
    patch(copy, metadata, is_contract, (names::FIELD_MANAGER, FIELD_MANAGER))
}

/// The patch that makes a copy of v2 one of 0.8; none if it is one.
pub(super) fn given_back(copy: &Value, source: &Value, contract: &str) -> Option<Value> {
    let annotations = json!({
        CONSUMER_CLUSTER_UID: null, CONSUMER_OBJECT_UID_ANNOTATION: null, APPLIED_STATE_ANNOTATION: null,
        names::CONTRACT_ANNOTATION: contract,
        names::CONSUMER_NAMESPACE_ANNOTATION: source["metadata"]["namespace"].as_str().unwrap_or_default(),
        names::CONSUMER_UID_ANNOTATION: source["metadata"]["uid"],
    });
    let metadata = json!({"labels": {MANAGED_LABEL: null}, "annotations": annotations});
    patch(copy, metadata, |_| false, (FIELD_MANAGER, names::FIELD_MANAGER))
}

/// The patch that brings these labels and annotations, without some owners, and with the content in the hands of another manager.
fn patch(
    copy: &Value,
    mut metadata: Value,
    is_gone: impl Fn(&Value) -> bool,
    (from, to): (&str, &str),
) -> Option<Value> {
    let there = &copy["metadata"];
    let same = ["labels", "annotations"].iter().all(|part| {
        let wanted = metadata[part].as_object().into_iter().flatten();
        // What is null is to go, and what is missing reads as null.
        wanted.into_iter().all(|(key, value)| there[part][key] == *value)
    });
    let owners = there["ownerReferences"].as_array().map(Vec::as_slice).unwrap_or_default();
    let kept: Vec<&Value> = owners.iter().filter(|owner| !is_gone(owner)).collect();
    let managed = there["managedFields"].as_array().map(Vec::as_slice).unwrap_or_default();
    let moved = handed_over(managed, from, to);
    if same && kept.len() == owners.len() && moved == managed {
        return None;
    }
    if kept.len() < owners.len() {
        metadata["ownerReferences"] = json!(kept);
    }
    if moved != managed {
        metadata["managedFields"] = json!(moved);
    }
    metadata["uid"] = there["uid"].clone();
    metadata["resourceVersion"] = there["resourceVersion"].clone();
    Some(json!({"metadata": metadata}))
}

/// Field managers after the content that one has written belongs to another one. Otherwise a field that is removed from the object later would stay on
/// its copy, because the first one still wants it: what it has created as much as what it has applied. Labels and annotations stay with the first; under
/// v2 they do not travel, and must not go either.
fn handed_over(managed: &[Value], from: &str, to: &str) -> Vec<Value> {
    let is_of = |entry: &Value, manager: &str| entry["manager"] == manager && entry["subresource"].is_null();
    let mut all = managed.to_vec();
    let mut new: Option<Value> = None;
    for entry in all.iter_mut().filter(|entry| is_of(entry, from)) {
        let Some(fields) = entry["fieldsV1"].as_object().cloned() else { continue };
        let (metadata, content): (Map<_, _>, Map<_, _>) =
            fields.into_iter().partition(|(field, _)| field == "f:metadata");
        if content.is_empty() {
            continue;
        }
        let new = new.get_or_insert_with(|| {
            let mut new = entry.clone();
            (new["manager"], new["operation"], new["fieldsV1"]) = (json!(to), json!("Apply"), json!({}));
            new
        });
        entry["fieldsV1"] = Value::Object(metadata);
        unite(&mut new["fieldsV1"], &Value::Object(content));
    }
    let Some(new) = new else { return all };
    match all.iter_mut().find(|entry| is_of(entry, to) && entry["operation"] == "Apply") {
        Some(there) => unite(&mut there["fieldsV1"], &new["fieldsV1"]),
        None => all.push(new),
    }
    all.retain(|entry| entry["fieldsV1"].as_object().is_none_or(|fields| !fields.is_empty()));
    all
}

fn unite(there: &mut Value, more: &Value) {
    let (Some(there), Some(more)) = (there.as_object_mut(), more.as_object()) else { return };
    for (field, value) in more {
        unite(there.entry(field.clone()).or_insert_with(|| json!({})), value);
    }
}

/// The patch that puts one finalizer into the place of another; none if that is done. An object that is being deleted takes no new ones.
pub(super) fn finalizer(object: &Value, add: &str, remove: Option<&str>) -> Option<Value> {
    let metadata = &object["metadata"];
    if metadata["deletionTimestamp"].is_string() {
        return None;
    }
    let there: Vec<&str> = metadata["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let mut wanted: Vec<&str> = there.iter().copied().filter(|it| Some(*it) != remove).collect();
    if !wanted.contains(&add) {
        wanted.push(add);
    }
    (wanted != there).then(|| finalizers(object, &wanted))
}

/// The patch that takes a finalizer off; none if it is not there.
pub(super) fn without_finalizer(object: &Value, remove: &str) -> Option<Value> {
    let all = object["metadata"]["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let there: Vec<&str> = all.collect();
    let wanted: Vec<&str> = there.iter().copied().filter(|it| *it != remove).collect();
    (wanted != there).then(|| finalizers(object, &wanted))
}

fn finalizers(object: &Value, wanted: &[&str]) -> Value {
    let metadata = &object["metadata"];
    json!({"metadata": {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"], "finalizers": wanted}})
}

/// 0.8's finalizer of objects, and v2's.
pub(super) const FINALIZERS: [&str; 2] = [names::SYNCER_FINALIZER, SYNCER_FINALIZER];

/// Whether an owner is an APIServiceBinding.
fn is_old(owner: &Value) -> bool {
    owner["apiVersion"].as_str().is_some_and(|it| it.starts_with(&format!("{GROUP}/")))
        && owner["kind"] == API_SERVICE_BINDING.kind
}

/// Whether a CRD belongs to an APIServiceBinding with this uid.
pub(super) fn is_owned(crd: &Value, uid: &str) -> bool {
    let mut owners = crd["metadata"]["ownerReferences"].as_array().into_iter().flatten();
    owners.any(|owner| owner["uid"] == uid && owner["controller"] == true)
}

/// The patch that gives a CRD of 0.8 to a Connection; none if it has it. `saved` is what has to be known for the way back.
pub(super) fn crd_to_connection(crd: &Value, connection: &str, saved: &str) -> Option<Value> {
    let metadata = &crd["metadata"];
    let all = metadata["ownerReferences"].as_array().map(Vec::as_slice).unwrap_or_default();
    let kept: Vec<&Value> = all.iter().filter(|owner| !is_old(owner)).collect();
    if kept.len() == all.len() && metadata["annotations"][CONNECTION_ANNOTATION] == connection {
        return None;
    }
    // The konnector brings what the provider offers now, if that differs.
    let hash = schema::hash(&crd["spec"]);
    Some(json!({"metadata": {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"],
        "ownerReferences": kept, "labels": {MANAGED_LABEL: "true"}, "annotations": {
            CONNECTION_ANNOTATION: connection, SCHEMA_HASH_ANNOTATION: hash, UPGRADED_FROM_ANNOTATION: saved}}}))
}

/// The patch that gives a CRD back to an APIServiceBinding; none if it has it.
pub(super) fn crd_to_binding(crd: &Value, name: &str, uid: &str) -> Option<Value> {
    let metadata = &crd["metadata"];
    if is_owned(crd, uid) {
        return None;
    }
    let all = metadata["ownerReferences"].as_array().into_iter().flatten();
    let mut owners: Vec<Value> = all.filter(|owner| !is_old(owner)).cloned().collect();
    owners
        .push(json!({"apiVersion": API_SERVICE_BINDING.api_version(), "kind": API_SERVICE_BINDING.kind, "name": name,
        "uid": uid, "controller": true}));
    Some(json!({"metadata": {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"],
        "ownerReferences": owners, "labels": {MANAGED_LABEL: null},
        "annotations": {CONNECTION_ANNOTATION: null, SCHEMA_HASH_ANNOTATION: null}}}))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copy() -> Value {
        json!({"metadata": {"uid": "p", "resourceVersion": "7",
            "ownerReferences": [{"apiVersion": "v1", "kind": "Namespace", "name": "c-1"}, {"kind": "Other"}],
            "annotations": {"kube-bind.io/cluster-namespace": "c-1", "kube-bind.io/consumer-namespace": "team", "kube-bind.io/consumer-uid": "s"},
            "managedFields": [
                {"manager": "operator", "operation": "Update", "subresource": "status", "fieldsV1": {"f:status": {}}},
                {"manager": "kube-bind.io", "operation": "Apply", "apiVersion": "g/v1", "fieldsV1": {"f:metadata": {"f:labels": {"f:app": {}}}, "f:spec": {"f:size": {}}}}]}})
    }

    fn patched(object: &Value, patch: &Value) -> Value {
        let mut new = object.clone();
        carrick_json::merge::apply(&mut new, patch);
        new
    }

    #[test]
    fn a_copy_changes_hands_and_back_and_its_labels_stay_with_whoever_brought_them() {
        let source = json!({"metadata": {"uid": "s", "namespace": "team"}});
        let patch = taken_over(&copy(), "s", "c").unwrap();
        assert_eq!((&patch["metadata"]["uid"], &patch["metadata"]["resourceVersion"]), (&json!("p"), &json!("7")));
        let new = patched(&copy(), &patch);
        assert_eq!(new["metadata"]["ownerReferences"], json!([{"kind": "Other"}]));
        assert_eq!(new["metadata"]["managedFields"][1]["fieldsV1"], json!({"f:metadata": {"f:labels": {"f:app": {}}}}));
        assert_eq!(
            new["metadata"]["managedFields"][2],
            json!({"manager": "kbind-konnector", "operation": "Apply", "apiVersion": "g/v1", "fieldsV1": {"f:spec": {"f:size": {}}}})
        );
        assert_eq!(taken_over(&new, "s", "c"), None, "once is enough");
        let mut created = copy();
        created["metadata"]["managedFields"][1]["operation"] = json!("Update");
        let created = patched(&created, &taken_over(&created, "s", "c").unwrap());
        assert_eq!(
            created["metadata"]["managedFields"][2], new["metadata"]["managedFields"][2],
            "or it would keep fields"
        );
        let mut grown = new.clone();
        grown["metadata"]["managedFields"][2]["fieldsV1"] =
            json!({"f:metadata": {"f:annotations": {}}, "f:spec": {"f:colour": {}}});
        let back = patched(&grown, &given_back(&grown, &source, "c-1").unwrap());
        assert_eq!(
            back["metadata"]["managedFields"][1]["fieldsV1"],
            json!({"f:metadata": {"f:labels": {"f:app": {}}}, "f:spec": {"f:colour": {}}})
        );
        assert_eq!(back["metadata"]["annotations"], copy()["metadata"]["annotations"]);
        assert_eq!(given_back(&back, &source, "c-1"), None);
    }

    #[test]
    fn a_finalizer_takes_the_place_of_another_and_never_comes_to_what_is_being_deleted() {
        let object =
            |finalizers: Value| json!({"metadata": {"uid": "u", "resourceVersion": "1", "finalizers": finalizers}});
        let after = |object: &Value, patch: Option<Value>| {
            patch.map(|it| patched(object, &it)["metadata"]["finalizers"].clone())
        };
        let old = object(json!(["x", "old"]));
        assert_eq!(after(&old, finalizer(&old, "new", Some("old"))), Some(json!(["x", "new"])));
        assert_eq!(after(&old, finalizer(&old, "new", None)), Some(json!(["x", "old", "new"])));
        assert_eq!(finalizer(&object(json!(["new"])), "new", Some("old")), None);
        let mut going = old.clone();
        going["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        assert_eq!(finalizer(&going, "new", Some("old")), None);
        assert_eq!(after(&going, without_finalizer(&going, "old")), Some(json!(["x"])));
        assert_eq!(without_finalizer(&object(json!(["x"])), "old"), None);
    }

    #[test]
    fn a_crd_changes_hands_and_back() {
        let owner = json!({"apiVersion": "kube-bind.io/v1alpha2", "kind": "APIServiceBinding", "name": "law", "uid": "b", "controller": true});
        let old = json!({"metadata": {"name": "a.x", "uid": "u", "ownerReferences": [owner]}, "spec": {"group": "x"}});
        assert_eq!(schema::owner(&old), schema::CrdOwner::Contract("law".to_owned()));
        let new = patched(&old, &crd_to_connection(&old, "west", "{}").unwrap());
        assert!(matches!(schema::owner(&new), schema::CrdOwner::Connection { name, .. } if name == "west"));
        assert_eq!(crd_to_connection(&new, "west", "{}"), None);
        assert!(!is_owned(&new, "b"));
        let back = patched(&new, &crd_to_binding(&new, "law", "b2").unwrap());
        assert_eq!(schema::owner(&back), schema::CrdOwner::Contract("law".to_owned()));
        assert!(is_owned(&back, "b2") && crd_to_binding(&back, "law", "b2").is_none());
        assert_eq!(
            back["metadata"]["annotations"],
            json!({UPGRADED_FROM_ANNOTATION: "{}"}),
            "until the way back is done"
        );
    }
}
