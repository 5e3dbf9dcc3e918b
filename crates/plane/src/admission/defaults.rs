//! What the server fills in in the configuration kinds.

use serde_json::{Value, json};

fn default(object: &mut Value, key: &str, value: Value) {
    if object[key].is_null() {
        object[key] = value;
    }
}

/// Fills in what a client left out.
pub(crate) fn complete(kind: &str, object: &mut Value) {
    let mutating = kind == "MutatingWebhookConfiguration";
    let hooks = object.get_mut("webhooks").and_then(Value::as_array_mut).into_iter().flatten();
    for hook in hooks.filter(|hook| hook.is_object()) {
        default(hook, "failurePolicy", "Fail".into());
        default(hook, "matchPolicy", "Equivalent".into());
        default(hook, "namespaceSelector", json!({}));
        default(hook, "objectSelector", json!({}));
        default(hook, "timeoutSeconds", 10.into());
        if mutating {
            default(hook, "reinvocationPolicy", "Never".into());
        }
        if let Some(rules) = hook.get_mut("rules") {
            scopes(rules);
        }
        let client = hook.get_mut("clientConfig").and_then(|client| client.get_mut("service"));
        if let Some(service) = client.filter(|service| service.is_object()) {
            default(service, "port", 443.into());
        }
    }
    let Some(spec) = object.get_mut("spec").filter(|spec| spec.is_object()) else { return };
    if kind == "ValidatingAdmissionPolicy" {
        default(spec, "failurePolicy", "Fail".into());
    }
    for key in ["matchConstraints", "matchResources"] {
        let Some(resources) = spec.get_mut(key).filter(|resources| resources.is_object()) else { continue };
        default(resources, "matchPolicy", "Equivalent".into());
        default(resources, "namespaceSelector", json!({}));
        default(resources, "objectSelector", json!({}));
        for rules in ["resourceRules", "excludeResourceRules"] {
            if let Some(rules) = resources.get_mut(rules) {
                scopes(rules);
            }
        }
    }
}

fn scopes(rules: &mut Value) {
    for rule in rules.as_array_mut().into_iter().flatten().filter(|rule| rule.is_object()) {
        default(rule, "scope", "*".into());
    }
}
