use super::*;
use crate::api::PublishedResource;

/// `cargo run -p carrick-syncagent --example crd` prints the content of the file.
#[test]
fn the_chart_installs_this_very_crd() {
    let chart = include_str!("../../../../../charts/api-syncagent/files/publishedresources.yaml");
    let same = chart == include_str!("../crd.yaml");
    assert!(same, "copy src/api/crd.yaml to charts/api-syncagent/files/publishedresources.yaml");
}

#[test]
fn the_committed_document_is_what_the_types_say() {
    let committed: Value = serde_saphyr::from_str(include_str!("../crd.yaml")).unwrap();
    assert_eq!(
        committed,
        crd(),
        "write the output of `cargo run -p carrick-syncagent --example crd` to src/api/crd.yaml"
    );
}

/// The shape of a schema without descriptions: names and types of fields, what is required, and all validation.
fn shape(schema: &Value, path: &str, out: &mut Vec<String>) {
    let keys =
        ["type", "format", "enum", "x-kubernetes-map-type", "x-kubernetes-list-type", "x-kubernetes-list-map-keys"];
    let facts: Vec<String> = keys.iter().filter_map(|key| Some(format!("{key}={}", schema.get(key)?))).collect();
    let required = schema["required"].as_array().map(|all| format!(" required={}", json!(all))).unwrap_or_default();
    out.push(format!("{path}: {}{required}", facts.join(" ")));
    for rule in schema["x-kubernetes-validations"].as_array().into_iter().flatten() {
        out.push(format!("{path}! {}", rule["message"].as_str().unwrap()));
    }
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        shape(field, &format!("{path}.{name}"), out);
    }
    for (key, mark) in [("items", "[]"), ("additionalProperties", "{}")] {
        if schema[key].is_object() {
            shape(&schema[key], &format!("{path}{mark}"), out);
        }
    }
}

#[test]
fn fields_and_checks_are_those_of_the_original_kind() {
    let mut lines = Vec::new();
    let spec = &crd()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    shape(spec, "spec", &mut lines);
    for line in [
        "spec: type=\"object\" required=[\"resource\"]",
        "spec.resource: type=\"object\" required=[\"apiGroup\",\"kind\"]",
        "spec.resource.versions: type=\"array\"",
        "spec.filter.namespace: type=\"object\" x-kubernetes-map-type=\"atomic\"",
        "spec.filter.resource.matchExpressions: type=\"array\" x-kubernetes-list-type=\"atomic\"",
        "spec.filter.resource.matchExpressions[]: type=\"object\" required=[\"key\",\"operator\"]",
        "spec.enableWorkspacePaths: type=\"boolean\"",
        "spec.projection.scope: type=\"string\" enum=[\"Cluster\",\"Namespaced\"]",
        "spec.projection.versions{}: type=\"string\"",
        "spec.synchronization: type=\"object\" required=[\"enabled\"]",
        "spec.mutation.spec[].regex: type=\"object\" required=[\"path\"]",
        "spec.mutation.status[].template: type=\"object\" required=[\"path\",\"template\"]",
        "spec.mutation.spec[].cel: type=\"object\" required=[\"path\",\"expression\"]",
        "spec.related[]: type=\"object\" required=[\"identifier\",\"origin\",\"object\"]",
        "spec.related[].origin: type=\"string\" enum=[\"service\",\"kcp\"]",
        "spec.related[].kind: type=\"string\" enum=[\"ConfigMap\",\"Secret\"]",
        "spec.related[].cleanup: type=\"boolean\"",
        "spec.related[].cleanupPolicy: type=\"string\" enum=[\"Orphan\",\"OnPrimaryDeletion\",\"MatchOrigin\"]",
        "spec.related[].identifier: type=\"string\"",
        "spec.related[].object.selector: type=\"object\" x-kubernetes-map-type=\"atomic\" required=[\"rewrite\"]",
        "spec.related[].object.namespace.reference: type=\"object\" required=[\"path\"]",
        "spec.related[].watch.byOwner: type=\"object\"",
        "spec.related[].watch.bySelector.matchLabels{}: type=\"string\"",
        "spec.related[]! must specify either kind (deprecated) or group, version, resource",
        "spec.related[]! resource and version must be configured together or not at all",
        "spec.related[]! configuring a group also requires a version and resource",
        "spec.related[]! identity hashes can only be used with GVRs",
        "spec.related[]! watch must be configured when origin is service and syncStatus is true",
        "spec.related[]! watch must be configured when cleanupPolicy is MatchOrigin and origin is service",
        "spec.related[]! cleanup:true conflicts with cleanupPolicy: Orphan",
        "spec.related[].watch! exactly one of byOwner or bySelector must be set",
    ] {
        assert!(lines.iter().any(|got| got == line), "{line} is not among\n{}", lines.join("\n"));
    }
    assert!(!lines.iter().any(|line| line.starts_with("spec.related[].object.namespace.namespace")));
}

#[test]
fn every_field_is_described() {
    fn check(schema: &Value, path: &str) {
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            let text = field["description"].as_str().unwrap_or_default();
            assert!(text.ends_with('.') || name == "metadata", "{path}.{name}: {text:?}");
            check(field, &format!("{path}.{name}"));
            check(&field["items"], &format!("{path}.{name}[]"));
        }
    }
    check(&schema(), "");
}

/// Walks the schema and builds an object with every field set, which the types must read and write back unchanged.
#[test]
fn every_field_of_the_schema_has_a_place_in_the_types() {
    fn sample(schema: &Value) -> Value {
        if let Some(values) = schema["enum"].as_array() {
            return values[0].clone();
        }
        match schema["type"].as_str() {
            Some("object") => {
                if let Some(properties) = schema["properties"].as_object() {
                    properties.iter().map(|(k, v)| (k.clone(), sample(v))).collect()
                } else if schema["additionalProperties"].is_object() {
                    json!({ "key": sample(&schema["additionalProperties"]) })
                } else {
                    json!({})
                }
            }
            Some("array") => Value::Array(vec![sample(&schema["items"])]),
            Some("boolean") => Value::Bool(true),
            Some("integer") => 1.into(),
            _ => "text".into(),
        }
    }
    fn assert_holds(all: &Value, part: &Value, path: &str) {
        match part {
            Value::Object(map) => map.iter().for_each(|(k, v)| assert_holds(&all[k], v, &format!("{path}.{k}"))),
            Value::Array(list) => {
                list.iter().enumerate().for_each(|(i, v)| assert_holds(&all[i], v, &format!("{path}[{i}]")));
            }
            _ => assert_eq!(all, part, "{path}"),
        }
    }
    let schema = schema();
    let (spec, status) = (sample(&schema["properties"]["spec"]), sample(&schema["properties"]["status"]));
    assert!(spec["related"][0]["object"]["namespace"]["selector"]["rewrite"]["regex"].is_object());
    let read: PublishedResource = serde_json::from_value(json!({ "spec": spec, "status": status })).unwrap();
    let written = serde_json::to_value(&read).unwrap();
    assert_holds(&written["spec"], &spec, "spec");
    assert_holds(&written["status"], &status, "status");
}
