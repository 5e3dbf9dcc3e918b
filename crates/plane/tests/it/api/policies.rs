//! ValidatingAdmissionPolicies are enforced.

use serde_json::{Value, json};

use super::client::{MAPS, World, map};
use super::hooks::{BINDINGS, POLICIES};

fn policy(name: &str, spec: Value) -> Value {
    let mut object = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": name},
        "spec": {"matchConstraints": {"resourceRules": [
            {"operations": ["CREATE", "UPDATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]},
        ]}},
    });
    for (key, value) in spec.as_object().unwrap() {
        object["spec"][key] = value.clone();
    }
    object
}

fn binding(name: &str, policy: &str, spec: Value) -> Value {
    let mut object = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name}, "spec": {"policyName": policy, "validationActions": ["Deny"]},
    });
    for (key, value) in spec.as_object().unwrap() {
        object["spec"][key] = value.clone();
    }
    object
}

async fn with_policy(spec: Value, bound: Value) -> World {
    let world = World::start().await;
    world.admin.post(POLICIES, policy("p", spec)).await.expect(201);
    world.admin.post(BINDINGS, binding("b", "p", bound)).await.expect(201);
    world
}

const DENIED: &str = "ValidatingAdmissionPolicy 'p' with binding 'b' denied request";

#[tokio::test]
async fn a_policy_refuses_what_it_does_not_accept() {
    let world = World::start().await;
    let spec = json!({"validations": [
        {"expression": "object.data.size.matches('^[0-9]+$')", "message": "size is a number"},
        {"expression": "int(object.data.size) < 3", "messageExpression": "'too large: ' + object.data.size", "reason": "Forbidden"},
        {"expression": "request.operation == 'CREATE' || oldObject.data.size <= object.data.size"},
    ]});
    world.admin.post(POLICIES, policy("p", spec)).await.expect(201);
    // Without a binding nothing happens.
    world.admin.post(MAPS, map("free", json!({"size": "x"}))).await.expect(201);
    world.admin.post(BINDINGS, binding("b", "p", json!({}))).await.expect(201);
    let refused = world.admin.post(MAPS, map("a", json!({"size": "12"}))).await;
    let message = format!("{DENIED}: too large: 12");
    assert_eq!(refused.body["reason"], "Forbidden");
    assert_eq!(refused.body["details"], json!({"name": "a", "kind": "configmaps", "causes": [{"message": message}]}));
    refused.refused(403, &format!("configmaps \"a\" is forbidden: {message}"));
    let refused = world.admin.post(MAPS, map("a", json!({"size": "x"}))).await;
    assert_eq!(refused.body["reason"], "Invalid");
    refused.refused(422, &format!("configmaps \"a\" is forbidden: {DENIED}: size is a number"));
    let failed = world.admin.post(MAPS, map("a", json!({"color": "red"}))).await;
    let why = "expression 'object.data.size.matches('^[0-9]+$')' resulted in error: no such key: size";
    failed.refused(422, &format!("configmaps \"a\" is forbidden: {DENIED}: {why}"));
    world.admin.post(MAPS, map("a", json!({"size": "2"}))).await.expect(201);
    let patched = world.admin.patch(&format!("{MAPS}/a"), "merge", json!({"data": {"size": "1"}})).await;
    let why = "failed expression: request.operation == 'CREATE' || oldObject.data.size <= object.data.size";
    patched.refused(422, &format!("configmaps \"a\" is forbidden: {DENIED}: {why}"));
    // Deletions are none of its business.
    world.admin.delete(&format!("{MAPS}/a")).await.expect(200);
    world.admin.delete(&format!("{BINDINGS}/b")).await.expect(200);
    world.admin.post(MAPS, map("a", json!({"size": "x"}))).await.expect(201);
}

#[tokio::test]
async fn variables_conditions_and_the_namespace_can_be_used() {
    let spec = json!({
        "matchConditions": [{"name": "not-bob", "expression": "request.userInfo.username != 'bob'"}],
        "variables": [
            {"name": "size", "expression": "has(object.data) ? int(object.data.size) : 0"},
            {"name": "limit", "expression": "int(namespaceObject.metadata.labels.limit)"},
            {"name": "fits", "expression": "variables.size <= variables.limit"},
        ],
        "validations": [{"expression": "variables.fits", "messageExpression": "string(variables.size) + ' of ' + string(variables.limit)"}],
    });
    let world = with_policy(spec, json!({})).await;
    let admin = &world.admin;
    let failed = admin.post(MAPS, map("a", json!({"size": "3"}))).await;
    let why = "expression 'variables.fits' resulted in error: ";
    assert!(failed.body["message"].as_str().unwrap().contains(why), "{}", failed.text);
    let label = json!({"metadata": {"labels": {"limit": "2"}}});
    admin.patch("/api/v1/namespaces/default", "merge", label).await.expect(200);
    let refused = admin.post(MAPS, map("a", json!({"size": "3"}))).await;
    refused.refused(422, &format!("configmaps \"a\" is forbidden: {DENIED}: 3 of 2"));
    admin.post(MAPS, map("a", json!({"size": "2"}))).await.expect(201);
    let mut role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "bob"}});
    role["roleRef"] = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"});
    role["subjects"] = json!([{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "bob"}]);
    admin.post("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", role).await.expect(201);
    world.user("bob").post(MAPS, map("b", json!({"size": "3"}))).await.expect(201);
}

#[tokio::test]
async fn parameters_are_objects_of_any_kind() {
    let world = World::with_widgets().await;
    let admin = &world.admin;
    let spec = json!({
        "paramKind": {"apiVersion": "example.io/v1", "kind": "Widget"},
        "validations": [{"expression": "int(object.data.size) <= params.spec.size", "messageExpression": "'at most ' + string(params.spec.size)"}],
    });
    admin.post(POLICIES, policy("p", spec)).await.expect(201);
    let reference = |reference: Value| binding("b", "p", json!({"paramRef": reference}));
    let named = json!({"name": "limit", "namespace": "default", "parameterNotFoundAction": "Deny"});
    admin.post(BINDINGS, reference(named)).await.expect(201);
    let missing = "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction";
    admin
        .post(MAPS, map("a", json!({"size": "3"})))
        .await
        .refused(422, &format!("configmaps \"a\" is forbidden: {DENIED}: {missing}"));
    let widget = |name: &str, size: u32| json!({"apiVersion": "example.io/v1", "kind": "Widget", "metadata": {"name": name, "labels": {"limits": "yes"}}, "spec": {"size": size}});
    let widgets = "/apis/example.io/v1/namespaces/default/widgets";
    admin.post(widgets, widget("limit", 2)).await.expect(201);
    admin
        .post(MAPS, map("a", json!({"size": "3"})))
        .await
        .refused(422, &format!("configmaps \"a\" is forbidden: {DENIED}: at most 2"));
    admin.post(MAPS, map("a", json!({"size": "2"}))).await.expect(201);
    // A selector: every selected object has a say.
    admin.post(widgets, widget("lower", 1)).await.expect(201);
    admin.delete(&format!("{BINDINGS}/b")).await.expect(200);
    let selected = json!({"selector": {"matchLabels": {"limits": "yes"}}, "parameterNotFoundAction": "Allow"});
    admin.post(BINDINGS, reference(selected)).await.expect(201);
    admin
        .post(MAPS, map("b", json!({"size": "2"})))
        .await
        .refused(422, &format!("configmaps \"b\" is forbidden: {DENIED}: at most 1"));
    for name in ["limit", "lower"] {
        admin.delete(&format!("{widgets}/{name}")).await.expect(200);
    }
    admin.post(MAPS, map("b", json!({"size": "9"}))).await.expect(201);
}

#[tokio::test]
async fn bindings_choose_actions_and_objects() {
    let spec = json!({"validations": [{"expression": "false", "message": "never"}]});
    let bound = json!({"validationActions": ["Warn", "Audit"], "matchResources": {"objectSelector": {"matchLabels": {"x": "1"}}}});
    let world = with_policy(spec, bound).await;
    let answer = world.admin.post(MAPS, map("a", json!({}))).await;
    assert!(answer.headers.get("warning").is_none());
    answer.expect(201);
    let mut object = map("b", json!({}));
    object["metadata"]["labels"] = json!({"x": "1"});
    let answer = world.admin.post(MAPS, object).await;
    let warning = "Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': never";
    assert_eq!(answer.headers["warning"], format!("299 - \"{warning}\""));
    answer.expect(201);
}

#[tokio::test]
async fn failures_are_ignored_if_the_policy_says_so() {
    let spec = json!({"failurePolicy": "Ignore", "validations": [{"expression": "object.data.size == '1'"}]});
    let world = with_policy(spec, json!({})).await;
    world.admin.post(MAPS, map("a", json!({"other": "1"}))).await.expect(201);
    world
        .admin
        .post(MAPS, map("b", json!({"size": "2"})))
        .await
        .refused(422, &format!("configmaps \"b\" is forbidden: {DENIED}: failed expression: object.data.size == '1'"));
}

#[tokio::test]
async fn excluded_resources_and_other_versions_are_respected() {
    let world = World::with_widgets().await;
    let spec = json!({
        "matchConstraints": {
            "resourceRules": [{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["v1beta1"], "resources": ["*", "*/status"]}],
            "excludeResourceRules": [{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["widgets"], "resourceNames": ["free"]}],
        },
        "validations": [{"expression": "request.kind.version == 'v1beta1' && object.apiVersion == 'example.io/v1'", "messageExpression": "request.requestKind.version + ' ' + object.apiVersion"}],
    });
    world.admin.post(POLICIES, policy("p", spec)).await.expect(201);
    world.admin.post(BINDINGS, binding("b", "p", json!({}))).await.expect(201);
    let widgets = "/apis/example.io/v1/namespaces/default/widgets";
    let widget = |name: &str| json!({"apiVersion": "example.io/v1", "kind": "Widget", "metadata": {"name": name}, "spec": {"size": 1}});
    world
        .admin
        .post(widgets, widget("caught"))
        .await
        .refused(422, &format!("widgets.example.io \"caught\" is forbidden: {DENIED}: v1 example.io/v1beta1"));
    world.admin.post(widgets, widget("free")).await.expect(201);
    // Its status is another resource.
    let status = world.admin.patch(&format!("{widgets}/free/status"), "merge", json!({"status": {"size": 1}})).await;
    status.refused(422, &format!("widgets.example.io \"free\" is forbidden: {DENIED}: v1 example.io/v1beta1"));
}

#[tokio::test]
async fn policies_and_bindings_are_checked() {
    let world = World::start().await;
    let wrong = json!({
        "failurePolicy": "Maybe",
        "variables": [{"name": "a-b", "expression": "1"}, {"name": "x", "expression": "variables.later"}],
        "validations": [
            {"expression": "object.x", "messageExpression": "1"},
            {"expression": "variables.nothing == 1", "reason": "Odd", "message": "a\nb"},
            {"expression": "params.x == 1"},
        ],
        "auditAnnotations": [{"key": "k", "valueExpression": "1 + 1"}],
    });
    let refused = world.admin.post(POLICIES, policy("p", wrong)).await.expect(422);
    let causes = refused["details"]["causes"].as_array().unwrap().clone();
    let reported: Vec<String> = causes
        .iter()
        .map(|cause| format!("{}: {}", cause["field"].as_str().unwrap(), cause["message"].as_str().unwrap()))
        .collect();
    assert_eq!(
        reported,
        [
            "spec.failurePolicy: Unsupported value: \"Maybe\": supported values: \"Fail\", \"Ignore\"",
            "spec.variables[0].name: Invalid value: \"a-b\": must be a valid CEL identifier",
            "spec.variables[1].expression: Invalid value: \"variables.later\": compilation failed: ERROR: <input>:1:10: undefined field 'later'\n | variables.later\n | .........^",
            "spec.validations[0].expression: Invalid value: \"object.x\": must evaluate to bool but got dyn",
            "spec.validations[0].messageExpression: Invalid value: \"1\": must evaluate to string but got int",
            "spec.validations[1].expression: Invalid value: \"variables.nothing == 1\": compilation failed: ERROR: <input>:1:10: undefined field 'nothing'\n | variables.nothing == 1\n | .........^",
            "spec.validations[1].message: Invalid value: \"a\\nb\": must not contain line breaks",
            "spec.validations[1].reason: Unsupported value: \"Odd\": supported values: \"Forbidden\", \"Invalid\", \"RequestEntityTooLarge\"",
            "spec.validations[2].expression: Invalid value: \"params.x == 1\": compilation failed: ERROR: <input>:1:1: undeclared reference to 'params' (in container '')\n | params.x == 1\n | ^",
            "spec.auditAnnotations[0].valueExpression: Invalid value: \"1 + 1\": must evaluate to one of [string null_type] but got int",
        ]
    );
    let wrong = json!({"validationActions": ["Deny", "Warn", "Warn"], "paramRef": {"name": "x", "selector": {}}});
    let refused = world.admin.post(BINDINGS, binding("b", "", wrong)).await.expect(422);
    let causes = refused["details"]["causes"].as_array().unwrap().clone();
    let fields: Vec<&str> = causes.iter().map(|cause| cause["field"].as_str().unwrap()).collect();
    assert_eq!(
        fields,
        [
            "spec.policyName",
            "spec.paramRef.name",
            "spec.paramRef.selector",
            "spec.paramRef.parameterNotFoundAction",
            "spec.validationActions[2]",
            "spec.validationActions",
        ]
    );
}
