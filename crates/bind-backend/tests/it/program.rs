//! The program itself, started as its users do.

use std::fs::File;
use std::path::PathBuf;
use std::process::Command;

use carrick_bind_api::kinds;
use carrick_bind_api::v1alpha2::{InformerScope, Isolation};
use carrick_client::{ListOptions, Resource, Server};
use carrick_plane::{Config, Mode, Plane};
use data_encoding::BASE64;
use serde_json::{Value, json};

use crate::flows::world::{BACKEND, Cluster, Provider, of, secrets};

const HOME: &str = "kube-bind";
const ACCOUNT: &str = "kube-bind-backend";

/// A folder that goes with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("kube-bind-backend-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn program(args: &[&str]) -> Command {
    let mut program = Command::new(env!("CARGO_BIN_EXE_kube-bind-backend"));
    program.args(args).env_remove("KUBECONFIG").env_remove("POD_NAMESPACE");
    program
}

/// A workspace in which the token of the backend's account comes with another authority than the one that the server has, as in kcp.
struct Kcp {
    cluster: Cluster,
    folder: Folder,
    /// The authority that comes with the token.
    foreign: String,
}

impl Kcp {
    async fn start(name: &str) -> Self {
        let plane = Plane::start(Config::new(Mode::Kcp)).await.unwrap();
        let kubeconfig = plane.kubeconfig("kcp-admin", Some("root")).unwrap();
        let client = Server::from_kubeconfig_yaml(&kubeconfig).unwrap().client();
        let foreign = rcgen::generate_simple_self_signed(vec!["loopback".to_owned()]).unwrap().cert.pem();
        let folder = Folder::new(name);
        folder.write("owner.kubeconfig", &kubeconfig);
        let kcp = Self { cluster: Cluster { plane, client }, folder, foreign };
        kcp.fill_token().await;
        kcp
    }

    /// The account with a token, in which the authority is another one once the server has filled it in.
    async fn fill_token(&self) {
        let at = json!({"name": ACCOUNT, "namespace": HOME});
        let mut of_token = at.clone();
        of_token["annotations"] = json!({"kubernetes.io/service-account.name": ACCOUNT});
        let accounts = Resource::namespaced("", "v1", "ServiceAccount", "serviceaccounts");
        for (resource, object) in [
            (accounts, json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": at})),
            (
                secrets(),
                json!({"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token", "metadata": of_token}),
            ),
        ] {
            self.cluster.apply(&resource, &object).await;
        }
        self.cluster.until(&secrets(), Some(HOME), ACCOUNT, |it| it["data"]["token"].is_string()).await;
        assert_eq!(self.of_secret(ACCOUNT, "ca.crt").await.as_deref(), Some(self.cluster.plane.ca_pem()));
        let data = json!({"data": {"ca.crt": BASE64.encode(self.foreign.as_bytes())}});
        self.cluster.client.merge_patch(&secrets(), Some(HOME), ACCOUNT, &data).await.unwrap();
    }

    async fn of_secret(&self, name: &str, key: &str) -> Option<String> {
        let secret = self.cluster.get(&secrets(), Some(HOME), name).await?;
        let text = BASE64.decode(secret["data"][key].as_str()?.as_bytes()).unwrap();
        Some(String::from_utf8(text).unwrap())
    }

    /// `init`, and the kubeconfig that it leaves.
    async fn init(&self, more: &[&str]) -> Value {
        let owner = self.folder.0.join("owner.kubeconfig");
        let mut init = program(&["init", "--multicluster-runtime-provider", "kcp", "--kubeconfig"]);
        init.arg(owner).args(more);
        let output = tokio::task::spawn_blocking(move || init.output().unwrap()).await.unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(self.of_secret(ACCOUNT, "ca.crt").await.as_ref(), Some(&self.foreign), "as it came");
        let text = self.of_secret("kube-bind-backend-kubeconfig", "kubeconfig").await.expect("no kubeconfig");
        carrick_json::yaml::value(&text).unwrap()
    }
}

fn authority(kubeconfig: &Value) -> String {
    let encoded = kubeconfig["clusters"][0]["cluster"]["certificate-authority-data"].as_str().unwrap();
    String::from_utf8(BASE64.decode(encoded.as_bytes()).unwrap()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_kubeconfig_of_init_works_although_the_token_comes_with_another_authority() {
    let kcp = Kcp::start("init").await;
    let kubeconfig = kcp.init(&[]).await;
    assert_eq!(authority(&kubeconfig), kcp.cluster.plane.ca_pem(), "what the owner's kubeconfig trusts");
    // It trusts the server, and the server knows the account.
    let backend = Server::from_kubeconfig_yaml(&kubeconfig.to_string()).unwrap().client();
    let exports = Resource::cluster_wide("apis.kcp.io", "v1alpha1", "APIExport", "apiexports");
    let listed = backend.list(&exports, None, &ListOptions::default()).await.unwrap();
    assert_eq!(listed[0]["metadata"]["name"], "kube-bind.io");
}

#[tokio::test(flavor = "multi_thread")]
async fn init_takes_the_authority_of_the_flag_and_replaces_none_by_one_that_was_not_tried() {
    let kcp = Kcp::start("authority").await;
    let given = rcgen::generate_simple_self_signed(vec!["front".to_owned()]).unwrap().cert.pem();
    let file = kcp.folder.write("given.pem", &given);
    let front = ["--external-address", "https://front.example/clusters/root"];
    let by_flag = [&front[..], &["--external-ca-file", file.to_str().unwrap()]].concat();
    assert_eq!(authority(&kcp.init(&by_flag).await), given);
    // Nobody says how to trust that address, and nobody has been there: what is there may work.
    let kept = kcp.init(&front).await;
    assert_eq!((authority(&kept), &kept["clusters"][0]["cluster"]["server"]), (given, &json!(front[1])));
    // Another address is what was asked for, with the authority by which this very program gets there.
    assert_eq!(authority(&kcp.init(&[]).await), kcp.cluster.plane.ca_pem());
    // A wrong one at that address is mended in the same way.
    let at_home = ["--external-ca-file", file.to_str().unwrap()];
    assert_ne!(authority(&kcp.init(&at_home).await), kcp.cluster.plane.ca_pem());
    assert_eq!(authority(&kcp.init(&[]).await), kcp.cluster.plane.ca_pem());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_isolation_is_the_default_and_consumers_are_served() {
    let provider = Provider::without_backend(InformerScope::Namespaced, Isolation::Prefixed).await;
    provider.offer("things", "Thing", "Cluster").await;
    let folder = Folder::new("isolation");
    let file = folder.write("kubeconfig", &provider.cluster.plane.kubeconfig(BACKEND, None).unwrap());
    let log = folder.0.join("log");
    let mut backend = program(&["--isolation=", "--frontend-disabled", "--listen-address=127.0.0.1:0", "--kubeconfig"]);
    backend.args([file.as_os_str(), "--lease-namespace=default".as_ref()]).stderr(File::create(&log).unwrap());
    let mut backend = tokio::process::Command::from(backend).kill_on_drop(true).spawn().unwrap();
    let exported = async {
        let (contract, _) = provider.contract("one").await;
        provider.export(&contract, "things", json!([])).await;
        let exports = of(kinds::API_SERVICE_EXPORT);
        provider.cluster.get(&exports, Some(&contract), "things").await.unwrap()
    };
    tokio::select! {
        export = exported => assert_eq!(export["spec"]["isolation"], "Prefixed"),
        status = backend.wait() => {
            panic!("the backend has ended, {}: {}", status.unwrap(), std::fs::read_to_string(&log).unwrap());
        }
    }
}
