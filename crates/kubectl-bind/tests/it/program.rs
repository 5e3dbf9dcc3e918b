//! The program itself, against an embedded plane.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use carrick_bind_api::install::HostAliases;
use carrick_client::{Client, ListOptions, Resource, Server};
use carrick_plane::{Config, Mode, Plane};
use data_encoding::BASE64;
use serde_json::{Value, json};

struct World {
    plane: Plane,
    client: Client,
    kubeconfig: std::path::PathBuf,
}

impl World {
    async fn start(name: &str) -> Self {
        let plane = Plane::start(Config::new(Mode::Kube)).await.unwrap();
        let text = plane.kubeconfig("admin", None).unwrap();
        let client = Server::from_kubeconfig_yaml(&text).unwrap().client();
        let kubeconfig = std::env::temp_dir().join(format!("kubectl-bind-{name}-{}", std::process::id()));
        std::fs::write(&kubeconfig, text).unwrap();
        Self { plane, client, kubeconfig }
    }

    async fn run(&self, args: &[&str], input: &str) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kubectl-bind"));
        command.arg("--kubeconfig").arg(&self.kubeconfig).args(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let input = input.to_owned();
        let run = move || {
            let mut child = command.spawn().unwrap();
            // A program that refuses its command line reads nothing.
            let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
            child.wait_with_output().unwrap()
        };
        tokio::task::spawn_blocking(run).await.unwrap()
    }

    async fn secrets(&self) -> Vec<Value> {
        let secrets = Resource::namespaced("", "v1", "Secret", "secrets");
        let label = ListOptions::labels("kube-bind.io/provider-kubeconfig=true");
        self.client.list(&secrets, Some("kube-bind"), &label).await.unwrap()
    }

    async fn deployment(&self) -> Option<Value> {
        let deployments = Resource::namespaced("apps", "v1", "Deployment", "deployments");
        self.client.get(&deployments, Some("kube-bind"), "konnector").await.unwrap()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.kubeconfig);
    }
}

fn answer(user: &str) -> String {
    let kubeconfig = format!(
        "{{current-context: a, contexts: [{{name: a, context: {{cluster: b, user: c, namespace: c-1}}}}], \
         clusters: [{{name: b, cluster: {{server: 'https://provider.example'}}}}], users: [{{name: c, user: {{{user}}}}}]}}"
    );
    let kubeconfig = BASE64.encode(kubeconfig.as_bytes());
    json!({"apiVersion": "kube-bind.io/v1alpha2", "kind": "BindingResourceResponse", "authentication": {},
        "kubeconfig": kubeconfig, "requests": null})
    .to_string()
}

fn words(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_has_an_identity_and_a_missing_namespace_has_none() {
    let world = World::start("identity").await;
    let namespaces = Resource::cluster_wide("", "v1", "Namespace", "namespaces");
    let uid = world.client.get(&namespaces, None, "kube-system").await.unwrap().unwrap()["metadata"]["uid"].clone();
    let done = world.run(&["cluster-identity"], "").await;
    assert_eq!((done.status.code(), words(&done.stdout)), (Some(0), format!("{}\n", uid.as_str().unwrap())));
    let done = world.run(&["cluster-identity", "-n", "nowhere"], "").await;
    assert_eq!(done.status.code(), Some(1));
    assert!(words(&done.stderr).contains("there is no namespace nowhere"), "{}", words(&done.stderr));
}

#[tokio::test(flavor = "multi_thread")]
async fn deploy_writes_what_a_dry_run_shows_and_nothing_twice() {
    let world = World::start("deploy").await;
    let recording = world.plane.faults().record();
    let dry = world.run(&["deploy", "-f", "-", "--dry-run"], &answer("token: t")).await;
    assert_eq!(dry.status.code(), Some(0), "{}", words(&dry.stderr));
    assert!(recording.writes().is_empty());
    let shown = words(&dry.stdout);
    assert!(shown.contains("kind: Deployment") && shown.contains("kind: Secret"), "{shown}");

    let done = world.run(&["deploy", "-f", "-"], &answer("token: t")).await;
    assert_eq!(done.status.code(), Some(0), "{}", words(&done.stderr));
    assert_eq!(world.secrets().await.len(), 1);
    let deployment = world.deployment().await.unwrap();
    assert_eq!(deployment["spec"]["replicas"], 2);
    let again = world.run(&["deploy", "-f", "-"], &answer("token: t")).await;
    assert!(words(&again.stdout).contains("has this kubeconfig already"), "{}", words(&again.stdout));
    assert_eq!(world.secrets().await.len(), 1);
    // New credentials for the same contract, by a Secret this time.
    let object = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "order", "namespace": "default"},
        "data": {"binding-response": BASE64.encode(answer("token: u").as_bytes())}});
    let secrets = Resource::namespaced("", "v1", "Secret", "secrets");
    world.client.create(&secrets, Some("default"), &object).await.unwrap();
    let done = world.run(&["deploy", "--secret", "default/order", "--skip-konnector"], "").await;
    assert_eq!(done.status.code(), Some(0), "{}", words(&done.stderr));
    let stored = world.secrets().await;
    assert_eq!(stored.len(), 1);
    let text = BASE64.decode(stored[0]["data"]["kubeconfig"].as_str().unwrap().as_bytes()).unwrap();
    assert!(words(&text).contains("token: u"));
}

#[tokio::test(flavor = "multi_thread")]
async fn flags_of_kube_binds_own_program_are_taken_with_effect_or_with_a_line_that_says_why_not() {
    let world = World::start("habits").await;
    let alias = "--konnector-host-alias=10.0.0.7:api.example.io,bind.example.io";
    let deploy = ["deploy", "-f", "-", alias, "--no-banner", "--v=2", "--downgrade-konnector", "--dry-run=false"];
    let done = world.run(&deploy, &answer("token: t")).await;
    assert_eq!(done.status.code(), Some(0), "{}", words(&done.stderr));
    assert!(words(&done.stderr).contains("note: --downgrade-konnector is not used"), "{}", words(&done.stderr));
    let aliases = json!([{"ip": "10.0.0.7", "hostnames": ["api.example.io", "bind.example.io"]}]);
    assert_eq!(world.deployment().await.unwrap()["spec"]["template"]["spec"]["hostAliases"], aliases);
    // Where no konnector is installed, a line says so.
    let done = world.run(&["deploy", "-f", "-", "--konnector-host-alias=10.0.0.8:x"], &answer("token: t")).await;
    assert!(words(&done.stdout).contains("it keeps its host aliases"), "{}", words(&done.stdout));
    let done = world.run(&["deploy", "-f", "-", alias, "--skip-konnector"], &answer("token: t")).await;
    assert!(words(&done.stdout).contains("--konnector-host-alias is not used"), "{}", words(&done.stdout));
    assert_eq!(world.deployment().await.unwrap()["spec"]["template"]["spec"]["hostAliases"], aliases);
    for (refused, way_out) in [
        (&["deploy", "-f", "-", "--konnector-host-alias=nonsense"][..], "10.0.0.7:api.example.io"),
        (&["deploy", "-f", "-", "--token=t"], "put it into a kubeconfig"),
    ] {
        let done = world.run(refused, "").await;
        let said = words(&done.stderr);
        assert!(done.status.code() == Some(2) && said.contains(way_out), "{refused:?}: {said}");
    }
    let done = Command::new(env!("CARGO_BIN_EXE_kubectl-bind")).args(["dev", "create"]).output().unwrap();
    assert!(done.status.code() == Some(2) && words(&done.stderr).contains("carrick bind demo"), "{done:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_konnector_that_takes_the_place_of_kube_binds_gets_the_rights_for_what_is_bound() {
    let world = World::start("switch").await;
    // What kube-bind leaves: a konnector that may do everything, and a binding.
    let crds =
        Resource::cluster_wide("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions");
    for crd in carrick_bind_api::crds::consumer() {
        world.client.create(&crds, None, &crd).await.unwrap();
    }
    let rbac = |kind, plural| Resource::cluster_wide("rbac.authorization.k8s.io", "v1", kind, plural);
    let roles = rbac("ClusterRole", "clusterroles");
    let everything = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "kube-bind-konnector"}, "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]});
    world.client.create(&roles, None, &everything).await.unwrap();
    let mut theirs =
        carrick_bind_api::install::konnector("ghcr.io/kube-bind/konnector:v0.8.1", &HostAliases::default());
    let namespace = carrick_bind_api::install::namespace();
    world.client.create(&Resource::cluster_wide("", "v1", "Namespace", "namespaces"), None, &namespace).await.unwrap();
    let deployments = Resource::namespaced("apps", "v1", "Deployment", "deployments");
    world.client.create(&deployments, Some("kube-bind"), &theirs.pop().unwrap()).await.unwrap();
    let bindings = Resource::cluster_wide("kube-bind.io", "v1alpha2", "APIServiceBinding", "apiservicebindings");
    let binding = json!({"apiVersion": "kube-bind.io/v1alpha2", "kind": "APIServiceBinding", "metadata": {"name": "law"},
        "spec": {"kubeconfigSecretRef": {"namespace": "kube-bind", "name": "s", "key": "kubeconfig"}}});
    let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(30);
    while let Err(error) = world.client.create(&bindings, None, &binding).await {
        assert!(tokio::time::Instant::now() < deadline, "{error}");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let status = json!({"status": {"boundSchemas": [{"group": "wild.io", "resource": "sheriffs"}],
        "permissionClaims": [{"group": "", "resource": "secrets", "selector": {"labelSelector": {}}}]}});
    world.client.merge_patch_status(&bindings, None, "law", &status).await.unwrap();
    let of_binding = async || world.client.get(&roles, None, "kube-bind-konnector-law").await.unwrap();
    let left = world.run(&["deploy", "-f", "-"], &answer("token: t")).await;
    assert!(
        words(&left.stdout).contains("works as well; replace it with --konnector-image"),
        "{}",
        words(&left.stdout)
    );
    assert!(of_binding().await.is_none());

    // The kubeconfig that is here already will do.
    let name = world.secrets().await[0]["metadata"]["name"].as_str().unwrap().to_owned();
    let secret = format!("kube-bind/{name}");
    let done = world.run(&["deploy", "--secret", &secret, "--konnector-image=example.io/ours:v1"], "").await;
    assert_eq!(world.secrets().await.len(), 1);
    assert_eq!(done.status.code(), Some(0), "{}", words(&done.stderr));
    let granted = of_binding().await.unwrap()["rules"].to_string();
    assert!(granted.contains("sheriffs") && granted.contains("secrets"), "{granted}");
    assert!(words(&done.stderr).contains("can read and write all secrets"), "said before: {}", words(&done.stderr));
    let base = world.client.get(&roles, None, "kube-bind-konnector").await.unwrap().unwrap();
    assert!(!base["rules"].to_string().contains('*'), "{base}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_deployed_ends_with_one_and_writes_nothing() {
    let world = World::start("refused").await;
    let recording = world.plane.faults().record();
    for (input, wanted) in [
        (answer("exec: {command: id}"), "names a program"),
        (answer("tokenFile: /etc/passwd"), "names a file in tokenFile"),
        ("very-secret".to_owned(), "not a BindingResponse"),
        (
            r#"{"kind": "Error", "message": "no such template", "code": "RESOURCE_NOT_FOUND"}"#.to_owned(),
            "no such template",
        ),
    ] {
        let done = world.run(&["deploy", "-f", "-"], &input).await;
        let said = words(&done.stderr);
        assert!(done.status.code() == Some(1) && said.contains(wanted) && !said.contains("very-secret"), "{said}");
        assert_eq!(words(&done.stdout), "");
    }
    let done = world.run(&["deploy", "--secret", "default/missing"], "").await;
    assert!(done.status.code() == Some(1) && words(&done.stderr).contains("secret default/missing not found"));
    let done = world.run(&["deploy", "--secret", "missing"], "").await;
    assert!(done.status.code() == Some(1) && words(&done.stderr).contains("expected NAMESPACE/NAME"));
    assert_eq!(world.run(&["deploy"], "").await.status.code(), Some(2));
    assert!(recording.writes().is_empty());
}
