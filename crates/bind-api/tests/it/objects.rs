//! Real-looking objects of every kind: what is read from them, that nothing is lost, and that the CRDs know every field.

use carrick_bind_api::conditions;
use carrick_bind_api::crds;
use carrick_bind_api::kinds::{self, ApiObject, Kind};
use carrick_bind_api::names::Owner;
use carrick_bind_api::v1alpha2::{
    ApiServiceBinding, ApiServiceBindingBundle, ApiServiceExport, ApiServiceExportRequest, ApiServiceExportTemplate,
    ApiServiceNamespace, BindableResourcesRequest, BoundSchema, Cluster, ClusterBinding, Collection, Isolation,
    PermissionClaim, Phase, Selector,
};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

#[allow(clippy::needless_pass_by_value)] // callers have no more use for them
fn sample(kind: Kind, spec: Value, status: Value) -> Value {
    json!({
        "apiVersion": kind.api_version(), "kind": kind.kind,
        "metadata": {"name": "cluster", "namespace": "cluster-a", "uid": "1b4e28ba", "resourceVersion": "42", "generation": 3,
            "labels": {"kube-bind.io/owner": "provider"}, "annotations": {"backend.kube-bind.io/identity": "id"},
            "managedFields": [{"manager": "konnector", "operation": "Update", "fieldsV1": {"f:spec": {}}}]},
        "spec": spec, "status": status,
    })
}

fn conditions() -> Value {
    json!([
        {"type": "Ready", "status": "False", "severity": "Error", "reason": "KubeconfigSecretNotFound", "message": "m",
            "lastTransitionTime": "2026-01-01T00:00:00Z"},
        {"type": "Connected", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"},
    ])
}

fn claims() -> Value {
    json!([{"group": "", "resource": "secrets", "selector": {
        "labelSelector": {"matchLabels": {"app": "x"}, "matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]},
        "namedResources": [{"name": "n", "namespace": "m"}],
        "references": [{"group": "wild.io", "resource": "sheriffs", "versions": ["v1"],
            "jsonPath": {"name": "spec.secretRefs.#.name", "namespace": "spec.secretRefs.#.namespace"}}]}}])
}

fn resources() -> Value {
    json!([{"group": "wild.io", "resource": "sheriffs", "versions": ["v1"]}])
}

fn names() -> Value {
    json!({"plural": "sheriffs", "singular": "sheriff", "kind": "Sheriff", "listKind": "SheriffList", "shortNames": ["sh"],
        "categories": ["all"]})
}

type Again = fn(&Value) -> Option<Value>;

/// Reads and writes an object; nothing if it cannot be read.
fn again<K: ApiObject>(object: &Value) -> Option<Value> {
    let read: K = serde_json::from_value(object.clone()).ok()?;
    Some(serde_json::to_value(read).unwrap())
}

fn samples() -> Vec<(Kind, Again, Value)> {
    let secret = json!({"name": "provider", "namespace": "kube-bind", "key": "kubeconfig"});
    let local = json!({"name": "kubeconfig", "key": "kubeconfig"});
    let namespaces = json!([{"name": "wild-west"}]);
    vec![
        (
            kinds::API_SERVICE_BINDING,
            again::<ApiServiceBinding>,
            sample(
                kinds::API_SERVICE_BINDING,
                json!({"kubeconfigSecretRef": secret}),
                json!({"providerPrettyName": "P", "boundSchemas": [{"group": "wild.io", "resource": "sheriffs"}],
                    "permissionClaims": claims(), "conditions": conditions()}),
            ),
        ),
        (
            kinds::API_SERVICE_BINDING_BUNDLE,
            again::<ApiServiceBindingBundle>,
            sample(
                kinds::API_SERVICE_BINDING_BUNDLE,
                json!({"kubeconfigSecretRef": secret}),
                json!({"conditions": conditions()}),
            ),
        ),
        (
            kinds::API_SERVICE_EXPORT_REQUEST,
            again::<ApiServiceExportRequest>,
            sample(
                kinds::API_SERVICE_EXPORT_REQUEST,
                json!({"resources": resources(), "permissionClaims": claims(), "namespaces": namespaces,
                    "schemaUpdatePolicy": "Always", "parameters": {"size": 3}}),
                json!({"phase": "Failed", "terminalMessage": "no", "conditions": conditions()}),
            ),
        ),
        (
            kinds::API_SERVICE_EXPORT,
            again::<ApiServiceExport>,
            sample(
                kinds::API_SERVICE_EXPORT,
                json!({"resources": resources(), "permissionClaims": claims(), "informerScope": "Cluster",
                    "isolation": "Prefixed", "clusterScopedIsolation": "None"}),
                json!({"conditions": conditions()}),
            ),
        ),
        (
            kinds::BOUND_SCHEMA,
            again::<BoundSchema>,
            sample(
                kinds::BOUND_SCHEMA,
                json!({"informerScope": "Namespaced", "group": "wild.io", "names": names(), "scope": "Namespaced",
                    "conversion": {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"],
                        "clientConfig": {"url": "https://h", "caBundle": "Q0E="}}},
                    "versions": [{"name": "v1", "served": true, "storage": true, "deprecated": true, "deprecationWarning": "w",
                        "schema": {"openAPIV3Schema": {"type": "object"}}, "selectableFields": [{"jsonPath": ".spec.x"}],
                        "subresources": {"status": {}, "scale": {"specReplicasPath": ".a", "statusReplicasPath": ".b",
                            "labelSelectorPath": ".c"}},
                        "additionalPrinterColumns": [{"name": "N", "type": "string", "jsonPath": ".a", "priority": 1,
                            "format": "f", "description": "d"}]}]}),
                json!({"acceptedNames": names(), "storedVersions": ["v1"], "instantiations": 2, "conditions": conditions()}),
            ),
        ),
        (
            kinds::API_SERVICE_NAMESPACE,
            again::<ApiServiceNamespace>,
            sample(kinds::API_SERVICE_NAMESPACE, json!({}), json!({"namespace": "cluster-a-wild-west"})),
        ),
        (
            kinds::CLUSTER_BINDING,
            again::<ClusterBinding>,
            sample(
                kinds::CLUSTER_BINDING,
                json!({"kubeconfigSecretRef": local, "providerPrettyName": "P", "serviceProviderSpec": {"a": {"b": 1}}}),
                json!({"lastHeartbeatTime": "2026-01-01T00:00:00Z", "heartbeatInterval": "5m0s", "konnectorVersion": "v0.8.1",
                    "consumerSecretRef": {"name": "s", "namespace": "n"}, "conditions": conditions()}),
            ),
        ),
        (
            kinds::BINDABLE_RESOURCES_REQUEST,
            again::<BindableResourcesRequest>,
            sample(
                kinds::BINDABLE_RESOURCES_REQUEST,
                json!({"templateRef": {"name": "t"}, "clusterIdentity": {"identity": "i", "prettyName": "p"}, "author": "a",
                    "kubeconfigSecretRef": local, "ttlAfterFinished": "1h0m0s"}),
                json!({"phase": "Succeeded", "namespace": "cluster-a", "kubeconfigSecretRef": local,
                    "completionTime": "2026-01-01T00:00:00Z", "conditions": [{"type": "Ready", "status": "True", "reason": "R",
                        "message": "", "observedGeneration": 2, "lastTransitionTime": "2026-01-01T00:00:00Z"}]}),
            ),
        ),
        (
            kinds::API_SERVICE_EXPORT_TEMPLATE,
            again::<ApiServiceExportTemplate>,
            sample(
                kinds::API_SERVICE_EXPORT_TEMPLATE,
                json!({"scope": "Namespaced", "description": "d", "resources": resources(), "permissionClaims": claims(),
                    "namespaces": namespaces, "schemaUpdatePolicy": "Never"}),
                json!({"conditions": conditions()}),
            ),
        ),
        (
            kinds::COLLECTION,
            again::<Collection>,
            sample(
                kinds::COLLECTION,
                json!({"description": "d", "templates": [{"name": "t"}]}),
                json!({"conditions": conditions()}),
            ),
        ),
        (kinds::CLUSTER, again::<Cluster>, sample(kinds::CLUSTER, json!({}), json!({"conditions": conditions()}))),
    ]
}

fn read<K: ApiObject>() -> K {
    let (_, _, object) = samples().into_iter().find(|(kind, ..)| *kind == K::KIND).unwrap();
    serde_json::from_value(object).unwrap()
}

#[test]
fn every_kind_is_written_as_it_was_read() {
    assert_eq!(samples().len(), kinds::ALL.len());
    for (kind, again, object) in samples() {
        assert_eq!(again(&object).as_ref(), Some(&object), "{}", kind.kind);
    }
}

#[test]
fn what_objects_say_is_found_in_their_fields() {
    let binding: ApiServiceBinding = read();
    assert_eq!(binding.spec.kubeconfig_secret_ref.key, "kubeconfig");
    assert!(conditions::is_true(&binding.status.conditions, conditions::CONNECTED));
    let claim = &binding.status.permission_claims[0].selector;
    assert_eq!(claim.references[0].json_path.as_ref().unwrap().name, "spec.secretRefs.#.name");
    assert_eq!(claim.named_resources[0].namespace, "m");
    let export: ApiServiceExport = read();
    assert_eq!(export.isolation(), &Isolation::Prefixed);
    let mut old = export.clone();
    old.spec.isolation = Isolation::Unset;
    assert_eq!(old.isolation(), &Isolation::None);
    assert_eq!(read::<ApiServiceExportRequest>().status.phase, Phase::Failed);
    assert_eq!(read::<ApiServiceNamespace>().owner(), Owner::Provider);
    assert_eq!(ApiServiceNamespace::new("x").owner(), Owner::Consumer);
    assert_eq!(read::<ClusterBinding>().status.heartbeat_interval, "5m0s");
    assert_eq!(read::<BindableResourcesRequest>().spec.cluster_identity.identity, "i");
}

#[test]
fn new_objects_have_what_the_api_requires() {
    let claim = PermissionClaim::new("", "secrets", Selector::default());
    assert_eq!(serde_json::to_value(claim).unwrap(), json!({"resource": "secrets", "selector": {}}));
    let export = serde_json::to_value(ApiServiceExport::new("e")).unwrap();
    assert_eq!(export["apiVersion"], "kube-bind.io/v1alpha2");
    assert_eq!((&export["kind"], &export["spec"]["resources"]), (&json!("APIServiceExport"), &json!([])));
}

/// Names every field of an object that a schema would prune.
fn pruned(object: &Value, schema: &Value, path: &str, found: &mut Vec<String>) {
    match object {
        Value::Object(fields) => {
            for (key, value) in fields {
                let path = format!("{path}.{key}");
                let inner = schema["properties"].get(key).or_else(|| schema.get("additionalProperties"));
                match inner {
                    Some(inner) => pruned(value, inner, &path, found),
                    None if schema["x-kubernetes-preserve-unknown-fields"] == true => {}
                    None => found.push(path),
                }
            }
        }
        Value::Array(items) => {
            for item in items {
                pruned(item, &schema["items"], &format!("{path}[]"), found);
            }
        }
        _ => {}
    }
}

#[test]
fn the_crds_know_every_field_of_the_types() {
    for (kind, _, mut object) in samples() {
        object.as_object_mut().unwrap().remove("metadata");
        let crd = crds::of(kind).unwrap();
        let versions = crd["spec"]["versions"].as_array().unwrap();
        let current = versions.iter().find(|version| version["storage"] == true).unwrap();
        let mut found = Vec::new();
        pruned(&object, &current["schema"]["openAPIV3Schema"], kind.kind, &mut found);
        assert!(found.is_empty(), "{found:?}");
    }
}

/// Leaves out, empties or adds some fields, as the numbers say.
fn change(value: &Value, numbers: &mut impl Iterator<Item = u8>) -> Value {
    match value {
        Value::Object(fields) => {
            let mut changed = Map::new();
            for (key, value) in fields {
                match numbers.next().unwrap_or(255) {
                    0..20 => {}
                    20..40 => {
                        changed.insert(key.clone(), empty(value));
                    }
                    40..50 => {
                        changed.insert(key.clone(), Value::Null);
                    }
                    _ => {
                        changed.insert(key.clone(), change(value, numbers));
                    }
                }
            }
            if numbers.next().unwrap_or(255) < 60 {
                changed.insert("fromTheFuture".to_owned(), json!({"a": [1, null, ""]}));
            }
            Value::Object(changed)
        }
        Value::Array(items) => Value::Array(items.iter().map(|item| change(item, numbers)).collect()),
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

proptest! {
    #[test]
    fn objects_with_any_fields_left_out_emptied_or_added_are_written_as_they_were_read(
        which in 0..11_usize, numbers in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let (_, again, sample) = samples().swap_remove(which);
        let changed = change(&sample, &mut numbers.into_iter());
        if let Some(written) = again(&changed) {
            prop_assert_eq!(written, changed);
        }
    }
}

#[test]
fn most_changed_objects_can_be_read() {
    // The property above would hold as well if nothing could be read at all.
    let (mut read, mut all) = (0, 0);
    for (_, again, sample) in samples() {
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
