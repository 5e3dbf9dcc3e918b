//! Clients that speak protobuf, as those written in Go do.

use carrick_plane::protobuf::{MEDIA, decode, encode, take_event};
use http_body_util::BodyExt;
use serde_json::{Value, json};

use super::client::{Client, MAPS, WIDGETS, World, map, widget, widget_crd};

/// What Go's typed clients accept.
const ACCEPT: &str = "application/vnd.kubernetes.protobuf,application/json";
const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

struct Answer {
    code: u16,
    media: String,
    content: Vec<u8>,
}

impl Answer {
    /// The object of an answer that must be in protobuf.
    #[track_caller]
    fn object(&self, code: u16) -> Value {
        assert_eq!((self.code, self.media.as_str()), (code, MEDIA), "{}", String::from_utf8_lossy(&self.content));
        decode(&self.content).unwrap()
    }

    /// The object of an answer that must be in JSON.
    #[track_caller]
    fn json(&self, code: u16) -> Value {
        assert_eq!((self.code, self.media.as_str()), (code, "application/json"));
        serde_json::from_slice(&self.content).unwrap()
    }
}

/// Sends an object in protobuf, or nothing.
async fn ask(client: &Client, method: &str, path: &str, accept: &str, body: &Value) -> Answer {
    let content = if body.is_null() { Vec::new() } else { encode(body).unwrap() };
    raw(client, method, path, accept, content).await
}

async fn raw(client: &Client, method: &str, path: &str, accept: &str, content: Vec<u8>) -> Answer {
    let response = client.send(method, path, &[("content-type", MEDIA), ("accept", accept)], content).await;
    let code = response.status().as_u16();
    let media = response.headers()["content-type"].to_str().unwrap().to_owned();
    let content = response.into_body().collect().await.unwrap().to_bytes().to_vec();
    Answer { code, media, content }
}

fn object(api_version: &str, kind: &str, name: &str, rest: Value) -> Value {
    let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}});
    object.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
    object
}

/// One object of each kind that differs from the others in its forms, and where it lives.
fn objects() -> Vec<(&'static str, Value)> {
    let pod = json!({"containers": [{
        "name": "c", "image": "i", "ports": [{"containerPort": 80}], "command": ["a", ""],
        "resources": {"limits": {"cpu": "100m"}}, "livenessProbe": {"httpGet": {"path": "/", "port": "http"}},
    }]});
    let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": pod});
    vec![
        (MAPS, map("a", json!({"k": "v", "empty": ""}))),
        ("/api/v1/namespaces/default/secrets", object("v1", "Secret", "a", json!({"data": {"k": "/wA="}}))),
        ("/api/v1/namespaces", object("v1", "Namespace", "a", json!({}))),
        ("/api/v1/namespaces/default/pods", object("v1", "Pod", "a", json!({"spec": pod}))),
        (
            "/api/v1/namespaces/default/services",
            object("v1", "Service", "a", json!({"spec": {"ports": [{"port": 80, "targetPort": "http"}]}})),
        ),
        (
            "/apis/apps/v1/namespaces/default/deployments",
            object(
                "apps/v1",
                "Deployment",
                "a",
                json!({"spec": {"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": template}}),
            ),
        ),
        (
            "/apis/coordination.k8s.io/v1/namespaces/default/leases",
            object(
                "coordination.k8s.io/v1",
                "Lease",
                "a",
                json!({"spec": {"holderIdentity": "h", "renewTime": "2024-02-29T12:00:00.123456Z"}}),
            ),
        ),
        (
            "/apis/rbac.authorization.k8s.io/v1/clusterroles",
            object(
                "rbac.authorization.k8s.io/v1",
                "ClusterRole",
                "a",
                json!({"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}),
            ),
        ),
        (CRDS, widget_crd()),
        (
            "/api/v1/namespaces/default/events",
            object(
                "v1",
                "Event",
                "a",
                json!({
                    "involvedObject": {"kind": "Pod", "namespace": "default", "name": "p"}, "count": 2,
                    "firstTimestamp": "2024-01-01T00:00:00Z", "type": "Normal", "reason": "r",
                }),
            ),
        ),
        (
            "/api/v1/namespaces/default/resourcequotas",
            object("v1", "ResourceQuota", "a", json!({"spec": {"hard": {"cpu": "2"}}})),
        ),
    ]
}

#[tokio::test]
async fn built_in_kinds_are_created_read_listed_updated_and_deleted() {
    let world = World::start().await;
    let client = &world.admin;
    for (path, sent) in objects() {
        let what = &sent["kind"];
        let created = ask(client, "POST", path, ACCEPT, &sent).await.object(201);
        let name = sent["metadata"]["name"].as_str().unwrap();
        let own = format!("{path}/{name}");
        // The same as a client gets that speaks JSON.
        let shown = client.get(&own).await.expect(200);
        let read = ask(client, "GET", &own, ACCEPT, &Value::Null).await.object(200);
        assert_eq!(Some(read.clone()), encode(&shown).map(|content| decode(&content).unwrap()), "{what}");
        assert_eq!(created["metadata"]["uid"], read["metadata"]["uid"], "{what}");
        let mut changed = read.clone();
        changed["metadata"]["labels"]["changed"] = "yes".into();
        let updated = ask(client, "PUT", &own, ACCEPT, &changed).await.object(200);
        assert_eq!(updated["metadata"]["labels"]["changed"], "yes", "{what}");
        assert!(
            updated.get("spec") == read.get("spec") && updated.get("data") == read.get("data"),
            "{what}: {updated}"
        );
        let list = ask(client, "GET", &format!("{path}?labelSelector=changed"), ACCEPT, &Value::Null).await.object(200);
        assert_eq!(list["items"].as_array().map(Vec::len), Some(1), "{what}: {list}");
        assert_eq!(list["items"][0]["metadata"], updated["metadata"], "{what}");
        let uid = json!({"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": "another"}});
        let refused = ask(client, "DELETE", &own, ACCEPT, &uid).await.object(409);
        assert_eq!((&refused["kind"], &refused["reason"]), (&json!("Status"), &json!("Conflict")), "{what}");
        let options =
            json!({"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": read["metadata"]["uid"]}});
        let deleted = ask(client, "DELETE", &own, ACCEPT, &options).await;
        assert!(matches!(deleted.code, 200 | 202) && deleted.media == MEDIA, "{what}");
    }
}

#[tokio::test]
async fn what_a_client_in_json_and_one_in_protobuf_send_becomes_the_same() {
    let world = World::start().await;
    let client = &world.admin;
    for (path, sent) in objects() {
        // What Go's own encoder shows although it is empty is sent in both.
        let sent = decode(&encode(&sent).unwrap()).unwrap();
        let other = World::start().await;
        let mut answers = [
            ask(client, "POST", path, "application/json", &sent).await.json(201),
            other.admin.post(path, sent.clone()).await.expect(201),
        ];
        for answer in &mut answers {
            let metadata = answer["metadata"].as_object_mut().unwrap();
            metadata.retain(|key, _| {
                !matches!(key.as_str(), "uid" | "resourceVersion" | "creationTimestamp" | "managedFields")
            });
            if answer["kind"] == "CustomResourceDefinition" || answer["kind"] == "Service" {
                answer.as_object_mut().unwrap().remove("status");
                answer["spec"].as_object_mut().unwrap().retain(|key, _| !key.starts_with("clusterIP"));
            }
        }
        assert_eq!(answers[0], answers[1], "{}", sent["kind"]);
        other.plane.stop().await;
    }
}

#[tokio::test]
async fn a_watch_is_a_stream_of_messages() {
    let world = World::start().await;
    let client = &world.admin;
    ask(client, "POST", MAPS, ACCEPT, &map("a", json!({}))).await.object(201);
    let path = format!("{MAPS}?watch=1&fieldSelector=metadata.name%3Da");
    for (accept, kind) in [
        (ACCEPT, "ConfigMap"),
        (
            "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json",
            "PartialObjectMetadata",
        ),
    ] {
        let response = client.send("GET", &path, &[("accept", accept)], Vec::new()).await;
        assert_eq!(response.headers()["content-type"], "application/vnd.kubernetes.protobuf;stream=watch");
        let (mut body, mut stream) = (response.into_body(), Vec::new());
        let change = json!({"data": {"for": kind}});
        client.patch(&format!("{MAPS}/a"), "merge", change).await.expect(200);
        let mut seen = Vec::new();
        while seen.len() < 2 {
            stream.extend(body.frame().await.unwrap().unwrap().into_data().unwrap());
            while let Some(event) = take_event(&mut stream).unwrap() {
                seen.push(event);
            }
        }
        let kinds: Vec<_> = seen.iter().map(|(event, object)| (event.as_str(), object["kind"].clone())).collect();
        assert_eq!(kinds, [("ADDED", json!(kind)), ("MODIFIED", json!(kind))]);
        assert_eq!(seen[1].1["metadata"]["name"], "a");
    }
    let yaml = client.call("GET", &path, &[("accept", "application/yaml")], Vec::new()).await;
    assert_eq!(yaml.code, 406, "{}", yaml.text);
}

#[tokio::test]
async fn custom_kinds_only_speak_json_but_their_metadata_and_errors_speak_both() {
    let world = World::with_widgets().await;
    let client = &world.admin;
    client.post(WIDGETS, widget("w", json!({"size": 1}))).await.expect(201);
    let own = format!("{WIDGETS}/w");
    assert_eq!(ask(client, "GET", &own, ACCEPT, &Value::Null).await.json(200)["spec"]["size"], 1);
    let refused = ask(client, "GET", &own, MEDIA, &Value::Null).await.object(406);
    assert_eq!(
        refused["message"],
        "only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf"
    );
    let partial = "as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    let shown = ask(client, "GET", &own, &format!("{MEDIA};{partial}"), &Value::Null).await.object(200);
    assert_eq!((&shown["kind"], &shown["metadata"]["name"]), (&json!("PartialObjectMetadata"), &json!("w")));
    let lists = "as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
    let list = ask(client, "GET", WIDGETS, &format!("{MEDIA};{lists}"), &Value::Null).await.object(200);
    assert_eq!(list["items"][0]["metadata"]["name"], "w");
    let missing = ask(client, "GET", &format!("{WIDGETS}/nope"), ACCEPT, &Value::Null).await.object(404);
    assert_eq!(missing["details"]["name"], "nope");
    let options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"});
    assert_eq!(ask(client, "DELETE", &own, ACCEPT, &options).await.json(200)["status"], "Success");
}

#[tokio::test]
async fn reviews_tokens_scales_and_discovery_speak_protobuf() {
    let world = World::start().await;
    let client = &world.admin;
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}},
    });
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    assert_eq!(ask(client, "POST", path, ACCEPT, &review).await.object(201)["status"]["allowed"], true);
    let request = json!({
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 700},
    });
    let path = "/api/v1/namespaces/default/serviceaccounts/default/token";
    let token = ask(client, "POST", path, ACCEPT, &request).await.object(201);
    assert!(token["status"]["token"].as_str().unwrap().starts_with("eyJ"));
    let (path, deployment) = objects().into_iter().find(|(_, object)| object["kind"] == "Deployment").unwrap();
    ask(client, "POST", path, ACCEPT, &deployment).await.object(201);
    let mut scale = ask(client, "GET", &format!("{path}/a/scale"), ACCEPT, &Value::Null).await.object(200);
    assert_eq!(scale["kind"], "Scale");
    scale["spec"]["replicas"] = 3.into();
    let scaled = ask(client, "PUT", &format!("{path}/a/scale"), ACCEPT, &scale).await.object(200);
    assert_eq!(scaled["spec"]["replicas"], 3);
    let yaml = b"apiVersion: autoscaling/v1\nkind: Scale\nmetadata: {name: a}\nspec: {replicas: 4}".to_vec();
    let yaml = client.call("PUT", &format!("{path}/a/scale"), &[("content-type", "application/yaml")], yaml).await;
    assert_eq!(yaml.expect(200)["spec"]["replicas"], 4);
    for (path, kind) in [("/api", "APIVersions"), ("/apis", "APIGroupList"), ("/apis/apps/v1", "APIResourceList")] {
        let shown = ask(client, "GET", path, MEDIA, &Value::Null).await.object(200);
        assert_eq!(shown["kind"], kind);
        assert_eq!(Some(shown), encode(&client.get(path).await.expect(200)).map(|content| decode(&content).unwrap()));
    }
    assert!(ask(client, "GET", "/version", MEDIA, &Value::Null).await.json(200)["major"].is_string());
}

#[tokio::test]
async fn what_is_no_protobuf_is_refused_in_the_words_of_the_real_server() {
    let world = World::with_widgets().await;
    let client = &world.admin;
    let whole = encode(&map("a", json!({}))).unwrap();
    let unknown = whole.windows(9).position(|bytes| bytes == b"ConfigMap").unwrap();
    let unknown = [&whole[..unknown], b"ConfigMop", &whole[unknown + 9..]].concat();
    let unrecognized = "the object provided is unrecognized (must be of type ConfigMap)";
    let unhandled = "in version \"v1\" cannot be handled as a ConfigMap";
    let prefix = "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]";
    for (content, message) in [
        (b"{}".to_vec(), format!("{unrecognized}: {prefix} ({{}})")),
        (Vec::new(), format!("{unrecognized}: empty data (<empty>)")),
        (b"k8s\0".to_vec(), format!("{unrecognized}: empty body (6b387300)")),
        (b"k8s\0\x0a".to_vec(), format!("{unrecognized}: unexpected EOF (6b3873000a)")),
        (
            b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\x03\x0a\x09x".to_vec(),
            format!("ConfigMap {unhandled}: unexpected EOF"),
        ),
        (
            encode(&object("v1", "Secret", "a", json!({}))).unwrap(),
            format!("Secret {unhandled}: converting (v1.Secret) to (core.ConfigMap): unknown conversion"),
        ),
        (
            unknown,
            format!(
                "ConfigMop {unhandled}: no kind \"ConfigMop\" is registered for version \"v1\" in scheme \"pkg/runtime/scheme.go:110\""
            ),
        ),
    ] {
        let refused = raw(client, "POST", MAPS, "application/json", content).await.json(400);
        assert_eq!((&refused["message"], &refused["reason"]), (&json!(message), &json!("BadRequest")));
    }
    let custom = raw(client, "POST", WIDGETS, "application/json", whole).await.json(415);
    assert_eq!(custom["reason"], "UnsupportedMediaType");
    let options = raw(client, "DELETE", &format!("{MAPS}/a"), "application/json", b"{}".to_vec()).await.json(500);
    assert_eq!(options["message"], prefix);
}
