//! Tables over the pure part.

use std::sync::Arc;

use serde_json::{Value, json};

use super::request::AdmissionRequest;
use super::review::Question;
use super::rule::Matcher;
use crate::caller::Caller;
use crate::config::Mode;
use crate::resource::{Resource, builtin};

fn kind(group: &str, plural: &str) -> Arc<Resource> {
    let all = builtin::builtins(Mode::Kube);
    all.into_iter().find(|resource| *resource.group == *group && *resource.plural == *plural).unwrap()
}

fn widgets() -> Resource {
    let version = |name: &str, storage: bool| json!({"name": name, "served": true, "storage": storage, "schema": {"openAPIV3Schema": {"type": "object"}}});
    Resource::from_crd(&json!({"spec": {
        "group": "example.io", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [version("v1", true), version("v1beta1", false)],
    }}))
    .unwrap()
}

fn request<'a>(resource: &'a Resource, caller: &'a Caller, operation: &'static str) -> AdmissionRequest<'a> {
    AdmissionRequest {
        operation,
        resource,
        version: "v1",
        subresource: "",
        cluster: "",
        namespace: if resource.namespaced { "default" } else { "" },
        name: "x",
        caller,
        options: json!({}),
        dry_run: false,
        old: &Value::Null,
    }
}

fn matched(matcher: &Matcher, request: &AdmissionRequest<'_>, object: &Value) -> Option<String> {
    let namespace = |name: &str| {
        (name == "default").then(|| Arc::new(json!({"metadata": {"name": "default", "labels": {"env": "test"}}})))
    };
    matcher.version(request, object, &namespace).unwrap().map(str::to_owned)
}

#[test]
fn rules_match_operations_groups_versions_resources_and_scopes() {
    let caller = Caller::default();
    let (maps, spaces, custom) = (kind("", "configmaps"), kind("", "namespaces"), widgets());
    let rule = |operations: &[&str], groups: &[&str], versions: &[&str], resources: &[&str], scope: &str| json!({"operations": operations, "apiGroups": groups, "apiVersions": versions, "resources": resources, "scope": scope});
    let cases = [
        (rule(&["*"], &["*"], &["*"], &["*"], "*"), "CREATE", [true, true, true]),
        (rule(&["UPDATE"], &["*"], &["*"], &["*"], "*"), "CREATE", [false, false, false]),
        (rule(&["CREATE"], &[""], &["v1"], &["configmaps"], "*"), "CREATE", [true, false, false]),
        (rule(&["*"], &["*"], &["*"], &["*"], "Namespaced"), "CREATE", [true, false, true]),
        (rule(&["*"], &["*"], &["*"], &["*"], "Cluster"), "CREATE", [false, true, false]),
        (rule(&["*"], &["example.io"], &["*"], &["widgets/status"], "*"), "UPDATE", [false, false, false]),
        (rule(&["*"], &["*"], &["*"], &["*/*"], "*"), "DELETE", [true, true, true]),
        (rule(&["*"], &["*"], &["v2"], &["*"], "*"), "DELETE", [false, false, false]),
    ];
    for (rule, operation, expected) in cases {
        let matcher = Matcher::of_webhook(&json!({"rules": [rule]}));
        let found = [&*maps, &*spaces, &custom].map(|resource| {
            let mut request = request(resource, &caller, operation);
            if *resource.plural == *"namespaces" {
                // Kubernetes says that a Namespace is in itself.
                request.namespace = "x";
            }
            matched(&matcher, &request, &json!({})).is_some()
        });
        assert_eq!(found, expected, "{rule}");
    }
    let status = Matcher::of_webhook(&json!({"rules": [rule(&["*"], &["*"], &["*"], &["widgets/status"], "*")]}));
    let about_status = AdmissionRequest { subresource: "status", ..request(&custom, &caller, "UPDATE") };
    assert!(matched(&status, &about_status, &json!({})).is_some());
}

#[test]
fn an_equivalent_version_matches_unless_exactness_is_asked_for() {
    let (caller, custom) = (Caller::default(), widgets());
    let rule = json!({"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["v1beta1"], "resources": ["*"]});
    let request = request(&custom, &caller, "CREATE");
    for (policy, expected) in [("Equivalent", Some("v1beta1".to_owned())), ("Exact", None)] {
        let matcher = Matcher::of_webhook(&json!({"matchPolicy": policy, "rules": [rule]}));
        assert_eq!(matched(&matcher, &request, &json!({})), expected);
    }
}

#[test]
fn selectors_look_at_namespaces_and_at_both_states_of_an_object() {
    let caller = Caller::default();
    let (maps, nodes) = (kind("", "configmaps"), kind("", "nodes"));
    let any = json!({"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"]});
    let labelled = |labels: Value| json!({"metadata": {"labels": labels}});
    let env = |value: &str| json!({"rules": [any], "namespaceSelector": {"matchLabels": {"env": value}}});
    let maps_request = request(&maps, &caller, "UPDATE");
    assert!(matched(&Matcher::of_webhook(&env("test")), &maps_request, &json!({})).is_some());
    assert!(matched(&Matcher::of_webhook(&env("prod")), &maps_request, &json!({})).is_none());
    // What is in no namespace is never left out by one.
    assert!(matched(&Matcher::of_webhook(&env("prod")), &request(&nodes, &caller, "UPDATE"), &json!({})).is_some());
    let objects = json!({"rules": [any], "objectSelector": {"matchExpressions": [{"key": "a", "operator": "In", "values": ["1"]}]}});
    let matcher = Matcher::of_webhook(&objects);
    let old = labelled(json!({"a": "1"}));
    let before = AdmissionRequest { old: &old, ..request(&maps, &caller, "UPDATE") };
    assert!(matched(&matcher, &before, &labelled(json!({}))).is_some());
    assert!(matched(&matcher, &maps_request, &labelled(json!({"a": "1"}))).is_some());
    assert!(matched(&matcher, &maps_request, &labelled(json!({"a": "2"}))).is_none());
}

#[test]
fn policies_exclude_and_name_resources() {
    let (caller, custom) = (Caller::default(), widgets());
    let rule = |extra: Value| {
        let mut rule = json!({"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"]});
        rule["resourceNames"] = extra;
        rule
    };
    for (resources, expected) in [
        (json!({}), true),
        (json!({"resourceRules": [rule(json!(["x"]))]}), true),
        (json!({"resourceRules": [rule(json!(["y"]))]}), false),
        (json!({"resourceRules": [rule(json!([]))], "excludeResourceRules": [rule(json!(["x"]))]}), false),
        (json!({"excludeResourceRules": [rule(json!(["y"]))]}), true),
    ] {
        let matcher = Matcher::of_policy(&resources);
        assert_eq!(
            matched(&matcher, &request(&custom, &caller, "CREATE"), &json!({})).is_some(),
            expected,
            "{resources}"
        );
    }
}

#[test]
fn a_missing_namespace_only_matters_to_those_whom_the_request_concerns() {
    let (caller, maps) = (Caller::default(), kind("", "configmaps"));
    let rule = |resource: &str| json!({"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": [resource]});
    let request = AdmissionRequest { namespace: "gone", ..request(&maps, &caller, "DELETE") };
    let hook = |resource: &str| json!({"rules": [rule(resource)], "namespaceSelector": {"matchLabels": {"a": "b"}}});
    let version = |hook: &Value| {
        Matcher::of_webhook(hook).version(&request, &Value::Null, &|_| None).map(|found| found.map(str::to_owned))
    };
    assert_eq!(version(&hook("secrets")), Ok(None));
    assert_eq!(version(&hook("configmaps")).unwrap_err().message, "namespaces \"gone\" not found");
}

#[test]
fn answers_must_fit_the_question() {
    let (caller, maps) = (Caller::default(), kind("", "configmaps"));
    let request = request(&maps, &caller, "CREATE");
    let question = |version: &str| Question::new(&[version.to_owned()], &request, "v1", &json!({}), &Value::Null);
    assert!(question("v7").is_err());
    let v1 = question("v1").unwrap();
    let uid = v1.document["request"]["uid"].clone();
    let review = |mut response: Value| {
        response["uid"] = uid.clone();
        json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})
    };
    let encoded = data_encoding::BASE64.encode(br#"[{"op": "add", "path": "/a", "value": 1}]"#);
    let cases = [
        (json!({"allowed": true}), true, Ok(0)),
        (json!({"allowed": true, "patch": encoded, "patchType": "JSONPatch"}), true, Ok(1)),
        (
            json!({"allowed": true, "patch": encoded}),
            true,
            Err("webhook returned response.patch but not response.patchType"),
        ),
        (
            json!({"allowed": true, "patchType": "JSONPatch"}),
            true,
            Err("webhook returned response.patchType but not response.patch"),
        ),
        (
            json!({"allowed": true, "patch": encoded, "patchType": "Other"}),
            true,
            Err("unsupported patch type \"Other\""),
        ),
        (
            json!({"allowed": true, "patch": "e30=", "patchType": "JSONPatch"}),
            true,
            Err("received undecodable patch in webhook response"),
        ),
        (
            json!({"allowed": true, "patch": encoded, "patchType": "JSONPatch"}),
            false,
            Err("validating webhook may not return response.patch"),
        ),
    ];
    for (response, mutating, expected) in cases {
        let answer = v1.answered(&review(response.clone()), mutating);
        match expected {
            Ok(count) => assert_eq!(answer.unwrap().patch.len(), count, "{response}"),
            Err(why) => assert!(answer.unwrap_err().contains(why), "{response}"),
        }
    }
    // The older version checks neither the uid nor the patch type.
    let beta = question("v1beta1").unwrap();
    let answer = beta.answered(&json!({"response": {"allowed": true, "patch": encoded}}), true).unwrap();
    assert_eq!(answer.patched(&json!({"metadata": {}})).unwrap(), json!({"metadata": {}, "a": 1}));
    // A patch can make anything of an object; only an object is one.
    let whole = super::review::Answer {
        patch: vec![json!({"op": "replace", "path": "", "value": 5})],
        ..super::review::Answer::default()
    };
    assert_eq!(whole.patched(&json!({"metadata": {}})).unwrap_err().code, 500);
}

#[test]
fn refusals_say_what_the_webhook_said() {
    for (status, code, message) in [
        (json!(null), 400, "admission webhook \"w\" denied the request without explanation"),
        (json!({"reason": "Odd"}), 400, "admission webhook \"w\" denied the request: Odd"),
        (json!({"message": "no", "code": 418}), 418, "admission webhook \"w\" denied the request: no"),
        (json!({"message": "no", "code": 200}), 400, "admission webhook \"w\" denied the request: no"),
    ] {
        let answer = super::review::Answer { result: status, ..super::review::Answer::default() };
        let refusal = answer.refusal("w");
        assert_eq!((refusal.code, refusal.message.as_str()), (code, message));
    }
}
