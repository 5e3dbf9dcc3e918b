//! Whose policies apply in a workspace.

use super::world::{WIDGETS, World, widget};
use serde_json::{Value, json};

fn policy(name: &str, group: &str, resource: &str, validation: Value) -> [Value; 2] {
    let rule = json!({"operations": ["*"], "apiGroups": [group], "apiVersions": ["*"], "resources": [resource]});
    let version = "admissionregistration.k8s.io/v1";
    [
        json!({
            "apiVersion": version, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": name},
            "spec": {"matchConstraints": {"resourceRules": [rule]}, "validations": [validation]},
        }),
        json!({
            "apiVersion": version, "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": name},
            "spec": {"policyName": name, "validationActions": ["Deny"]},
        }),
    ]
}

#[tokio::test]
async fn bound_kinds_obey_the_policies_of_their_provider_and_others_those_of_the_workspace() {
    let world = World::start().await;
    let provider = world.workspace("root", "prov").await;
    world.workspace("root", "cons").await;
    world.workspace("root", "other").await;
    world.export("root:prov", json!([])).await;
    world.bind("root:cons", &provider, json!([])).await;
    let consumer = world.at("root:cons");
    for object in policy("consumers", "example.io", "widgets", json!({"expression": "false"})) {
        consumer.create(object).unwrap();
    }
    consumer.create(widget("free", json!({}))).unwrap();
    let rule = json!({"expression": "object.metadata.name == 'allowed'", "message": "only allowed"});
    for object in policy("providers", "example.io", "widgets", rule) {
        world.at("root:prov").create(object).unwrap();
    }
    let refused = consumer.create(widget("caught", json!({}))).unwrap_err();
    assert_eq!((refused.code, refused.reason.as_str()), (422, "Invalid"));
    let denied = "ValidatingAdmissionPolicy 'providers' with binding 'providers' denied request: only allowed";
    assert_eq!(refused.message, format!("widgets.example.io \"caught\" is forbidden: {denied}"));
    consumer.create(widget("allowed", json!({}))).unwrap();
    assert_eq!(consumer.names(WIDGETS).len(), 2);
    // Everything else is the workspace's own affair.
    let map = |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}});
    for object in policy("maps", "", "configmaps", json!({"expression": "false", "message": "no maps"})) {
        consumer.create(object).unwrap();
    }
    let refused = consumer.create(map("a")).unwrap_err();
    assert!(refused.message.ends_with("denied request: no maps"), "{}", refused.message);
    world.at("root:other").create(map("a")).unwrap();
    world.at("root:prov").create(map("a")).unwrap();
}
