//! The two kinds of clusters: a consumer, and a provider as a kube-bind backend leaves it.

use std::collections::BTreeMap;
use std::time::Duration;

use carrick_bind_api::crds;
use carrick_bind_api::kinds::{
    API_SERVICE_BINDING, API_SERVICE_BINDING_BUNDLE, API_SERVICE_EXPORT, BOUND_SCHEMA, CLUSTER_BINDING, Kind,
    is_namespaced,
};
use carrick_bind_api::schema;
use carrick_bind_api::v1alpha2::{ApiServiceExport, ExportedResource, InformerScope, Isolation};
use carrick_client::watch::{Event, WatchOptions, watch};
use carrick_client::{Client, DeleteOptions, Resource, Server};
use carrick_plane::{Config, Mode, Plane, User};
use futures::StreamExt;
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(30);

/// The user that the konnector is on its own cluster.
pub const KONNECTOR: &str = "system:serviceaccount:kube-bind:konnector";
/// The user that a consumer is on its provider.
pub const BINDER: &str = "system:serviceaccount:contracts:kube-binder";

/// The user that it becomes when its credentials are renewed.
pub const ROTATED: &str = "rotated";

pub fn resource(kind: Kind) -> Resource {
    let make = if is_namespaced(kind) { Resource::namespaced } else { Resource::cluster_wide };
    make(kind.group, kind.version, kind.kind, kind.plural)
}

pub fn bindings() -> Resource {
    resource(API_SERVICE_BINDING)
}

pub fn bundles() -> Resource {
    resource(API_SERVICE_BINDING_BUNDLE)
}

pub fn exports() -> Resource {
    resource(API_SERVICE_EXPORT)
}

pub fn schemas() -> Resource {
    resource(BOUND_SCHEMA)
}

pub fn cluster_bindings() -> Resource {
    resource(CLUSTER_BINDING)
}

pub fn secrets() -> Resource {
    Resource::namespaced("", "v1", "Secret", "secrets")
}

pub fn crd_kind() -> Resource {
    Resource::cluster_wide("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions")
}

pub fn namespaces() -> Resource {
    Resource::cluster_wide("", "v1", "Namespace", "namespaces")
}

pub fn sheriffs() -> Resource {
    Resource::cluster_wide("wild.io", "v1", "Sheriff", "sheriffs")
}

/// A cluster, as its administrator sees it.
pub struct Cluster {
    home: Home,
    pub client: Client,
}

/// What serves a cluster.
enum Home {
    Plane(Box<Plane>),
    /// A real API server, with the kubeconfig of its administrator and the tokens of all.
    Server {
        url: String,
        authority: String,
        tokens: BTreeMap<String, String>,
    },
}

impl Cluster {
    pub async fn start(users: &[&str]) -> Self {
        let mut config = Config::new(Mode::Kube);
        config.users = users.iter().map(|name| User::new(&format!("token-of-{name}"), name, &[])).collect();
        let plane = Plane::start(config).await.unwrap();
        Self::at(Home::Plane(Box::new(plane)))
    }

    /// A cluster that a real API server serves, which knows these users and `admin`.
    #[allow(dead_code, reason = "only some tests play on real servers")]
    pub fn real(url: &str, authority: &str, tokens: BTreeMap<String, String>) -> Self {
        Self::at(Home::Server { url: url.to_owned(), authority: authority.to_owned(), tokens })
    }

    fn at(home: Home) -> Self {
        let server = Server::from_kubeconfig_yaml(&kubeconfig(&home, "admin")).unwrap();
        Self { home, client: server.client() }
    }

    /// The plane; tests that need one do not play on real servers.
    pub fn plane(&self) -> &Plane {
        match &self.home {
            Home::Plane(plane) => plane,
            Home::Server { .. } => panic!("this is a real server"),
        }
    }

    pub fn kubeconfig(&self, user: &str) -> String {
        kubeconfig(&self.home, user)
    }

    pub fn token(&self, user: &str) -> String {
        match &self.home {
            Home::Plane(plane) => plane.token(user).unwrap(),
            Home::Server { tokens, .. } => tokens[user].clone(),
        }
    }

    pub fn url(&self) -> &str {
        match &self.home {
            Home::Plane(plane) => plane.url(),
            Home::Server { url, .. } => url,
        }
    }

    /// Creates or replaces an object, and the namespace that it is in.
    pub async fn apply(&self, resource: &Resource, object: &Value) -> Value {
        apply(&self.client, resource, object).await
    }

    pub async fn get(&self, resource: &Resource, namespace: Option<&str>, name: &str) -> Option<Value> {
        self.client.get(resource, namespace, name).await.unwrap()
    }

    pub async fn delete(&self, resource: &Resource, namespace: Option<&str>, name: &str) {
        self.client.delete(resource, namespace, name, &DeleteOptions::default()).await.unwrap();
    }

    /// Waits until an object is as wanted.
    pub async fn until(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        name: &str,
        wanted: impl Fn(&Value) -> bool,
    ) -> Value {
        let mut last = None;
        let found = async {
            let options = WatchOptions {
                namespace: namespace.map(str::to_owned),
                ..WatchOptions::fields(format!("metadata.name={name}"))
            };
            let mut events = std::pin::pin!(watch(self.client.clone(), resource.clone(), options));
            loop {
                match events.next().await {
                    Some(Event::Listed(object) | Event::Applied(object)) if &*object.name == name => {
                        let object = object.value();
                        if wanted(&object) {
                            return object;
                        }
                        last = Some(object);
                    }
                    Some(_) => {}
                    None => panic!("a watch has ended"),
                }
            }
        };
        let found = tokio::time::timeout(PATIENCE, found).await;
        found.unwrap_or_else(|_| panic!("{resource} {name} does not become what it should: {last:#?}"))
    }

    /// Waits until a user watches a resource.
    pub async fn until_watched(&self, user: &str, resource: &str) {
        let watched = async {
            while !self.plane().faults().open_watches().iter().any(|it| it.user == user && it.resource == resource) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(PATIENCE, watched).await.unwrap_or_else(|_| panic!("nobody watches {resource}"));
    }

    /// Waits until an object is gone.
    pub async fn until_gone(&self, resource: &Resource, namespace: Option<&str>, name: &str) {
        let gone = async {
            let options = WatchOptions {
                namespace: namespace.map(str::to_owned),
                ..WatchOptions::fields(format!("metadata.name={name}"))
            };
            let mut events = std::pin::pin!(watch(self.client.clone(), resource.clone(), options));
            let mut there = false;
            loop {
                match events.next().await {
                    Some(Event::Begin | Event::Deleted(_)) => there = false,
                    Some(Event::Listed(_) | Event::Applied(_)) => there = true,
                    Some(Event::Synced) => {}
                    Some(Event::Failing(error)) if error.is_not_found() => return,
                    _ => continue,
                }
                if !there && self.client.get(resource, namespace, name).await.is_ok_and(|it| it.is_none()) {
                    return;
                }
            }
        };
        let gone = tokio::time::timeout(PATIENCE, gone).await.is_ok();
        assert!(gone, "{resource} {name} stays: {:#?}", self.get(resource, namespace, name).await);
    }
}

fn kubeconfig(home: &Home, user: &str) -> String {
    match home {
        Home::Plane(plane) => plane.kubeconfig(user, None).unwrap(),
        Home::Server { url, authority, tokens } => {
            let (authority, token) = (data_encoding::BASE64.encode(authority.as_bytes()), &tokens[user]);
            format!(
                "apiVersion: v1\nkind: Config\nclusters:\n- name: plane\n  cluster:\n    server: {url:?}\n    \
                 certificate-authority-data: {authority}\nusers:\n- name: {user:?}\n  user:\n    token: {token:?}\ncontexts:\n\
                 - name: plane\n  context:\n    cluster: plane\n    user: {user:?}\ncurrent-context: plane\n"
            )
        }
    }
}

/// Creates an object or replaces its content, by whoever the client is.
pub async fn apply(client: &Client, resource: &Resource, object: &Value) -> Value {
    let namespace = object["metadata"]["namespace"].as_str();
    if let Some(namespace) = namespace {
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        client.apply_as(&namespaces(), None, &object, "test").await.unwrap();
    }
    client.apply_as(resource, namespace, object, "test").await.unwrap_or_else(|error| panic!("{error}: {object}"))
}

/// A provider, as a kube-bind backend leaves it for one consumer.
pub struct Provider {
    pub cluster: Cluster,
    /// The contract namespace.
    pub contract: String,
}

impl Provider {
    pub async fn start(contract: &str) -> Self {
        Self::on(Cluster::start(&[BINDER, ROTATED]).await, contract).await
    }

    /// Makes a provider of a cluster.
    pub async fn on(cluster: Cluster, contract: &str) -> Self {
        for crd in crds::provider() {
            cluster.apply(&crd_kind(), &crd).await;
            let name = crd["metadata"]["name"].as_str().unwrap();
            let established = |crd: &Value| {
                let mut conditions = crd["status"]["conditions"].as_array().into_iter().flatten();
                conditions.any(|it| it["type"] == "Established" && it["status"] == "True")
            };
            cluster.until(&crd_kind(), None, name, established).await;
        }
        let provider = Self { cluster, contract: contract.to_owned() };
        provider.grant().await;
        provider.write_contract("Wild West Inc.").await;
        provider
    }

    /// ClusterBinding and credentials.
    pub async fn write_contract(&self, pretty_name: &str) {
        self.cluster
            .apply(
                &cluster_bindings(),
                &json!({"apiVersion": "kube-bind.io/v1alpha2", "kind": "ClusterBinding",
                    "metadata": {"name": "cluster", "namespace": self.contract,
                        "annotations": {"backend.kube-bind.io/identity": "the consumer"}},
                    "spec": {"kubeconfigSecretRef": {"name": "kubeconfig", "key": "kubeconfig"}, "providerPrettyName": pretty_name}}),
            )
            .await;
        self.write_credentials(&self.kubeconfig()).await;
    }

    /// What the backend hands out.
    pub async fn write_credentials(&self, kubeconfig: &str) {
        let secret = secret(&self.contract, "kubeconfig", kubeconfig);
        self.cluster.apply(&secrets(), &secret).await;
    }

    /// A kubeconfig for the contract.
    pub fn kubeconfig(&self) -> String {
        let text = self.cluster.kubeconfig(BINDER);
        let user = format!("    user: {BINDER:?}\n");
        assert!(text.contains(&user), "{text}");
        text.replace(&user, &format!("{user}    namespace: {}\n", self.contract))
    }

    /// The rights of a contract, as chapter 3.3 lists them.
    async fn grant(&self) {
        let rbac = "rbac.authorization.k8s.io";
        let all = ["get", "list", "watch", "create", "update", "patch", "delete"];
        let role = json!({"apiVersion": format!("{rbac}/v1"), "kind": "ClusterRole", "metadata": {"name": "kube-binder"}, "rules": [
            {"apiGroups": ["kube-bind.io"], "resources": ["apiserviceexportrequests", "apiservicenamespaces"], "verbs": all},
            {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get"]},
            {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "list", "watch"]},
            {"apiGroups": ["kube-bind.io"], "resources": ["clusterbindings", "apiserviceexports", "boundschemas"],
                "verbs": ["get", "list", "watch"]},
            {"apiGroups": ["kube-bind.io"],
                "resources": ["clusterbindings/status", "apiserviceexports/status", "boundschemas/status"],
                "verbs": ["get", "patch", "update"]},
        ]});
        let roles = Resource::cluster_wide(rbac, "v1", "ClusterRole", "clusterroles");
        self.cluster.apply(&roles, &role).await;
        let subjects = json!([BINDER, ROTATED].map(|name| json!({"apiGroup": rbac, "kind": "User", "name": name})));
        let binding = json!({"apiVersion": format!("{rbac}/v1"), "kind": "RoleBinding",
            "metadata": {"name": "kube-binder", "namespace": self.contract},
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "kube-binder"},
            "subjects": subjects});
        self.cluster.apply(&Resource::namespaced(rbac, "v1", "RoleBinding", "rolebindings"), &binding).await;
        // What chapter 3.6 adds for the exported resources.
        let role = json!({"apiVersion": format!("{rbac}/v1"), "kind": "ClusterRole", "metadata": {"name": "kube-binder-exports"},
            "rules": [{"apiGroups": ["wild.io"], "resources": ["*"], "verbs": all}]});
        self.cluster.apply(&roles, &role).await;
        let binding = json!({"apiVersion": format!("{rbac}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": "kube-binder-exports"},
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "kube-binder-exports"},
            "subjects": subjects});
        self.cluster
            .apply(&Resource::cluster_wide(rbac, "v1", "ClusterRoleBinding", "clusterrolebindings"), &binding)
            .await;
    }

    /// Offers the sheriffs under a name.
    pub async fn export(&self, name: &str) {
        self.export_crd(name, &sheriff_crd()).await;
    }

    /// Offers a CRD under a name.
    pub async fn export_crd(&self, name: &str, crd: &Value) {
        self.export_claiming(name, crd, &json!([])).await;
    }

    /// Offers a CRD under a name, and claims something for that.
    pub async fn export_claiming(&self, name: &str, crd: &Value, claims: &Value) {
        self.cluster.apply(&crd_kind(), crd).await;
        self.write_schema(crd).await;
        let mut export = ApiServiceExport::new(name);
        export.metadata.namespace.clone_from(&self.contract);
        let (group, plural) =
            (crd["spec"]["group"].as_str().unwrap(), crd["spec"]["names"]["plural"].as_str().unwrap());
        export.spec.resources = vec![ExportedResource::new(group, plural, &["v1"])];
        export.spec.informer_scope = InformerScope::Cluster;
        export.spec.isolation = Isolation::Prefixed;
        export.spec.permission_claims = serde_json::from_value(claims.clone()).unwrap();
        self.cluster.apply(&exports(), &serde_json::to_value(export).unwrap()).await;
    }

    /// Writes the BoundSchema of a CRD.
    pub async fn write_schema(&self, crd: &Value) {
        let mut schema = schema::from_crd(crd, InformerScope::Cluster, &Isolation::Prefixed).unwrap();
        schema.metadata.namespace.clone_from(&self.contract);
        self.cluster.apply(&schemas(), &serde_json::to_value(schema).unwrap()).await;
    }
}

pub fn secret(namespace: &str, name: &str, kubeconfig: &str) -> Value {
    let data = data_encoding::BASE64.encode(kubeconfig.as_bytes());
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": namespace},
        "data": {"kubeconfig": data}})
}

pub fn sheriff_crd() -> Value {
    crd("sheriffs", "Sheriff")
}

pub fn crd(plural: &str, kind: &str) -> Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.wild.io"), "labels": {"kube-bind.io/exported": "true"}},
        "spec": {"group": "wild.io", "scope": "Cluster",
            "names": {"plural": plural, "kind": kind, "singular": kind.to_lowercase(), "listKind": format!("{kind}List")},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": {"intent": {"type": "string"}}},
                    "status": {"type": "object", "properties": {"result": {"type": "string"}}}}}}}]}})
}
