//! Verbs, connections and kubeconfigs against a scripted server.

use std::time::Duration;

use super::server::{
    Answer, Protocol, TestServer, Then, end_of_list, events, list, object, page, refused, secrets, status,
};
use carrick_client::watch::{WatchOptions, watch};
use carrick_client::{Client, DeleteOptions, Error, ListOptions, RequestLabels, Server, discovery};
use futures::StreamExt;
use http::header::{AUTHORIZATION, CONTENT_TYPE, USER_AGENT};
use serde_json::{Value, json};

#[tokio::test]
async fn clients_keep_the_path_of_their_base_url() {
    let ok = || Answer::Json(200, json!({}));
    let server = TestServer::start((0..4).map(|_| ok()).collect()).await;
    let opened = server.server();
    let host = opened.url().trim_end_matches("/base").to_owned();
    let star = opened.at_url(&format!("{host}/services/apiexport/abc/ex/clusters/*/")).unwrap();
    for client in [opened.client(), opened.at_path("/clusters/root:a"), opened.at_path(""), star] {
        client.raw_get("/api").await.unwrap();
    }
    let wanted =
        ["GET /base/api", "GET /clusters/root:a/api", "GET /api", "GET /services/apiexport/abc/ex/clusters/*/api"];
    assert_eq!(server.lines(), wanted);
    assert!(server.seen().iter().all(|seen| seen.headers[AUTHORIZATION] == "Bearer secret-token"));
    let agent = server.seen()[0].headers[USER_AGENT].to_str().unwrap().to_owned();
    assert!(agent.starts_with("it-") && agent.ends_with(env!("CARGO_PKG_VERSION")), "{agent}");
}

#[tokio::test]
async fn every_verb_sends_what_the_server_expects() {
    let server = TestServer::start((0..6).map(|_| Answer::Json(200, object("a", 2))).collect()).await;
    let client = server.server().client();
    let (r, ns) = (secrets(), Some("ns"));
    let body = json!({"metadata": {"name": "a"}, "data": {}});
    let patch = json!({"data": null});
    let delete =
        DeleteOptions { uid: Some("u".into()), resource_version: Some("7".into()), ..DeleteOptions::default() };
    assert_eq!(client.create(&r, ns, &body).await.unwrap(), object("a", 2));
    client.replace(&r, ns, &body).await.unwrap();
    client.replace_status(&r, ns, &body).await.unwrap();
    client.merge_patch(&r, ns, "a", &patch).await.unwrap();
    client.merge_patch_status(&r, ns, "a", &patch).await.unwrap();
    client.delete(&r, ns, "a", &delete).await.unwrap();
    let preconditions = json!({"uid": "u", "resourceVersion": "7"});
    let options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": preconditions});
    let wanted = [
        ("POST /base/api/v1/namespaces/ns/secrets", "application/json", &body),
        ("PUT /base/api/v1/namespaces/ns/secrets/a", "application/json", &body),
        ("PUT /base/api/v1/namespaces/ns/secrets/a/status", "application/json", &body),
        ("PATCH /base/api/v1/namespaces/ns/secrets/a", "application/merge-patch+json", &patch),
        ("PATCH /base/api/v1/namespaces/ns/secrets/a/status", "application/merge-patch+json", &patch),
        ("DELETE /base/api/v1/namespaces/ns/secrets/a", "application/json", &options),
    ];
    for (seen, (line, content_type, body)) in server.seen().into_iter().zip(wanted) {
        assert_eq!((seen.line.as_str(), seen.headers[CONTENT_TYPE].to_str().unwrap()), (line, content_type));
        assert_eq!(&serde_json::from_slice::<Value>(&seen.body).unwrap(), body, "{line}");
    }
}

#[tokio::test]
async fn replacing_an_object_without_a_name_sends_nothing() {
    let server = TestServer::start(vec![]).await;
    let error = server.server().client().replace(&secrets(), None, &json!({})).await.unwrap_err();
    assert!(matches!(error, Error::Request { .. }), "{error}");
    assert!(server.lines().is_empty());
}

#[tokio::test]
async fn a_missing_object_is_none_and_other_refusals_are_errors() {
    let script = vec![
        refused(404, "NotFound"),
        refused(403, "Forbidden"),
        Answer::Text(429, ("retry-after", "7"), "busy"),
        Answer::Text(200, ("x", "y"), "no json"),
    ];
    let server = TestServer::start(script).await;
    let client = server.server().client();
    let get = || async { client.get(&secrets(), Some("ns"), "a").await };
    assert_eq!(get().await.unwrap(), None);
    assert!(get().await.unwrap_err().is_forbidden());
    let busy = get().await.unwrap_err();
    assert!(busy.is_transient() && busy.retry_after().unwrap().as_secs() == 7, "{busy}");
    assert!(busy.to_string().starts_with("GET http://127.0.0.1:"), "{busy}");
    assert!(matches!(get().await.unwrap_err(), Error::Decode { .. }));
}

#[tokio::test]
async fn answers_that_nest_too_deep_are_refused_when_read_and_shortened_when_written() {
    let mut deep = object("a", 2);
    deep["spec"] = (0..carrick_json::DEEPEST + 50).fold(json!(1), |inside, _| Value::Array(vec![inside]));
    let answers = || Answer::Json(200, deep.clone());
    let server =
        TestServer::start(vec![answers(), answers(), answers(), list(5, &[object("b", 1), deep.clone()])]).await;
    let client = server.server().client();
    let (r, ns) = (secrets(), Some("ns"));
    let problem = client.get(&r, ns, "a").await.unwrap_err().to_string();
    assert!(problem.contains("/secrets/a") && problem.contains("1051 levels deep"), "{problem}");
    assert_eq!(client.merge_patch(&r, ns, "a", &json!({})).await.unwrap(), object("a", 2));
    client.delete(&r, ns, "a", &DeleteOptions::default()).await.unwrap();
    let problem = client.list(&r, ns, &ListOptions::default()).await.unwrap_err().to_string();
    assert!(problem.contains("ns/a") && problem.contains("levels deep"), "{problem}");
}

#[tokio::test]
async fn lists_are_joined_from_pages_and_survive_expired_ones() {
    let script = vec![
        page(5, "t", &[object("a", 1)]),
        list(5, &[object("b", 2)]),
        page(5, "t", &[object("a", 1)]),
        refused(410, "Expired"),
        list(6, &[object("a", 1), object("b", 2), object("c", 3)]),
    ];
    let server = TestServer::start(script).await;
    let client = server.server().client();
    let options = ListOptions { label_selector: Some("x=y".into()), field_selector: Some("metadata.name=a".into()) };
    let names = |list: Vec<Value>| list.iter().map(|o| o["metadata"]["name"].to_string()).collect::<String>();
    assert_eq!(names(client.list(&secrets(), Some("ns"), &options).await.unwrap()), r#""a""b""#);
    assert_eq!(names(client.list(&secrets(), None, &ListOptions::default()).await.unwrap()), r#""a""b""c""#);
    let query = "labelSelector=x%3Dy&fieldSelector=metadata.name%3Da&limit=500";
    assert_eq!(server.lines()[0], format!("GET /base/api/v1/namespaces/ns/secrets?{query}"));
    assert_eq!(server.lines()[4], "GET /base/api/v1/secrets");
}

#[tokio::test]
async fn a_refused_connection_is_a_transient_error_that_says_why() {
    // A port that another test is given a moment later would answer.
    let server = TestServer::start(vec![]).await;
    let client = server.server().at_url("http://127.0.0.1:1").unwrap();
    let error = client.raw_get("/api").await.unwrap_err();
    assert!(error.is_transient() && error.to_string().contains("refused"), "{error}");
}

#[tokio::test]
async fn a_server_that_accepts_connections_and_then_hangs_is_given_up() {
    let server = TestServer::start_as(Protocol::TlsHttp2, vec![]).await;
    let hangs = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = server.server().at_url(&format!("https://{}", hangs.local_addr().unwrap())).unwrap();
    let start = tokio::time::Instant::now();
    let asking = tokio::spawn(async move { client.raw_get("/api").await });
    // A connection takes no time, but time that stands still would pass before it is there.
    let _connection = hangs.accept().await.unwrap();
    tokio::time::pause();
    let error = asking.await.unwrap().unwrap_err();
    assert!(error.is_transient() && error.to_string().contains("not connected within 10 s"), "{error}");
    assert!((10..20).contains(&start.elapsed().as_secs()), "{:?}", start.elapsed());
}

async fn open_watches(server: &TestServer, count: usize) -> Vec<impl Send> {
    let opened = server.server();
    let mut open = Vec::new();
    for number in 0..count {
        let client = opened.at_path(&format!("/clusters/c{number}"));
        let mut stream = Box::pin(watch(client, secrets(), WatchOptions::default()));
        assert_eq!(events(&mut stream, 2).await, ["begin", "synced"]);
        open.push(stream);
    }
    open
}

#[tokio::test]
async fn many_watches_of_many_workspaces_share_one_http2_connection() {
    let watch = Answer::Watch(vec![end_of_list(1)], Then::Hold);
    let script = std::iter::repeat_n(watch, 30).chain([Answer::Json(200, json!({}))]).collect();
    let server = TestServer::start_as(Protocol::TlsHttp2, script).await;
    let _open = open_watches(&server, 30).await;
    assert_eq!(server.connections(), 1);
    assert!(server.seen().iter().all(|seen| seen.version == http::Version::HTTP_2));
}

#[tokio::test]
async fn a_burst_of_first_requests_opens_one_connection() {
    let script = std::iter::repeat_n(Answer::Json(200, json!({})), 50).collect();
    let server = TestServer::start_as(Protocol::TlsHttp2, script).await;
    let client = server.server().client();
    let burst = (0..50).map(|_| client.raw_get("/api"));
    assert!(futures::future::join_all(burst).await.iter().all(Result::is_ok));
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn servers_without_http2_are_served_with_more_connections() {
    let watch = Answer::Watch(vec![end_of_list(1)], Then::Hold);
    let server = TestServer::start_as(Protocol::TlsHttp1, std::iter::repeat_n(watch, 3).collect()).await;
    let _open = open_watches(&server, 3).await;
    assert_eq!(server.connections(), 3);
}

#[tokio::test]
async fn a_dropped_watch_frees_its_stream_and_keeps_the_connection() {
    let watch = Answer::Watch(vec![end_of_list(1)], Then::Hold);
    let script = vec![watch, Answer::Json(200, json!({}))];
    let server = TestServer::start_as(Protocol::TlsHttp2, script).await;
    let client = server.server().client();
    let mut stream = Box::pin(carrick_client::watch::watch(client.clone(), secrets(), WatchOptions::default()));
    stream.next().await;
    drop(stream);
    client.raw_get("/api").await.unwrap();
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn an_unknown_certificate_is_refused() {
    let server = TestServer::start_as(Protocol::TlsHttp2, vec![]).await;
    let other = TestServer::start_as(Protocol::TlsHttp2, vec![]).await;
    let client = server.server().at_url(other.server().url()).unwrap();
    let error = client.raw_get("/api").await.unwrap_err();
    assert!(error.to_string().contains("certificate"), "{error}");
}

#[tokio::test]
async fn the_kube_client_uses_the_same_url_pool_and_credentials() {
    use k8s_openapi::api::core::v1::Secret;
    let script = vec![Answer::Json(200, object("a", 1)), refused(404, "NotFound"), Answer::Json(200, json!({}))];
    let server = TestServer::start_as(Protocol::TlsHttp2, script).await;
    let client: Client = server.server().at_path("/clusters/x");
    let api: kube::Api<Secret> = kube::Api::default_namespaced(client.kube());
    assert_eq!(api.get("a").await.unwrap().metadata.name.as_deref(), Some("a"));
    assert!(api.get_opt("b").await.unwrap().is_none());
    client.raw_get("/api").await.unwrap();
    assert_eq!(server.connections(), 1);
    assert_eq!(server.lines()[0], "GET /clusters/x/api/v1/namespaces/home/secrets/a");
    assert_eq!(server.seen()[0].headers[AUTHORIZATION], "Bearer secret-token");
}

fn resources(entries: &[(&str, &str)]) -> Answer {
    let entry = |(name, kind): &(&str, &str)| json!({"name": name, "kind": kind, "namespaced": true, "singularName": "bin", "shortNames": ["b"], "verbs": ["get"]});
    Answer::Json(200, json!({"resources": entries.iter().map(entry).collect::<Vec<_>>()}))
}

#[tokio::test]
async fn a_kind_is_found_in_all_its_versions_by_asking_only_its_group() {
    let versions = json!([{"version": "v2"}, {"version": "v1"}, {"version": "v0"}, {"version": "vx"}]);
    let script = vec![
        Answer::Json(200, json!({"versions": versions, "preferredVersion": {"version": "v1"}})),
        resources(&[("bins", "Bin"), ("bins/status", "Bin"), ("bins/scale", "Scale"), ("others", "Other")]),
        resources(&[("bins", "Bin")]),
        resources(&[("others", "Other")]),
        refused(404, "NotFound"),
    ];
    let server = TestServer::start(script).await;
    let found = discovery::find_kind(&server.server().client(), "g.io", "Bin").await.unwrap().unwrap();
    assert_eq!((found.plural.as_str(), found.singular.as_str(), found.preferred.as_str()), ("bins", "bin", "v1"));
    let versions: Vec<(&str, Vec<&str>)> = found
        .versions
        .iter()
        .map(|version| (version.name.as_str(), version.subresources.iter().map(String::as_str).collect()))
        .collect();
    assert_eq!(versions, [("v2", vec!["scale", "status"]), ("v1", vec![])]);
    assert_eq!(found.resource("v2").unwrap().list_path(None), "/apis/g.io/v2/bins");
    assert!(found.resource("v0").is_none());
    assert!(server.lines().iter().all(|line| line.starts_with("GET /base/apis/g.io")), "{:?}", server.lines());
}

#[tokio::test]
async fn core_kinds_and_unknown_ones_are_told_apart() {
    let script = vec![
        Answer::Json(200, json!({"versions": ["v1"]})),
        resources(&[("secrets", "Secret")]),
        Answer::Text(404, ("x", "y"), "404 page not found"),
        Answer::Json(503, status(503, "ServiceUnavailable")),
    ];
    let server = TestServer::start(script).await;
    let client = server.server().client();
    let found = discovery::find_kind(&client, "", "Secret").await.unwrap().unwrap();
    assert_eq!(found.resource(&found.preferred).unwrap().list_path(None), "/api/v1/secrets");
    assert!(discovery::find_kind(&client, "none.io", "X").await.unwrap().is_none());
    assert!(discovery::find_kind(&client, "down.io", "X").await.unwrap_err().is_transient());
    assert_eq!(server.lines()[..2], ["GET /base/api", "GET /base/api/v1"]);
}

#[test]
fn urls_that_are_none_are_refused() {
    let kubeconfig = |url: &str| {
        format!(
            "{{apiVersion: v1, kind: Config, current-context: c, clusters: [{{name: s, cluster: {{server: '{url}'}}}}], \
             contexts: [{{name: c, context: {{cluster: s}}}}]}}"
        )
    };
    for url in ["ftp://a", "a", "/x", "https://a/b?c=d", ""] {
        assert!(Server::from_kubeconfig_yaml(&kubeconfig(url)).is_err(), "{url}");
    }
    assert!(Server::from_kubeconfig_yaml(&kubeconfig("http://a/b/")).unwrap().at_url("nonsense").is_err());
}

#[tokio::test]
async fn requests_are_counted_by_host_method_and_code() {
    let answers = vec![Answer::Json(200, object("a", 1)), Answer::Json(200, object("a", 1)), refused(404, "NotFound")];
    let server = TestServer::start(answers).await;
    let opened = server.server();
    for name in ["a", "a", "b"] {
        opened.client().get(&secrets(), Some("ns"), name).await.unwrap();
    }
    let host = opened.url().trim_start_matches("http://").trim_end_matches("/base").to_owned();
    let counted: Vec<_> = opened.requests().into_iter().map(|(asked, answers)| (asked, answers.count)).collect();
    let asked = |code| RequestLabels { host: host.clone(), method: "GET".to_owned(), code };
    assert_eq!(counted, [(asked(200), 2), (asked(404), 1)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn hundreds_of_watches_leave_room_for_requests() {
    const WATCHES: usize = 300;
    let script = (0..WATCHES).map(|_| Answer::Watch(vec![end_of_list(1)], Then::Hold));
    let answer = Answer::Json(200, object("a", 1));
    let script = script.chain([Answer::For("/secrets/a", Box::new(answer))]).collect();
    let server = TestServer::start_as(Protocol::TlsHttp2, script).await;
    let client = server.server().client();
    let watches = (0..WATCHES).map(|_| async {
        let mut watch = Box::pin(watch(client.clone(), secrets(), WatchOptions::default()));
        events(&mut watch, 2).await;
        watch
    });
    let patience = Duration::from_mins(1);
    let watches =
        tokio::time::timeout(patience, futures::future::join_all(watches)).await.expect("some watch never began");
    let read =
        tokio::time::timeout(patience, client.get(&secrets(), Some("n"), "a")).await.expect("no room for a request");
    assert_eq!(read.unwrap().unwrap()["metadata"]["name"], "a");
    assert_eq!(server.connections(), 4, "32 watches beside requests, then 90 on each");
    drop(watches);
}
