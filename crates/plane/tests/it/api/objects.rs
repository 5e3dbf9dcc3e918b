use serde_json::json;

use super::client::{MAPS, WIDGETS, World, map, widget};

#[tokio::test]
async fn a_created_object_gets_what_the_server_decides() {
    let world = World::with_widgets().await;
    let mut sent = widget("w1", json!({"size": 3}));
    sent["status"] = json!({"size": 9});
    sent["metadata"]["uid"] = "mine".into();
    let made = world.admin.post(WIDGETS, sent).await.expect(201);
    assert_eq!(made["spec"], json!({"size": 3, "color": "red"}));
    assert_eq!(made["metadata"]["generation"], 1);
    assert_eq!(made["metadata"]["namespace"], "default");
    assert_ne!(made["metadata"]["uid"], "mine");
    assert!(made.get("status").is_none());
    assert_eq!(world.admin.get(&format!("{WIDGETS}/w1")).await.expect(200), made);
}

#[tokio::test]
async fn refusals_are_worded_as_in_kubernetes() {
    let world = World::with_widgets().await;
    let client = &world.admin;
    let made = client.post(WIDGETS, widget("w1", json!({"size": 1}))).await.expect(201);
    client
        .post(WIDGETS, widget("w1", json!({"size": 1})))
        .await
        .refused(409, "widgets.example.io \"w1\" already exists");
    client.get(&format!("{WIDGETS}/nope")).await.refused(404, "widgets.example.io \"nope\" not found");
    client.get("/api/v1/namespaces/default/secrets/s2").await.refused(404, "secrets \"s2\" not found");
    client
        .post("/api/v1/namespaces/nons/configmaps", map("a", json!({})))
        .await
        .refused(404, "namespaces \"nons\" not found");
    let mut stale = made.clone();
    stale["metadata"]["resourceVersion"] = "1".into();
    client.put(&format!("{WIDGETS}/w1"), stale).await.refused(
        409,
        "Operation cannot be fulfilled on widgets.example.io \"w1\": the object has been modified; please apply your changes to the \
         latest version and try again",
    );
    client.put(&format!("{WIDGETS}/w1"), widget("w1", json!({"size": 2}))).await.refused(
        422,
        "widgets.example.io \"w1\" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update",
    );
    client
        .put(&format!("{WIDGETS}/w1"), widget("a", json!({"size": 2})))
        .await
        .refused(400, "the name of the object (a) does not match the name on the URL (w1)");
    let mut kind = widget("a", json!({"size": 2}));
    kind["kind"] = "Widgetx".into();
    client
        .post(WIDGETS, kind)
        .await
        .refused(422, "Widgetx.example.io \"a\" is invalid: kind: Invalid value: \"Widgetx\": must be Widget");
    let mut elsewhere = map("a", json!({}));
    elsewhere["metadata"]["namespace"] = "other".into();
    client
        .post(MAPS, elsewhere)
        .await
        .refused(400, "the namespace of the provided object does not match the namespace sent on the request");
    let mut versioned = map("a", json!({}));
    versioned["metadata"]["resourceVersion"] = "5".into();
    client.post(MAPS, versioned).await.refused(500, "resourceVersion should not be set on objects to be created");
    client
        .delete("/api/v1/namespaces/default")
        .await
        .refused(403, "namespaces \"default\" is forbidden: this namespace may not be deleted");
}

#[tokio::test]
async fn a_write_without_change_keeps_the_resource_version() {
    let world = World::with_widgets().await;
    let made = world.admin.post(WIDGETS, widget("w1", json!({"size": 1}))).await.expect(201);
    let path = format!("{WIDGETS}/w1");
    let again = world.admin.put(&path, made.clone()).await.expect(200);
    assert_eq!(again, made);
    let patched = world.admin.patch(&path, "merge", json!({"spec": {"size": 1}})).await.expect(200);
    assert_eq!(patched, made);
}

#[tokio::test]
async fn generation_counts_changes_of_the_spec_only() {
    let world = World::with_widgets().await;
    world.admin.post(WIDGETS, widget("w1", json!({"size": 1}))).await.expect(201);
    let path = format!("{WIDGETS}/w1");
    for (patch, subresource, generation) in [
        (json!({"spec": {"size": 2}}), "", 2),
        (json!({"metadata": {"labels": {"a": "b"}}}), "", 2),
        (json!({"status": {"size": 2}, "spec": {"size": 7}}), "/status", 2),
        (json!({"status": {"size": 9}}), "", 2),
        (json!({"spec": {"color": null}}), "", 2),
        (json!({"spec": {"color": "green"}}), "", 3),
    ] {
        let answer = world.admin.patch(&format!("{path}{subresource}"), "merge", patch.clone()).await.expect(200);
        assert_eq!(answer["metadata"]["generation"], generation, "{patch}");
    }
    let last = world.admin.get(&path).await.expect(200);
    assert_eq!((&last["status"]["size"], &last["spec"]["size"]), (&json!(2), &json!(2)));
}

#[tokio::test]
async fn patches_of_all_kinds_change_objects() {
    let world = World::with_widgets().await;
    let client = &world.admin;
    client.post(WIDGETS, widget("w1", json!({"size": 1}))).await.expect(201);
    client.post(MAPS, map("m1", json!({"a": "1"}))).await.expect(201);
    let (path, map_path) = (format!("{WIDGETS}/w1"), format!("{MAPS}/m1"));
    let replaced =
        client.patch(&path, "json", json!([{"op": "replace", "path": "/spec/size", "value": 5}])).await.expect(200);
    assert_eq!(replaced["spec"]["size"], 5);
    // A test for null passes where there is nothing: that is how clients add the first finalizer.
    let first = json!([
        {"op": "test", "path": "/metadata/finalizers", "value": null},
        {"op": "add", "path": "/metadata/finalizers", "value": ["example.com/keep"]},
    ]);
    client.patch(&path, "json", first.clone()).await.expect(200);
    client.patch(&path, "json", first).await.expect(422);
    let missing = json!([{"op": "test", "path": "/nothing/here", "value": null}]);
    client.patch(&path, "json", missing).await.expect(422);
    client.patch(&path, "json", json!([{"op": "remove", "path": "/metadata/finalizers"}])).await.expect(200);
    client
        .patch(&path, "json", json!([{"op": "test", "path": "/spec/size", "value": 6}]))
        .await
        .refused(422, "the server rejected our request due to an error in our request");
    client.patch(&path, "strategic-merge", json!({"spec": {"size": 6}})).await.refused(
        415,
        "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, \
         application/merge-patch+json, application/apply-patch+yaml",
    );
    let data = client.patch(&map_path, "strategic-merge", json!({"data": {"b": "2", "a": null}})).await.expect(200);
    assert_eq!(data["data"], json!({"b": "2"}));
    client.patch(&map_path, "nonsense", json!({})).await.expect(415);
    client.patch(&map_path, "merge", json!([1])).await.expect(400);
    client.patch(&format!("{MAPS}/nope"), "merge", json!({})).await.expect(404);
}

#[tokio::test]
async fn racing_patches_are_all_applied() {
    let world = World::start().await;
    world.admin.post(MAPS, map("m", json!({}))).await.expect(201);
    let calls = (0..20).map(|number| {
        let client = world.admin.clone();
        async move {
            let key = format!("k{number}");
            client.patch(&format!("{MAPS}/m"), "merge", json!({"data": {key: "x"}})).await.expect(200)
        }
    });
    futures::future::join_all(calls).await;
    let map = world.admin.get(&format!("{MAPS}/m")).await.expect(200);
    assert_eq!(map["data"].as_object().unwrap().len(), 20);
}

#[tokio::test]
async fn unknown_fields_warn_or_fail() {
    let world = World::with_widgets().await;
    let body = widget("w1", json!({"size": 1, "bogus": 1}));
    let warned = world.admin.post(&format!("{WIDGETS}?dryRun=All"), body.clone()).await;
    assert_eq!(warned.headers["warning"], "299 - \"unknown field \\\"spec.bogus\\\"\"");
    let made = warned.expect(201);
    assert!(made["spec"].get("bogus").is_none());
    assert!(made["metadata"].get("resourceVersion").is_none());
    let quiet = world.admin.post(&format!("{WIDGETS}?dryRun=All&fieldValidation=Ignore"), body.clone()).await;
    assert!(!quiet.headers.contains_key("warning"));
    world.admin.post(&format!("{WIDGETS}?fieldValidation=Strict"), body).await.refused(
        400,
        "Widget in version \"v1\" cannot be handled as a Widget: strict decoding error: unknown field \"spec.bogus\"",
    );
    let twice = br#"{"apiVersion":"example.io/v1","kind":"Widget","metadata":{"name":"a"},"spec":{"size":1,"size":2}}"#;
    let headers = [("content-type", "application/json")];
    let answer = world.admin.call("POST", &format!("{WIDGETS}?fieldValidation=Strict"), &headers, twice.to_vec()).await;
    answer.refused(
        400,
        "Widget in version \"v1\" cannot be handled as a Widget: strict decoding error: duplicate field \"spec.size\"",
    );
    world.admin.get(&format!("{WIDGETS}/w1")).await.expect(404);
}

#[tokio::test]
async fn generated_names_are_unique() {
    let world = World::start().await;
    let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "gen-"}});
    let one = world.admin.post(MAPS, body.clone()).await.expect(201);
    let two = world.admin.post(MAPS, body).await.expect(201);
    let name = one["metadata"]["name"].as_str().unwrap();
    assert!(name.starts_with("gen-") && name.len() == 9, "{name}");
    assert_ne!(one["metadata"]["name"], two["metadata"]["name"]);
}

#[tokio::test]
async fn secrets_fold_their_string_data() {
    let world = World::start().await;
    let path = "/api/v1/namespaces/default/secrets";
    let body = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"a": "b"}});
    let made = world.admin.post(path, body).await.expect(201);
    assert_eq!((&made["data"], &made["type"]), (&json!({"a": "Yg=="}), &json!("Opaque")));
    assert!(made.get("stringData").is_none());
    world
        .admin
        .patch(&format!("{path}/s"), "merge", json!({"type": "other"}))
        .await
        .refused(422, "Secret \"s\" is invalid: type: Invalid value: \"other\": field is immutable");
}

#[tokio::test]
async fn both_event_groups_show_the_same_events() {
    let world = World::start().await;
    let body = json!({
        "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "e"}, "note": "hello", "reason": "R",
        "type": "Normal", "regarding": {"kind": "Pod", "name": "p"}, "reportingController": "c",
    });
    world.admin.post("/apis/events.k8s.io/v1/namespaces/default/events", body).await.expect(201);
    let core = world.admin.get("/api/v1/namespaces/default/events/e").await.expect(200);
    assert_eq!(
        (&core["apiVersion"], &core["message"], &core["involvedObject"]["name"]),
        (&json!("v1"), &json!("hello"), &json!("p"))
    );
    let other = world.admin.get("/apis/events.k8s.io/v1/namespaces/default/events/e").await.expect(200);
    assert_eq!((&other["note"], &other["apiVersion"]), (&json!("hello"), &json!("events.k8s.io/v1")));
    let selected =
        world.admin.get("/api/v1/namespaces/default/events?fieldSelector=involvedObject.name%3Dp").await.expect(200);
    assert_eq!(selected["items"].as_array().unwrap().len(), 1);
}
