use serde_json::json;

use super::*;

fn all() -> Vec<Value> {
    consumer().into_iter().chain(provider()).collect()
}

fn current(crd: &Value) -> &Value {
    let versions = crd["spec"]["versions"].as_array().unwrap();
    let stored: Vec<&Value> = versions.iter().filter(|version| version["storage"] == true).collect();
    assert_eq!(stored.len(), 1);
    stored[0]
}

#[test]
fn there_is_one_for_every_kind() {
    assert_eq!(all().len(), kinds::ALL.len());
    for kind in kinds::ALL {
        let crd = of(kind).unwrap();
        let names = &crd["spec"]["names"];
        assert_eq!((&names["kind"], &names["plural"]), (&json!(kind.kind), &json!(kind.plural)));
        assert_eq!(crd["spec"]["scope"] == "Namespaced", kinds::is_namespaced(kind));
        assert_eq!(
            (&current(&crd)["name"], &current(&crd)["subresources"]),
            (&json!("v1alpha2"), &json!({"status": {}}))
        );
    }
}

#[test]
fn the_old_version_is_served_where_there_was_one() {
    let old: Vec<String> = all()
        .iter()
        .filter(|crd| crd["spec"]["versions"][0]["name"] == "v1alpha1")
        .map(|crd| crd["spec"]["names"]["kind"].as_str().unwrap().to_owned())
        .collect();
    let wanted =
        ["APIServiceBinding", "APIServiceExportRequest", "APIServiceExport", "APIServiceNamespace", "ClusterBinding"];
    assert_eq!(old, wanted);
}

#[test]
fn columns_and_names_are_those_of_kube_bind() {
    let ready = ["Ready", "Message"];
    let cases: [(Kind, &str, &[&str], Vec<&str>); 11] = [
        (
            kinds::API_SERVICE_BINDING,
            "kube-bindings",
            &["sb"],
            [&["Provider", "Resources"], &ready[..], &["Age"]].concat(),
        ),
        (
            kinds::API_SERVICE_BINDING_BUNDLE,
            "kube-bindings",
            &["sbb"],
            [&["Provider", "Resources"], &ready[..], &["Age"]].concat(),
        ),
        (kinds::API_SERVICE_EXPORT_REQUEST, "kube-bindings", &[], vec!["Ready", "Age"]),
        (kinds::API_SERVICE_EXPORT, "kube-bindings", &[], vec!["Established", "Age"]),
        (kinds::BOUND_SCHEMA, "kube-bindings", &["bs"], vec!["Age"]),
        (kinds::API_SERVICE_NAMESPACE, "kube-bindings", &[], vec!["Namespace", "Age"]),
        (kinds::CLUSTER_BINDING, "kube-bindings", &[], vec!["Konnector Version", "Last Heartbeat", "Ready", "Age"]),
        (kinds::BINDABLE_RESOURCES_REQUEST, "kube-bindings", &[], vec!["Template", "Phase", "Age"]),
        (kinds::API_SERVICE_EXPORT_TEMPLATE, "kube-bind", &[], vec!["Resources", "PermissionClaims", "Age"]),
        (kinds::COLLECTION, "kube-bind", &[], vec!["Description", "Templates", "Age"]),
        (kinds::CLUSTER, "kube-bind", &[], vec!["Ready"]),
    ];
    for (kind, category, short_names, columns) in cases {
        let crd = of(kind).unwrap();
        let shown: Vec<&str> = current(&crd)["additionalPrinterColumns"]
            .as_array()
            .unwrap()
            .iter()
            .map(|column| column["name"].as_str().unwrap())
            .collect();
        assert_eq!(shown, columns, "{}", kind.kind);
        assert_eq!(crd["spec"]["names"]["categories"], json!([category]), "{}", kind.kind);
        let wanted = if short_names.is_empty() { Value::Null } else { json!(short_names) };
        assert_eq!(crd["spec"]["names"]["shortNames"], wanted, "{}", kind.kind);
    }
}

/// Checks what every structural schema must fulfil, and returns the number of its nodes.
fn check(schema: &Value, path: &str) -> usize {
    let fields = schema.as_object().unwrap_or_else(|| panic!("{path} is no schema"));
    let type_ = schema["type"].as_str().unwrap_or_else(|| panic!("{path} has no type"));
    for keyword in fields.keys() {
        let known = matches!(
            keyword.as_str(),
            "type"
                | "description"
                | "properties"
                | "required"
                | "items"
                | "additionalProperties"
                | "enum"
                | "default"
                | "pattern"
                | "format"
                | "minLength"
                | "minItems"
                | "minimum"
        );
        assert!(known || keyword.starts_with("x-kubernetes-"), "{path}: {keyword}");
    }
    for required in schema["required"].as_array().into_iter().flatten() {
        assert!(schema["properties"].get(required.as_str().unwrap()).is_some(), "{path}: {required}");
    }
    if type_ == "array" {
        return 1 + check(&schema["items"], &format!("{path}[]"));
    }
    let inner = schema["properties"].as_object().into_iter().flatten();
    1 + inner.map(|(key, schema)| check(schema, &format!("{path}.{key}"))).sum::<usize>()
}

#[test]
fn schemas_are_structural() {
    for crd in all() {
        for version in crd["spec"]["versions"].as_array().unwrap() {
            let nodes = check(&version["schema"]["openAPIV3Schema"], crd["metadata"]["name"].as_str().unwrap());
            assert!(nodes > 5 || version["name"] == "v1alpha1");
        }
    }
}

#[test]
fn what_must_not_change_cannot() {
    let rule = |kind: Kind, pointer: &str| {
        let crd = of(kind).unwrap();
        let schema = current(&crd)["schema"]["openAPIV3Schema"].pointer(pointer).unwrap().clone();
        schema["x-kubernetes-validations"][0]["message"].as_str().unwrap_or_default().to_owned()
    };
    let secret = "/properties/spec/properties/kubeconfigSecretRef";
    for kind in [kinds::API_SERVICE_BINDING, kinds::API_SERVICE_BINDING_BUNDLE, kinds::CLUSTER_BINDING] {
        assert_eq!(rule(kind, secret), "kubeconfigSecretRef is immutable");
    }
    for field in ["resources", "permissionClaims"] {
        let pointer = format!("/properties/spec/properties/{field}");
        for kind in [kinds::API_SERVICE_EXPORT, kinds::API_SERVICE_EXPORT_REQUEST] {
            assert_eq!(rule(kind, &pointer), format!("{field} are immutable"));
        }
        assert_eq!(rule(kinds::API_SERVICE_EXPORT_TEMPLATE, &pointer), "");
    }
    assert_eq!(rule(kinds::CLUSTER_BINDING, ""), "cluster binding name should be cluster");
}
