//! What the Helm chart renders, as it is committed in `charts/tests/kube-bind-backend`: its rights are enough for a whole contract, and its flags are known.

use std::path::Path;
use std::time::Duration;

use carrick_bind_api::v1alpha2::{InformerScope, Isolation};
use carrick_bind_api::{crds, kinds};
use carrick_bind_backend::agent::{BackendConfig, Clusters, LeaseConfig, SchemaSource};
use carrick_bind_backend::backend;
use carrick_bind_backend::decide::terms::{Address, Logins, Terms};
use carrick_bind_backend::options::Options;
use carrick_bind_backend::provider::{BindOrder, Person, Provider};
use carrick_client::{Client, Resource, Server};
use carrick_plane::{Config, Mode, Plane, User};
use clap::Parser;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

const BACKEND: &str = "backend";
const NAMESPACE: &str = "kube-bind-system";

fn rendered(name: &str) -> Vec<Value> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../charts/tests/kube-bind-backend").join(name);
    let text = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let documents = text.trim_start_matches("---\n").split("\n---\n");
    documents.map(|document| serde_saphyr::from_str::<Value>(document).unwrap()).filter(Value::is_object).collect()
}

#[test]
fn the_program_knows_every_flag_of_the_chart() {
    for name in ["minimal.yaml", "external.yaml", "platform-mesh.yaml", "full.yaml"] {
        let objects = rendered(name);
        let deployment = objects.iter().find(|object| object["kind"] == "Deployment").unwrap();
        let args = deployment["spec"]["template"]["spec"]["containers"][0]["args"].as_array().unwrap().clone();
        // A kubelet fills in what is in Secrets.
        let key = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=";
        let filled = |arg: &Value| {
            let text = arg.as_str().unwrap();
            text.replace("$(COOKIE_SIGNING_KEY)", key).replace("$(COOKIE_ENCRYPTION_KEY)", key)
        };
        let args = ["kube-bind-backend".to_owned()].into_iter().chain(args.iter().map(filled));
        let options = Options::try_parse_from(args).unwrap_or_else(|error| panic!("{name}: {error}"));
        // What is missing or wrong together is told here.
        let front = options.front(|_| None).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(front.is_none(), name == "platform-mesh.yaml");
    }
}

#[test]
fn a_backend_that_works_elsewhere_gets_no_rights_here() {
    let objects = rendered("platform-mesh.yaml");
    assert!(objects.iter().all(|object| object["apiVersion"] != "rbac.authorization.k8s.io/v1"));
    assert!(objects.iter().all(|object| object["kind"] != "CustomResourceDefinition"));
}

#[test]
fn named_kinds_leave_no_way_to_more_rights() {
    for object in rendered("external.yaml") {
        for rule in object["rules"].as_array().into_iter().flatten() {
            let verbs = rule["verbs"].to_string();
            assert!(!verbs.contains("escalate") && !verbs.contains('*') && !verbs.contains("impersonate"), "{rule}");
            let on_roles = rule["apiGroups"].to_string().contains("rbac");
            assert!(!(on_roles && verbs.contains("bind")), "{rule}");
        }
    }
}

fn kind_of(object: &Value) -> Resource {
    let (api, kind) = (object["apiVersion"].as_str().unwrap(), object["kind"].as_str().unwrap());
    let (group, version) = api.split_once('/').unwrap_or(("", api));
    let make = if object["metadata"]["namespace"].is_string() { Resource::namespaced } else { Resource::cluster_wide };
    make(group, version, kind, &format!("{}s", kind.to_lowercase()))
}

fn of(kind: kinds::Kind) -> Resource {
    let make = if kinds::is_namespaced(kind) { Resource::namespaced } else { Resource::cluster_wide };
    make(kind.group, kind.version, kind.kind, kind.plural)
}

async fn apply(client: &Client, object: &Value) {
    let namespace = object["metadata"]["namespace"].as_str();
    let applied = async {
        // A kind may take a moment to be served.
        while let Err(error) = client.apply_as(&kind_of(object), namespace, object, "helm").await {
            assert!(error.is_not_found(), "{error}: {object}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_mins(1), applied).await.unwrap();
}

/// A cluster with an API, a template of it, and the rights of the chart for the backend.
async fn cluster(values: &str, isolation: &Isolation) -> (Plane, Client) {
    let mut config = Config::new(Mode::Kube);
    config.users = vec![User::new("token-of-backend", BACKEND, &["system:authenticated"])];
    let plane = Plane::start(config).await.unwrap();
    let client = Server::from_kubeconfig_yaml(&plane.kubeconfig("admin", None).unwrap()).unwrap().client();
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
    apply(&client, &namespace).await;
    for crd in crds::provider() {
        apply(&client, &crd).await;
    }
    let scope = if *isolation == Isolation::Prefixed { "Cluster" } else { "Namespaced" };
    let crd = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "databases.example.com", "labels": {"kube-bind.io/exported": "true"}},
        "spec": {"group": "example.com", "scope": scope,
            "names": {"plural": "databases", "kind": "Database", "singular": "database", "listKind": "DatabaseList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]}});
    apply(&client, &crd).await;
    let template = json!({"apiVersion": "kube-bind.io/v1alpha2", "kind": "APIServiceExportTemplate", "metadata": {"name": "db"},
        "spec": {"scope": scope, "resources": [{"group": "example.com", "resource": "databases", "versions": ["v1"]}],
            "permissionClaims": [{"group": "", "resource": "secrets", "selector": {"labelSelector": {"matchLabels": {"a": "b"}}}}]}});
    apply(&client, &template).await;
    for mut object in rendered(values) {
        if object["apiVersion"] != "rbac.authorization.k8s.io/v1" {
            continue;
        }
        if object["subjects"].is_array() {
            object["subjects"] = json!([{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": BACKEND}]);
        }
        apply(&client, &object).await;
    }
    (plane, client)
}

#[tokio::test(flavor = "multi_thread")]
async fn its_rights_are_enough_for_a_whole_contract() {
    for (values, isolation, scope) in [
        ("external.yaml", Isolation::Namespaced, InformerScope::Namespaced),
        ("external.yaml", Isolation::Prefixed, InformerScope::Cluster),
        ("minimal.yaml", Isolation::Namespaced, InformerScope::Cluster),
    ] {
        let (plane, client) = cluster(values, &isolation).await;
        let recording = plane.faults().record();
        let server = Server::from_kubeconfig_yaml(&plane.kubeconfig(BACKEND, None).unwrap()).unwrap();
        let everybody = vec!["system:authenticated".to_owned()];
        let terms = Terms {
            namespace_prefix: "kube-bind-".to_owned(),
            pretty_name: "Provider Inc.".to_owned(),
            informer_scope: scope,
            isolation: isolation.clone(),
            address: Address { server: server.url().to_owned(), ..Address::default() },
            cluster_wide_claims: false,
            shared_namespaces: false,
            logins: Logins { groups: everybody.clone(), users: Vec::new() },
            workspace: None,
            most_namespaces: carrick_bind_backend::decide::terms::MOST_NAMESPACES,
        };
        let config = BackendConfig {
            server,
            terms,
            source: SchemaSource::Crds,
            slice: None,
            ignored_bindings: Vec::new(),
            lease: Some(LeaseConfig {
                name: "kube-bind-backend".to_owned(),
                namespace: NAMESPACE.to_owned(),
                identity: None,
                duration: None,
            }),
            listen_address: None,
            namespace: NAMESPACE.to_owned(),
        };
        let stop = CancellationToken::new();
        let _end = stop.clone().drop_guard();
        let front = Clusters::start(&config, &stop);
        tokio::spawn(backend::run(config, None, stop.clone()));
        let keys = front.keys(&|| [("signing-key".to_owned(), vec![1])].into()).await.unwrap();
        assert_eq!(keys["signing-key"], [1]);
        let person = Person { subject: "ann".to_owned(), issuer: String::new(), groups: everybody };
        let lets_in = async {
            while !front.may_bind("", &person).await.unwrap() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(Duration::from_mins(1), lets_in).await.expect("whoever has logged in may bind");
        let order = BindOrder {
            name: "db".to_owned(),
            template: "db".to_owned(),
            identity: "one".to_owned(),
            pretty_name: "One".to_owned(),
            author: "ann".to_owned(),
            subject: String::new(),
            request_export: true,
        };
        let bound = front.bind("", &order).await.unwrap_or_else(|error| panic!("{values} {isolation}: {error}"));
        // A namespace of the consumer, and rights in it.
        let consumer = Server::from_kubeconfig_yaml(std::str::from_utf8(&bound.kubeconfig).unwrap()).unwrap().client();
        let asked =
            json!({"apiVersion": "kube-bind.io/v1alpha2", "kind": "APIServiceNamespace", "metadata": {"name": "team"}});
        consumer.create(&of(kinds::API_SERVICE_NAMESPACE), Some(&bound.namespace), &asked).await.unwrap();
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}});
        let secrets = Resource::namespaced("", "v1", "Secret", "secrets");
        let assigned = format!("{}-team", bound.namespace);
        let writes = async {
            while consumer.create(&secrets, Some(&assigned), &secret).await.is_err() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let written = tokio::time::timeout(Duration::from_mins(1), writes).await;
        let refused = recording.records().into_iter().filter(|record| record.ask.user == BACKEND && record.code == 403);
        let refused: Vec<String> = refused.map(|record| format!("{} {}", record.ask.verb, record.ask.path)).collect();
        assert_eq!(refused, Vec::<String>::new(), "{values} {isolation}: what the backend may not do");
        assert!(written.is_ok(), "{values} {isolation}: the consumer has no rights in its namespace");
        let objects = if isolation == Isolation::Prefixed { "Cluster" } else { "Namespaced" };
        let name = if objects == "Cluster" { format!("{}-db", bound.namespace) } else { "db".to_owned() };
        let mut object = json!({"apiVersion": "example.com/v1", "kind": "Database", "metadata": {"name": name}});
        object["metadata"]["annotations"] = json!({"kube-bind.io/cluster-namespace": bound.namespace});
        let (kind, at) = match isolation {
            Isolation::Prefixed => (Resource::cluster_wide("example.com", "v1", "Database", "databases"), None),
            // The contract namespace itself.
            _ => (Resource::namespaced("example.com", "v1", "Database", "databases"), Some(bound.namespace.as_str())),
        };
        let placed = async {
            while consumer.create(&kind, at, &object).await.is_err() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(Duration::from_mins(1), placed).await.expect("the consumer places its object");
        assert!(client.get(&kind, at, &name).await.unwrap().is_some());
    }
}
