use serde_json::{Value, json};

use super::client::{Client, MAPS, WIDGETS, World, map, widget};

async fn apply(client: &Client, manager: &str, force: bool, body: Value) -> super::client::Answer {
    let name = body["metadata"]["name"].as_str().unwrap().to_owned();
    client.patch(&format!("{WIDGETS}/{name}?fieldManager={manager}&force={force}"), "apply", body).await
}

fn fields(object: &Value, manager: &str) -> Value {
    let list = object["metadata"]["managedFields"].as_array().unwrap();
    list.iter().find(|entry| entry["manager"] == manager).map_or(Value::Null, |entry| entry["fieldsV1"].clone())
}

#[tokio::test]
async fn applying_creates_and_then_changes_nothing() {
    let world = World::with_widgets().await;
    let first = apply(&world.admin, "m1", false, widget("w", json!({"size": 1}))).await.expect(201);
    assert_eq!(fields(&first, "m1"), json!({"f:spec": {"f:size": {}}}));
    assert_eq!(first["spec"]["color"], "red");
    let second = apply(&world.admin, "m1", false, widget("w", json!({"size": 1}))).await.expect(200);
    assert_eq!(first, second);
}

#[tokio::test]
async fn fields_no_longer_applied_are_removed_unless_others_own_them() {
    let world = World::with_widgets().await;
    let client = &world.admin;
    apply(
        client,
        "m1",
        false,
        widget("w", json!({"size": 1, "fixed": "a", "tags": ["x", "y"], "ports": [{"name": "p", "port": 1}]})),
    )
    .await
    .expect(201);
    apply(
        client,
        "m2",
        false,
        widget("w", json!({"size": 1, "tags": ["y", "z"], "ports": [{"name": "q", "port": 2}]})),
    )
    .await
    .expect(200);
    let last =
        apply(client, "m1", false, widget("w", json!({"size": 1, "ports": [{"name": "r", "port": 3}], "fixed": "a"})))
            .await
            .expect(200);
    assert_eq!(
        last["spec"],
        json!({"size": 1, "color": "red", "fixed": "a", "tags": ["y", "z"], "ports": [{"name": "q", "port": 2}, {"name": "r", "port": 3}]})
    );
}

#[tokio::test]
async fn conflicts_are_refused_or_forced() {
    let world = World::with_widgets().await;
    let client = &world.admin;
    apply(client, "m1", false, widget("w", json!({"size": 1}))).await.expect(201);
    let refused = apply(client, "m2", false, widget("w", json!({"size": 2}))).await;
    assert_eq!(
        refused.body["details"]["causes"][0],
        json!({"reason": "FieldManagerConflict", "message": "conflict with \"m1\"", "field": ".spec.size"})
    );
    refused.refused(409, "Apply failed with 1 conflict: conflict with \"m1\": .spec.size");
    let forced = apply(client, "m2", true, widget("w", json!({"size": 2}))).await.expect(200);
    assert_eq!(fields(&forced, "m1"), Value::Null);
    assert_eq!(forced["spec"]["size"], 2);
    let shared = apply(client, "m3", false, widget("w", json!({"size": 2}))).await.expect(200);
    assert_eq!(fields(&shared, "m2"), fields(&shared, "m3"));
}

#[tokio::test]
async fn an_empty_map_that_is_not_stored_belongs_to_whoever_applied_it() {
    let world = World::with_widgets().await;
    let apply = async |manager: &str, force: bool, more: Value| {
        let mut body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}});
        for (key, value) in more.as_object().unwrap() {
            body[key] = value.clone();
        }
        let path = format!("{MAPS}/m?fieldManager={manager}&force={force}");
        world.admin.patch(&path, "apply", body).await
    };
    let first = apply("m1", false, json!({"data": {}})).await.expect(201);
    assert_eq!((&first["data"], fields(&first, "m1")), (&Value::Null, json!({"f:data": {}})));
    for data in [json!({"k": "1"}), json!({})] {
        let message = "Apply failed with 1 conflict: conflict with \"m1\": .data";
        apply("m2", false, json!({"data": data})).await.refused(409, message);
    }
    apply("m1", false, json!({"data": {}})).await.expect(200);
    let forced = apply("m2", true, json!({"data": {"k": "1"}})).await.expect(200);
    assert_eq!((fields(&forced, "m1"), fields(&forced, "m2")), (Value::Null, json!({"f:data": {"f:k": {}}})));
}

#[tokio::test]
async fn updates_take_ownership_of_what_they_change() {
    let world = World::with_widgets().await;
    let client = &world.admin;
    apply(client, "m1", false, widget("w", json!({"size": 1}))).await.expect(201);
    let path = format!("{WIDGETS}/w");
    let patched =
        client.patch(&format!("{path}?fieldManager=p"), "merge", json!({"spec": {"size": 5}})).await.expect(200);
    assert_eq!(fields(&patched, "p"), json!({"f:spec": {"f:size": {}}}));
    assert_eq!(fields(&patched, "m1"), Value::Null);
    let status = client
        .patch(&format!("{path}/status?fieldManager=s"), "merge", json!({"status": {"size": 1}}))
        .await
        .expect(200);
    assert_eq!(fields(&status, "s"), json!({"f:status": {".": {}, "f:size": {}}}));
    let refused = apply(client, "m1", false, widget("w", json!({"size": 1}))).await;
    let message = refused.body["message"].as_str().unwrap();
    assert_eq!(message, "Apply failed with 1 conflict: conflict with \"p\" using example.io/v1: .spec.size");
}

#[tokio::test]
async fn malformed_configurations_are_refused() {
    let world = World::with_widgets().await;
    let client = &world.admin;
    let path = format!("{WIDGETS}/w");
    client.patch(&path, "apply", widget("w", json!({"size": 1}))).await.refused(
        422,
        "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for apply patch",
    );
    let mut managed = widget("w", json!({"size": 1}));
    managed["metadata"]["managedFields"] = json!([{}]);
    client
        .patch(&format!("{path}?fieldManager=m"), "apply", managed)
        .await
        .refused(400, "metadata.managedFields must be nil");
    client.patch(&format!("{path}?fieldManager=m"), "apply", map("w", json!({}))).await.expect(400);
    client.patch(&format!("{path}/status?fieldManager=m"), "apply", widget("w", json!({}))).await.expect(404);
}

#[tokio::test]
async fn built_in_kinds_can_be_applied_too() {
    let world = World::start().await;
    let path = format!("{MAPS}/m?fieldManager=a");
    world.admin.post(&format!("{MAPS}?fieldManager=c"), map("m", json!({"x": "1"}))).await.expect(201);
    world.admin.patch(&path, "apply", map("m", json!({"y": "1"}))).await.expect(200);
    let last = world.admin.patch(&path, "apply", map("m", json!({"z": "1"}))).await.expect(200);
    assert_eq!(last["data"], json!({"x": "1", "z": "1"}));
}

#[tokio::test]
async fn yaml_has_no_control_characters() {
    let world = World::with_widgets().await;
    let headers = [("content-type", "application/apply-patch+yaml")];
    let path = format!("{WIDGETS}/w?fieldManager=m1");
    for character in ['\u{7f}', '\u{80}', '\u{9f}', '\u{fffe}', '\u{ffff}'] {
        let sent = widget("w", json!({"size": 1, "free": {"text": format!("a{character}b")}})).to_string();
        let answer = world.admin.call("PATCH", &path, &headers, sent.clone().into()).await;
        let why = "error decoding YAML: error converting YAML to JSON: yaml: control characters are not allowed";
        answer.refused(400, why);
        let escaped = sent.replace(character, &format!("\\u{:04x}", u32::from(character)));
        let applied = world.admin.call("PATCH", &path, &headers, escaped.into()).await.body;
        assert_eq!(applied["spec"]["free"]["text"], format!("a{character}b"));
    }
}

#[tokio::test]
async fn long_keys_of_applied_objects_are_named_as_keys() {
    let world = World::with_widgets().await;
    let headers = [("content-type", "application/apply-patch+yaml")];
    let path = format!("{WIDGETS}/w?fieldManager=m1");
    let key = "k".repeat(1100);
    let sent = widget("w", json!({"size": 1, "free": {"a": 1, key.clone(): 2}})).to_string();
    let answer = world.admin.call("PATCH", &path, &headers, sent.clone().into()).await;
    let why = "error decoding YAML: error converting YAML to JSON: yaml: did not find expected ',' or '}'";
    answer.refused(400, why);
    let named = sent.replace(&format!("\"{key}\""), &format!("? \"{key}\""));
    let applied = world.admin.call("PATCH", &path, &headers, named.into()).await.expect(201);
    assert_eq!(applied["spec"]["free"][&key], 2);
}
