//! Objects in both encodings: recorded from Kubernetes' Go libraries, generated from the table, and damaged.

use std::collections::BTreeSet;

use data_encoding::HEXLOWER;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::*;

const LEVELS: usize = 100;

fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let mut bytes = vec![number << 3 | 2, u8::try_from(content.len()).unwrap()];
    bytes.extend(content);
    bytes
}

fn wrapped(kind: &str, raw: &[u8]) -> Vec<u8> {
    let types = [field(1, b"v1"), field(2, kind.as_bytes())].concat();
    [MAGIC.to_vec(), field(1, &types), field(2, raw)].concat()
}

fn decoded(content: &[u8]) -> Result<Value, ReadError> {
    decode_as(content, ("v1", "ConfigMap"), LEVELS)
}

#[test]
fn a_secret_becomes_json() {
    let time = [8, 0x80, 0xd8, 0xcf, 0xb9, 0x6];
    let label = [field(1, b"a"), field(2, b"b")].concat();
    let meta = [field(1, b"s"), field(3, b""), field(8, &time), field(11, &label), field(14, b"x/y")].concat();
    let entry = [field(1, b"key"), field(2, &[0xff, 0])].concat();
    let raw = [field(1, &meta), field(2, &entry), field(3, b"Opaque"), field(9, b"unknown")].concat();
    let content = wrapped("Secret", &raw);
    assert_eq!(
        decoded(&content).unwrap(),
        json!({
            "apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": {"key": "/wA="},
            "metadata": {
                "name": "s", "labels": {"a": "b"}, "finalizers": ["x/y"], "creationTimestamp": "2024-11-13T00:00:00Z",
            },
        })
    );
    assert_eq!(name(&content), "s");
}

#[test]
fn what_cannot_be_read_is_refused() {
    let valid = wrapped("ConfigMap", &field(1, &field(1, b"name")));
    for end in 0..valid.len() {
        // A truncated body is refused or lacks its end, but never does harm.
        let _ = decoded(&valid[..end]);
        let _ = name(&valid[..end]);
    }
    assert_eq!(decoded(b""), Err(ReadError::Empty));
    assert_eq!(decoded(b"{}"), Err(ReadError::Prefix));
    assert_eq!(decoded(b"k8s\0"), Err(ReadError::Envelope));
    assert_eq!(decoded(b"k8s\0\x0a"), Err(ReadError::Damaged(WireError::End)));
    assert!(matches!(decoded(&wrapped("Nonsense", b"")), Err(ReadError::Unknown { .. })));
    assert!(matches!(
        decoded(&wrapped("ConfigMap", b"\x0a\x09x")),
        Err(ReadError::Object { error: WireError::End, .. })
    ));
}

#[test]
fn schemas_may_nest_as_deep_as_the_stack_allows() {
    let mut schema = json!({"type": "string"});
    for _ in 0..60 {
        schema = json!({"type": "object", "properties": {"a": schema}});
    }
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "a.b"},
        "spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": schema}}]},
    });
    let content = encode(&crd).unwrap();
    let back = decoded(&content).unwrap();
    assert_eq!(back["spec"]["versions"][0]["schema"], crd["spec"]["versions"][0]["schema"]);
    let refused = decode_as(&content, ("", ""), 30).unwrap_err();
    assert!(matches!(refused, ReadError::Object { error: WireError::Depth, .. }), "{refused:?}");
}

/// Recorded with `e2e/protobuf vectors`: random objects of every kind, in which every field is set at least once. Of the bytes that Go's
/// libraries made of them, only a checksum is kept.
#[test]
fn both_encodings_are_those_of_go() {
    let mut wrong = Vec::new();
    let mut kinds = BTreeSet::new();
    for line in include_str!("vectors.jsonl").lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let object = &case["json"];
        let what = (object["apiVersion"].to_string(), object["kind"].to_string());
        let content = encode(object).unwrap();
        // Equal bytes prove every number, form and order.
        if HEXLOWER.encode(&Sha256::digest(&content)[..8]) != case["sha256"].as_str().unwrap() {
            wrong.push(format!("to protobuf: {object}"));
        }
        let back = decoded(&content).unwrap();
        if back != *object {
            wrong.push(format!("from protobuf:\n  got  {back}\n  want {object}"));
        }
        kinds.insert(what);
    }
    assert!(wrong.is_empty(), "{} wrong, the first:\n{}", wrong.len(), wrong[0]);
    let known = table::kinds();
    assert!(kinds.len() >= known.len() && known.len() > 100, "{} of {}", kinds.len(), known.len());
}

#[test]
fn events_follow_each_other_in_a_stream() {
    let map = |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
    let whole = [encode_event("ADDED", &map("a")).unwrap(), encode_event("DELETED", &map("b")).unwrap()].concat();
    let mut stream = Vec::new();
    let mut seen = Vec::new();
    for byte in whole {
        stream.push(byte);
        seen.extend(take_event(&mut stream).unwrap());
    }
    assert_eq!(seen, [("ADDED".to_owned(), map("a")), ("DELETED".to_owned(), map("b"))]);
    assert!(stream.is_empty());
}

#[test]
fn lists_are_encoded_item_by_item_as_they_are_whole() {
    let items = vec![json!({"metadata": {"name": "a"}, "data": {"k": "v"}}), json!({"metadata": {"name": "b"}})];
    let metadata = json!({"resourceVersion": "7", "remainingItemCount": 3});
    let list = json!({"apiVersion": "v1", "kind": "ConfigMapList", "metadata": metadata, "items": items});
    let streamed = encode_list("v1", "ConfigMapList", &metadata, items.into_iter()).unwrap();
    assert_eq!(Some(&streamed), encode(&list).as_ref());
    assert_eq!(decode(&streamed).unwrap(), list);
}
