//! Platform Mesh's portal, field by field: it writes these fields and no others, and reads these and no others. It goes through a gateway that passes
//! plain HTTP on, so that is what is sent here.

use std::time::Duration;

use bytes::Bytes;
use carrick_bind_api::kinds;
use carrick_bind_api::v1alpha2::{InformerScope, Isolation};
use carrick_client::{Web, WebTrust};
use data_encoding::BASE64;
use http::{Method, Request, StatusCode, header};
use serde_json::{Value, json};

use super::world::{Consumer, PORTAL_TOKEN, Provider, has, of, thing, things};

const API: &str = "/apis/kube-bind.io/v1alpha2";

/// What the portal's pages do.
struct Portal {
    web: Web,
    url: String,
}

impl Portal {
    fn new(provider: &Provider) -> Self {
        let web = Web::new(&WebTrust { ca_file: None, insecure: true }).unwrap();
        Self { web, url: provider.cluster.plane.url().to_owned() }
    }

    async fn send(&self, method: Method, path: &str, body: &Value) -> (StatusCode, Value) {
        let request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.url))
            .header(header::AUTHORIZATION, format!("Bearer {PORTAL_TOKEN}"))
            .header(header::CONTENT_TYPE, "application/json")
            .body(if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) });
        let answer = self.web.send(request.unwrap()).await.unwrap();
        (answer.status(), serde_json::from_slice(answer.body()).unwrap_or_default())
    }

    async fn create(&self, path: &str, kind: &str, name: &str, spec: Value) {
        // The gateway adds apiVersion and kind.
        let object =
            json!({"apiVersion": "kube-bind.io/v1alpha2", "kind": kind, "metadata": {"name": name}, "spec": spec});
        let (status, answer) = self.send(Method::POST, path, &object).await;
        assert_eq!(status, StatusCode::CREATED, "{answer}");
    }

    async fn get(&self, path: &str) -> Value {
        let (status, answer) = self.send(Method::GET, path, &Value::Null).await;
        assert_eq!(status, StatusCode::OK, "{path}: {answer}");
        answer
    }

    async fn delete(&self, path: &str) {
        let (status, answer) = self.send(Method::DELETE, path, &Value::Null).await;
        assert_eq!(status, StatusCode::OK, "{path}: {answer}");
    }

    /// A page that is open asks again and again.
    async fn until(&self, path: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let mut last = Value::Null;
        let found = async {
            loop {
                last = self.get(path).await;
                if wanted(&last) {
                    return last.clone();
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let found = tokio::time::timeout(Duration::from_mins(1), found).await;
        found.unwrap_or_else(|_| panic!("{path} does not become what it should: {last:#}"))
    }
}

/// The one item of a list.
fn only(list: &Value) -> &Value {
    let items = list["items"].as_array().unwrap();
    assert_eq!(items.len(), 1, "{list:#}");
    &items[0]
}

#[tokio::test(flavor = "multi_thread")]
async fn the_four_pages_of_the_portal_work_with_the_fields_that_they_write_and_read() {
    let provider = Provider::start(InformerScope::Cluster, Isolation::None).await;
    provider.offer("cowboys", "Cowboy", "Namespaced").await;
    let portal = Portal::new(&provider);

    // Binding Requests: the name of the cluster, its identity, who asks, and for how long the answer is kept.
    let requests = format!("{API}/namespaces/default/bindableresourcesrequests");
    let spec = json!({"author": "portal-ui", "clusterIdentity": {"identity": "one"}, "ttlAfterFinished": "1h"});
    portal.create(&requests, "BindableResourcesRequest", "my-cluster", spec).await;
    let all = format!("{API}/bindableresourcesrequests");
    let list = portal.until(&all, |list| only(list)["status"]["phase"] == "Succeeded").await;
    let request = only(&list);
    assert!(request["status"]["completionTime"].is_string(), "{request:#}");
    let ready = request["status"]["conditions"].as_array().unwrap().iter().find(|it| it["type"] == "Ready").unwrap();
    assert_eq!(ready["status"], "True", "{ready}");
    let secret = &request["status"]["kubeconfigSecretRef"];
    let (name, key) = (secret["name"].as_str().unwrap(), secret["key"].as_str().unwrap());
    // The page shows the Secret; the answer in it is deployed on the consumer.
    let secret = portal.get(&format!("/api/v1/namespaces/default/secrets/{name}")).await;
    let answer = BASE64.decode(secret["data"][key].as_str().unwrap().as_bytes()).unwrap();
    let answer: Value = serde_json::from_slice(&answer).unwrap();
    let kubeconfig = BASE64.decode(answer["kubeconfig"].as_str().unwrap().as_bytes()).unwrap();
    let consumer = Consumer::start(std::str::from_utf8(&kubeconfig).unwrap()).await;

    // Cluster Bindings: whether the konnector is there, its version, who asked for it.
    let bindings = format!("{API}/clusterbindings");
    let well = |list: &Value| has(only(list), "Ready", "True", "") && has(only(list), "Healthy", "True", "");
    let list = portal.until(&bindings, well).await;
    let binding = only(&list);
    assert_eq!(binding["metadata"]["annotations"]["backend.kube-bind.io/author"], "portal-ui");
    assert_eq!(binding["metadata"]["annotations"]["backend.kube-bind.io/identity"], "one");
    for field in ["lastHeartbeatTime", "heartbeatInterval", "konnectorVersion"] {
        assert!(binding["status"][field].is_string(), "{field}: {binding:#}");
    }
    assert_eq!(binding["status"]["consumerSecretRef"], json!({"namespace": "kube-bind", "name": "provider"}));
    assert_eq!(binding["spec"]["kubeconfigSecretRef"], json!({"name": "kubeconfig", "key": "kubeconfig"}));
    let contract = binding["metadata"]["namespace"].as_str().unwrap().to_owned();

    // Service Mappings: the page asks for v1alpha1 of everything, whatever there is.
    let mappings = format!("{API}/namespaces/{contract}/apiserviceexportrequests");
    let resources = json!([{"group": "wild.io", "resource": "cowboys", "versions": ["v1alpha1"]}]);
    portal.create(&mappings, "APIServiceExportRequest", "cowboys", json!({"resources": resources})).await;
    portal.until(&mappings, |list| only(list)["status"]["phase"] == "Succeeded").await;

    // Active Bindings, and what they are for.
    let exports = format!("{API}/namespaces/{contract}/apiserviceexports");
    portal.until(&exports, |list| has(&list["items"][0], "Connected", "True", "")).await;
    consumer.until_bound("cowboys").await;
    let cowboys = things("cowboys", "Cowboy", true);
    consumer.cluster.apply(&cowboys, &thing("Cowboy", Some("team"), "lucky")).await;
    provider.cluster.until(&cowboys, Some("team"), "lucky", |it| it["spec"]["intent"] == "x").await;

    // Deleting a mapping or a request that was answered ends nothing that is in use.
    portal.delete(&format!("{mappings}/cowboys")).await;
    portal.delete(&format!("{requests}/my-cluster")).await;
    provider.cluster.until_gone(&super::world::secrets(), Some("default"), name).await;
    assert!(has(only(&portal.get(&exports).await), "Connected", "True", ""));

    // Deleting the Cluster Binding cuts the consumer off: it is told, and keeps what it has.
    portal.delete(&format!("{API}/namespaces/{contract}/clusterbindings/cluster")).await;
    let cut_off = |it: &Value| {
        has(it, "Connected", "False", "ContractChanged")
            || has(it, "Heartbeating", "False", "ClusterBindingUpdateFailed")
    };
    consumer.cluster.until(&of(kinds::API_SERVICE_BINDING), None, "cowboys", cut_off).await;
    assert!(consumer.cluster.get(&cowboys, Some("team"), "lucky").await.is_some());
    assert!(provider.cluster.get(&cowboys, Some("team"), "lucky").await.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_of_the_portal_is_kept_no_longer_than_it_says() {
    let provider = Provider::start(InformerScope::Cluster, Isolation::None).await;
    let portal = Portal::new(&provider);
    let requests = format!("{API}/namespaces/default/bindableresourcesrequests");
    let spec = json!({"author": "portal-ui", "clusterIdentity": {"identity": "one"}, "ttlAfterFinished": "1s"});
    portal.create(&requests, "BindableResourcesRequest", "short", spec).await;
    portal.until(&requests, |list| list["items"].as_array().is_some_and(Vec::is_empty)).await;
    let namespaces = portal.get("/api/v1/namespaces").await;
    let is_contract = |it: &&Value| it["metadata"]["annotations"]["backend.kube-bind.io/identity"] == "one";
    assert_eq!(namespaces["items"].as_array().unwrap().iter().filter(is_contract).count(), 1, "the contract stays");
}
