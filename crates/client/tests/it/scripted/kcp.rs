//! kcp's kinds as types, against a scripted server.

use super::server::{Answer, TestServer, list, refused};
use carrick_client::{Error, ListOptions};
use carrick_kcp::apis::v1alpha1::ApiExport;
use carrick_kcp::apis::v1alpha2;
use serde_json::{Value, json};

#[tokio::test]
async fn objects_are_read_as_types_and_written_with_all_that_was_read() {
    let export = json!({
        "apiVersion": "apis.kcp.io/v1alpha1", "kind": "APIExport", "metadata": {"name": "e", "resourceVersion": "1"},
        "spec": {"latestResourceSchemas": ["v1.as.x"], "fromTheFuture": {"a": []}},
    });
    let script = vec![
        Answer::Json(200, export.clone()),
        Answer::Json(200, export.clone()),
        list(2, std::slice::from_ref(&export)),
        refused(404, "NotFound"),
    ];
    let server = TestServer::start(script).await;
    let client = server.server().client();
    let mut read: ApiExport = client.get_kcp("e").await.unwrap().unwrap();
    read.spec.latest_resource_schemas.push("v1.bs.x".to_owned());
    client.replace_kcp(&read).await.unwrap();
    assert_eq!(client.list_kcp::<ApiExport>(&ListOptions::default()).await.unwrap().len(), 1);
    assert_eq!(client.get_kcp::<ApiExport>("e").await.unwrap(), None);
    let seen = server.seen();
    assert_eq!(seen[1].line, "PUT /base/apis/apis.kcp.io/v1alpha1/apiexports/e");
    let sent: Value = serde_json::from_slice(&seen[1].body).unwrap();
    let spec = json!({"latestResourceSchemas": ["v1.as.x", "v1.bs.x"], "fromTheFuture": {"a": []}});
    assert_eq!(sent["spec"], spec);
}

#[tokio::test]
async fn what_is_not_of_the_kind_is_an_error_that_names_object_and_field() {
    let wrong = json!({"metadata": {"name": "e"}, "spec": {"latestResourceSchemas": "v1.as.x"}});
    let server = TestServer::start(vec![Answer::Json(200, wrong)]).await;
    let error = server.server().client().get_kcp::<ApiExport>("e").await.unwrap_err();
    assert!(matches!(error, Error::Decode { .. }), "{error}");
    let text = error.to_string();
    assert!(text.starts_with("APIExport e at http") && text.contains("spec: latestResourceSchemas: "), "{text}");
}

fn group(versions: &[&str]) -> Answer {
    let versions: Vec<Value> = versions.iter().map(|version| json!({"version": version})).collect();
    Answer::Json(200, json!({"name": "apis.kcp.io", "versions": versions}))
}

#[tokio::test]
async fn the_newest_version_that_is_served_is_asked_for_once_and_used() {
    let newer = json!({
        "apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIExport", "metadata": {"name": "e", "resourceVersion": "1"},
        "spec": {"resources": [{"group": "x", "name": "as", "schema": "v1.as.x", "storage": {"virtual": {"fromTheFuture": 1}}}]},
    });
    let answers = vec![
        group(&["v1alpha2", "v1alpha1"]),
        Answer::Json(200, newer.clone()),
        Answer::Json(200, newer.clone()),
        Answer::Json(200, newer.clone()),
    ];
    let server = TestServer::start(answers).await;
    let client = server.server().client();
    let mut read: v1alpha2::ApiExport = client.get_newest("e").await.unwrap().unwrap();
    read.offer("v1.bs.x");
    client.clone().replace_newest(&read).await.unwrap();
    client.patch_newest::<v1alpha2::ApiExport>("e", &json!({})).await.unwrap();
    let seen = server.seen();
    let lines: Vec<&str> =
        seen.iter().map(|request| request.line.split(['?', ' ']).nth(1).unwrap_or_default()).collect();
    let object = "/base/apis/apis.kcp.io/v1alpha2/apiexports/e";
    assert_eq!(lines, ["/base/apis/apis.kcp.io", object, object, object]);
    let sent: Value = serde_json::from_slice(&seen[2].body).unwrap();
    assert_eq!(sent["spec"]["resources"][0], newer["spec"]["resources"][0], "others' entries are as they were");
    assert_eq!(sent["spec"]["resources"][1]["schema"], "v1.bs.x");
}

#[tokio::test]
async fn where_only_the_older_version_is_served_that_is_written() {
    let older = json!({
        "apiVersion": "apis.kcp.io/v1alpha1", "kind": "APIExport", "metadata": {"name": "e", "resourceVersion": "1"},
        "spec": {"latestResourceSchemas": ["v1.as.x"], "permissionClaims": [
            {"resource": "secrets", "resourceSelector": [{"name": "one"}], "note": "theirs"}]},
    });
    let answers = vec![group(&["v1alpha1"]), Answer::Json(200, older.clone()), Answer::Json(200, older.clone())];
    let server = TestServer::start(answers).await;
    let client = server.server().client();
    let mut read: v1alpha2::ApiExport = client.get_newest("e").await.unwrap().unwrap();
    assert_eq!(read.schemas().collect::<Vec<_>>(), ["v1.as.x"]);
    read.claim_all("", "events", "");
    client.replace_newest(&read).await.unwrap();
    let seen = server.seen();
    assert_eq!(seen[2].line, "PUT /base/apis/apis.kcp.io/v1alpha1/apiexports/e");
    let sent: Value = serde_json::from_slice(&seen[2].body).unwrap();
    let mut wanted = older.clone();
    wanted["spec"]["permissionClaims"].as_array_mut().unwrap().push(json!({"resource": "events", "all": true}));
    assert_eq!(sent["spec"], wanted["spec"]);
    assert_eq!(sent["metadata"], older["metadata"], "what only the newer version needs is not sent");
}

#[tokio::test]
async fn who_may_not_see_what_is_served_uses_the_newest_version() {
    let server = TestServer::start(vec![refused(403, "Forbidden"), refused(404, "NotFound")]).await;
    let found = server.server().client().get_newest::<v1alpha2::ApiExport>("e").await.unwrap();
    assert_eq!(found, None);
    assert_eq!(server.seen()[1].line, "GET /base/apis/apis.kcp.io/v1alpha2/apiexports/e");
}
