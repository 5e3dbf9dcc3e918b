//! `kubectl-bind`, a backend and a konnector between two real API servers.
//!
//! `CARRICK_SERVERS` names a folder with the binaries of etcd and kube-apiserver, as `e2e/real` finds them; without it there is nothing to test.
//! No controllers run there. Those that our programs wait for are played here: what fills the tokens of service accounts in, and what lets go of
//! objects that are deleted without what they own.

#[allow(dead_code, reason = "nothing is killed here")]
#[path = "../../../konnector/tests/it/real/servers.rs"]
mod servers;

use crate::whole::world::World;
use crate::whole::{story, upgrade, v2};
use carrick_bind_api::v1alpha2::Isolation;
use carrick_client::watch::{Event, WatchOptions, watch};
use carrick_client::{Client, Resource, Server};
use data_encoding::BASE64;
use futures::StreamExt;
use serde_json::{Value, json};
use servers::Servers;

/// Fills Secrets with tokens of the service accounts that they name, as Kubernetes' own controller does.
async fn fill_tokens(client: Client, authority: String) {
    let secrets = Resource::namespaced("", "v1", "Secret", "secrets");
    let mut events = std::pin::pin!(watch(client.clone(), secrets.clone(), WatchOptions::default()));
    while let Some(event) = events.next().await {
        let (Event::Listed(object) | Event::Applied(object)) = event else { continue };
        let secret = object.value();
        if secret["type"] != "kubernetes.io/service-account-token" || secret["data"]["token"].is_string() {
            continue;
        }
        let (namespace, name) =
            (secret["metadata"]["namespace"].as_str().unwrap(), secret["metadata"]["name"].as_str().unwrap());
        let account = secret["metadata"]["annotations"]["kubernetes.io/service-account.name"].as_str().unwrap();
        let request = http::Request::post(format!("/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"));
        let wanted = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
        let request = request.header("content-type", "application/json").body(wanted.to_string().into_bytes());
        let granted: Value = client.kube().request(request.unwrap()).await.unwrap();
        let token = granted["status"]["token"].as_str().unwrap();
        let data = json!({"token": BASE64.encode(token.as_bytes()), "ca.crt": BASE64.encode(authority.as_bytes()),
            "namespace": BASE64.encode(namespace.as_bytes())});
        client.merge_patch(&secrets, Some(namespace), name, &json!({"data": data})).await.unwrap();
    }
}

/// Lets go of APIServiceBindings that are deleted with the policy `Orphan`, as Kubernetes' garbage collector does.
async fn let_orphans_go(client: Client) {
    let bindings = Resource::cluster_wide("kube-bind.io", "v1alpha2", "APIServiceBinding", "apiservicebindings");
    let mut events = std::pin::pin!(watch(client.clone(), bindings.clone(), WatchOptions::default()));
    while let Some(event) = events.next().await {
        let (Event::Listed(object) | Event::Applied(object)) = event else { continue };
        let metadata = &object.value()["metadata"];
        let mut finalizers: Vec<String> = serde_json::from_value(metadata["finalizers"].clone()).unwrap_or_default();
        let all = finalizers.len();
        finalizers.retain(|it| it != "orphan");
        if finalizers.len() < all {
            let patch = json!({"metadata": {"finalizers": finalizers, "resourceVersion": metadata["resourceVersion"]}});
            // One that was changed in between is reported again.
            let _ = client.merge_patch(&bindings, None, &object.name, &patch).await;
        }
    }
}

/// A world of two real servers, as long as they run; nothing if nobody says where their binaries are.
async fn on_servers(isolation: Isolation) -> Option<(World, Servers)> {
    let Some(servers) = Servers::start() else {
        eprintln!("skipped: set CARRICK_SERVERS to a folder with etcd and kube-apiserver, or run e2e/real");
        return None;
    };
    let (provider, consumer) = futures::join!(servers.cluster(0, &[]), servers.cluster(1, &[]));
    let admin = Server::from_kubeconfig_yaml(&provider.kubeconfig("admin")).unwrap().client();
    tokio::spawn(fill_tokens(admin, provider.authority.clone()));
    let kubeconfig = consumer.kubeconfig("admin");
    tokio::spawn(let_orphans_go(Server::from_kubeconfig_yaml(&kubeconfig).unwrap().client()));
    Some((World::isolated(&provider.kubeconfig("admin"), &kubeconfig, &kubeconfig, isolation).await, servers))
}

#[tokio::test(flavor = "multi_thread")]
async fn from_a_login_to_an_object_and_its_status_between_real_servers() {
    let Some((world, _servers)) = on_servers(Isolation::Prefixed).await else { return };
    story::from_a_login_to_an_object_and_its_status(&world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn from_a_kubeconfig_to_an_object_and_its_status_without_a_backend_between_real_servers() {
    let Some((world, _servers)) = on_servers(Isolation::Prefixed).await else { return };
    v2::from_a_kubeconfig(&world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_binding_goes_to_v2_and_back_between_real_servers() {
    let Some((world, _servers)) = on_servers(Isolation::None).await else { return };
    upgrade::there_and_back(&world).await;
}
