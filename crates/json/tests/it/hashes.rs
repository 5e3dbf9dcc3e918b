//! Hashes that a Go program computes over encoded objects.

use carrick_json::go;
use data_encoding::HEXLOWER;
use serde::Serialize;
use serde_json::{Value, json, value::RawValue};
use sha1::{Digest, Sha1};

fn hash<T: Serialize + ?Sized>(value: &T) -> String {
    HEXLOWER.encode(&Sha1::digest(go::to_line(value).expect("encodes")))
}

#[test]
fn sorted_maps_hash_as_in_go() {
    let key: Value =
        json!({"kind": "CronTab", "name": "my-crontab", "namespace": "default", "apiVersion": "kcp.example.com/v1"});
    assert_eq!(&hash(&key)[..20], "3d62e88a9631d524a143");
}

#[test]
fn structs_hash_in_the_order_of_their_fields() {
    #[derive(Serialize)]
    #[serde(rename_all = "PascalCase")]
    struct Key {
        cluster_name: &'static str,
        workspace_path: &'static str,
        namespace: &'static str,
        name: &'static str,
    }
    let key = Key { cluster_name: "testcluster", workspace_path: "", namespace: "default", name: "my-crontab" };
    assert_eq!(hash(&key), "ba6b92e7ed17509603b449355d5d4cbce3e526c0");
}

#[test]
fn raw_specs_hash_without_their_whitespace() {
    let spec = r#"{
        "group": "example.com",
        "names": {"plural": "crontabs", "singular": "crontab", "shortNames": ["ct"], "kind": "CronTab", "listKind": "CronTabList"},
        "scope": "Namespaced",
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object",
            "properties": {"spec": {"type": "object", "properties": {
                "cronSpec": {"type": "string"}, "image": {"type": "string"}, "replicas": {"type": "integer"}}}}}}}]
    }"#;
    let spec = RawValue::from_string(spec.to_owned()).unwrap();
    assert_eq!(&hash(&spec)[..8], "0595d221");
}
