//! The plane as a library, in the test of somebody's own kcp controller: kube-rs clients, workspaces, an export, a binding,
//! and a controller that serves every workspace that binds the export.

use std::time::Duration;

use carrick_plane::faults::{Effect, Match, Rule, Turn};
use carrick_plane::{Config, Mode, Plane, PlaneError};
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::{WatchStreamExt, watcher};
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_mins(1);

/// A kube-rs client for a workspace.
async fn client(plane: &Plane, workspace: &str) -> kube::Client {
    at(plane, &format!("{}/clusters/{workspace}", plane.url())).await
}

/// A kube-rs client for any address of the plane.
async fn at(plane: &Plane, url: &str) -> kube::Client {
    let mut kubeconfig = Kubeconfig::from_yaml(&plane.kubeconfig("kcp-admin", None).unwrap()).unwrap();
    kubeconfig.clusters[0].cluster.as_mut().unwrap().server = Some(url.to_owned());
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    kube::Client::try_from(config).unwrap()
}

fn kind(group: &str, version: &str, kind: &str, plural: &str) -> ApiResource {
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural)
}

async fn create(client: &kube::Client, what: &ApiResource, object: Value) -> DynamicObject {
    let api = Api::<DynamicObject>::all_with(client.clone(), what);
    api.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap()
}

/// Waits until an object satisfies a condition.
async fn until(client: &kube::Client, what: &ApiResource, name: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    let api = Api::<DynamicObject>::all_with(client.clone(), what);
    let mut states = states(api, watcher::Config::default().fields(&format!("metadata.name={name}")));
    let found = async {
        loop {
            let object = serde_json::to_value(states.try_next().await.unwrap().unwrap()).unwrap();
            if wanted(&object) {
                return object;
            }
        }
    };
    tokio::time::timeout(PATIENCE, found).await.unwrap_or_else(|_| panic!("{name} does not become what it should"))
}

/// Every state of every object, again and again if the connection breaks.
fn states(
    api: Api<DynamicObject>,
    config: watcher::Config,
) -> BoxStream<'static, Result<DynamicObject, watcher::Error>> {
    watcher(api, config).default_backoff().applied_objects().boxed()
}

/// The controller under test: answers every greeting, in whatever workspace, through the export's own endpoint.
async fn controller(provider: kube::Client, plane_url: String, connect: impl AsyncFn(&str) -> kube::Client) {
    let slices = kind("apis.kcp.io", "v1alpha1", "APIExportEndpointSlice", "apiexportendpointslices");
    let slice =
        until(&provider, &slices, "greetings", |slice| slice["status"]["endpoints"][0]["url"].is_string()).await;
    let endpoint = slice["status"]["endpoints"][0]["url"].as_str().unwrap().to_owned();
    assert!(endpoint.starts_with(&plane_url));
    let greetings = kind("hello.example.io", "v1", "Greeting", "greetings");
    let all = Api::<DynamicObject>::all_with(connect(&format!("{endpoint}/clusters/*")).await, &greetings);
    let mut states = states(all, watcher::Config::default());
    while let Some(state) = states.next().await {
        let Ok(greeting) = state else { continue };
        let name = greeting.metadata.name.clone().unwrap();
        let cluster = &greeting.metadata.annotations.as_ref().unwrap()["kcp.io/cluster"];
        let one = connect(&format!("{endpoint}/clusters/{cluster}")).await;
        let one = Api::<DynamicObject>::all_with(one, &greetings);
        let answer = format!("hello, {}", greeting.data["spec"]["to"].as_str().unwrap_or("nobody"));
        let patch = json!({"status": {"answer": answer}});
        // An error is retried: the injected fault below tests that.
        while one.patch_status(&name, &PatchParams::default(), &Patch::Merge(&patch)).await.is_err() {
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test]
async fn a_controller_serves_every_workspace_that_binds_its_export() {
    let plane = Plane::start(Config::new(Mode::Kcp)).await.unwrap();
    let root = client(&plane, "root").await;
    let workspaces = kind("tenancy.kcp.io", "v1alpha1", "Workspace", "workspaces");
    for name in ["provider", "consumer"] {
        create(
            &root,
            &workspaces,
            json!({"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace",
            "metadata": {"name": name}, "spec": {"type": {"name": "universal", "path": "root"}}}),
        )
        .await;
        until(&root, &workspaces, name, |workspace| workspace["status"]["phase"] == "Ready").await;
    }
    let provider = client(&plane, "root:provider").await;
    let schemas = kind("apis.kcp.io", "v1alpha1", "APIResourceSchema", "apiresourceschemas");
    let fields = json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {"to": {"type": "string"}}},
        "status": {"type": "object", "properties": {"answer": {"type": "string"}}}}});
    create(&provider, &schemas, json!({"apiVersion": "apis.kcp.io/v1alpha1", "kind": "APIResourceSchema",
        "metadata": {"name": "v1.greetings.hello.example.io"},
        "spec": {"group": "hello.example.io", "scope": "Cluster",
            "names": {"plural": "greetings", "singular": "greeting", "kind": "Greeting", "listKind": "GreetingList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}}, "schema": fields}]}})).await;
    let exports = kind("apis.kcp.io", "v1alpha2", "APIExport", "apiexports");
    create(
        &provider,
        &exports,
        json!({"apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIExport",
        "metadata": {"name": "greetings"},
        "spec": {"resources": [{"group": "hello.example.io", "name": "greetings",
            "schema": "v1.greetings.hello.example.io", "storage": {"crd": {}}}]}}),
    )
    .await;

    // The first status write of the controller is refused: it has to try again.
    let refusal =
        Rule::new(Match::any().resource("hello.example.io", "greetings").verbs(&["patch"]), Effect::refuse(503))
            .on(Turn::Nth(1));
    let refusal = plane.faults().add(refusal);

    let consumer = client(&plane, "root:consumer").await;
    let bindings = kind("apis.kcp.io", "v1alpha2", "APIBinding", "apibindings");
    create(
        &consumer,
        &bindings,
        json!({"apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIBinding",
        "metadata": {"name": "greetings"},
        "spec": {"reference": {"export": {"path": "root:provider", "name": "greetings"}}}}),
    )
    .await;
    until(&consumer, &bindings, "greetings", |binding| binding["status"]["phase"] == "Bound").await;

    let connect = async |url: &str| at(&plane, url).await;
    let greetings = kind("hello.example.io", "v1", "Greeting", "greetings");
    let check = async {
        create(
            &consumer,
            &greetings,
            json!({"apiVersion": "hello.example.io/v1", "kind": "Greeting",
            "metadata": {"name": "first"}, "spec": {"to": "world"}}),
        )
        .await;
        until(&consumer, &greetings, "first", |greeting| greeting["status"]["answer"] == "hello, world").await;
    };
    tokio::select! {
        () = controller(provider, plane.url().to_owned(), connect) => panic!("the controller ended"),
        () = check => {}
    }
    assert_eq!(plane.faults().hits(refusal), 1);
    plane.stop().await;
}

#[tokio::test]
async fn a_kubeconfig_for_a_stranger_is_an_error() {
    let plane = Plane::start(Config::new(Mode::Kube)).await.unwrap();
    let error = plane.kubeconfig("stranger", None).unwrap_err();
    assert!(matches!(&error, PlaneError::UnknownUser { user, .. } if user == "stranger"));
    assert_eq!(
        error.to_string(),
        "there is no user \"stranger\" with a token, only admin; add it to the users of the config"
    );
    plane.stop().await;
}
