//! The APIExport provider against a scripted server.

#[allow(dead_code)] // the client's tests use all of it
#[path = "../../../client/tests/it/scripted/server.rs"]
mod server;

use std::time::Duration;

use carrick_multicluster::providers::kcp::ApiExport;
use carrick_multicluster::{FleetEvent, Provider};
use futures::{Stream, StreamExt};
use serde_json::{Value, json};
use server::{Answer, TestServer, Then, end_of_list, event, list, refused};

fn slice(urls: &[&str]) -> Value {
    let endpoints: Vec<Value> = urls.iter().map(|url| json!({"url": url})).collect();
    json!({"metadata": {"name": "s", "resourceVersion": "5"}, "status": {"endpoints": endpoints}})
}

fn binding(cluster: &str) -> Value {
    binding_at(cluster, 7)
}

fn binding_at(cluster: &str, version: u64) -> Value {
    json!({
        "metadata": {"name": "b", "resourceVersion": version.to_string(), "annotations": {"kcp.io/cluster": cluster}},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    })
}

/// What an endpoint says that it serves.
fn served(versions: &[&str]) -> Answer {
    let versions: Vec<Value> = versions.iter().map(|version| json!({"version": version})).collect();
    let group = Answer::Json(200, json!({"name": "apis.kcp.io", "versions": versions}));
    Answer::For("clusters/*/apis/apis.kcp.io", Box::new(group))
}

async fn next(stream: &mut (impl Stream<Item = FleetEvent> + Unpin)) -> String {
    let event = tokio::time::timeout(Duration::from_mins(1), stream.next()).await.unwrap().unwrap();
    let last = |url: &str| url.rsplit('/').next().unwrap_or_default().to_owned();
    match event {
        FleetEvent::EndpointUp(endpoint) => format!("up {}", last(&endpoint.id)),
        FleetEvent::EndpointDown(id) => format!("down {}", last(&id)),
        FleetEvent::Engage(cluster) => format!("engaged {} at {}", cluster.name(), last(cluster.endpoint())),
        FleetEvent::Disengage { name, .. } => format!("disengaged {name}"),
        FleetEvent::Path { name, path } => format!("{name} is {path}"),
        FleetEvent::ApisChanged { name } => format!("apis of {name} changed"),
        FleetEvent::Synced => "synced".to_owned(),
        FleetEvent::Failing { source, error } => format!("failing {} {error}", last(&source)),
        FleetEvent::Recovered { source } => format!("recovered {}", last(&source)),
        other => format!("{other:?}"),
    }
}

#[tokio::test]
async fn the_provider_follows_the_slice_to_its_bindings() {
    let server = TestServer::start(vec![]).await;
    let client = server.server().at_path("/clusters/root:prov");
    let url = client.url().replace("/clusters/root:prov", "/services/apiexport/p/ex");
    let mut fleet = ApiExport::new(client, "s").grace(Duration::ZERO).events();
    server.then(Answer::Watch(vec![event("ADDED", &slice(&[&url])), end_of_list(5)], Then::Hold));
    // A URL may be published a moment before it is served.
    server.then(refused(404, "NotFound"));
    server.then(served(&["v1alpha1", "v1alpha2"]));
    server.then(refused(404, "NotFound"));
    server.then(Answer::Watch(
        vec![
            event("ADDED", &binding("one")),
            end_of_list(8),
            event("ADDED", &binding_at("two", 9)),
            event("DELETED", &binding_at("one", 10)),
        ],
        Then::Hold,
    ));
    let mut reported = Vec::new();
    for _ in 0..7 {
        reported.push(next(&mut fleet).await);
    }
    let wanted = [
        "up ex",
        "failing ex NotFound (404 NotFound)",
        "engaged one at ex",
        "synced",
        "engaged two at ex",
        "recovered ex",
        "disengaged one",
    ];
    assert_eq!(reported, wanted);
    let lines = server.lines();
    let slices =
        "GET /clusters/root:prov/apis/apis.kcp.io/v1alpha1/apiexportendpointslices?fieldSelector=metadata.name%3Ds&";
    assert!(lines[0].starts_with(slices), "{lines:?}");
    let group = "GET /services/apiexport/p/ex/clusters/*/apis/apis.kcp.io";
    assert_eq!((lines[1].as_str(), lines[2].as_str()), (group, group), "{lines:?}");
    let bindings = "GET /services/apiexport/p/ex/clusters/*/apis/apis.kcp.io/v1alpha2/apibindings?watch=true";
    assert!(lines[3].starts_with(bindings) && lines[4].starts_with(bindings), "{lines:?}");
}

#[tokio::test]
async fn bindings_are_watched_in_the_older_version_where_there_is_no_other_and_handed_on_in_the_newer() {
    let server = TestServer::start(vec![]).await;
    let client = server.server().at_path("/clusters/root:prov");
    let url = client.url().replace("/clusters/root:prov", "/ex");
    let (met, mut received) = tokio::sync::mpsc::unbounded_channel();
    let mut fleet = ApiExport::new(client, "s")
        .hooks(move |_, binding, _| {
            let _ = met.send(binding);
            async {}
        })
        .events();
    server.then(Answer::Watch(vec![event("ADDED", &slice(&[&url])), end_of_list(5)], Then::Hold));
    server.then(served(&["v1alpha1"]));
    let mut older = binding("one");
    older["apiVersion"] = json!("apis.kcp.io/v1alpha1");
    older["spec"] = json!({"permissionClaims": [{"resource": "events", "all": true, "state": "Accepted"}]});
    server.then(Answer::Watch(vec![event("ADDED", &older), end_of_list(8)], Then::Hold));
    for wanted in ["up ex", "engaged one at ex"] {
        assert_eq!(next(&mut fleet).await, wanted);
    }
    let claims = received.recv().await.unwrap().spec.permission_claims;
    assert!(claims[0].is_accepted() && claims[0].allows("create") && claims[0].selector.match_all, "{claims:?}");
    let lines = server.lines();
    assert!(lines[2].starts_with("GET /ex/clusters/*/apis/apis.kcp.io/v1alpha1/apibindings?"), "{lines:?}");
}

#[tokio::test]
async fn an_endpoint_that_leaves_the_slice_is_not_watched_any_more() {
    let server = TestServer::start(vec![]).await;
    let client = server.server().at_path("/clusters/root:prov");
    let url = client.url().replace("/clusters/root:prov", "/ex");
    let mut fleet = ApiExport::new(client, "s").grace(Duration::ZERO).events();
    let slices = |answer| server.then(Answer::For("apiexportendpointslices", Box::new(answer)));
    slices(Answer::Watch(vec![event("ADDED", &slice(&[&url])), end_of_list(5)], Then::End));
    let bindings = Answer::Watch(vec![event("ADDED", &binding("one")), end_of_list(8)], Then::Hold);
    server.then(served(&["v1alpha2"]));
    server.then(Answer::For("apibindings", Box::new(bindings)));
    let mut reported = Vec::new();
    for _ in 0..3 {
        reported.push(next(&mut fleet).await);
    }
    // A watch that ended early first asks for the server's version.
    slices(list(5, &[]));
    slices(Answer::Watch(vec![event("MODIFIED", &slice(&[]))], Then::Hold));
    for _ in 0..2 {
        reported.push(next(&mut fleet).await);
    }
    assert_eq!(reported, ["up ex", "engaged one at ex", "synced", "disengaged one", "down ex"]);
}

#[tokio::test]
async fn a_filter_that_panics_over_one_binding_is_told_and_judges_the_others() {
    let server = TestServer::start(vec![]).await;
    let client = server.server().at_path("/clusters/root:prov");
    let url = client.url().replace("/clusters/root:prov", "/ex");
    let (met, mut received) = tokio::sync::mpsc::unbounded_channel();
    let provider = ApiExport::new(client, "s").grace(Duration::MAX).filter(|binding| {
        assert!(!binding.metadata.labels.is_empty(), "no label");
        true
    });
    let provider = provider.hooks(move |cluster, _, _| {
        assert!(*cluster.name() != "two", "not that one");
        let _ = met.send(cluster.name().to_string());
        async {}
    });
    let mut fleet = provider.events();
    let labelled = |cluster: &str| {
        let mut binding = binding(cluster);
        binding["metadata"]["labels"] = json!({"a": "b"});
        binding
    };
    let later = |cluster: &str| {
        let mut binding = labelled(cluster);
        binding["metadata"]["resourceVersion"] = json!("9");
        binding
    };
    let slices = Answer::Watch(vec![event("ADDED", &slice(&[&url])), end_of_list(5)], Then::Hold);
    server.then(Answer::For("apiexportendpointslices", Box::new(slices)));
    server.then(served(&["v1alpha2"]));
    let bindings = vec![
        event("ADDED", &binding("one")),
        event("ADDED", &labelled("two")),
        end_of_list(8),
        event("MODIFIED", &later("one")),
    ];
    server.then(Answer::For("apibindings", Box::new(Answer::Watch(bindings, Then::Hold))));
    let mut reported = Vec::new();
    for _ in 0..6 {
        reported.push(next(&mut fleet).await);
    }
    assert!(reported[1].starts_with("failing ex ") && reported[1].contains("panicked: no label"), "{reported:?}");
    assert_eq!(reported[0], "up ex");
    assert_eq!(reported[2..], ["engaged two at ex", "synced", "recovered ex", "engaged one at ex"]);
    assert_eq!(received.recv().await.as_deref(), Some("one"), "hooks go on");
}
