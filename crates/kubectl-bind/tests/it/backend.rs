//! The program with a backend, a provider and a consumer: the provider behind the backend is a model, all else is real.

#[path = "../../../bind-backend/tests/it/model.rs"]
mod model;

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use carrick_bind_api::{crds, kinds};
use carrick_client::{Client, Resource, Server};
use carrick_plane::{Config, Mode, Plane};
use http::header;
use model::{Running, location, text, value};
use serde_json::{Value, json};

/// A consumer, a provider, and a backend.
struct World {
    consumer: Plane,
    client: Client,
    provider: Plane,
    provider_client: Client,
    front: Running,
    folder: PathBuf,
}

fn resource(kind: kinds::Kind) -> Resource {
    let make = if kinds::is_namespaced(kind) { Resource::namespaced } else { Resource::cluster_wide };
    make(kind.group, kind.version, kind.kind, kind.plural)
}

async fn plane(objects: Vec<Value>) -> (Plane, Client, String) {
    let plane = Plane::start(Config::new(Mode::Kube)).await.unwrap();
    let kubeconfig = plane.kubeconfig("admin", None).unwrap();
    let client = Server::from_kubeconfig_yaml(&kubeconfig).unwrap().client();
    let crds =
        Resource::cluster_wide("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions");
    for crd in objects {
        client.create(&crds, None, &crd).await.unwrap();
    }
    (plane, client, kubeconfig)
}

impl World {
    async fn start(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("kubectl-bind-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        // As if a konnector had run here and a backend there.
        let (consumer, client, kubeconfig) = plane(crds::consumer()).await;
        std::fs::write(folder.join("kubeconfig"), kubeconfig).unwrap();
        let (provider, provider_client, kubeconfig) = plane(crds::provider()).await;
        let namespaces = Resource::cluster_wide("", "v1", "Namespace", "namespaces");
        provider_client.create(&namespaces, None, &json!({"metadata": {"name": "c-1"}})).await.unwrap();
        let front = Running::start().await;
        let contract = kubeconfig.replace("    cluster: plane\n", "    cluster: plane\n    namespace: c-1\n");
        front.model.state.lock().kubeconfig = Some(contract);
        Self { consumer, client, provider, provider_client, front, folder }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kubectl-bind"));
        command.arg("--kubeconfig").arg(self.folder.join("kubeconfig"));
        command.arg("--config-file").arg(self.folder.join("config")).args(args);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    async fn run(&self, args: &[&str]) -> Output {
        let mut command = self.command(args);
        tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
    }

    /// Starts a command that waits for a browser; returns it with the address that it prints.
    async fn open(&self, args: &[&str]) -> (Child, String) {
        let mut child = self.command(args).spawn().unwrap();
        let errors = child.stderr.take().unwrap();
        let read = move || {
            let mut lines = BufReader::new(errors).lines().map_while(Result::ok);
            let url = lines.find(|line| line.trim().starts_with("http")).expect("an address").trim().to_owned();
            // It goes on to say what it does, and must find somebody who listens.
            std::thread::spawn(move || lines.for_each(drop));
            url
        };
        let url = tokio::task::spawn_blocking(read).await.unwrap();
        (child, url)
    }

    async fn login(&self) -> Output {
        let (child, url) = self.open(&["login", &self.front.url, "--skip-browser"]).await;
        let end =
            location(&self.front.get(&location(&self.front.get(&location(&self.front.get(&url).await)).await)).await);
        // Without the secret in the URL nobody is heard.
        let nonce = value(&end, "nonce").unwrap();
        assert_eq!(self.front.get(&end.replace(&nonce, "guess")).await.status(), 401);
        assert_eq!(self.front.get(&end).await.status(), 200);
        finish(child).await
    }

    /// Does what the backend's controller would: requests succeed, or fail.
    fn answer_requests(&self, status: Value) -> tokio::task::JoinHandle<()> {
        let client = self.provider_client.clone();
        tokio::spawn(async move {
            let kind = resource(kinds::API_SERVICE_EXPORT_REQUEST);
            loop {
                for request in client.list(&kind, Some("c-1"), &carrick_client::ListOptions::default()).await.unwrap() {
                    let name = request["metadata"]["name"].as_str().unwrap();
                    if request["status"]["phase"] != status["phase"] {
                        let patch = json!({"status": status});
                        client.merge_patch_status(&kind, Some("c-1"), name, &patch).await.unwrap();
                    }
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        })
    }

    async fn bindings(&self) -> Vec<Value> {
        let kind = resource(kinds::API_SERVICE_BINDING);
        self.client.list(&kind, None, &carrick_client::ListOptions::default()).await.unwrap()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

async fn finish(mut child: Child) -> Output {
    let wait = move || {
        let (mut out, status) = (Vec::new(), child.wait().unwrap());
        child.stdout.take().unwrap().read_to_end(&mut out).unwrap();
        Output { status, stdout: out, stderr: Vec::new() }
    };
    tokio::task::spawn_blocking(wait).await.unwrap()
}

fn words(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn somebody_logs_in_looks_around_and_binds() {
    let world = World::start("flow").await;
    let not_yet = world.run(&["templates", "--server", &world.front.url]).await;
    assert_eq!(not_yet.status.code(), Some(1));
    assert!(words(&not_yet.stderr).contains("not logged in"), "{}", words(&not_yet.stderr));
    let login = world.login().await;
    let said = words(&login.stdout);
    assert!(login.status.success() && said.contains("as kube-bind-embedded-user"), "{said}");
    let stored: Value = serde_json::from_slice(&std::fs::read(world.folder.join("config")).unwrap()).unwrap();
    let entry = &stored["servers"][&world.front.url];
    assert_eq!((&stored["current"], &entry["tokenType"]), (&json!(world.front.url), &json!("Bearer")));
    let token = entry["accessToken"].as_str().unwrap();
    assert!(!said.contains(token));

    let templates = world.run(&["templates"]).await;
    assert!(
        words(&templates.stdout).starts_with(
            "NAME      RESOURCES            PERMISSIONCLAIMS   AGE\nwidgets   widgets.example.io   secrets"
        )
    );
    let collections = words(&world.run(&["collections", "-o", "yaml"]).await.stdout);
    assert!(collections.contains("kind: List") && collections.contains("Everything"), "{collections}");

    // What would be written is shown, and nothing is.
    let (here, there) = (world.consumer.faults().record(), world.provider.faults().record());
    let shown = world.run(&["apiservice", "mine", "--template-name", "widgets", "-o", "yaml"]).await;
    assert!(shown.status.success(), "{}", words(&shown.stderr));
    let shown = words(&shown.stdout);
    assert!(
        shown.contains("\nkind: APIServiceBinding\n") && shown.contains("\n#   kind: APIServiceExportRequest\n"),
        "{shown}"
    );
    assert!(here.writes().is_empty() && there.writes().is_empty());

    let answering = world.answer_requests(json!({"phase": "Succeeded"}));
    let done = world.run(&["apiservice", "mine", "--template-name", "widgets"]).await;
    assert!(done.status.success(), "{}", words(&done.stderr));
    assert!(words(&done.stdout).contains("apiservicebinding/mine written"), "{}", words(&done.stdout));
    assert!(!words(&done.stdout).contains(token) && !words(&done.stderr).contains(token));
    let bindings = world.bindings().await;
    assert_eq!(bindings.len(), 1);
    let secret = bindings[0]["spec"]["kubeconfigSecretRef"]["name"].as_str().unwrap();
    let secrets = Resource::namespaced("", "v1", "Secret", "secrets");
    assert!(world.client.get(&secrets, Some("kube-bind"), secret).await.unwrap().is_some());
    let identity = world.run(&["cluster-identity"]).await;
    assert_eq!(world.front.model.state.lock().orders[0].identity, words(&identity.stdout).trim());
    // Again, nothing is made twice.
    let again = world.run(&["apiservice", "mine", "--template-name", "widgets"]).await;
    assert!(words(&again.stdout).contains("apiservicebinding/mine is there already"), "{}", words(&again.stderr));
    assert_eq!(world.bindings().await.len(), 1);
    answering.abort();

    let unknown = world.run(&["apiservice", "x", "--template-name", "nothing"]).await;
    assert!(unknown.status.code() == Some(1) && words(&unknown.stderr).contains("(RESOURCE_NOT_FOUND)"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_fails_or_hands_out_a_trap_is_refused() {
    let world = World::start("refused").await;
    world.login().await;
    let answering = world.answer_requests(json!({"phase": "Failed", "terminalMessage": "no such claim"}));
    let done = world.run(&["apiservice", "mine", "--template-name", "widgets"]).await;
    assert!(done.status.code() == Some(1) && words(&done.stderr).contains("no such claim"), "{}", words(&done.stderr));
    assert!(world.bindings().await.is_empty());
    answering.abort();
    let trap = "{current-context: a, contexts: [{name: a, context: {cluster: b, user: c, namespace: c-1}}], \
         clusters: [{name: b, cluster: {server: 'https://provider.example'}}], users: [{name: c, user: {exec: {command: id}}}]}";
    world.front.model.state.lock().kubeconfig = Some(trap.to_owned());
    let here = world.consumer.faults().record();
    let done = world.run(&["apiservice", "mine", "--template-name", "widgets"]).await;
    assert!(
        done.status.code() == Some(1) && words(&done.stderr).contains("names a program"),
        "{}",
        words(&done.stderr)
    );
    assert!(here.writes().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_chosen_on_the_page_is_bound_here() {
    let world = World::start("page").await;
    let answering = world.answer_requests(json!({"phase": "Succeeded"}));
    let (child, url) = world.open(&[&world.front.url, "--skip-browser"]).await;
    let front = &world.front;
    // A browser: log in, choose, bind.
    let begin = front.get(&format!("{}{}", front.url, location(&front.get(&url).await))).await;
    let cookie = |answer: &http::Response<bytes::Bytes>| {
        answer.headers()[header::SET_COOKIE].to_str().unwrap().split(';').next().unwrap().to_owned()
    };
    let browser = cookie(&begin);
    let back = location(&front.get(&location(&begin)).await);
    let logged_in = front.get_with(&back, &[("cookie", &browser)]).await;
    let cookie = cookie(&logged_in);
    let catalogue = text(&front.get_with(&location(&logged_in), &[("cookie", &cookie)]).await);
    let link = catalogue.split("<h2><a href=\"").nth(1).unwrap().split('"').next().unwrap().replace("&amp;", "&");
    let page = text(&front.get_with(&link, &[("cookie", &cookie)]).await);
    let part = |mark: &str| page.split(mark).nth(1).unwrap().split('"').next().unwrap().replace("&amp;", "&");
    let (action, mark) = (
        page.rsplit("action=\"").next().unwrap().split('"').next().unwrap().replace("&amp;", "&"),
        part("name=\"mark\" value=\""),
    );
    let end = front.post(&action, &[("cookie", &cookie)], format!("mark={mark}&template=widgets&name=chosen")).await;
    let end = location(&end);
    assert_eq!(value(&end, "binding_response"), None, "no kubeconfig passes through the browser");
    // Somebody who knows the port, but not the secret, is not heard.
    assert_eq!(front.get("http://127.0.0.1:1/".replace(":1/", &port(&end)).as_str()).await.status(), 401);
    assert_eq!(front.get(&end).await.status(), 200);
    let done = finish(child).await;
    assert!(
        done.status.success() && words(&done.stdout).contains("apiservicebinding/chosen written"),
        "{} {}",
        words(&done.stdout),
        words(&done.stderr)
    );
    answering.abort();
}

fn port(url: &str) -> String {
    let rest = &url["http://127.0.0.1".len()..];
    format!("{}/callback", &rest[..rest.find('/').unwrap()])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_in_a_file_needs_a_kubeconfig_and_no_login() {
    let world = World::start("file").await;
    let answering = world.answer_requests(json!({"phase": "Succeeded"}));
    let (order, remote) = (world.folder.join("request.yaml"), world.folder.join("remote"));
    std::fs::write(&order, "kind: APIServiceExportRequest\nmetadata: {name: filed}\nspec: {resources: [{group: example.io, resource: widgets, versions: [v1]}]}\n").unwrap();
    let kubeconfig = world.front.model.state.lock().kubeconfig.clone().unwrap();
    std::fs::write(&remote, kubeconfig).unwrap();
    let args = [
        "apiservice",
        "-f",
        order.to_str().unwrap(),
        "--remote-kubeconfig",
        remote.to_str().unwrap(),
        "--skip-konnector",
    ];
    let done = world.run(&args).await;
    assert!(
        done.status.success() && words(&done.stdout).contains("apiservicebinding/filed written"),
        "{}",
        words(&done.stderr)
    );
    // What is accepted is shown, also where somebody else grants the rights; and whoever was asked for nothing has accepted nothing.
    assert!(words(&done.stderr).contains("for binding filed the konnector may read and write: widgets.example.io"));
    assert_eq!(world.bindings().await[0]["metadata"]["annotations"]["kube-bind.io/accepted-claims"], "");
    answering.abort();
    std::fs::write(&order, "kind: Pod").unwrap();
    assert_eq!(world.run(&args).await.status.code(), Some(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backend_that_is_none_is_named() {
    let world = World::start("none").await;
    let place = world.provider.url().to_owned();
    let insecure = world.run(&["login", &place, "--skip-browser"]).await;
    assert!(
        insecure.status.code() == Some(1) && words(&insecure.stderr).contains("does not answer"),
        "{}",
        words(&insecure.stderr)
    );
    let other = world.run(&["login", &place, "--skip-browser", "--insecure-skip-tls-verify"]).await;
    assert_eq!(other.status.code(), Some(1), "{}", words(&other.stderr));
    assert_eq!(world.run(&["login", "file:///etc/passwd"]).await.status.code(), Some(1));
    assert!(!world.folder.join("config").exists());
    let help = words(&world.run(&["--help"]).await.stdout);
    assert!(help.contains("Examples:"), "{help}");
}

/// A backend that says who it is, and nothing else.
async fn backend_of_version(version: &str) -> String {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let provider =
        json!({"apiVersion": "v1alpha2", "kind": "BindingProvider", "version": version, "providerPrettyName": "p",
        "authenticationMethods": [{"method": "OAuth2CodeGrant",
            "oauth2CodeGrant": {"authenticatedURL": format!("{url}/api/authorize")}}]})
        .to_string();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let Ok(1..) = stream.read(&mut [0; 4096]).await else { continue };
            let head =
                format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}", provider.len());
            let _ = stream.write_all(format!("{head}\r\nconnection: close\r\n\r\n{provider}").as_bytes()).await;
        }
    });
    url
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backend_that_was_built_without_a_version_is_no_old_one() {
    let world = World::start("versions").await;
    for unknown in ["v0.0.0", "v0.0.0-master+$Format$", ""] {
        let (mut child, url) =
            world.open(&["login", &backend_of_version(unknown).await, "--skip-browser", "--timeout", "1m"]).await;
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(url.contains("/api/authorize"), "{unknown}: {url}");
    }
    let old = world.run(&["login", &backend_of_version("v0.5.9").await, "--skip-browser"]).await;
    assert!(old.status.code() == Some(1) && words(&old.stderr).contains("0.5.9"), "{}", words(&old.stderr));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backend_that_knows_no_codes_hands_out_a_token_as_before() {
    let world = World::start("codes").await;
    let (child, url) = world.open(&["login", &world.front.url, "--skip-browser"]).await;
    let challenge = value(&url, "code_challenge").unwrap();
    // As if the backend had never heard of it.
    let url = url.replace(&format!("&code_challenge={challenge}"), "");
    let front = &world.front;
    let end = location(&front.get(&location(&front.get(&location(&front.get(&url).await)).await)).await);
    assert!(value(&end, "access_token").is_some() && value(&end, "code").is_none(), "{end}");
    assert_eq!(front.get(&end).await.status(), 200);
    let done = finish(child).await;
    assert!(done.status.success(), "{}", words(&done.stderr));
    assert!(world.run(&["templates"]).await.status.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_counts_for_its_own_cluster() {
    let world = World::start("cluster").await;
    let server = format!("{}@one", world.front.url);
    let (child, url) = world.open(&["login", &server, "--skip-browser", "--show-token"]).await;
    assert_eq!(value(&url, "cluster_id").as_deref(), Some("one"));
    let front = &world.front;
    let end = location(&front.get(&location(&front.get(&location(&front.get(&url).await)).await)).await);
    assert_eq!(front.get(&end).await.status(), 200);
    let done = finish(child).await;
    let stored: Value = serde_json::from_slice(&std::fs::read(world.folder.join("config")).unwrap()).unwrap();
    let key = format!("one@{}", front.url);
    assert_eq!(stored["current"], key);
    let token = stored["servers"][&key]["accessToken"].as_str().unwrap();
    assert!(done.status.success() && words(&done.stdout).contains(token), "{stored:#}");
    // No browser has seen it.
    assert!(value(&end, "access_token").is_none() && !end.contains(token), "{end}");
    assert!(world.run(&["templates"]).await.status.success());
    assert!(world.run(&["templates", &server]).await.status.success());
    let other = world.run(&["templates", "--cluster", "two"]).await;
    assert!(other.status.code() == Some(1) && words(&other.stderr).contains("@two`"), "{}", words(&other.stderr));
    // What the backend refuses ends with its code, and not with an empty list.
    world.front.model.state.lock().denied = true;
    let denied = world.run(&["templates"]).await;
    assert!(denied.status.code() == Some(1) && words(&denied.stderr).contains("(AUTHORIZATION_FAILED)"));
}
