//! kcp's kinds as types, against a scripted server.

use crate::server::{Answer, TestServer, list, refused};
use carrick_client::{Error, ListOptions};
use carrick_kcp::apis::v1alpha1::ApiExport;
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
