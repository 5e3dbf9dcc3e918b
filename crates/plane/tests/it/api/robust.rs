use serde_json::{Value, json};

use super::client::{MAPS, World, map};

#[tokio::test]
async fn every_request_ends_in_an_answer() {
    let world = World::start().await;
    let json = "application/json";
    let cases: &[(&str, &str, &str, &[u8], u16)] = &[
        ("GET", "/nowhere", json, b"", 404),
        ("GET", "/", json, b"", 200),
        ("GET", "/api", json, b"", 200),
        ("GET", "/openapi/v2", json, b"", 200),
        ("POST", "/apis", json, b"{}", 405),
        ("GET", "/api/v1/unknowns", json, b"", 404),
        ("GET", "/api/v1/namespaces/default/configmaps/a/b/c/d", json, b"", 404),
        ("GET", "/api/v1/namespaces/default/configmaps/a/status", json, b"", 404),
        ("POST", "/api/v1/configmaps", json, b"{}", 400),
        ("POST", MAPS, json, b"", 400),
        ("POST", MAPS, json, b"{", 400),
        ("POST", MAPS, json, b"null", 422),
        ("POST", MAPS, json, b"[1,2]", 400),
        ("POST", MAPS, json, b"\xff\xfe", 400),
        ("POST", MAPS, json, br#"{"metadata":"x"}"#, 400),
        ("POST", MAPS, json, br#"{"metadata":{"labels":[1]}}"#, 400),
        ("POST", MAPS, json, br#"{"metadata":{"name":"UPPER"}}"#, 422),
        ("POST", MAPS, json, br#"{"metadata":{"name":"a"},"data":{"port":8080}}"#, 400),
        ("POST", MAPS, json, br#"{"metadata":{"name":"a"},"data":"x"}"#, 400),
        (
            "POST",
            "/api/v1/namespaces/default/configmaps?fieldValidation=Strict",
            json,
            br#"{"metadata":{"name":"a"},"datas":{}}"#,
            400,
        ),
        (
            "POST",
            "/api/v1/namespaces/default/configmaps?dryRun=All",
            json,
            br#"{"metadata":{"name":"a"},"data":null}"#,
            201,
        ),
        ("POST", MAPS, json, br#"{"metadata":{}}"#, 422),
        ("POST", MAPS, json, br#"{"metadata":{"name":"a","labels":{"a b":"c"}}}"#, 422),
        ("POST", MAPS, "application/yaml", b"a: [", 400),
        ("POST", MAPS, "application/cbor", b"x", 415),
        ("POST", MAPS, "application/vnd.kubernetes.protobuf", b"x", 400),
        ("POST", MAPS, "application/vnd.kubernetes.protobuf", b"k8s\0\x0a\xff\xff\xff\xff\x0f", 400),
        ("PUT", MAPS, json, b"{}", 405),
        ("PATCH", MAPS, "application/merge-patch+json", b"{}", 405),
        ("DELETE", "/api/v1/namespaces", json, b"", 405),
        ("DELETE", "/api/v1/namespaces/default/configmaps/nope", json, b"{\"a\"", 500),
        ("FROB", MAPS, json, b"", 405),
        ("GET", "/api/v1/namespaces/default/configmaps?limit=x", json, b"", 400),
        ("POST", "/api/v1/namespaces/default/configmaps?dryRun=Some", json, b"{}", 422),
        ("POST", "/api/v1/namespaces/default/serviceaccounts/default/token", json, b"{}", 201),
        ("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", json, b"{}", 422),
        ("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", json, b"[]", 400),
    ];
    for (method, path, media, body, expected) in cases {
        let answer = world.admin.call(method, path, &[("content-type", media)], body.to_vec()).await;
        assert_eq!(answer.code, *expected, "{method} {path} {:?}: {}", String::from_utf8_lossy(body), answer.text);
        assert!(answer.body.is_object() || answer.text == "404 page not found\n", "{method} {path}: {}", answer.text);
    }
    world.admin.get("/readyz").await;
}

#[tokio::test]
async fn a_body_beyond_the_limit_is_refused() {
    let world = World::start().await;
    let body = map("a", json!({"x": "y".repeat(4 * 1024 * 1024)}));
    let answer = world.admin.post(MAPS, body).await;
    assert_eq!((answer.code, answer.body["reason"].as_str()), (413, Some("RequestEntityTooLarge")));
}

#[tokio::test]
async fn unacceptable_forms_are_refused() {
    let world = World::start().await;
    let answer = world.admin.call("GET", MAPS, &[("accept", "application/cbor")], Vec::new()).await;
    assert_eq!((answer.code, answer.body["reason"].as_str()), (406, Some("NotAcceptable")));
}

#[tokio::test]
async fn deeply_nested_bodies_do_no_harm() {
    let world = World::start().await;
    let deep = "[".repeat(100_000);
    let body = format!(r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"a"}},"data":{deep}"#);
    let headers = [("content-type", "application/json")];
    assert_eq!(world.admin.call("POST", MAPS, &headers, body.into_bytes()).await.code, 400);
}

#[tokio::test]
async fn stopping_ends_open_watches() {
    let world = World::start().await;
    let mut watch = world.admin.watch(&format!("{MAPS}?watch=1")).await;
    let reader = tokio::spawn(async move {
        let mut seen: Vec<Value> = Vec::new();
        while let Some(event) = watch.next().await {
            seen.push(event);
        }
        seen.len()
    });
    world.plane.stop().await;
    reader.await.unwrap();
}
