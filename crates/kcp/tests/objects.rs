//! Real-looking objects of every kind and version: what is read from them, and that nothing is lost.

#![allow(clippy::unwrap_used, reason = "helpers of tests may panic")]

use carrick_kcp::apis::{BindingPhase, v1alpha1, v1alpha2};
use carrick_kcp::condition;
use carrick_kcp::core::v1alpha1::{LogicalCluster, LogicalClusterPhase, Shard};
use carrick_kcp::kinds::KcpObject;
use carrick_kcp::tenancy::v1alpha1::{Workspace, WorkspaceType};
use carrick_kcp::topology::v1alpha1::Partition;
use proptest::prelude::*;
use serde_json::{Value, json};

fn conditions() -> Value {
    json!([
        {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"},
        {"type": "APIExportValid", "status": "False", "severity": "Error", "reason": "APIExportNotFound",
            "message": "APIExport root:prov|example.io not found", "lastTransitionTime": "2026-01-01T00:00:00Z"},
    ])
}

fn metadata(name: &str) -> Value {
    json!({
        "name": name, "uid": "1b4e28ba", "resourceVersion": "42", "generation": 3,
        "creationTimestamp": "2026-01-01T00:00:00Z", "deletionTimestamp": "2026-01-02T00:00:00Z",
        "labels": {"internal.apis.kcp.io/export": "hash"},
        "annotations": {"kcp.io/cluster": "33nozhdlp9e3vo7p", "kcp.io/path": "root:org1"},
        "finalizers": ["apis.kcp.io/apibinding-finalizer"],
        "ownerReferences": [{"apiVersion": "apis.kcp.io/v1alpha1", "kind": "APIExport", "name": "e", "uid": "7", "controller": true}],
        "managedFields": [{"manager": "kcp", "operation": "Update", "fieldsV1": {"f:spec": {}}}],
    })
}

fn export_v1() -> Value {
    json!({"apiVersion": "apis.kcp.io/v1alpha1", "kind": "APIExport", "metadata": metadata("example.io"), "spec": {
        "latestResourceSchemas": ["v1.widgets.example.io"],
        "permissionClaims": [
            {"resource": "secrets", "all": true},
            {"group": "x.io", "resource": "backups", "identityHash": "abc",
                "resourceSelector": [{"name": "one", "namespace": "a"}]}],
        "identity": {"secretRef": {"namespace": "kcp-system", "name": "example.io"}},
        "maximalPermissionPolicy": {"local": {}}},
        "status": {"identityHash": "def", "conditions": conditions(), "virtualWorkspaces": [{"url": "https://h/x"}]}})
}

fn export_v2() -> Value {
    json!({"apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIExport", "metadata": metadata("example.io"), "spec": {
        "resources": [
            {"name": "widgets", "group": "", "schema": "v1.widgets.core", "storage": {"crd": {}}},
            {"name": "things", "group": "g.io", "schema": "v1.things.g.io",
                "storage": {"virtual": {"reference": {"apiGroup": "c.io", "kind": "Slice", "name": "s"}, "identityHash": "h"}}}],
        "permissionClaims": [{"group": "", "resource": "secrets", "identityHash": "", "verbs": ["get", "list"],
            "defaultSelector": {"matchLabels": {"a": "b"}}}],
        "identity": {"secretRef": {"namespace": "kcp-system", "name": "example.io"}}},
        "status": {"identityHash": "def", "conditions": conditions()}})
}

fn binding(version: &str, claims: [Value; 3]) -> Value {
    let [decided, exported, applied] = claims;
    json!({"apiVersion": format!("apis.kcp.io/{version}"), "kind": "APIBinding", "metadata": metadata("b"),
        "spec": {"reference": {"export": {"path": "root:prov", "name": "example.io"}}, "permissionClaims": [decided]},
        "status": {"apiExportClusterName": "abc", "phase": "Bound", "conditions": conditions(),
            "boundResources": [{"group": "example.io", "resource": "widgets", "storageVersions": ["v1"],
                "schema": {"name": "v1.widgets.example.io", "UID": "u", "identityHash": "def"}}],
            "exportPermissionClaims": [exported], "appliedPermissionClaims": [applied]}})
}

fn binding_v1() -> Value {
    let claim = json!({"resource": "secrets", "all": true});
    let mut decided = claim.clone();
    decided["state"] = json!("Accepted");
    binding("v1alpha1", [decided, claim.clone(), claim])
}

fn binding_v2() -> Value {
    let claim = json!({"group": "", "resource": "secrets", "identityHash": "", "verbs": ["*"]});
    let mut applied = claim.clone();
    applied["selector"] = json!({"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]});
    let mut decided = applied.clone();
    decided["state"] = json!("Rejected");
    binding("v1alpha2", [decided, claim, applied])
}

fn schema() -> Value {
    json!({"apiVersion": "apis.kcp.io/v1alpha1", "kind": "APIResourceSchema", "metadata": metadata("v1.widgets.example.io"),
        "spec": {"group": "example.io", "scope": "Namespaced", "nameValidation": "DNS1123Subdomain",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList",
                "shortNames": ["w"], "categories": ["all"]},
            "conversion": {"strategy": "None"},
            "versions": [
                {"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                    "schema": {"type": "object", "properties": {"spec": {"type": "object", "default": {}}}},
                    "additionalPrinterColumns": [{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}]},
                {"name": "v0", "served": false, "storage": false, "deprecated": true, "deprecationWarning": "old",
                    "schema": {"type": "object"}}]}})
}

fn slice() -> Value {
    json!({"apiVersion": "apis.kcp.io/v1alpha1", "kind": "APIExportEndpointSlice", "metadata": metadata("example.io"),
        "spec": {"export": {"path": "root:prov", "name": "example.io"}, "partition": "eu"},
        "status": {"endpoints": [{"url": "https://a/services/apiexport/c/e"}, {"url": "https://b/services/apiexport/c/e"}],
            "shardSelector": "region=eu", "conditions": conditions()}})
}

fn cluster() -> Value {
    json!({"apiVersion": "core.kcp.io/v1alpha1", "kind": "LogicalCluster", "metadata": metadata("cluster"),
        "spec": {"createdBy": {"groups": ["system:kcp:admin"], "uid": "1", "username": "kcp-admin", "extra": {"a": ["b"]}},
            "directlyDeletable": false, "initializers": ["root:universal", "system:apibindings"], "terminators": ["x:y"],
            "owner": {"apiVersion": "tenancy.kcp.io/v1alpha1", "cluster": "root", "name": "org1", "resource": "workspaces",
                "uid": "2"}},
        "status": {"URL": "https://h/clusters/33", "phase": "Initializing", "initializers": ["root:universal"],
            "terminators": ["x:y"], "conditions": conditions()}})
}

fn workspace() -> Value {
    json!({"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "metadata": metadata("org1"),
        "spec": {"type": {"name": "organization", "path": "root"}, "cluster": "33", "URL": "https://h/clusters/root:org1",
            "location": {"selector": {"matchLabels": {"name": "root"}}},
            "mount": {"ref": {"apiVersion": "m.io/v1", "kind": "Mount", "name": "m", "namespace": "n"}}},
        "status": {"phase": "Ready", "initializers": ["a:b"], "terminators": ["c:d"], "conditions": conditions()}})
}

fn workspace_type() -> Value {
    let reference = json!({"name": "universal", "path": "root"});
    json!({"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "WorkspaceType", "metadata": metadata("organization"),
        "spec": {"initializer": true, "terminator": false, "extend": {"with": [reference]},
            "additionalWorkspaceLabels": {"a": "b"}, "defaultChildWorkspaceType": reference,
            "limitAllowedChildren": {"types": [reference]}, "limitAllowedParents": {"none": true},
            "defaultAPIBindings": [{"path": "root", "export": "tenancy.kcp.io"}], "defaultAPIBindingLifecycle": "Maintain",
            "authenticationConfigurations": [{"name": "x"}],
            "initializerPermissions": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["*"]}]},
        "status": {"virtualWorkspaces": [{"type": "initializing", "url": "https://h/services/initializingworkspaces/root:x"}],
            "conditions": conditions()}})
}

fn shard() -> Value {
    json!({"apiVersion": "core.kcp.io/v1alpha1", "kind": "Shard", "metadata": metadata("root"),
        "spec": {"baseURL": "https://h", "externalURL": "https://e", "virtualWorkspaceURL": "https://v"},
        "status": {"conditions": conditions()}})
}

fn partition() -> Value {
    json!({"apiVersion": "topology.kcp.io/v1alpha1", "kind": "Partition", "metadata": metadata("eu"),
        "spec": {"selector": {"matchLabels": {"region": "eu"},
            "matchExpressions": [{"key": "tier", "operator": "Exists"}]}}})
}

fn read<K: KcpObject>(object: Value) -> K {
    serde_json::from_value(object).unwrap()
}

/// Reads and writes an object; nothing if it cannot be read.
fn again<K: KcpObject>(object: &Value) -> Option<Value> {
    let read: K = serde_json::from_value(object.clone()).ok()?;
    Some(serde_json::to_value(read).unwrap())
}

type Again = fn(&Value) -> Option<Value>;

fn samples() -> Vec<(Again, Value)> {
    vec![
        (again::<v1alpha1::ApiExport>, export_v1()),
        (again::<v1alpha2::ApiExport>, export_v2()),
        (again::<v1alpha1::ApiBinding>, binding_v1()),
        (again::<v1alpha2::ApiBinding>, binding_v2()),
        (again::<v1alpha1::ApiResourceSchema>, schema()),
        (again::<v1alpha1::ApiExportEndpointSlice>, slice()),
        (again::<LogicalCluster>, cluster()),
        (again::<Workspace>, workspace()),
        (again::<WorkspaceType>, workspace_type()),
        (again::<Shard>, shard()),
        (again::<Partition>, partition()),
    ]
}

#[test]
fn every_kind_is_written_as_it_was_read() {
    for (again, sample) in samples() {
        assert_eq!(again(&sample).as_ref(), Some(&sample));
    }
    // Of the other version as well: a watch may deliver what nobody expects.
    assert_eq!(again::<v1alpha1::ApiExport>(&export_v2()), Some(export_v2()));
    assert_eq!(again::<v1alpha1::ApiBinding>(&binding_v2()), Some(binding_v2()));
    assert_eq!(again::<v1alpha2::ApiBinding>(&binding_v1()), Some(binding_v1()));
}

#[test]
fn what_objects_say_is_found_in_their_fields() {
    let export: v1alpha1::ApiExport = read(export_v1());
    assert_eq!(export.spec.latest_resource_schemas, ["v1.widgets.example.io"]);
    assert_eq!(export.spec.permission_claims[1].key().identity_hash, "abc");
    assert_eq!((export.metadata.cluster(), export.metadata.path()), (Some("33nozhdlp9e3vo7p"), Some("root:org1")));
    assert!(export.metadata.is_deleting() && export.spec.maximal_permission_policy.is_some());

    let export: v1alpha2::ApiExport = read(export_v2());
    assert!(export.spec.resources[0].storage.crd.is_some() && export.spec.resources[1].storage.virtual_.is_some());
    assert!(export.spec.permission_claims[0].allows("list") && !export.spec.permission_claims[0].allows("delete"));

    let binding: v1alpha1::ApiBinding = read(binding_v1());
    assert!(binding.is_ready() && binding.spec.permission_claims[0].is_accepted());
    assert_eq!(binding.status.phase, BindingPhase::Bound);
    assert_eq!(condition::find(&binding.status.conditions, "APIExportValid").unwrap().reason, "APIExportNotFound");

    let binding: v1alpha2::ApiBinding = read(binding_v2());
    assert_eq!(binding.status.applied_permission_claims[0].selector.match_expressions[0].values, ["b"]);
    assert_eq!(binding.status.bound_resources[0].schema.uid, "u");

    let schema: v1alpha1::ApiResourceSchema = read(schema());
    assert_eq!(schema.spec.versions.iter().filter(|version| version.storage).count(), 1);
    let slice: v1alpha1::ApiExportEndpointSlice = read(slice());
    assert_eq!(slice.urls().count(), 2);
    let cluster: LogicalCluster = read(cluster());
    assert_eq!(cluster.status.phase, LogicalClusterPhase::Initializing);
    assert_eq!(cluster.spec.owner.unwrap().name, "org1");
    let workspace: Workspace = read(workspace());
    assert!(workspace.is_ready() && workspace.spec.mount.is_some());
    let kind: WorkspaceType = read(workspace_type());
    assert_eq!(kind.spec.default_api_bindings[0].export, "tenancy.kcp.io");
    let shard: Shard = read(shard());
    assert_eq!(shard.spec.virtual_workspace_url, "https://v");
    let partition: Partition = read(partition());
    assert_eq!(partition.spec.selector.unwrap().match_labels["region"], "eu");
}

#[test]
fn new_objects_have_what_their_api_requires_and_nothing_else() {
    let export = v1alpha2::ResourceSchema::of("v1.widgets.core");
    assert_eq!(
        serde_json::to_value(export).unwrap(),
        json!({"name": "widgets", "group": "", "schema": "v1.widgets.core", "storage": {"crd": {}}})
    );
    let workspace = Workspace::new("team");
    assert_eq!(
        serde_json::to_value(workspace).unwrap(),
        json!({"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "metadata": {"name": "team"}})
    );
    let version = v1alpha1::ApiResourceVersion::default();
    assert_eq!(serde_json::to_value(version).unwrap(), json!({"served": false, "storage": false}));
    let claim = v1alpha2::PermissionClaim::new("", "secrets", &["get"]);
    assert_eq!(
        serde_json::to_value(v1alpha2::AcceptablePermissionClaim::accept(&claim)).unwrap(),
        json!({"group": "", "resource": "secrets", "identityHash": "", "verbs": ["get"], "selector": {"matchAll": true},
            "state": "Accepted"})
    );
}

/// The same object with fields left out, emptied, set to null and added at every level, as the numbers say.
fn change(value: &Value, numbers: &mut impl Iterator<Item = u8>) -> Value {
    match value {
        Value::Object(fields) => {
            let mut changed = serde_json::Map::new();
            for (key, value) in fields {
                let next = match numbers.next().unwrap_or(9) % 10 {
                    0 => continue,
                    1 => Value::Null,
                    2 => empty(value),
                    _ => change(value, numbers),
                };
                changed.insert(key.clone(), next);
            }
            match numbers.next().unwrap_or(9) % 6 {
                0 => drop(changed.insert("fromTheFuture".to_owned(), json!({"a": [], "b": null}))),
                1 => drop(changed.insert("fromTheFuture".to_owned(), json!("text"))),
                _ => {}
            }
            Value::Object(changed)
        }
        Value::Array(items) => items.iter().map(|item| change(item, numbers)).collect(),
        other => other.clone(),
    }
}

fn empty(value: &Value) -> Value {
    match value {
        Value::Null => Value::Null,
        Value::Bool(_) => json!(false),
        Value::Number(_) => json!(0),
        Value::String(_) => json!(""),
        Value::Array(_) => json!([]),
        Value::Object(_) => json!({}),
    }
}

/// Any JSON at all, with keys that some kind knows.
fn any_json() -> impl Strategy<Value = Value> {
    let key = prop::sample::select(vec![
        "apiVersion",
        "metadata",
        "spec",
        "status",
        "name",
        "labels",
        "conditions",
        "permissionClaims",
        "resources",
        "export",
        "reference",
        "phase",
        "type",
        "versions",
        "schema",
        "selector",
        "unknown",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-z]{0,3}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(key.clone().prop_map(str::to_owned), inner, 0..5)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn objects_with_any_fields_left_out_emptied_or_added_are_written_as_they_were_read(
        which in 0..11_usize, numbers in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let (again, sample) = samples().swap_remove(which);
        let changed = change(&sample, &mut numbers.into_iter());
        if let Some(written) = again(&changed) {
            prop_assert_eq!(written, changed);
        }
    }

    #[test]
    fn whatever_can_be_read_is_written_as_it_was_read(which in 0..11_usize, object in any_json()) {
        let (again, _) = samples().swap_remove(which);
        if let Some(written) = again(&object) {
            prop_assert_eq!(written, object);
        }
    }
}

#[test]
fn most_changed_objects_can_be_read() {
    // The property above would hold as well if nothing could be read at all.
    let (mut read, mut all) = (0, 0);
    for (again, sample) in samples() {
        for step in 1..40_u8 {
            let mut number = step;
            let numbers = std::iter::repeat_with(|| {
                number = number.wrapping_mul(13).wrapping_add(7);
                number
            });
            all += 1;
            read += usize::from(again(&change(&sample, &mut numbers.take(300))).is_some());
        }
    }
    assert!(read * 2 > all, "{read} of {all}");
}
