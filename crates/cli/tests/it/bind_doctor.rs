//! `carrick bind doctor`, run as a user would: one thing after the other is broken, and exactly that line says so.

mod rights;

use std::path::PathBuf;
use std::time::Duration;

use crate::running::carrick;
use carrick_bind_api::kinds::{self, Kind};
use carrick_bind_api::response::BindingResponse;
use carrick_bind_api::v1alpha2::{InformerScope, Isolation};
use carrick_bind_backend::agent::{BackendConfig, SchemaSource, init};
use carrick_bind_backend::backend;
use carrick_bind_backend::decide::terms::{Address, Logins, Terms};
use carrick_client::{Client, DeleteOptions, Resource, Server};
use carrick_konnector::agent::{Budget, CoreConfig, KonnectorConfig};
use carrick_plane::{Config, Mode, Plane};
use data_encoding::BASE64;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// Where a kubeconfig says where a server is, and who we are there.
const CLUSTER: &str = "/clusters/0/cluster";
const USER: &str = "/users/0/user";

fn of(kind: Kind) -> Resource {
    let make = if kinds::is_namespaced(kind) { Resource::namespaced } else { Resource::cluster_wide };
    make(kind.group, kind.version, kind.kind, kind.plural)
}

fn core(kind: &str, plural: &str, namespaced: bool) -> Resource {
    let make = if namespaced { Resource::namespaced } else { Resource::cluster_wide };
    make("", "v1", kind, plural)
}

fn secrets() -> Resource {
    core("Secret", "secrets", true)
}

fn crd_kind() -> Resource {
    Resource::cluster_wide("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions")
}

async fn until<T>(what: &str, look: impl AsyncFn() -> Option<T>) -> T {
    let found = async {
        loop {
            if let Some(found) = look().await {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_mins(1), found).await.unwrap_or_else(|_| panic!("{what}: never"))
}

/// A consumer that has bound something, and its provider. Backend and konnector have done their work and are gone, so that nobody mends what the
/// tests break.
struct World {
    planes: [Plane; 2],
    consumer: Client,
    provider: Client,
    contract: String,
    kubeconfig: String,
    folder: PathBuf,
}

impl World {
    async fn start(name: &str) -> Self {
        let planes = [
            Plane::start(Config::new(Mode::Kube)).await.unwrap(),
            Plane::start(Config::new(Mode::Kube)).await.unwrap(),
        ];
        let folder = std::env::temp_dir().join(format!("carrick-bind-doctor-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let servers = [("consumer", &planes[0]), ("provider", &planes[1])].map(|(side, plane)| {
            let text = plane.kubeconfig("admin", None).unwrap();
            std::fs::write(folder.join(side), &text).unwrap();
            Server::from_kubeconfig_yaml(&text).unwrap()
        });
        let [consumer, provider] = [servers[0].client(), servers[1].client()];
        init::crds(&provider).await.unwrap();
        let crd = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "sheriffs.wild.io", "labels": {"kube-bind.io/exported": "true"}},
            "spec": {"group": "wild.io", "scope": "Namespaced",
                "names": {"plural": "sheriffs", "kind": "Sheriff", "singular": "sheriff", "listKind": "SheriffList"},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]}});
        provider.create(&crd_kind(), None, &crd).await.unwrap();
        let stop = CancellationToken::new();
        let [of_consumer, of_provider] = servers;
        let terms = Terms {
            namespace_prefix: "kube-bind-".to_owned(),
            pretty_name: "Wild West Inc.".to_owned(),
            informer_scope: InformerScope::Namespaced,
            isolation: Isolation::Prefixed,
            address: Address {
                server: planes[1].url().to_owned(),
                authority: Some(planes[1].ca_pem().to_owned()),
                authority_given: true,
                server_name: None,
            },
            cluster_wide_claims: false,
            shared_namespaces: false,
            logins: Logins::default(),
            workspace: None,
            most_namespaces: carrick_bind_backend::decide::terms::MOST_NAMESPACES,
        };
        let backend = BackendConfig {
            server: of_provider,
            terms,
            source: SchemaSource::Crds,
            slice: None,
            ignored_bindings: Vec::new(),
            lease: None,
            listen_address: None,
            namespace: "default".to_owned(),
        };
        let polling = Duration::from_secs(15);
        let konnector = KonnectorConfig {
            server: of_consumer,
            lease: None,
            server_address: None,
            export: None,
            polling,
            namespace: None,
            core: CoreConfig::default(),
            budget: Budget::default(),
        };
        let ending = stop.clone();
        let backend = tokio::spawn(async move { backend::run(backend, None, ending).await.unwrap() });
        let ending = stop.clone();
        let konnector = tokio::spawn(async move { carrick_konnector::agent::run(konnector, ending).await.unwrap() });
        let mut world = Self { planes, consumer, provider, contract: String::new(), kubeconfig: String::new(), folder };
        world.bind().await;
        stop.cancel();
        backend.await.unwrap();
        konnector.await.unwrap();
        world
    }

    /// What a portal and a consumer do.
    async fn bind(&mut self) {
        let system = self.consumer.get(&core("Namespace", "namespaces", false), None, "kube-system").await;
        let identity = system.unwrap().unwrap()["metadata"]["uid"].clone();
        let requests = of(kinds::BINDABLE_RESOURCES_REQUEST);
        let request = json!({"apiVersion": "kube-bind.io/v1alpha2", "kind": "BindableResourcesRequest", "metadata": {"name": "r"},
            "spec": {"clusterIdentity": {"identity": identity}, "author": "jane"}});
        until("requests are served", async || self.provider.create(&requests, Some("default"), &request).await.ok())
            .await;
        let done = until("a contract", async || {
            let found = self.provider.get(&requests, Some("default"), "r").await.unwrap()?;
            (found["status"]["phase"] == "Succeeded").then_some(found)
        })
        .await;
        done["status"]["namespace"].as_str().unwrap().clone_into(&mut self.contract);
        let secret = self.provider.get(&secrets(), Some("default"), "r-binding-response").await.unwrap().unwrap();
        let text = BASE64.decode(secret["data"]["binding-response"].as_str().unwrap().as_bytes()).unwrap();
        let answer = BindingResponse::parse(std::str::from_utf8(&text).unwrap()).unwrap();
        self.kubeconfig = answer.kubeconfig_text().unwrap();
        let order = json!({"apiVersion": "kube-bind.io/v1alpha2", "kind": "APIServiceExportRequest", "metadata": {"name": "law"},
            "spec": {"resources": [{"group": "wild.io", "resource": "sheriffs", "versions": ["v1"]}]}});
        self.provider.create(&of(kinds::API_SERVICE_EXPORT_REQUEST), Some(&self.contract), &order).await.unwrap();
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-bind"}});
        self.consumer.create(&core("Namespace", "namespaces", false), None, &namespace).await.unwrap();
        self.store(&self.kubeconfig).await;
        let bundle = json!({"apiVersion": "kube-bind.io/v1alpha2", "kind": "APIServiceBindingBundle", "metadata": {"name": "all"},
            "spec": {"kubeconfigSecretRef": {"namespace": "kube-bind", "name": "provider", "key": "kubeconfig"}}});
        let bundles = of(kinds::API_SERVICE_BINDING_BUNDLE);
        until("bundles are served", async || self.consumer.create(&bundles, None, &bundle).await.ok()).await;
        until("all is bound, and both sides know", async || {
            let binding = self.consumer.get(&of(kinds::API_SERVICE_BINDING), None, "law").await.ok()??;
            let cluster =
                self.provider.get(&of(kinds::CLUSTER_BINDING), Some(&self.contract), "cluster").await.ok()??;
            let export =
                self.provider.get(&of(kinds::API_SERVICE_EXPORT), Some(&self.contract), "law").await.ok()??;
            let is = |object: &Value, type_: &str| {
                let mut all = object["status"]["conditions"].as_array().into_iter().flatten();
                all.any(|it| it["type"] == type_ && it["status"] == "True")
            };
            (is(&binding, "Ready")
                && is(&binding, "InformersSynced")
                && is(&cluster, "Healthy")
                && is(&export, "Ready"))
            .then_some(())
        })
        .await;
    }

    /// Writes the Secret with the provider's kubeconfig.
    async fn store(&self, kubeconfig: &str) {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "provider", "namespace": "kube-bind"},
            "data": {"kubeconfig": BASE64.encode(kubeconfig.as_bytes())}});
        self.consumer.apply_as(&secrets(), Some("kube-bind"), &secret, "test").await.unwrap();
    }

    /// What the doctor says: exit code, and all findings that are not green as check, severity, text, first line of the fix.
    async fn doctor(&self) -> (i32, Vec<[String; 4]>) {
        let mut command = carrick(&["bind", "doctor", "-o", "json", "--timeout", "5"]);
        command.arg("--kubeconfig").arg(self.folder.join("consumer"));
        command.arg("--provider-kubeconfig").arg(self.folder.join("provider"));
        let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
        let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| {
            panic!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
        });
        let all = report["findings"].as_array().unwrap().iter().filter(|it| it["severity"] != "green");
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let shown = all.map(|it| {
            let fix: Vec<_> = it["fix"].as_array().into_iter().flatten().map(text).collect();
            [text(&it["check"]), text(&it["severity"]), text(&it["text"]), fix.join("\n")]
        });
        (output.status.code().unwrap(), shown.collect())
    }

    /// Sees exactly this one line, with this in its fix.
    async fn sees(&self, check: &str, severity: &str, words: &str, fix: &str) {
        let (code, found) = self.doctor().await;
        let [[of, how, text, way]] = &found[..] else { panic!("{check}: {found:#?}") };
        assert_eq!((of.as_str(), how.as_str()), (check, severity), "{text}");
        assert!(text.contains(words), "{check}: {text}");
        assert!(way.contains(fix), "{check}: {way}");
        assert_eq!(code, if severity == "red" { 2 } else { 1 });
    }

    async fn is_well(&self) {
        assert_eq!(self.doctor().await, (0, Vec::new()));
    }

    async fn change_binding(&self, patch: Value) {
        let at = Some(self.contract.as_str());
        self.provider.merge_patch_status(&of(kinds::CLUSTER_BINDING), at, "cluster", &patch).await.unwrap();
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// A kubeconfig with one field of its cluster or user replaced.
fn with_field(kubeconfig: &str, part: &str, field: &str, value: &str) -> String {
    let mut config: Value = carrick_json::yaml::value(kubeconfig).unwrap();
    let at = config.pointer_mut(part).and_then(|it| it.get_mut(field));
    *at.unwrap_or_else(|| panic!("no {field}")) = json!(value);
    config.to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_a_kubeconfig_and_where_it_leads_is_said() {
    let world = World::start("kubeconfig").await;
    world.is_well().await;
    // DNS.
    world.store(&with_field(&world.kubeconfig, CLUSTER, "server", "https://nowhere.invalid:6443")).await;
    world.sees("Way to the provider", "red", "nowhere.invalid", "getent hosts nowhere.invalid").await;
    // Nobody listens.
    world.store(&with_field(&world.kubeconfig, CLUSTER, "server", "https://127.0.0.1:1")).await;
    world.sees("Way to the provider", "red", "127.0.0.1:1", "curl -k https://127.0.0.1:1/version").await;
    // TLS: signed by somebody else.
    let other = BASE64.encode(world.planes[0].ca_pem().as_bytes());
    world.store(&with_field(&world.kubeconfig, CLUSTER, "certificate-authority-data", &other)).await;
    world.sees("Way to the provider", "red", "cannot be used", "openssl s_client -connect 127.0.0.1").await;
    // A token of yesterday.
    world.store(&with_field(&world.kubeconfig, USER, "token", "expired")).await;
    world.sees("Way to the provider", "red", "401", "renew the token").await;
    // No kubeconfig at all.
    world.store("apiVersion: v1\nkind: Config\n").await;
    world.sees("Kubeconfigs", "red", "Secret kube-bind/provider gives no kubeconfig", "kubectl bind deploy").await;
    world.consumer.delete(&secrets(), Some("kube-bind"), "provider", &DeleteOptions::default()).await.unwrap();
    world
        .sees("Kubeconfigs", "red", "secret kube-bind/provider not found", "--provider-kubeconfig-secret-name provider")
        .await;
    world.store(&world.kubeconfig).await;
    world.is_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_a_contract_is_said() {
    let world = World::start("contract").await;
    let at = Some(world.contract.as_str());
    // Rights.
    let role_bindings = Resource::namespaced("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings");
    let roles = Resource::cluster_wide("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles");
    let patch = json!([{"op": "replace", "path": "/rules/0/verbs", "value": ["get", "list", "watch"]}]);
    world.provider.json_patch(&roles, None, "kube-binder", &patch).await.unwrap();
    let denied = "may not create, delete, patch, update apiserviceexportrequests.kube-bind.io; create, delete, patch, update apiservicenamespaces.kube-bind.io";
    world.sees("Rights at the provider", "red", denied, "create rolebinding kube-binder").await;
    let patch = json!([{"op": "replace", "path": "/rules/0/verbs", "value": ["*"]}]);
    world.provider.json_patch(&roles, None, "kube-binder", &patch).await.unwrap();
    world.is_well().await;
    let kept = world.provider.get(&role_bindings, at, "kube-binder").await.unwrap().unwrap();
    world.provider.delete(&role_bindings, at, "kube-binder", &DeleteOptions::default()).await.unwrap();
    world.sees("Rights at the provider", "red", "clusterbindings", "--clusterrole=kube-binder").await;
    let mut again = kept;
    again["metadata"] = json!({"name": "kube-binder", "namespace": world.contract});
    world.provider.create(&role_bindings, at, &again).await.unwrap();
    world.is_well().await;
    // Versions.
    let before = world.provider.get(&of(kinds::CLUSTER_BINDING), at, "cluster").await.unwrap().unwrap();
    world.change_binding(json!({"status": {"konnectorVersion": "latest"}})).await;
    world.sees("Versions", "amber", "\"latest\" cannot be read", "set image deployment/konnector").await;
    world.change_binding(json!({"status": {"konnectorVersion": "v0.4.2"}})).await;
    world.sees("Versions", "amber", "v0.4.2 is older than v0.6.0", "set image deployment/konnector").await;
    world.change_binding(json!({"status": {"konnectorVersion": before["status"]["konnectorVersion"]}})).await;
    // Somebody else's heartbeat.
    world.change_binding(json!({"status": {"consumerSecretRef": {"namespace": "kube-bind", "name": "theirs"}}})).await;
    world
        .sees("Identity", "red", "with Secret kube-bind/theirs, which is not here", "kubectl bind cluster-identity")
        .await;
    world.change_binding(json!({"status": {"consumerSecretRef": before["status"]["consumerSecretRef"]}})).await;
    // A contract that was made for another cluster.
    let identity = |text: &str| json!({"metadata": {"annotations": {"backend.kube-bind.io/identity": text}}});
    let own = before["metadata"]["annotations"]["backend.kube-bind.io/identity"].as_str().unwrap();
    let other = identity("11111111-2222-3333-4444-555555555555");
    world.provider.merge_patch(&of(kinds::CLUSTER_BINDING), at, "cluster", &other).await.unwrap();
    world.sees("Identity", "red", "was made for cluster 11111111-", "kubectl bind cluster-identity").await;
    world.provider.merge_patch(&of(kinds::CLUSTER_BINDING), at, "cluster", &identity(own)).await.unwrap();
    // Two contracts for one identity.
    let namespaces = core("Namespace", "namespaces", false);
    let twin = json!({"apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": "twin", "annotations": {"backend.kube-bind.io/identity": own}}});
    world.provider.create(&namespaces, None, &twin).await.unwrap();
    world.sees("Identities of contracts", "red", "twin all say that they are for", "delete namespace").await;
    world.provider.merge_patch(&namespaces, None, "twin", &identity("another")).await.unwrap();
    world.is_well().await;
    // A heartbeat of yesterday is seen from both sides, and by nobody else.
    world.change_binding(json!({"status": {"lastHeartbeatTime": "2026-01-01T00:00:00Z"}})).await;
    let (code, found) = world.doctor().await;
    let checks: Vec<&str> = found.iter().map(|it| it[0].as_str()).collect();
    assert_eq!((code, &checks[..]), (2, &["Heartbeat", "Heartbeats of consumers"][..]), "{found:#?}");
    assert!(found.iter().all(|it| it[1] == "red" && it[2].contains("no heartbeat within 10m0s")), "{found:#?}");
    assert!(found[0][3].contains("logs deployment/konnector") && found[1][3].contains("carrick bind doctor"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_provider_has_to_mend_is_said() {
    let world = World::start("provider").await;
    let at = Some(world.contract.as_str());
    let requests = of(kinds::API_SERVICE_EXPORT_REQUEST);
    let order = json!({"apiVersion": "kube-bind.io/v1alpha2", "kind": "APIServiceExportRequest", "metadata": {"name": "waits"},
        "spec": {"resources": [{"group": "wild.io", "resource": "cowboys", "versions": ["v1"]}]}});
    world.provider.create(&requests, at, &order).await.unwrap();
    world
        .sees("Requests", "amber", "/waits: no backend has processed it", "delete apiserviceexportrequest waits")
        .await;
    world.provider.delete(&requests, at, "waits", &DeleteOptions::default()).await.unwrap();
    let export = json!({"status": {"conditions": [{"type": "ProviderInSync", "status": "False", "severity": "Warning",
        "reason": "BreakingSchemaChange", "message": "a field would go", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}});
    world.provider.merge_patch_status(&of(kinds::API_SERVICE_EXPORT), at, "law", &export).await.unwrap();
    world
        .sees("Exports", "amber", "/law: BreakingSchemaChange: a field would go", "describe apiserviceexport law")
        .await;
    let fine = json!({"status": {"conditions": []}});
    world.provider.merge_patch_status(&of(kinds::API_SERVICE_EXPORT), at, "law", &fine).await.unwrap();
    let policies = Resource::cluster_wide(
        "admissionregistration.k8s.io",
        "v1",
        "ValidatingAdmissionPolicy",
        "validatingadmissionpolicies",
    );
    world.provider.delete(&policies, None, "kube-binder-own-objects", &DeleteOptions::default()).await.unwrap();
    world.sees("Consumers apart", "amber", "kube-binder-own-objects", "roles |").await;
    // The consumer's server is away.
    world.planes[0].endpoints()[0].stop().await;
    let (code, found) = world.doctor().await;
    let checks: Vec<&str> = found.iter().map(|it| it[0].as_str()).collect();
    assert_eq!((code, &checks[..]), (2, &["Consumer's cluster", "Consumers apart"][..]), "{found:#?}");
    // What it looks like for people.
    let mut command = carrick(&["bind", "doctor", "--timeout", "5"]);
    let output = command.arg("--kubeconfig").arg(world.folder.join("consumer")).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.starts_with("Consumer's cluster\n  ✗ ") && text.contains("\n      curl -k https://127.0.0.1:"),
        "{text}"
    );
    assert!(text.contains("Not checked: Konnector, Rights of the konnector, Kubeconfigs, "), "{text}");
    assert_eq!(carrick(&["bind", "doctor"]).output().unwrap().status.code(), Some(2), "one side has to be named");
}

#[tokio::test(flavor = "multi_thread")]
async fn clusters_where_nothing_is_installed_are_told_apart_from_broken_ones() {
    let plane = Plane::start(Config::new(Mode::Kube)).await.unwrap();
    let folder = std::env::temp_dir().join(format!("carrick-bind-doctor-bare-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("kubeconfig");
    std::fs::write(&file, plane.kubeconfig("admin", None).unwrap()).unwrap();
    for (flag, check, fix) in [
        ("--kubeconfig", "Konnector", "kubectl bind deploy"),
        ("--provider-kubeconfig", "Kinds of the provider", "init"),
    ] {
        let mut command = carrick(&["bind", "doctor", "-o", "json"]);
        command.arg(flag).arg(&file);
        let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let red: Vec<&Value> =
            report["findings"].as_array().unwrap().iter().filter(|it| it["severity"] == "red").collect();
        assert_eq!(red.len(), 1, "{report:#}");
        assert_eq!(red[0]["check"], check);
        assert!(red[0]["fix"].to_string().contains(fix), "{report:#}");
    }
    let _ = std::fs::remove_dir_all(&folder);
}
