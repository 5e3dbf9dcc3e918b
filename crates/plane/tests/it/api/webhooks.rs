//! Admission webhooks are called, and their answers count.

use serde_json::{Value, json};

use super::client::{MAPS, World, map};
use super::hooks::{Hook, MUTATING, VALIDATING, allow, configuration, patch, respond};

async fn with_hook(kind: &str, hook: &Hook, extra: Value) -> World {
    let world = World::start().await;
    let (path, name) = if kind.starts_with('V') { (VALIDATING, "check") } else { (MUTATING, "change") };
    let object = configuration(kind, name, &hook.client("/hook"), &extra);
    world.admin.post(path, object).await.expect(201);
    world
}

const VALIDATES: &str = "ValidatingWebhookConfiguration";
const MUTATES: &str = "MutatingWebhookConfiguration";

#[tokio::test]
async fn a_validating_webhook_sees_every_write_and_may_refuse_it() {
    let hook = Hook::start(|review| {
        let color = &review["request"]["object"]["data"]["color"];
        if *color == "red" {
            let status = json!({"code": 403, "message": "no red", "reason": "Forbidden"});
            return respond(review, json!({"allowed": false, "status": status}));
        }
        respond(review, json!({"allowed": true, "warnings": ["green is dull"]}))
    })
    .await;
    let world = with_hook(VALIDATES, &hook, json!({})).await;
    let admin = &world.admin;
    let refused = admin.post(MAPS, map("a", json!({"color": "red"}))).await;
    assert_eq!(refused.body["reason"], "Forbidden");
    refused.refused(403, "admission webhook \"check.example.io\" denied the request: no red");
    let created = admin.post(&format!("{MAPS}?fieldManager=me"), map("a", json!({"color": "green"}))).await;
    assert_eq!(created.headers["warning"], "299 - \"green is dull\"");
    created.expect(201);
    let (path, review) = hook.asked().pop().unwrap();
    assert_eq!(path, "/hook?timeout=5s");
    let request = &review["request"];
    assert_eq!((&review["kind"], &review["apiVersion"]), (&json!("AdmissionReview"), &json!("admission.k8s.io/v1")));
    assert_eq!((&request["operation"], &request["name"]), (&json!("CREATE"), &json!("a")));
    assert_eq!((&request["namespace"], &request["dryRun"]), (&json!("default"), &json!(false)));
    assert_eq!(request["kind"], json!({"group": "", "version": "v1", "kind": "ConfigMap"}));
    assert_eq!(request["requestResource"], json!({"group": "", "version": "v1", "resource": "configmaps"}));
    assert_eq!(request["userInfo"]["username"], "admin");
    let options = json!({"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1", "fieldManager": "me"});
    assert_eq!((&request["options"], &request["oldObject"]), (&options, &Value::Null));
    assert!(
        request["object"]["metadata"]["uid"].is_string() && request["object"]["metadata"]["managedFields"].is_array()
    );
    let changed = admin.patch(&format!("{MAPS}/a"), "merge", json!({"data": {"color": "red"}})).await;
    changed.refused(403, "admission webhook \"check.example.io\" denied the request: no red");
    let asked = hook.asked();
    assert_eq!((asked.len(), &asked[0].1["request"]["operation"]), (1, &json!("UPDATE")));
    assert_eq!(asked[0].1["request"]["oldObject"]["data"]["color"], "green");
    admin.delete(&format!("{MAPS}/a?propagationPolicy=Background")).await.expect(200);
    let (_, review) = hook.asked().pop().unwrap();
    assert_eq!((&review["request"]["operation"], &review["request"]["object"]), (&json!("DELETE"), &Value::Null));
    assert_eq!(review["request"]["oldObject"]["data"]["color"], "green");
    assert_eq!(review["request"]["options"]["propagationPolicy"], "Background");
}

#[tokio::test]
async fn the_plane_waits_for_webhooks_without_keeping_others_waiting() {
    let hook = Hook::start(|review| if review["request"]["name"] == "slow" { None } else { allow(review) }).await;
    let world = with_hook(VALIDATES, &hook, json!({"timeoutSeconds": 2})).await;
    let slow = world.admin.post(MAPS, map("slow", json!({})));
    let quick = async {
        for at in 0..20 {
            world.admin.post(MAPS, map(&format!("quick-{at}"), json!({}))).await.expect(201);
        }
    };
    let (slow, ()) = tokio::join!(slow, quick);
    let why = format!("Post \"{}?timeout=2s\": context deadline exceeded", hook.url("/hook"));
    let why = format!("failed calling webhook \"check.example.io\": failed to call webhook: {why}");
    slow.refused(500, &format!("Internal error occurred: {why}"));
}

#[tokio::test]
async fn the_failure_policy_decides_about_calls_that_fail() {
    let answers: [(u16, &str, &str); 5] = [
        (500, "boom", "an error on the server (\"boom\") has prevented the request from succeeding"),
        (404, "{}", "the server could not find the requested resource"),
        (200, "{", "couldn't get version/kind; json parse error: unexpected end of JSON input"),
        (200, "{}", "Object 'Kind' is missing in '{}'"),
        (302, "elsewhere", "the server responded with the status code 302 but did not return more information"),
    ];
    for (code, body, why) in answers {
        let hook = Hook::start(move |_| Some((code, body.to_owned()))).await;
        let world = with_hook(VALIDATES, &hook, json!({})).await;
        let why = format!("failed calling webhook \"check.example.io\": failed to call webhook: {why}");
        let refused = world.admin.post(MAPS, map("a", json!({}))).await;
        assert_eq!(refused.body["details"], json!({"causes": [{"message": why}]}));
        refused.refused(500, &format!("Internal error occurred: {why}"));
        let lenient = with_hook(VALIDATES, &hook, json!({"failurePolicy": "Ignore"})).await;
        lenient.admin.post(MAPS, map("a", json!({}))).await.expect(201);
    }
}

#[tokio::test]
async fn answers_that_do_not_fit_the_question_are_failures_too() {
    let cases: [(Value, &str); 4] = [
        (json!({"response": {"uid": "other", "allowed": true}}), "expected response.uid="),
        (json!({}), "webhook response was absent"),
        (
            json!({"apiVersion": "admission.k8s.io/v1beta1", "response": {"allowed": true}}),
            "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got admission.k8s.io/v1beta1, Kind=AdmissionReview",
        ),
        (
            json!({"response": {"allowed": true, "patch": "W10=", "patchType": "JSONPatch"}}),
            "validating webhook may not return response.patch",
        ),
    ];
    for (answer, why) in cases {
        let hook = Hook::start(move |review| {
            let mut document = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"});
            for (key, value) in answer.as_object().unwrap() {
                document[key] = value.clone();
            }
            if document["response"].is_object() && document["response"]["uid"].is_null() {
                document["response"]["uid"] = review["request"]["uid"].clone();
            }
            Some((200, document.to_string()))
        })
        .await;
        let world = with_hook(VALIDATES, &hook, json!({})).await;
        let refused = world.admin.post(MAPS, map("a", json!({}))).await;
        let text = refused.body["message"].as_str().unwrap().to_owned();
        let start =
            "Internal error occurred: failed calling webhook \"check.example.io\": received invalid webhook response: ";
        assert!(text.starts_with(&format!("{start}{why}")), "{text}");
    }
}

#[tokio::test]
async fn webhooks_that_cannot_be_reached_or_trusted_are_failures() {
    let hook = Hook::start(allow).await;
    let stranger = Hook::start(allow).await;
    let world = World::start().await;
    let gone = "127.0.0.1:1";
    let untrusted = json!({"url": hook.url("/hook"), "caBundle": stranger.client("/")["caBundle"]});
    let unknown = json!({"url": hook.url("/hook")});
    let verify = "tls: failed to verify certificate: x509: certificate signed by unknown authority";
    let cases = [
        (
            json!({"url": format!("https://{gone}")}),
            format!("Post \"https://{gone}/?timeout=5s\": dial tcp {gone}: connect: connection refused"),
        ),
        (untrusted, format!("Post \"{}?timeout=5s\": {verify}", hook.url("/hook"))),
        (unknown, format!("Post \"{}?timeout=5s\": {verify}", hook.url("/hook"))),
        (
            json!({"service": {"namespace": "default", "name": "hooks", "path": "/x"}}),
            "Post \"https://hooks.default.svc:443/x?timeout=5s\": service \"hooks\" not found".to_owned(),
        ),
    ];
    for (client, why) in cases {
        world.admin.delete(&format!("{VALIDATING}/check")).await;
        world.admin.post(VALIDATING, configuration(VALIDATES, "check", &client, &json!({}))).await.expect(201);
        let why = format!("failed calling webhook \"check.example.io\": failed to call webhook: {why}");
        world.admin.post(MAPS, map("a", json!({}))).await.refused(500, &format!("Internal error occurred: {why}"));
    }
    assert!(hook.asked().is_empty(), "nothing is sent to a server that is not trusted");
}

#[tokio::test]
async fn a_mutating_webhook_changes_what_is_stored() {
    let hook = Hook::start(|review| {
        let object = &review["request"]["object"];
        if object["data"]["bad"].is_string() {
            return patch(review, &json!([{"op": "remove", "path": "/data/missing"}]));
        }
        let label = json!([{"op": "add", "path": "/metadata/labels", "value": {"seen": "yes"}}]);
        patch(review, &label)
    })
    .await;
    let world = with_hook(MUTATES, &hook, json!({})).await;
    let mut object = map("", json!({}));
    object["metadata"] = json!({"generateName": "a-"});
    let stored = world.admin.post(MAPS, object).await.expect(201);
    assert_eq!(stored["metadata"]["labels"], json!({"seen": "yes"}));
    assert!(stored["metadata"]["name"].as_str().unwrap().starts_with("a-") && stored["metadata"]["uid"].is_string());
    let request = hook.asked().pop().unwrap().1["request"].clone();
    // The server has decided nothing yet.
    assert_eq!((&request["name"], &request["object"]["metadata"]["uid"]), (&Value::Null, &Value::Null));
    let refused = world.admin.post(MAPS, map("b", json!({"bad": "1"}))).await;
    refused.refused(500, "Internal error occurred: error in remove for path: '/data/missing': Unable to remove nonexistent key: missing: missing value");
    let dry = world.admin.post(&format!("{MAPS}?dryRun=All"), map("c", json!({}))).await.expect(201);
    assert_eq!(dry["metadata"]["labels"], json!({"seen": "yes"}));
    assert_eq!(hook.asked().pop().unwrap().1["request"]["dryRun"], true);
}

#[tokio::test]
async fn what_webhooks_change_is_validated_and_seen_by_those_that_validate() {
    let hook = Hook::start(|review| {
        if review["request"]["object"]["metadata"]["labels"]["seen"].is_null()
            && review["request"]["object"]["metadata"]["name"] != "w1"
        {
            return patch(review, &json!([{"op": "add", "path": "/spec/size", "value": 500}]));
        }
        patch(review, &json!([{"op": "add", "path": "/spec/size", "value": 5}]))
    })
    .await;
    let world = World::with_widgets().await;
    let rules = json!({"rules": [{"operations": ["CREATE"], "apiGroups": ["example.io"], "apiVersions": ["v1beta1"], "resources": ["widgets"]}]});
    let object = configuration(MUTATES, "change", &hook.client("/hook"), &rules);
    world.admin.post(MUTATING, object).await.expect(201);
    let widgets = "/apis/example.io/v1/namespaces/default/widgets";
    let widget = |name: &str| json!({"apiVersion": "example.io/v1", "kind": "Widget", "metadata": {"name": name}, "spec": {"size": 1}});
    let refused = world.admin.post(widgets, widget("w0")).await;
    assert_eq!((refused.code, refused.body["reason"].as_str()), (422, Some("Invalid")), "{}", refused.text);
    // The rule is about another version: the webhook sees the object in that one.
    let stored = world.admin.post(widgets, widget("w1")).await.expect(201);
    assert_eq!((&stored["spec"]["size"], &stored["apiVersion"]), (&json!(5), &json!("example.io/v1")));
    let request = hook.asked().pop().unwrap().1["request"].clone();
    assert_eq!((&request["kind"]["version"], &request["requestKind"]["version"]), (&json!("v1beta1"), &json!("v1")));
    assert_eq!(request["object"]["apiVersion"], "example.io/v1beta1");
}

#[tokio::test]
async fn webhooks_that_ask_for_it_are_called_again_after_others() {
    let count = |review: &Value, key: &str| {
        let found = review["request"]["object"]["data"][key].as_str().unwrap_or("0").parse::<u32>().unwrap();
        patch(review, &json!([{"op": "add", "path": format!("/data/{key}"), "value": (found + 1).to_string()}]))
    };
    let first = Hook::start(move |review| count(review, "first")).await;
    let second = Hook::start(move |review| count(review, "second")).await;
    let world = World::start().await;
    let again = json!({"reinvocationPolicy": "IfNeeded"});
    world.admin.post(MUTATING, configuration(MUTATES, "a", &first.client(""), &again)).await.expect(201);
    world.admin.post(MUTATING, configuration(MUTATES, "b", &second.client(""), &json!({}))).await.expect(201);
    let stored = world.admin.post(MAPS, map("x", json!({"z": "0"}))).await.expect(201);
    assert_eq!(stored["data"], json!({"first": "2", "second": "1", "z": "0"}));
}

#[tokio::test]
async fn selectors_conditions_and_side_effects_decide_who_is_called() {
    let hook = Hook::start(|review| respond(review, json!({"allowed": false}))).await;
    let selected = json!({
        "namespaceSelector": {"matchLabels": {"hooked": "yes"}}, "objectSelector": {"matchExpressions": [{"key": "skip", "operator": "DoesNotExist"}]},
        "matchConditions": [{"name": "not-kept", "expression": "!object.metadata.name.startsWith('free')"}],
        "sideEffects": "None",
    });
    let world = with_hook(VALIDATES, &hook, selected).await;
    let admin = &world.admin;
    admin.post(MAPS, map("outside", json!({}))).await.expect(201);
    let label = json!({"metadata": {"labels": {"hooked": "yes"}}});
    admin.patch("/api/v1/namespaces/default", "merge", label).await.expect(200);
    let mut skipped = map("skipped", json!({}));
    skipped["metadata"]["labels"] = json!({"skip": "1"});
    admin.post(MAPS, skipped).await.expect(201);
    admin.post(MAPS, map("free", json!({}))).await.expect(201);
    assert!(hook.asked().is_empty());
    let denied = "admission webhook \"check.example.io\" denied the request without explanation";
    admin.post(MAPS, map("caught", json!({}))).await.refused(400, denied);
    // A condition that fails is decided by the failure policy.
    let broken =
        json!([{"op": "replace", "path": "/webhooks/0/matchConditions/0/expression", "value": "object.spec.x == 1"}]);
    admin.patch(&format!("{VALIDATING}/check"), "json", broken).await.expect(200);
    let why = "expression 'object.spec.x == 1' resulted in error: no such key: spec";
    admin
        .post(MAPS, map("caught", json!({})))
        .await
        .refused(403, &format!("configmaps \"caught\" is forbidden: {why}"));
    // Without its configuration nobody is called any more.
    admin.delete(&format!("{VALIDATING}/check")).await.expect(200);
    admin.post(MAPS, map("caught", json!({}))).await.expect(201);
}

#[tokio::test]
async fn configurations_are_checked() {
    let world = World::start().await;
    let client = json!({"url": "http://example.io/x?y=1"});
    let wrong = json!({
        "name": "short.name", "sideEffects": "Some", "timeoutSeconds": 31, "admissionReviewVersions": ["v2"],
        "rules": [{"operations": ["PATCH"], "apiGroups": [], "apiVersions": ["*", "v1"], "resources": ["*", "pods"]}],
        "matchConditions": [{"name": "x", "expression": "nope"}],
    });
    let refused = world.admin.post(VALIDATING, configuration(VALIDATES, "check", &client, &wrong)).await;
    assert_eq!(refused.code, 422);
    let causes = refused.body["details"]["causes"].as_array().unwrap().clone();
    let reported: Vec<String> = causes
        .iter()
        .map(|cause| format!("{}: {}", cause["field"].as_str().unwrap(), cause["message"].as_str().unwrap()))
        .collect();
    assert_eq!(
        reported,
        [
            "webhooks[0].name: Invalid value: \"short.name\": should be a domain with at least three segments separated by dots",
            "webhooks[0].rules[0].operations[0]: Unsupported value: \"PATCH\": supported values: \"*\", \"CONNECT\", \"CREATE\", \"DELETE\", \"UPDATE\"",
            "webhooks[0].rules[0].apiGroups: Required value",
            "webhooks[0].rules[0].apiVersions: Invalid value: [\"*\",\"v1\"]: if '*' is present, must not specify other API versions",
            "webhooks[0].rules[0].resources: Invalid value: [\"*\",\"pods\"]: if '*' is present, must not specify other resources without subresources",
            "webhooks[0].sideEffects: Unsupported value: \"Some\": supported values: \"None\", \"NoneOnDryRun\"",
            "webhooks[0].timeoutSeconds: Invalid value: 31: the timeout value must be between 1 and 30 seconds",
            "webhooks[0].clientConfig.url: Invalid value: \"http\": 'https' is the only allowed URL scheme; desired format: https://host[/path]",
            "webhooks[0].clientConfig.url: Invalid value: \"y=1\": query parameters are not permitted in the URL",
            "webhooks[0].matchConditions[0].expression: Invalid value: \"nope\": compilation failed: ERROR: <input>:1:1: undeclared reference to 'nope' (in container '')\n | nope\n | ^",
            "webhooks[0].admissionReviewVersions: Invalid value: [\"v2\"]: must include at least one of v1, v1beta1",
        ]
    );
    let stored =
        world.admin.post(MUTATING, configuration(MUTATES, "change", &json!({"url": "https://x.io"}), &json!({}))).await;
    let stored = stored.expect(201);
    let hook = &stored["webhooks"][0];
    assert_eq!((&hook["failurePolicy"], &hook["matchPolicy"]), (&json!("Fail"), &json!("Equivalent")));
    assert_eq!((&hook["reinvocationPolicy"], &hook["rules"][0]["scope"]), (&json!("Never"), &json!("*")));
    assert_eq!((&hook["objectSelector"], &stored["metadata"]["generation"]), (&json!({}), &json!(1)));
}
