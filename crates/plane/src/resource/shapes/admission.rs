//! The fields of the kinds that configure admission.

use serde_json::{Value, json};

/// The schema of a configuration kind without its metadata, and what the kind is for.
pub(super) fn shape(kind: &str) -> Option<(&'static str, Value)> {
    let text = || json!({"type": "string"});
    let texts = || json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "atomic"});
    let object = |properties: Value| json!({"type": "object", "properties": properties});
    let atomic = |items: Value| json!({"type": "array", "items": items, "x-kubernetes-list-type": "atomic"});
    let keyed = |mut items: Value, key: &str| {
        items["required"] = json!([key]);
        json!({"type": "array", "items": items, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key]})
    };
    let selector = || {
        let mut selector = object(json!({
            "matchLabels": {"type": "object", "additionalProperties": {"type": "string"}},
            "matchExpressions": atomic(object(json!({"key": text(), "operator": text(), "values": texts()}))),
        }));
        selector["x-kubernetes-map-type"] = "atomic".into();
        selector
    };
    let rule = |named: bool| {
        let mut rule = object(json!({
            "operations": texts(), "apiGroups": texts(), "apiVersions": texts(), "resources": texts(), "scope": text(),
        }));
        if named {
            rule["properties"]["resourceNames"] = texts();
            rule["x-kubernetes-map-type"] = "atomic".into();
        }
        rule
    };
    let conditions = || keyed(object(json!({"name": text(), "expression": text()})), "name");
    let resources = || {
        let mut resources = object(json!({
            "matchPolicy": text(), "namespaceSelector": selector(), "objectSelector": selector(),
            "resourceRules": atomic(rule(true)), "excludeResourceRules": atomic(rule(true)),
        }));
        resources["x-kubernetes-map-type"] = "atomic".into();
        resources
    };
    let hook = |mutating: bool| {
        let service = object(json!({"namespace": text(), "name": text(), "path": text(), "port": {"type": "integer"}}));
        let mut hook = object(json!({
            "name": text(), "failurePolicy": text(), "matchPolicy": text(), "sideEffects": text(),
            "timeoutSeconds": {"type": "integer"}, "admissionReviewVersions": texts(),
            "namespaceSelector": selector(), "objectSelector": selector(), "rules": atomic(rule(false)),
            "matchConditions": conditions(),
            "clientConfig": object(json!({"url": text(), "caBundle": text(), "service": service})),
        }));
        if mutating {
            hook["properties"]["reinvocationPolicy"] = text();
        }
        object(json!({"webhooks": keyed(hook, "name")}))
    };
    Some(match kind {
        "MutatingWebhookConfiguration" => ("Webhooks that may change objects before they are stored.", hook(true)),
        "ValidatingWebhookConfiguration" => ("Webhooks that accept or refuse objects.", hook(false)),
        "ValidatingAdmissionPolicy" => {
            let mut param_kind = object(json!({"apiVersion": text(), "kind": text()}));
            param_kind["x-kubernetes-map-type"] = "atomic".into();
            let validation = object(json!({
                "expression": text(), "message": text(), "messageExpression": text(), "reason": text(),
            }));
            let mut variables = keyed(object(json!({"name": text(), "expression": text()})), "name");
            variables["items"]["x-kubernetes-map-type"] = "atomic".into();
            let status = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
            let spec = object(json!({
                "failurePolicy": text(), "paramKind": param_kind, "matchConstraints": resources(),
                "matchConditions": conditions(), "variables": variables, "validations": atomic(validation),
                "auditAnnotations": atomic(object(json!({"key": text(), "valueExpression": text()}))),
            }));
            ("A policy in CEL that accepts or refuses objects.", object(json!({"spec": spec, "status": status})))
        }
        "ValidatingAdmissionPolicyBinding" => {
            let mut reference = object(json!({
                "name": text(), "namespace": text(), "selector": selector(), "parameterNotFoundAction": text(),
            }));
            reference["x-kubernetes-map-type"] = "atomic".into();
            let mut actions = texts();
            actions["x-kubernetes-list-type"] = "set".into();
            let spec = object(json!({
                "policyName": text(), "paramRef": reference, "matchResources": resources(),
                "validationActions": actions,
            }));
            ("Puts a policy into effect, with parameters.", object(json!({"spec": spec})))
        }
        _ => return None,
    })
}
