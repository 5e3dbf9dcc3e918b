//! How large objects may be: what API servers and etcd refuse, in their words.

use data_encoding::BASE64;
use serde_json::{Value, json};

use super::client::{Client, MAPS, WIDGETS, World, map, widget};

const MIB: usize = 1024 * 1024;

/// Both kinds of plane: an administrator's client, and where `default` is.
async fn planes() -> Vec<(World, Client, String)> {
    let (kube, kcp) = (World::start().await, World::kcp(&[]).await);
    let (kube_admin, kcp_admin) = (kube.admin.clone(), kcp.admin.clone());
    let places = ["/api/v1/namespaces/default", "/clusters/root/api/v1/namespaces/default"].map(str::to_owned);
    let [kube_place, kcp_place] = places;
    vec![(kube, kube_admin, kube_place), (kcp, kcp_admin, kcp_place)]
}

fn secret(name: &str, bytes: usize) -> Value {
    let data = json!({"a": BASE64.encode(&vec![7; bytes / 2]), "b": BASE64.encode(&vec![8; bytes - bytes / 2])});
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": data})
}

fn text(bytes: usize) -> String {
    "x".repeat(bytes)
}

#[tokio::test]
async fn the_values_of_a_secret_have_a_mebibyte_in_all() {
    for (_world, admin, place) in planes().await {
        let secrets = format!("{place}/secrets");
        admin.post(&secrets, secret("full", MIB)).await.expect(201);
        let refusal = "Secret \"over\" is invalid: data: Too long: may not be more than 1048576 bytes";
        let answer = admin.post(&secrets, secret("over", MIB + 1)).await;
        assert_eq!(
            answer.body["details"]["causes"],
            json!([{"reason": "FieldValueTooLong", "field": "data", "message": "Too long: may not be more than 1048576 bytes"}])
        );
        answer.refused(422, refusal);
        admin.post(&secrets, secret("over", 10)).await.expect(201);
        let more = json!({"data": secret("over", MIB + 1)["data"]});
        admin.patch(&format!("{secrets}/over"), "merge", more).await.refused(422, refusal);
    }
}

#[tokio::test]
async fn texts_and_bytes_of_a_config_map_have_a_mebibyte_together() {
    for (_world, admin, place) in planes().await {
        let maps = format!("{place}/configmaps");
        let mixed = |extra: usize| {
            let mut mixed = map("mixed", json!({"text": text(MIB / 2)}));
            mixed["binaryData"] = json!({"bytes": BASE64.encode(&vec![1; MIB / 2 + extra])});
            mixed
        };
        let refusal = "ConfigMap \"mixed\" is invalid: []: Too long: may not be more than 1048576 bytes";
        admin.post(&maps, mixed(1)).await.refused(422, refusal);
        admin.post(&maps, mixed(0)).await.expect(201);
    }
}

#[tokio::test]
async fn annotations_have_a_quarter_of_a_mebibyte_in_all() {
    for (_world, admin, place) in planes().await {
        let maps = format!("{place}/configmaps");
        let annotated = |length: usize| {
            let mut object = map("a", json!({}));
            object["metadata"]["annotations"] = json!({"key": text(length)});
            object
        };
        let refusal = "ConfigMap \"a\" is invalid: metadata.annotations: Too long: may not be more than 262144 bytes";
        admin.post(&maps, annotated(MIB / 4 - 2)).await.refused(422, refusal);
        admin.post(&maps, annotated(MIB / 4 - 3)).await.expect(201);
        let more = json!({"metadata": {"annotations": {"other": "1"}}});
        admin.patch(&format!("{maps}/a"), "merge", more).await.refused(422, refusal);
    }
}

#[tokio::test]
async fn what_etcd_would_not_take_is_refused_and_changes_nothing() {
    let world = World::with_widgets().await;
    let admin = &world.admin;
    let heavy = |length: usize| widget("heavy", json!({"size": 1, "free": {"text": text(length)}}));
    admin.post(WIDGETS, heavy(3 * MIB / 2)).await.refused(500, "etcdserver: request is too large");
    admin.get(&format!("{WIDGETS}/heavy")).await.expect(404);
    admin.post(WIDGETS, heavy(3 * MIB / 2 - 4096)).await.expect(201);
    let more = json!({"spec": {"free": {"more": text(4096)}}});
    let path = format!("{WIDGETS}/heavy");
    admin.patch(&path, "merge", more).await.refused(500, "etcdserver: request is too large");
    assert!(admin.get(&path).await.expect(200)["spec"]["free"]["more"].is_null());
    let answer = admin.post(WIDGETS, heavy(5 * MIB / 2)).await;
    let message = answer.body["message"].as_str().unwrap_or_default();
    assert!(
        message.starts_with("rpc error: code = ResourceExhausted desc = trying to send message larger"),
        "{message}"
    );
    admin.patch(&path, "merge", json!({"spec": {"free": {"text": "light"}}})).await.expect(200);
}

#[tokio::test]
async fn bytes_are_stored_as_they_are_so_that_a_full_secret_has_room_for_full_annotations() {
    let world = World::start().await;
    let mut full = secret("full", MIB);
    full["metadata"]["annotations"] = json!({"key": text(MIB / 4 - 3)});
    world.admin.post("/api/v1/namespaces/default/secrets", full).await.expect(201);
}

#[tokio::test]
async fn requests_have_three_mebibytes() {
    let world = World::start().await;
    let large = map("a", json!({"text": text(3 * MIB)}));
    world.admin.post(MAPS, large).await.refused(413, "Request entity too large: limit is 3145728");
}

#[tokio::test]
async fn json_patches_have_ten_thousand_operations() {
    for (_world, admin, place) in planes().await {
        let maps = format!("{place}/configmaps");
        admin.post(&maps, map("a", json!({"text": "1"}))).await.expect(201);
        let patch = |many: usize| Value::from(vec![json!({"op": "test", "path": "/data/text", "value": "1"}); many]);
        admin.patch(&format!("{maps}/a"), "json", patch(10_000)).await.expect(200);
        let answer = admin.patch(&format!("{maps}/a"), "json", patch(10_001)).await;
        assert_eq!(answer.body["reason"], "RequestEntityTooLarge");
        let why = "The allowed maximum operations in a JSON patch is 10000, got 10001";
        answer.refused(413, &format!("Request entity too large: {why}"));
    }
}

#[tokio::test]
async fn what_one_json_patch_copies_has_three_mebibytes() {
    let world = World::with_widgets().await;
    let path = format!("{WIDGETS}/bomb");
    let spec = json!({"size": 1, "free": {"a": text(1000)}});
    world.admin.post(WIDGETS, widget("bomb", spec)).await.expect(201);
    // Each copy doubles what is there: twenty of them make a gibibyte of a kilobyte.
    let copies = |many: usize| {
        let copies =
            (0..many).map(|at| json!({"op": "copy", "from": "/spec/free", "path": format!("/spec/free/c{at}")}));
        let removed = (0..many).map(|at| json!({"op": "remove", "path": format!("/spec/free/c{at}")}));
        copies.chain(removed).collect::<Value>()
    };
    world.admin.patch(&path, "json", copies(11)).await.expect(200);
    let refusal = "the server rejected our request due to an error in our request";
    world.admin.patch(&path, "json", copies(12)).await.refused(422, refusal);
    world.admin.patch(&path, "json", copies(30)).await.refused(422, refusal);
}

#[tokio::test]
async fn what_is_deep_is_kept_as_it_is_unless_it_is_too_deep() {
    let world = World::with_widgets().await;
    let deep = |levels: usize| {
        (0..levels).fold(
            json!({"end": true}),
            |inner, level| if level % 2 == 0 { json!([inner]) } else { json!({"in": inner}) },
        )
    };
    let spec = |levels: usize| json!({"size": 1, "free": {"deep": deep(levels)}});
    for (name, levels) in [("shallow", 100), ("deep", 200), ("deepest", 400)] {
        world.admin.post(WIDGETS, widget(name, spec(levels))).await.expect(201);
        let headers = [("content-type", "application/merge-patch+json")];
        let path = format!("{WIDGETS}/{name}");
        let patch = json!({"spec": {"size": 2, "free": {"deep": deep(levels)}}}).to_string();
        let answer = world.admin.call("PATCH", &path, &headers, patch.into()).await;
        assert_eq!(answer.code, 200, "{}", answer.text);
        // More than this client reads as a tree.
        assert!(answer.text.contains(&deep(levels).to_string()), "{name}");
        assert!(world.admin.get(WIDGETS).await.text.contains(&deep(levels).to_string()), "{name}");
    }
    let answer = world.admin.post(WIDGETS, widget("too-deep", spec(600))).await;
    assert_eq!(answer.code, 400, "{}", answer.text);
    assert!(answer.text.contains("exceeded max depth"), "{}", answer.text);
}
