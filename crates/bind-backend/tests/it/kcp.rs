//! A backend that serves the workspaces of kcp that bind its APIExport.

use std::time::Duration;

use carrick_bind_api::carrick_kcp::apis::ClaimState;
use carrick_bind_api::carrick_kcp::apis::v1alpha1::{ApiBinding, ApiExport, ExportReference};
use carrick_bind_api::carrick_kcp::kinds::{API_BINDING, API_RESOURCE_SCHEMA, WORKSPACE};
use carrick_bind_api::kinds::{self, Kind};
use carrick_bind_api::response::BindingResponse;
use carrick_bind_api::v1alpha2::{InformerScope, Isolation};
use carrick_bind_backend::agent::{BackendConfig, SchemaSource, init};
use carrick_bind_backend::backend;
use carrick_bind_backend::decide::terms::{Address, Logins, Terms};
use carrick_client::watch::{Event, WatchOptions, watch};
use carrick_client::{Client, Resource, Server};
use carrick_plane::{Config, Mode, Plane, User};
use data_encoding::BASE64;
use futures::StreamExt;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

const OWNER: &str = "owner";

fn of(kind: Kind) -> Resource {
    let make = if kinds::is_namespaced(kind) { Resource::namespaced } else { Resource::cluster_wide };
    make(kind.group, kind.version, kind.kind, kind.plural)
}

async fn until(
    client: &Client,
    resource: &Resource,
    at: Option<&str>,
    name: &str,
    wanted: impl Fn(&Value) -> bool,
) -> Value {
    let mut last = None;
    let found = async {
        let options =
            WatchOptions { namespace: at.map(str::to_owned), ..WatchOptions::fields(format!("metadata.name={name}")) };
        let mut events = std::pin::pin!(watch(client.clone(), resource.clone(), options));
        loop {
            if let Some(Event::Listed(object) | Event::Applied(object)) = events.next().await {
                let object = object.value();
                if wanted(&object) {
                    return object;
                }
                last = Some(object);
            }
        }
    };
    let found = tokio::time::timeout(Duration::from_mins(1), found).await;
    found.unwrap_or_else(|_| panic!("{resource} {name} does not become what it should: {last:#?}"))
}

/// A client of somebody in a workspace.
fn client(plane: &Plane, user: &str, workspace: &str) -> (Server, Client) {
    let server = Server::from_kubeconfig_yaml(&plane.kubeconfig(user, Some(workspace)).unwrap()).unwrap();
    let client = server.client();
    (server, client)
}

struct World {
    plane: Plane,
    stop: CancellationToken,
    provider: Server,
}

impl Drop for World {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl World {
    /// Workspaces, the export, and a backend. The provider's workspace belongs to somebody who has no other rights.
    async fn start(source: SchemaSource) -> Self {
        let mut config = Config::new(Mode::Kcp);
        config.users = vec![User::new("token-of-owner", OWNER, &[])];
        let plane = Plane::start(config).await.unwrap();
        let (_, root) = client(&plane, "kcp-admin", "root");
        for name in ["provider", "team", "other"] {
            let workspace = json!({"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "metadata": {"name": name},
                "spec": {"type": {"name": "universal", "path": "root"}}});
            root.create(&WORKSPACE.into(), None, &workspace).await.unwrap();
            until(&root, &WORKSPACE.into(), None, name, |it| it["status"]["phase"] == "Ready").await;
        }
        let (_, admin) = client(&plane, "kcp-admin", "root:provider");
        let rbac = "rbac.authorization.k8s.io";
        let binding = json!({"apiVersion": format!("{rbac}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": "owner"},
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"apiGroup": rbac, "kind": "User", "name": OWNER}]});
        let bindings = Resource::cluster_wide(rbac, "v1", "ClusterRoleBinding", "clusterrolebindings");
        admin.create(&bindings, None, &binding).await.unwrap();
        let access = json!({"apiVersion": format!("{rbac}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": "owner-access"},
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "system:kcp:workspace:access"},
            "subjects": [{"apiGroup": rbac, "kind": "User", "name": OWNER}]});
        admin.create(&bindings, None, &access).await.unwrap();
        let (provider, owner) = client(&plane, OWNER, "root:provider");
        let written = init::workspace(&owner).await.unwrap();
        assert_eq!(written.len(), 10, "{written:?}");
        assert_eq!(init::workspace(&owner).await.unwrap(), Vec::<String>::new(), "once is enough");
        let own = Address {
            server: format!("{}/clusters/root:provider", plane.url()),
            authority: Some(plane.ca_pem().to_owned()),
            authority_given: true,
            server_name: None,
        };
        let kubeconfig = init::account(&owner, &own, "kube-bind").await.unwrap().unwrap();
        assert_eq!(init::account(&owner, &own, "kube-bind").await.unwrap().as_ref(), Some(&kubeconfig));
        let terms = Terms {
            namespace_prefix: "kube-bind-".to_owned(),
            pretty_name: "Account".to_owned(),
            informer_scope: InformerScope::Cluster,
            isolation: Isolation::None,
            address: Address {
                server: plane.url().to_owned(),
                authority: Some(plane.ca_pem().to_owned()),
                authority_given: true,
                server_name: None,
            },
            cluster_wide_claims: false,
            shared_namespaces: false,
            logins: Logins::default(),
            workspace: None,
            most_namespaces: carrick_bind_backend::decide::terms::MOST_NAMESPACES,
        };
        let config = BackendConfig {
            // As the account that was made for it, not as the owner.
            server: Server::from_kubeconfig_yaml(&kubeconfig).unwrap(),
            terms,
            source,
            slice: Some("kube-bind.io".to_owned()),
            ignored_bindings: ["kube-bind.io", "tenancy.kcp.io"].map(str::to_owned).to_vec(),
            lease: None,
            listen_address: None,
            namespace: "default".to_owned(),
        };
        let stop = CancellationToken::new();
        let ending = stop.clone();
        tokio::spawn(async move { backend::run(config, None, ending).await.unwrap() });
        Self { plane, stop, provider }
    }

    /// Binds the backend's export in a workspace, and accepts what it claims: a client of that workspace, and its logical cluster.
    async fn bind(&self, workspace: &str) -> (Client, String) {
        let (_, client) = client(&self.plane, "kcp-admin", workspace);
        let export: ApiExport = self.provider.client().get_kcp("kube-bind.io").await.unwrap().unwrap();
        let mut binding = ApiBinding::to_export("kube-bind", ExportReference::new("root:provider", "kube-bind.io"));
        let claims = export.spec.permission_claims.into_iter();
        binding.spec.permission_claims = claims.map(|claim| claim.decided(ClaimState::Accepted)).collect();
        client.create_kcp(&binding).await.unwrap();
        let bound = until(&client, &API_BINDING.into(), None, "kube-bind", |it| it["status"]["phase"] == "Bound").await;
        let cluster = bound["metadata"]["annotations"]["kcp.io/cluster"].as_str().unwrap().to_owned();
        (client, cluster)
    }
}

fn crd() -> Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "sheriffs.wild.io", "labels": {"kube-bind.io/exported": "true"}},
        "spec": {"group": "wild.io", "scope": "Cluster",
            "names": {"plural": "sheriffs", "kind": "Sheriff", "singular": "sheriff", "listKind": "SheriffList"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object"}}}}}]}})
}

/// Asks for a contract: its namespace and kubeconfig.
async fn contract(client: &Client, identity: &str) -> (String, String) {
    let request = json!({"apiVersion": "kube-bind.io/v1alpha2", "kind": "BindableResourcesRequest",
        "metadata": {"name": "r", "namespace": "default"}, "spec": {"clusterIdentity": {"identity": identity}, "author": "jane"}});
    let requests = of(kinds::BINDABLE_RESOURCES_REQUEST);
    client.create(&requests, Some("default"), &request).await.unwrap();
    let done = until(client, &requests, Some("default"), "r", |it| it["status"]["phase"] == "Succeeded").await;
    let secrets = Resource::namespaced("", "v1", "Secret", "secrets");
    let secret = client.get(&secrets, Some("default"), "r-binding-response").await.unwrap().unwrap();
    let text = BASE64.decode(secret["data"]["binding-response"].as_str().unwrap().as_bytes()).unwrap();
    let answer = BindingResponse::parse(std::str::from_utf8(&text).unwrap()).unwrap();
    (done["status"]["namespace"].as_str().unwrap().to_owned(), answer.kubeconfig_text().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn workspaces_that_bind_the_export_are_served_each_under_its_own_address() {
    let world = World::start(SchemaSource::Crds).await;
    let mut parties = Vec::new();
    for workspace in ["root:team", "root:other"] {
        let (client, cluster) = world.bind(workspace).await;
        let crds = Resource::cluster_wide(
            "apiextensions.k8s.io",
            "v1",
            "CustomResourceDefinition",
            "customresourcedefinitions",
        );
        client.create(&crds, None, &crd()).await.unwrap();
        let (namespace, kubeconfig) = contract(&client, "the same consumer").await;
        assert!(kubeconfig.contains(&format!("{}/clusters/{cluster}\"", world.plane.url())), "{cluster}");
        let request = json!({"apiVersion": "kube-bind.io/v1alpha2", "kind": "APIServiceExportRequest",
            "metadata": {"name": "sheriffs"}, "spec": {"resources": [{"group": "wild.io", "resource": "sheriffs", "versions": ["v1"]}]}});
        // As the consumer itself may ask.
        let consumer = Server::from_kubeconfig_yaml(&kubeconfig).unwrap().client();
        let requests = of(kinds::API_SERVICE_EXPORT_REQUEST);
        consumer.create(&requests, Some(&namespace), &request).await.unwrap();
        let done = |it: &Value| it["status"]["phase"] == "Succeeded";
        until(&consumer, &requests, Some(&namespace), "sheriffs", done).await;
        parties.push((namespace, consumer, cluster));
    }
    // The same identity has the same namespace in both, and one consumer's credentials are worth nothing in the other workspace.
    assert_eq!(parties[0].0, parties[1].0);
    let stranger = parties[0].1.at_url(&format!("{}/clusters/{}", world.plane.url(), parties[1].2)).unwrap();
    let refused = stranger.get(&of(kinds::API_SERVICE_EXPORT), Some(&parties[1].0), "sheriffs").await;
    assert!(refused.as_ref().is_err_and(carrick_client::Error::is_forbidden), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn claims_that_are_withdrawn_end_nothing_and_work_goes_on_when_they_are_accepted_again() {
    let world = World::start(SchemaSource::Crds).await;
    let (client, _) = world.bind("root:team").await;
    let (namespace, kubeconfig) = contract(&client, "one").await;
    let consumer = Server::from_kubeconfig_yaml(&kubeconfig).unwrap().client();
    let spaces = of(kinds::API_SERVICE_NAMESPACE);
    let space = |name: &str| json!({"apiVersion": "kube-bind.io/v1alpha2", "kind": "APIServiceNamespace", "metadata": {"name": name}});
    consumer.create(&spaces, Some(&namespace), &space("first")).await.unwrap();
    let assigned = |it: &Value| it["status"]["namespace"].is_string();
    until(&client, &spaces, Some(&namespace), "first", assigned).await;
    let decide = async |state: ClaimState| {
        let mut binding: ApiBinding = client.get_kcp("kube-bind").await.unwrap().unwrap();
        for claim in &mut binding.spec.permission_claims {
            claim.state = state.clone();
        }
        client.replace_kcp(&binding).await.unwrap();
        let applied = matches!(state, ClaimState::Accepted);
        let settled =
            |it: &Value| it["status"]["appliedPermissionClaims"].as_array().is_some_and(|it| !it.is_empty()) == applied;
        until(&client, &API_BINDING.into(), None, "kube-bind", settled).await;
    };
    let namespaces = Resource::cluster_wide("", "v1", "Namespace", "namespaces");
    let (contract, first) = (
        client.get(&namespaces, None, &namespace).await.unwrap().unwrap(),
        client.get(&namespaces, None, "first").await.unwrap().unwrap(),
    );
    decide(ClaimState::Rejected).await;
    // Something to look at, of which it can see only a part.
    consumer.create(&spaces, Some(&namespace), &space("second")).await.unwrap();
    decide(ClaimState::Accepted).await;
    until(&client, &spaces, Some(&namespace), "second", assigned).await;
    for (name, before) in [(namespace.as_str(), contract), ("first", first)] {
        let now = client.get(&namespaces, None, name).await.unwrap().unwrap();
        assert_eq!(now["metadata"]["uid"], before["metadata"]["uid"], "{name} is the same");
        assert!(now["metadata"].get("deletionTimestamp").is_none());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_workspace_has_bound_is_in_its_catalogue_and_can_be_exported() {
    let world = World::start(SchemaSource::ApiResourceSchemas).await;
    // Somebody else offers an API, which the account binds.
    let (_, vendor) = client(&world.plane, "kcp-admin", "root:other");
    let schema = json!({"apiVersion": "apis.kcp.io/v1alpha1", "kind": "APIResourceSchema", "metadata": {"name": "v1.sheriffs.wild.io"},
        "spec": {"group": "wild.io", "scope": "Cluster",
            "names": {"plural": "sheriffs", "singular": "sheriff", "kind": "Sheriff", "listKind": "SheriffList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"type": "object"}}]}});
    vendor.create(&API_RESOURCE_SCHEMA.into(), None, &schema).await.unwrap();
    let mut export = ApiExport::new("wild");
    export.spec.latest_resource_schemas = vec!["v1.sheriffs.wild.io".to_owned()];
    vendor.create_kcp(&export).await.unwrap();
    let (client, _) = world.bind("root:team").await;
    let binding = ApiBinding::to_export("wild", ExportReference::new("root:other", "wild"));
    client.create_kcp(&binding).await.unwrap();
    let templates = of(kinds::API_SERVICE_EXPORT_TEMPLATE);
    let template = until(&client, &templates, None, "wild-cluster", |_| true).await;
    assert_eq!(
        template["spec"]["resources"],
        json!([{"group": "wild.io", "resource": "sheriffs", "versions": ["v1"]}])
    );
    let exported = |it: &Value| it["metadata"]["labels"]["kube-bind.io/exported"] == "true";
    let schema = until(&client, &API_RESOURCE_SCHEMA.into(), None, "v1.sheriffs.wild.io", exported).await;
    assert_eq!(schema["metadata"]["ownerReferences"][0]["uid"], template["metadata"]["uid"]);
    let (namespace, _) = contract(&client, "one").await;
    let request = json!({"apiVersion": "kube-bind.io/v1alpha2", "kind": "APIServiceExportRequest",
        "metadata": {"name": "sheriffs"}, "spec": {"resources": template["spec"]["resources"]}});
    let requests = of(kinds::API_SERVICE_EXPORT_REQUEST);
    client.create(&requests, Some(&namespace), &request).await.unwrap();
    until(&client, &requests, Some(&namespace), "sheriffs", |it| it["status"]["phase"] == "Succeeded").await;
    let bound = client.get(&of(kinds::BOUND_SCHEMA), Some(&namespace), "sheriffs.wild.io").await.unwrap().unwrap();
    assert_eq!(bound["spec"]["versions"][0]["schema"], json!({"type": "object"}), "bare, as kcp has it");
    // The catalogue follows.
    client.delete(&API_BINDING.into(), None, "wild", &carrick_client::DeleteOptions::default()).await.unwrap();
    let gone = async {
        while client.get(&templates, None, "wild-cluster").await.unwrap().is_some() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), gone).await.unwrap();
}

/// Waits until an object is gone.
async fn until_gone(client: &Client, resource: &Resource, name: &str) {
    let gone = async {
        // Whoever asks in a workspace that is gone is refused.
        while client.get(resource, None, name).await.is_ok_and(|found| found.is_some()) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_mins(1), gone).await.unwrap_or_else(|_| panic!("{resource} {name} stays"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workspace_that_unbinds_or_is_deleted_is_not_held_up_and_others_are_served_on() {
    let world = World::start(SchemaSource::Crds).await;
    let (_, root) = client(&world.plane, "kcp-admin", "root");
    let crds =
        Resource::cluster_wide("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions");
    let requests = of(kinds::API_SERVICE_EXPORT_REQUEST);
    let request = |name: &str| {
        json!({"apiVersion": "kube-bind.io/v1alpha2", "kind": "APIServiceExportRequest", "metadata": {"name": name},
            "spec": {"resources": [{"group": "wild.io", "resource": "sheriffs", "versions": ["v1"]}]}})
    };
    let done = |it: &Value| it["status"]["phase"] == "Succeeded";
    let mut parties = Vec::new();
    for workspace in ["root:team", "root:other"] {
        let (client, _) = world.bind(workspace).await;
        client.create(&crds, None, &crd()).await.unwrap();
        let (namespace, _) = contract(&client, "one").await;
        client.create(&requests, Some(&namespace), &request("sheriffs")).await.unwrap();
        until(&client, &requests, Some(&namespace), "sheriffs", done).await;
        let exports = of(kinds::API_SERVICE_EXPORT);
        until(&client, &exports, Some(&namespace), "sheriffs", |it| it["metadata"]["finalizers"].is_array()).await;
        parties.push((client, namespace));
    }
    // One unbinds: its exports must not hold that up.
    let options = carrick_client::DeleteOptions::default();
    let (team, _) = &parties[0];
    team.delete(&API_BINDING.into(), None, "kube-bind", &options).await.unwrap();
    until_gone(team, &API_BINDING.into(), "kube-bind").await;
    // It binds again, asks, and is deleted while it waits.
    world.bind("root:team").await;
    let (namespace, _) = contract(team, "two").await;
    team.create(&requests, Some(&namespace), &request("late")).await.unwrap();
    root.delete(&WORKSPACE.into(), None, "team", &options).await.unwrap();
    until_gone(&root, &WORKSPACE.into(), "team").await;
    // The other one is served as before.
    let (other, namespace) = &parties[1];
    other.create(&requests, Some(namespace), &request("again")).await.unwrap();
    until(other, &requests, Some(namespace), "again", done).await;
}
