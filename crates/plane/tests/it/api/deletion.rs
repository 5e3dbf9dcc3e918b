use serde_json::{Value, json};

use super::client::{MAPS, WIDGETS, World, map, widget};

fn owned_by(owner: &Value, mut object: Value, block: bool) -> Value {
    object["metadata"]["ownerReferences"] = json!([{
        "apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"], "blockOwnerDeletion": block,
    }]);
    object
}

async fn delete_with(world: &World, path: &str, options: Value) -> super::client::Answer {
    world.admin.call("DELETE", path, &[("content-type", "application/json")], options.to_string().into()).await
}

#[tokio::test]
async fn a_deletion_without_finalizers_is_immediate() {
    let world = World::with_widgets().await;
    let made = world.admin.post(WIDGETS, widget("w1", json!({"size": 1}))).await.expect(201);
    let answer = world.admin.delete(&format!("{WIDGETS}/w1")).await.expect(200);
    assert_eq!(answer["status"], "Success");
    assert_eq!(
        answer["details"],
        json!({"name": "w1", "group": "example.io", "kind": "widgets", "uid": made["metadata"]["uid"]})
    );
}

#[tokio::test]
async fn finalizers_hold_an_object_until_they_are_gone() {
    let world = World::with_widgets().await;
    let mut body = widget("w1", json!({"size": 1}));
    body["metadata"]["finalizers"] = json!(["ex.io/f"]);
    world.admin.post(WIDGETS, body).await.expect(201);
    let path = format!("{WIDGETS}/w1");
    let marked = world.admin.delete(&path).await.expect(200);
    assert!(marked["metadata"]["deletionTimestamp"].is_string());
    assert_eq!(
        (&marked["metadata"]["generation"], &marked["metadata"]["deletionGracePeriodSeconds"]),
        (&json!(2), &json!(0))
    );
    assert_eq!(world.admin.delete(&path).await.expect(200), marked);
    world.admin.patch(&path, "merge", json!({"metadata": {"finalizers": ["ex.io/f", "ex.io/g"]}})).await.refused(
        422,
        "Widget.example.io \"w1\" is invalid: metadata.finalizers: Forbidden: no new finalizers can be added if the object is being \
         deleted, found new finalizers []string{\"ex.io/g\"}",
    );
    let last = world.admin.patch(&path, "merge", json!({"metadata": {"finalizers": null}})).await.expect(200);
    assert_eq!(last["metadata"]["resourceVersion"], marked["metadata"]["resourceVersion"]);
    world.admin.get(&path).await.expect(404);
}

#[tokio::test]
async fn preconditions_protect_against_the_wrong_object() {
    let world = World::with_widgets().await;
    let made = world.admin.post(WIDGETS, widget("w1", json!({"size": 1}))).await.expect(201);
    let path = format!("{WIDGETS}/w1");
    let uid = made["metadata"]["uid"].as_str().unwrap();
    delete_with(&world, &path, json!({"preconditions": {"uid": "abc"}})).await.refused(
        409,
        &format!(
            "Operation cannot be fulfilled on Widget.example.io \"w1\": the UID in the precondition (abc) does not match the UID in \
             record ({uid}). The object might have been deleted and then recreated"
        ),
    );
    delete_with(&world, &path, json!({"preconditions": {"resourceVersion": "1"}})).await.expect(409);
    delete_with(&world, &path, json!({"orphanDependents": true, "propagationPolicy": "Orphan"})).await.expect(422);
    delete_with(&world, &path, json!({"dryRun": ["All"]})).await.expect(200);
    delete_with(&world, &path, json!({"preconditions": {"uid": uid}})).await.expect(200);
}

#[tokio::test]
async fn dependents_follow_their_owner() {
    let world = World::with_widgets().await;
    let owner = world.admin.post(WIDGETS, widget("w1", json!({"size": 1}))).await.expect(201);
    world.admin.post(MAPS, owned_by(&owner, map("child", json!({})), false)).await.expect(201);
    let mut foreign = owned_by(&owner, map("stranger", json!({})), false);
    foreign["metadata"]["ownerReferences"][0]["uid"] = "someone-else".into();
    world.admin.post(MAPS, foreign).await.expect(201);
    world.admin.until(&format!("{MAPS}/stranger"), |answer| answer.code == 404).await;
    world.admin.get(&format!("{MAPS}/child")).await.expect(200);
    world.admin.delete(&format!("{WIDGETS}/w1")).await.expect(200);
    world.admin.until(&format!("{MAPS}/child"), |answer| answer.code == 404).await;
}

#[tokio::test]
async fn an_orphaning_deletion_leaves_dependents_alone() {
    let world = World::with_widgets().await;
    let owner = world.admin.post(WIDGETS, widget("w1", json!({"size": 1}))).await.expect(201);
    world.admin.post(MAPS, owned_by(&owner, map("child", json!({})), false)).await.expect(201);
    delete_with(&world, &format!("{WIDGETS}/w1"), json!({"propagationPolicy": "Orphan"})).await.expect(200);
    world.admin.until(&format!("{WIDGETS}/w1"), |answer| answer.code == 404).await;
    let child = world.admin.get(&format!("{MAPS}/child")).await.expect(200);
    assert!(child["metadata"].get("ownerReferences").is_none());
}

#[tokio::test]
async fn a_foreground_deletion_waits_for_dependents() {
    let world = World::with_widgets().await;
    let owner = world.admin.post(WIDGETS, widget("w1", json!({"size": 1}))).await.expect(201);
    let mut child = owned_by(&owner, map("child", json!({})), true);
    child["metadata"]["finalizers"] = json!(["ex.io/hold"]);
    world.admin.post(MAPS, child).await.expect(201);
    let path = format!("{WIDGETS}/w1");
    delete_with(&world, &path, json!({"propagationPolicy": "Foreground"})).await.expect(200);
    let marked = |answer: &super::client::Answer| answer.body["metadata"]["deletionTimestamp"].is_string();
    world.admin.until(&format!("{MAPS}/child"), marked).await;
    assert_eq!(world.admin.get(&path).await.expect(200)["metadata"]["finalizers"], json!(["foregroundDeletion"]));
    world.admin.patch(&format!("{MAPS}/child"), "merge", json!({"metadata": {"finalizers": null}})).await.expect(200);
    world.admin.until(&path, |answer| answer.code == 404).await;
}

#[tokio::test]
async fn a_namespace_is_deleted_with_its_content() {
    let world = World::with_widgets().await;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}});
    let made = world.admin.post("/api/v1/namespaces", namespace).await.expect(201);
    assert_eq!((&made["status"]["phase"], &made["spec"]["finalizers"]), (&json!("Active"), &json!(["kubernetes"])));
    world.admin.until("/api/v1/namespaces/n/serviceaccounts/default", |answer| answer.code == 200).await;
    let mut held = widget("w", json!({"size": 1}));
    held["metadata"]["finalizers"] = json!(["ex.io/hold"]);
    world.admin.post("/apis/example.io/v1/namespaces/n/widgets", held).await.expect(201);
    world.admin.post("/api/v1/namespaces/n/configmaps", map("m", json!({}))).await.expect(201);
    let gone = world.admin.delete("/api/v1/namespaces/n").await.expect(200);
    assert_eq!(gone["status"]["phase"], "Terminating");
    world.admin.post("/api/v1/namespaces/n/configmaps", map("x", json!({}))).await.refused(
        403,
        "configmaps \"x\" is forbidden: unable to create new content in namespace n because it is being terminated",
    );
    world.admin.until("/api/v1/namespaces/n", |answer| answer.text.contains("NamespaceContentRemaining")).await;
    let patch = json!({"metadata": {"finalizers": null}});
    world.admin.patch("/apis/example.io/v1/namespaces/n/widgets/w", "merge", patch).await.expect(200);
    world.admin.until("/api/v1/namespaces/n", |answer| answer.code == 404).await;
    let rest = world.admin.get("/api/v1/namespaces/n/configmaps").await.expect(200);
    assert_eq!(rest["items"], json!([]));
}

#[tokio::test]
async fn a_collection_is_deleted_by_selector() {
    let world = World::start().await;
    for name in ["a", "b", "c"] {
        let mut body = map(name, json!({}));
        body["metadata"]["labels"] = json!({"keep": if name == "b" { "yes" } else { "no" }});
        world.admin.post(MAPS, body).await.expect(201);
    }
    let gone = world.admin.delete(&format!("{MAPS}?labelSelector=keep%3Dno")).await.expect(200);
    assert_eq!(gone["items"].as_array().unwrap().len(), 2);
    let rest = world.admin.get(&format!("{MAPS}?labelSelector=keep")).await.expect(200);
    assert_eq!(rest["items"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn options_may_be_yaml() {
    let world = World::start().await;
    world.admin.post(MAPS, map("a", json!({}))).await.expect(201);
    let yaml = [("content-type", "application/yaml")];
    let path = format!("{MAPS}/a");
    let odd = world.admin.call("DELETE", &path, &yaml, b"propagationPolicy: Odd".to_vec()).await;
    assert_eq!((odd.code, &odd.body["reason"]), (422, &json!("Invalid")), "{}", odd.text);
    world.admin.call("DELETE", &path, &yaml, b"propagationPolicy: Background".to_vec()).await.expect(200);
}
