use jiff::Timestamp;
use serde_json::{Value, json};

use super::conditions::{AS_EXPECTED, Finding, PENDING, READY};
use super::lease::LeasePlace;
use super::schema::{CrdOwner, PullError};
use super::*;
use crate::kinds::is_namespaced;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn crd() -> Value {
    let version = |name: &str, served: bool, storage: bool| json!({"name": name, "served": served, "storage": storage, "schema": {"openAPIV3Schema": {"type": "object"}}});
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.io", "uid": "u", "resourceVersion": "7", "finalizers": ["f"],
            "labels": {"core.kbind.io/exported": "true", "team": "a"}, "annotations": {"about": "widgets"}},
        "spec": {"group": "example.io", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
            "conversion": {"strategy": "None"},
            "versions": [version("v1alpha1", true, false), version("v1", true, true), version("v2", false, false)]},
        "status": {"conditions": []}})
}

#[test]
fn objects_are_read_and_written_without_loss() {
    let connection = json!({"apiVersion": "core.kbind.io/v1alpha1", "kind": "Connection", "metadata": {"name": "a"},
        "spec": {"kubeconfigSecretRef": {"namespace": "kbind", "name": "a"}, "autoBind": false, "new": 1,
            "schema": {"source": "Auto", "pullPolicy": "Someday", "updatePolicy": "Once"}},
        "status": {"remoteClusterUID": "r", "exportedAPIs": [{"name": "a.b", "more": true}], "new": []}});
    let read: Connection = serde_json::from_value(connection.clone()).unwrap();
    assert_eq!((read.secret().key.as_str(), &read.spec.schema.update_policy), ("kubeconfig", &UpdatePolicy::Once));
    assert!(read.exports("a.b") && !read.exports("c.b"));
    assert_eq!(serde_json::to_value(&read).unwrap(), connection);
    let binding = json!({"apiVersion": "core.kbind.io/v1alpha1", "kind": "Binding", "metadata": {"name": "a", "namespace": "n"},
        "spec": {"connectionRef": {"name": "a"}, "apis": [{"name": "a.b"}], "relatedResources": [{"group": "",
            "resource": "secrets", "direction": "FromProvider", "selector": {"names": ["x"], "labelSelector": {}}}]},
        "status": {"boundAPIs": [{"name": "a.b", "crdHash": "h", "conflictCount": 0}]}});
    let read: Binding = serde_json::from_value(binding.clone()).unwrap();
    assert_eq!(read.spec.related_resources[0].direction, Direction::FromProvider);
    assert!(read.spec.related_resources[0].selector.label_selector.is_some());
    assert_eq!(serde_json::to_value(&read).unwrap(), binding);
}

#[test]
fn there_is_a_crd_for_every_kind_with_upstreams_columns_and_category() {
    let all = crds::all();
    assert_eq!(all.len(), ALL.len());
    let columns: [&[&str]; 3] =
        [&["Ready", "Secret", "Age"], &["Connection", "Ready", "Age"], &["Connection", "Ready", "Age"]];
    for ((crd, kind), columns) in all.iter().zip(ALL).zip(columns) {
        assert_eq!(crd["metadata"]["name"], format!("{}.core.kbind.io", kind.plural));
        assert_eq!(crd["spec"]["scope"] == "Namespaced", is_namespaced(kind));
        assert_eq!(crd["spec"]["names"]["categories"], json!(["kbind"]));
        let version = &crd["spec"]["versions"][0];
        assert_eq!((&version["name"], &version["subresources"]), (&json!("v1alpha1"), &json!({"status": {}})));
        assert_eq!(version["schema"]["openAPIV3Schema"]["required"], json!(["spec"]));
        let shown = version["additionalPrinterColumns"].as_array().unwrap().iter();
        let shown: Vec<&str> = shown.map(|column| column["name"].as_str().unwrap()).collect();
        assert_eq!(shown, columns);
    }
}

#[test]
fn defaults_and_rules_are_upstreams() {
    let all = crds::all();
    let schema = |kind: usize, path: &str| {
        let root = &all[kind]["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        let pointer = format!("/properties/{}", path.replace('.', "/properties/"));
        root.pointer(&pointer).unwrap_or_else(|| panic!("no {path}")).clone()
    };
    for (kind, path, default) in [
        (0, "spec.kubeconfigSecretRef.key", json!("kubeconfig")),
        (0, "spec.schema", json!({})),
        (0, "spec.schema.source", json!("Auto")),
        (0, "spec.schema.pullPolicy", json!("Bound")),
        (0, "spec.schema.updatePolicy", json!("Always")),
        (0, "spec.autoBind", json!(false)),
        (1, "spec.conflictPolicy", json!("Fail")),
        (2, "spec.conflictPolicy", json!("Fail")),
    ] {
        assert_eq!(schema(kind, path)["default"], default, "{path}");
    }
    for (path, rule, message) in [
        ("spec.kubeconfigSecretRef", "self == oldSelf", "kubeconfigSecretRef is immutable"),
        ("status.remoteClusterUID", "oldSelf == '' || self == oldSelf", "remoteClusterUID is immutable once set"),
        ("status.localClusterUID", "oldSelf == '' || self == oldSelf", "localClusterUID is immutable once set"),
    ] {
        assert_eq!(schema(0, path)["x-kubernetes-validations"], json!([{"rule": rule, "message": message}]), "{path}");
    }
    assert_eq!(schema(1, "spec.apis")["minItems"], 1);
    let entry = &schema(2, "spec.relatedResources")["items"];
    assert_eq!(entry["required"], json!(["group", "resource", "direction"]));
}

#[test]
fn a_pulled_crd_has_one_version_and_our_marks_and_nothing_of_the_providers_server() {
    let pulled = schema::pull(&crd(), "west").unwrap();
    let metadata = &pulled.crd["metadata"];
    assert_eq!(metadata["labels"], json!({"core.kbind.io/managed": "true", "team": "a"}));
    let annotations = json!({"about": "widgets", "core.kbind.io/connection": "west",
        "core.kbind.io/schema-hash": pulled.hash});
    assert_eq!(metadata["annotations"], annotations);
    assert_eq!(metadata.as_object().unwrap().len(), 3, "{metadata}");
    let versions = pulled.crd["spec"]["versions"].as_array().unwrap();
    assert_eq!((versions.len(), &versions[0]["name"]), (1, &json!("v1")));
    assert!(pulled.hash.starts_with("sha256:") && pulled.hash.len() == 7 + 16, "{}", pulled.hash);
    assert_eq!(schema::pull(&crd(), "east").unwrap().hash, pulled.hash, "it is about the content");
    let mut changed = crd();
    changed["spec"]["names"]["shortNames"] = json!(["w"]);
    assert_ne!(schema::pull(&changed, "west").unwrap().hash, pulled.hash);
}

#[test]
fn what_is_pulled_is_stored_or_else_served_first() {
    let pulled = |change: fn(&mut Value)| {
        let mut crd = crd();
        change(&mut crd);
        let pulled = schema::pull(&crd, "west")?;
        Ok(pulled.crd["spec"]["versions"][0]["name"].as_str().unwrap().to_owned())
    };
    assert_eq!(pulled(|_| {}).as_deref(), Ok("v1"));
    assert_eq!(pulled(|crd| crd["spec"]["versions"][1]["served"] = json!(false)).as_deref(), Ok("v1alpha1"));
    let name = || "widgets.example.io".to_owned();
    assert_eq!(pulled(|crd| crd["spec"]["versions"] = json!([])), Err(PullError::NothingServed(name())));
    let webhook = |crd: &mut Value| crd["spec"]["conversion"] = json!({"strategy": "Webhook"});
    assert_eq!(pulled(webhook), Err(PullError::Webhook(name())));
}

#[test]
fn only_a_crd_with_all_three_marks_is_a_connections() {
    let ours = schema::pull(&crd(), "west").unwrap();
    let west = CrdOwner::Connection { name: "west".to_owned(), hash: ours.hash.clone() };
    assert_eq!(schema::owner(&ours.crd), west);
    for mark in ["/metadata/labels", "/metadata/annotations"] {
        let mut other = ours.crd.clone();
        *other.pointer_mut(mark).unwrap() = json!({});
        assert_eq!(schema::owner(&other), CrdOwner::Other, "without {mark}");
    }
    let mut old = crd();
    old["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "kube-bind.io/v1alpha2", "kind": "APIServiceBinding", "name": "b"}]);
    assert_eq!(schema::owner(&old), CrdOwner::Contract("b".to_owned()));
    old["metadata"]["ownerReferences"][0]["apiVersion"] = json!("notkube-bind.io/v1");
    assert_eq!(schema::owner(&old), CrdOwner::Other);
}

#[test]
fn a_crd_of_somebody_else_serves_only_with_the_same_version_and_schema() {
    let pulled = schema::pull(&crd(), "west").unwrap().crd;
    assert!(schema::serves(&crd(), &pulled));
    let changes: [fn(&mut Value); 4] = [
        |crd| crd["spec"]["scope"] = json!("Cluster"),
        |crd| crd["spec"]["versions"][1]["schema"] = json!({"openAPIV3Schema": {"type": "object", "properties": {}}}),
        |crd| crd["spec"]["versions"][1]["served"] = json!(false),
        |crd| crd["spec"]["names"]["kind"] = json!("Gadget"),
    ];
    for change in changes {
        let mut other = crd();
        change(&mut other);
        assert!(!schema::serves(&other, &pulled), "{other}");
    }
}

#[test]
fn exports_name_what_is_served() {
    let api = schema::exported(&crd()).unwrap();
    assert_eq!((api.name.as_str(), api.scope.as_str()), ("widgets.example.io", "Namespaced"));
    assert_eq!(api.versions, ["v1alpha1", "v1"]);
    let mut unserved = crd();
    unserved["spec"]["versions"] = json!([{"name": "v1", "served": false, "storage": true}]);
    assert!(schema::exported(&unserved).is_none());
}

#[test]
fn a_lease_has_the_spelling_of_rc4_only_for_the_first_connection_without_a_namespace() {
    let uid = "0123456789-abcdef";
    let place = |namespace: Option<&str>, first| lease::place(namespace, "west", uid, first);
    let old = LeasePlace { namespace: "kbind".to_owned(), name: "consumer-0123456789-abcdef".to_owned() };
    let new = |namespace: &str| LeasePlace { namespace: namespace.to_owned(), name: "west-0123456789".to_owned() };
    assert_eq!(place(None, true), old);
    assert_eq!(place(None, false), new("kbind"));
    assert_eq!(place(Some("boundary"), true), new("boundary"));
    assert_eq!(lease::place(None, "west", "short", false).name, "west-short");
}

#[test]
fn a_lease_is_acquired_once_renewed_always_and_keeps_what_others_wrote() {
    let place = lease::place(None, "west", "uid", true);
    let first = lease::renewed(None, &place, "west", "uid", at(0));
    assert_eq!(first["spec"]["acquireTime"], first["spec"]["renewTime"]);
    assert_eq!((&first["spec"]["holderIdentity"], &first["spec"]["leaseDurationSeconds"]), (&json!("uid"), &json!(60)));
    let annotations = json!({"core.kbind.io/consumer-cluster-uid": "uid", "core.kbind.io/connection": "west"});
    assert_eq!(first["metadata"]["annotations"], annotations);
    let mut there = first.clone();
    there["metadata"]["resourceVersion"] = json!("7");
    there["metadata"]["annotations"]["theirs"] = json!("1");
    let second = lease::renewed(Some(&there), &place, "west", "uid", at(30));
    assert_eq!(second["spec"]["acquireTime"], first["spec"]["acquireTime"]);
    assert_eq!(second["spec"]["renewTime"], "1970-01-01T00:00:30.000000Z");
    assert_eq!(
        (&second["metadata"]["annotations"]["theirs"], &second["metadata"]["resourceVersion"]),
        (&json!("1"), &json!("7"))
    );
}

#[test]
fn conditions_keep_their_time_with_their_status_and_name_their_generation() {
    let mut all = Vec::new();
    conditions::set(&mut all, &Finding::no(READY, PENDING, "one"), Some(1), at(1));
    conditions::set(&mut all, &Finding::no(READY, PENDING, "two"), Some(2), at(2));
    let shown = json!([{"type": "Ready", "status": "False", "reason": "Pending", "message": "two",
        "observedGeneration": 2, "lastTransitionTime": "1970-01-01T00:00:01Z"}]);
    assert_eq!(serde_json::to_value(&all).unwrap(), shown);
    conditions::set(&mut all, &Finding::yes(READY, AS_EXPECTED, ""), Some(2), at(3));
    assert_eq!(all[0].last_transition_time, "1970-01-01T00:00:03Z");
    assert_eq!(serde_json::to_value(&all).unwrap()[0]["message"], "");
}
