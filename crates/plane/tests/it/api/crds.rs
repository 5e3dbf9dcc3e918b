use serde_json::{Value, json};

use super::client::{WIDGETS, World, widget, widget_crd};
use super::hooks::{Hook, VALIDATING, allow, configuration};

type Break = fn(&mut Value);

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

#[tokio::test]
async fn a_crd_is_established_and_served_at_once() {
    let world = World::start().await;
    let crd = world.admin.post(CRDS, widget_crd()).await.expect(201);
    assert_eq!(crd["spec"]["names"]["listKind"], "WidgetList");
    assert_eq!(crd["status"]["storedVersions"], json!(["v1"]));
    let conditions = crd["status"]["conditions"].as_array().unwrap();
    assert!(conditions.iter().all(|one| one["status"] == "True"), "{conditions:?}");
    let found = world.admin.get("/apis/example.io/v1").await.expect(200);
    let names: Vec<&str> =
        found["resources"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["widgets", "widgets/status", "widgets/scale"]);
    let group = world.admin.get("/apis/example.io").await.expect(200);
    assert_eq!(group["preferredVersion"]["version"], "v1");
    assert_eq!(world.admin.get("/apis/nope.io/v1").await.code, 404);
    assert_eq!(world.admin.get("/apis/nope.io").await.text, "404 page not found\n");
}

#[tokio::test]
async fn of_two_crds_that_come_at_one_moment_with_one_kind_a_single_one_is_established() {
    let hook =
        Hook::start(|review| if review["request"]["name"] == "widgets.example.io" { None } else { allow(review) });
    let hook = hook.await;
    let world = World::start().await;
    let rules =
        json!([{"apiGroups": ["apiextensions.k8s.io"], "apiVersions": ["*"], "resources": ["*"], "operations": ["*"]}]);
    let extra = json!({"rules": rules, "timeoutSeconds": 1, "failurePolicy": "Ignore"});
    let check = configuration("ValidatingWebhookConfiguration", "check", &hook.client("/hook"), &extra);
    world.admin.post(VALIDATING, check).await.expect(201);
    let mut second = widget_crd();
    second["metadata"]["name"] = json!("gadgets.example.io");
    second["spec"]["names"] = json!({"plural": "gadgets", "kind": "Widget"});
    // The first has been prepared, and waits for the webhook, while the second is stored.
    let later = async {
        while hook.asked().is_empty() {
            tokio::task::yield_now().await;
        }
        world.admin.post(CRDS, second).await.expect(201)
    };
    let (first, second) = tokio::join!(world.admin.post(CRDS, widget_crd()), later);
    let established = |crd: &Value| {
        let conditions = crd["status"]["conditions"].as_array().unwrap();
        conditions.iter().any(|one| one["type"] == "Established" && one["status"] == "True")
    };
    let first = first.expect(201);
    assert!(established(&second) && !established(&first), "{first} {second}");
}

#[tokio::test]
async fn invalid_objects_are_refused_with_all_their_faults() {
    let world = World::with_widgets().await;
    let unchecked = "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the \
                     existing errors to complete validation";
    let cases: Vec<(Value, String)> = vec![
        (json!({}), format!("[spec.size: Required value, {unchecked}]")),
        (
            json!({"size": "x"}),
            format!(
                "[.spec.size: Invalid value: 0: .spec.size accessor error: x is of the type string, expected int64, \
                 spec.size: Invalid value: \"string\": spec.size in body must be of type integer: \"string\", {unchecked}]"
            ),
        ),
        (
            json!({"size": 0}),
            "spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1".into(),
        ),
        (
            json!({"size": 1, "color": "blue"}),
            format!("[spec.color: Unsupported value: \"blue\": supported values: \"red\", \"green\", {unchecked}]"),
        ),
        (
            json!({"size": 1, "fixed": "A"}),
            "spec.fixed: Invalid value: \"A\": spec.fixed in body should match '^[a-z]*$'".into(),
        ),
        (
            json!({"size": 1, "fixed": "abcdef"}),
            format!("[spec.fixed: Too long: may not be more than 5 bytes, {unchecked}]"),
        ),
        (json!({"size": 1, "tags": ["a", "a"]}), "spec.tags[1]: Duplicate value: \"a\"".into()),
        (
            json!({"size": 1, "ports": [{"name": "a"}, {"name": "a"}]}),
            "spec.ports[1]: Duplicate value: {\"name\":\"a\"}".into(),
        ),
        (json!({"size": 101}), "spec: Invalid value: \"object\": size is too big".into()),
    ];
    for (spec, expected) in cases {
        let answer = world.admin.post(WIDGETS, widget("w", spec.clone())).await;
        answer.refused(422, &format!("Widget.example.io \"w\" is invalid: {expected}"));
    }
    world
        .admin
        .post(WIDGETS, widget("w", json!({"size": 1, "fixed": "a", "free": {"any": ["thing"]}})))
        .await
        .expect(201);
    world
        .admin
        .patch(&format!("{WIDGETS}/w"), "merge", json!({"spec": {"fixed": "b"}}))
        .await
        .refused(422, "Widget.example.io \"w\" is invalid: spec: Invalid value: \"object\": fixed is immutable");
}

#[tokio::test]
async fn versions_share_their_objects() {
    let world = World::with_widgets().await;
    world.admin.post(WIDGETS, widget("w1", json!({"size": 1}))).await.expect(201);
    let answer = world.admin.get("/apis/example.io/v1beta1/namespaces/default/widgets").await;
    assert_eq!(
        answer.headers["warning"],
        "299 - \"example.io/v1beta1 Widget is deprecated; use example.io/v1 Widget\""
    );
    assert_eq!(answer.expect(200)["items"][0]["apiVersion"], "example.io/v1beta1");
    assert_eq!(world.admin.get("/apis/example.io/v2/namespaces/default/widgets").await.code, 404);
}

#[tokio::test]
async fn another_storage_version_is_added_to_those_that_were_stored() {
    let world = World::start().await;
    let mut crd = world.admin.post(CRDS, widget_crd()).await.expect(201);
    let mut added = crd["spec"]["versions"][0].clone();
    crd["spec"]["versions"][0]["storage"] = false.into();
    added["name"] = "v9".into();
    crd["spec"]["versions"].as_array_mut().unwrap().push(added);
    crd["spec"]["names"]["shortNames"] = json!(["wd"]);
    let path = format!("{CRDS}/{}", crd["metadata"]["name"].as_str().unwrap());
    let updated = world.admin.put(&path, crd).await.expect(200);
    assert_eq!(updated["status"]["storedVersions"], json!(["v1", "v9"]));
    assert_eq!(updated["status"]["acceptedNames"]["shortNames"], json!(["wd"]));
    assert_eq!(world.admin.get("/apis/example.io/v9/namespaces/default/widgets").await.code, 200);
}

#[tokio::test]
async fn a_default_added_later_shows_on_old_objects() {
    let world = World::with_widgets().await;
    world.admin.post(WIDGETS, widget("w1", json!({"size": 1}))).await.expect(201);
    let path = format!("{CRDS}/widgets.example.io");
    let mut crd = world.admin.get(&path).await.expect(200);
    for version in crd["spec"]["versions"].as_array_mut().unwrap() {
        version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["extra"] =
            json!({"type": "string", "default": "e"});
    }
    world.admin.put(&path, crd).await.expect(200);
    let object = world.admin.get(&format!("{WIDGETS}/w1")).await.expect(200);
    assert_eq!(object["spec"]["extra"], "e");
}

#[tokio::test]
async fn faulty_crds_are_refused() {
    let world = World::start().await;
    let cases: Vec<(Break, &str)> = vec![
        (
            |crd| crd["metadata"]["name"] = "x.example.io".into(),
            "metadata.name: Invalid value: \"x.example.io\": must be spec.names.plural+\".\"+spec.group",
        ),
        (
            |crd| crd["spec"]["versions"][0]["storage"] = false.into(),
            "must have exactly one version marked as storage version",
        ),
        (
            |crd| {
                for version in crd["spec"]["versions"].as_array_mut().unwrap() {
                    version["schema"]["openAPIV3Schema"]["properties"]["spec"]["type"] = Value::Null;
                }
            },
            "spec.validation.openAPIV3Schema.properties[spec].type: Required value: must not be empty for specified object fields",
        ),
        (
            |crd| {
                crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["x-kubernetes-validations"] =
                    json!([{"rule": "self +"}]);
            },
            "compilation failed: ERROR: <input>:1:7: Syntax error: mismatched input '<EOF>' expecting",
        ),
        (
            |crd| {
                for version in crd["spec"]["versions"].as_array_mut().unwrap() {
                    version["schema"]["openAPIV3Schema"]["properties"]["spec"]["x-kubernetes-validations"] =
                        json!([{"rule": "self.sise > 1"}]);
                }
            },
            "spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule: Invalid value: \
             {\"Rule\":\"self.sise \\u003e 1\",\"Message\":\"\",\"MessageExpression\":\"\",\"Reason\":null,\
             \"FieldPath\":\"\",\"OptionalOldSelf\":null}: compilation failed: ERROR: <input>:1:5: undefined field 'sise'\n \
             | self.sise > 1\n | ....^",
        ),
        (
            |crd| crd["spec"]["scope"] = "Galaxy".into(),
            "spec.scope: Unsupported value: \"Galaxy\": supported values: \"Cluster\", \"Namespaced\"",
        ),
        (|crd| crd["spec"] = Value::Null, "spec.names.plural: Required value, spec.names.singular: Required value"),
    ];
    for (broken, expected) in cases {
        let mut crd = widget_crd();
        broken(&mut crd);
        let answer = world.admin.post(CRDS, crd).await;
        let message = answer.body["message"].as_str().unwrap_or_default().to_owned();
        assert!(answer.code == 422 && message.contains(expected), "{} {message}", answer.code);
    }
}

#[tokio::test]
async fn names_in_use_keep_a_crd_from_being_established() {
    let world = World::with_widgets().await;
    let mut other = widget_crd();
    other["metadata"]["name"] = "gadgets.example.io".into();
    other["spec"]["names"] = json!({"plural": "gadgets", "kind": "Gadget", "shortNames": ["wd"]});
    let crd = world.admin.post(CRDS, other).await.expect(201);
    let conditions = &crd["status"]["conditions"];
    assert_eq!(
        (&conditions[0]["reason"], &conditions[0]["message"]),
        (&json!("ShortNamesConflict"), &json!("\"wd\" is already in use"))
    );
    assert_eq!((&conditions[1]["status"], &conditions[1]["reason"]), (&json!("False"), &json!("NotAccepted")));
}

#[tokio::test]
async fn deleting_a_crd_deletes_its_objects() {
    let world = World::with_widgets().await;
    let mut held = widget("w1", json!({"size": 1}));
    held["metadata"]["finalizers"] = json!(["example.io/hold"]);
    world.admin.post(WIDGETS, held).await.expect(201);
    let path = format!("{CRDS}/widgets.example.io");
    world.admin.delete(&path).await.expect(200);
    world.admin.until(&path, |answer| answer.text.contains("InstanceDeletionInProgress")).await;
    world
        .admin
        .post(WIDGETS, widget("w2", json!({"size": 1})))
        .await
        .refused(405, "create not allowed while custom resource definition is terminating");
    world.admin.patch(&format!("{WIDGETS}/w1"), "merge", json!({"metadata": {"finalizers": []}})).await.expect(200);
    world.admin.until(&path, |answer| answer.code == 404).await;
    assert_eq!(world.admin.get(WIDGETS).await.text, "404 page not found\n");
}

#[tokio::test]
async fn the_scale_subresource_maps_replicas() {
    let world = World::with_widgets().await;
    world.admin.post(WIDGETS, widget("w1", json!({"size": 2}))).await.expect(201);
    let path = format!("{WIDGETS}/w1/scale");
    let mut scale = world.admin.get(&path).await.expect(200);
    assert_eq!((&scale["kind"], &scale["spec"]["replicas"]), (&json!("Scale"), &json!(2)));
    scale["spec"]["replicas"] = 5.into();
    world.admin.put(&path, scale).await.expect(200);
    assert_eq!(world.admin.get(&format!("{WIDGETS}/w1")).await.expect(200)["spec"]["size"], 5);
}

#[tokio::test]
async fn openapi_describes_custom_kinds() {
    let world = World::with_widgets().await;
    let index = world.admin.get("/openapi/v3").await.expect(200);
    let url = index["paths"]["apis/example.io/v1"]["serverRelativeURL"].as_str().unwrap().to_owned();
    let document = world.admin.get(&url).await.expect(200);
    let schema = &document["components"]["schemas"]["io.example.v1.Widget"];
    assert_eq!(schema["properties"]["spec"]["properties"]["color"]["default"], "red");
    assert_eq!(schema["x-kubernetes-group-version-kind"][0]["kind"], "Widget");
    let patch = &document["paths"]["/apis/example.io/v1/namespaces/{namespace}/widgets/{name}"]["patch"];
    assert!(patch["parameters"].to_string().contains("fieldValidation"));
    assert_eq!(world.admin.get("/openapi/v3/apis/example.io/v1?hash=WRONG").await.code, 301);
    assert_eq!(world.admin.get("/openapi/v3/apis/nope/v1").await.code, 404);
}
